"""Simulated sensors and one subscriber, as unmodified MQTT clients (paho-mqtt) of a running gateway.

Every publication carries its sensor and its number, `{"sensor": 3, "number": 17}`, so no two are alike. Sessions
outlive a broken connection, so a simulation may kill the gateway and start it again. At the end the sessions are
removed from the gateway.
"""

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from paho.mqtt.client import Client, ConnectFlags, DisconnectFlags, MQTTMessage, MQTTv311
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from gateway.cli.application import CommandFailed
from gateway.cli.simulate.simulation_counts import Publication, SimulationCounts, SimulationResult

#: How long a CONNACK or a SUBACK may take, seconds.
ANSWER_S: Final = 10.0
_POLL_S: Final = 0.05
_IN_FLIGHT: Final = 100
_RECONNECT_S: Final = (1, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to simulate: `rate` is publications a second of each sensor."""

    host: str
    port: int
    sensors: int
    rate: float
    qos: int
    seconds: float
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @property
    def publications(self) -> int:
        return max(1, round(self.sensors * self.rate * self.seconds))


class EarlyEnd:
    """The wish to end a run early, which a signal handler brings.

    An exception in the middle of a publication would leave its acknowledgement without an owner. So the wish is only
    noted while publications are sent and waited for.
    """

    def __init__(self) -> None:
        self._is_noted_only = False
        self._is_wished = False

    def wish(self) -> None:
        """Called by a signal handler. KeyboardInterrupt outside of `noted`."""
        if not self._is_noted_only:
            raise KeyboardInterrupt
        self._is_wished = True

    @contextmanager
    def noted(self) -> Iterator[None]:
        self._is_noted_only = True
        try:
            yield
        finally:
            self._is_noted_only = False

    def sleep_until(self, due_s: float) -> bool:
        """Sleeps until that time of the monotonic clock. False after a wish, which counts once."""
        while not self._is_wished and (left_s := due_s - time.monotonic()) > 0:
            time.sleep(min(left_s, _POLL_S))
        was_wished, self._is_wished = self._is_wished, False
        return not was_wished


def simulate(plan: Plan, on_progress: Callable[[int], None], early_end: EarlyEnd) -> SimulationResult:
    """Publishes by the plan, waits for publications on their way, and returns the counts.

    `on_progress` gets the number of publications sent. Raises CommandFailed if the gateway cannot be reached or
    refuses. A wish for an early end ends the publishing, and a second one ends the wait. Then the counts so far are the
    result.
    """
    run = secrets.token_hex(4)
    counts = SimulationCounts(plan.qos)
    subscriber = SimulatedClient(f"simulate-{run}-subscriber", plan, counts)
    sensors = [SimulatedClient(f"simulate-{run}-{number}", plan, counts) for number in range(plan.sensors)]
    clients = [subscriber, *sensors]
    try:
        for client in clients:
            client.join()
        subscriber.subscribe(f"simulate/{run}/#")
        with early_end.noted():
            was_published = _publish(plan, sensors, f"simulate/{run}", counts, on_progress, early_end)
            was_settled = _settle(counts, early_end)
        return counts.result(ended_early=not (was_published and was_settled))
    finally:
        for client in clients:
            client.leave()


def _settle(counts: SimulationCounts, early_end: EarlyEnd) -> bool:
    """Waits for publications on their way. False if the wait was ended early."""
    while not counts.is_settled():
        if not early_end.sleep_until(time.monotonic() + _POLL_S):
            return False
    return True


def _publish(
    plan: Plan,
    sensors: list["SimulatedClient"],
    topic: str,
    counts: SimulationCounts,
    on_progress: Callable[[int], None],
    early_end: EarlyEnd,
) -> bool:
    """Sends each publication at its time, and a late one at once. Returns whether all were sent."""
    began_s = time.monotonic()
    for index in range(plan.publications):
        if not early_end.sleep_until(began_s + index / (plan.sensors * plan.rate)):
            return False
        number, sensor = divmod(index, plan.sensors)
        counts.note_sent((sensor, number))
        sensors[sensor].publish(f"{topic}/{sensor}", (sensor, number))
        on_progress(index + 1)
    return True


class SimulatedClient:
    """One client with its thread. It connects again when its connection breaks."""

    def __init__(self, client_identifier: str, plan: Plan, counts: SimulationCounts) -> None:
        self._client_identifier = client_identifier
        self._plan = plan
        self._counts = counts
        self._answered = threading.Event()
        self._lock = threading.Lock()
        #: Publications without an acknowledgement by packet identifier, and identifiers acknowledged before they were
        #: known.
        self._in_flight: dict[int, Publication] = {}
        self._early: set[int] = set()
        self._refusal = ""
        self._has_joined = self._may_have_session = False
        self._is_leaving = False
        self._client = _client(client_identifier, plan, clean_session=False)
        self._client.max_inflight_messages_set(_IN_FLIGHT)
        self._client.reconnect_delay_set(*_RECONNECT_S)
        self._client.on_connect = self._on_connect
        self._client.on_disconnect = self._on_disconnect
        self._client.on_subscribe = self._on_subscribe
        self._client.on_publish = self._on_publish
        self._client.on_message = self._on_message

    @property
    def _gateway(self) -> str:
        return f"{self._plan.host}:{self._plan.port}"

    def join(self) -> None:
        """Connects. Raises CommandFailed if nobody answers, or if the gateway refuses."""
        try:
            self._client.connect(self._plan.host, self._plan.port)
        except OSError as error:
            raise CommandFailed(
                f"no gateway answers on {self._gateway}: {error.strerror or error} (start one: rfhbridge run)"
            ) from None
        self._may_have_session = True  # even if an interruption comes before the answer
        self._client.loop_start()
        try:
            self._await_answer("the connection")
        except CommandFailed:
            self._may_have_session = False
            raise
        self._has_joined = True

    def subscribe(self, topic_filter: str) -> None:
        """Subscribes. Raises CommandFailed if the gateway refuses or does not answer."""
        self._answered.clear()
        self._client.subscribe(topic_filter, self._plan.qos)
        self._await_answer("the subscription")

    def publish(self, topic: str, publication: Publication) -> None:
        sensor, number = publication
        sent = self._client.publish(topic, json.dumps({"sensor": sensor, "number": number}), self._plan.qos)
        with self._lock:
            if sent.mid not in self._early:
                self._in_flight[sent.mid] = publication
                return
            self._early.remove(sent.mid)
        self._counts.note_acknowledged(publication)

    def leave(self) -> None:
        """Disconnects, and removes the session with a clean one of the same name."""
        self._is_leaving = True
        self._client.disconnect()
        self._client.loop_stop()
        if self._may_have_session:
            _remove_session(self._client_identifier, self._plan)

    def _await_answer(self, what: str) -> None:
        if not self._answered.wait(ANSWER_S):
            raise CommandFailed(f"{self._gateway} did not answer {what} within {ANSWER_S:g} s (is it a gateway?)")
        if self._refusal:
            raise CommandFailed(f"{self._gateway} refused {what}: {self._refusal} (the gateway's log says why)")

    def _answer(self, reason_code: ReasonCode) -> None:
        self._refusal = str(reason_code) if reason_code.is_failure else ""
        self._answered.set()

    # -- called by paho's thread -------------------------------------------------------------------------------------

    def _on_connect(
        self, _client: Client, _userdata: object, _flags: ConnectFlags, reason: ReasonCode, _more: Properties | None
    ) -> None:
        self._answer(reason)

    def _on_disconnect(
        self, _client: Client, _userdata: object, _flags: DisconnectFlags, _reason: ReasonCode, _more: Properties | None
    ) -> None:
        if self._has_joined and not self._is_leaving:
            self._counts.note_lost_connection()

    def _on_subscribe(
        self, _client: Client, _userdata: object, _mid: int, reasons: list[ReasonCode], _more: Properties | None
    ) -> None:
        self._answer(reasons[0])

    def _on_publish(self, _client: Client, _userdata: object, mid: int, _reason: ReasonCode, _more: Properties) -> None:
        with self._lock:
            publication = self._in_flight.pop(mid, None)
            if publication is None:
                self._early.add(mid)
                return
        self._counts.note_acknowledged(publication)

    def _on_message(self, _client: Client, _userdata: object, message: MQTTMessage) -> None:
        reading = json.loads(message.payload)
        self._counts.note_received((reading["sensor"], reading["number"]))


def _client(client_identifier: str, plan: Plan, *, clean_session: bool) -> Client:
    client = Client(
        CallbackAPIVersion.VERSION2, client_id=client_identifier, clean_session=clean_session, protocol=MQTTv311
    )
    client.username_pw_set(plan.user, plan.password)
    return client


def _remove_session(client_identifier: str, plan: Plan) -> None:
    """Replaces the kept session with a clean one of the same name. A gateway that is gone keeps it."""
    client = _client(client_identifier, plan, clean_session=True)
    deadline_s = time.monotonic() + ANSWER_S
    try:
        client.connect(plan.host, plan.port)
    except OSError:
        return
    while not client.is_connected() and time.monotonic() < deadline_s:
        if client.loop(_POLL_S) is not MQTTErrorCode.MQTT_ERR_SUCCESS:
            return
    client.disconnect()
