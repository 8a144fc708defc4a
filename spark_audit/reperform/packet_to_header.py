"""A packet became a command: the header is predicted from the packet's own bytes.

    PUBLISH, will       Publish, RetainPub with RETAIN and a payload; NoReg in MQRFH
    PUBLISH RETAIN=1    without a payload: DeletePub first, then a Publish without RetainPub
    SUBSCRIBE           RegSub with CorrelAsId and InformIfRet, for the filter (MQRFH: patterns that cover it); also
                        with NewPubsOnly where its Retain Handling is 2, or 1 and the subscription was not new; by
                        configuration ReqUpdate with CorrelAsId for one of them that was registered already
    UNSUBSCRIBE         DeregSub with CorrelAsId, for the same topics or those of them that nobody else uses
    end of a session    DeregSub with CorrelAsId and DeregAll, without topics

A Publish carries the properties of a packet of level 5 (properties.py). For a target it also carries everything that
the broker there would lose, and names the stream. A filter may be narrowed to the topics of the target's routes
(target.py). A Publish in MQRFH2 may have the
folders of JMS (jms.py).

Source: MQTT 3.1.1 sections 3.1, 3.3, 3.8 and 3.10; IBM MQ, "Queued publish/subscribe command messages".
"""

from typing import Final

from spark_audit.reperform.comparison import Comparison, Status, UnreadableBytes, compared
from spark_audit.reperform.facts import Facts
from spark_audit.reperform.header import Surroundings, write_mqrfh, write_mqrfh2
from spark_audit.reperform.jms import NO_TEXT, JmsFolders, expected_folders, folder_differences, is_text
from spark_audit.reperform.meaning import PSC, Meaning, read_meaning
from spark_audit.reperform.mqtt import (
    CONNECT,
    DISCONNECT,
    PUBLISH,
    SUBSCRIBE,
    UNSUBSCRIBE,
    read_filter,
    read_publish,
    read_retain_handling,
    read_will,
)
from spark_audit.reperform.properties import carried, read_properties
from spark_audit.reperform.table import TO_NAME
from spark_audit.reperform.target import (
    USR,
    carrier_differences,
    expected_carrier,
    is_within,
    prefix_of,
    read_carrier,
    said_stream,
    typed,
)
from spark_audit.reperform.topics import character_patterns, covers, escaped
from spark_audit.reperform.user_properties import OWN_PREFIX, named_singly

#: The gateway's description of the payload behind the header: no format, UTF-8, little-endian.
PAYLOAD: Final = Surroundings(format="", coded_char_set_id=1208, encoding=546)
#: The same of a payload that is a text of JMS.
_TEXT: Final = Surroundings(format="MQSTR", coded_char_set_id=1208, encoding=546)
_SUBSCRIBER: Final = (("RegOpt", "CorrelAsId"), ("RegOpt", "InformIfRet"))
#: No SUBSCRIBE asked for a repeated registration, so no retained publication is due.
_SUBSCRIBER_ANEW: Final = (("RegOpt", "CorrelAsId"), ("RegOpt", "NewPubsOnly"), ("RegOpt", "InformIfRet"))
_IDENTITY: Final = (("RegOpt", "CorrelAsId"),)
_ALL: Final = (("RegOpt", "CorrelAsId"), ("RegOpt", "DeregAll"))
#: The names of the subscriber's queue, which the packet does not have.
_PLACES: Final = ("QName", "QMgrName")
#: The beginning of the filter of a shared subscription.
_SHARED: Final = "$share/"
_SUBSCRIPTION_COMMANDS: Final = frozenset({"RegSub", "ReqUpdate", "DeregSub"})
#: These are for some of the topics that a filter becomes.
_OF_SOME_TOPICS: Final = frozenset({"ReqUpdate", "DeregSub"})
#: The packets that each command is made from. A session ends by DISCONNECT (14), by the next CONNECT, or by time (0).
_PACKET_TYPES: Final = {
    "Publish": (PUBLISH, CONNECT),
    "DeletePub": (PUBLISH, CONNECT),
    "RegSub": (SUBSCRIBE,),
    "ReqUpdate": (SUBSCRIBE,),
    "DeregSub": (UNSUBSCRIBE, SUBSCRIBE, DISCONNECT, CONNECT, 0),
}

Fields = tuple[tuple[str, str], ...]


def reperform_packet(facts: Facts) -> Comparison:
    """Judges a header that was made from a packet."""
    try:
        actual = read_meaning(facts.output, facts.output_described)
    except UnreadableBytes as error:
        return Comparison(status=Status.DIFFERENCE, detail=f"the output cannot be read: {error}", same_bytes=False)
    if facts.packet_type not in _PACKET_TYPES.get(facts.command, ()):
        return Comparison(
            status=Status.DIFFERENCE,
            detail=f"packet type {facts.packet_type} does not become {facts.command}",
            same_bytes=False,
        )
    carrier: Fields = ()
    jms: JmsFolders = ()
    body = PAYLOAD
    if facts.command in _SUBSCRIPTION_COMMANDS:
        expected, differences = _subscription(facts, actual)
    else:
        expected, differences = _publication(facts, actual)
        carrier = _carrier(facts, actual)
        topic, _, qos, section = publish_of(facts)
        of_text = is_text(facts, section)
        jms = expected_folders(facts, actual, prefix_of(facts) + topic, qos, is_text=of_text)
        differences += folder_differences(jms, facts, actual, section)
        body = _TEXT if jms and of_text else PAYLOAD
    differences += _rest_differences(facts, actual, carrier, jms)
    differences += _body_differences(actual.body, is_exact=bool(jms), expected=body)
    return compared(_written(expected, jms, carrier, facts, actual.version, body), facts.output, differences)


def _carrier(facts: Facts, actual: Meaning) -> Fields:
    """The elements that the header must carry: only properties to the embedded broker, and none in a DeletePub."""
    if facts.command != "Publish":
        return ()
    _, retain, qos, section = publish_of(facts)
    written = read_carrier(actual.folders, actual.unmapped)
    properties = _carried(facts, section, written) if section else ()
    if not facts.destination:
        return properties
    return expected_carrier(facts, qos, retain=retain, written=written) + properties


def _carried(facts: Facts, section: bytes, written: Fields) -> Fields:
    """The elements for a packet's properties. If the header names one, or reports others, it must name all it can."""
    properties = read_properties(section)
    pairs = carried(properties)
    reported = [each for each in facts.dropped_fields if each != NO_TEXT]
    names_each = reported or any(not name.startswith(OWN_PREFIX) for name, _ in written)
    return pairs + named_singly(properties.user_properties) if names_each else pairs


def _rest_differences(facts: Facts, actual: Meaning, carrier: Fields, jms: JmsFolders) -> list[str]:
    """Differences of folders and of names without a row in the table: the stream, and the carried elements."""
    asked = [name for name, _ in jms] + ([USR] if carrier else [])
    surplus = [folder.name for folder in actual.folders if folder.name not in asked]
    words = [f"the header has folder {name}, which nothing asked for" for name in surplus]
    allowed: Fields = (("MQPSStreamName", facts.queue), *(carrier if actual.version == 1 else ()))
    if facts.destination:
        stream = said_stream(facts, actual.version)
        words += [f"{name} {value!r} is missing" for name, value in stream if (name, value) not in actual.unmapped]
        allowed = (*stream, *carrier) if actual.version == 1 else ()
    if carrier:
        words += carrier_differences(carrier, read_carrier(actual.folders, actual.unmapped))
    return words + [
        f"{name} is {value!r}, which nothing asked for"
        for name, value in actual.unmapped
        if (name, value) not in allowed
    ]


def _publication(facts: Facts, actual: Meaning) -> tuple[Fields, list[str]]:
    """The fields of Publish and DeletePub, and the header's differences from them."""
    topic, retain, _, _ = publish_of(facts)
    topic = prefix_of(facts) + topic
    with_payload = facts.payload_bytes > 0
    is_delete = facts.command == "DeletePub"
    expected = [("Command", "DeletePub" if is_delete else "Publish")]
    if not is_delete and retain and with_payload:
        expected.append(("PubOpt", "RetainPub"))
    if not is_delete and actual.version == 1:
        expected.append(("PubOpt", "NoReg"))
    expected.append(("Topic", escaped(topic) if is_delete and actual.version == 1 else topic))
    differences = _field_differences(tuple(expected), actual.fields)
    if is_delete and not (retain and facts.payload_bytes <= 0):
        differences.append("DeletePub for a packet that is not a RETAIN without payload")
    return tuple(expected), differences


def publish_of(facts: Facts) -> tuple[str, bool, int, bytes]:
    """Topic, RETAIN, QoS and properties of the packet, or of the will in it.

    Only an earlier packet tells the topic of a topic alias. So in that case the record's topic counts.
    """
    if facts.packet_type == CONNECT:
        return read_will(facts.input, facts.protocol_level)
    header = read_publish(facts.input, facts.protocol_level)
    is_by_alias = not header.topic and header.properties and read_properties(header.properties).has_alias
    return facts.topic if is_by_alias else header.topic, header.retain, header.qos, header.properties


def _subscription(facts: Facts, actual: Meaning) -> tuple[Fields, list[str]]:
    """The fields of a subscriber's command.

    Its queue names are those that the gateway wrote, because the packet has none.
    """
    places = tuple(field for field in actual.fields if field[0] in _PLACES)
    topics: tuple[str, ...] = ()
    options: Fields = _SUBSCRIBER if facts.command == "RegSub" else _IDENTITY
    differences: list[str] = []
    if facts.input and facts.packet_type in (SUBSCRIBE, UNSUBSCRIBE):
        topic_filter = read_filter(facts.input, facts.packet_type)
        topics, differences = _filter_topics(facts, topic_filter, actual)
        shared = _shared_topics(facts, topic_filter, actual)
        is_subscription = facts.command == "RegSub"
        if shared is not None:
            topics, differences = shared, []
        if is_subscription and (shared is not None or _wants_new_only(facts, actual)):
            options = _SUBSCRIBER_ANEW
    elif facts.packet_type in (SUBSCRIBE, UNSUBSCRIBE):
        topics = actual.values("Topic")  # the gateway itself undid or repeated it, so no packet has the filter
        options = _SUBSCRIBER_ANEW if facts.command == "RegSub" and facts.destination else options
    else:
        options = _ALL
    expected = (
        ("Command", facts.command),
        *options,
        *places,
        *(("Topic", topic) for topic in topics),
    )
    actual_fields = tuple(field for field in actual.fields if field != ("RegOpt", "PersAsPub"))
    return expected, differences + _field_differences(expected, actual_fields)


def _wants_new_only(facts: Facts, actual: Meaning) -> bool:
    """Whether a SUBSCRIBE asks for nothing retained.

    With Retain Handling 1 only the gateway knew whether it existed.
    """
    if facts.packet_type != SUBSCRIBE:
        return False
    handling = read_retain_handling(facts.input)
    return handling == 2 or (handling == 1 and ("RegOpt", "NewPubsOnly") in actual.fields)


def _shared_topics(facts: Facts, topic_filter: str, actual: Meaning) -> tuple[str, ...] | None:
    """The topics of a shared subscription, $share/GROUP/FILTER, if the header is for its filter.

    It gets nothing retained. Before level 5 it is a filter like any other, and the header has all of it. Source: MQTT
    5.0 section 4.8.2.
    """
    if not topic_filter.startswith(_SHARED):
        return None
    _, _, shared_filter = topic_filter.removeprefix(_SHARED).partition("/")
    topics, differences = _filter_topics(facts, shared_filter, actual)
    return topics if not differences and set(topics) == set(actual.values("Topic")) else None


def _filter_topics(facts: Facts, topic_filter: str, actual: Meaning) -> tuple[tuple[str, ...], list[str]]:
    """The expected topics for a filter, given those that were written."""
    filters = facts.topic_filters or (topic_filter,)
    differences = [f"{each!r} is more than {topic_filter!r}" for each in filters if not is_within(each, topic_filter)]
    prefix = prefix_of(facts) if actual.version == 2 else escaped(prefix_of(facts))
    written = actual.values("Topic")
    predicted = tuple(dict.fromkeys(prefix + each for each in _patterns(filters, actual.version)))
    if facts.command in _OF_SOME_TOPICS and written and set(written) <= set(predicted):
        return written, differences
    if actual.version == 1 and set(written) != set(predicted):
        plain = tuple(each.removeprefix(prefix) for each in written if each.startswith(prefix))
        if len(plain) == len(written) and all(covers(plain, each) for each in filters):
            return written, differences
    return predicted, differences


def _patterns(filters: tuple[str, ...], version: int) -> list[str]:
    if version == 2:
        return list(filters)
    return [pattern for each in filters for pattern in character_patterns(each)]


def _field_differences(expected: Fields, actual: Fields) -> list[str]:
    """Sentences about fields that are missing, and about fields that nothing asked for. Command must come first."""
    missing = [field for field in expected if field not in actual]
    surplus = [field for field in actual if field not in expected]
    words = [f"{name} {value!r} is missing" for name, value in missing]
    words += [f"{name} is {value!r}, which nothing asked for" for name, value in surplus]
    if actual and actual[0][0] != "Command":
        words.append("Command does not come first")
    topics = [value for name, value in actual if name == "Topic"]
    if not words and topics != [value for name, value in expected if name == "Topic"]:
        words.append("the topics are in another order, or doubled")
    return words


def _body_differences(body: Surroundings, *, is_exact: bool, expected: Surroundings) -> list[str]:
    if body.format not in ((expected.format,) if is_exact else (PAYLOAD.format, _TEXT.format)):
        return [f"the payload's Format is {body.format!r}"]
    if (body.coded_char_set_id, body.encoding) != (PAYLOAD.coded_char_set_id, PAYLOAD.encoding):
        return [f"the payload is described as CodedCharSetId {body.coded_char_set_id}, Encoding {body.encoding}"]
    return []


def _written(fields: Fields, jms: JmsFolders, carrier: Fields, facts: Facts, version: int, body: Surroundings) -> bytes:
    """The bytes of the header.

    In MQRFH2 the folders of JMS stand between psc and usr. In MQRFH the stream stands behind the options, and the
    carried pairs stand at the end.
    """
    if version == 2:
        folders = ((PSC, fields), *jms, *(((USR, typed(carrier)),) if carrier else ()))
        return write_mqrfh2(folders, facts.output_described, body)
    is_publish = facts.command == "Publish"
    pairs = [(TO_NAME[name], escaped(value) if is_publish and name == "Topic" else value) for name, value in fields]
    options = sum(1 for name, _ in fields if name not in (*_PLACES, "Topic"))
    stream = said_stream(facts, version) if facts.destination else ()
    return write_mqrfh((*pairs[:options], *stream, *pairs[options:], *carrier), facts.output_described, PAYLOAD)
