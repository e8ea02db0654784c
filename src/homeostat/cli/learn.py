"""`homeostat learn`: fits the probabilities of causes to runs with known causes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homeostat.cli.output import JsonFlag, print_json, print_table, say

if TYPE_CHECKING:
    from homeostat.lab.evidence_learning.examples import Example
    from homeostat.lab.evidence_learning.strength_fit import Comparison

# The benchmarks do not use these seeds, so that they test on runs that were not learned from.
_FIRST_SEED = 100_000


def learn(
    runs: Annotated[int, typer.Option("--runs", min=0, help="Number of simulated runs to learn from.")] = 400,
    first_seed: Annotated[int, typer.Option("--first-seed", min=0, help="First seed.")] = _FIRST_SEED,
    corpus: Annotated[
        Path | None,
        typer.Option("--corpus", help="Also learn from the recorded runs in this directory.", metavar="DIR"),
    ] = None,
    model: Annotated[
        str,
        typer.Option("--model", help="Dotted path of your own model, to compare it as well.", metavar="MODULE:NAME"),
    ] = "",
    out: Annotated[Path | None, typer.Option("--out", help="Write the table to this file.", metavar="FILE")] = None,
    json: JsonFlag = False,
) -> None:
    """Fit the probabilities of causes to simulated and recorded runs, and compare them on held-out runs."""
    import json as json_format

    from homeostat.diagnosers.strengths import OwnModel, shipped_strengths
    from homeostat.lab.evidence_learning.strength_fit import as_table, learned
    from homeostat.policies.dotted_paths import cause_model

    own = OwnModel(model, cause_model(model)) if model else None
    examples = _examples(runs, first_seed, corpus)
    strengths, comparisons = learned(examples, shipped_strengths(), own)
    if out is not None:
        out.write_text(json_format.dumps(as_table(strengths), indent=1) + "\n", encoding="utf-8")
    if json:
        print_json({"examples": len(examples), "causes": [each.as_json() for each in comparisons]})
        return
    _print_comparisons(comparisons, with_own=own is not None)


def _print_comparisons(comparisons: Sequence[Comparison], with_own: bool) -> None:
    columns = ("cause", "runs", "examples", "right", "log loss now", "fitted", "calibration now", "fitted", "kept")
    own_columns = ("your log loss", "yours kept") if with_own else ()
    rows = [
        (
            each.cause or "all",
            str(each.runs),
            str(each.examples),
            f"{each.right:.2f}",
            f"{each.loss_in_use:.3f}",
            f"{each.loss_fitted:.3f}",
            f"{each.calibration_in_use:.3f}",
            f"{each.calibration_fitted:.3f}",
            "yes" if each.kept else "no",
            *((f"{each.loss_own:.3f}", "yes" if each.own_kept else "no") if with_own else ()),
        )
        for each in comparisons
    ]
    print_table((*columns, *own_columns), rows, right=columns[1:-1])


def _examples(runs: int, first_seed: int, corpus: Path | None) -> list[Example]:
    from homeostat.lab.bench.diagnosis import cases
    from homeostat.lab.evidence_learning.examples import recorded_examples, simulated_examples
    from homeostat.policies import registry

    policy = registry.build("provisioning")
    say(f"simulating {runs} runs; a run takes about two seconds")
    examples = [example for case in cases(runs, first_seed) for example in simulated_examples(case, policy)]
    return [*examples, *recorded_examples(corpus, policy)] if corpus is not None else examples
