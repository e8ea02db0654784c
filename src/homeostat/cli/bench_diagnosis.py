"""`homeostat bench diagnosis`: how often, how soon and with what probability the correct cause is found."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from homeostat.cli.bench_keep import KeepOption, deliver
from homeostat.cli.output import JsonFlag, print_table, say
from homeostat.core.errors import ConfigError

_DRAWS = ("usual", "wide")


def diagnosis(
    runs: Annotated[int, typer.Option("--runs", min=1, help="Number of simulated runs.")] = 200,
    first_seed: Annotated[int, typer.Option("--first-seed", min=0, help="First seed.")] = 1,
    draw: Annotated[
        str, typer.Option("--draw", help="usual: runs like those that are learned from. wide: far beyond them.")
    ] = "usual",
    corpus: Annotated[
        Path | None,
        typer.Option(
            "--corpus", help="Diagnose the recorded runs in this directory instead of simulated ones.", metavar="DIR"
        ),
    ] = None,
    json: JsonFlag = False,
    keep: KeepOption = None,
) -> None:
    """Diagnose random simulated runs with known faults, and compare with published rules."""
    if draw not in _DRAWS:
        raise ConfigError(f"unknown draw {draw!r}", where="--draw", fix=f"use one of {', '.join(_DRAWS)}")
    from homeostat.lab.bench import diagnosis as bench
    from homeostat.lab.bench import diagnosis_corpus, diagnosis_rivals, diagnosis_wide
    from homeostat.policies import registry

    ours_and_the_table = {name: registry.build(name) for name in ("provisioning", "provisioning.paper")}
    policies = {**ours_and_the_table, **diagnosis_rivals.rival_policies()}
    if corpus is not None:
        result = diagnosis_corpus.measure(policies, corpus)
    else:
        say(f"simulating {runs} runs under {len(policies)} policies; a run takes about two seconds")
        draw_cases = diagnosis_wide.wide_cases if draw == "wide" else bench.cases
        drawn = draw_cases(runs, first_seed)
        result = {"draw": draw, "first_seed": first_seed, **bench.measure(policies, drawn, say)}
    if deliver(result, json=json, keep=keep):
        return
    for name, figures in result["policies"].items():
        print(f"{name}: macro-F1 {figures['macro_f1']:.2f}, calibration error {figures['calibration_error']:.2f}")
        print(f"  macro-F1 {figures['macro_f1_of_claims']:.2f} over the causes that it can name")
        print(f"  {figures['batches_until_right_median']:.0f} batches until a correct diagnosis (median)")
        print(f"  {figures['vain_scaling_runs']} runs with a scaling action that cannot help")
        print(f"  {figures['clean_runs_with_a_diagnosis']} of {figures['clean_runs']} clean runs with a diagnosis")
    for name, figures in result["beside"].items():
        print(f"provisioning needs {figures['batches_until_right_ratio']:.2f} times the batches of {name}")
        print(f"  on the {figures['named_by_both']} of {figures['faults']} faults that both name")
    causes = result["policies"]["provisioning"]["causes"]
    columns = ("cause", "cases", "recall", "precision", "F1")
    rows = [
        (cause, str(each["cases"]), f"{each['recall']:.2f}", f"{each['precision']:.2f}", f"{each['f1']:.2f}")
        for cause, each in causes.items()
    ]
    print_table(columns, rows, right=columns[1:])
