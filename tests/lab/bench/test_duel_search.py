"""The search for settings: the defaults first, the same number of draws for every policy."""

from __future__ import annotations

from homeostat.lab.bench.duel_search import SPACES, Contender, draws, loss
from homeostat.policies.peers import PEER_SETTINGS


def test_every_policy_gets_the_same_draws_and_starts_with_its_defaults() -> None:
    for policy in SPACES:
        contenders = draws(policy, 6)
        assert len(contenders) == 6
        assert contenders == draws(policy, 6)
        assert contenders[0] == Contender(policy)
        assert len({repr(each.settings) for each in contenders}) == 6


def test_whatever_is_drawn_is_a_valid_setting() -> None:
    for policy in SPACES:
        for contender in draws(policy, 30):
            assert contender.build(1_000.0).name == policy
            if policy in PEER_SETTINGS:
                PEER_SETTINGS[policy](**contender.settings)


def test_a_policy_without_settings_is_only_tried_as_it_is() -> None:
    assert draws("largest", 6) == [Contender("largest")]


def test_a_hundredth_of_the_time_in_violation_costs_a_fifth_of_the_oracle() -> None:
    run = {"cost_over_oracle": 1.1, "violation_s": 36.0, "duration_s": 3600.0}
    assert round(loss(run), 6) == 1.3
