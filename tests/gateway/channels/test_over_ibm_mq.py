"""The channel process itself, over both of IBM's bindings, with the stand-in as the target's queue manager."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from mq_adapters.channel import LocalStates
from mq_adapters.message import MQPER_PERSISTENT, Message, MessageDescriptor
from tests.ibm_mq_stand_in.process import BINDINGS, StandInQueueManager, needs_stand_in

OUT = "CENTRAL.OUT.0"
QUEUES = ("STOCK", "RFHBRIDGE.STATE.0", "RFHBRIDGE.SUBSCRIBER", "RFHBRIDGE.REPLY")
#: How long a call hangs: far longer than a gateway may take to end, which waits 4 seconds for its channels.
HANGS_S = 120.0

pytestmark = [needs_stand_in, pytest.mark.parametrize("binding", BINDINGS)]


@pytest.fixture
def ibm_mq(tmp_path: Path) -> Iterator[StandInQueueManager]:
    with StandInQueueManager(tmp_path / "stand_in", name="QM1") as queue_manager:
        queue_manager.control.mqsc(*(f"DEFINE QLOCAL({name}) MSGDLVSQ(FIFO)" for name in QUEUES))
        yield queue_manager


def bodies(queue_manager: StandInQueueManager) -> list[bytes]:
    with queue_manager.client() as client:
        return [message.body for message in client.browse("STOCK")]


def is_under_way(gateway) -> bool:
    """Whether a batch is noted in the store and not settled."""
    with gateway.connected() as store:
        state = LocalStates(store).of(OUT)
    return state is not None and state.doubtful is not None


def test_both_directions(binding, ibm_mq, new_gateway, until):
    gateway = new_gateway(ibm_mq.environment(binding), binding=binding)
    sent = [b"%d" % number for number in range(300)]
    gateway.send(*sent)
    until(lambda: bodies(ibm_mq) == sent, "all have arrived there")
    with ibm_mq.client() as client:
        descriptor = MessageDescriptor(persistence=MQPER_PERSISTENT, format=b"MQSTR   ", correl_id=b"RFHB" + bytes(20))
        msg_id = client.put("RFHBRIDGE.SUBSCRIBER", Message(descriptor, b"back"))

    def arrived() -> list[Message]:
        with gateway.connected() as store:
            return list(store.browse("RFHBRIDGE.SUBSCRIBER"))

    until(lambda: [message.body for message in arrived()] == [b"back"], "it has arrived here")
    assert arrived()[0].msg_id == msg_id
    assert gateway.wait_for_state("RUNNING")["RQMNAME"] == "QM1"
    assert gateway.end() == 0


def test_a_call_that_hangs_does_not_keep_the_gateway_from_ending(binding, ibm_mq, new_gateway, until, is_gone):
    gateway = new_gateway(ibm_mq.environment(binding), binding=binding)
    gateway.wait_for_state("RUNNING")
    process = gateway.channel_process()
    ibm_mq.control.plant("MQPUT", 0, "before", times=0, delay_s=HANGS_S)
    gateway.send(b"it hangs")
    until(lambda: is_under_way(gateway), "a batch is under way, in the call that hangs")
    assert gateway.end() == 0  # it is waited for no longer than STEP_S of conftest.py
    until(lambda: is_gone(process), "the process has ended")
    ibm_mq.control.clear_faults()
    gateway.start()
    until(lambda: bodies(ibm_mq) == [b"it hangs"], "it arrives, once")


def test_the_password_is_read_by_the_channel_process_and_told_nobody(binding, ibm_mq, new_gateway, until):
    ibm_mq.control.require_passwords({"gateway": "correct horse"})
    environment = {**ibm_mq.environment(binding), "CENTRAL_PASSWORD": "correct horse"}
    gateway = new_gateway(environment, binding=binding, user="gateway", password_environment="CENTRAL_PASSWORD")
    gateway.send(b"one")
    until(lambda: bodies(ibm_mq) == [b"one"], "it has arrived")
    process = gateway.channel_process()
    assert b"correct horse" not in Path(f"/proc/{process}/cmdline").read_bytes()
    assert "correct horse" not in gateway.log.read_text()
    assert Path(f"/proc/{process}/cwd").readlink() == gateway.data
