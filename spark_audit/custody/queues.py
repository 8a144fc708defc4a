"""The messages on the queues of applications and on the dead-letter queue: those that came, went, and were counted.

    comes    MQPUT, a copy for a subscriber, a converted message, a dead letter, a dead letter that is put back
    goes     MQGET, expiry, an operator's order, conversion, a dead letter that is put back

Each message has a number, so the sums are of known messages. Of the messages that were there before the records began
only a number is known, `others`: the next stock-take gives it. If it is unknown whether a queue has lost a message,
both sums are right. Each stock-take is compared with the sums, and then the next sums begin with it.

A copy names the queue that its subscriber named, which may be an alias of another one. Until a record of another kind
names it, a queue is not proved, and its messages may be on any other.

The queues of MQTT clients are not here (lanes.py), nor those that the gateway and its channels keep for themselves.
Held dead letters count as being on the dead-letter queue. Source: spark_audit/record/kinds.py.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from spark_audit.custody.findings import Custody, Finding, message

Record = Mapping[str, Any]
DEAD_LETTERS: Final = "SYSTEM.DEAD.LETTER.QUEUE"
_HELD: Final = "SYSTEM.RFHBRIDGE.HELD"
#: The first letters of queues that the gateway keeps for itself, or whose messages the broker takes at once.
_OF_GATEWAY: Final = ("RFHBRIDGE.", "SYSTEM.RFHBRIDGE.", "SYSTEM.BROKER.")
#: Orders whose `message_ids` have no further record.
_GETS: Final = "QUEUE GET"
#: Orders that make a queue.
_MAKES: Final = ("QUEUE DEFINE", "DEFINE QLOCAL", "DEFINE QLOCAL REPLACE")
#: Orders after which anything may be on queues: damaged messages are set aside, or dead letters go elsewhere.
_UNTOLD: Final = ("QUEUE VERIFY", "ALTER QMGR")


@dataclass(slots=True)
class Contents:
    """The messages on a queue: known ones by number, each with its persistence, and `least` to `most` others."""

    numbered: dict[str, bool | None] = field(default_factory=dict)
    least: int = 0
    most: int = 0
    #: Whether records tell of its messages, so that there can be none that they do not tell of.
    is_told: bool = False
    #: Whether there is a queue of that name, and no alias.
    is_proved: bool = False

    def lose_one(self, *, for_certain: bool) -> bool:
        """One of the others has gone, or may have. Returns whether there was one."""
        had = self.most > 0
        self.least = max(self.least - 1, 0)
        self.most = max(self.most - for_certain, 0)
        return had


class Queues:
    """The queues that the trail tells of."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets everything, because records are missing: there may be other messages now."""
        self._queues: dict[str, Contents] = {}
        self._of_message: dict[str, str] = {}
        #: Queues of which the next stock-take is not compared. None: of all.
        self._doubtful: set[str] | None = None

    def put(
        self, message_id: str | None, queue: str, *, is_persistent: bool | None, may_be_alias: bool = False
    ) -> None:
        """A message came on a queue."""
        if message_id is not None and not queue.startswith(_OF_GATEWAY):
            contents = self._contents(queue)
            contents.is_told = True
            contents.is_proved = contents.is_proved or not may_be_alias
            self._forget(message_id)
            contents.numbered[message_id] = is_persistent
            self._of_message[message_id] = queue

    def put_back(self, record: Record) -> None:
        """A dead letter was put back on its queue; if that is the broker's, it does not stay there."""
        self._end(record["dead_letter_id"], DEAD_LETTERS, for_certain=True)
        queue = record["queue"]
        if queue in self._queues and self._queues[queue].is_told:
            self.put(record["message_id"], queue, is_persistent=None)
        elif self._doubtful is not None:
            self._doubtful.add(queue)

    def bury(self, record: Record) -> None:
        """A message became a dead letter. It may have been on a queue before."""
        self._end(record["message_id"], record["queue"], for_certain=False)
        self.put(record["dead_letter_id"], DEAD_LETTERS, is_persistent=None)

    def get(self, record: Record) -> Iterator[Finding]:
        """An application got a message."""
        yield from self._got(record["message_id"], record["queue"], record["sequence"])

    def convert(self, record: Record) -> Iterator[Finding]:
        """The conversion service took a message and put another. The record does not name the queue of the first."""
        source = record["source_message_id"]
        if source not in self._of_message:
            places = [each for each in self._queues.values() if each.most]
            for each in places:
                each.lose_one(for_certain=False)
            if not places and self._doubtful is not None and not self._doubtful:
                yield _found(record["sequence"], message(source), "it was converted, and is on no queue")
        self._end(source, "", for_certain=False)
        self.put(record["message_id"], record["queue"], is_persistent=record["persistent"])

    def end(self, message_id: str, queue: str) -> None:
        """A message ended: it was on a queue, or could not be put there."""
        self._end(message_id, queue, for_certain=False)

    def lose(self, queue: str) -> None:
        """Messages on a queue that were not persistent are gone with the gateway's run, or with a temporary queue."""
        if queue in self._queues:
            self._lose_volatile(self._queues[queue])

    def end_of_run(self) -> None:
        """The gateway starts: messages that were not persistent are gone. Messages of unknown persistence may be."""
        for contents in self._queues.values():
            self._lose_volatile(contents)

    def operate(self, record: Record, message_ids: list[str]) -> Iterator[Finding]:
        """An operator gave an order. Most orders have a record for each message, beside `message_ids`."""
        command = (record["command"] or "").upper()
        if command.startswith(_UNTOLD):
            self._doubtful = None
        elif command in _MAKES:
            self._contents(record["queue"] or "").is_proved = True
        elif command == _GETS:
            for each in message_ids:
                yield from self._got(each, record["queue"] or "", record["sequence"])

    def count(self, counted: Mapping[str, int], of_clients: set[str], sequence: int) -> Iterator[Finding]:
        """A stock-take: messages by queue. `of_clients` are queues of MQTT clients."""
        in_all: dict[str, int] = {}
        for queue, number in counted.items():
            if not queue.startswith(_OF_GATEWAY) or queue == _HELD:
                in_all[_place(queue)] = in_all.get(_place(queue), 0) + number
        for queue in of_clients & self._queues.keys():
            self._begin_again(queue, 0)
        for queue in in_all:
            self._contents(queue).is_proved = True
        elsewhere = sum(len(each.numbered) for each in self._queues.values() if not each.is_proved)
        for queue in sorted(self._queues.keys() - of_clients):
            number, contents = in_all.get(queue, 0), self._queues[queue]
            if self._doubtful is not None and queue not in self._doubtful and contents.is_proved:
                yield from self._compared(queue, number, contents, sequence, elsewhere)
            if contents.is_proved:
                self._begin_again(queue, number)
        self._doubtful = set()

    def _compared(
        self, queue: str, number: int, contents: Contents, sequence: int, elsewhere: int
    ) -> Iterator[Finding]:
        known = len(contents.numbered)
        least, most = known + contents.least, known + contents.most
        if number < least or (number > most + elsewhere and contents.is_told):
            wanted = f"{least}" if least == most else f"{least} to {most}"
            detail = f"{number} messages were counted, and by the records {wanted} are there"
            yield _found(sequence, f"queue {queue}", detail)

    # -- inside --------------------------------------------------------------------------------------------------------

    def _contents(self, queue: str) -> Contents:
        place = _place(queue)
        return self._queues.setdefault(place, Contents(is_told=place == DEAD_LETTERS))

    def _got(self, message_id: str, queue: str, sequence: int) -> Iterator[Finding]:
        there = self._of_message.get(message_id, _place(queue))
        is_judged = self._doubtful is not None and not {there, _place(queue)} & self._doubtful
        is_judged = is_judged and (there not in self._queues or self._queues[there].is_proved)
        if is_judged and there != _place(queue):
            yield _found(sequence, message(message_id), f"it was got from queue {queue}, and is on queue {there}")
        if not self._end(message_id, queue, for_certain=True) and is_judged and not queue.startswith(_OF_GATEWAY):
            yield _found(sequence, message(message_id), f"it was got from queue {queue}, and is not there")

    def _end(self, message_id: str, queue: str, *, for_certain: bool) -> bool:
        """A message has gone from a queue, or may have gone. Returns whether there was one."""
        there = self._of_message.get(message_id)
        contents = self._queues.get(_place(queue))
        if there is None:
            return contents is not None and contents.lose_one(for_certain=for_certain)
        if contents is not None and not self._queues[there].is_proved:
            contents.lose_one(for_certain=False)
        return self._forget(message_id)

    def _lose_volatile(self, contents: Contents) -> None:
        contents.least = 0
        for message_id, is_persistent in tuple(contents.numbered.items()):
            if not is_persistent:
                self._forget(message_id)
                contents.most += is_persistent is None

    def _forget(self, message_id: str) -> bool:
        """A message is no longer known by its number. Returns whether it was."""
        there = self._of_message.pop(message_id, None)
        if there is not None:
            del self._queues[there].numbered[message_id]
        return there is not None

    def _begin_again(self, queue: str, counted: int) -> None:
        """So many messages were counted on a queue."""
        contents = self._queues[queue]
        if counted < len(contents.numbered):
            for message_id in tuple(contents.numbered):
                self._forget(message_id)
        contents.least = contents.most = counted - len(contents.numbered)


def _place(queue: str) -> str:
    return DEAD_LETTERS if queue == _HELD else queue


def _found(sequence: int, subject: str, detail: str) -> Finding:
    return Finding(Custody.QUEUES, sequence, subject, detail)
