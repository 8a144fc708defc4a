"""Reports of the broker and the queue manager to the keeper of the audit, inside their open unit of work.

The Protocol is owned here; the gateway implements it with its audit notes. An implementation appends to
`unit.notes` and does nothing else: what it appends is committed with the messages it speaks of.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from mq_adapters.embedded.unit_of_work import UnitOfWork
from mq_adapters.message import Message

if TYPE_CHECKING:  # the exporter loads this module, and no readers of headers
    from mappings.commands.response import Completion


@dataclass(slots=True, kw_only=True, eq=False)
class Delivery:
    """How publications with one header reach one subscription: made once, used for every such publication.

    It does not change. It is not frozen, because a SUBSCRIBE may need ten thousand of them.

    `input_header` is the publication's header chain as it was put, `output_header` the chain that the subscriber
    gets. The CodedCharSetId and Encoding are those of the MQMD, which describe the first header.
    `dropped` names each field that was not copied, with the reason. `conversion` says whether the format changed.
    `default_persistence` is that of the queue's definition (1: not persistent, 2: persistent) where the subscription
    leaves the persistence to the queue, and 0 elsewhere.
    """

    queue_name: str
    correl_id: bytes
    topics: tuple[str, ...]
    input_format: bytes
    input_coded_char_set_id: int
    input_encoding: int
    input_header: bytes
    output_format: bytes
    output_coded_char_set_id: int
    output_encoding: int
    output_header: bytes
    is_retained: bool
    dropped: tuple[tuple[str, str], ...]
    default_persistence: int = 0

    @property
    def conversion(self) -> bool:
        return self.input_format != self.output_format


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TakenCommand:
    """A command of an application as the broker took it off a queue, without what only one message has.

    `header` is the header chain as it was put; b"" if the broker could not read it. The CodedCharSetId and Encoding are
    those of the MQMD. `verb` is the command's name, and `filter` its content filter; "" for none.
    """

    verb: str
    queue_name: str
    topics: tuple[str, ...]
    filter: str
    format: bytes
    coded_char_set_id: int
    encoding: int
    header: bytes


class DeliveryListener(Protocol):
    """Told of each fact once, inside the unit of work that makes it true."""

    def copied(self, unit: UnitOfWork, publication: Message, copy: Message, delivery: Delivery) -> None:
        """A publication was put on a subscriber queue, converted to the subscriber's format where it differs."""
        ...

    def commanded(
        self, unit: UnitOfWork, message: Message, taken: TakenCommand, completion: "Completion", reason_code: int
    ) -> None:
        """The broker took a command of an application, and this is how it ended; `reason_code`: the first one, or 0."""
        ...

    def refused(self, unit: UnitOfWork, command: Message, verb: str, reason_code: int) -> None:
        """The broker refused a command (completion code 2)."""
        ...

    def dead_lettered(
        self, unit: UnitOfWork, message: Message, dead_letter: Message, queue_name: str, reason_code: int
    ) -> None:
        """A message that could not be put on `queue_name` went whole to the dead-letter queue."""
        ...

    def dropped(self, unit: UnitOfWork, message: Message, queue_name: str, reason: str) -> None:
        """A message ended without being delivered: it expired, or nobody may have it."""
        ...


class Unheard:
    """A DeliveryListener for a broker that nobody audits."""

    def copied(self, unit: UnitOfWork, publication: Message, copy: Message, delivery: Delivery) -> None: ...
    def commanded(
        self, unit: UnitOfWork, message: Message, taken: TakenCommand, completion: "Completion", reason_code: int
    ) -> None: ...
    def refused(self, unit: UnitOfWork, command: Message, verb: str, reason_code: int) -> None: ...
    def dead_lettered(
        self, unit: UnitOfWork, message: Message, dead_letter: Message, queue_name: str, reason_code: int
    ) -> None: ...
    def dropped(self, unit: UnitOfWork, message: Message, queue_name: str, reason: str) -> None: ...
