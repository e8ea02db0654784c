"""What other programs use is a share of the machine."""

from __future__ import annotations

from homeostat.lab.corpus.host_use import HostUse


def test_the_share_of_others_is_a_share() -> None:
    use = HostUse()
    sum(range(10**6))
    assert 0.0 <= use.others() <= 1.0
