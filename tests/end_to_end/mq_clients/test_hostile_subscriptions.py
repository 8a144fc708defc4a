"""Programs that mean harm with subscriptions and deferred messages: the gateway goes on for the others."""

import random
import time
from collections.abc import Iterator

import pytest

from mq_adapters import connect
from mq_adapters.client_channel.charv import Charv
from mq_adapters.client_channel.segments import SegmentType
from mq_adapters.client_channel.spi import SpiActivate, SpiRequest, SpiSubscribe, SpiVerb
from mq_adapters.client_channel.structures import LSDO_SHARED, Lsd, Mqsd, Mqsro
from mq_adapters.client_channel.verbs import Mqclose, Mqsub, Mqsubrq
from mq_adapters.reasons import ReasonCode
from mq_adapters.subscribed_queue import SubscriptionOption
from tests.end_to_end.mq_clients.house import PATIENCE_S, House
from tests.end_to_end.mq_clients.raw_client import RawClient

OUTPUT, INPUT_SHARED = 0x10, 0x2
REMOVE_SUB = 8
DURABLE = SubscriptionOption.CREATE | SubscriptionOption.MANAGED | SubscriptionOption.DURABLE
SEED = 20_261_129


@pytest.fixture(autouse=True)
def no_fault_of_ours(house: House) -> Iterator[None]:
    """After each test the gateway serves a program, and its log has no error."""
    yield
    with RawClient(house.port) as client:
        client.connect().open("ORDERS", OUTPUT)
    assert [line for line in house.gateway.lines if '"level":"error"' in line] == []


def descriptor(options: int, topic: bytes = b"plant/#", name: bytes = b"", **fields: object) -> Mqsd:
    strings = {"object_string": Charv(value=topic, buffer_size=100), "sub_name": Charv(value=name, buffer_size=100)}
    return Mqsd(options=options, **{**strings, **fields})  # type: ignore[arg-type]


def made_by_the_queue_manager(house: House) -> list[str]:
    with connect(str(house.gateway.data)) as operator:
        return [
            each.name
            for each in operator.queues()
            if each.name.startswith(("SYSTEM.MANAGED.", "SYSTEM.RFHBRIDGE.ANSWER."))
        ]


def wait_for_nothing(house: House) -> None:
    end = time.monotonic() + PATIENCE_S / 2
    while made_by_the_queue_manager(house) and time.monotonic() < end:
        time.sleep(0.1)
    assert made_by_the_queue_manager(house) == []


def test_mqsub_with_anything_is_answered(house: House) -> None:
    chosen = random.Random(SEED)
    texts = (
        b"",
        b"plant/#",
        b"plant/*",
        b"secret",
        b"\0",
        b"\xff\xfe",
        b"p" * 20_000,
        "plant/größe".encode(),
        b"#/+/#",
    )
    with RawClient(house.port) as client:
        queue = client.connect().open("ORDERS", INPUT_SHARED | OUTPUT)
        codes = set()
        for _ in range(600):
            options = sum(option for option in SubscriptionOption if chosen.random() < 0.25)
            options = chosen.choice((options, options | DURABLE, chosen.randrange(-(2**31), 2**31)))
            fields = {
                "sub_expiry": chosen.choice((-1, 0, 1, 2**31 - 1, -(2**31))),
                "pub_priority": chosen.choice((-3, -1, 0, 9, 10, -(2**31))),
                "sub_level": chosen.choice((1, 1, 1, 0, -5)),
                "sub_correl_id": chosen.choice((bytes(24), b"c" * 24)),
                "sub_user_data": Charv(value=chosen.choice(texts), buffer_size=chosen.choice((0, 5, -1, 2**31 - 1))),
                "object_name": chosen.choice(("", "", "NOWHERE")),
            }
            asked = descriptor(options, chosen.choice(texts), chosen.choice((*texts, b"n")), **fields)
            handle = chosen.choice((0, -1, queue, 9_999))
            if chosen.random() < 0.5:
                header, answer = client.ask(SegmentType.MQSUB, Mqsub(subscription_descriptor=asked), handle)
                number = 0 if answer is None else answer.subscription_handle
            else:
                lsd = Lsd(options=chosen.choice((0, LSDO_SHARED, -1)))
                content = SpiSubscribe(lsd=lsd, subscription_descriptor=asked)
                request = SpiRequest(verb=SpiVerb.SUBSCRIBE, content=content)
                header, answer = client.ask(SegmentType.SPI, request, handle)
                number = 0 if answer is None else answer.content.subscription_handle
            codes.add(header.reason_code)
            if number:
                client.ask(SegmentType.MQCLOSE, Mqclose(options=chosen.choice((0, 4, 8, 12, 99))), number)
                client.ask(SegmentType.MQCLOSE, Mqclose(options=REMOVE_SUB), number)
                if header.object_handle != queue:
                    client.ask(SegmentType.MQCLOSE, Mqclose(), header.object_handle)
        assert len(codes) > 5
    with connect(str(house.gateway.data)) as operator:
        shown = "\n".join(operator.mqsc("DISPLAY SUB(*) WHERE(SUBUSER EQ 'billing')").lines)
        for name in [line.split("SUBID(")[1].split(")")[0] for line in shown.splitlines() if "SUBID(" in line]:
            assert operator.mqsc(f"DELETE SUB SUBID({name})").succeeded
    wait_for_nothing(house)


def test_handles_and_messages_of_others_are_refused(house: House) -> None:
    with RawClient(house.port) as other, RawClient(house.port) as client:
        _, answer = other.connect().ask(
            SegmentType.MQSUB, Mqsub(subscription_descriptor=descriptor(DURABLE, name=b"o")), 0
        )
        client.connect()
        for handle in (answer.subscription_handle, 0, -1, 2**31 - 1):
            for verb, asked in (
                (SegmentType.MQSUBRQ, Mqsubrq(action=1, options=Mqsro())),
                (SegmentType.MQCLOSE, Mqclose(options=REMOVE_SUB)),
            ):
                assert client.ask(verb, asked, handle)[0].reason_code == ReasonCode.MQRC_HOBJ_ERROR
        for mode, reason_code in ((1, ReasonCode.MQRC_NO_MSG_AVAILABLE), (7, ReasonCode.MQRC_OPTIONS_ERROR)):
            request = SpiRequest(verb=SpiVerb.ACTIVATE, content=SpiActivate(mode=mode, msg_id=b"m" * 24))
            assert client.ask(SegmentType.SPI, request)[0].reason_code == reason_code
        for action, options, reason_code in (
            (2, 0, ReasonCode.MQRC_ACTION_ERROR),
            (1, 1, ReasonCode.MQRC_OPTIONS_ERROR),
        ):
            asked = Mqsubrq(action=action, options=Mqsro(options=options))
            assert other.ask(SegmentType.MQSUBRQ, asked, answer.subscription_handle)[0].reason_code == reason_code
        header, _ = other.ask(SegmentType.MQCLOSE, Mqclose(options=REMOVE_SUB), answer.subscription_handle)
        assert header.completion_code == 0
    wait_for_nothing(house)


def test_durable_subscriptions_that_come_and_go_leave_nothing(house: House) -> None:
    for number in range(60):
        with RawClient(house.port) as client:
            client.connect()
            name = f"gone-{number}".encode()
            asked = Mqsub(subscription_descriptor=descriptor(DURABLE, name=name))
            header, answer = client.ask(SegmentType.MQSUB, asked, 0)
            assert header.completion_code == 0
            if number % 3:
                closing = Mqclose(options=REMOVE_SUB)
                assert client.ask(SegmentType.MQCLOSE, closing, answer.subscription_handle)[0].completion_code == 0
    with connect(str(house.gateway.data)) as operator:
        for number in range(0, 60, 3):
            assert operator.mqsc(f"DELETE SUB('gone-{number}')").succeeded
    wait_for_nothing(house)
