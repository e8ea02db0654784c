"""Writes rows into a topic: the lines of the standard input, or numbered lines at a steady rate."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator

from homeostat.core.errors import HomeostatError
from homeostat.lab.kafka.topics import Topics

_STEP_S = 0.1


def numbered(rate: float, seconds: float) -> Iterator[str]:
    """Numbered rows, `rate` of them in each second."""
    begun_s = time.monotonic()
    for number in itertools.count():
        due_s = number / rate
        if due_s >= seconds:
            return
        while (ahead_s := due_s - (time.monotonic() - begun_s)) > 0:
            time.sleep(min(ahead_s, _STEP_S))
        yield f"row {number}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="homeostat.lab.kafka.produce", description=__doc__)
    parser.add_argument("servers", help="host:port of the broker")
    parser.add_argument("topic")
    rate_help = "rows per second; without it, the lines of standard input are written"
    parser.add_argument("--rate", type=float, help=rate_help)
    time_help = "seconds to run with --rate; default: until interrupted"
    parser.add_argument("--for", dest="seconds", type=float, default=float("inf"), help=time_help)
    options = parser.parse_args(arguments)
    rows = numbered(options.rate, options.seconds) if options.rate else (line.rstrip("\n") for line in sys.stdin)
    try:
        count = Topics(options.servers).write(options.topic, rows)
    except HomeostatError as error:
        print(f"homeostat: {error.line}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    print(f"{count:,} rows written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
