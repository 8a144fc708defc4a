"""A flood of strangers does not fill the log."""

import logging
import time

import pytest

from gateway.listener.sparing_log import LINES_A_SECOND, SparingLog


def test_some_lines_of_a_second_are_written_and_the_rest_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = SparingLog(logging.getLogger("door"), "field")
    monkeypatch.setattr(time, "monotonic", lambda: 100.9)
    for number in range(LINES_A_SECOND + 5):
        log.tell(logging.WARNING, "refused number=%s", number)
    assert caplog.messages == [f"refused number={number}" for number in range(LINES_A_SECOND)]
    caplog.clear()
    monkeypatch.setattr(time, "monotonic", lambda: 101.0)
    log.tell(logging.WARNING, "refused number=%s", 99)
    assert caplog.messages == ["connections refused listener=field count=5", "refused number=99"]
    caplog.clear()
    monkeypatch.setattr(time, "monotonic", lambda: 102.0)
    log.tell(logging.WARNING, "refused number=%s", 100)
    assert caplog.messages == ["refused number=100"]
