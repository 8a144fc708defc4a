"""A whole data folder that went back, with marker and trail: its target shows it, before anything is taken."""

import shutil
import signal
from pathlib import Path

import pytest

from tests.gateway.channels.conftest import STEP_S, Central, Gateway, wait_until
from tests.processes.forked import rfhbridge


@pytest.fixture
def gone_back(gateway: Gateway, central: Central) -> Gateway:
    """A gateway whose data folder is that of before its second and third message, which its target has."""
    gateway.set_target(ask_at_start_s=STEP_S)
    gateway.send(b"one")
    wait_until(lambda: central.bodies() == [b"one"], "the first one is there")
    assert gateway.end() == 0
    copy = gateway.data.with_name("copy")
    shutil.copytree(gateway.data, copy)
    for body in (b"two", b"three"):
        gateway.start()
        gateway.send(body)
        wait_until(lambda body=body: central.bodies()[-1] == body, "the next one is there")
        assert gateway.end() == 0
    shutil.rmtree(gateway.data)
    copy.rename(gateway.data)
    return gateway


def accept(gateway: Gateway) -> None:
    done = rfhbridge("queue", "accept-rollback", "--force", "--yes", "--config", gateway.config)
    assert done.returncode == 0, done.stderr


def refused(gateway: Gateway) -> str:
    """What the log says of a start that is refused."""
    before = len(gateway.log.read_text())
    with pytest.raises(AssertionError, match="did not come up"):
        gateway.start()
    return gateway.log.read_text()[before:]


def test_a_start_is_refused_and_names_what_the_target_has(gone_back: Gateway, central: Central) -> None:
    said = refused(gone_back)
    assert "target CENTRAL" in said
    assert "has batch 3 of channel CENTRAL.OUT.0" in said
    assert "the store knows batch 1 and messages below" in said
    assert "accept-rollback --force" in said
    assert refused(gone_back), "nothing was changed"
    accept(gone_back)
    gone_back.start()
    gone_back.send(b"later")
    wait_until(lambda: central.bodies()[-1] == b"later", "what is new is there")
    assert central.bodies() == [b"one", b"two", b"three", b"later"]


def test_a_target_that_is_away_keeps_no_gateway_from_its_start(gone_back: Gateway, central: Central) -> None:
    """What it acknowledges meanwhile has numbers of before, and goes to the target when the operator has accepted."""
    central.end(signal.SIGKILL)
    gone_back.start()
    gone_back.send(b"acknowledged since")
    central.start()
    status = gone_back.wait_for_state("FAILED")
    assert "a store restored from a backup" in status["PROBLEM"]
    assert "accept-rollback --force" in status["PROBLEM"]
    wait_until(lambda: "store behind target=CENTRAL" in gone_back.log.read_text(), "the log tells it")
    assert gone_back.end() == 0
    assert "target CENTRAL" in refused(gone_back)
    accept(gone_back)
    gone_back.start()
    wait_until(lambda: central.bodies()[-1] == b"acknowledged since", "nothing acknowledged is gone")
    assert central.bodies() == [b"one", b"two", b"three", b"acknowledged since"]


def test_a_target_that_does_not_answer_delays_the_start_for_a_short_time_alone(tmp_path: Path, new_program) -> None:
    gateway = new_program(tmp_path, None, ask_at_start_s=0.1)
    assert gateway.end() == 0
    assert "target not asked target=CENTRAL" in gateway.log.read_text()
