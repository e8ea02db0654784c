"""How often tokens can be guessed."""

from __future__ import annotations

from homeostat.web.throttle import CLIENT_BURST, CLIENT_PER_S, MOST_CLIENTS, OVERALL_BURST, SignInThrottle


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def exhausted(throttle: SignInThrottle, client: str) -> None:
    for _ in range(CLIENT_BURST):
        assert throttle.wait_s(client, "guess") == 0.0
        throttle.failed(client)


def test_a_client_that_failed_too_often_waits_and_others_do_not() -> None:
    clock = Clock()
    throttle = SignInThrottle(clock)
    exhausted(throttle, "10.0.0.1")
    assert throttle.wait_s("10.0.0.1", "guess") == 1 / CLIENT_PER_S
    assert throttle.wait_s("10.0.0.2", "guess") == 0.0
    clock.now_s += 1 / CLIENT_PER_S
    assert throttle.wait_s("10.0.0.1", "guess") == 0.0


def test_the_addresses_of_one_network_are_one_client() -> None:
    throttle = SignInThrottle(Clock())
    exhausted(throttle, "2001:db8::1")
    assert throttle.wait_s("2001:db8::2", "guess") > 0
    exhausted(throttle, "::ffff:10.0.0.1")
    assert throttle.wait_s("10.0.0.1", "guess") > 0


def test_many_clients_together_wait_as_well() -> None:
    throttle = SignInThrottle(Clock())
    for number in range(OVERALL_BURST):
        throttle.failed(f"10.0.{number // 250}.{number % 250}")
    assert throttle.wait_s("192.0.2.1", "guess") > 0


def test_a_token_that_was_valid_before_never_waits_until_it_is_revoked() -> None:
    throttle = SignInThrottle(Clock())
    throttle.succeeded("valid")
    exhausted(throttle, "10.0.0.1")
    assert throttle.wait_s("10.0.0.1", "valid") == 0.0
    throttle.revoked("valid")
    assert throttle.wait_s("10.0.0.1", "valid") > 0


def test_the_number_of_clients_that_are_remembered_is_bounded() -> None:
    throttle = SignInThrottle(Clock())
    for number in range(MOST_CLIENTS + 10):
        throttle.failed(f"client-{number}")
    assert len(throttle._clients) == MOST_CLIENTS


def test_the_number_of_tokens_that_are_remembered_is_bounded() -> None:
    throttle = SignInThrottle(Clock())
    for number in range(MOST_CLIENTS + 10):
        throttle.succeeded(f"token-{number}")
    assert len(throttle._proven) == MOST_CLIENTS
    exhausted(throttle, "10.0.0.1")
    assert throttle.wait_s("10.0.0.1", f"token-{MOST_CLIENTS + 9}") == 0.0
