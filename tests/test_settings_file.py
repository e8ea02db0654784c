"""homeostat.toml: which value counts, where it comes from, and how a wrong one is refused."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

import pytest

from homeostat import settings_file
from homeostat.cli.find_application import DEFAULT_STORE
from homeostat.core.errors import ConfigError
from homeostat.core.objective import Objective
from homeostat.policies import registry
from homeostat.settings import Settings, read
from homeostat.store.address import PostgresAddress

ENTRIES = {entry.key: entry for entry in settings_file.entries()}
SAMPLES = {
    "policy": '"throughput"',
    "mode": '"earn"',
    "store": '"other.sqlite"',
    "application": '"clicks"',
    "objective.throughput": '"5 k/s"',
    "objective.lag": '"30 s"',
    "objective.catch_up": '"10 min"',
    "objective.latency": '"2 s"',
    "objective.cost_limit": "12.5",
    "objective.model_error": '"150 %"',
    "log.detail": '"1 d"',
    "log.minutes": '"20 d"',
    "log.hours": '"200 d"',
    "log.findings": '"30 d"',
    "log.decisions": '"300 d"',
    "log.largest": '"1 GB"',
    "files.event_logs": '"100 MB"',
    "files.driver_log": '"10 MB"',
    "kafka.publish_group": '"homeostat-{query}"',
    "guards.largest_change": "3",
    "guards.largest_shrink": "1.5",
    "guards.most_replaced": '"25 %"',
    "guards.cooldown": '"90 s"',
    "guards.cooldown_shrink": '"11 min"',
    "guards.confirm": '"1 h"',
    "loop.cadence": '"15 s"',
    "loop.settle": '"2 min"',
    "loop.window": '"20 min"',
    "loop.act_above": '"75 %"',
    "loop.patience": '"0 s"',
    "loop.catch_up": '"1 d"',
    "planning.confidence": '"95 %"',
    "planning.horizon": '"1 h"',
    "planning.largest_error": "0.3",
    "planning.ahead": "false",
    "planning.violation_cost": "20",
    "planning.gives_way": '"cost"',
    "sensitivity.slack": "0.75",
    "sensitivity.shrink_slack": "0.9",
    "sensitivity.alarm": "7.5",
    "sensitivity.shrink_alarm": "20",
    "sensitivity.floor": "0.1",
    "sensitivity.outlier": "5.5",
    "sensitivity.ratio": "2",
    "paper.cadence": '"30 s"',
    "paper.settle": '"4 min"',
    "paper.window": '"150 s"',
    "paper.fence": "false",
    "paper.noise_filter": "0.04",
    "paper.rate_skew": "1.25",
    "paper.queue_skew": "10",
    "paper.shrink_factor": "0.5",
    "paper.idle_pending": '"500 ms"',
    "paper.blacklist_ratio": '"40 %"',
    "space.least_free": '"5 GB"',
    "space.full_within": '"2 d"',
    "space.most_savepoints": "7",
    "space.savepoints": '"9 GB"',
    "plugins.detectors": '["mine.parts:Hot", "mine.parts:Cold"]',
    "plugins.diagnosers": '["mine.parts:Why"]',
    "plugins.resolvers": '["mine.parts:Do"]',
    "plugins.forecasters": '["statsforecast", "mine.parts:Seer"]',
    "plugins.proposers": '["mine.parts:Scheduler"]',
    "plugins.strengths": '"table.json"',
}


def written(keys: dict[str, str]) -> str:
    """A file with these keys, in the order of the documentation."""
    lines: list[str] = []
    section = ""
    for entry in ENTRIES.values():
        if entry.key in keys:
            if len(entry.path) == 2 and entry.path[0] != section:
                section = entry.path[0]
                lines.append(f"[{section}]")
            lines.append(f"{entry.path[-1]} = {keys[entry.key]}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_anything_it_is_the_default_policy_that_only_advises(folder: Path) -> None:
    loaded = settings_file.load(environ={})
    assert (loaded.policy, loaded.mode, loaded.store) == (registry.DEFAULT, "advise", DEFAULT_STORE)
    assert loaded.objective == Objective()
    assert loaded.settings == Settings()
    assert loaded.sections == {}
    assert {value.origin for value in loaded.values.values()} == {"default"}


def test_there_is_a_sample_of_every_setting() -> None:
    assert list(SAMPLES) == list(ENTRIES)
    assert len({entry.variable for entry in ENTRIES.values()}) == len(ENTRIES)


def test_every_setting_can_stand_in_the_file(folder: Path) -> None:
    (folder / "homeostat.toml").write_text(written(SAMPLES))
    loaded = settings_file.load(environ={})
    assert loaded.objective == Objective(5000.0, 30.0, 2.0, 12.5, math.log1p(1.5), 600.0)
    assert (loaded.policy, loaded.mode, loaded.store) == ("throughput", "earn", Path("other.sqlite"))
    assert (loaded.settings.guards.cooldown_shrink, loaded.settings.loop.act_above) == (660.0, 0.75)
    assert loaded.settings.plugins.detectors == ["mine.parts:Hot", "mine.parts:Cold"]
    tables = {name: table for name, table in tomllib.loads(written(SAMPLES)).items() if name in Settings.model_fields}
    assert loaded.settings == read(tables)
    assert loaded.sections == tables
    assert "default" not in {value.origin for value in loaded.values.values()}


def test_every_setting_can_stand_in_the_environment(folder: Path) -> None:
    in_file = settings_file.load(_file(folder / "all.toml", written(SAMPLES)), {})
    variables = {ENTRIES[key].variable: sample.strip('"') for key, sample in SAMPLES.items()}
    in_environment = settings_file.load(None, variables)
    assert in_environment.settings == in_file.settings
    assert in_environment.objective == in_file.objective
    assert (in_environment.log, in_environment.files) == (in_file.log, in_file.files)
    assert (in_environment.policy, in_environment.mode) == (in_file.policy, in_file.mode)
    assert {value.origin for value in in_environment.values.values()} == set(variables)


@pytest.mark.parametrize("key", ENTRIES)
def test_a_flag_beats_the_environment_which_beats_the_file(key: str, folder: Path) -> None:
    entry, sample = ENTRIES[key], tomllib.loads(f"value = {SAMPLES[key]}")["value"]
    below = {"objective.throughput": '"9 k/s"', "paper.settle": '"1 h"', "guards.cooldown_shrink": '"1 h"'}
    text = written(below | {key: SAMPLES[key]})
    _file(folder / "homeostat.toml", text)
    place = f"homeostat.toml:{next(n for n, line in _keys(text) if line == entry.path)}"
    assert settings_file.load(environ={}).values[key] == settings_file.Value(sample, place)
    variables = {entry.variable: SAMPLES[key].strip('"')}
    assert settings_file.load(environ=variables).values[key] == settings_file.Value(sample, entry.variable)
    flags = {entry.path[0]: {entry.path[1]: sample} if len(entry.path) == 2 else sample}
    flag = f"--set {key}" if len(entry.path) == 2 else f"--{key}"
    assert settings_file.load(None, {entry.variable: "0"}, flags).values[key] == settings_file.Value(sample, flag)


def test_flags_that_were_not_given_and_empty_variables_leave_the_file_alone(folder: Path) -> None:
    _file(folder / "homeostat.toml", 'policy = "ds2"\n')
    loaded = settings_file.load(None, {"HOMEOSTAT_POLICY": " ", "HOMEOSTAT_GUARDS_COOLDOWN": ""}, {"policy": None})
    assert loaded.policy == "ds2"
    assert loaded.settings == Settings()


def test_the_policy_is_built_with_what_was_set(folder: Path) -> None:
    _file(folder / "homeostat.toml", '[loop]\nsettle = "2 min"\n')
    loaded = settings_file.load(environ={"HOMEOSTAT_LOOP_WINDOW": "20 min", "HOMEOSTAT_PAPER_FENCE": "false"})
    built = registry.build(loaded.policy, loaded.sections)
    assert (built.settle_s, built.window_s) == (120.0, 1200.0)
    assert loaded.sections == {"loop": {"settle": "2 min", "window": "20 min"}, "paper": {"fence": False}}


def test_show_tells_each_value_as_one_would_write_it_and_its_origin(folder: Path) -> None:
    _file(folder / "homeostat.toml", '[guards]\ncooldown = "90 s"\n')
    rows = settings_file.show(None, {"HOMEOSTAT_MODE": "observe"}, {"loop": {"act_above": "70 %"}})
    assert [key for key, _, _ in rows] == list(ENTRIES)
    assert {row for row in rows if row[2] != "default"} == {
        ("mode", "observe", "HOMEOSTAT_MODE"),
        ("guards.cooldown", "90 s", "homeostat.toml:2"),
        ("loop.act_above", "70 %", "--set loop.act_above"),
    }
    assert ("guards.confirm", "5 min", "default") in rows
    assert ("objective.throughput", None, "default") in rows


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('polcy = "ds2"', "homeostat.toml:1: unknown key 'polcy' (did you mean 'policy'?)"),
        ("\n[gaurds]", "homeostat.toml:2: unknown key 'gaurds' (did you mean 'guards'?)"),
        ("[guards]\ncoldown = 3", "homeostat.toml:2: unknown key 'coldown' (did you mean 'cooldown'?)"),
        ("[guards]\ncooldown = 3", "homeostat.toml:2: 'cooldown' needs a unit, such as '180 s'"),
        ('policy = "ds3"', "homeostat.toml:1: unknown policy 'ds3' (did you mean 'ds2'?)"),
        ('policy = "mine:"', "homeostat.toml:1: 'mine:' is not a dotted path (write package.module:name)"),
        ("policy = 3", "homeostat.toml:1: 'policy' must be text in quotes, not 3"),
        ('store = ""', "homeostat.toml:1: 'store' must not be empty"),
        (
            'mode = "regulat"',
            "homeostat.toml:1: 'mode' must be one of observe, advise, earn, regulate, not 'regulat' "
            "(did you mean 'regulate'?)",
        ),
        (
            '[objective]\nthroughput = "5 min"',
            "homeostat.toml:2: 'throughput' must be a rate per s, min, h or d, such as '50 k/s' or '1M rows/min', "
            "not '5 min'",
        ),
        ('[objective]\nlag = "0 s"', "homeostat.toml:2: 'lag' must be above 0, not 0"),
        ('[objective]\nmodel_error = "0 %"', "homeostat.toml:2: 'model_error' must be above 0, not 0"),
        (
            "[objective]\nmodel_error = 30",
            "homeostat.toml:2: 'model_error' must be a share from 0 to 1 ('0 %' to '100 %'), not 30",
        ),
        ("[objective]\ncost_limit = nan", "homeostat.toml:2: 'cost_limit' must be a finite number, not nan"),
        ("guards = 3", "homeostat.toml:1: 'guards' must be a table, not 3"),
        ("[[guards]]", "homeostat.toml:1: 'guards' must be a table, not a list (start it with [guards], once)"),
        (
            'policy = "throughput.paper"\n[objective]\nlag = "3 s"',
            "homeostat.toml:1: policy 'throughput.paper' needs a throughput objective "
            '(set throughput in [objective], such as "50 k/s")',
        ),
        (
            'policy = "ds2"\n[objective]\ncost_limit = 9',
            "homeostat.toml:3: policy 'ds2' ignores 'cost_limit' (remove the limit, or choose another policy)",
        ),
        (
            '[guards]\ncooldown = "10 min"',
            "homeostat.toml:1: 'cooldown_shrink' must not be shorter than 'cooldown' "
            "(raise cooldown_shrink, or lower cooldown)",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_line_reason_and_remedy(text: str, line: str, folder: Path) -> None:
    path = _file(folder / "homeostat.toml", text)
    with pytest.raises(ConfigError) as refused:
        settings_file.load(environ={})
    assert refused.value.line == line
    with pytest.raises(ConfigError) as refused:
        settings_file.check(path.name)
    assert refused.value.line == line


def test_all_mistakes_of_a_file_are_reported_at_once(folder: Path) -> None:
    path = _file(folder / "a.toml", 'mode = "x"\n[loop]\nsettle = 3\n[paper]\nfense = true\n')
    with pytest.raises(ConfigError) as refused:
        settings_file.load(path, {"HOMEOSTAT_LOOP_WINDOW": "3"})
    assert [line.split(": ")[0] for line in refused.value.line.splitlines()] == [f"{path}:{n}" for n in (1, 3, 5)]


@pytest.mark.parametrize(
    ("variables", "line"),
    [
        (
            {"HOMEOSTAT_GUARD_COOLDOWN": "2 min"},
            "HOMEOSTAT_GUARD_COOLDOWN: unknown setting (did you mean HOMEOSTAT_GUARDS_COOLDOWN?)",
        ),
        (
            {"HOMEOSTAT_POLICIES": "ds2"},
            "HOMEOSTAT_POLICIES: unknown setting (did you mean HOMEOSTAT_POLICY?)",
        ),
        (
            {"HOMEOSTAT_XYZ": "1"},
            "HOMEOSTAT_XYZ: unknown setting (list the settings with `homeostat config show`)",
        ),
        ({"HOMEOSTAT_GUARDS_COOLDOWN": "2"}, "HOMEOSTAT_GUARDS_COOLDOWN: 'cooldown' needs a unit, such as '180 s'"),
        ({"HOMEOSTAT_PAPER_FENCE": "yes"}, "HOMEOSTAT_PAPER_FENCE: 'fence' must be true or false, not 'yes'"),
        (
            {"HOMEOSTAT_GUARDS_LARGEST_CHANGE": "1\nx = 2"},
            "HOMEOSTAT_GUARDS_LARGEST_CHANGE: 'largest_change' must be a number, not '1\\nx = 2'",
        ),
        (
            {"HOMEOSTAT_SENSITIVITY_ALARM": "inf"},
            "HOMEOSTAT_SENSITIVITY_ALARM: 'alarm' must be a finite number, not inf",
        ),
        (
            {"HOMEOSTAT_PLUGINS_DETECTORS": "mine:A, mine"},
            "HOMEOSTAT_PLUGINS_DETECTORS: 'detectors': 'mine' is not a dotted path; write package.module:name",
        ),
        ({"HOMEOSTAT_POLICY": "ds3"}, "HOMEOSTAT_POLICY: unknown policy 'ds3' (did you mean 'ds2'?)"),
        (
            {"HOMEOSTAT_POLICY": "throughput", "HOMEOSTAT_OBJECTIVE_LAG": "30 s"},
            "HOMEOSTAT_POLICY: policy 'throughput' needs a throughput objective "
            '(set throughput in [objective], such as "50 k/s")',
        ),
        (
            {"HOMEOSTAT_GUARDS_COOLDOWN": "10 min"},
            "HOMEOSTAT_GUARDS_COOLDOWN: 'cooldown_shrink' must not be shorter than 'cooldown' "
            "(raise cooldown_shrink, or lower cooldown)",
        ),
    ],
)
def test_a_wrong_variable_is_refused_by_its_name(variables: dict[str, str], line: str, folder: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        settings_file.load(environ=variables)
    assert refused.value.line == line


def test_variables_of_others_are_left_alone(folder: Path) -> None:
    others = {
        "PATH": "/bin",
        "HOMEOSTAT_DEBUG": "1",
        "HOMEOSTAT_SERVICE_HOST": "10.0.0.1",
        "HOMEOSTAT_SERVICE_PORT_HTTP": "80",
        "HOMEOSTAT_UI_PORT": "tcp://10.0.0.1:80",
        "HOMEOSTAT_PORT_80_TCP_ADDR": "10.0.0.1",
    }
    assert settings_file.load(environ=others) == settings_file.load(environ={})


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ({"policy": "ds3"}, "--policy: unknown policy 'ds3' (did you mean 'ds2'?)"),
        ({"guards": {"cooldwn": "1 s"}}, "--set guards.cooldwn: unknown key 'cooldwn' (did you mean 'cooldown'?)"),
        ({"guard": {"cooldown": "1 s"}}, "--set guard.cooldown: unknown key 'guard' (did you mean 'guards'?)"),
        ({"loop": {"settle": 3}}, "--set loop.settle: 'settle' needs a unit, such as '180 s'"),
    ],
)
def test_a_wrong_flag_is_refused_by_its_name(flags: dict[str, object], line: str, folder: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        settings_file.load(None, {}, flags)
    assert refused.value.line == line


def test_a_contradiction_of_several_sources_names_them_all(folder: Path) -> None:
    _file(folder / "homeostat.toml", '\n[guards]\nconfirm = "1 h"\n')
    with pytest.raises(ConfigError) as refused:
        settings_file.load(environ={"HOMEOSTAT_GUARDS_COOLDOWN": "10 min"})
    assert refused.value.where == "homeostat.toml:2 and HOMEOSTAT_GUARDS_COOLDOWN"


def test_what_the_file_lacks_may_come_from_the_environment(folder: Path) -> None:
    path = _file(folder / "homeostat.toml", 'policy = "throughput"\n[objective]\ncost_limit = 9\n')
    assert (
        settings_file.load(environ={"HOMEOSTAT_OBJECTIVE_THROUGHPUT": "60 k/min"}).objective.throughput_per_s == 1000.0
    )
    with pytest.raises(ConfigError, match="needs a throughput objective"):
        settings_file.check(path)


def test_a_file_may_leave_the_objective_to_the_application(folder: Path) -> None:
    assert settings_file.check(_file(folder / "homeostat.toml", 'policy = "throughput"\n')).policy == "throughput"


@pytest.mark.parametrize("policy", ["provisioning", "provisioning.paper", "throughput", "throughput.paper", "alert"])
def test_our_policies_take_a_cost_limit(policy: str, folder: Path) -> None:
    text = f'policy = "{policy}"\n[objective]\ncost_limit = 20\nthroughput = "1 k/s"\n'
    assert settings_file.check(_file(folder / "homeostat.toml", text)).objective.cost_limit == 20


def test_a_file_that_is_named_must_be_there(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml: no such file"):
        settings_file.load("none.toml", {})
    (folder / "homeostat.toml").mkdir()
    with pytest.raises(ConfigError, match=r"homeostat\.toml: is a directory"):
        settings_file.load(environ={})


def _keys(text: str) -> list[tuple[int, tuple[str, ...]]]:
    """Line and path of every key of a file that `written` has made."""
    keys: list[tuple[int, tuple[str, ...]]] = []
    section: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("["):
            section = (line.strip("[]"),)
        else:
            keys.append((number, (*section, line.split(" = ")[0])))
    return keys


def _file(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_the_password_of_the_log_is_used_and_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "homeostat.toml"
    file.write_text('store = "postgresql://anna:s3cret@db/logs"\napplication = "clicks"\n')
    config = settings_file.load(file, environ={"HOMEOSTAT_STORE_PASSWORD": "another"})
    assert config.store == PostgresAddress("postgresql://anna@db/logs", "s3cret")
    assert config.application == "clicks"
    assert "s3cret" not in repr(config)
    assert ("store", "postgresql://anna@db/logs", f"{file}:1") in settings_file.show(file, {}, {})


@pytest.mark.parametrize("name", ["a/b", "with space", "-leading", "x" * 101])
def test_the_name_of_an_application_can_be_part_of_the_name_of_a_run(name: str) -> None:
    with pytest.raises(ConfigError, match="is not a name"):
        settings_file.load(None, environ={"HOMEOSTAT_APPLICATION": name})
