"""Controls access with tokens, sessions and a throttle, and records sign-ins and refused requests."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from homeostat.core.access_records import AccessContent
from homeostat.core.errors import StoreError
from homeostat.core.records import Record
from homeostat.log_views.audit import access_file
from homeostat.store.address import LogAddress
from homeostat.web.responses import RefusalError
from homeostat.web.security import Sessions, cookie
from homeostat.web.throttle import UNKNOWN, Allowance, SignInThrottle, whole_seconds
from homeostat.web.token_file import Person, Tokens, digest_of

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

# A flood of refused requests must not push sign-ins out of the bounded file: a burst is recorded, then one per minute.
REFUSALS_BURST, REFUSALS_PER_S = 60, 1 / 60
LONGEST_REQUEST = 200
SIGN_IN, SIGN_OUT, REFUSAL, TOKENS = "sign-in", "sign-out", "refusal", "tokens"
ANSWERS = {401: "a token is required", 403: "not permitted", 429: "too many failed attempts"}


class AccessTrail:
    """Records who signed in, who was refused, and when the tokens changed. It never makes a request fail."""

    def __init__(self, log: LogAddress, say: Callable[[str], None] = lambda line: None) -> None:
        self._file, self._say = access_file(log), say
        self._allowance = Allowance(REFUSALS_BURST, REFUSALS_PER_S, REFUSALS_BURST, time.monotonic())
        self._unrecorded = 0
        self._failing = False
        self._lock = threading.Lock()

    def signed_in(self, person: Person, client: str) -> None:
        self._write(AccessContent(SIGN_IN, person.name, person.role, client), f"{person.name} signs in from {client}")

    def signed_out(self, person: Person, client: str) -> None:
        self._write(AccessContent(SIGN_OUT, person.name, person.role, client), f"{person.name} signs out")

    def tokens_changed(self, line: str) -> None:
        self._write(AccessContent(TOKENS, answer=line), line)

    def refused(self, person: Person | None, client: str, request: str, status: int) -> None:
        with self._lock:
            self._allowance.refill(time.monotonic())
            if self._allowance.left < 1.0:
                self._unrecorded += 1
                return
            self._allowance.left -= 1.0
            unrecorded, self._unrecorded = self._unrecorded, 0
        name, role = (person.name, person.role) if person is not None else ("", "")
        requested, answer = request[:LONGEST_REQUEST], f"{status}, {ANSWERS.get(status, 'refused')}"
        content = AccessContent(REFUSAL, name, role, client, requested, answer, unrecorded)
        self._write(content, f"{name or 'somebody'} from {client} is refused: {requested}: {answer}")

    def _write(self, content: AccessContent, text: str) -> None:
        record = Record.of(f"access-{uuid.uuid4().hex[:12]}", time.time(), content, text)
        try:
            self._file.append(record)
            self._failing = False
        except StoreError as error:
            if not self._failing:
                self._say(error.line)
            self._failing = True


class Entrance:
    """Finds the person behind a request, and slows down clients that guess tokens."""

    def __init__(self, tokens: Tokens, trail: AccessTrail) -> None:
        self._tokens, self.trail = tokens, trail
        self._sessions, self._throttle = Sessions(), SignInThrottle()

    def person(self, request: HTTPConnection) -> Person | None:
        """Raises a RefusalError if this client has failed too often and the token is not one that was used before."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return self._holder(digest_of(token.strip()), client_of(request))
        digest = self._sessions.digest(_session_key(request))
        return self._tokens.holder(digest) if digest is not None else None

    def sign_in(self, request: HTTPConnection, token: str) -> tuple[str, Person] | None:
        """The key of a new session and its person; None if the token is not valid."""
        digest = digest_of(token)
        person = self._holder(digest, client_of(request))
        if person is None:
            return None
        self.trail.signed_in(person, client_of(request))
        return self._sessions.begin(digest), person

    def sign_out(self, request: HTTPConnection) -> None:
        key = _session_key(request)
        digest = self._sessions.digest(key)
        person = self._tokens.holder(digest) if digest is not None else None
        self._sessions.end(key)
        if person is not None:
            self.trail.signed_out(person, client_of(request))

    def _holder(self, digest: str, client: str) -> Person | None:
        wait_s = self._throttle.wait_s(client, digest)
        if wait_s > 0:
            fix = f"wait {whole_seconds(wait_s)} s, then use a valid token"
            raise RefusalError(429, "too many attempts with tokens that are not valid", fix, retry_s=wait_s)
        person = self._tokens.holder(digest)
        if person is None:
            self._throttle.revoked(digest)
            self._throttle.failed(client)
        else:
            self._throttle.succeeded(digest)
        return person


def client_of(request: HTTPConnection) -> str:
    """The address that the request came from; behind a trusted proxy, the one that the proxy names."""
    client = request.scope.get("client")
    return str(client[0])[:100] if client else UNKNOWN


def _session_key(request: HTTPConnection) -> str:
    return request.cookies.get(cookie(request.headers.get("host", "")), "")
