"""Many messages at once through the gateway, by clients of others, and what became of each.

Clients that are not Python are small programs in folders beside this, which deploy/setup/clients.sh builds. A program
is given a version (3.1, 3.1.1 or 5), a transport (tcp, tls, websocket, secure-websocket), the gateway's port on
127.0.0.1, the file of the authority's certificate, a name, a count and digits of QoS.

As client NAME-watcher it subscribes to NAME/# at QoS 2. When that is granted it publishes messages 0 to count - 1 as
client NAME-publisher, as fast as the client takes them: number n to NAME/(n modulo 7), with n in decimal as payload, at
the QoS of the digit n modulo their count. After all acknowledgements it publishes "end" to NAME/end at QoS 2, and ends
with 0 when the watcher has that. It prints {"acknowledged": n} when n has come to its end, at QoS 0 when the client has
taken it, and {"received": n, "qos": q} when the watcher gets it.
"""

import itertools
import json
import os
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.end_to_end.clients.client import PATIENCE_S, Client

_BUILT: Final = Path(__file__).resolve().parents[3] / ".venv" / "clients"
_TOPICS: Final = 7
_LAST: Final = b"end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A client's program: whose folder in .venv/clients it is in ({built} in its command), and what it speaks."""

    toolchain: str
    command: tuple[str, ...]
    versions: tuple[str, ...]

    @property
    def why_missing(self) -> str:
        """Why it cannot be used here; empty where it can."""
        folder = _BUILT / self.toolchain
        if (folder / "stamp").exists():
            return ""
        unavailable = folder / "unavailable"
        return unavailable.read_text().strip() if unavailable.exists() else f"{folder} is not built (make setup)"


def _in_java(name: str, *versions: str) -> Program:
    path = os.pathsep.join(("{built}/classes", "{built}/jars/*"))
    return Program(toolchain="java", command=("java", "-XX:TieredStopAtLevel=1", "-cp", path, name), versions=versions)


PROGRAMS: Final = {
    "rumqttc": Program(toolchain="rust", command=("{built}/target/debug/rumqttc-stream",), versions=("3.1.1", "5")),
    "paho.mqtt.golang": Program(toolchain="go", command=("{built}/paho3",), versions=("3.1", "3.1.1")),
    "paho.golang": Program(toolchain="go", command=("{built}/paho5",), versions=("5",)),
    "hivemq": _in_java("HiveMq", "3.1.1", "5"),
    "paho-java-v3": _in_java("PahoV3", "3.1", "3.1.1"),
    "paho-java-v5": _in_java("PahoV5", "5"),
}


@dataclass(frozen=True, slots=True)
class Sent:
    """What was published under a name: `levels` are taken in turn."""

    name: str
    count: int
    levels: Sequence[int]

    def qos(self, number: int) -> int:
        return self.levels[number % len(self.levels)]

    def topic(self, number: int) -> str:
        return f"{self.name}/{number % _TOPICS}"


@dataclass(slots=True)
class Seen:
    """Numbers of messages in the order in which they were acknowledged, and came: the latter with their QoS."""

    acknowledged: list[int] = field(default_factory=list)
    received: list[tuple[int, int]] = field(default_factory=list)

    def faults(self, sent: Sent) -> list[str]:
        """What is wrong, in words; empty when each message was acknowledged once and came once, in its place.

        Of different QoS the order is not compared: many clients give a message of QoS 2 to the application at PUBREL.
        """
        numbers = range(sent.count)
        acknowledged, came = Counter(self.acknowledged), Counter(number for number, _ in self.received)
        ends = {number: acknowledged[number] for number in numbers if acknowledged[number] != 1}
        faults = [f"{number} was acknowledged {times} times" for number, times in ends.items()]
        faults += [f"{number} came {came[number]} times" for number in numbers if came[number] != 1]
        faults += [f"{number} came and was not sent" for number in came if number not in numbers]
        faults += [f"{number} came at QoS {qos}" for number, qos in self.received if qos != sent.qos(number)]
        for level in sorted(set(sent.levels)):
            of_level = [number for number, qos in self.received if qos == level]
            pairs = itertools.pairwise(of_level)
            faults += [f"{later} came before {number} at QoS {level}" for later, number in pairs if later > number]
        return faults


def by_program(program: Program, sent: Sent, *, version: str, transport: str, port: int, authority: Path) -> Seen:
    levels = "".join(map(str, sent.levels))
    given = [version, transport, str(port), str(authority), sent.name, str(sent.count), levels]
    command = [part.replace("{built}", str(_BUILT / program.toolchain)) for part in program.command]
    done = subprocess.run([*command, *given], capture_output=True, timeout=PATIENCE_S, check=False, text=True)
    assert done.returncode == 0, done.stderr
    seen = Seen()
    for said in map(json.loads, done.stdout.splitlines()):
        if "acknowledged" in said:
            seen.acknowledged.append(said["acknowledged"])
        else:
            seen.received.append((said["received"], said["qos"]))
    return seen


def by_adapter(watcher: Client, publisher: Client, sent: Sent) -> Seen:
    """The same with clients that are connected. They do not tell which message was acknowledged, only that all were."""
    watcher.subscribe(f"{sent.name}/#", 2)
    for number in range(sent.count):
        publisher.begin_publish(sent.topic(number), b"%d" % number, sent.qos(number))
    publisher.finish_publish()
    publisher.publish(f"{sent.name}/end", _LAST, 2)
    seen = Seen(acknowledged=list(range(sent.count)))
    while (message := watcher.next_message()).payload != _LAST:
        seen.received.append((int(message.payload), message.qos))
    return seen
