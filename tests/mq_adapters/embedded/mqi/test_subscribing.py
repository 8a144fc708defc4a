"""MQSUB, MQSUBRQ and the ends of subscriptions, with a broker."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mq_adapters.attributes import Definition, ObjectType
from mq_adapters.embedded.engine import Engine
from mq_adapters.embedded.mqi import broker_commands, subscribing
from mq_adapters.embedded.mqi.connection import OpenedSubscription
from mq_adapters.embedded.mqi.options import CloseOption, OpenOption, PutOption, SubOption
from mq_adapters.embedded.mqi.subscription_request import SubscriptionRequest
from mq_adapters.reasons import QueueManagerError, ReasonCode
from mq_adapters.system_queues import DEFAULT_MODEL_QUEUE
from tests.mq_adapters.embedded.mqi.program import refused
from tests.mq_adapters.embedded.mqi.subscriber import DURABLE, MANAGED, RESUMED, House, PlantAlone, Subscriber

TENTHS_OF_A_MINUTE = 600
MINUTE_US = 60_000_000


@pytest.fixture
def house(data_folder: Path) -> Iterator[House]:
    made = House(data_folder)
    made.engine.define("OWN")
    yield made
    made.close()


def subscriptions(house: House) -> list[str]:
    administration = house.engine.objects.publish_subscribe
    assert administration is not None
    return sorted(each.name for each in administration().subscriptions())


# -- not durable -------------------------------------------------------------------------------------------------------


def test_what_is_retained_comes_unless_only_new_publications_are_wanted(house: House) -> None:
    program = house.connect()
    program.publish("plant/7", b"old", PutOption.RETAIN)
    every = program.subscribe("plant/#")
    new = program.subscribe("plant/#", MANAGED | SubOption.NEW_PUBLICATIONS_ONLY)
    assert (program.all(every.handle), program.all(new.handle)) == ([b"old"], [])


def test_a_subscription_ends_with_its_handle_and_its_queue_with_the_other(house: House) -> None:
    program = house.connect()
    opened = program.subscribe("plant/#")
    program.publish("plant/7", b"before")
    program.connection.close(opened.number)
    program.publish("plant/7", b"after")
    assert program.all(opened.handle) == [b"ore"]
    assert len(house.queues()) == 1
    program.connection.close(opened.handle)
    assert house.queues() == []
    assert refused(lambda: program.connection.close(opened.number)) == ReasonCode.MQRC_HOBJ_ERROR


def test_everything_ends_with_the_connection(house: House) -> None:
    house.connect().subscribe("plant/#")
    house.programs.pop().connection.end()
    assert (house.queues(), subscriptions(house)) == ([], [])


@pytest.mark.parametrize("topic", ["secret/1", "plan", "#", "+/7"])
@pytest.mark.parametrize("options", [MANAGED, DURABLE])
def test_topics_are_a_right_of_their_own(house: House, topic: str, options: int) -> None:
    program = house.connect()
    assert refused(lambda: program.subscribe(topic, options, name="mine")) == ReasonCode.MQRC_NOT_AUTHORIZED
    assert house.queues() == []


@pytest.mark.parametrize(
    ("options", "selector", "reason_code"),
    [
        (DURABLE, "", ReasonCode.MQRC_SUB_NAME_ERROR),
        (SubOption.RESUME | SubOption.MANAGED, "", ReasonCode.MQRC_SUB_NAME_ERROR),
        (SubOption.MANAGED, "", ReasonCode.MQRC_OPTIONS_ERROR),
        (SubOption.CREATE, "", ReasonCode.MQRC_HOBJ_ERROR),
        (MANAGED | SubOption.GROUP_SUB, "", ReasonCode.MQRC_GROUPING_NOT_ALLOWED),
        (MANAGED | SubOption.READ_AHEAD, "", ReasonCode.MQRC_OPTIONS_ERROR),
        (MANAGED | SubOption.ALTERNATE_USER_AUTHORITY, "", ReasonCode.MQRC_NOT_AUTHORIZED),
        (MANAGED | SubOption.SET_CORREL_ID, "", ReasonCode.MQRC_CORREL_ID_ERROR),
        (MANAGED, "colour = ", ReasonCode.MQRC_SELECTOR_SYNTAX_ERROR),
        (MANAGED, "upper(colour) = 'B'", ReasonCode.MQRC_SELECTION_NOT_AVAILABLE),
        (MANAGED, "colour = '\x01'", ReasonCode.MQRC_SELECTION_STRING_ERROR),
        (MANAGED, "a" * 10_241, ReasonCode.MQRC_SELECTION_STRING_ERROR),
    ],
)
def test_what_is_not_carried_out_is_refused(house: House, options: int, selector: str, reason_code: ReasonCode) -> None:
    program = house.connect()
    assert refused(lambda: program.subscribe("plant/#", options, selector=selector)) == reason_code
    assert house.queues() == []


@pytest.mark.parametrize("topic", ["", "plant/\0", "plant/" + "x" * 20_000])
@pytest.mark.parametrize("options", [MANAGED, DURABLE])
def test_a_topic_that_is_none_is_refused(house: House, topic: str, options: int) -> None:
    program = house.connect()
    with pytest.raises(QueueManagerError):
        program.subscribe(topic, options, name="mine")
    assert (house.queues(), subscriptions(house)) == ([], [])


def test_a_program_that_goes_while_the_broker_is_asked_leaves_nothing(data_folder: Path) -> None:
    ends: list[object] = []

    async def story() -> None:
        House(data_folder).close()
        engine = Engine.open(data_folder, name="RFHB", call_soon=asyncio.get_running_loop().call_soon)
        house = House.__new__(House)
        house.engine, house.listener = engine, None  # type: ignore[assignment]  # the rest is not used here
        from mq_adapters.broker.broker import Broker, BrokerRules
        from tests.mq_adapters.broker.conftest import RecordingListener

        Broker(engine, listener=RecordingListener(), rules=BrokerRules()).attach()
        program = Subscriber(engine, PlantAlone())
        asked = SubscriptionRequest(options=MANAGED, object_name="", topic="plant/1")
        program.connection.subscribe(asked, ends.append, ends.append)
        program.connection.end()
        faults: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: faults.append(context))
        await asyncio.sleep(0.05)
        assert (ends, faults, house.queues()) == ([], [], [])
        engine.close()

    asyncio.run(story())


# -- programs that die while the broker is asked -----------------------------------------------------------------------

RETAINED = 20


class SlowHouse(House):
    """A house with 20 retained publications. It does what it does in later turns, when it is told to."""

    def __init__(self, folder: Path) -> None:
        prepared = House(folder)
        prepared.engine.define("OWN")
        owner = prepared.connect()
        for number in range(RETAINED):
            owner.publish(f"plant/{number}", b"old", PutOption.RETAIN)
        owner.subscribe("plant/kept", DURABLE, name="old")
        prepared.close()
        self.begun: deque[Callable[[], None]] = deque()
        super().__init__(folder, self.begun.append)
        self.go_on()

    def go_on(self, turns: int = 10_000) -> None:
        while turns and self.begun:
            turns -= 1
            self.begun.popleft()()

    def dies_while_asked(self, turns: int, options: int, **said: Any) -> None:
        """A program asks for a subscription, and dies so many turns later, before it has an answer."""
        program, ends = self.connect(get=("OWN",), put=("OWN",)), list[object]()
        if not options & SubOption.MANAGED:
            said["destination"] = program.open_queue("OWN")
        asked = SubscriptionRequest(**{"options": options, "object_name": "", "topic": "plant/#", **said})
        program.connection.subscribe(asked, ends.append, ends.append)
        self.go_on(turns)
        assert ends == []
        program.connection.end()
        self.go_on()
        assert ends == []


def story_of(folder: Path, tell: Callable[[SlowHouse], None]) -> None:
    async def story() -> None:
        house = SlowHouse(folder)
        tell(house)
        house.close()

    asyncio.run(story())


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4, 6])
def test_a_program_that_dies_in_mqsub_leaves_its_durable_subscription_to_the_next(
    data_folder: Path, turns: int
) -> None:
    def tell(house: SlowHouse) -> None:
        house.dies_while_asked(turns, DURABLE, name="kept")
        program = house.connect()
        resumed = program.subscribe("", RESUMED, name="kept")
        assert resumed.subscription.queue.depth == RETAINED
        assert list(house.engine.objects.users) == [program.application]

    story_of(data_folder, tell)


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4, 6])
@pytest.mark.parametrize("options", [SubOption.CREATE, MANAGED])
@pytest.mark.parametrize("name", ["", "short"])
def test_a_program_that_dies_in_mqsub_takes_a_subscription_with_it_that_is_not_durable(
    data_folder: Path, turns: int, options: SubOption, name: str
) -> None:
    def tell(house: SlowHouse) -> None:
        house.dies_while_asked(turns, options, name=name)
        assert subscriptions(house) == ["old"]
        assert [each for each in house.queues() if "NDURABLE" in each or "ANSWER" in each] == []
        assert house.engine.objects.open_subscriptions.others(name, None) == []

    story_of(data_folder, tell)


def test_a_program_that_dies_in_an_alteration_leaves_the_subscription_to_the_next(data_folder: Path) -> None:
    def tell(house: SlowHouse) -> None:
        house.dies_while_asked(0, DURABLE | SubOption.ALTER, topic="plant/kept", name="old", user_data="new")
        resumed = house.connect().subscribe("", RESUMED, name="old")
        assert resumed.subscription.user_data == "new"

    story_of(data_folder, tell)


# -- programs that the broker answers late -----------------------------------------------------------------------------


def test_a_program_that_asks_twice_at_once_is_answered_twice(data_folder: Path) -> None:
    def tell(house: SlowHouse) -> None:
        program = house.connect()
        made, errors = list[OpenedSubscription](), list[QueueManagerError]()
        for name in ("one", "two"):
            asked = SubscriptionRequest(options=DURABLE, object_name="", topic="plant/#", name=name)
            program.connection.subscribe(asked, made.append, errors.append)
        house.go_on()
        assert errors == []
        assert [each.subscription.queue.depth for each in made] == [RETAINED, RETAINED]
        assert subscriptions(house) == ["old", "one", "two"]

    story_of(data_folder, tell)


@pytest.mark.parametrize("options", [DURABLE, MANAGED, SubOption.CREATE, SubOption.CREATE | SubOption.DURABLE])
def test_a_program_that_gets_no_answer_gets_no_subscription(
    data_folder: Path, options: SubOption, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_commands, "_ANSWER_WAIT_MS", 1)

    async def story() -> None:
        house = SlowHouse(data_folder)
        program = house.connect(get=("OWN",), put=("OWN",))
        destination = 0 if options & SubOption.MANAGED else program.open_queue("OWN")
        asked = SubscriptionRequest(
            options=options, object_name="", topic="plant/#", name="late", destination=destination
        )
        ends: list[object] = []
        program.connection.subscribe(asked, ends.append, ends.append)
        house.go_on(2)
        assert subscriptions(house) == ["late", "old"]
        while not ends:
            await asyncio.sleep(0)
        house.go_on()
        (error,) = ends
        assert isinstance(error, QueueManagerError)
        assert error.reason_code == ReasonCode.MQRC_NO_MSG_AVAILABLE
        assert subscriptions(house) == ["old"]
        for _ in range(2):
            house.broker.tend()
            house.go_on()
        assert len(house.queues()) == 1
        assert refused(lambda: program.subscribe("", RESUMED, name="late")) == ReasonCode.MQRC_NO_SUBSCRIPTION
        house.close()

    asyncio.run(story())


HIGH = "JMSPriority > 4 OR JMSDestination = 'topic://plant/7/bar'"


@pytest.mark.parametrize("options", [MANAGED, DURABLE])
def test_a_subscription_with_a_selector_gets_what_it_selects(house: House, options: int) -> None:
    program = house.connect()
    program.publish("plant/7/bar", b"old", PutOption.RETAIN)
    selecting = program.subscribe("plant/#", options, name="kept", selector=HIGH)
    every = program.subscribe("plant/#")
    program.publish("plant/8", b"low", priority=1)
    program.publish("plant/8", b"igh", priority=9)
    assert program.all(selecting.handle) == [b"igh", b"old"]
    assert sorted(program.all(every.handle)) == [b"igh", b"low", b"old"]
    program.connection.close(selecting.number, CloseOption.REMOVE_SUB if options == DURABLE else 0)
    assert len(subscriptions(house)) == 1


def test_a_durable_subscription_keeps_its_selector(house: House) -> None:
    first = house.connect()
    first.subscribe("plant/#", DURABLE, name="kept", selector=HIGH)
    first.connection.end()
    second = house.connect()
    second.publish("plant/8", b"low", priority=1)
    second.publish("plant/8", b"igh", priority=9)
    again = DURABLE | SubOption.RESUME
    for selector in ("", "JMSPriority > 5"):
        reason_code = refused(lambda each=selector: second.subscribe("plant/#", again, name="kept", selector=each))
        assert reason_code == ReasonCode.MQRC_SELECTOR_NOT_ALTERABLE
    resumed = second.subscribe("plant/#", again, name="kept", selector=HIGH)
    assert second.all(resumed.handle) == [b"igh"]
    second.connection.close(resumed.handle)
    second.connection.close(resumed.number)
    by_name = second.subscribe("", SubOption.RESUME | SubOption.MANAGED | SubOption.DURABLE, name="kept")
    second.connection.close(by_name.number, CloseOption.REMOVE_SUB)
    assert subscriptions(house) == []


# -- durable -----------------------------------------------------------------------------------------------------------


def test_a_durable_subscription_keeps_what_comes_while_its_program_is_away(house: House) -> None:
    first = house.connect()
    opened = first.subscribe("plant/#", DURABLE, name="kept")
    first.publish("plant/1", b"one")
    assert first.all(opened.handle) == [b"one"]
    first.close(opened)
    house.connect().publish("plant/2", b"two")
    again = house.connect()
    resumed = again.subscribe("", RESUMED, name="kept")
    assert resumed.subscription.topic == "plant/#"
    assert again.all(resumed.handle) == [b"two"]
    again.publish("plant/3", b"3rd")
    assert again.all(resumed.handle) == [b"3rd"]


def test_it_survives_the_death_of_the_queue_manager_with_its_messages(house: House) -> None:
    program = house.connect()
    program.subscribe("plant/#", DURABLE, name="kept")
    program.publish("plant/1", b"one")
    program.publish("plant/1", b"not", persistence=0)
    house.restart()
    program = house.connect()
    program.publish("plant/2", b"two")
    resumed = program.subscribe("plant/#", DURABLE | SubOption.RESUME, name="kept")
    assert program.all(resumed.handle) == [b"one", b"two"]
    assert len(house.queues()) == 1


def test_removed_it_ends_with_its_queue_and_its_messages(house: House) -> None:
    program = house.connect()
    opened = program.subscribe("plant/#", DURABLE, name="kept")
    program.publish("plant/1", b"one")
    program.close(opened, CloseOption.REMOVE_SUB)
    assert (house.queues(), subscriptions(house)) != ([], [])
    house.broker.tend()
    assert (house.queues(), subscriptions(house)) == ([], [])
    (queue_name, reason), *others = house.listener.drops
    assert (queue_name.startswith("SYSTEM.MANAGED.DURABLE."), reason, others) == (True, "its subscription ended", [])
    assert refused(lambda: program.subscribe("", RESUMED, name="kept")) == ReasonCode.MQRC_NO_SUBSCRIPTION


@pytest.mark.parametrize("order", ["subscription first", "queue first"])
def test_removed_with_nothing_on_its_queue_it_ends_at_once(house: House, order: str) -> None:
    program = house.connect()
    opened = program.subscribe("plant/#", DURABLE, name="kept")
    if order == "queue first":
        program.connection.close(opened.handle)
    program.connection.close(opened.number, CloseOption.REMOVE_SUB)
    if order != "queue first":
        program.connection.close(opened.handle)
    house.broker.tend()
    assert (house.queues(), subscriptions(house)) == ([], [])


def test_a_queue_without_a_subscription_ends_and_one_that_is_open_does_not(house: House) -> None:
    program = house.connect()
    opened = program.subscribe("plant/#", DURABLE, name="kept")
    program.publish("plant/1", b"one")
    assert house.mqsc("DELETE SUB('kept')") == ["The subscription was deleted."]
    house.broker.tend()
    assert program.all(opened.handle) == [b"one"]
    program.connection.close(opened.handle)
    assert house.queues() == []


def test_a_crash_between_queue_and_subscription_leaves_no_queue(house: House) -> None:
    house.engine.define("SYSTEM.MANAGED.DURABLE.00000000000000FF")
    house.engine.define("SYSTEM.MANAGED.DURABLE.OTHER")
    house.restart()
    assert house.queues() == ["SYSTEM.MANAGED.DURABLE.OTHER"]


def test_it_is_kept_or_not_as_mqclose_says(house: House) -> None:
    program = house.connect()
    kept = program.subscribe("plant/#", DURABLE, name="kept")
    short = program.subscribe("plant/#")
    close = program.connection.close
    assert refused(lambda: close(kept.number, CloseOption.DELETE)) == ReasonCode.MQRC_OPTIONS_ERROR
    assert refused(lambda: close(kept.number, 0x4000)) == ReasonCode.MQRC_OPTIONS_ERROR
    assert refused(lambda: close(kept.handle, 0x4000)) == ReasonCode.MQRC_OPTIONS_ERROR
    both = CloseOption.KEEP_SUB | CloseOption.REMOVE_SUB
    assert refused(lambda: close(kept.number, both)) == ReasonCode.MQRC_OPTIONS_ERROR
    assert refused(lambda: close(short.number, CloseOption.KEEP_SUB)) == ReasonCode.MQRC_OPTION_NOT_VALID_FOR_TYPE
    assert refused(lambda: close(kept.handle, CloseOption.REMOVE_SUB)) == ReasonCode.MQRC_OPTIONS_ERROR
    close(kept.number, CloseOption.KEEP_SUB)
    close(short.number, CloseOption.REMOVE_SUB)
    close(kept.handle, CloseOption.QUIESCE)
    assert subscriptions(house) == ["kept"]


def test_it_is_for_one_program_at_a_time(house: House) -> None:
    first, second = house.connect(), house.connect()
    opened = first.subscribe("plant/#", DURABLE, name="kept")
    for options in (RESUMED, RESUMED | SubOption.ALTER, DURABLE | SubOption.RESUME):
        assert refused(lambda asked=options: second.subscribe("plant/#", asked, name="kept")) == (  # type: ignore[misc]
            ReasonCode.MQRC_SUBSCRIPTION_IN_USE
        )
    assert refused(lambda: second.subscribe("plant/#", DURABLE, name="kept")) == ReasonCode.MQRC_SUB_ALREADY_EXISTS
    first.connection.end()
    assert second.subscribe("", RESUMED, name="kept").subscription.queue is opened.subscription.queue


@pytest.mark.parametrize(
    ("options", "said", "reason_code"),
    [
        (RESUMED, {"topic": "plant/other"}, ReasonCode.MQRC_TOPIC_NOT_ALTERABLE),
        (SubOption.RESUME | SubOption.MANAGED, {}, ReasonCode.MQRC_DURABILITY_NOT_ALTERABLE),
        (SubOption.RESUME | SubOption.DURABLE, {}, ReasonCode.MQRC_DEST_CLASS_NOT_ALTERABLE),
        (RESUMED, {"level": 2}, ReasonCode.MQRC_SUBLEVEL_NOT_ALTERABLE),
        (
            RESUMED | SubOption.ALTER | SubOption.SET_CORREL_ID,
            {"correl_id": b"c" * 24},
            ReasonCode.MQRC_ALTER_SUB_ERROR,
        ),
    ],
)
def test_what_cannot_be_altered_is_refused(
    house: House, options: int, said: dict[str, object], reason_code: ReasonCode
) -> None:
    program = house.connect()
    program.close(program.subscribe("plant/#", DURABLE, name="kept"))
    asked = {"topic": "plant/#", **said}
    assert refused(lambda: program.subscribe(str(asked.pop("topic")), options, name="kept", **asked)) == reason_code


def test_an_alteration_changes_what_it_may_and_brings_nothing_retained_again(house: House) -> None:
    program = house.connect()
    program.publish("plant/1", b"old", PutOption.RETAIN)
    opened = program.subscribe("plant/#", DURABLE, name="kept", user_data="one")
    assert program.all(opened.handle) == [b"old"]
    program.close(opened)
    altered = DURABLE | SubOption.ALTER | SubOption.ANY_USERID
    changed = program.subscribe("plant/#", altered, name="kept", user_data="two", priority=7)
    program.publish("plant/2", b"new")
    got = program.get(changed.handle)
    assert got.message.descriptor.priority == 7
    assert b"<Sud>two</Sud>" in got.data
    assert program.all(changed.handle) == []
    program.close(changed)
    house.restart()
    program = house.connect()
    resumed = program.subscribe("", RESUMED, name="kept", user_data="ignored")
    assert resumed.subscription.user_data == "two"
    (shown,) = [line for line in house.mqsc("DISPLAY SUB('kept') VARUSER PUBPRTY") if "VARUSER" in line]
    assert "VARUSER(ANY)" in shown


def test_it_ends_when_its_time_is_over(house: House) -> None:
    program = house.connect()
    opened = program.subscribe("plant/#", DURABLE, name="kept", expiry=TENTHS_OF_A_MINUTE)
    program.close(opened)
    house.now_us += MINUTE_US // 2
    resumed = program.subscribe("", RESUMED, name="kept")
    assert resumed.subscription.expiry == TENTHS_OF_A_MINUTE // 2
    program.close(resumed)
    house.now_us += MINUTE_US
    assert refused(lambda: program.subscribe("", RESUMED, name="kept")) == ReasonCode.MQRC_NO_SUBSCRIPTION
    house.broker.tend()
    assert (house.queues(), subscriptions(house)) == ([], [])


def test_the_number_of_an_application_is_limited(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscribing, "MAXIMUM_DURABLE_SUBSCRIPTIONS", 2)
    program, other = house.connect(), house.connect("payroll")
    for name in ("one", "two"):
        program.subscribe("plant/#", DURABLE, name=name)
    assert refused(lambda: program.subscribe("plant/#", DURABLE, name="3")) == ReasonCode.MQRC_RESOURCE_PROBLEM
    assert len(house.queues()) == 2
    other.subscribe("plant/#", DURABLE, name="3")
    house.restart()
    program = house.connect()
    assert refused(lambda: program.subscribe("plant/#", DURABLE, name="4")) == ReasonCode.MQRC_RESOURCE_PROBLEM
    program.close(program.subscribe("", RESUMED, name="one"), CloseOption.REMOVE_SUB)
    program.subscribe("plant/#", DURABLE, name="4")


def test_the_queue_is_as_its_model_says(house: House) -> None:
    house.mqsc("DEFINE QMODEL(SYSTEM.DURABLE.MODEL.QUEUE) MAXDEPTH(2)")
    program = house.connect()
    opened = program.subscribe("plant/#", DURABLE, name="kept")
    assert opened.subscription.queue.maximum_depth == 2


def test_a_retained_publication_comes_once_on_request(house: House) -> None:
    program = house.connect()
    options = DURABLE | SubOption.PUBLICATIONS_ON_REQUEST
    opened = program.subscribe("plant/#", options, name="kept")
    assert refused(lambda: program.request_publications(opened.number)) == ReasonCode.MQRC_NO_RETAINED_MSG
    program.publish("plant/1", b"1st", PutOption.RETAIN)
    program.publish("plant/2", b"2nd", PutOption.RETAIN)
    assert program.all(opened.handle) == []
    assert program.request_publications(opened.number) == 2
    assert program.all(opened.handle) == [b"1st", b"2nd"]
    assert refused(lambda: program.request_publications(opened.handle)) == ReasonCode.MQRC_HOBJ_ERROR


# -- own queues --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("durable", [SubOption(0), SubOption.DURABLE])
def test_publications_come_to_a_programs_own_queue(house: House, durable: SubOption) -> None:
    program = house.connect(get=("OWN",), put=("OWN",))
    handle = program.open_queue("OWN")
    opened = program.subscribe("plant/#", SubOption.CREATE | durable, name="own", destination=handle)
    assert opened.handle == handle
    program.publish("plant/1", b"one")
    got = program.get(handle)
    assert got.message.descriptor.correl_id == opened.subscription.correl_id != bytes(24)
    assert b"<Top>plant/1</Top>" in got.data
    assert b"<psc>" not in got.data
    program.close(opened)
    program.publish("plant/1", b"two")
    handle = program.open_queue("OWN")
    assert program.all(handle) == ([b"two"] if durable else [])
    assert refused(lambda: program.subscribe("", SubOption.RESUME | durable, name="own", destination=99)) == (
        ReasonCode.MQRC_HOBJ_ERROR
    )
    if durable:
        resumed = program.subscribe("", SubOption.RESUME | durable, name="own")
        program.close(resumed, CloseOption.REMOVE_SUB)
        assert subscriptions(house) == []
    assert house.engine.queue("OWN").depth == 0


def test_a_regsub_on_the_same_queue_gets_folder_psc(house: House) -> None:
    house.mqsc("DEFINE SUB('registered') TOPICSTR('plant/#') DEST(OWN)")
    program = house.connect(get=("OWN",), put=("OWN",))
    handle = program.open_queue("OWN")
    opened = program.subscribe("plant/#", SubOption.CREATE, destination=handle)
    program.publish("plant/1", b"one")
    found = {got.message.descriptor.correl_id: got.data for got in (program.get(handle), program.get(handle))}
    own = found.pop(opened.subscription.correl_id)
    (other,) = found.values()
    assert (b"<mqps>" in own, b"<psc>" in own, b"<mqps>" in other, b"<psc>" in other) == (True, False, False, True)


def test_what_is_not_durable_ends_with_the_queue_manager_too(house: House) -> None:
    program = house.connect(get=("OWN",), put=("OWN",))
    handle = program.open_queue("OWN")
    program.subscribe("plant/#", SubOption.CREATE, name="short", destination=handle)
    program.subscribe("plant/#", SubOption.CREATE | SubOption.DURABLE, name="long", destination=handle)
    shown = "\n".join(house.mqsc("DISPLAY SUB('short') DURABLE"))
    assert "DURABLE(NO)" in shown
    options = SubOption.RESUME | SubOption.DURABLE
    assert refused(lambda: house.connect().subscribe("", options, name="short")) == (
        ReasonCode.MQRC_DURABILITY_NOT_ALTERABLE
    )
    house.restart()
    assert subscriptions(house) == ["long"]


def test_a_program_may_not_have_publications_put_on_any_queue(house: House) -> None:
    house.engine.define("OTHERS")
    program = house.connect(get=("OWN", "OTHERS"), put=("OWN",))
    handle = program.open_queue("OTHERS")
    assert refused(lambda: program.subscribe("plant/#", SubOption.CREATE, destination=handle)) == (
        ReasonCode.MQRC_NOT_AUTHORIZED
    )
    topic = program.open("plant/1")
    assert refused(lambda: program.subscribe("plant/#", SubOption.CREATE, destination=topic)) == (
        ReasonCode.MQRC_HOBJ_ERROR
    )


def test_a_durable_subscription_needs_a_queue_that_stays(house: House) -> None:
    program = house.connect(get=(DEFAULT_MODEL_QUEUE, "AMQ.*"), put=("AMQ.*",))
    handle = program.open_queue(DEFAULT_MODEL_QUEUE)
    options = SubOption.CREATE | SubOption.DURABLE
    assert refused(lambda: program.subscribe("plant/#", options, name="own", destination=handle)) == (
        ReasonCode.MQRC_INVALID_DESTINATION
    )
    program.subscribe("plant/#", SubOption.CREATE, destination=handle)
    program.publish("plant/1", b"one")
    assert program.all(handle) == [b"one"]


def test_each_subscription_has_a_copy_and_a_group_has_one(house: House) -> None:
    program = house.connect(get=("OWN",), put=("OWN",))
    handle = program.open_queue("OWN")
    said = {"destination": handle, "correl_id": b"c" * 24}
    options = SubOption.CREATE | SubOption.SET_CORREL_ID
    apart = [program.subscribe(topic, options, **said) for topic in ("plant/#", "plant/+")]
    program.publish("plant/1", b"one")
    assert program.all(handle) == [b"one", b"one"]
    for each in apart:
        program.connection.close(each.number)
    for topic in ("plant/#", "plant/+"):
        program.subscribe(topic, options | SubOption.GROUP_SUB, **said)
    program.publish("plant/1", b"two")
    assert program.all(handle) == [b"two"]
    assert refused(lambda: program.subscribe("plant/+", options, **said)) == ReasonCode.MQRC_SUB_ALREADY_EXISTS


# -- others ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [RESUMED, DURABLE | SubOption.ALTER, DURABLE | SubOption.RESUME])
def test_another_application_has_no_part_in_a_subscription(house: House, options: int) -> None:
    owner, other = house.connect(), house.connect("payroll")
    owner.close(owner.subscribe("plant/#", DURABLE, name="kept"))
    assert refused(lambda: other.subscribe("plant/#", options, name="kept", user_data="mine")) == (
        ReasonCode.MQRC_IDENTITY_MISMATCH
    )


def test_with_any_user_one_that_may_read_the_queue_resumes_and_changes_nothing(house: House) -> None:
    owner = house.connect()
    options = DURABLE | SubOption.ANY_USERID
    opened = owner.subscribe("plant/#", options, name="kept")
    owner.close(opened)
    stranger = house.connect("payroll")
    assert refused(lambda: stranger.subscribe("", RESUMED, name="kept")) == ReasonCode.MQRC_NOT_AUTHORIZED
    reader = house.connect("payroll", get=("SYSTEM.MANAGED.DURABLE.*",))
    altered = DURABLE | SubOption.ALTER
    assert refused(lambda: reader.subscribe("plant/#", altered, name="kept", user_data="mine")) == (
        ReasonCode.MQRC_IDENTITY_MISMATCH
    )
    resumed = reader.subscribe("plant/#", altered | SubOption.ANY_USERID, name="kept")
    owner.publish("plant/1", b"one")
    assert reader.all(resumed.handle) == [b"one"]
    assert refused(lambda: reader.connection.close(resumed.number, CloseOption.REMOVE_SUB)) == (
        ReasonCode.MQRC_NOT_AUTHORIZED
    )
    reader.close(resumed)
    assert subscriptions(house) == ["kept"]


@pytest.mark.parametrize("pattern", ["*", "S*", "SYSTEM*", "SYSTEM.*", "SYSTEM.MANAGED*"])
def test_a_general_pattern_opens_no_managed_queue_of_another_application(house: House, pattern: str) -> None:
    victim = house.connect("victim", get=(pattern,))
    victim.close(victim.subscribe("plant/#", DURABLE | SubOption.ANY_USERID, name="JMS:v"))
    victim.publish("plant/1", b"one")
    evil = house.connect("evil", get=(pattern,), browse=(pattern,), put=(pattern,))
    for options in (RESUMED | SubOption.ANY_USERID, DURABLE | SubOption.RESUME | SubOption.ANY_USERID):
        assert refused(lambda asked=options: evil.subscribe("plant/#", asked, name="JMS:v")) == (  # type: ignore[misc]
            ReasonCode.MQRC_NOT_AUTHORIZED
        )
    assert victim.all(victim.subscribe("", RESUMED, name="JMS:v").handle) == [b"one"]


@pytest.mark.parametrize("user", ["victim", "evil"])
def test_a_general_pattern_takes_up_no_subscription_on_a_system_queue(house: House, user: str) -> None:
    house.engine.define("SYSTEM.JMS.QUEUE")
    victim = house.connect("victim", get=("SYSTEM.JMS.*",), put=("SYSTEM.JMS.*",))
    handle = victim.open_queue("SYSTEM.JMS.QUEUE")
    options = SubOption.DURABLE | SubOption.ANY_USERID
    victim.close(victim.subscribe("plant/#", SubOption.CREATE | options, name="kept", destination=handle))
    other = house.connect(user, get=("*",), browse=("*",))
    assert refused(lambda: other.subscribe("", SubOption.RESUME | options, name="kept")) == (
        ReasonCode.MQRC_NOT_AUTHORIZED
    )
    victim.subscribe("", SubOption.RESUME | options, name="kept")


def test_a_subscription_of_an_operator_is_not_taken_up(house: House) -> None:
    house.mqsc("DEFINE SUB('kept') TOPICSTR('plant/#') DEST(OWN) SUBUSER('billing')")
    program = house.connect(get=("OWN",), put=("OWN",))
    options = SubOption.RESUME | SubOption.DURABLE
    assert refused(lambda: program.subscribe("", options, name="kept")) == ReasonCode.MQRC_INVALID_SUBSCRIPTION


def test_a_closed_topic_is_told_by_its_reason(house: House) -> None:
    house.engine.objects.define(
        Definition(object_type=ObjectType.TOPIC, name="P", said={"TOPICSTR": "plant", "SUB": "DISABLED"})
    )
    program = house.connect()
    for options in (MANAGED, DURABLE):
        assert refused(lambda asked=options: program.subscribe("plant/#", asked, name="kept")) == (  # type: ignore[misc]
            ReasonCode.MQRC_SUB_INHIBITED
        )
    assert (house.queues(), subscriptions(house)) == ([], [])


def test_no_broker_is_no_subscription(house: House) -> None:
    house.mqsc("ALTER QLOCAL(SYSTEM.BROKER.CONTROL.QUEUE) GET(DISABLED)")
    program = house.connect()
    assert refused(lambda: program.subscribe("plant/#", DURABLE, name="kept")) == ReasonCode.MQRC_PUBSUB_INHIBITED
    assert house.queues() == []


def test_programs_share_a_subscription_until_the_last_has_gone(house: House) -> None:
    first, second, third = house.connect(), house.connect(), house.connect()
    options = MANAGED | SubOption.ALTER | SubOption.ANY_USERID
    opened = first.subscribe("plant/#", options, name="shared", is_shared=True)
    joined = second.subscribe("plant/#", options, name="shared", is_shared=True)
    assert joined.subscription.queue is opened.subscription.queue
    assert refused(lambda: third.subscribe("plant/#", options, name="shared")) == ReasonCode.MQRC_SUBSCRIPTION_IN_USE
    third.publish("plant/1", b"one")
    third.publish("plant/1", b"two")
    assert first.get(opened.handle).data.endswith(b"one")
    assert second.all(joined.handle) == [b"two"]
    first.connection.end()
    third.publish("plant/1", b"3rd")
    assert second.all(joined.handle) == [b"3rd"]
    second.close(joined)
    assert (house.queues(), subscriptions(house)) == ([], [])


def test_a_shared_durable_subscription_is_removed_by_its_last_program(house: House) -> None:
    first, second = house.connect(), house.connect()
    options = DURABLE | SubOption.ALTER | SubOption.ANY_USERID
    opened = first.subscribe("plant/#", options, name="shared", is_shared=True)
    joined = second.subscribe("plant/#", options, name="shared", is_shared=True)
    assert refused(lambda: first.connection.close(opened.number, CloseOption.REMOVE_SUB)) == (
        ReasonCode.MQRC_SUBSCRIPTION_IN_USE
    )
    first.connection.end()
    assert refused(lambda: house.connect().subscribe("", RESUMED, name="shared")) == (
        ReasonCode.MQRC_SUBSCRIPTION_IN_USE
    )
    second.publish("plant/1", b"one")
    second.close(joined)
    last = house.connect()
    resumed = last.subscribe("", RESUMED, name="shared")
    assert last.all(resumed.handle) == [b"one"]
    last.close(resumed, CloseOption.REMOVE_SUB)
    house.broker.tend()
    assert (house.queues(), subscriptions(house)) == ([], [])


def test_operators_see_whose_it_is_and_where_it_goes(house: House) -> None:
    program = house.connect()
    opened = program.subscribe("plant/#", DURABLE, name="kept", user_data="orders")
    shown = "\n".join(house.mqsc("DISPLAY SUB('kept') ALL"))
    name = opened.subscription.queue.name
    for part in (
        "TOPICSTR('plant/#')",
        name,
        "DESTCLAS(MANAGED)",
        "PSPROP(MSGPROP)",
        "DURABLE(YES)",
        "SUBUSER('billing')",
        "USERDATA('orders')",
        f"DESTCORL({opened.subscription.correl_id.hex().upper()})",
    ):
        assert part in shown, part
    assert house.mqsc("ALTER SUB('kept') USERDATA('altered')") == ["The subscription was changed."]
    program.publish("plant/1", b"one")
    assert b"<Sud>altered</Sud>" in program.get(opened.handle).data


@pytest.mark.parametrize(
    "command",
    [
        "ALTER SUB('kept') DEST(OWN)",
        f"ALTER SUB('kept') DESTCORL('{'AB' * 24}')",
        f"DEFINE SUB('kept') TOPICSTR('plant/#') DEST(OWN) DESTCORL('{'AB' * 24}') REPLACE",
    ],
)
def test_operators_do_not_take_the_queue_of_a_program_away(house: House, command: str) -> None:
    program = house.connect()
    opened = program.subscribe("plant/#", DURABLE, name="kept")
    program.publish("plant/1", b"one")
    program.close(opened)
    before = house.mqsc("DISPLAY SUB('kept')")
    (complaint,) = house.mqsc(command)
    assert "of a subscription of MQSUB cannot be altered" in complaint
    assert "DELETE SUB" in complaint
    house.broker.tend()
    assert house.mqsc("DISPLAY SUB('kept')") == before
    assert program.all(program.subscribe("", RESUMED, name="kept").handle) == [b"one"]
    place = f"DEST({opened.subscription.queue.name}) DESTCORL('{opened.subscription.correl_id.hex()}')"
    assert house.mqsc(f"ALTER SUB('kept') {place} USERDATA('same place')") == ["The subscription was changed."]


def test_the_pattern_of_all_system_queues_opens_no_queue_of_anothers_subscription(house: House) -> None:
    victim = house.connect("victim")
    opened = victim.subscribe("plant/#", DURABLE, name="kept")
    name = opened.subscription.queue.name
    everything = ("SYSTEM.*",)
    evil = house.connect("evil", get=everything, browse=everything, put=everything)
    for options in (OpenOption.INPUT_SHARED, OpenOption.BROWSE, OpenOption.OUTPUT):
        assert refused(lambda asked=options: evil.open_queue(name, asked)) == ReasonCode.MQRC_NOT_AUTHORIZED  # type: ignore[misc]
    named = house.connect("named", get=("SYSTEM.MANAGED.*",))
    assert named.open_queue(name)
