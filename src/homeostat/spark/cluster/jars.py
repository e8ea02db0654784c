"""Fetches jars by their coordinates into a cache of the user, each checked against a recorded SHA-256.

Apache Ivy, which comes with PySpark, does the download. It knows Maven Central; a file of Ivy settings names another
repository.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from homeostat.core.errors import ConfigError
from homeostat.spark.cluster.embedded import spark_home
from homeostat.spark.cluster.java import find_java

IVY_SETTINGS = "HOMEOSTAT_IVY_SETTINGS"
_HASH = "sha256:"
# Fifty small files over a slow line take minutes. A choice.
_LIMIT_S = 900.0
# A repository that does not answer at all must not hang the command. Choices.
_TIMEOUTS = ("-Dsun.net.client.defaultConnectTimeout=15000", "-Dsun.net.client.defaultReadTimeout=60000")
_REASONS = ("Server access", "UnknownHost", "Connection refused", "timed out", "not found", "UNRESOLVED", "PKIX")
_LONGEST_REASON = 200
# A choice: a repository that fails this often is down.
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Jar:
    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.group}-{self.artifact}-{self.version}.jar"

    @property
    def path(self) -> Path:
        return directory() / self.file_name


def read_list(text: str) -> tuple[Jar, ...]:
    """One jar in each line, as `group:artifact:version sha256:…`; lines that begin with # are comments."""
    jars = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            coordinates, digest = line.split()
            group, artifact, version = coordinates.split(":")
            jars.append(Jar(group, artifact, version, digest.removeprefix(_HASH)))
    return tuple(jars)


def directory() -> Path:
    """Where jars are kept, for all projects of this user."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "homeostat" / "jars"


def missing(jars: Iterable[Jar]) -> list[Jar]:
    return [jar for jar in jars if not jar.path.is_file()]


def fetch(jars: Iterable[Jar], say: Callable[[str], None]) -> list[Path]:
    """Download the jars that are not there yet. Returns the files of all of them."""
    required_jars = list(jars)
    if absent := missing(required_jars):
        say(f"fetching {len(absent)} jars into {directory()}")
        directory().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="fetch-", dir=directory()) as place:
            _retrieve(absent, Path(place))
    return [jar.path for jar in required_jars]


def _retrieve(jars: list[Jar], place: Path) -> None:
    """No file is kept unless all of them match their recorded checksums. Ivy caches what it has downloaded for the next
    attempt.
    """
    for _ in range(_ATTEMPTS):
        output = _run_ivy(jars, place)
        absent = [jar for jar in jars if not (place / jar.file_name).is_file()]
        if not absent:
            break
    else:
        reason = _reason(output)
        jar = next((jar for jar in absent if f"{jar.group}#{jar.artifact};" in reason), absent[0])
        raise ConfigError(
            f"cannot download {jar.group}:{jar.artifact}:{jar.version}: {reason}",
            fix=f"check the network; for a repository of your own set {IVY_SETTINGS} to a file of Ivy settings",
        )
    for jar in jars:
        if hashlib.sha256((place / jar.file_name).read_bytes()).hexdigest() != jar.sha256:
            raise ConfigError(
                f"{jar.group}:{jar.artifact}:{jar.version} is not the file that Homeostat was tested with: "
                "its SHA-256 differs",
                fix="check the repository that it came from",
            )
    for jar in jars:
        (place / jar.file_name).replace(jar.path)


def _run_ivy(jars: list[Jar], place: Path) -> str:
    wishes = place / "ivy.xml"
    wishes.write_text(_as_ivy(jars))
    ivy = next(iter((spark_home() / "jars").glob("ivy-*.jar")), None)
    if ivy is None:
        raise ConfigError("this Spark lacks Apache Ivy", where=str(spark_home() / "jars"), fix="reinstall PySpark")
    command = [str(find_java().command), *_TIMEOUTS, "-cp", str(ivy), "org.apache.ivy.Main"]
    if settings := os.environ.get(IVY_SETTINGS):
        if not Path(settings).is_file():
            raise ConfigError("no such file", where=f"{IVY_SETTINGS}={settings}", fix="name a file of Ivy settings")
        command += ["-settings", settings]
    pattern = str(place / "[organisation]-[artifact]-[revision].[ext]")
    options = ["-ivy", str(wishes), "-cache", str(place / "cache"), "-types", "jar", "bundle", "-retrieve", pattern]
    try:
        result = subprocess.run(
            [*command, *options],
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_LIMIT_S:.0f} s"
    return result.stdout + result.stderr


def _as_ivy(jars: Iterable[Jar]) -> str:
    """The list for Ivy: exactly these jars, even two versions of one, without dependencies, because the list is
    complete."""
    lines = (
        f"<dependency org={quoteattr(jar.group)} name={quoteattr(jar.artifact)} rev={quoteattr(jar.version)} "
        'transitive="false"/>'
        for jar in jars
    )
    head = '<ivy-module version="2.0"><info organisation="homeostat" module="jars"/><dependencies>'
    every_version = '<conflict org="*" module="*" manager="all"/>'
    return f"{head}{''.join(lines)}{every_version}</dependencies></ivy-module>"


def _reason(output: str) -> str:
    lines = (line.strip(" :\t") for line in output.splitlines())
    line = next((line for line in lines if any(sign in line for sign in _REASONS)), "the download failed")
    return line[:_LONGEST_REASON]
