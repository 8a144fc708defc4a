"""mosquitto_pub and mosquitto_sub as they come, at every protocol version and QoS, with and without TLS."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conftest import MosquittoClients
from tests.end_to_end.clients.certificates import Certificates
from tests.end_to_end.clients.streams import Seen, Sent
from tests.end_to_end.conftest import Connect, MosquittoPublish, StartGateway
from tests.end_to_end.gateway_process import Gateway

PATIENCE_S = 30
VERSIONS = ["mqttv31", "mqttv311", "mqttv5"]

Watch = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def subscribe(mosquitto_clients: MosquittoClients) -> Iterator[Watch]:
    """Starts mosquitto_sub; with -d it says on its output when it is subscribed, line by line thanks to stdbuf."""
    unbuffered = shutil.which("stdbuf")
    if unbuffered is None:
        pytest.skip("stdbuf (coreutils) is not installed: mosquitto_sub would not say when it is subscribed")
    started: list[subprocess.Popen[str]] = []

    def run(gateway: Gateway, *arguments: str) -> subprocess.Popen[str]:
        command = [unbuffered, "-oL", str(mosquitto_clients.subscribe), "-h", "127.0.0.1", "-p", str(gateway.port)]
        command += arguments
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8"
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.wait(PATIENCE_S)
        if process.stdout is not None:
            process.stdout.close()


def _wait_for(process: subprocess.Popen[str], text: str) -> None:
    """Reads the output up to a line with the text; pytest's own time-out is the deadline."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if text in line:
            return
    raise AssertionError(f"{text!r} never came: {''.join(seen)}")


def _output(process: subprocess.Popen[str]) -> list[str]:
    """What it printed, when it has ended by itself (-C), without the lines of -d."""
    output, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, output
    return [line for line in output.splitlines() if not line.startswith(("Client ", "Subscribed "))]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("published", [0, 1, 2])
@pytest.mark.parametrize("wanted", [0, 1, 2])
def test_a_message_comes_at_the_lower_qos(
    gateway: Gateway,
    mosquitto_publish: MosquittoPublish,
    subscribe: Watch,
    version: str,
    published: int,
    wanted: int,
) -> None:
    topic = f"mo/{version}/{published}{wanted}"
    watcher = subscribe(gateway, "-V", version, "-t", topic, "-q", str(wanted), "-C", "1", "-F", "%t %q %r %p", "-d")
    _wait_for(watcher, "SUBACK")
    mosquitto_publish(gateway, "-V", version, "-t", topic, "-q", str(published), "-m", "21.5 °C")
    assert _output(watcher) == [f"{topic} {min(published, wanted)} 0 21.5 °C"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_retained_message_waits_for_the_subscriber_and_can_be_deleted(
    gateway: Gateway, mosquitto_publish: MosquittoPublish, subscribe: Watch, version: str
) -> None:
    topic = f"mo/{version}/retained"
    mosquitto_publish(gateway, "-V", version, "-t", topic, "-q", "1", "-r", "-m", "on")
    first = subscribe(gateway, "-V", version, "-t", f"mo/{version}/+", "-q", "2", "-C", "1", "-F", "%q %r %p")
    assert _output(first) == ["1 1 on"]
    mosquitto_publish(gateway, "-V", version, "-t", topic, "-q", "1", "-r", "-n")
    second = subscribe(gateway, "-V", version, "-t", topic, "-C", "1", "-F", "%r %p", "-d")
    _wait_for(second, "SUBACK")
    mosquitto_publish(gateway, "-V", version, "-t", topic, "-m", "end")
    assert _output(second) == ["0 end"]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_will_of_a_killed_client_is_published(gateway: Gateway, subscribe: Watch, version: str) -> None:
    watcher = subscribe(gateway, "-V", version, "-t", f"mo/{version}/will", "-q", "2", "-C", "1", "-F", "%q %p", "-d")
    _wait_for(watcher, "SUBACK")
    will = ("--will-topic", f"mo/{version}/will", "--will-payload", "gone", "--will-qos", "2")
    doomed = subscribe(gateway, "-V", version, "-t", "mo/none", "-d", *will)
    _wait_for(doomed, "SUBACK")
    doomed.kill()
    assert _output(watcher) == ["2 gone"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_persistent_session_gets_what_was_published_before_and_after_a_restart(
    new_gateway: StartGateway, tmp_path: Path, mosquitto_publish: MosquittoPublish, subscribe: Watch, version: str
) -> None:
    configuration = tmp_path / "rfhbridge.toml"
    configuration.write_text('[mqtt]\nversions = ["3.1", "3.1.1", "5"]\n')
    gateway = new_gateway("--config", str(configuration)).start()
    session = ("-V", version, "-i", "keeper", "-c", "-q", "2", "-t", "mo/#")
    first = subscribe(gateway, *session, "-d")
    _wait_for(first, "SUBACK")
    first.kill()
    first.wait(PATIENCE_S)
    for qos in (1, 2):
        mosquitto_publish(gateway, "-V", version, "-t", "mo/a", "-q", str(qos), "-m", f"before {qos}")
    gateway.kill_and_restart()
    for qos in (1, 2):
        mosquitto_publish(gateway, "-V", version, "-t", "mo/b", "-q", str(qos), "-m", f"after {qos}")
    gateway.restart()
    second = subscribe(gateway, *session, "-C", "4", "-F", "%q %p")
    output = _output(second)  # one of QoS 2 is printed at its PUBREL, when later ones of QoS 1 have come
    assert sorted(output, key=lambda line: line[0]) == ["1 before 1", "1 after 1", "2 before 2", "2 after 2"]


def test_a_thousand_lines_at_qos_2_keep_their_order(
    gateway: Gateway, mosquitto_publish: MosquittoPublish, subscribe: Watch
) -> None:
    lines = [f"line {number}" for number in range(1_000)]
    watcher = subscribe(gateway, "-t", "mo/lines", "-q", "2", "-C", str(len(lines)), "-d")
    _wait_for(watcher, "SUBACK")
    mosquitto_publish(gateway, "-t", "mo/lines", "-q", "2", "-l", text="\n".join(lines) + "\n")
    assert _output(watcher) == lines


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("transport", ["tcp", "tls"])
def test_a_thousand_messages_of_three_publishers_at_once_come_once_and_in_order(
    gateway: Gateway,
    certificates: Certificates,
    mosquitto_publish: MosquittoPublish,
    subscribe: Watch,
    version: str,
    transport: str,
) -> None:
    """mosquitto_pub has one QoS for all its lines: one for each of them."""
    sent = Sent(f"mo/{version}/{transport}", 1_000, (0, 1, 2))
    given = ["-V", version, "-t", sent.name]
    if transport == "tls":
        port = gateway.wait_for_log("listener opened", name="^tls$")["port"]
        given += ["-p", str(port), "--cafile", str(certificates.authority)]
    watcher = subscribe(gateway, *given, "-q", "2", "-C", str(sent.count), "-F", "%q %p", "-d")
    _wait_for(watcher, "SUBACK")

    def publish(qos: int) -> None:
        lines = [f"{number}\n" for number in range(sent.count) if sent.qos(number) == qos]
        mosquitto_publish(gateway, *given, "-q", str(qos), "-l", text="".join(lines))

    with ThreadPoolExecutor() as at_once:
        list(at_once.map(publish, (0, 1, 2)))
    came = [line.split() for line in _output(watcher)]
    seen = Seen(acknowledged=list(range(sent.count)), received=[(int(number), int(qos)) for qos, number in came])
    assert seen.faults(sent) == []


def test_two_clients_of_different_versions_understand_each_other(
    gateway: Gateway, connect: Connect, mosquitto_publish: MosquittoPublish, subscribe: Watch
) -> None:
    watcher = subscribe(gateway, "-V", "mqttv31", "-t", "mo/old", "-q", "1", "-C", "1", "-d")
    _wait_for(watcher, "SUBACK")
    client = connect(gateway)
    client.send("connects with 3.1.1", "10 10 0004 'MQTT' 04 02 0000 0004 'mo01'")
    client.expect("is accepted", "20 02 00 00")
    client.send("publishes", "32 0C 0006 'mo/old' 0001 'hi'")
    client.expect("gets PUBACK", "40 02 0001")
    assert _output(watcher) == ["hi"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_message_goes_both_ways_over_tls(
    gateway: Gateway,
    certificates: Certificates,
    mosquitto_publish: MosquittoPublish,
    subscribe: Watch,
    version: str,
) -> None:
    port = gateway.wait_for_log("listener opened", name="^tls$")["port"]
    secure = ("-p", str(port), "--cafile", str(certificates.authority), "-V", version, "-t", f"mo/{version}/tls")
    watcher = subscribe(gateway, *secure, "-q", "2", "-C", "1", "-F", "%q %p", "-d")
    _wait_for(watcher, "SUBACK")
    mosquitto_publish(gateway, *secure, "-q", "2", "-m", "in secret")
    assert _output(watcher) == ["2 in secret"]


def test_properties_of_mqtt_5_come_as_they_were_given(
    gateway: Gateway, mosquitto_publish: MosquittoPublish, subscribe: Watch
) -> None:
    to_5 = ("-V", "mqttv5", "-t", "mo/properties", "-q", "1")
    watcher = subscribe(
        gateway, *to_5, "-C", "1", "-F", "%C|%R|%D|%P|%S|%p", "-d", "-D", "subscribe", "subscription-identifier", "7"
    )
    _wait_for(watcher, "SUBACK")
    given = {"content-type": "text/plain", "response-topic": "mo/answers", "correlation-data": "42"}
    properties = [part for name, value in given.items() for part in ("-D", "publish", name, value)]
    mosquitto_publish(gateway, *to_5, "-m", "21.5", *properties, "-D", "publish", "user-property", "unit", "°C")
    assert _output(watcher) == ["text/plain|mo/answers|42|unit:°C|7|21.5"]
