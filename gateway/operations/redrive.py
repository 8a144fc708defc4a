"""Dead letters go back to their destinations: one unit of work takes a letter and puts its message, so once.

An MQDLH names the destination of a message. A queue of this queue manager takes it again. A message for a target goes
through its transmission queue again, with the MsgId that it had, so that the broker's answers still fit. Only the port
is used (mq_adapters/queue_manager.py). A message for a target, or for a queue that the gateway itself reads, needs a
running gateway. A message stays, with the reason, if nobody would get it or its broker refuses it again.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from gateway.bridge.commands.target_messages import APPLICATION_NAME
from gateway.bridge.messages.usr_folder import read_carried
from gateway.bridge.publish.whole_packets import FORMAT_PREFIX
from gateway.config.queue_names import shard_of
from mappings.commands.command import find_command, read_command
from mappings.errors import MappingError
from mappings.headers.chain import (
    DEAD_LETTER_HEADER_BYTES,
    FORMAT_DEAD_LETTER,
    DeadLetterHeader,
    HeaderChain,
    read_dead_letter_header,
)
from mappings.topics.topics import unescape_topic
from mappings.topics.wildcards import Scheme, matches
from mq_adapters.command_header import chain_of
from mq_adapters.message import MQEI_UNLIMITED, MQFMT_NONE, Message
from mq_adapters.queue_manager import QueueAdministration
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.transmission import transmission_message

#: Messages and bytes of one unit of work.
UNIT_MESSAGES: Final = 100
UNIT_BYTES: Final = 4 * 1024 * 1024
#: Dead letters that stay are named with their reasons up to this number, and counted beyond.
MAXIMUM_NAMED: Final = 1_000
_US: Final = 1_000_000


class CannotGoBack(Exception):
    """A dead letter that stays where it is; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A dead letter, opened: its MQDLH, the message as it was, and what its headers say of MQTT."""

    letter: Message
    header: DeadLetterHeader
    message: Message
    client: str
    topics: tuple[str, ...]

    @property
    def at_us(self) -> int:
        """When it became one, microseconds since 1970, by PutDate and PutTime (hundredths); 0 where they are none."""
        try:
            at = datetime.strptime(self.header.put_date + self.header.put_time[:6], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
            return int(at.timestamp()) * _US + int(self.header.put_time[6:8] or 0) * 10_000
        except ValueError:
            return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveSelection:
    """Which dead letters are to go back; what is None does not count. Times are microseconds since 1970."""

    reason_code: int | None = None
    client: str | None = None
    topic_filter: str | None = None
    since_us: int | None = None
    until_us: int | None = None

    def takes(self, found: DeadLetter) -> bool:
        return (
            (self.reason_code is None or found.header.reason == self.reason_code)
            and (self.client is None or found.client == self.client)
            and (self.since_us is None or found.at_us >= self.since_us)
            and (self.until_us is None or 0 < found.at_us < self.until_us)
            and (self.topic_filter is None or self._takes_topic(found, self.topic_filter))
        )

    def _takes_topic(self, found: DeadLetter, topic_filter: str) -> bool:
        return any(matches(topic_filter, topic, Scheme.MQTT) for topic in found.topics)


@dataclass(slots=True, kw_only=True)
class RedriveResult:
    """The outcome of a redrive: counts, where the letters went, and why some stay."""

    put_back: int = 0
    passed_over: int = 0
    refused: int = 0
    #: Number of messages by the queue that they were put on.
    queues: dict[str, int] = field(default_factory=dict)
    #: MsgId and reason of those that stay, the first MAXIMUM_NAMED.
    reasons: list[tuple[bytes, str]] = field(default_factory=list)

    def stays(self, msg_id: bytes, reason: str) -> None:
        self.refused += 1
        if len(self.reasons) < MAXIMUM_NAMED:
            self.reasons.append((msg_id, reason))

    def went(self, queue_name: str) -> None:
        self.put_back += 1
        self.queues[queue_name] = self.queues.get(queue_name, 0) + 1


class Redrive:
    """Puts the dead letters of one queue back.

    `ways` has the transmission queues to each target's queue manager by its name, in the order of the shards.
    """

    def __init__(
        self,
        queue_manager: QueueAdministration,
        queue_name: str,
        *,
        ways: Mapping[str, tuple[str, ...]],
        now_us: Callable[[], int],
    ) -> None:
        self._queue_manager = queue_manager
        self._queue_name = queue_name
        self._ways = ways
        self._now_us = now_us
        #: One is enough for the broker, which may refuse it.
        self._unit_messages = UNIT_MESSAGES
        self.outcome = RedriveResult()

    def run(self, selection: RedriveSelection, *, dry: bool, advance: Callable[[], object]) -> RedriveResult:
        """Goes through the queue once; `advance` is called for each dead letter. `dry`: only looks, and counts.

        Raises QueueManagerError where the queue or the connection fails; what was put back until then is counted.
        """
        for unit in self._units(selection, advance):
            if dry:
                self._look(unit)
            else:
                self._carry(unit)
        return self.outcome

    # -- inside --------------------------------------------------------------------------------------------------------

    def _units(self, selection: RedriveSelection, advance: Callable[[], object]) -> Iterator[list[DeadLetter]]:
        """The dead letters that are selected, as many at a time as one unit of work is to have."""
        unit: list[DeadLetter] = []
        size = 0
        for letter in self._queue_manager.browse(self._queue_name):
            advance()
            try:
                found = opened(letter)
            except CannotGoBack as reason:
                if selection == RedriveSelection():
                    self.outcome.stays(letter.msg_id, str(reason))
                else:
                    self.outcome.passed_over += 1
                continue
            if not selection.takes(found):
                self.outcome.passed_over += 1
                continue
            if unit and (len(unit) >= self._unit_messages or size + len(letter.body) > UNIT_BYTES):
                yield unit
                unit, size = [], 0
            unit.append(found)
            size += len(letter.body)
        if unit:
            yield unit

    def _look(self, unit: list[DeadLetter]) -> None:
        for found in unit:
            try:
                queue_name, _ = self._way_back(found)
                self._queue_manager.inquire(queue_name)
            except (CannotGoBack, QueueManagerError) as reason:
                self.outcome.stays(found.letter.msg_id, str(reason))
            else:
                self.outcome.went(queue_name)

    def _carry(self, unit: list[DeadLetter]) -> None:
        """Carries a unit of work out. One that is refused is tried again letter by letter, to find which it is."""
        try:
            queue_names = self._carried(unit)
        except (CannotGoBack, QueueManagerError) as reason:
            if isinstance(reason, QueueManagerError) and reason.reason_code == ReasonCode.MQRC_CONNECTION_BROKEN:
                raise
            self._queue_manager.back_out()
            if isinstance(reason, QueueManagerError) and reason.reason_code == ReasonCode.MQRC_SYNCPOINT_LIMIT_REACHED:
                self._unit_messages = 1
            if len(unit) == 1:
                self.outcome.stays(unit[0].letter.msg_id, _why(unit[0], reason))
                return
            for found in unit:
                self._carry([found])
            return
        for queue_name in queue_names:
            self.outcome.went(queue_name)

    def _carried(self, unit: list[DeadLetter]) -> list[str]:
        queue_manager = self._queue_manager
        queue_names = []
        queue_manager.begin()
        queue_manager.operate("queue redrive")
        for found in unit:
            queue_name, message = self._way_back(found)
            taken = queue_manager.get(self._queue_name, msg_id=found.letter.msg_id)
            if taken.body != found.letter.body:
                raise CannotGoBack("another dead letter has the same MsgId and comes first")
            queue_manager.put(queue_name, message)
            queue_names.append(queue_name)
        queue_manager.commit()
        return queue_names

    def _way_back(self, found: DeadLetter) -> tuple[str, Message]:
        """The queue that takes the message, and the message as it is put there."""
        header = found.header
        if header.format.startswith(FORMAT_PREFIX):
            raise CannotGoBack(f"it is a PUBLISH packet, which an MQTT client can send again; reason {header.reason}")
        queue_name, there = header.dest_q_name, header.dest_q_mgr_name
        if not queue_name:
            raise CannotGoBack("its MQDLH does not say where it was going")
        if there in ("", self._queue_manager.name):
            if queue_name == self._queue_name:
                raise CannotGoBack("it was going to this very queue")
            return queue_name, found.message
        ways = self._ways.get(there)
        if ways is None:
            known = ", ".join(sorted(self._ways)) or "none"
            raise CannotGoBack(f"it was going to queue manager {there}; those of targets of a running gateway: {known}")
        transmitted = transmission_message(
            found.message,
            queue_name=queue_name,
            queue_manager_name="",
            own_name=self._queue_manager.name,
            now_us=self._now_us(),
        )
        return ways[shard_of(found.client, len(ways))], transmitted


def opened(letter: Message) -> DeadLetter:
    """A dead letter with what is in it. Raises CannotGoBack for a message without an MQDLH."""
    descriptor = letter.descriptor
    if descriptor.format != FORMAT_DEAD_LETTER:
        raise CannotGoBack("it has no MQDLH")
    try:
        header = read_dead_letter_header(
            letter.body, coded_char_set_id=descriptor.coded_char_set_id, encoding=descriptor.encoding
        )
    except MappingError as error:
        raise CannotGoBack(f"its MQDLH cannot be read: {error}") from error
    inside = descriptor.replace(
        format=header.format,
        coded_char_set_id=header.coded_char_set_id,
        encoding=header.encoding,
        msg_id=letter.msg_id,
        expiry=MQEI_UNLIMITED,
    )
    message = Message(inside, letter.body[DEAD_LETTER_HEADER_BYTES:])
    client, topics = _mqtt_of(message)
    return DeadLetter(letter=letter, header=header, message=message, client=client, topics=topics)


def _why(found: DeadLetter, reason: Exception) -> str:
    """Why a dead letter stays; an earlier version kept of what MQ could not say the payload alone."""
    is_alone = found.header.format == MQFMT_NONE and found.letter.descriptor.put_appl_name.rstrip() == APPLICATION_NAME
    if is_alone and isinstance(reason, QueueManagerError) and reason.reason_code == ReasonCode.MQRC_FORMAT_ERROR:
        return f"{reason}: it is a payload alone, and nothing says its topic"
    return str(reason)


def _mqtt_of(message: Message) -> tuple[str, tuple[str, ...]]:
    """The MQTT client that the message's headers name, and the topics of its command; nothing of what is no command."""
    try:
        chain = chain_of(message)
    except MappingError:
        return "", ()
    return read_carried(chain).client, _topics_of(chain)


def _topics_of(chain: HeaderChain) -> tuple[str, ...]:
    try:
        topics = read_command(chain).topics
        folder, _ = find_command(chain)
        return topics if folder is not None else tuple(map(unescape_topic, topics))
    except MappingError:
        return ()
