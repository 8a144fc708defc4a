"""The limit of open files is raised as far as connections need it, and a system that does not let it is named."""

import resource

import pytest

from gateway.config.listeners import ListenerSettings, TlsSettings
from gateway.config.mqtt_limits import ConnectionLimits
from gateway.limits.open_files import OWN_FILES, make_room_for

LIMITS = ConnectionLimits(maximum_connections=3_000, maximum_waiting_connections=100)
NEEDED = 3_100 + OWN_FILES
UNLIMITED = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("soft", "hard", "raised_to", "warning"),
    [
        (1_024, 524_288, NEEDED, ""),
        (1_024, UNLIMITED, NEEDED, ""),
        (NEEDED, 524_288, None, ""),
        (UNLIMITED, UNLIMITED, None, ""),
        (256, 2_048, 2_048, f"limit of open files too low limit=2048 needed={NEEDED} see=ulimit -Hn"),
    ],
)
def test_the_limit_becomes_what_the_connections_need(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    soft: int,
    hard: int,
    raised_to: int | None,
    warning: str,
) -> None:
    made: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _which, limits: made.append(limits))
    make_room_for(LIMITS, [])
    assert made == ([] if raised_to is None else [(raised_to, hard)])
    assert caplog.messages == ([warning] if warning else [])


TLS = TlsSettings(certificate="gateway.pem", key="gateway.key")


@pytest.mark.parametrize(
    ("listeners", "waiting"),
    [
        ([ListenerSettings(name="plain", listen="127.0.0.1:1")], 100),
        ([ListenerSettings(name="tls", listen="127.0.0.1:1", tls=TLS)], 200),
        ([ListenerSettings(name="proxy", listen="127.0.0.1:1", proxy_protocol=True, tls=TLS)], 200),
        ([ListenerSettings(name="web", listen="127.0.0.1:1", transport="websocket")], 200),
        ([ListenerSettings(name=name, listen="127.0.0.1:1", transport="websocket", tls=TLS) for name in "ab"], 500),
    ],
)
def test_those_on_their_way_to_each_listener_need_theirs_too(
    monkeypatch: pytest.MonkeyPatch, listeners: list[ListenerSettings], waiting: int
) -> None:
    """Handshakes and requests that were never finished took the gateway's own files, and /health did not answer."""
    made: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (256, 9_999))
    monkeypatch.setattr(resource, "setrlimit", lambda _which, limits: made.append(limits))
    make_room_for(LIMITS, listeners)
    assert made == [(3_000 + waiting + OWN_FILES, 9_999)]


def test_a_system_that_refuses_is_named(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(_which: int, _limits: tuple[int, int]) -> None:
        raise OSError("not permitted")

    monkeypatch.setattr(resource, "getrlimit", lambda _which: (256, 9_999))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    make_room_for(LIMITS, [])
    assert caplog.messages == [f"limit of open files not raised limit=256 needed={NEEDED} reason=not permitted"]
