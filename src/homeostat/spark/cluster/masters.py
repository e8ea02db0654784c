"""Whether a standalone master answers at an address. It is asked what Spark asks first: is there a Master?"""

from __future__ import annotations

import socket
import struct
import time
from urllib.parse import urlsplit

REACH_S = 5.0
ANSWER_S = 20.0  # as long as Spark itself waits for a busy master before it asks again
NOBODY = "no master answers there"
_REQUEST, _RESPONSE, _FAILURE = 3, 4, 5
_HEAD = struct.Struct(">QB")  # of every message of Spark's: its length, this included, and its kind
_LONGEST_BYTES = 1 << 20
_TLS_ALERT = b"\x15\x03"
_VERIFIER, _MASTER = "endpoint-verifier", "Master"
# The question is a Java object, and this the version of its class in Spark 4.3. Where it is another one Spark answers
# with a failure, which tells as well that it is there.
_QUESTION = "org.apache.spark.rpc.netty.RpcEndpointVerifier$CheckExistence"
_QUESTION_VERSION = 5378738997755484868
# Spark waits for the rest of a second message; what reads lines has the end of one, and answers too.
_END_OF_LINE = b"\r\n\r\n"


def why_no_master(place: str, limit_s: float = ANSWER_S) -> str:
    """Why no standalone master is at `host:port`; empty if there is one, or if only Spark itself can tell."""
    try:
        address = urlsplit(f"spark://{place}")
        if not address.hostname or address.port is None:
            return NOBODY
        with socket.create_connection((address.hostname, address.port), REACH_S) as connection:
            connection.sendall(_question(address.hostname, address.port) + _END_OF_LINE)
            answer = _answer(connection, time.monotonic() + limit_s)
    except (OSError, ValueError):
        return NOBODY
    if answer is None:
        return f"what listens there is no master of Spark: it says nothing within {limit_s:g} s"
    return _judged(answer)


def _judged(answer: bytes) -> str:
    if not answer or answer.startswith(_TLS_ALERT):
        return ""  # so does a master that speaks TLS alone
    length, kind = _head(answer)
    if not length:
        return "what answers there is no master of Spark"
    no = kind == _RESPONSE and answer[length - 1 : length] == b"\0"
    return "a process of Spark answers there, but it is no master" if no else ""


def _answer(connection: socket.socket, until_s: float) -> bytes | None:
    """What comes back, until it can be judged; None if nothing does in time."""
    answer = b""
    while len(answer) < max(_HEAD.size, _head(answer)[0]):
        connection.settimeout(max(0.001, until_s - time.monotonic()))
        try:
            piece = connection.recv(4096)
        except TimeoutError:
            return answer or None
        except ConnectionError:
            return answer
        if not piece:
            return answer
        answer += piece
    return answer


def _head(answer: bytes) -> tuple[int, int]:
    """Length and kind of an answer of Spark's; nothing if it is none, or not even its head is there."""
    length, kind = _HEAD.unpack_from(answer.ljust(_HEAD.size, b"\0"))
    known = kind in (_RESPONSE, _FAILURE) and _HEAD.size < length <= _LONGEST_BYTES
    return (length, kind) if known else (0, 0)


def _question(host: str, port: int) -> bytes:
    """Asks the verifier, which every process of Spark has, whether it is a master."""
    sender = b"\0"  # nobody who could be called back
    receiver = b"\1" + _text(host) + struct.pack(">I", port) + _text(_VERIFIER)
    field = b"L" + _text("name") + b"t" + _text("Ljava/lang/String;")
    described = b"sr" + _text(_QUESTION) + struct.pack(">qBH", _QUESTION_VERSION, 2, 1) + field + b"xp"
    asked = sender + receiver + b"\xac\xed\x00\x05" + described + b"t" + _text(_MASTER)
    message = struct.pack(">QI", 1, len(asked)) + asked
    return _HEAD.pack(_HEAD.size + len(message), _REQUEST) + message


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">H", len(encoded)) + encoded
