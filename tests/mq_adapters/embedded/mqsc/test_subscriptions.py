"""Subscriptions by command: what DEFINE SUB makes is what RegSub makes, and receives publications."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mappings.commands.command import Publish, RegisterSubscriber, write_command
from mappings.commands.options import PublicationOption, RegistrationOption
from mappings.table import Dialect
from mq_adapters import connect
from mq_adapters.broker.broker import STREAM_NAMELIST, Broker, unattended_administration
from mq_adapters.delivery_listener import Unheard
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqsc.command_server import CommandServer
from mq_adapters.embedded.unit_of_work import Departure, StateKind
from mq_adapters.message import Message, MessageDescriptor
from mq_adapters.mqsc import MqscAnswer
from mq_adapters.system_queues import CONTROL_QUEUE, DEFAULT_STREAM

PUMP = b"pump".ljust(24, b"\0")
FORMATS = {Dialect.MQRFH: b"MQHRF   ", Dialect.MQRFH2: b"MQHRF2  "}
RETAIN = PublicationOption.RETAIN_PUBLICATION


class Station:
    """An engine with a broker, and what a program or an operator does with them."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        engine.objects.publish_subscribe = lambda: unattended_administration(engine)

    def attach(self) -> None:
        Broker(self.engine, listener=Unheard()).attach()

    def answer(self, command: str, user: str = "") -> MqscAnswer:
        return CommandServer(self.engine, user).execute(command)

    def mqsc(self, command: str) -> list[str]:
        answer = self.answer(command)
        assert answer.succeeded, answer.lines
        return list(answer.lines)

    def shown(self, keyword: str, name: str = "*") -> list[str]:
        cells = " ".join(self.mqsc(f"DISPLAY SUB({name}) {keyword}")).split(f"{keyword}(")[1:]
        return [cell.partition(")")[0] for cell in cells]

    def put(self, queue_name: str, body: bytes, **fields: object) -> None:
        unit = self.engine.begin()
        self.engine.put(unit, self.engine.queue(queue_name), Message(MessageDescriptor(**fields), body))
        self.engine.submit(unit)

    def register(self, command: RegisterSubscriber, dialect: Dialect = Dialect.MQRFH2, **fields: object) -> None:
        header = write_command(command, dialect)
        self.put(CONTROL_QUEUE, header, format=FORMATS[dialect], user_identifier="anna", **fields)

    def publish(self, topic: str, data: bytes, *, stream: str = DEFAULT_STREAM, retained: bool = False) -> None:
        options = RETAIN if retained else PublicationOption(0)
        header = write_command(Publish(topics=(topic,), publication_options=options), Dialect.MQRFH2)
        self.put(stream, header + data, format=b"MQHRF2  ")

    def taken(self, name: str = "ORDERS") -> list[Message]:
        queue, found = self.engine.queue(name), []
        while (message := self.engine.take(queue)) is not None:
            unit = self.engine.begin()
            unit.remove(queue, message, Departure.TAKEN)
            self.engine.submit(unit)
            found.append(message)
        return found

    def received(self, name: str = "ORDERS") -> list[bytes]:
        return [message.body[-3:] for message in self.taken(name)]


@pytest.fixture
def station(engine: Engine) -> Station:
    station = Station(engine)
    engine.define("OTHERS")
    station.attach()
    return station


@pytest.fixture
def reopened(data_folder: Path) -> Iterator[Callable[[], Station]]:
    """Opens the store of the test, again and again, without a broker."""
    engines: list[Engine] = []

    def reopen() -> Station:
        if engines:
            engines[-1].close()
        engines.append(Engine.open(data_folder))
        return Station(engines[-1])

    yield reopen
    engines[-1].close()


def test_a_subscription_that_was_defined_gets_what_is_published_from_then_on(station):
    assert station.mqsc("DEFINE SUB('prices') TOPICSTR('shop/+/price') DEST(ORDERS)") == [
        "AMQ8094I: Subscription created."
    ]
    station.publish("shop/tea/price", b"one")
    station.publish("shop/tea", b"not")
    [found] = station.taken()
    assert found.body.endswith(b"one")
    assert found.descriptor.format == b"MQHRF2  "


def test_the_character_scheme_gets_mqrfh_with_its_wildcards(station):
    station.mqsc("DEFINE SUB('all') TOPICSTR('shop/*') DEST(ORDERS) WSCHEMA(CHAR) PSPROP(COMPAT)")
    station.publish("shop/tea/price", b"one")
    [found] = station.taken()
    assert found.descriptor.format == b"MQHRF   "
    assert station.shown("PSPROP") == ["COMPAT"]


def test_a_subscription_is_displayed_with_all_that_it_has(station):
    station.register(RegisterSubscriber(topics=("b/#",), queue_name="ORDERS", subscription_name="of b"))
    identifier = (b"RFHB" + station.engine.incarnation + bytes(7) + b"\x01").hex().upper()
    assert station.mqsc("DISPLAY SUB('of b')") == [
        "AMQ8096I: Subscription inquired.",
        f"   SUBID({identifier})",
        "   SUB('of b')                             DEST(ORDERS)",
        "   DESTCLAS(PROVIDED)",
        f"   DESTCORL({'00' * 24})",
        "   DESTQMGR(RFHBRIDGE)                     DURABLE(YES)",
        "   EXPIRY(UNLIMITED)                       PSPROP(RFH2)",
        f"   PUBACCT({'00' * 32})",
        "   PUBAPPID( )                             PUBPRTY(ASPUB)",
        "   REQONLY(NO)                             SELECTOR( )",
        "   SELTYPE(NONE)                           SUBLEVEL(1)",
        "   SUBSCOPE(ALL)                           SUBUSER('anna')",
        "   TOPICSTR('b/#')                         USERDATA( )",
        "   VARUSER(FIXED)                          WSCHEMA(TOPIC)",
    ]
    assert station.shown("WSCHEMA", "'of*'") == ["TOPIC"]


def test_what_is_retained_is_sent_when_a_subscription_is_defined_and_not_when_it_is_altered(station):
    station.publish("shop/tea", b"old", retained=True)
    station.mqsc("DEFINE SUB('tea') TOPICSTR('shop/tea') DEST(ORDERS)")
    assert station.received() == [b"old"]
    station.mqsc("ALTER SUB('tea') USERDATA('x')")
    station.mqsc("DEFINE SUB('on request') TOPICSTR('shop/tea') DEST(OTHERS) REQONLY(YES)")
    assert (station.received(), station.received("OTHERS")) == ([], [])


def test_attributes_become_what_a_publication_is_delivered_with(station):
    station.mqsc(
        f"DEFINE SUB('tea') TOPICSTR('tea') DEST(ORDERS) DESTCORL('{PUMP.hex()}') PUBAPPID('till 7')"
        f" PUBACCT('{'ab' * 32}') USERDATA('for the till') SUBUSER('anna')"
    )
    station.publish("tea", b"one")
    [found] = station.taken()
    assert found.descriptor.correl_id == PUMP
    assert found.descriptor.appl_identity_data == "till 7"
    assert found.descriptor.accounting_token == b"\xab" * 32
    assert b"for the till" in found.body


def test_a_selector_lets_through_what_it_is_true_of(station):
    station.mqsc("DEFINE SUB('urgent') TOPICSTR('#') DEST(ORDERS) SELECTOR('Root.MQMD.Priority > 4')")
    header = write_command(Publish(topics=("a",)), Dialect.MQRFH2)
    for priority, data in ((3, b"low"), (7, b"top")):
        station.put(DEFAULT_STREAM, header + data, format=b"MQHRF2  ", priority=priority)
    assert station.received() == [b"top"]
    assert station.shown("SELTYPE") == ["EXTENDED"]


def test_a_topic_object_gives_the_beginning_of_the_topic_string(station):
    station.mqsc("DEFINE TOPIC(SHOP) TOPICSTR('shop/floor 1')")
    station.mqsc("DEFINE SUB('tea') TOPICOBJ(SHOP) TOPICSTR('tea') DEST(ORDERS)")
    station.mqsc("DEFINE SUB('floor') TOPICOBJ(SHOP) DEST(OTHERS)")
    assert station.shown("TOPICSTR") == ["'shop/floor 1'", "'shop/floor 1/tea'"]
    station.publish("shop/floor 1/tea", b"one")
    assert station.received() == [b"one"]


def test_a_stream_is_named_by_topicobj_in_the_character_scheme(station):
    station.mqsc("DEFINE QLOCAL(NEWS)")
    station.mqsc(f"DEFINE NAMELIST({STREAM_NAMELIST}) NAMES(NEWS)")
    station.mqsc("DEFINE SUB('news') TOPICOBJ(NEWS) TOPICSTR('*') DEST(ORDERS) WSCHEMA(CHAR)")
    assert station.shown("TOPICSTR") == ["NEWS/*"]
    station.publish("today", b"one", stream="NEWS")
    station.publish("today", b"not")
    assert station.received() == [b"one"]


def test_a_subscription_is_altered_in_its_place(station):
    station.mqsc("DEFINE SUB('tea') TOPICSTR('tea') DEST(ORDERS) USERDATA('before')")
    identifier = station.shown("SUBID")
    station.mqsc(f"ALTER SUB('tea') DEST(OTHERS) DESTCORL('{PUMP.hex()}') USERDATA('after') VARUSER(FIXED)")
    assert station.shown("SUBID") == identifier
    assert station.shown("USERDATA") == ["'after'"]
    assert len(station.engine.states(StateKind.BROKER_SUBSCRIPTION)) == 1
    station.publish("tea", b"one")
    assert (station.received(), station.received("OTHERS")) == ([], [b"one"])


def test_an_alteration_that_is_refused_leaves_the_subscription_as_it_was(station):
    station.mqsc("DEFINE SUB('tea') TOPICSTR('tea') DEST(ORDERS)")
    before = station.mqsc("DISPLAY SUB('tea')")
    refused = station.answer("ALTER SUB('tea') DEST(NOWHERE)")
    assert not refused.succeeded
    assert "3076 MQRCCF_Q_NAME_ERROR (ErrorId 2085, QName NOWHERE)" in refused.lines[0]
    assert station.mqsc("DISPLAY SUB('tea')") == before
    station.publish("tea", b"one")
    assert station.received() == [b"one"]


def test_what_an_application_registered_keeps_what_no_attribute_says_when_it_is_altered(station):
    options = RegistrationOption.INFORM_IF_RETAINED | RegistrationOption.JOIN_SHARED
    station.register(
        RegisterSubscriber(
            topics=("tea",),
            queue_name="ORDERS",
            subscription_name="tea",
            subscription_identity="till 7",
            registration_options=options,
        )
    )
    station.mqsc("ALTER SUB('tea') DEST(OTHERS)")
    [subscription] = station.engine.objects.publish_subscribe().subscriptions()
    assert subscription.options & RegistrationOption.INFORM_IF_RETAINED
    assert not subscription.options & RegistrationOption.NEW_PUBLICATIONS_ONLY
    assert (subscription.joined, subscription.identity.queue_name) == (("till 7",), "OTHERS")


def test_replace_takes_over_attributes_and_refuses_another_topic(station):
    station.mqsc("DEFINE SUB('tea') TOPICSTR('tea') DEST(ORDERS)")
    assert station.answer("DEFINE SUB('tea') TOPICSTR('tea') DEST(ORDERS)").lines == (
        "AMQ8150E: Subscription tea already exists.",
    )
    station.mqsc("DEFINE SUB('tea') TOPICSTR('tea') DEST(OTHERS) REPLACE")
    assert station.shown("DEST") == ["OTHERS"]
    refused = station.answer("DEFINE SUB('tea') TOPICSTR('coffee') DEST(OTHERS) REPLACE")
    assert refused.lines == ("AMQ8405E: TOPICSTR cannot be replaced; delete it first.",)


def test_like_gives_what_is_not_said(station):
    station.mqsc("DEFINE SUB('tea') TOPICSTR('tea') DEST(ORDERS) USERDATA('x') REQONLY(YES)")
    station.mqsc("DEFINE SUB('coffee') LIKE('tea') TOPICSTR('coffee') REQONLY(NO)")
    assert station.shown("USERDATA", "'coffee'") == ["'x'"]
    station.publish("coffee", b"one")
    assert station.received() == [b"one"]


def test_a_subscription_belongs_to_who_has_its_queue_already_else_to_who_defines_it(station):
    station.register(RegisterSubscriber(topics=("a",), queue_name="ORDERS"))  # by anna
    assert station.answer("DEFINE SUB('hers') TOPICSTR('b') DEST(ORDERS)", "root").succeeded
    assert station.answer("DEFINE SUB('mine') TOPICSTR('b') DEST(OTHERS)", "root").succeeded
    assert (station.shown("SUBUSER", "'hers'"), station.shown("SUBUSER", "'mine'")) == (["'anna'"], ["'root'"])
    refused = station.answer("DEFINE SUB('his') TOPICSTR('c') DEST(ORDERS) SUBUSER('bob')")
    assert refused.lines == ("The subscription is refused: 3078 MQRCCF_DUPLICATE_IDENTITY (UserId bob).",)
    station.register(RegisterSubscriber(topics=("d",), queue_name="ORDERS"))  # anna goes on as before
    assert station.shown("TOPICSTR") == ["'a'", "'d'", "'b'", "'b'"]


def test_a_subscription_with_an_expiry_ends(station):
    station.mqsc("DEFINE SUB('tea') TOPICSTR('tea') DEST(ORDERS) EXPIRY(600)")
    assert station.shown("EXPIRY") in (["600"], ["599"])
    later = station.engine.now_us() + 61_000_000
    station.engine.now_us = lambda: later
    station.publish("tea", b"one")
    assert station.received() == []
    assert station.answer("DISPLAY SUB(*)").lines == ("AMQ8147E: Subscription * not found.",)


def test_a_subscription_goes_by_its_subid_where_its_name_is_not_enough(station):
    for topic in ("a", "b"):
        station.register(RegisterSubscriber(topics=(topic,), queue_name="ORDERS"))
    refused = station.answer("DELETE SUB('RFHBRIDGE:ORDERS')")
    assert refused.lines == (
        "AMQ8405E: 2 subscriptions go by the name RFHBRIDGE:ORDERS: say which by SUBID, see DISPLAY SUB.",
    )
    first, second = station.shown("SUBID")
    assert station.mqsc(f"DELETE SUB SUBID('{first}')") == ["The subscription was deleted."]
    assert station.shown("SUBID") == [second]
    station.mqsc(f"ALTER SUB('RFHBRIDGE:ORDERS') SUBID({second}) DEST(OTHERS)")
    station.publish("b", b"one")
    assert station.received("OTHERS") == [b"one"]


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        (
            "DEFINE SUB(S) TOPICSTR('a') DEST(ORDERS) GROUPID(X) SUBLEVEL(2) TOPICID(7) EXPIRY(0)",
            [
                "AMQ8405E: SUB has no attributes GROUPID, TOPICID here.",
                "AMQ8405E: SUBLEVEL(2): the value must be a number from 1 to 1.",
                "AMQ8405E: EXPIRY(0): the value must be UNLIMITED or a number from 1 to 999999999.",
            ],
        ),
        (
            "DEFINE SUB(S) WSCHEMA(CHAR) PSPROP(RFH2) SELECTOR('usr.a = 1')",
            [
                "AMQ8405E: PSPROP(RFH2) does not go with WSCHEMA(CHAR): COMPAT does.",
                "AMQ8405E: DEST must name the queue that publications are put on.",
                "AMQ8405E: TOPICSTR or TOPICOBJ must say which topics.",
                "AMQ8405E: SELECTOR goes with WSCHEMA(TOPIC) alone: an MQRFH subscriber has no content filter.",
            ],
        ),
        ("DEFINE SUB(S) DESTCLAS(MANAGED)", ["AMQ8405E: DESTCLAS(MANAGED): the value must be PROVIDED."]),
        (
            "DEFINE SUB(S) TOPICSTR('a') DEST(ORDERS) DESTCORL('12')",
            ["AMQ8405E: DESTCORL(12): the value must be 48 hexadecimal digits."],
        ),
        (
            "ALTER SUB(HERE) TOPICSTR('b') WSCHEMA(CHAR)",
            [
                "AMQ8405E: TOPICSTR cannot be altered; delete the SUB and define it anew.",
                "AMQ8405E: WSCHEMA cannot be altered; delete the SUB and define it anew.",
            ],
        ),
        ("ALTER SUB(NONE) USERDATA('x')", ["AMQ8147E: Subscription NONE not found."]),
        ("DELETE SUB(NONE)", ["AMQ8147E: Subscription NONE not found."]),
        ("DELETE SUB(HERE) PURGE NOW", ["AMQ8405E: NOW, PURGE are not supported here."]),
        ("DISPLAY SUB(HERE) COLOUR SIZE", ["AMQ8405E: attributes COLOUR, SIZE are not supported here."]),
        ("DISPLAY SUB(*) WHERE(DEST EQ NONE)", ["AMQ8147E: Subscription * not found."]),
        ("CLEAR SUB(HERE)", ["AMQ8405E: CLEAR SUB is not supported: CLEAR QLOCAL and CLEAR TOPICSTR are."]),
        ("DEFINE SUB(S) TOPICOBJ(NONE) DEST(ORDERS)", ["AMQ8147E: Topic object NONE not found."]),
        (
            "DEFINE SUB(S) TOPICOBJ(NONE) TOPICSTR('a') DEST(ORDERS) WSCHEMA(CHAR)",
            ["The subscription is refused: 3082 MQRCCF_UNKNOWN_STREAM (StreamName NONE)."],
        ),
        (
            "DEFINE SUB(S) TOPICSTR('a') DEST(ORDERS) DESTQMGR(ELSEWHERE)",
            ["The subscription is refused: 3074 MQRCCF_Q_MGR_NAME_ERROR (QMgrName ELSEWHERE)."],
        ),
        (
            "DEFINE SUB(S) TOPICSTR('a') DEST(SYSTEM.BROKER.DEFAULT.STREAM)",
            [
                "The subscription is refused: 3076 MQRCCF_Q_NAME_ERROR"
                " (ErrorId 2051, QName SYSTEM.BROKER.DEFAULT.STREAM)."
            ],
        ),
        (
            "DEFINE SUB(S) TOPICSTR('a') DEST(ORDERS) SELECTOR('usr.a = ')",
            ["The subscription is refused: 3150 MQRCCF_FILTER_ERROR (Filter usr.a = )."],
        ),
        ("CLEAR TOPICSTR('a')", ["AMQ8405E: CLEAR TOPICSTR needs a topic string, and CLRTYPE(RETAINED)."]),
        ("CLEAR TOPICSTR('a') CLRTYPE(ALL)", ["AMQ8405E: CLRTYPE(ALL): the value must be RETAINED."]),
    ],
)
def test_what_cannot_be_is_refused_and_everything_that_is_wrong_is_named(station, command, lines):
    station.mqsc("DEFINE SUB(HERE) TOPICSTR('here') DEST(ORDERS)")
    answer = station.answer(command)
    assert (list(answer.lines), answer.succeeded) == (lines, False)
    assert len(station.engine.states(StateKind.BROKER_SUBSCRIPTION)) == 1


def test_retained_publications_are_cleared_by_topic_string_and_wildcard(station):
    for topic in ("a/b/z", "a/b/c/z", "a/b/c/y/z", "a/b", "other"):
        station.publish(topic, b"old", retained=True)
    assert station.mqsc("CLEAR TOPICSTR('a/b/#/z') CLRTYPE(RETAINED)") == ["The retained publications were cleared."]
    station.mqsc("CLEAR TOPICSTR('other') CLRTYPE(RETAINED) SCOPE(LOCAL)")
    station.mqsc("CLEAR TOPICSTR('nothing here') CLRTYPE(RETAINED)")
    assert [key.split(b"\0")[1] for key, _ in station.engine.states(StateKind.BROKER_RETAINED)] == [b"a/b"]
    station.mqsc("DEFINE SUB('all') TOPICSTR('#') DEST(ORDERS)")
    assert len(station.taken()) == 1


def test_retained_publications_of_a_stream_are_cleared_behind_its_name(station):
    station.mqsc("DEFINE QLOCAL(NEWS)")
    station.mqsc(f"DEFINE NAMELIST({STREAM_NAMELIST}) NAMES(NEWS)")
    station.publish("today", b"old", stream="NEWS", retained=True)
    station.publish("today", b"old", retained=True)
    station.mqsc("CLEAR TOPICSTR('NEWS/today') CLRTYPE(RETAINED)")
    left = [key for key, _ in station.engine.states(StateKind.BROKER_RETAINED)]
    assert left == [b"SYSTEM.BROKER.DEFAULT.STREAM\0today"]


def test_without_a_gateway_subscriptions_are_defined_altered_and_deleted_in_the_store(reopened):
    station = reopened()
    station.mqsc("DEFINE QLOCAL(ORDERS)")
    for name in ("stays", "goes"):
        station.mqsc(f"DEFINE SUB('{name}') TOPICSTR('{name}') DEST(ORDERS)")
    assert not station.answer("DEFINE SUB('stays') TOPICSTR('x') DEST(ORDERS)").succeeded
    station.mqsc("ALTER SUB('stays') USERDATA('kept')")
    station.mqsc("DELETE SUB('goes')")
    station = reopened()
    station.attach()
    assert station.shown("USERDATA") == ["'kept'"]
    station.publish("stays", b"one")
    station.publish("goes", b"two")
    assert station.received() == [b"one"]


def test_a_connection_without_a_gateway_knows_the_subscriptions_of_the_store(tmp_path: Path) -> None:
    with connect(tmp_path) as queue_manager:
        queue_manager.define("ORDERS")
        assert queue_manager.mqsc("DEFINE SUB('all') TOPICSTR('#') DEST(ORDERS)").succeeded
    with connect(tmp_path) as queue_manager:
        assert "SUB('all')" in "".join(queue_manager.mqsc("DISPLAY SUB(*) SUB").lines)


def test_without_a_gateway_retained_publications_are_cleared_and_none_is_sent(reopened):
    station = reopened()
    station.mqsc("DEFINE QLOCAL(ORDERS)")
    station.attach()
    for topic in ("a", "b"):
        station.publish(topic, b"old", retained=True)
    station = reopened()
    station.mqsc("CLEAR TOPICSTR('a') CLRTYPE(RETAINED)")
    station.mqsc("DEFINE SUB('all') TOPICSTR('#') DEST(ORDERS)")
    assert station.received() == []
    assert [key for key, _ in station.engine.states(StateKind.BROKER_RETAINED)] == [DEFAULT_STREAM.encode() + b"\0b"]


def test_a_stream_is_served_from_when_its_queue_and_the_namelist_are_there(station):
    station.mqsc(f"DEFINE NAMELIST({STREAM_NAMELIST}) NAMES(FIRST)")
    station.mqsc("DEFINE QLOCAL(FIRST)")
    station.mqsc("DEFINE QLOCAL(SECOND)")
    station.mqsc(f"ALTER NAMELIST({STREAM_NAMELIST}) NAMES(FIRST,SECOND)")
    for name in ("FIRST", "SECOND"):
        command = RegisterSubscriber(topics=("*",), queue_name="ORDERS", stream_name=name)
        station.register(command, Dialect.MQRFH)
        station.publish("today", b"one", stream=name)
    assert station.received() == [b"one", b"one"]
