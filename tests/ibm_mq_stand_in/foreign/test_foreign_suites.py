"""pymqi's and ibmmq's own test suites over the stand-in, in full alone (`make prove`): they come over the network."""

import struct
from pathlib import Path

import pytest

from tests.ibm_mq_stand_in.foreign.command_server import PcfServer, read
from tests.ibm_mq_stand_in.foreign.suites import (
    SuiteMissing,
    cannot_pass,
    exempt,
    fetched,
    install_requirements,
    run,
)
from tests.ibm_mq_stand_in.process import BINDINGS, Binding, StandInQueueManager, load, needs_stand_in

#: Tests that pass, at least: of queues, units of work, descriptors, MQRFH2 and PCF structures.
FEWEST_PASSED = 60


@pytest.mark.proof
@needs_stand_in
@pytest.mark.timeout(2_400)
@pytest.mark.parametrize("binding", BINDINGS)
def test_the_suite_passes_but_for_what_the_stand_in_has_not(binding: Binding, proof_scale: str, tmp_path: Path) -> None:
    if proof_scale != "full":
        pytest.skip("the suite is fetched in full alone: make prove")
    try:
        tests, requirements = fetched(binding, tmp_path), install_requirements(tmp_path)
    except SuiteMissing as error:
        pytest.skip(f"the suite of {binding} cannot be had: {error}")
    results = run(binding, tests, requirements, tmp_path)
    failed = {name for name, result in results.items() if result == "failed"}
    passed = {name for name, result in results.items() if result == "passed"}
    assert {name for name in failed if not cannot_pass(name)} == set()
    assert {name for name in passed if cannot_pass(name)} == set(), "what passes is no exception any more"
    assert len(passed) >= FEWEST_PASSED


def test_every_exception_has_a_reason() -> None:
    assert all(each.reason and each.tests for each in exempt())
    assert cannot_pass("test_pubsub.TestPubSub.test_pubsub_encoding")
    assert not cannot_pass("test_queue_manager.TestQueueManager.test_commit")


@needs_stand_in
def test_a_program_makes_and_deletes_its_queue_by_pcf(
    queue_manager: StandInQueueManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    mq = load("ibmmq")
    with PcfServer(queue_manager.client):
        manager = mq.QueueManager(None)
        manager.connect_with_options("STANDIN", opts=0x40)
        pcf = mq.PCFExecute(manager, response_wait_interval=30_000)
        made = [
            mq.CFST(Parameter=mq.CMQC.MQCA_Q_NAME, String=b"MADE"),
            mq.CFIN(Parameter=mq.CMQC.MQIA_MAX_Q_DEPTH, Value=7),
        ]
        pcf.MQCMD_CREATE_Q(made)
        with queue_manager.client() as client:
            assert client.inquire("MADE")["MAXDEPTH"] == 7
        pcf.MQCMD_DELETE_Q(made[:1])
        with pytest.raises(mq.MQMIError, match="3008"):
            pcf.MQCMD_DELETE_Q(made[:1])
        with pytest.raises(mq.MQMIError, match="3008"):
            pcf.MQCMD_INQUIRE_Q(made[:1])
        pcf.disconnect()
        manager.disconnect()


def test_a_command_is_read_with_its_integers_and_strings() -> None:
    integer = struct.pack("=4i", 3, 16, 15, 7)
    string = struct.pack("=5i", 4, 28, 2016, 1208, 6) + b"ORDERS\0\0"
    other = struct.pack("=5i", 5, 20, 1, 1, 9)
    header = struct.pack("=9i", 16, 36, 3, 11, 1, 1, 0, 0, 3)
    assert read(header + integer + other + string) == (11, 3, {15: 7, 2016: "ORDERS"})
