"""Another queue manager behind the same connection names, a second gateway on the same state queue, a restored backup.

Nothing is delivered twice because of any of them; the operator is told what to do, and can do it.
"""

import shutil

import pytest

from tests.end_to_end.gateway_process import PATIENCE_S
from tests.end_to_end.ibm_mq.central import Central
from tests.end_to_end.ibm_mq.conftest import NewCentral, NewClient, NewGateway, Way
from tests.end_to_end.ibm_mq.target_gateway import OUT, TargetGateway, wait_until

QUEUE = "PLANT.INPUT"
ROUTES = ({"topics": ["plant/#"], "queue": QUEUE}, {"topics": ["broker/#"]})
WAY = Way(binding="ibmmq", header="mqrfh2")


@pytest.fixture
def standby(new_central: NewCentral) -> Central:
    """The queue manager that the second connection name leads to."""
    return new_central("STANDBY")


def turn_away(queue_manager: Central) -> None:
    """It takes no new connections; those that there are stay."""
    queue_manager.control.plant("MQCONNX", 2059, times=0)


def in_doubt_at(central: Central, gateway: TargetGateway, new_client: NewClient) -> None:
    """A batch with `|one` takes place, its answer is lost, and the queue manager does not let the gateway in again."""
    turn_away(central)
    central.control.plant("MQCMIT", 2009, "after", contains=b"|one")
    sensor = new_client("doubts")
    sensor.connect(gateway.port)
    sensor.publish("plant/a", b"|one", 2)
    wait_until(lambda: central.payloads(QUEUE) == [b"one"], "it has arrived, and the gateway does not know")
    central.control.drop_connections()
    gateway.try_now()


def test_another_queue_manager_gets_nothing_while_a_batch_is_in_doubt(
    new_target_gateway: NewGateway, central: Central, standby: Central, new_client: NewClient
) -> None:
    gateway = new_target_gateway(WAY, standby=standby, routes=ROUTES).start()
    gateway.wait_for_running()
    in_doubt_at(central, gateway, new_client)
    status = gateway.wait_for_channel("IN DOUBT", problem="while a batch is in doubt")
    assert status["INDOUBT"] == "YES"
    assert central.control.identifier in status["PROBLEM"]
    assert "rfhbridge channel resolve CENTRAL.OUT.0" in status["PROBLEM"]
    assert standby.depth(QUEUE) == 0

    central.control.clear_faults()
    turn_away(standby)
    standby.control.drop_connections()
    gateway.try_now()
    gateway.wait_for_channel("RUNNING")
    gateway.wait_for_log("channel_started", channel=OUT, action="remove what was delivered")
    wait_until(lambda: gateway.waiting() == 0, "nothing waits")
    assert (central.payloads(QUEUE), standby.depth(QUEUE)) == ([b"one"], 0)


@pytest.mark.parametrize(("action", "arrives_again"), [("commit", False), ("backout", True)])
def test_the_operator_says_what_became_of_a_batch_and_another_queue_manager_goes_on(
    new_target_gateway: NewGateway,
    central: Central,
    standby: Central,
    new_client: NewClient,
    action: str,
    arrives_again: bool,
) -> None:
    gateway = new_target_gateway(WAY, standby=standby, routes=ROUTES).start()
    gateway.wait_for_running()
    in_doubt_at(central, gateway, new_client)
    gateway.wait_for_channel("IN DOUBT")
    done = gateway.channel_command("resolve", OUT, "--action", action)
    assert done.returncode == 1, done.stdout  # it runs: stop it first
    assert "STOP CHANNEL" in done.stderr
    assert gateway.channel_command("stop", OUT).returncode == 0
    done = gateway.channel_command("resolve", OUT, "--action", action)
    assert done.returncode == 0, done.stderr
    assert gateway.channel_command("start", OUT).returncode == 0
    gateway.try_now()
    sensor = new_client("later")
    sensor.connect(gateway.port)
    sensor.publish("plant/a", b"|two", 2)
    expected = [b"one", b"two"] if arrives_again else [b"two"]
    wait_until(lambda: standby.payloads(QUEUE) == expected, "the standby has what it should")
    assert central.payloads(QUEUE) == [b"one"]


def test_subscriptions_are_registered_anew_at_another_queue_manager(
    new_target_gateway: NewGateway, central: Central, standby: Central, new_client: NewClient
) -> None:
    gateway = new_target_gateway(WAY, standby=standby, routes=ROUTES).start()
    gateway.wait_for_running()
    listener = new_client("listens", clean_session=False)
    listener.connect(gateway.port)
    listener.subscribe("broker/a", 1)
    wait_until(lambda: central.subscribed_topics() == ["broker/a"], "it is registered at the first one")
    central.kill()
    gateway.try_now()
    wait_until(lambda: standby.subscribed_topics() == ["broker/a"], "it is registered at the second one")
    standby.publish(b"from the second", topic="broker/a")
    assert listener.next_message() == ("broker/a", b"from the second", 1, False)


def test_a_second_gateway_on_the_same_state_queue_waits_and_is_then_refused(
    new_target_gateway: NewGateway, central: Central, new_client: NewClient
) -> None:
    first = new_target_gateway(WAY, routes=ROUTES, folder="first").start()
    first.wait_for_running()
    sensor = new_client("first")
    sensor.connect(first.port)
    sensor.publish("plant/a", b"|one", 1)
    wait_until(lambda: central.payloads(QUEUE) == [b"one"], "the first gateway delivers")
    second = new_target_gateway(WAY, routes=ROUTES, folder="second").start()
    status = second.wait_for_channel("FENCING")
    assert status["REASON"] == "2042"
    assert first.stop() == 0
    status = second.wait_for_channel("FAILED")
    assert "a second gateway" in status["PROBLEM"]
    assert "give each gateway state queues of its own" in status["PROBLEM"]
    shown = second.channel_command("show", OUT)
    assert "a second gateway" in shown.stdout
    listed = second.channel_command("list")
    assert "failed" in listed.stdout
    other = new_client("second")
    other.connect(second.port)
    other.publish("plant/a", b"|two", 1)
    connects = central.control.calls()["MQCONNX"]
    assert second.channel_command("start", OUT).returncode == 0
    wait_until(lambda: central.control.calls()["MQCONNX"] > connects, "it tries again")
    second.wait_for_channel("FAILED")
    assert central.payloads(QUEUE) == [b"one"]

    assert second.channel_command("resolve", OUT, "--action", "commit").returncode == 1  # nothing is in doubt
    done = second.channel_command("resolve", OUT, "--action", "reset")
    assert done.returncode == 0, done.stderr
    assert second.channel_command("start", OUT).returncode == 0
    wait_until(lambda: central.payloads(QUEUE) == [b"one", b"two"], "the second gateway has taken over")
    assert second.stop() == 0
    first.start()
    assert "a second gateway" in first.wait_for_channel("FAILED")["PROBLEM"]


def test_a_store_that_was_restored_from_a_backup_delivers_nothing_again(
    new_target_gateway: NewGateway, central: Central, new_client: NewClient
) -> None:
    """What the backup has waiting has been delivered since: the channel stops, and sensors go on."""
    gateway = new_target_gateway(WAY, routes=ROUTES).start()
    gateway.wait_for_running()
    sensor = new_client("before")
    sensor.connect(gateway.port)
    sensor.publish("plant/a", b"|one", 1)
    wait_until(lambda: central.payloads(QUEUE) == [b"one"], "the first message arrives")
    gateway.mqsc(f"STOP CHANNEL({OUT})")
    gateway.wait_for_channel("STOPPED")
    sensor.publish("plant/a", b"|two", 1)
    sensor.close()
    assert gateway.stop() == 0
    backup = gateway.data.with_name("backup")
    shutil.copytree(gateway.data, backup)
    gateway.start()
    gateway.mqsc(f"START CHANNEL({OUT})")
    wait_until(lambda: central.payloads(QUEUE) == [b"one", b"two"], "both have arrived")
    wait_until(lambda: gateway.waiting() == 0, "nothing waits")
    assert gateway.stop() == 0

    shutil.rmtree(gateway.data)
    shutil.copytree(backup, gateway.data)
    gateway.start()
    gateway.mqsc(f"START CHANNEL({OUT})")
    status = gateway.wait_for_channel("FAILED")
    assert "a store restored from a backup" in status["PROBLEM"]
    assert f"rfhbridge channel resolve {OUT} --action reset" in status["PROBLEM"]
    assert status["CURDEPTH"] == "1"
    later = new_client("after")
    later.connect(gateway.port)
    later.publish("plant/a", b"|three", 1)
    assert gateway.waiting() == 2
    assert central.payloads(QUEUE) == [b"one", b"two"]


def test_a_folder_that_went_back_is_refused_at_the_start_and_accepted(
    new_target_gateway: NewGateway, central: Central, new_client: NewClient
) -> None:
    """Marker and trail went back with it: the target alone knows. Nothing is taken before the operator has spoken."""
    gateway = new_target_gateway(WAY, routes=ROUTES, ask_at_start_s=PATIENCE_S).start()
    backup = gateway.data.with_name("backup")
    for place, body in enumerate((b"one", b"two", b"three")):
        gateway.wait_for_running()
        sensor = new_client(f"sensor-{place}")
        sensor.connect(gateway.port)
        sensor.publish("plant/a", b"|" + body, 1)
        wait_until(lambda body=body: central.payloads(QUEUE)[-1:] == [body], "it has arrived")
        wait_until(lambda: gateway.waiting() == 0, "it is settled")
        sensor.close()
        assert gateway.stop() == 0
        if not place:
            shutil.copytree(gateway.data, backup)
        gateway.start()
    assert gateway.stop() == 0
    shutil.rmtree(gateway.data)
    backup.rename(gateway.data)

    gateway.launch()
    assert gateway.wait() == 1
    assert "has batch 3 of channel CENTRAL.OUT.0" in gateway.log
    assert "and the store knows batch 1" in gateway.log
    done = gateway.command("queue", "accept-rollback", "--force", "--yes", "--data", str(gateway.data))
    assert done.returncode == 0, done.stderr
    gateway.start()
    later = new_client("after")
    later.connect(gateway.port)
    later.publish("plant/a", b"|four", 1)
    wait_until(lambda: central.payloads(QUEUE) == [b"one", b"two", b"three", b"four"], "nothing comes again")
