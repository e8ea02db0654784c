"""Where the server may listen, and what it demands there."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeostat.core.errors import ConfigError
from homeostat.web.http_server import Serving

LOG = Path("log.sqlite")


@pytest.mark.parametrize(
    ("serving", "what"),
    [
        (Serving(LOG, "0.0.0.0"), "add --tokens FILE"),
        (Serving(LOG, proxied=True), "everyone who can reach the proxy could read the log"),
        (Serving(LOG, proxied=True, tokens=Path("t"), trusted_proxies=("proxy",)), "'proxy' is not an address"),
        (Serving(LOG, "10.0.0.1", tokens=Path("t")), "or --behind-proxy"),
        (Serving(LOG, tokens=Path("t"), certificate=Path("c")), "TLS needs a certificate and a key"),
        (Serving(LOG, certificate=Path("missing"), key=Path("k")), "not a certificate and its key: No such file"),
        (Serving(LOG, certificate=Path(__file__), key=Path(__file__)), "not a certificate and its key"),
    ],
)
def test_an_open_door_is_refused(serving: Serving, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        serving.check()


@pytest.mark.parametrize(
    "serving",
    [
        Serving(LOG),
        Serving(LOG, "::1"),
        Serving(LOG, "0.0.0.0", tokens=Path("t"), proxied=True),
    ],
)
def test_a_guarded_one_is_not(serving: Serving) -> None:
    serving.check()
