"""The `homeostat` command and its subcommands. Turns every error into one line and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from homeostat._version import __version__
from homeostat.cli import (
    audit,
    bench,
    check_settings,
    corpus,
    demo,
    doctor,
    fetch,
    forecast,
    learn,
    log,
    operator,
    plan,
    policies,
    report,
    serve,
    sim,
    state,
    status,
    token,
    watch,
    whatif,
)
from homeostat.cli import run as running_command
from homeostat.cli.output import say
from homeostat.core.errors import HomeostatError

EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
REPORT_TO = "the project's issue tracker"

app = typer.Typer(
    name="homeostat",
    help="Keep Spark Structured Streaming jobs within their objective. Homeostat tunes a job, stabilises it when the "
    "load changes, heals it when an executor degrades, and explains every decision.",
    epilog="Exit codes: 0 healthy, 1 error, 2 wrong usage or bad input, 3 unhealthy, 130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
START, INSPECT, OPERATE, PLAN, TOOLS = "Start", "Inspect", "Operate", "Plan ahead", "Tools"
app.command("demo", rich_help_panel=START)(demo.demo)
app.command("run", rich_help_panel=START)(running_command.run)
app.command("watch", rich_help_panel=START)(watch.watch)
app.command("status", rich_help_panel=INSPECT)(status.status)
app.add_typer(log.app, rich_help_panel=INSPECT)
app.command("explain", rich_help_panel=INSPECT)(log.explain)
app.command("audit", rich_help_panel=INSPECT)(audit.audit)
app.command("serve", rich_help_panel=INSPECT)(serve.serve)
app.command("report", rich_help_panel=INSPECT)(report.report)
app.command("pause", rich_help_panel=OPERATE)(operator.pause)
app.command("resume", rich_help_panel=OPERATE)(operator.resume)
app.command("approve", rich_help_panel=OPERATE)(operator.approve)
app.command("revert", rich_help_panel=OPERATE)(operator.revert)
app.add_typer(operator.app, rich_help_panel=OPERATE)
app.add_typer(state.app, rich_help_panel=OPERATE)
app.command("whatif", rich_help_panel=PLAN)(whatif.whatif)
app.command("plan", rich_help_panel=PLAN)(plan.plan)
app.command("forecast", rich_help_panel=PLAN)(forecast.forecast)
app.add_typer(sim.app, rich_help_panel=PLAN)
app.command("policies", rich_help_panel=TOOLS)(policies.policies)
app.add_typer(check_settings.app, rich_help_panel=TOOLS)
app.command("doctor", rich_help_panel=TOOLS)(doctor.doctor)
app.command("fetch", rich_help_panel=TOOLS)(fetch.fetch)
app.add_typer(token.app, rich_help_panel=TOOLS)
app.add_typer(bench.app, rich_help_panel=TOOLS)
app.add_typer(corpus.app, rich_help_panel=TOOLS)
app.command("learn", rich_help_panel=TOOLS)(learn.learn)


def _version(requested: bool) -> None:
    if requested:
        print(f"homeostat {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None: ...


def main() -> None:
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. Every error ends as one line on stderr."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        code = app(args=list(arguments), prog_name="homeostat", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except HomeostatError as error:
        say(f"homeostat: {error.line}")
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        say("homeostat: interrupted")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader (`| head`) closed the pipe. Without this, Python prints an error when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_ERROR
    except Exception as error:
        return _report_unexpected(error)


def _report_unexpected(error: Exception) -> int:
    # typer bundles its own copy of click and does not export its usage errors.
    if hasattr(error, "format_message"):
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "homeostat"
        message = error.format_message().strip().rstrip(".")
        if message:
            say(f"homeostat: {message[:1].lower()}{message[1:]} (see {command} --help)")
        return EXIT_USAGE
    if os.environ.get("HOMEOSTAT_DEBUG"):
        raise error
    if isinstance(error, OSError) and error.filename and error.strerror:
        say(f"homeostat: {error.filename}: {error.strerror[:1].lower()}{error.strerror[1:]}")
        return EXIT_ERROR
    say(
        f"homeostat: unexpected {type(error).__name__}: {error} "
        f"(please report this to {REPORT_TO}; set HOMEOSTAT_DEBUG=1 to print the traceback)"
    )
    return EXIT_ERROR


if __name__ == "__main__":
    main()
