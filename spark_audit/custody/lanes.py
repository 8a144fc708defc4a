"""The messages that wait for each MQTT client: every copy from the moment when it was made until it ends.

A copy waits in the lane of its subscriber. It ends when a client has it (QoS 0: delivered, QoS 1: PUBACK, QoS 2:
PUBREC), when it is dropped, and when it becomes a dead letter. A message that is not persistent ends with the gateway's
run. Messages of one priority leave a lane in their order, and those of MQTT clients all have one. A shared group has no
such order, because a message goes back to the lane of its group when a member leaves.

Lanes of applications are not kept: the trail does not tell what they take.
"""

from dataclasses import dataclass, field
from typing import Final

from spark_audit.custody.commands import Lane
from spark_audit.custody.findings import Custody

#: Commits for which a message of QoS 0 is remembered: one with several topics is delivered once for each.
_REMEMBERED_COMMITS: Final = 2


@dataclass(slots=True, eq=False)
class Waiting:
    """A copy that waits. Copies with the same `order` must stay in order; None: there is no such copy.

    `flows` are its open exchanges at QoS 1 and 2, `exchanges` all that it had, by topic.
    """

    message_id: str
    lane: Lane | None
    sequence: int
    is_persistent: bool | None
    order: tuple[object, ...] | None = None
    flows: set[int] = field(default_factory=set)
    exchanges: dict[tuple[object, ...], int] = field(default_factory=dict)
    is_sent: bool = False
    queue: str = ""


@dataclass(frozen=True, slots=True)
class Owner:
    """The client or group whose lane it is, and its session."""

    client: str
    epoch: int
    is_group: bool = False


class Lanes:
    """Every lane of an MQTT client that the trail tells of."""

    def __init__(self) -> None:
        #: Whose lane it is, by CorrelId.
        self.owners: dict[str, Owner] = {}
        self._of_owner: dict[Owner, dict[str, None]] = {}
        #: CorrelIds of sessions that began within the records, and those of which a command could not be read.
        self.fresh: set[str] = set()
        self.unread: set[str] = set()
        #: Queues on which the lanes are.
        self.queues: set[str] = set()
        #: Every message that waits. Those of a target are in no lane until they are delivered.
        self._waiting: dict[str, Waiting] = {}
        self._of_lane: dict[Lane, dict[str, Waiting]] = {}
        #: Messages of this run that came from targets, and that wait on a queue.
        self.arrived: dict[str, set[str]] = {}
        self._sent: dict[str, tuple[int, set[tuple[object, ...]]]] = {}
        #: The last message of each order that was delivered, by lane.
        self._last: dict[Lane, dict[tuple[object, ...], str]] = {}
        #: Whether the trail tells what waits in each lane, so that the sums of a stock-take must be the same.
        self.is_counted = True
        self.is_whole = True

    def clear(self) -> None:
        """Forgets everything, because records are missing: there may be other messages now."""
        self.__init__()  # type: ignore[misc]
        self.is_whole = self.is_counted = False

    def own(self, correlation_id: str, owner: Owner) -> str:
        """A registration says whose lane it is. Returns what is wrong with it, "" for nothing."""
        before = self.owners.setdefault(correlation_id, owner)
        self._of_owner.setdefault(owner, {})[correlation_id] = None
        return "" if before == owner else f"the CorrelId is that of client {before.client}, session {before.epoch}"

    def tells_all_of(self, lane: Lane) -> bool:
        """Whether a client's lane has no subscription but those that the records tell of."""
        queue, correlation_id = lane
        is_known = queue in self.queues and correlation_id not in self.unread
        return is_known and (self.is_whole or correlation_id in self.fresh)

    def of_owner(self, owner: Owner) -> list[str]:
        """The CorrelIds of a session."""
        return list(self._of_owner.get(owner, ()))

    def add(self, waiting: Waiting) -> None:
        """A message waits from now on. If its lane is unknown, lanes are no longer counted."""
        self.is_counted = self.is_counted and waiting.lane is not None
        self._waiting[waiting.message_id] = waiting
        if waiting.queue:
            self.arrived.setdefault(waiting.queue, set()).add(waiting.message_id)
        if waiting.lane is not None:
            self._of_lane.setdefault(waiting.lane, {})[waiting.message_id] = waiting

    def get(self, message_id: str) -> Waiting | None:
        return self._waiting.get(message_id)

    def end(self, message_id: str) -> Waiting | None:
        """A message waits no longer. Returns it; None if it did not wait."""
        waiting = self._waiting.pop(message_id, None)
        if waiting is not None and waiting.queue in self.arrived:
            self.arrived[waiting.queue].discard(message_id)
        if waiting is not None and waiting.lane is not None:
            of_lane = self._of_lane[waiting.lane]
            del of_lane[message_id]
            if not of_lane:
                del self._of_lane[waiting.lane]
        return waiting

    def deliver(
        self, waiting: Waiting, *, qos: int, exchange: int, to: tuple[object, ...], commit: int
    ) -> tuple[Custody, str] | None:
        """A message was sent to a client. `to`: session and topic. Returns what is wrong with it, and the control."""
        wrong = None
        if any(each[:2] != to[:2] for each in waiting.exchanges):  # of a group: another member had it, and has left
            waiting.flows.clear()
        known = waiting.exchanges.setdefault(to, exchange)
        if known != exchange:
            wrong = Custody.DELIVERIES, f"delivered in exchange {known} before"
        elif not waiting.is_sent and (before := self._overtaking(waiting)):
            wrong = Custody.ORDER, f"delivered after message {before}, which came later"
        waiting.is_sent = True
        if qos:
            waiting.flows.add(exchange)
        elif not waiting.flows:
            self.end(waiting.message_id)
            self._sent[waiting.message_id] = (commit, {to})
        return wrong

    def was_just_sent(self, message_id: str, to: tuple[object, ...]) -> bool:
        """Whether a message that ended a moment ago may be delivered for this topic too."""
        sent = self._sent.get(message_id)
        if sent is None or to in sent[1]:
            return False
        sent[1].add(to)
        return True

    def forget(self, commit: int) -> None:
        """A commit begins: messages that ended long before are forgotten."""
        if self._sent:
            self._sent = {each: sent for each, sent in self._sent.items() if sent[0] >= commit - _REMEMBERED_COMMITS}

    def acknowledge(self, message_id: str, exchange: int) -> None:
        """A client has a message at QoS 1 or 2."""
        waiting = self._waiting.get(message_id)
        if waiting is not None:
            waiting.flows.discard(exchange)
            if not waiting.flows:
                self.end(message_id)

    def _overtaking(self, waiting: Waiting) -> str:
        """The message of the same order with a later number that was delivered before this one; "" if there is none."""
        if waiting.lane is None or waiting.order is None:
            return ""
        last = self._last.setdefault(waiting.lane, {})
        before = last.get(waiting.order, "")
        last[waiting.order] = max(before, waiting.message_id)
        return before if before > waiting.message_id else ""

    def end_of_run(self) -> None:
        """The gateway starts: messages that were not persistent are gone. Messages of unknown persistence may be."""
        self.is_counted = self.is_counted and all(each.is_persistent is not None for each in self._waiting.values())
        self.arrived = {}
        for waiting in [each for each in self._waiting.values() if each.is_persistent is False]:
            self.end(waiting.message_id)

    def end_of_lane(self, lane: Lane) -> None:
        """The session of a lane has ended: nothing more comes, and the messages that wait are removed."""
        self._last.pop(lane, None)

    def depths(self, queue: str) -> dict[str, int]:
        """How many messages wait in the lanes on a queue, by CorrelId."""
        return {lane[1]: len(waiting) for lane, waiting in self._of_lane.items() if lane[0] == queue}
