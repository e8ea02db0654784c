"""Checks a launch before anything starts: the application file, its policies, its log."""

from __future__ import annotations

import sys
from contextlib import suppress

from homeostat import settings_file
from homeostat.core.errors import DamagedLogError, HomeostatError
from homeostat.runtime import pipeline_files
from homeostat.runtime.launch import Launch, require_master
from homeostat.runtime.query_manager import objective_of, policy_of
from homeostat.settings_file import Config
from homeostat.spark.pipeline import Pipeline
from homeostat.store.opening import open_store


def check(launch: Launch) -> tuple[Config, list[Pipeline]]:
    """The settings and the pipelines. A ConfigError for mistakes that the loop would find only later."""
    config = settings_file.load(launch.config, flags=launch.flags)
    pipelines = pipeline_files.load(launch.app)
    for pipeline in pipelines:
        policy_of(config, objective_of(config, pipeline.objective))
    if launch.master:
        require_master(launch.master)
    with suppress(DamagedLogError):  # the manager moves it aside and begins a new one
        open_store(config.store).close()
    return config, pipelines


def main() -> int:
    """Runs in its own process, so that no user code runs in the supervisor."""
    try:
        check(Launch.from_json(sys.argv[1]))
    except HomeostatError as error:
        print(f"homeostat: {error.line}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
