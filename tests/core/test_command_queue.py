"""A command runs at most once, one at a time, in order, and always gets the same answer."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.command_queue import ANSWERS_KEPT, Answer, CommandQueue
from homeostat.core.configuration import EXECUTORS_KNOB, Configuration
from homeostat.core.events import Apply

MOST_EXECUTORS = 5


def command(command_id: str, executors: int = 1, time_limit_s: float = 60.0) -> Apply:
    return Apply(command_id, 0.0, Configuration({EXECUTORS_KNOB: executors}), (), time_limit_s)


def refusal(desired: Configuration) -> str:
    return "too many" if desired[EXECUTORS_KNOB] > MOST_EXECUTORS else ""


def test_commands_run_one_at_a_time_in_the_order_of_arrival() -> None:
    queue = CommandQueue(refusal)
    assert queue.idle
    assert queue.submit(command("a"), 0.0) is None
    assert queue.submit(command("b"), 0.0) is None
    first = queue.begin_next()
    assert first is not None
    assert first.id == "a"
    assert queue.running == first
    assert queue.begin_next() is None
    queue.answer("a", Answer(True))
    second = queue.begin_next()
    assert second is not None
    assert second.id == "b"
    assert not queue.idle
    queue.answer("b", Answer(True))
    assert queue.idle


def test_a_repeated_command_gets_its_first_answer_even_if_it_now_asks_for_something_else() -> None:
    queue = CommandQueue(refusal)
    queue.submit(command("a"), 0.0)
    queue.begin_next()
    assert queue.submit(command("a"), 1.0) is None
    assert queue.begin_next() is None
    done = Answer(True, "paused for 2 s", "no other host")
    queue.answer("a", done)
    assert queue.submit(command("a", executors=MOST_EXECUTORS + 1), 2.0) == done
    assert queue.begin_next() is None


def test_an_impossible_command_is_refused_at_once_and_stays_refused() -> None:
    queue = CommandQueue(refusal)
    assert queue.submit(command("a", executors=MOST_EXECUTORS + 1), 0.0) == Answer(False, "too many")
    assert queue.idle
    assert queue.submit(command("a"), 1.0) == Answer(False, "too many")


def test_the_time_limit_counts_from_the_arrival() -> None:
    queue = CommandQueue(refusal)
    queue.submit(command("runs", time_limit_s=1.0), 0.0)
    queue.begin_next()
    queue.submit(command("waits", time_limit_s=10.0), 5.0)
    queue.submit(command("patient", time_limit_s=100.0), 5.0)
    assert queue.overdue(15.0) == ()
    (late,) = queue.overdue(15.1)
    assert (late.id, late.deadline_s) == ("waits", 15.0)
    assert Answer.late(late.command, "other commands used up the time limit") == Answer(
        False, "not done within 10 s: other commands used up the time limit"
    )


def test_only_a_pending_command_can_be_answered() -> None:
    queue = CommandQueue(refusal)
    with pytest.raises(ValueError, match="'a' is not pending"):
        queue.answer("a", Answer(True))
    queue.submit(command("a"), 0.0)
    queue.answer("a", Answer(True))
    with pytest.raises(ValueError, match="'a' is not pending"):
        queue.answer("a", Answer(False))


def test_a_receipt_says_what_the_answer_says() -> None:
    configuration = Configuration({EXECUTORS_KNOB: 2})
    receipt = Answer(True, "detail", "warning").receipt("a", 3.0, configuration)
    assert (receipt.command_id, receipt.at_s, receipt.configuration) == ("a", 3.0, configuration)
    assert (receipt.applied, receipt.detail, receipt.warning) == (True, "detail", "warning")


operations = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.sampled_from("abcde"), st.integers(1, 7), st.floats(0.0, 20.0)),
        st.tuples(st.just("begin")),
        st.tuples(st.just("finish"), st.booleans()),
        st.tuples(st.just("expire"), st.floats(0.0, 10.0)),
    ),
    max_size=40,
)


@pytest.mark.slow
@given(operations)
def test_whatever_happens_each_command_begins_at_most_once_and_keeps_its_answer(
    operations: list[tuple[Any, ...]],
) -> None:
    queue = CommandQueue(refusal)
    now_s = 0.0
    arrivals: list[str] = []
    begun: list[str] = []
    answers: dict[str, Answer] = {}

    def close(command_id: str, answer: Answer) -> None:
        queue.answer(command_id, answer)
        assert command_id not in answers
        answers[command_id] = answer

    for operation, *arguments in operations:
        if operation == "submit":
            name, executors, limit_s = arguments
            pending = queue.is_pending(name)
            answer = queue.submit(command(name, executors, limit_s), now_s)
            if name in answers:
                assert answer == answers[name]
            elif pending:
                assert answer is None
            elif executors > MOST_EXECUTORS:
                assert answer == Answer(False, "too many")
                answers[name] = answer
            else:
                assert answer is None
                arrivals.append(name)
        elif operation == "begin":
            was_running = queue.running
            queued = queue.begin_next()
            if queued is not None:
                assert was_running is None
                begun.append(queued.id)
        elif operation == "finish" and queue.running is not None:
            close(queue.running.id, Answer(arguments[0], f"answer {len(answers)}"))
        elif operation == "expire":
            now_s += arguments[0]
            for queued in queue.overdue(now_s):
                assert queued.deadline_s < now_s
                close(queued.id, Answer.late(queued.command, "waited"))
            assert not queue.overdue(now_s)
    assert len(set(begun)) == len(begun)
    assert begun == [name for name in arrivals if name in begun]
    assert queue.idle == all(name in answers for name in arrivals)


def test_only_the_newest_answers_are_remembered() -> None:
    queue = CommandQueue(refusal)
    for number in range(3 * ANSWERS_KEPT):
        queue.submit(command(f"c-{number}", executors=MOST_EXECUTORS + number % 2), 0.0)
        if queue.begin_next() is not None:
            queue.answer(f"c-{number}", Answer(True))
    assert len(queue._answers) == ANSWERS_KEPT
    assert queue.submit(command(f"c-{3 * ANSWERS_KEPT - 1}"), 0.0) == Answer(False, "too many")
