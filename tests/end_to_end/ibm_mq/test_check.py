"""`rfhbridge check` where there are targets: is IBM's library there, and can the gateway open its queues at each?"""

import json
import subprocess
import time
from typing import Any

import pytest

from tests.end_to_end.gateway_process import PATIENCE_S
from tests.end_to_end.ibm_mq.central import Central
from tests.end_to_end.ibm_mq.conftest import NewClient, NewGateway, Way
from tests.end_to_end.ibm_mq.target_gateway import IN_REPLY, IN_SUBSCRIBER, OUT, TargetGateway, wait_until
from tests.ibm_mq_stand_in.process import environment

QUEUE = "PLANT.INPUT"
ROUTES = ({"topics": ["plant/#"], "queue": QUEUE}, {"topics": ["broker/#"]})
WAY = Way(binding="ibmmq", header="mqrfh2")
#: Verbs that read or alter something.
ALTERING = {"MQPUT", "MQPUT1", "MQGET", "MQSET", "MQCMIT", "MQBEGIN"}


def check(gateway: TargetGateway, central: Central | None, *more: str) -> subprocess.CompletedProcess[str]:
    """Runs the command as an operator who has IBM's library, or with no queue manager named one who has not."""
    variables = {} if central is None else environment(WAY.binding, str(central.socket))
    return gateway.command("check", "--config", str(gateway.config), *more, environment=variables)


def tried(gateway: TargetGateway, central: Central, *more: str) -> tuple[int, dict[str, Any]]:
    """Exit code and what was found at the target."""
    done = check(gateway, central, "--connect", "--json", *more)
    assert done.stdout, done.stderr
    (found,) = json.loads(done.stdout)["targets"]
    return done.returncode, found


def test_a_library_that_is_not_there_is_a_warning(new_target_gateway: NewGateway, central: Central) -> None:
    gateway = new_target_gateway(WAY)
    done = check(gateway, None)
    assert done.returncode == 0, done.stderr
    (warning,) = (line for line in done.stdout.splitlines() if "2495" in line)
    assert warning.startswith("warning: target CENTRAL: load IBM MQ's client: Python package ibmmq is not installed")
    assert "MQ_FILE_PATH" in warning
    assert "2495" not in check(gateway, central).stdout


def test_without_the_library_there_is_no_connection(new_target_gateway: NewGateway) -> None:
    done = check(new_target_gateway(WAY), None, "--connect")
    assert done.returncode == 1
    (line,) = (line for line in done.stdout.splitlines() if "2495" in line)
    assert line.startswith("target CENTRAL: failed: load IBM MQ's client: ")


def test_a_target_as_it_should_be(new_target_gateway: NewGateway, central: Central, way: Way) -> None:
    gateway = new_target_gateway(way, routes=ROUTES)
    central.control.forget_calls()
    variables = environment(way.binding, str(central.socket))
    done = gateway.command("check", "--config", str(gateway.config), "--connect", environment=variables)
    assert done.returncode == 0, (done.stdout, done.stderr)
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("target CENTRAL: "))
    assert line.startswith(f"target CENTRAL: connected to CENTRAL ({central.control.identifier}) over {way.binding} ")
    assert line.endswith(", 6 queues opened")
    calls = central.control.calls()
    assert "MQOPEN" in calls
    assert not ALTERING & calls.keys()
    assert central.control.connections() == []


def test_it_runs_beside_a_gateway_that_holds_its_queues(
    new_target_gateway: NewGateway, central: Central, new_client: NewClient
) -> None:
    gateway = new_target_gateway(WAY, routes=ROUTES).start()
    gateway.wait_for_running()
    returned, found = tried(gateway, central)
    assert (returned, found["succeeded"], found["troubles"]) == (0, True, [])
    assert (found["queue_manager"], found["queues"]) == ("CENTRAL", 6)
    sensor = new_client("checks")
    sensor.connect(gateway.port)
    sensor.publish("plant/a", b"|one", 2)
    wait_until(lambda: central.payloads(QUEUE) == [b"one"], "it has arrived")
    for name in (OUT, IN_SUBSCRIBER, IN_REPLY):
        assert gateway.channel(name)["STATUS"] == "RUNNING"


def test_everything_that_is_wrong_is_told_at_once(new_target_gateway: NewGateway, central: Central) -> None:
    gateway = new_target_gateway(WAY, routes=ROUTES)
    central.control.mqsc(
        "DELETE QLOCAL(RFHBRIDGE.STATE.0)",
        "ALTER QLOCAL(RFHBRIDGE.SUBSCRIBER) GET(DISABLED)",
        "ALTER QLOCAL(SYSTEM.BROKER.DEFAULT.STREAM) PUT(DISABLED)",
    )
    central.control.deny((QUEUE, "put"), ("SYSTEM.BROKER.CONTROL.QUEUE", "inquire"))
    returned, found = tried(gateway, central)
    assert (returned, found["succeeded"], found["queues"]) == (1, False, 2)
    told = {trouble["operation"]: (trouble["reason_code"], trouble["reason"]) for trouble in found["troubles"]}
    assert told == {
        "open RFHBRIDGE.STATE.0": (2085, "MQRC_UNKNOWN_OBJECT_NAME"),
        "get from RFHBRIDGE.SUBSCRIBER": (2016, "MQRC_GET_INHIBITED"),
        f"open {QUEUE}": (2035, "MQRC_NOT_AUTHORIZED"),
        "put on SYSTEM.BROKER.DEFAULT.STREAM": (2051, "MQRC_PUT_INHIBITED"),
    }
    assert all(trouble["hint"] for trouble in found["troubles"])
    done = check(gateway, central, "--connect")
    assert done.returncode == 1
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("target CENTRAL: failed: "))
    assert "open RFHBRIDGE.STATE.0: 2085 MQRC_UNKNOWN_OBJECT_NAME (define the queue there: " in line


def test_identity_is_asked_for_where_the_target_wants_it(new_target_gateway: NewGateway, central: Central) -> None:
    gateway = new_target_gateway(WAY, routes=ROUTES, set_identity=True)
    assert tried(gateway, central)[0] == 0
    central.control.deny((QUEUE, "setid"))
    returned, found = tried(gateway, central)
    assert returned == 1
    assert [(trouble["operation"], trouble["reason_code"]) for trouble in found["troubles"]] == [
        (f"open {QUEUE}", 2035)
    ]


@pytest.mark.parametrize("reason_code", [2059, 2538, 2540])
def test_a_queue_manager_that_is_away_is_told_once(
    new_target_gateway: NewGateway, central: Central, reason_code: int
) -> None:
    gateway = new_target_gateway(WAY)
    central.control.begin_outage(reason_code)
    returned, found = tried(gateway, central)
    (trouble,) = found["troubles"]
    assert (returned, trouble["reason_code"]) == (1, reason_code)
    assert trouble["operation"].startswith("connect to ")
    assert trouble["hint"]


@pytest.mark.parametrize(("verb", "at"), [("MQCONNX", "connect to target CENTRAL"), ("MQOPEN", "open RFHBRIDGE.")])
def test_a_call_that_hangs_ends_with_the_time(
    new_target_gateway: NewGateway, central: Central, verb: str, at: str
) -> None:
    gateway = new_target_gateway(WAY)
    central.control.plant(verb, delay_s=10 * PATIENCE_S, times=0, nth=1 if verb == "MQCONNX" else 3)
    began = time.monotonic()
    returned, found = tried(gateway, central, "--timeout", "5")
    assert time.monotonic() - began < PATIENCE_S
    (trouble,) = found["troubles"]
    assert (returned, trouble["reason_code"], trouble["reason"]) == (1, 0, "no answer within 5 s")
    assert trouble["operation"].startswith(at)
    central.control.hasten()


def test_a_wrong_time_is_wrong_use(new_target_gateway: NewGateway) -> None:
    done = check(new_target_gateway(WAY), None, "--connect", "--timeout", "0")
    assert done.returncode == 2, done.stderr
