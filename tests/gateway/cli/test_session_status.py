"""What `sessions show` makes of the gateway's answer, also where that is long or odd."""

from typing import Any, cast

import pytest

from gateway.bridge.connect.client_commands import listed
from gateway.cli.application import CommandFailed
from gateway.cli.session_status import lines_of, session_status
from mq_adapters.mqsc import MqscAnswer, quoted
from mq_adapters.queue_manager import QueueAdministration

VALUES = {
    "CHSTATUS": "MQTT",
    "CHLTYPE": "MQTT",
    "CLIENTID": "'pump-7'",
    "STATUS": "RUNNING",
    "PROTOCOL": "'3.1.1'",
    "CLIENTUSER": "'O''Hara, (ops)'",
    "LISTENER": "'default'",
    "CONNAME": "'[::1]:5000'",
    "SINCE": "'2026-11-20T13:00:00+00:00'",
    "AUTHEND": " ",
    "KAINT": "60",
    "EXPIRY": "4294967295",
    "EXPIRES": " ",
    "INDOUBTIN": "1",
    "INDOUBTOUT": "2",
    "PENDING": "3",
    "PENDBYTE": "400",
    "SUBCOUNT": "1",
    "SUBS": "'qos=2 a b/#'",
    "WILL": "YES",
    "WILLTOPIC": "'it''s'",
    "WILLQOS": "1",
    "WILLRETN": "NO",
    "WILLBYTE": "5",
    "WILLDLAY": "0",
}


class Answering:
    """A queue manager that answers every command so, and remembers it."""

    def __init__(self, **changed: str) -> None:
        self.asked = ""
        self.lines = tuple(f"   {keyword}({value})" for keyword, value in (VALUES | changed).items())
        self.succeeded = True

    def mqsc(self, command: str) -> MqscAnswer:
        self.asked = command
        return MqscAnswer(lines=("AMQ8417I: Display Channel Status details.", *self.lines), succeeded=self.succeeded)


def shown_by(queue_manager: Answering, client: str = "c") -> Any:
    return session_status(cast(QueueAdministration, queue_manager), client)


def test_every_value_is_read_as_what_it_is() -> None:
    queue_manager = Answering()
    status = shown_by(queue_manager, "pump-7")
    assert queue_manager.asked == "DISPLAY CHSTATUS(*) CHLTYPE(MQTT) CLIENTID('pump-7')"
    assert (status["user"], status["peer"], status["token_until"]) == ("O'Hara, (ops)", "[::1]:5000", None)
    assert (status["expiry_s"], status["in_flight"]) == (None, {"incoming": 1, "outgoing": 2})
    assert status["will"] == {"topic": "it's", "qos": 1, "retain": False, "payload_bytes": 5, "delay_s": 0}
    assert "  a b/#  QoS 2" in list(lines_of(status))


@pytest.mark.parametrize("topic_filter", ["a b", "it's", 'a"b', "a(b)", "a,b", "a\nb", "  ", "$share/g/a", "ä/漢"])
def test_a_topic_filter_is_shown_as_it_is(topic_filter: str) -> None:
    queue_manager = Answering(SUBS=quoted(f"qos=1,retain_as_published {topic_filter}"))
    (shown,) = shown_by(queue_manager)["subscriptions"]
    assert shown["topic_filter"] == topic_filter
    assert shown["retain_as_published"] is True


def test_of_very_many_subscriptions_as_many_are_shown_as_there_is_room_for() -> None:
    filters = [f"plant/{number}/{'x' * 100}" for number in range(2_000)]
    queue_manager = Answering(SUBS=listed(f"qos=0 {each}" for each in filters), SUBCOUNT="2000")
    status = shown_by(queue_manager)
    assert status["subscription_count"] == 2_000
    shown = [each["topic_filter"] for each in status["subscriptions"]]
    assert 500 < len(shown) < 1_000
    assert shown == filters[: len(shown)]


def test_a_refusal_is_told_in_the_gateways_words() -> None:
    queue_manager = Answering()
    queue_manager.succeeded = False
    with pytest.raises(CommandFailed, match="AMQ8417I"):
        shown_by(queue_manager)
