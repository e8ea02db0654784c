"""One manager for one application, however the one before it ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from homeostat.runtime.lease import Claim, Lease, LeaseTakenError

HOLDER = """
import sys, time
from pathlib import Path
from homeostat.runtime.lease import Lease
Lease(Path(sys.argv[1])).take()
print("taken", flush=True)
time.sleep(600)
"""


def test_a_second_manager_is_told_who_holds_it(tmp_path: Path) -> None:
    with Lease(tmp_path / "lease"), pytest.raises(LeaseTakenError) as refused:
        Lease(tmp_path / "lease").take()
    assert refused.value.line == (
        f"{tmp_path}: another manager already controls this application (process {os.getpid()}) "
        "(stop it first, or choose another directory)"
    )
    assert refused.value.exit_code == 1


def test_it_is_free_again_after_its_release_which_may_be_repeated(tmp_path: Path) -> None:
    first = Lease(tmp_path / "below" / "lease")
    first.take()
    first.release()
    first.release()
    with Lease(tmp_path / "below" / "lease"):
        pass


def test_it_is_free_again_when_its_holder_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "lease"
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(LeaseTakenError, match=f"process {holder.pid}"):
            Lease(path).take()
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
    with Lease(path):
        pass


def test_a_garbled_lease_is_taken_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "lease").write_text("not what we wrote")
    with Lease(tmp_path / "lease"):
        assert str(os.getpid()) in (tmp_path / "lease").read_text()


def test_an_application_has_one_manager_whatever_the_directory() -> None:
    first, second = Claim("app-1"), Claim("app-1")
    with first, Claim("app-2"):
        with pytest.raises(LeaseTakenError, match="another manager already controls this application"):
            second.take()
        second.release()
        with pytest.raises(LeaseTakenError):
            second.take()
    with second:
        pass
