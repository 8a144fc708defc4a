"""Who would get what is published now: the same subscriptions that a publication reaches, without one."""

from functools import partial
from itertools import product
from pathlib import Path

import pytest

from mappings.table import Dialect
from mq_adapters.broker.broker import BrokerRules
from mq_adapters.broker.subscriptions import Interested
from mq_adapters.broker.topic_spaces import BrokerDialect, TopicSpaces
from mq_adapters.system_queues import DEFAULT_STREAM
from tests.calls import calls_of

DEFAULT = "SYSTEM.BROKER.DEFAULT.STREAM"
SAMPLE = "SAMPLE.BROKER.RESULTS.STREAM"


def queues(station, topic, *, queue_name=DEFAULT, header=Dialect.MQRFH2):
    """The queues of those that are subscribed to a topic."""
    return sorted(found.identity.queue_name for found in station.broker.audience(queue_name, header).of(topic))


def test_both_formats_are_found_and_nobody_else(station):
    station.subscribe_old("a/*")
    station.subscribe_new("a/#")
    assert queues(station, "a/b") == ["NEW", "OLD"]
    assert queues(station, "a") == ["NEW"]
    assert queues(station, "b") == []


def test_a_subscription_that_has_ended_is_not_found(station):
    station.subscribe_new("a", expiry=100)
    assert queues(station, "a") == ["NEW"]
    station.pass_time(10)
    assert queues(station, "a") == []


def test_a_subscription_with_a_content_filter_is_found_whatever_it_would_let_pass(station):
    station.subscribe_new("a", "<Filter>Body.n = 1</Filter>")
    assert queues(station, "a") == ["NEW"]


def test_a_subscription_that_only_asks_is_not_found(station):
    station.subscribe_new("a", "<RegOpt>PubOnReqOnly</RegOpt>")
    assert queues(station, "a") == []


def test_a_stream_of_its_own_has_an_audience_of_its_own(station):
    station.subscribe_old("a", f"MQPSStreamName {SAMPLE}")
    assert queues(station, "a") == []
    assert queues(station, "a", queue_name=SAMPLE) == ["OLD"]


def test_a_subscription_point_has_an_audience_of_its_own(station_class, tmp_path: Path):
    station = station_class(tmp_path, (), BrokerRules(subscription_points={DEFAULT: "dollar"}))
    station.subscribe_new("a")
    assert queues(station, "a") == []
    station.subscribe_new("a", "<SubPoint>dollar</SubPoint>")
    assert queues(station, "a") == ["NEW"]
    station.engine.close()


@pytest.mark.parametrize(("header", "expected"), [(Dialect.MQRFH, ["OLD"]), (Dialect.MQRFH2, [])])
def test_a_stream_that_is_a_prefix_is_found_by_the_header_of_the_publisher(
    station_class, tmp_path: Path, header, expected
):
    rules = BrokerRules(dialect=BrokerDialect.WMB, input_queues=("STOCK",), has_implicit_stream_naming=True)
    station = station_class(tmp_path, (), rules)
    station.subscribe_old("a", "MQPSStreamName STOCK")
    station.subscribe_new("+/STREAM/STOCK/a")
    assert queues(station, "a", queue_name="STOCK", header=header) == expected
    station.engine.close()


def test_topics_that_match_the_same_patterns_are_answered_in_steps_of_the_index_alone(station):
    patterns = ["/".join(each) for each in product("a+", repeat=5)]
    topics = "".join(f"<Topic>{pattern}/+</Topic>" for pattern in patterns)
    station.control(f"<psc><Command>RegSub</Command><QName>NEW</QName>{topics}</psc>")
    index = station.broker._registry.space(DEFAULT_STREAM).index("")
    interested = Interested(index, TopicSpaces())
    first = interested.of(("a/a/a/a/a/1",), station.now_us)
    assert len(first) == len(patterns)
    assert interested.of(("a/a/a/a/a/2",), station.now_us) is first
    assert calls_of(partial(interested.of, ("a/a/a/a/a/3",), station.now_us)) <= index.shapes.weight + 60
    assert len(interested.of(("a/a/a/a/b/1",), station.now_us)) == len(patterns) // 2
    station.control("<psc><Command>RegSub</Command><QName>OLD</QName><Topic>#</Topic></psc>")
    assert len(interested.of(("a/a/a/a/a/1",), station.now_us)) == len(patterns) + 1


def test_a_subscription_that_ends_is_not_remembered_among_many(station):
    topics = "".join(f"<Topic>{'+/' * levels}#</Topic>" for levels in range(12))
    station.control(f"<psc><Command>RegSub</Command><QName>NEW</QName>{topics}</psc>")
    station.control("<psc><Command>RegSub</Command><QName>OLD</QName><Topic>#</Topic></psc>", expiry=10)
    topic = "/".join(["a"] * 12)
    interested = Interested(station.broker._registry.space(DEFAULT_STREAM).index(""), TopicSpaces())
    assert len(interested.of((topic,), station.now_us)) == 13
    station.pass_time(2)
    assert len(interested.of((topic,), station.now_us)) == 12
