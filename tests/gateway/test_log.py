"""Log lines: events with fields, in text and in JSON, and never a payload."""

import json
import logging
import re
import ssl
import sys

import pytest

from gateway import log

_log = logging.getLogger("gateway.test_log")


@pytest.fixture(autouse=True)
def restored():
    """The loggers as they were."""
    rooms = [logging.getLogger(room) for room in ("gateway", "mq_adapters", "mappings", "spark_audit", "asyncio")]
    before = [(room.handlers[:], room.level) for room in rooms]
    hook, sys.unraisablehook = sys.unraisablehook, sys.__unraisablehook__
    yield
    sys.unraisablehook = hook
    for room, (handlers, level) in zip(rooms, before, strict=True):
        room.handlers[:] = handlers
        room.setLevel(level)


def test_text_line_is_time_level_module_event_and_fields(capsys):
    log.configure("info", "text")
    _log.info("connection closed client=%s packets=%d clean=%s", "pump-7", 3, True)
    line = capsys.readouterr().err
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z info gateway\.test_log "
        r"connection closed client=pump-7 packets=3 clean=true\n",
        line,
    )


def test_json_line_has_a_key_for_each_field(capsys):
    log.configure("info", "json")
    _log.warning("connection closed client=%s packets=%d reason=%s", "pump 7", 3, None)
    line = json.loads(capsys.readouterr().err)
    assert line.pop("at").endswith("Z")
    assert line == {
        "level": "warning",
        "module": "gateway.test_log",
        "event": "connection closed",
        "client": "pump 7",
        "packets": 3,
        "reason": None,
    }


def test_field_cannot_pass_for_the_event_or_the_level(capsys):
    log.configure("info", "json")
    _log.info("client connected event=%s level=%s", "forged", "forged")
    line = json.loads(capsys.readouterr().err)
    assert (line["event"], line["level"]) == ("client connected", "info")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("", '""'),
        ("a b", '"a b"'),
        ("a=b", '"a=b"'),
        ('a"b', '"a\\"b"'),
        ("a\nb", '"a\\nb"'),
        ("\x1b[31m", '"\\u001b[31m"'),
        ("\u202e", '"\\u202e"'),
        ("température", "température"),
        (b"secret", '"(6 bytes)"'),
        ("x" * 600, "x" * 512 + "..."),
    ],
)
def test_value_of_a_client_cannot_break_a_line_or_hide_in_it(capsys, value, shown):
    log.configure("info", "text")
    _log.info("client connected client=%s", value)
    line = capsys.readouterr().err
    assert line.endswith(f" client={shown}\n")
    assert line.count("\n") == 1


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("name", sorted(log.WITHHELD))
def test_payload_and_password_are_withheld(capsys, form, name):
    log.configure("info", form)
    _log.info(f"packet received {name}=%s", "secret")
    assert "secret" not in capsys.readouterr().err


def test_level_leaves_out_what_is_less_important(capsys):
    log.configure("warning", "text")
    _log.info("client connected client=%s", "a")
    _log.error("store failed error=%s", "disk full")
    assert capsys.readouterr().err.count("\n") == 1


def test_message_of_another_form_is_one_line(capsys):
    log.configure("info", "text")
    _log.info("100%% of\n%s", "it")
    assert capsys.readouterr().err.endswith("gateway.test_log 100% of it\n")


def test_traceback_is_one_field_of_one_line(capsys):
    log.configure("info", "text")
    _log.error("gateway failed", exc_info=ValueError("wrong"))
    line = capsys.readouterr().err
    assert line.count("\n") == 1
    assert "ValueError: wrong" in line


def test_configuring_again_replaces_the_log(capsys):
    log.configure("info", "text")
    log.configure("info", "json")
    _log.info("client connected client=%s", "a")
    assert capsys.readouterr().err.count("\n") == 1
    assert log.is_json()


def test_log_that_cannot_be_written_stops_nothing(capsys, monkeypatch):
    class Full:
        def write(self, _text):
            raise OSError(28, "No space left on device")

        def flush(self):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("sys.stderr", Full())
    log.configure("info", "text")
    _log.info("client connected client=%s", "a")
    assert capsys.readouterr().out == ""


def _asked_for(host: bytes) -> bytes:
    """The ClientHello of a client that asks for a host (RFC 6066 section 3), whose name has 7 bytes."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="unheard")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read().replace(b"unheard", host)


def test_host_that_is_not_ascii_writes_nothing_past_the_log(capsys):
    """Each of them wrote six lines, traceback and all, whatever the format and however many came."""
    log.configure("info", "json")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sni_callback = lambda *_: None
    incoming = ssl.MemoryBIO()
    incoming.write(_asked_for(b"\xff\xfe\xfdabc\n"))
    with pytest.raises(ssl.SSLError):
        context.wrap_bio(incoming, ssl.MemoryBIO(), server_side=True).do_handshake()
    assert capsys.readouterr().err == ""


def test_error_that_can_be_raised_nowhere_is_one_line(capsys):
    class Fragile:
        def __del__(self) -> None:
            raise ValueError("broken")

    log.configure("info", "json")
    Fragile()
    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["event"], line["in"]) == ("error", "error ignored", "function")
    assert "ValueError: broken" in line["traceback"]
