"""From proposals to commands: observe, advise, earn, regulate, and what is logged of refusals and alerts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pytest

from homeostat.core.actions import ALERT
from homeostat.core.causes import RISE_AHEAD
from homeostat.core.events import Notify
from homeostat.core.evidence import LoadRise
from homeostat.core.findings import Diagnosis, Proposal, Symptom
from homeostat.core.loop_state import Mode
from homeostat.core.policy_definition import Policy
from homeostat.core.view import View
from homeostat.testing import observations, play
from support.growing_loop import ENGINE, OBSERVED, SPLIT, TASKS, Grow, Says, Trouble, policy, run


def test_observe_only_sees_and_tells_a_person_once() -> None:
    played = run("observe")
    assert played.actions == ()
    assert played.texts("diagnosis") == ["split has the problem 'cause' (cause, probability 0.90)"]
    assert played.texts("alert") == [
        "cause at split. Homeostat only observes; otherwise it would grow: parallelism.split = 3"
    ]
    assert played.texts("rejection") == ["Waiting: mode: only observing"]
    assert len(played.texts("proposal")) == 1, "not one for each measurement"


def test_advise_says_what_it_would_do_and_scores_it_by_what_then_happened() -> None:
    played = run("advise", OBSERVED[:12], trouble=Trouble(until_s=1000.0))
    assert played.commands == ()
    assert played.texts("advice") == ["Homeostat would grow: parallelism.split = 3"] * 2
    assert played.texts("outcome") == ["v-1 was right: the problem stayed"]
    assert len(played.texts("proposal")) == 2
    played = run("advise", OBSERVED[:12], trouble=Trouble(until_s=35.0))
    assert played.texts("outcome") == ["v-1 was not needed: the problem went away"]


def test_earn_acts_once_its_advice_has_proved_right_three_times() -> None:
    played = run("earn")
    assert played.actions[0].at_s == 190.0, "after three times a minute"
    assert played.texts("outcome")[:3] == [f"v-{n} was right: the problem stayed" for n in (1, 2, 3)]
    doubtful = run("earn", trouble=Trouble(pauses_s=((60.0, 90.0), (180.0, 220.0), (300.0, 350.0), (430.0, 480.0))))
    assert doubtful.actions == (), "what goes away by itself earns nothing"


@dataclass(frozen=True)
class Foretold:
    """The same forecast again and again: within the minute more than 20 rows/s will come."""

    name: str = "foretold"

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterable[Diagnosis]:
        yield Diagnosis(RISE_AHEAD, "split", 0.9, LoadRise(15.0, 30.0, ahead_s=40.0, limit_per_s=20.0, over_limit=1.5))


@pytest.mark.parametrize(
    ("then_per_s", "verdict"), [(25.0, "right: the load has come"), (10.0, "not needed: the load has not come")]
)
def test_advice_about_a_rise_is_scored_by_the_load_that_came_and_not_by_the_forecast(
    then_per_s: float, verdict: str
) -> None:
    arrivals = [10.0 if number < 12 else then_per_s for number in range(150)]
    observed = observations(150, TASKS, arrival_per_s=arrivals)
    foretold = Policy("test", (), (Foretold(),), (Grow(),), judge=Says("helped"), settle_s=60.0)
    played = play(foretold, ENGINE, observed, mode="earn")
    first = next(record for record in played.records if record.kind == "outcome")
    assert first.text == f"v-1 was {verdict}"
    assert first.at_s == 290.0, "40 s ahead, three minutes in which it may come, and one until that is known"
    assert bool(played.actions) == (then_per_s > 20.0)


def test_regulate_acts() -> None:
    played = run("regulate", OBSERVED[:3])
    assert [dict(action.desired.values)[SPLIT] for action in played.actions] == [3]
    assert played.texts("action") == ["grow: parallelism.split = 3"]
    assert played.texts("receipt") == ["a-1 took effect"]


class Warn:
    name = "warn"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterable[Proposal]:
        return [Proposal(ALERT, (d,), component=d.component, message="look here") for d in diagnoses]


@pytest.mark.parametrize("mode", ["observe", "advise", "regulate"])
def test_a_person_is_alerted_once_and_again_only_after_the_trouble_was_over(mode: Mode) -> None:
    warning = replace(policy(Trouble(pauses_s=((100.0, 120.0),))), resolvers=(Warn(),))
    played = play(warning, ENGINE, OBSERVED, mode=mode)
    alerts = [command for command in played.commands if isinstance(command, Notify)]
    assert [(notify.at_s, notify.message) for notify in alerts] == [(10.0, "look here"), (120.0, "look here")]


def test_a_refusal_is_logged_once_for_each_kind_of_reason() -> None:
    played = run("regulate", most=9)
    assert len(played.actions) == 7
    reasons = [text.split(":")[1] for text in played.texts("rejection")]
    assert reasons == [" one action in flight", " cool-down"] * 6 + reasons[12:]
    assert len(reasons) <= 14, "60 measurements, and two reasons for waiting after each action"
    assert len(played.texts("proposal")) <= len(reasons) + len(played.actions)


def test_an_unsure_proposal_is_not_written_down_anew_whenever_its_probability_changes() -> None:
    class Wavering:
        name = "wavering"

        def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterable[Diagnosis]:
            return [Diagnosis("cause", "split", 0.3 + view.now_s / 10_000.0)]

    played = play(replace(policy(), diagnosers=(Wavering(),)), ENGINE, OBSERVED[:20])
    assert len(played.texts("rejection")) == 1
