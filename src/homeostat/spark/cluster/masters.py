"""Checks whether a standalone master answers at an address, with the first message that Spark itself would send."""

from __future__ import annotations

import socket
import struct
import time
from urllib.parse import urlsplit

REACH_S = 5.0  # a host that exists accepts a connection in less
ANSWER_S = 20.0  # Spark itself waits this long for a busy master before it tries again
NOBODY = "no Spark master answers at this address"
_REQUEST, _RESPONSE, _FAILURE = 3, 4, 5
_HEAD = struct.Struct(">QB")  # of every Spark message: its length, including this, and its kind
_LONGEST_BYTES = 1 << 20  # far above any answer of Spark to this question
_TLS_ALERT = b"\x15\x03"
_VERIFIER, _MASTER = "endpoint-verifier", "Master"
# The question is a serialized Java object; this is the version of its class in Spark 4.3. Another version of Spark
# answers with a failure, which also proves that it is Spark.
_QUESTION = "org.apache.spark.rpc.netty.RpcEndpointVerifier$CheckExistence"
_QUESTION_VERSION = 5378738997755484868
# Spark takes this for the start of a second message and ignores it; a server that reads lines answers it.
_END_OF_LINE = b"\r\n\r\n"


def why_no_master(place: str, limit_s: float = ANSWER_S) -> str:
    """Why there is no standalone master at `host:port`; empty if there is one, or if only Spark itself can find out."""
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
        return f"the process that listens there is not a Spark master: no answer within {limit_s:g} s"
    return _judge(answer)


def _judge(answer: bytes) -> str:
    if not answer or answer.startswith(_TLS_ALERT):
        return ""  # a master that requires TLS answers like this
    length, kind = _head(answer)
    if not length:
        return "the process that answers there is not a Spark master"
    is_denied = kind == _RESPONSE and answer[length - 1 : length] == b"\0"
    return "a Spark process answers there, but it is not a master" if is_denied else ""


def _answer(connection: socket.socket, until_s: float) -> bytes | None:
    """The answer, as far as it is needed; None if there is none in time."""
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
    """Length and kind of an answer from Spark; (0, 0) if it is not from Spark or too short to tell."""
    length, kind = _HEAD.unpack_from(answer.ljust(_HEAD.size, b"\0"))
    is_spark = kind in (_RESPONSE, _FAILURE) and _HEAD.size < length <= _LONGEST_BYTES
    return (length, kind) if is_spark else (0, 0)


def _question(host: str, port: int) -> bytes:
    """Asks the verifier, which every Spark process has, whether the process is a master."""
    sender = b"\0"  # no address to call back
    receiver = b"\1" + _text(host) + struct.pack(">I", port) + _text(_VERIFIER)
    field = b"L" + _text("name") + b"t" + _text("Ljava/lang/String;")
    description = b"sr" + _text(_QUESTION) + struct.pack(">qBH", _QUESTION_VERSION, 2, 1) + field + b"xp"
    body = sender + receiver + b"\xac\xed\x00\x05" + description + b"t" + _text(_MASTER)
    message = struct.pack(">QI", 1, len(body)) + body
    return _HEAD.pack(_HEAD.size + len(message), _REQUEST) + message


def _text(text: str) -> bytes:
    text_bytes = text.encode()
    return struct.pack(">H", len(text_bytes)) + text_bytes
