"""Users on a running gateway: byte by byte, with paho, while files change, and while somebody tries passwords."""

import os
import queue
import signal
from collections.abc import Iterator
from pathlib import Path

import paho.mqtt.client as mqtt
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from gateway.limits.log_rate import LINES_OF_ONE
from tests.end_to_end.conftest import Connect, StartGateway
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.wire import WireClient
from tests.processes.forked import rfhbridge
from tests.trail_lines import trail_records

ACCEPTED = "20 02 00 00"
IDENTIFIER_REJECTED, UNAVAILABLE = "20 02 00 02", "20 02 00 03"
WRONG_CREDENTIALS, NOT_AUTHORIZED = "20 02 00 04", "20 02 00 05"
# The reference implementation of Argon2 gives this for "password" with the salt "somesalt"; a check takes 0.2 ms.
CHEAP = "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ$nf65EOgLrQMR/uIPnA4rEsF5h7TKyQwu9U1bMCHGi/4"
PATIENCE_S = 30.0
#: Wrong logins at once, and how many of them are waited for: more than the log names. On a busy machine the checks come
#: behind everything else, and all of them would take minutes.
STORM, ANSWERED = 200, 40

RULES = """
accept_unbound_client_identifiers = true

[[rule]]
publish = "own/%u/%c/#"
subscribe = "own/%u/%c/#"

[[rule]]
user = "anna"
publish = "all/#"
subscribe = ["all/#", "own/#"]
deny_subscribe = "own/+/secret"
"""


class Guarded:
    """A gateway with users anna and pump, and the files that say so."""

    def __init__(self, new_gateway: StartGateway, folder: Path, *lines: str) -> None:
        self.users, self.rules, self.config = folder / "users", folder / "access.toml", folder / "rfhbridge.toml"
        self.users.write_text(f"anna:{CHEAP}\npump:{CHEAP}\n", encoding="utf-8")
        self.users.chmod(0o600)
        self.rules.write_text(RULES, encoding="utf-8")
        files = [f'password_file = "{self.users}"', f'access_file = "{self.rules}"']
        self.config.write_text("\n".join(["[access]", *files, *lines]), encoding="utf-8")
        self.gateway = new_gateway("--config", str(self.config)).start()

    def command(self, *arguments: str, text: str = "") -> None:
        ended = rfhbridge("user", *arguments, "--config", self.config, input=text)
        assert ended.returncode == 0, ended.stderr


@pytest.fixture
def guarded(new_gateway: StartGateway, tmp_path: Path) -> Guarded:
    return Guarded(new_gateway, tmp_path)


@pytest.mark.parametrize(
    ("step", "written", "answer"),
    [
        ("3.1.1, right", "10 1E 0004 'MQTT' 04 C2 0000 0002 'us' 0004 'anna' 0008 'password'", ACCEPTED),
        ("3.1, right", "10 20 0006 'MQIsdp' 03 C2 0000 0002 'us' 0004 'anna' 0008 'password'", ACCEPTED),
        ("wrong password", "10 1E 0004 'MQTT' 04 C2 0000 0002 'us' 0004 'anna' 0008 'passwort'", WRONG_CREDENTIALS),
        ("3.1, wrong", "10 20 0006 'MQIsdp' 03 C2 0000 0002 'us' 0004 'anna' 0008 'passwort'", WRONG_CREDENTIALS),
        ("unknown name", "10 1E 0004 'MQTT' 04 C2 0000 0002 'us' 0004 'Anna' 0008 'password'", WRONG_CREDENTIALS),
        ("name alone", "10 14 0004 'MQTT' 04 82 0000 0002 'us' 0004 'anna'", WRONG_CREDENTIALS),
        ("3.1, fields that are announced and missing", "10 10 0006 'MQIsdp' 03 C2 0000 0002 'us'", NOT_AUTHORIZED),
        ("empty name and password", "10 12 0004 'MQTT' 04 C2 0000 0002 'us' 0000 0000", WRONG_CREDENTIALS),
        ("neither", "10 0E 0004 'MQTT' 04 02 0000 0002 'us'", NOT_AUTHORIZED),
    ],
)
def test_connack_says_whether_the_user_may_connect(
    guarded: Guarded, connect: Connect, step: str, written: str, answer: str
) -> None:
    client = connect(guarded.gateway)
    client.send_byte_by_byte(step, written)
    client.expect(step, answer)
    if answer == ACCEPTED:
        client.send("pings", "C0 00")
        client.expect("is answered", "D0 00")
    else:
        client.expect_end("is disconnected")
        guarded.gateway.wait_for_log("connection closed", reason="^client 'us' may not connect: ")
    assert "passwor" not in guarded.gateway.log.replace("or the password is wrong", "")


def test_a_user_is_held_to_the_access_list(guarded: Guarded, connect: Connect) -> None:
    client = connect(guarded.gateway)
    client.send("connects", "10 1E 0004 'MQTT' 04 C2 0000 0002 'p1' 0004 'pump' 0008 'password'")
    client.expect("is accepted", ACCEPTED)
    client.send(
        "subscribes to its own, to another's, and to everything",
        "82 23 0001 000D 'own/pump/p1/#' 01 000A 'own/pump/#' 01 0001 '#' 01",
    )
    client.expect("is granted its own", "90 05 0001 01 80 80")
    client.send("publishes on its own", "32 16 000F 'own/pump/p1/bar' 0002 '4.2'")
    client.expect_in_any_order("gets it back", "40 02 0002", "32 16 000F 'own/pump/p1/bar' 0001 '4.2'")
    client.send("publishes on another's", "32 13 000C 'own/pump/p2/' 0003 '4.2'")
    client.expect_end("is disconnected without PUBACK")


@pytest.mark.parametrize("client_identifier", ["+", "#", "a/b"])
def test_an_identifier_that_looks_like_a_filter_opens_nothing(
    guarded: Guarded, connect: Connect, client_identifier: str
) -> None:
    topic_filter = f"own/pump/{client_identifier}"
    length = len(client_identifier)
    client = connect(guarded.gateway)
    client.send(
        "connects",
        f"10 {28 + length:02X} 0004 'MQTT' 04 C2 0000 {length:04X} '{client_identifier}' 0004 'pump' 0008 'password'",
    )
    client.expect("is accepted", ACCEPTED)
    client.send("subscribes", f"82 {5 + len(topic_filter):02X} 0001 {len(topic_filter):04X} '{topic_filter}' 00")
    client.expect("is refused", "90 03 0001 80")


def test_identifiers_are_bound_to_users_where_that_is_asked(
    new_gateway: StartGateway, connect: Connect, tmp_path: Path
) -> None:
    gateway = Guarded(new_gateway, tmp_path, "bind_client_identifier = true", "anonymous = true").gateway
    for step, written, answer in (
        ("its own", "10 20 0004 'MQTT' 04 C2 0000 0004 'anna' 0004 'anna' 0008 'password'", ACCEPTED),
        ("its own and more", "10 22 0004 'MQTT' 04 C2 0000 0006 'anna:7' 0004 'anna' 0008 'password'", ACCEPTED),
        ("an assigned one", "10 1C 0004 'MQTT' 04 C2 0000 0000 0004 'anna' 0008 'password'", ACCEPTED),
        ("another's", "10 20 0004 'MQTT' 04 C2 0000 0004 'pump' 0004 'anna' 0008 'password'", IDENTIFIER_REJECTED),
        ("anybody's, as nobody", "10 0F 0004 'MQTT' 04 02 0000 0003 'any'", ACCEPTED),
    ):
        client = connect(gateway)
        client.send(step, written)
        client.expect(step, answer)


# -- paho --------------------------------------------------------------------------------------------------------------


class Paho:
    """A paho client, and what happened to it."""

    def __init__(self, name: str, user: str | None, password: str | None, level: int = mqtt.MQTTv311) -> None:
        self.happened: queue.Queue[str] = queue.Queue()
        happened = self.happened  # the callbacks hold the queue alone: the client then goes, with its sockets, at once
        self.client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id=name, protocol=level)
        if user is not None:
            self.client.username_pw_set(user, password)
        self.client.on_connect = lambda _client, _data, _flags, reason, _properties: happened.put(str(reason))
        self.client.on_message = lambda _client, _data, message: happened.put(message.payload.decode())
        self.client.on_subscribe = lambda _c, _d, _n, reasons, _properties: happened.put(str(reasons[0]))

    def connect(self, gateway: Gateway) -> str:
        self.client.connect("127.0.0.1", gateway.port)
        self.client.loop_start()
        return self.next()

    def next(self) -> str:
        return self.happened.get(timeout=PATIENCE_S)


@pytest.fixture
def new_paho() -> Iterator[type[Paho]]:
    made: list[Paho] = []

    class Made(Paho):
        def __init__(self, name: str, user: str | None, password: str | None, level: int = mqtt.MQTTv311) -> None:
            super().__init__(name, user, password, level)
            made.append(self)

    yield Made
    for each in made:
        each.client.disconnect()
        each.client.loop_stop()


@pytest.mark.parametrize("level", [mqtt.MQTTv31, mqtt.MQTTv311])
def test_paho_logs_in_publishes_and_is_refused_as_its_answers_say(
    guarded: Guarded, new_paho: type[Paho], level: int
) -> None:
    anna, pump = (new_paho(name, name, "password", level) for name in ("anna", "pump"))
    assert anna.connect(guarded.gateway) == "Success"
    assert pump.connect(guarded.gateway) == "Success"
    anna.client.subscribe("own/pump/pump/#", 2)
    assert anna.next() == "Granted QoS 2"
    for qos in (0, 1, 2):
        pump.client.publish("own/pump/pump/bar", str(qos), qos).wait_for_publish(PATIENCE_S)
        assert anna.next() == str(qos)
    assert new_paho("p2", "pump", "wrong", level).connect(guarded.gateway) == "Bad user name or password"
    assert new_paho("p3", None, None, level).connect(guarded.gateway) == "Not authorized"
    assert new_paho("anna", "pump", "password", level).connect(guarded.gateway) == "Client identifier not valid"
    pump.client.publish("own/pump/pump/bar", "still there", 1)
    assert anna.next() == "still there"


# -- files that change -------------------------------------------------------------------------------------------------


def test_a_user_is_added_changed_and_removed_while_the_gateway_runs(guarded: Guarded, connect: Connect) -> None:
    gateway = guarded.gateway
    as_eve = "10 19 0004 'MQTT' 04 C2 0000 0002 'ev' 0003 'eve' 0004 '{}'"
    anna = connect(gateway, "anna")
    anna.send("connects", "10 1E 0004 'MQTT' 04 C2 0000 0002 'an' 0004 'anna' 0008 'password'")
    anna.expect("is accepted", ACCEPTED)
    _expect_connack(connect(gateway), as_eve.format("Zq7x"), WRONG_CREDENTIALS)
    guarded.command("add", "eve", text="Zq7x\n")
    gateway.wait_for_log("file read again", file="users")
    eve = connect(gateway, "eve")
    _expect_connack(eve, as_eve.format("Zq7x"), ACCEPTED)
    guarded.command("add", "eve", text="Yw3k\n")
    eve.expect_end("is disconnected, for her password has changed")
    gateway.wait_for_log("file read again", file="users", count=2)
    _expect_connack(connect(gateway), as_eve.format("Zq7x"), WRONG_CREDENTIALS)
    again = connect(gateway, "eve")
    _expect_connack(again, as_eve.format("Yw3k"), ACCEPTED)
    guarded.command("remove", "eve")
    again.expect_end("is disconnected, for she is no user any more")
    anna.send("pings", "C0 00")
    anna.expect("is still there", "D0 00")
    assert "Zq7x" not in gateway.log
    assert "Yw3k" not in gateway.log


def test_sighup_takes_up_the_access_list_and_a_wrong_one_changes_nothing(guarded: Guarded, connect: Connect) -> None:
    gateway = guarded.gateway
    client = connect(gateway)
    client.send("connects", "10 1E 0004 'MQTT' 04 C2 0000 0002 'an' 0004 'anna' 0008 'password'")
    client.expect("is accepted", ACCEPTED)
    client.send("subscribes", "82 0A 0001 0005 'all/#' 00")
    client.expect("is granted", "90 03 0001 00")
    guarded.rules.write_text("[[rule]]\npublsh = 'all/#'\n", encoding="utf-8")
    gateway.signal(signal.SIGHUP)
    gateway.wait_for_log("file refused", file="access.toml", reason="unknown key 'rule#1.publsh'")
    client.send("publishes", "30 08 0005 'all/1' 'A'")
    client.expect("gets it", "30 08 0005 'all/1' 'A'")
    guarded.rules.write_text("[[rule]]\npublish = 'all/#'\nsubscribe = 'other'\n", encoding="utf-8")
    gateway.signal(signal.SIGHUP)
    gateway.wait_for_log("file read again", file="access.toml")
    client.send("publishes, pings and publishes where it may not", "30 08 0005 'all/1' 'B'", "C0 00")
    client.expect("gets the answer alone: the subscription brings nothing now", "D0 00")
    client.send("publishes where it may not", "30 08 0005 'own/1' 'C'")
    client.expect_end("is disconnected")


# -- storms ------------------------------------------------------------------------------------------------------------


def test_a_storm_of_wrong_logins_holds_up_nobody_who_is_connected(
    new_gateway: StartGateway, tmp_path: Path, connect: Connect
) -> None:
    """200 wrong passwords against hashes of the usual cost, all at once; QoS 1 round trips of another client go on.

    None of them waits for the storm, which takes 20 ms of a core for each login, and none of that is the event loop's.
    """
    guarded = Guarded(new_gateway, tmp_path, "[mqtt]", "connect_timeout_s = 120")
    gateway = guarded.gateway
    guarded.command("add", "anna", text="password\n")
    gateway.wait_for_log("file read again", file="users")
    sensor = connect(gateway, "the sensor")
    sensor.send("connects", "10 1E 0004 'MQTT' 04 C2 0000 0002 'an' 0004 'anna' 0008 'password'")
    sensor.expect("is accepted", ACCEPTED)
    storm = [connect(gateway, f"attacker {number}") for number in range(STORM)]
    for number, attacker in enumerate(storm):
        attacker.send("tries", f"10 1E 0004 'MQTT' 04 C2 0000 0002 'xx' 0004 'anna' 0008 '{number:08}'")
    for _ in range(10):
        sensor.send("publishes", "32 0A 0005 'all/1' 0007 'A'")
        sensor.expect("is acknowledged", "40 02 0007")
    assert not all(attacker.has_something for attacker in storm), "ten round trips waited for all the logins"
    event_loop_s, others_s = _processor_s(gateway)
    for attacker in storm[:ANSWERED]:
        attacker.expect("is told that the password is wrong", WRONG_CREDENTIALS)
    later_event_loop_s, later_others_s = _processor_s(gateway)
    assert later_event_loop_s - event_loop_s < later_others_s - others_s, "the event loop checked passwords"
    lines = [line for line in gateway.logged("connection closed") if "may not connect" in line["reason"]]
    minutes = 1 + len({line["at"][:16] for line in lines})  # a minute may end between two of them
    assert 0 < len(lines) <= LINES_OF_ONE * minutes, "the log does not grow with the storm"


def test_a_known_device_is_let_in_while_logins_wait_and_more_than_can_wait_are_told_so(
    guarded: Guarded, connect: Connect
) -> None:
    gateway = guarded.gateway
    guarded.command("add", "pump", text="password\n")
    gateway.wait_for_log("file read again", file="users")
    known = "10 1E 0004 'MQTT' 04 C2 0000 0002 'p1' 0004 'pump' 0008 'password'"
    _expect_connack(connect(gateway), known, ACCEPTED)
    storm = [connect(gateway, f"attacker {number}") for number in range(400)]
    for number, attacker in enumerate(storm):
        attacker.send("tries", f"10 1E 0004 'MQTT' 04 C2 0000 0002 'xx' 0004 'pump' 0008 '{number:08}'")
    storm[-1].expect("is told that too many wait", UNAVAILABLE)
    _expect_connack(connect(gateway), known, ACCEPTED)
    assert not all(attacker.has_something for attacker in storm), "it waited behind them"
    storm[0].expect("is told that the password is wrong", WRONG_CREDENTIALS)
    gateway.restart()
    assert (gateway.data / "recent-logins").stat().st_size == 37 + 8 + 1 + 8, "pump, from one network"
    told = [record for record in trail_records(gateway.data / "trail") if record["kind"] == "logins_refused"]
    assert {(record["event"], record["user_class"], record["network"]) for record in told} == {
        ("wrong_credentials", "known", "127.0.0.0/24"),
        ("busy", "known", "127.0.0.0/24"),
    }
    assert sum(record["logins"] for record in told) <= len(storm)


def _expect_connack(client: WireClient, written: str, answer: str) -> None:
    client.send("connects", written)
    client.expect("is answered", answer)


def _processor_s(gateway: Gateway) -> tuple[float, float]:
    """What the event loop has had of the processor, and what all other threads have had, ended ones too (proc(5))."""
    process = Path(f"/proc/{gateway.process_identifier}")
    in_all, event_loop = (
        sum(map(int, stat.read_text().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
        for stat in (process / "stat", process / "task" / process.name / "stat")
    )
    return event_loop, in_all - event_loop


def test_simulated_sensors_log_in_as_a_user(guarded: Guarded, tmp_path: Path) -> None:
    guarded.rules.write_text('[[rule]]\nuser = "pump"\npublish = "#"\nsubscribe = "#"\n', encoding="utf-8")
    guarded.gateway.signal(signal.SIGHUP)
    guarded.gateway.wait_for_log("file read again", file="access.toml")
    password = tmp_path / "password"
    command = ("simulate", "--port", guarded.gateway.port, "--sensors", "2", "--rate", "20", "--qos", "2")
    command += ("--seconds", "0.2", "--user", "pump")
    for text, exit_code in (("password\n", 0), ("passwort\n", 1)):
        password.write_text(text, encoding="utf-8")
        ended = rfhbridge(*command, "--password-file", password)
        assert ended.returncode == exit_code, ended.stderr
    assert "Bad user name or password" in ended.stderr
    assert rfhbridge(*command).returncode == 2
