"""Streams and subscription points: copies go where the publication is published, by the rules that a start tells."""

from itertools import pairwise
from typing import Any

import pytest

from spark_audit.custody.findings import Custody
from spark_audit.custody.places import UNKNOWN_PLACE, Place, Rules
from spark_audit.custody.replay import replayed
from spark_audit.custody.topic_match import Scheme
from spark_audit.record import StreamRules
from tests.headers import mqrfh, mqrfh2
from tests.spark_audit.custody.scenes import BROKERS, CONTROL, STREAM, Record, Scene, connected, record

_POINTS = (("PRICES", "EUR"),)
_MQ6, _WMB, _IMPLICIT = (Rules(each, _POINTS) for each in StreamRules)


@pytest.mark.parametrize(
    ("rules", "queue", "named", "is_mqrfh", "place", "topic"),
    [
        (_MQ6, "NEWS", None, True, Place("NEWS"), "a"),
        (_MQ6, "PRICES", None, True, Place("PRICES", "EUR"), "a"),
        (_WMB, "NEWS", None, True, Place(STREAM), "a"),
        (_WMB, "NEWS", "NEWS", True, Place(STREAM), "$SYS/STREAM/NEWS/a"),
        (_WMB, "PRICES", STREAM, True, Place(STREAM, "EUR"), "a"),
        (_IMPLICIT, "NEWS", None, True, Place(STREAM), "$SYS/STREAM/NEWS/a"),
        (_IMPLICIT, "NEWS", None, False, Place(STREAM), "a"),
        (_IMPLICIT, "NEWS", STREAM, True, Place(STREAM), "a"),
        (Rules(), STREAM, None, True, Place(STREAM), "a"),
        (Rules(), "NEWS", None, True, UNKNOWN_PLACE, "a"),
        (Rules(), STREAM, "NEWS", True, UNKNOWN_PLACE, "a"),
    ],
)
def test_a_publication_has_the_place_that_the_rules_give_it(
    rules: Rules, queue: str, named: str | None, is_mqrfh: bool, place: Place, topic: str
) -> None:
    assert rules.of_publication(queue, named, ("a",), is_mqrfh=is_mqrfh) == (place, (topic,))


def test_a_subscription_has_the_place_that_the_rules_give_it() -> None:
    assert _MQ6.of_subscription("NEWS", "a/*", Scheme.CHARACTERS, "P") == (Place("NEWS", "P"), "a/*")
    assert _WMB.of_subscription("N%S", "a/*", Scheme.CHARACTERS, "P") == (Place(STREAM, "P"), "$SYS/STREAM/N%%S/a/*")
    assert Rules().of_subscription(STREAM, "a/*", Scheme.CHARACTERS, "P") == (UNKNOWN_PLACE, "a/*")
    assert Rules().of_subscription(STREAM, "a/*", Scheme.CHARACTERS, "") == (Place(STREAM), "a/*")


def test_a_wildcard_reaches_topics_of_another_stream_only_where_streams_are_queues() -> None:
    topic = "$SYS/STREAM/NEWS/a"
    assert (_WMB.reaches("#", topic), _MQ6.reaches("#", topic), Rules().reaches("#", topic)) == (False, True, True)
    assert _WMB.reaches("$SYS/STREAM/+/a", topic)


@pytest.mark.parametrize("listed", [None, '["of the future", []]', '["mq6", [["Q"]]]'])
def test_rules_that_nobody_can_read_are_unknown_or_less(listed: str | None) -> None:
    assert Rules.of({"listed": listed}).points == ()


# -- the replay --------------------------------------------------------------------------------------------------------


class _Streams:
    """The trail of a gateway that tells its rules, and of its applications."""

    def __init__(self, rules: str | None = "mq6", points: tuple[tuple[str, str], ...] = ()) -> None:
        self.scene = Scene()
        self.scene.records[0] |= {"stream_rules": rules, "points": [list(each) for each in points]}

    def restart(self, rules: str) -> None:
        self.scene.commit(record("started", stream_rules=rules), record("stock", event="queues", messages=0))

    def command(self, verb: str, text: str, *copies: str, queue: str = CONTROL, **fields: Any) -> None:
        """A command in MQRFH, and the copies of it on these queues."""
        self._commit(verb, mqrfh(f"MQPSCommand {verb} {text}"), "MQHRF", copies, queue, fields)

    def new(self, verb: str, psc: str, *copies: str, queue: str = CONTROL, **fields: Any) -> None:
        """The same in MQRFH2."""
        self._commit(verb, mqrfh2(f"<psc><Command>{verb}</Command>{psc}</psc>"), "MQHRF2", copies, queue, fields)

    def _commit(
        self, verb: str, header: bytes, format: str, copies: tuple[str, ...], queue: str, fields: Record
    ) -> None:
        number = self.scene.number()
        said = {"command": verb, "queue": queue, "message_id": number, "completion": "ok"}
        command = record("commanded", input=header, input_format=format, **said)
        words = header.decode("latin-1").replace("<Topic>", "MQPSTopic ").replace("</Topic>", " ").split()
        topics = [after for before, after in pairwise(words) if before.endswith("MQPSTopic")]
        made = [
            record(
                "put",
                topic=topics[0],
                command="Publish",
                queue=name,
                message_id=self.scene.number(),
                correlation_id=BROKERS,
                source_message_id=number,
                conversion="header_to_header",
                output_format="MQHRF2" if name.startswith("NEW") else "MQHRF",
                is_retained=False,
            )
            for name in copies
        ]
        self.scene.commit(*made, command | {"topics": topics} | fields)

    def found(self) -> set[Custody]:
        return {each.control for each in replayed(self.scene.rows())}


def _on_two_streams(rules: str | None, *copies: str) -> set[Custody]:
    """Queue OLD is registered on NEWS, queue OTHER on the default stream; NEWS has a publication, then each has one."""
    streams = _Streams(rules)
    streams.command("RegSub", "MQPSStreamName NEWS MQPSQName OLD MQPSTopic a*")
    streams.command("RegSub", "MQPSQName OTHER MQPSTopic a*")
    streams.command("Publish", "MQPSTopic a", *copies, queue="NEWS")
    streams.command("Publish", "MQPSTopic ab", "OLD", queue="NEWS")
    streams.command("Publish", "MQPSTopic ab", "OTHER", queue=STREAM)
    return streams.found()


def test_a_publication_is_due_on_its_own_stream_alone() -> None:
    assert _on_two_streams("mq6", "OLD") == set()
    for copies in ((), ("OTHER",), ("OLD", "OTHER"), ("OLD", "OLD")):
        assert _on_two_streams("mq6", *copies) == {Custody.COPIES}, copies


def test_without_the_rules_copies_on_streams_are_allowed_and_not_due() -> None:
    for copies in ((), ("OLD",), ("OLD", "OTHER")):
        assert _on_two_streams(None, *copies) == set(), copies
    assert _on_two_streams(None, "OLD", "OLD") == {Custody.COPIES}


def _at_a_point(*copies: str) -> set[Custody]:
    streams = _Streams("wmb", _POINTS)
    streams.new("RegSub", "<Topic>a</Topic><SubPoint>EUR</SubPoint><QName>NEW.EUR</QName>")
    streams.new("RegSub", "<Topic>a</Topic><QName>NEW.PLAIN</QName>")
    streams.new("Publish", "<Topic>a</Topic>", *copies, queue="PRICES")
    streams.new("Publish", "<Topic>a</Topic>", "NEW.EUR", queue="PRICES")
    streams.new("Publish", "<Topic>a</Topic>", "NEW.PLAIN", queue=STREAM)
    return streams.found()


def test_a_publication_is_due_at_its_own_point_alone() -> None:
    assert _at_a_point("NEW.EUR") == set()
    for copies in ((), ("NEW.PLAIN",), ("NEW.EUR", "NEW.PLAIN")):
        assert _at_a_point(*copies) == {Custody.COPIES}, copies


def test_a_start_with_other_rules_gives_subscriptions_other_places() -> None:
    def made(text: str, queue: str, *copies: str) -> set[Custody]:
        streams = _Streams("mq6")
        streams.command("RegSub", "MQPSStreamName NEWS MQPSQName OLD MQPSTopic a")
        streams.restart("wmb")
        streams.command("Publish", f"{text} MQPSTopic a", *copies, queue=queue)
        streams.command("RegSub", "MQPSQName OTHER MQPSTopic b")
        return streams.found()

    assert made("", "NEWS") == set()
    assert made("", "NEWS", "OLD") == {Custody.COPIES}
    assert made("MQPSStreamName NEWS", STREAM, "OLD") == set()


def test_a_wildcard_brings_nothing_of_another_stream() -> None:
    def made(*copies: str) -> set[Custody]:
        streams = _Streams("wmb")
        streams.command("RegSub", "MQPSQName OLD MQPSTopic *")
        streams.command("Publish", "MQPSStreamName NEWS MQPSTopic a", *copies, queue=STREAM)
        streams.command("RegSub", "MQPSQName OTHER MQPSTopic b")
        return streams.found()

    assert made() == set()
    assert made("OLD") == {Custody.COPIES}


def test_a_name_is_that_of_a_subscription_on_its_own_stream() -> None:
    streams = _Streams("mq6")
    streams.command("RegSub", "MQPSStreamName NEWS MQPSQName OLD MQPSSubName S MQPSTopic a")
    streams.command("RegSub", "MQPSQName OTHER MQPSSubName S MQPSTopic a")
    streams.command("DeregSub", "MQPSQName OTHER MQPSSubName S MQPSTopic a")
    streams.command("Publish", "MQPSTopic a", "OLD", queue="NEWS")
    streams.command("Publish", "MQPSTopic a", queue=STREAM)
    streams.command("RegSub", "MQPSQName OTHER MQPSTopic b")
    assert streams.found() == set()


def test_the_same_topic_in_the_other_format_is_the_same_subscription() -> None:
    """A second RegSub in the other format replaces the first one, and a DeregSub in either ends it."""

    def made(*copies: str) -> set[Custody]:
        streams = _Streams()
        streams.command("RegSub", "MQPSQName NEW MQPSRegOpts DupsOK MQPSTopic a/b")
        streams.new("RegSub", "<RegOpt>DupsOK</RegOpt><Topic>a/b</Topic><QName>NEW</QName>")
        for _ in range(2):
            streams.command("Publish", "MQPSTopic a/b", *copies, queue=STREAM)
        streams.command("DeregSub", "MQPSQName NEW MQPSTopic a/b")
        streams.command("Publish", "MQPSTopic a/b", queue=STREAM)
        return streams.found()

    assert made("NEW") == set()
    assert made("NEW", "NEW") == {Custody.COPIES}


def test_a_publisher_that_names_its_queue_alone_has_no_copy_due() -> None:
    def made(*copies: str) -> set[Custody]:
        streams = _Streams()
        for queue in ("OWN", "OTHER"):
            streams.command("RegSub", f"MQPSQName {queue} MQPSTopic a")
        streams.command("Publish", "MQPSPubOpts OtherSubsOnly MQPSQName OWN MQPSTopic a", *copies, queue=STREAM)
        streams.command("Publish", "MQPSTopic a", "OWN", "OTHER", queue=STREAM)
        return streams.found()

    assert made("OTHER") == set()
    assert made("OWN") == {Custody.COPIES}


@pytest.mark.parametrize(("rules", "due"), [("mq6", False), ("wmb", True)])
def test_local_of_mqrfh_keeps_a_publication_from_others_in_one_dialect(rules: str, due: bool) -> None:
    def made(*copies: str) -> set[Custody]:
        streams = _Streams(rules)
        streams.command("RegSub", "MQPSQName OLD MQPSTopic a")
        streams.command("Publish", "MQPSRegOpts Local MQPSTopic a", *copies, queue=STREAM)
        streams.command("Publish", "MQPSTopic a", "OLD", queue=STREAM)
        return streams.found()

    assert made("OLD") == (set() if due else {Custody.COPIES})
    assert made() == ({Custody.COPIES} if due else set())


def test_what_a_stream_retains_is_not_sent_on_another() -> None:
    """The client's own broker has its publications on queue NEWS, a stream of its own; clients subscribe elsewhere."""

    def made(rules: str, *copies: str) -> set[Custody]:
        scene = connected("pump", "desk")
        scene.records[0] |= {"stream_rules": rules}
        (put,) = scene.publish("pump", "plant/a", retain=True)
        scene.commit(put | {"queue": "NEWS"})
        sent = [scene.copy(put, each, is_retained=True) for each in copies]
        scene.commit(*scene.subscribe("desk", "plant/#"), *sent)
        scene.commit(*scene.subscribe("desk", "other"))
        return {each.control for each in replayed(scene.rows())}

    assert made("mq6") == set()
    assert made("mq6", "desk") == {Custody.RETAINED}
    assert made("wmb", "desk") == set()
    assert made("wmb") == {Custody.RETAINED}


def _deleted(rules: str | None, queue: str, *copies: str) -> set[Custody]:
    """A DeletePub on a queue is to delete a value of the default stream; then somebody registers."""
    scene = connected("pump", "desk")
    scene.records[0] |= {"stream_rules": rules}
    (put,) = scene.publish("pump", "plant/a", retain=True)
    scene.commit(put)
    header = mqrfh2("<psc><Command>DeletePub</Command><Topic>plant/a</Topic></psc>")
    said = record("put", output=header, output_format="MQHRF2")
    deletion = {"command": "DeletePub", "queue": queue, "retain": None, "packet_type": None}
    scene.commit(put | said | deletion | {"message_id": scene.number()})
    sent = [scene.copy(put, each, is_retained=True) for each in copies]
    scene.commit(*scene.subscribe("desk", "plant/#"), *sent)
    scene.commit(*scene.subscribe("desk", "other"))
    return {each.control for each in replayed(scene.rows())}


def test_a_deletion_on_one_stream_leaves_what_another_retains() -> None:
    assert _deleted("mq6", STREAM) == set()
    assert _deleted("mq6", STREAM, "desk") == {Custody.RETAINED}
    assert _deleted("mq6", "NEWS", "desk") == set()
    assert _deleted("mq6", "NEWS") == {Custody.RETAINED}


def test_without_the_rules_a_deletion_elsewhere_may_have_been_of_any_value() -> None:
    assert _deleted(None, "NEWS") == _deleted(None, "NEWS", "desk") == set()
    assert _deleted(None, STREAM, "desk") == {Custody.RETAINED}


@pytest.mark.parametrize(("option", "is_left"), [("", True), ("MQPSDelOpts Local", False)])
def test_a_deletion_in_mqrfh_is_of_what_was_published_as_it_says(option: str, is_left: bool) -> None:
    streams = _Streams()
    streams.command("Publish", "MQPSPubOpts RetainPub MQPSRegOpts Local MQPSTopic a", queue=STREAM)
    source = {"topic": "a", "message_id": streams.scene.records[-1]["message_id"]}
    streams.command("DeletePub", f"{option} MQPSTopic a", queue=STREAM)
    streams.scene.session("desk", "opened")
    copy = streams.scene.copy(source, "desk", is_retained=True)
    streams.scene.commit(*streams.scene.subscribe("desk", "a"), copy)
    assert streams.found() == (set() if is_left else {Custody.RETAINED})


def test_an_inventory_may_list_a_value_whose_stream_the_trail_does_not_say() -> None:
    def made(queue: str) -> set[Custody]:
        scene = connected("pump")
        (put,) = scene.publish("pump", "plant/a", retain=True)
        scene.commit(put | {"queue": queue})
        entry = [STREAM, "plant/b" if queue == STREAM else "plant/a", "", put["message_id"], "1", "00" * 32]
        scene.commit(record("inventory", event="retained", entries=1, retained_publications=[entry]))
        return {each.control for each in replayed(scene.rows())}

    assert made("NEWS") == set()
    assert made(STREAM) == {Custody.INVENTORY}


def _joined_by_name(*copies: str, first: str = "MQPSSubName n ") -> set[Custody]:
    """A subscription to `a` is joined by a command that names topic `b`; then each topic has a publication."""
    joining = "MQPSSubIdentity i MQPSRegOpts JoinExcl MQPSRegOpts NoAlter"
    streams = _Streams()
    streams.command("RegSub", f"{first}{joining} MQPSQName OLD MQPSTopic a")
    streams.command("RegSub", f"MQPSSubName n {joining} MQPSQName OLD MQPSTopic b")
    streams.command("Publish", "MQPSTopic a", "OLD", queue=STREAM)
    streams.command("Publish", "MQPSTopic b", *copies, queue=STREAM)
    streams.command("Publish", "MQPSTopic a", "OLD", queue=STREAM)
    return streams.found()


def test_a_command_that_joins_by_name_registers_no_topic() -> None:
    assert _joined_by_name() == set()
    assert _joined_by_name("OLD", first="") == set(), "nobody has the name, so it is a new subscription"
