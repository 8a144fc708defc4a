"""A trail of any number of records, as a gateway of that size writes it: for audits that are measured.

Notes are made here; from there on it is the exporter's own way: packed batches, `Chain` and `Trail`, so
that lines, hashes, segments and signed digests are what a gateway writes. Only the audit queue in between and the syncs
of its units of work are left out. The clock is the trail's own: a commit every 80 ms.

    of ten exchanges       one QoS 0, eight QoS 1, one QoS 2, from 20 clients with 50 topics each
    of the publications    half are copied for a subscriber by MQTT, delivered and acknowledged,
                           half for an application that wants MQRFH
"""

import hashlib
import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from gateway.audit_trail.notes.notes import Arrival, NoteKind, Translation, pack_batch
from gateway.audit_trail.records import Chain
from gateway.audit_trail.segment import Trail
from mappings.commands.command import FORMAT_MQRFH, FORMAT_MQRFH2, Dialect, Publish, write_command
from mq_adapters.delivery_listener import Delivery
from spark_audit.record.batch_line import summary_of

GATEWAY: Final = "0102030405060708090a0b0c"
_CLIENTS: Final = 20
_TOPICS_OF_A_CLIENT: Final = 50
_EXCHANGES_A_COMMIT: Final = 100
_COMMIT_US: Final = 80_000
#: 2026-11-20T00:00:00Z.
_BEGAN_US: Final = 1_795_132_800_000_000
_UTF_8: Final = 1208
_LITTLE_ENDIAN: Final = 546
_STREAM: Final = "SYSTEM.BROKER.DEFAULT.STREAM"
_SUBSCRIBER_QUEUE: Final = "RFHBRIDGE.SUBSCRIBER"
_APPLICATION_QUEUE: Final = "PLANT.HISTORY"
_SUBSCRIBER: Final = ("dashboard", 1)
_SUBSCRIBER_ID: Final = b"RFHS" + bytes(range(20))
_QOS: Final = (0, 1, 1, 1, 1, 1, 1, 1, 1, 2)
_PUBACK, _PUBREC, _PUBCOMP = 4, 5, 7
_PACKET_IDENTIFIERS: Final = 65_535

Note = tuple[Any, ...]


def make_trail(folder: Path, records: int, *, with_application: bool = True) -> int:
    """Writes a trail of about so many records, each of its segments with a digest; returns their exact number.

    The application never gets its copies. Without it all copies are for the subscriber by MQTT.
    """
    plant = Plant(with_application=with_application)
    chain = Chain(sequence=0, head="0" * 64)
    with Trail.open(folder, now=lambda: datetime.fromtimestamp(plant.now_us / 1_000_000, UTC)) as trail:
        for number, notes in enumerate(_commits(plant, chain, records), start=1):
            packed = pack_batch(number, notes)
            trail.append(chain.seal_batch(packed, summary_of(packed), GATEWAY), chain.head, GATEWAY)
        trail.close_segment()
    return chain.sequence


def _commits(plant: "Plant", chain: Chain, records: int) -> Iterator[list[Note]]:
    """The notes of each commit: first sessions, then traffic until the trail is long enough, then what is still due."""
    yield plant.beginning()
    while chain.sequence < records:
        yield plant.commit(_EXCHANGES_A_COMMIT)
    while notes := plant.commit(0):
        yield notes


class Facts:
    """What is the same for all publications of a topic: the header contexts of its translation and its copies."""

    def __init__(self, topic: str) -> None:
        self.packet = len(topic).to_bytes(2) + topic.encode()
        publish = Publish(topics=(topic,))
        header = write_command(publish, Dialect.MQRFH2)
        self.translations = [_translation(topic, header, persistent=qos > 0) for qos in range(3)]
        self.for_subscriber = _delivery(topic, header, _SUBSCRIBER_QUEUE, FORMAT_MQRFH2, header)
        self.for_application = _delivery(
            topic, header, _APPLICATION_QUEUE, FORMAT_MQRFH, write_command(publish, Dialect.MQRFH)
        )
        self.arrival = Arrival(
            queue=_SUBSCRIBER_QUEUE,
            correl_id=_SUBSCRIBER_ID,
            topic=topic,
            is_retained=False,
            format=FORMAT_MQRFH2,
            coded_char_set_id=_UTF_8,
            encoding=_LITTLE_ENDIAN,
            header=header,
        )

    def header(self, qos: int, identifier: int, payload_bytes: int) -> bytes:
        """Fixed and variable header of a PUBLISH; the remaining length stays below 128."""
        tail = identifier.to_bytes(2) if qos else b""
        return bytes((0x30 | qos << 1, len(self.packet) + len(tail) + payload_bytes)) + self.packet + tail


class Plant:
    """Clients that publish: each commit holds new exchanges, and what follows from the commit before."""

    def __init__(self, *, with_application: bool = True) -> None:
        self.now_us = _BEGAN_US
        self._with_application = with_application
        self._random = random.Random(6)
        self._number = self._turn = 0
        self._exchanges: Counter[str] = Counter()
        self._due: list[Note] = []
        self._topics = [
            [Facts(f"plant/line-{client:02}/boiler-{place:02}/temperature") for place in range(_TOPICS_OF_A_CLIENT)]
            for client in range(_CLIENTS)
        ]

    def beginning(self) -> list[Note]:
        """The gateway starts and its clients connect."""
        sessions = [(f"sensor-{client:02}", client + 2) for client in range(_CLIENTS)]
        return [
            (NoteKind.STARTED, self.now_us, "0.1.0", "1", hashlib.sha256(b"configuration").digest()),
            *((NoteKind.SESSION, self.now_us, *each, "opened", 4, False) for each in (_SUBSCRIBER, *sessions)),
        ]

    def commit(self, exchanges: int) -> list[Note]:
        """The next commit with so many new exchanges; no note at all where nothing is due either."""
        self.now_us += _COMMIT_US
        due, self._due = self._due, []
        notes: list[Note] = []
        confirmed: dict[tuple[str, int, int], list[list[int]]] = {}
        for each in due:
            if each[0] == NoteKind.CONFIRMED:
                confirmed.setdefault(each[2:5], []).append([each[5], each[5]])
            else:
                notes.append(each)
                self._follow(each, notes)
        notes += [(NoteKind.CONFIRMED, self.now_us, *whose, ranges) for whose, ranges in confirmed.items()]
        for _ in range(exchanges):
            self._publish(notes)
        return notes

    def _publish(self, notes: list[Note]) -> None:
        """A PUBLISH of any client: put at once, or kept until its PUBREL."""
        self._turn += 1
        client = self._turn % _CLIENTS
        name = f"sensor-{client:02}"
        of_client = self._next_exchange(name)
        facts = self._topics[client][self._random.randrange(_TOPICS_OF_A_CLIENT)]
        qos = _QOS[self._random.randrange(len(_QOS))]
        payload = b"%.3f" % self._random.uniform(10, 90)
        identifier = of_client % _PACKET_IDENTIFIERS + 1
        header = facts.header(qos, identifier, len(payload))
        at_us = self.now_us - self._random.randrange(_COMMIT_US)
        exchange = (name, client + 2, of_client)
        told = (*exchange, header, len(payload), hashlib.sha256(payload).digest())
        who = exchange[:2]
        if qos == 2:
            notes.append((NoteKind.ACCEPTED, at_us, *told))
            self._due.append((NoteKind.CONFIRMED, 0, *who, _PUBREC, exchange[2]))
            self._due.append((NoteKind.RELEASED, self.now_us + _COMMIT_US, *told, facts))
            return
        number = self._next_number()
        notes.append((NoteKind.PUBLISHED, at_us, *told, number, facts.translations[qos]))
        if qos:
            self._due.append((NoteKind.CONFIRMED, 0, *who, _PUBACK, exchange[2]))
        self._copy(notes, at_us, number, facts, qos, told[4:])

    def _copy(
        self, notes: list[Note], at_us: int, number: int, facts: Facts, qos: int, payload: tuple[int, bytes]
    ) -> None:
        """The broker's copy: for the dashboard, which gets it in the next commit, or for the application."""
        copy = self._next_number()
        if self._with_application and number % 4 < 2:
            notes.append((NoteKind.COPIED, at_us, number, copy, facts.for_application))
            return
        notes.append((NoteKind.COPIED, at_us, number, copy, facts.for_subscriber))
        exchange = self._next_exchange(_SUBSCRIBER[0])
        granted = min(qos, 1)
        identifier = exchange % _PACKET_IDENTIFIERS + 1
        header = facts.header(granted, identifier, payload[0])
        at_us = self.now_us + self._random.randrange(_COMMIT_US)
        told = (copy, header, *payload, 1, qos, facts.arrival)
        self._due.append((NoteKind.DELIVERED, at_us, *_SUBSCRIBER, exchange, *told))

    def _follow(self, note: Note, notes: list[Note]) -> None:
        """What a fact that was due brings with it: the copy behind a released put, the client's PUBACK."""
        if note[0] == NoteKind.RELEASED:
            *told, facts = note
            number = self._next_number()
            notes[-1] = (*told, number, facts.translations[2])
            self._due.append((NoteKind.CONFIRMED, 0, *told[2:4], _PUBCOMP, told[4]))
            self._copy(notes, told[1], number, facts, 2, tuple(told[6:8]))
        elif note[0] == NoteKind.DELIVERED and note[6][0] & 6:
            identifier = int.from_bytes(note[6][-2:])
            at_us = self.now_us + self._random.randrange(_COMMIT_US)
            self._due.append((NoteKind.ACKNOWLEDGED, at_us, *note[2:5], _PUBACK, identifier, note[5]))

    def _next_exchange(self, client: str) -> int:
        self._exchanges[client] += 1
        return self._exchanges[client]

    def _next_number(self) -> int:
        self._number += 1
        return self._number


def _translation(topic: str, header: bytes, *, persistent: bool) -> Translation:
    return Translation(
        command="Publish",
        topic=topic,
        queue=_STREAM,
        correl_id=bytes(24),
        persistent=persistent,
        format=FORMAT_MQRFH2,
        coded_char_set_id=_UTF_8,
        encoding=_LITTLE_ENDIAN,
        header=header,
    )


def _delivery(topic: str, header: bytes, queue: str, format: bytes, copy: bytes) -> Delivery:
    return Delivery(
        queue_name=queue,
        correl_id=_SUBSCRIBER_ID,
        topics=(topic,),
        input_format=FORMAT_MQRFH2,
        input_coded_char_set_id=_UTF_8,
        input_encoding=_LITTLE_ENDIAN,
        input_header=header,
        output_format=format,
        output_coded_char_set_id=_UTF_8,
        output_encoding=_LITTLE_ENDIAN,
        output_header=copy,
        is_retained=False,
        dropped=(),
    )
