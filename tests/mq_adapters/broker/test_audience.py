"""Who would get what is published now: the same subscriptions that a publication reaches, without one."""

from pathlib import Path

import pytest

from mappings.table import Dialect
from mq_adapters.broker.broker import BrokerRules
from mq_adapters.broker.topic_spaces import BrokerDialect

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
