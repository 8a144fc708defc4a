"""The conversion service on a real queue manager: what it moves, what it keeps, and what it never loses."""

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import ormsgpack
import pytest

from gateway.audit_trail.notes.notes import BrokerNotes, NoteKind, pack_batch
from gateway.config import Settings
from gateway.conversion.converter import REMEMBERED_HEADERS, Converter
from gateway.conversion.service import BATCH_MESSAGES, ConversionService, Outcome
from mappings.conversion.convert import Mode
from mappings.table import TABLE_VERSION, Dialect
from mq_adapters.broker.broker import Broker
from mq_adapters.embedded.engine import Engine
from mq_adapters.message import MQPER_NOT_PERSISTENT, MQPER_PERSISTENT, Message, MessageDescriptor
from tests.headers import mqrfh, mqrfh2

BODY = b"\x00\xff 21.5 \xe9"
MQRFH, MQRFH2, NONE = b"MQHRF   ", b"MQHRF2  ", b" " * 8
DEAD_LETTERS, AUDIT = "SYSTEM.DEAD.LETTER.QUEUE", "SYSTEM.RFHBRIDGE.AUDIT"


PUBLISH = mqrfh("MQPSCommand Publish MQPSPubOpts RetainPub MQPSTopic a/b ")
PUBLISH_2 = mqrfh2("<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>a/b</Topic></psc>")
STREAM = mqrfh("MQPSCommand Publish MQPSStreamName STOCK MQPSTopic a/b")
STREAM_2 = mqrfh2("<psc><Command>Publish</Command><Topic>a/b</Topic></psc>")
NAMED = mqrfh("MQPSCommand RegSub MQPSTopic a MQPSSubName pump")
NAMED_2 = mqrfh2("<psc><Command>RegSub</Command><Topic>a</Topic><SubName>pump</SubName></psc>")


class Service:
    """A conversion service, its engine, and the loop that both would have in a gateway, turned by hand."""

    def __init__(self, folder: Path, *conversions: tuple[str, str, str]) -> None:
        self.turns: deque[Callable[[], None]] = deque()
        self.engine = Engine.open(folder, call_soon=self.turns.append)
        self.engine.seal_notes = pack_batch
        self.notes = BrokerNotes(self.engine.now_us)
        tables = [{"from": source, "to": target, "header": header} for source, target, header in conversions]
        settings = Settings.model_validate({"conversion": tables})
        self.service = ConversionService(self.engine, settings.conversion, self.notes, call_soon=self.turns.append)

    def start(self) -> None:
        self.service.start()
        self.turn()

    def turn(self) -> None:
        while self.turns:
            self.turns.popleft()()

    def put(self, queue: str, body: bytes, format: bytes = MQRFH, **fields: object) -> Message:
        message = Message(MessageDescriptor(format=format, **fields), body)
        unit = self.engine.begin()
        self.engine.put(unit, self.engine.queue(queue), message)
        self.engine.submit(unit)
        self.turn()
        return message

    def messages(self, queue: str) -> list[Message]:
        return list(self.engine.browse(self.engine.queue(queue)))

    def depth(self, queue: str) -> int:
        return self.engine.queue(queue).depth

    def served(self) -> list[list[object]]:
        """The notes of the service, each with its header context as its last item."""
        found = []
        for message in self.messages(AUDIT):
            _, _, notes, contexts = ormsgpack.unpackb(message.body)
            found += [[*n[:-1], contexts[n[-1]]] for n in ormsgpack.unpackb(notes) if n[0] == NoteKind.SERVED]
        return found

    def dead_letter_notes(self) -> list[list[object]]:
        batches = [ormsgpack.unpackb(message.body) for message in self.messages(AUDIT)]
        return [note for batch in batches for note in ormsgpack.unpackb(batch[2]) if note[0] == NoteKind.DEAD_LETTERED]


@pytest.fixture
def new_service(data_folder: Path) -> Iterator[Callable[..., Service]]:
    made: list[Service] = []

    def make(*conversions: tuple[str, str, str]) -> Service:
        made.append(Service(data_folder, *(conversions or (("IN", "OUT", "mqrfh2"),))))
        return made[-1]

    yield make
    for each in made:
        each.engine.close()


@pytest.fixture
def service(new_service: Callable[..., Service]) -> Service:
    """From IN to OUT, to MQRFH2, running."""
    made = new_service()
    made.start()
    return made


def test_message_gets_its_header_in_the_other_format_and_keeps_its_body(service: Service) -> None:
    service.put("IN", PUBLISH + BODY)
    (message,) = service.messages("OUT")
    assert message.body == PUBLISH_2 + BODY
    assert message.descriptor.format == MQRFH2
    assert service.depth("IN") == 0


def test_way_back_gives_the_first_header(new_service: Callable[..., Service]) -> None:
    service = new_service(("IN", "OUT", "mqrfh"))
    service.start()
    service.put("IN", PUBLISH_2 + BODY, MQRFH2)
    (message,) = service.messages("OUT")
    assert (message.body, message.descriptor.format) == (PUBLISH + BODY, MQRFH)


def test_descriptor_stays_but_for_the_format(service: Service) -> None:
    taken = service.put(
        "IN",
        PUBLISH + BODY,
        report=3,
        msg_type=1,
        priority=4,
        correl_id=b"C" * 24,
        reply_to_q="ANSWERS",
        reply_to_q_mgr="QM2",
        user_identifier="anna",
        accounting_token=b"\x01\x02",
        appl_identity_data="identity",
        put_appl_name="pump",
        persistence=MQPER_PERSISTENT,
    )
    (message,) = service.messages("OUT")
    assert message.descriptor == taken.descriptor.replace(format=MQRFH2, msg_id=taken.msg_id)
    assert message.msg_id == taken.msg_id
    assert message.sequence != taken.sequence


def test_what_became_of_messages_is_counted_by_queue(new_service: Callable[..., Service]) -> None:
    service = new_service(("IN", "OUT", "mqrfh2"), ("OTHER", "OUT", "mqrfh"))
    service.start()
    service.put("IN", PUBLISH + BODY)
    service.put("IN", PUBLISH + BODY)
    service.put("IN", PUBLISH_2 + BODY, MQRFH2)
    service.put("IN", b"no header", MQRFH)
    assert service.service.counts() == {
        ("IN", "mqrfh2"): {Outcome.CONVERTED: 2, Outcome.UNCHANGED: 1, Outcome.REFUSED: 1},
        ("OTHER", "mqrfh"): {Outcome.CONVERTED: 0, Outcome.UNCHANGED: 0, Outcome.REFUSED: 0},
    }


@pytest.mark.parametrize("persistence", [MQPER_PERSISTENT, MQPER_NOT_PERSISTENT])
def test_persistence_and_a_chosen_msg_id_stay(service: Service, persistence: int) -> None:
    service.put("IN", PUBLISH, msg_id=b"M" * 24, persistence=persistence)
    (message,) = service.messages("OUT")
    assert (message.msg_id, message.descriptor.persistence) == (b"M" * 24, persistence)


def test_what_is_left_of_the_expiry_goes_on(new_service: Callable[..., Service]) -> None:
    service = new_service()
    service.put("IN", PUBLISH, expiry=600)
    later = service.engine.now_us() + 20_000_000
    service.engine.now_us = lambda: later
    service.start()
    (message,) = service.messages("OUT")
    assert 399 <= message.descriptor.expiry <= 400


def test_message_in_the_wanted_format_passes_unchanged(service: Service) -> None:
    service.put("IN", PUBLISH_2 + BODY, MQRFH2)
    (message,) = service.messages("OUT")
    assert (message.body, message.descriptor.format) == (PUBLISH_2 + BODY, MQRFH2)


def test_mqrfh2_without_a_command_has_the_wanted_format_already(service: Service) -> None:
    for folder in ("<usr><a>1</a></usr>", "<jms><Dst>queue:///Q</Dst></jms>"):
        service.put("IN", mqrfh2(folder) + BODY, MQRFH2)
        assert service.messages("OUT")[-1].body == mqrfh2(folder) + BODY
    assert service.depth(DEAD_LETTERS) == 0


def test_mqrfh2_without_a_command_cannot_become_an_mqrfh(new_service: Callable[..., Service]) -> None:
    service = new_service(("IN", "OUT", "mqrfh"))
    service.start()
    service.put("IN", mqrfh2("<usr><a>1</a></usr>") + BODY, MQRFH2)
    assert (service.depth("OUT"), service.depth(DEAD_LETTERS)) == (0, 1)


def test_what_waited_before_the_start_is_moved_in_order_over_several_batches(
    new_service: Callable[..., Service],
) -> None:
    service = new_service()
    count = 2 * BATCH_MESSAGES + 3
    for number in range(count):
        service.put("IN", PUBLISH + b"%d" % number, correl_id=bytes([number % 7]) * 24)
    service.start()
    assert [message.body for message in service.messages("OUT")] == [PUBLISH_2 + b"%d" % n for n in range(count)]
    assert service.depth("IN") == 0


def test_conversion_is_noted_with_its_input_output_and_what_was_dropped(service: Service) -> None:
    taken = service.put("IN", STREAM + BODY)
    (put,) = service.messages("OUT")
    ((kind, _at, taken_number, put_number, persistent, length, digest, context),) = service.served()
    assert (kind, taken_number, put_number, persistent) == (NoteKind.SERVED, taken.sequence, put.sequence, True)
    assert (length, len(digest)) == (len(BODY), 32)
    *facts, dropped = context
    assert facts == ["service", "OUT", "mqrfh2", "strict", TABLE_VERSION, 1208, 546, MQRFH, STREAM, MQRFH2, STREAM_2]
    ((name, reason),) = dropped
    assert name == "MQPSStreamName"
    assert "psc names no stream" in reason


def test_put_removal_and_note_are_one_unit_of_work(new_service: Callable[..., Service]) -> None:
    service = new_service()
    service.put("IN", PUBLISH)
    units = []
    submit = service.engine.submit
    service.engine.submit = lambda unit, done=None: (units.append(unit), submit(unit, done))[1]  # type: ignore[method-assign]
    service.start()
    (unit,) = [unit for unit in units if unit.removals]
    assert [queue.name for queue, _, _ in unit.removals] == ["IN"]
    assert "OUT" in [queue.name for queue, _ in unit.puts]
    assert [note[0] for note in unit.notes] == [NoteKind.SERVED]


@pytest.mark.parametrize(
    ("body", "format", "reason_code"),
    [
        (b"no header at all", MQRFH, 2334),
        (b"just text", b"MQSTR   ", 2334),
        (b"", NONE, 2334),
        (PUBLISH[:-3], MQRFH, 2334),
        (mqrfh('MQPSCommand Publish MQPSTopic "a'), MQRFH, 2335),
        (mqrfh("MQPSCommand RegPub MQPSTopic a"), MQRFH, 2336),
        (mqrfh("MQPSCommand Publish MQPSTopic a MQPSSeqNum 1 MQPSSeqNum 2"), MQRFH, 2338),
    ],
)
def test_what_cannot_be_converted_goes_whole_to_the_dead_letter_queue_and_holds_up_nothing(
    service: Service, body: bytes, format: bytes, reason_code: int
) -> None:
    bad = service.put("IN", body, format, correl_id=b"C" * 24, coded_char_set_id=819, expiry=500)
    service.put("IN", PUBLISH)
    (letter,) = service.messages(DEAD_LETTERS)
    assert letter.descriptor.format == b"MQDEAD  "
    assert (letter.msg_id, letter.descriptor.correl_id) == (bad.msg_id, b"C" * 24)
    header, rest = letter.body[:172], letter.body[172:]
    assert rest == body
    assert header[:8] == b"DLH \x01\x00\x00\x00"
    assert int.from_bytes(header[8:12], "little") == reason_code
    assert header[12:60] == b"IN".ljust(48)
    assert header[60:108] == b"RFHBRIDGE".ljust(48)
    assert (int.from_bytes(header[108:112], "little"), int.from_bytes(header[112:116], "little")) == (546, 819)
    assert header[116:124] == format
    assert [message.body for message in service.messages("OUT")] == [PUBLISH_2]
    (note,) = service.dead_letter_notes()
    assert note[5:] == ["IN", bad.sequence, letter.sequence, reason_code]


def test_message_whose_report_says_discard_is_discarded_and_the_audit_knows(service: Service) -> None:
    service.put("IN", b"junk", MQRFH, report=0x0800_0000)
    assert (service.depth("IN"), service.depth(DEAD_LETTERS)) == (0, 0)


def test_full_target_lets_messages_wait_and_loses_none(service: Service) -> None:
    service.engine.queue("OUT").maximum_depth = 2
    for number in range(5):
        service.put("IN", PUBLISH + b"%d" % number)
    assert (service.depth("OUT"), service.depth("IN"), service.depth(DEAD_LETTERS)) == (2, 3, 0)
    service.service.tick()
    service.turn()
    assert (service.depth("OUT"), service.depth("IN")) == (2, 3)
    service.engine.queue("OUT").maximum_depth = 100
    service.service.tick()
    service.turn()
    assert [message.body[-1:] for message in service.messages("OUT")] == [b"0", b"1", b"2", b"3", b"4"]
    assert service.depth("IN") == 0


def test_full_target_is_logged_once_and_so_is_its_end(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "gateway.conversion.service")
    service.engine.queue("OUT").maximum_depth = 0
    service.put("IN", PUBLISH)
    for _ in range(3):
        service.service.tick()
        service.turn()
    service.engine.queue("OUT").maximum_depth = 9
    service.service.tick()
    service.turn()
    events = [record.getMessage() for record in caplog.records]
    assert events == ["conversion waits for room from=IN full=OUT", "conversion resumed from=IN to=OUT"]


def test_full_dead_letter_queue_keeps_the_bad_message_and_lets_the_good_ones_go(service: Service) -> None:
    service.engine.queue(DEAD_LETTERS).maximum_depth = 0
    service.put("IN", b"junk")
    service.put("IN", PUBLISH)
    assert (service.depth("IN"), service.depth("OUT"), service.depth(DEAD_LETTERS)) == (1, 1, 0)
    service.engine.queue(DEAD_LETTERS).maximum_depth = 1
    service.service.tick()
    service.turn()
    assert (service.depth("IN"), service.depth("OUT"), service.depth(DEAD_LETTERS)) == (0, 1, 1)


def test_message_that_is_too_long_for_the_target_is_a_dead_letter(service: Service) -> None:
    service.engine.queue("OUT").maximum_message_bytes = len(PUBLISH_2) + 3
    service.put("IN", PUBLISH + b"1234")
    (letter,) = service.messages(DEAD_LETTERS)
    assert int.from_bytes(letter.body[8:12], "little") == 2030


def test_fault_of_the_program_costs_no_message_and_holds_up_none(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("gateway.conversion.converter.convert", lambda *_, **__: 1 // 0)
        service.put("IN", PUBLISH)
    service.put("IN", PUBLISH)
    (letter,) = service.messages(DEAD_LETTERS)
    assert int.from_bytes(letter.body[8:12], "little") == 2195
    assert service.depth("OUT") == 1
    assert "conversion crashed from=IN" in caplog.text


def test_routes_form_a_chain(new_service: Callable[..., Service]) -> None:
    service = new_service(("A", "B", "mqrfh2"), ("B", "C", "mqrfh"))
    service.start()
    service.put("A", PUBLISH + BODY)
    (message,) = service.messages("C")
    assert (message.body, message.descriptor.format) == (PUBLISH + BODY, MQRFH)
    assert (service.depth("A"), service.depth("B")) == (0, 0)


def test_target_may_be_a_stream_of_the_broker(new_service: Callable[..., Service]) -> None:
    service = new_service(("IN", "SYSTEM.BROKER.DEFAULT.STREAM", "mqrfh2"))
    Broker(service.engine, listener=service.notes).attach()
    service.engine.define("BOILER.ALARMS")
    service.put("SYSTEM.BROKER.CONTROL.QUEUE", mqrfh("MQPSCommand RegSub MQPSTopic a/* MQPSQName BOILER.ALARMS"))
    service.start()
    service.put("IN", PUBLISH + BODY)
    assert [message.body[-len(BODY) :] for message in service.messages("BOILER.ALARMS")] == [BODY]
    assert service.depth("SYSTEM.BROKER.DEFAULT.STREAM") == 0


def test_nothing_is_taken_after_the_stop(service: Service) -> None:
    service.service.stop()
    service.put("IN", PUBLISH)
    assert (service.depth("IN"), service.depth("OUT")) == (1, 0)


def test_extended_mode_is_that_of_the_table(data_folder: Path) -> None:
    converter = Converter(queue_name="OUT", to=Dialect.MQRFH2, mode=Mode.EXTENDED)
    converted = converter.converted(Message(MessageDescriptor(format=MQRFH), NAMED + BODY))
    assert (converted.header, converted.service.mode) == (NAMED_2, "extended")


def test_header_that_was_seen_before_is_not_converted_again() -> None:
    converter = Converter(queue_name="OUT", to=Dialect.MQRFH2, mode=Mode.STRICT)
    descriptor = MessageDescriptor(format=MQRFH)
    first = converter.converted(Message(descriptor, PUBLISH + b"1"))
    assert converter.converted(Message(descriptor, PUBLISH + b"another body")) is first
    other = converter.converted(Message(descriptor.replace(coded_char_set_id=819), PUBLISH))
    assert other is not first
    assert other.header[:4] == b"RFH "


def test_header_in_front_of_another_header_is_not_taken_for_the_whole(service: Service) -> None:
    """Two messages with the same MQRFH and different MQRFH2 behind it."""
    first_header = bytearray(PUBLISH)
    first_header[20:28] = MQRFH2
    for folder in ("<usr><one>1</one></usr>", "<usr><two>22</two></usr>"):
        service.put("IN", bytes(first_header) + mqrfh2(folder) + BODY)
    one, two = service.messages("OUT")
    assert b"<one>1</one>" in one.body
    assert b"<two>22</two>" in two.body
    assert one.body.endswith(BODY)


def test_memory_of_headers_is_bounded() -> None:
    converter = Converter(queue_name="OUT", to=Dialect.MQRFH2, mode=Mode.STRICT)
    for number in range(REMEMBERED_HEADERS + 10):
        converter.converted(
            Message(MessageDescriptor(format=MQRFH), mqrfh(f"MQPSCommand Publish MQPSTopic a/{number}"))
        )
    assert 0 < len(converter._remembered) <= REMEMBERED_HEADERS


def test_nothing_is_lost_or_doubled_when_the_service_starts_again(new_service: Callable[..., Service]) -> None:
    service = new_service()
    for number in range(BATCH_MESSAGES + 5):
        service.put("IN", PUBLISH + b"%d" % number)
    service.service.start()
    service.turns.popleft()()  # one batch is taken and submitted, and its commit never comes
    service.turns.clear()
    service.engine._store.close()
    service.engine.close = lambda: None  # type: ignore[method-assign]
    again = new_service()
    assert (again.depth("IN"), again.depth("OUT")) == (BATCH_MESSAGES + 5, 0)
    again.start()
    bodies = [message.body for message in again.messages("OUT")]
    assert bodies == [PUBLISH_2 + b"%d" % number for number in range(BATCH_MESSAGES + 5)]
    assert again.depth("IN") == 0
