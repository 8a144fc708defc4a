"""The payer of the records of each note, and their bytes that are charged: as an auditor reads them, not as on disk.

The code that carries out work for a client or an MQ application charges the notes of its unit of work by `trail_bytes`:
for packets and calls, for a connection that begins or ends, for a will and for the end of a session
(gateway/bridge/sessions/trail_charges.py). The amounts are estimates, measured with short names.

A message ends once: it is delivered and acknowledged, forwarded, dropped, or made a dead letter. Often the gateway's
own work ends it, long after it came. So the payer of a copy, or of a message for a target, is charged for its end in
advance. A message that is sent again has one more record, which is charged to the client that did not answer.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, NamedTuple, cast

from gateway.audit_trail.notes.notes import NoteKind, Ranges
from mq_adapters.delivery_listener import Delivery, TakenCommand
from mq_adapters.embedded.unit_of_work import Note


class Payer(StrEnum):
    """Who is charged for the records of a note."""

    CAUSE = "the client or MQ application whose work the unit of work carries out"
    IN_ADVANCE = "whoever made the copy, or put the message"
    NOBODY = "nobody"


class Charge(NamedTuple):
    """The payer, and the bytes of a note. `why`: if nobody is charged, the reason, or the bound on such records."""

    payer: Payer
    size: Callable[[tuple[Any, ...]], int] = lambda _note: 0
    why: str = ""


#: How often the records of a packet hold its header: as packet, as header of MQ, and its topic.
_COPIES_OF_HEADER: Final = 5
#: The records of a copy: put, delivered, and acknowledged (430 bytes at QoS 1, twice that at QoS 2).
#: Each of the first two has the header between three and four times.
_COPY_BYTES: Final = 1_800
_HEADERS_OF_A_COPY: Final = 7
_DELIVERED_BYTES: Final = 850
_HEADERS_OF_A_DELIVERY: Final = 4
#: The record `forwarded`, or that of a channel's dead letter.
_FORWARDED_BYTES: Final = 550
#: The record of acknowledgements, without its ranges of exchanges.
_CONFIRMED_BYTES: Final = 350
_SESSION_BYTES: Final = 370
_PROGRAM_BYTES: Final = 520
_SERVED_BYTES: Final = 770
_HEADERS_OF_A_CONVERSION: Final = 3
_COMMANDED_BYTES: Final = 800
#: The record of an answer, and what each of its topic filters adds beside its text.
_ANSWERED_BYTES: Final = 470
_ANSWERED_FILTER_BYTES: Final = 7
_REFUSED_FILTER_BYTES: Final = 10


#: The header of a publication with a topic of some 30 characters.
USUAL_HEADER_BYTES: Final = 128
#: Where the note of a delivery has the header of its packet.
_DELIVERED_HEADER: Final = 6


def copy_trail_bytes(header_bytes: int) -> int:
    """About the bytes of the records of one copy until it is acknowledged."""
    return _COPY_BYTES + _HEADERS_OF_A_COPY * header_bytes


def delivery_trail_bytes(header_bytes: int) -> int:
    """About the bytes of one delivery alone, with the header of its packet."""
    return _DELIVERED_BYTES + _HEADERS_OF_A_DELIVERY * header_bytes


def repeats_trail_bytes(notes: Iterable[Note]) -> int:
    """About the bytes of the deliveries among these notes, which are sent again."""
    return sum(
        delivery_trail_bytes(len(cast(bytes, note[_DELIVERED_HEADER])))
        for note in notes
        if note[0] == NoteKind.DELIVERED
    )


def served_trail_bytes(header_bytes: int) -> int:
    """The record of the conversion service for a message with such a header, before and after."""
    return _SERVED_BYTES + _HEADERS_OF_A_CONVERSION * header_bytes


def _flat(size: int) -> Callable[[tuple[Any, ...]], int]:
    return lambda _note: size


def _with_header(size: int, item: int) -> Callable[[tuple[Any, ...]], int]:
    return lambda note: size + _COPIES_OF_HEADER * len(note[item])


def _of_put(size: int, item: int, translation: int) -> Callable[[tuple[Any, ...]], int]:
    """Of a note whose command may be for a target."""

    def of_put(note: tuple[Any, ...]) -> int:
        end = _FORWARDED_BYTES if note[translation].destination else 0
        return size + _COPIES_OF_HEADER * len(note[item]) + end

    return of_put


def _of_copy(note: tuple[Any, ...]) -> int:
    delivery = cast(Delivery, note[4])
    if delivery.is_retained:  # charged before it is made (gateway/bridge/sessions/retained_copies.py)
        return 0
    return copy_trail_bytes(len(delivery.output_header))


def _of_ranges(note: tuple[Any, ...]) -> int:
    """Each range is written as [first,last] and a comma; the last number has the most digits."""
    ranges = cast(Ranges, note[5])
    return _CONFIRMED_BYTES + len(ranges) * (2 * len(str(ranges[-1][1])) + 4)


def _of_session(note: tuple[Any, ...]) -> int:
    """Client, user, proof, address, listener and subject of the certificate stand in the record."""
    return _SESSION_BYTES + len(note[2]) + sum(len(each) for each in note[7:12] if each)


def _of_program(note: tuple[Any, ...]) -> int:
    """Operator, names and the reason stand in the record."""
    return _PROGRAM_BYTES + sum(len(each) for each in note[4:] if isinstance(each, str))


def _of_answer(note: tuple[Any, ...]) -> int:
    """Each topic filter stands in the record, with its QoS, its code, and the rule that refused it."""
    refused = sum(_REFUSED_FILTER_BYTES + len(rule) for _, rule in note[9])
    return _ANSWERED_BYTES + len(note[2]) + refused + sum(_ANSWERED_FILTER_BYTES + len(each) for each in note[6])


def _of_command(note: tuple[Any, ...]) -> int:
    """The header stands in the record in base64."""
    taken = cast(TakenCommand, note[12])
    return _COMMANDED_BYTES + 3 * len(taken.header) // 2


def _paid(size: Callable[[tuple[Any, ...]], int]) -> Charge:
    return Charge(Payer.CAUSE, size)


def _free(why: str) -> Charge:
    return Charge(Payer.NOBODY, why=why)


_ITS_OWN: Final = "the gateway's own work: "

CHARGES: Final[Mapping[NoteKind, Charge]] = {
    NoteKind.PUBLISHED: _paid(_of_put(1_300, 5, 9)),
    NoteKind.ACCEPTED: _paid(_with_header(700, 5)),
    NoteKind.RELEASED: _paid(_of_put(1_300, 5, 9)),
    NoteKind.REQUESTED: _paid(_of_put(1_300, 6, 10)),
    NoteKind.COPIED: _paid(_of_copy),
    NoteKind.DELIVERED: Charge(Payer.IN_ADVANCE),
    NoteKind.ACKNOWLEDGED: Charge(Payer.IN_ADVANCE),
    NoteKind.CONFIRMED: _paid(_of_ranges),
    NoteKind.REFUSED: _paid(_flat(500)),
    # One that is held has a second record when it goes on. One that ends a copy is charged in advance besides.
    NoteKind.DEAD_LETTERED: _paid(_flat(1_000)),
    NoteKind.DROPPED: _paid(_flat(500)),
    NoteKind.STARTED: _free(_ITS_OWN + "one at each start"),
    NoteKind.SESSION: _paid(_of_session),
    NoteKind.SERVED: Charge(Payer.IN_ADVANCE),
    NoteKind.FORWARDED: Charge(Payer.IN_ADVANCE),
    NoteKind.RECEIVED: _free("another queue manager sends the message, by a channel that the operator has configured"),
    NoteKind.REDRIVEN: _paid(_flat(500)),
    NoteKind.REPEATED: _paid(_with_header(700, 5)),
    NoteKind.OPERATED: _paid(_flat(500)),
    NoteKind.CLOCK_JUMPED: _free("nobody's work: the wall clock of the machine jumped"),
    NoteKind.RESTORED: _free("an operator accepts a store or a trail while no gateway runs"),
    NoteKind.LOGINS_REFUSED: _free("a stranger has no account; Limit.REFUSED_LOGINS bounds them for five minutes each"),
    NoteKind.COMMANDED: _paid(_of_command),
    NoteKind.LOST: _free(_ITS_OWN + "one for each queue at a start"),
    NoteKind.STOCK: _free(_ITS_OWN + "a few at a time, of bounded length"),
    NoteKind.TOPICS_REFUSED: _free("Limit.REFUSED_TOPICS bounds them for five minutes each"),
    NoteKind.CONNECTS_REFUSED: _free("Limit.REFUSED_CONNECTS bounds them for five minutes each"),
    NoteKind.PROGRAM: _paid(_of_program),
    NoteKind.PROGRAMS_REFUSED: _free("Limit.REFUSED_PROGRAMS bounds them for five minutes each"),
    NoteKind.FILE_READ: _free("an operator has changed a file"),
    NoteKind.MQPUT: _paid(_flat(750)),
    NoteKind.MQGET: _paid(_flat(750)),
    NoteKind.INVENTORY: _free(_ITS_OWN + "once a day, of what lasts, which has limits of its own"),
    NoteKind.ANSWERED: _paid(_of_answer),
}
"""Every kind of note."""

#: The kinds that are charged to the cause of a unit of work.
_SIZES: Final = {int(kind): charge.size for kind, charge in CHARGES.items() if charge.payer is Payer.CAUSE}


def trail_bytes(notes: Iterable[Note]) -> int:
    """About the bytes of the records of these notes, and of the later records of their copies."""
    size = 0
    for note in notes:
        of_kind = _SIZES.get(int(note[0]))  # type: ignore[call-overload]  # the first item of a note is its kind
        if of_kind is not None:
            size += of_kind(note)
    return size
