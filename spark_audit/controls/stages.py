"""The stages of one message agree: accepted, put, copied, delivered, acknowledged, refused, dropped, forwarded.

A message is told by several records, and each says again what the one before it has said. A publication of an MQ
application has no put of the gateway, so there is less to compare. The rules are queries over the records of doubtful
exchanges and messages: of those whose records do not all say the same.
"""

from typing import Final

from spark_audit.controls.control import (
    EXCHANGE,
    MESSAGE,
    OF_MESSAGE,
    Control,
    Rule,
    Severity,
    Tested,
    all_of,
    differ,
    doubting,
    exchange,
    of_messages,
    same,
    violations,
)
from spark_audit.facts.derived import WILL

_IS_COPY: Final = "conversion = 'header_to_header'"
_IS_PUT: Final = "kind = 'put' AND direction = 'in'"
_OF_EXCHANGES, _OF_MESSAGES = "records_of_exchanges", "records_of_messages"
_SAME_EXCHANGE: Final = same("one", "two", *EXCHANGE)
_SAME_MESSAGE: Final = same("one", "two", *OF_MESSAGE)
_FROM_SOURCE: Final = "one.gateway = two.gateway AND one.message_id = two.source_message_id"


def _differs(name: str, is_shown: bool) -> str:
    words = "'the payload is not the same'"
    if is_shown:
        now, before = (f"coalesce(CAST({one}.{name} AS STRING), 'left out')" for one in ("two", "one"))
        words = f"'{name} is ' || {now} || ', before it was ' || {before}"
    return f"CASE WHEN one.{name} IS DISTINCT FROM two.{name} THEN {words} END"


def _pairs(table: str, one: str, two: str, on: str, *differ: str, is_later: bool = True) -> str:
    """Records `two` that differ from their record `one` in a field, or stand in front of it, and how, in words."""
    words = [_differs(name, name != "payload_sum") for name in differ]
    if is_later:
        words.append("CASE WHEN two.sequence < one.sequence THEN 'it stands in front of what it follows from' END")
    return f"""
SELECT two.*, concat_ws('; ', {", ".join(words)}) AS wrong
FROM (SELECT * FROM {table} WHERE {one}) AS one JOIN (SELECT * FROM {table} WHERE {two}) AS two ON {on}"""


#: What was accepted is what is put; what is put is what is copied; what is copied is what is delivered or dropped; what
#: is delivered is what is acknowledged; what is put for a target goes to its queue there.
_ACCEPTED_PUT: Final = _pairs(
    _OF_EXCHANGES,
    "kind = 'accepted'",
    "kind = 'put' AND packet_type = 3 AND command = 'Publish'",
    _SAME_EXCHANGE,
    *("topic", "qos", "retain"),
)
_PUT_COPIED: Final = _pairs(_OF_MESSAGES, _IS_PUT, _IS_COPY, _FROM_SOURCE, "topic")
#: An earlier version told no payload of a copy.
_COPIED_PAYLOAD: Final = _pairs(
    _OF_MESSAGES, _IS_PUT, f"{_IS_COPY} AND payload_sum IS NOT NULL", _FROM_SOURCE, "payload_sum", is_later=False
)
_COPIED_DELIVERED: Final = _pairs(
    _OF_MESSAGES, _IS_COPY, "kind = 'delivered'", _SAME_MESSAGE, "queue", "correlation_id"
)
_COPIED_DROPPED: Final = _pairs(_OF_MESSAGES, _IS_COPY, "kind = 'dropped'", _SAME_MESSAGE, "queue")
_PUT_DELIVERED: Final = f"""
SELECT delivered.*, concat_ws('; ',
  CASE WHEN put.topic IS DISTINCT FROM delivered.topic
    THEN 'topic is ' || coalesce(delivered.topic, '?') || ', it was put with ' || coalesce(put.topic, '?') END,
  CASE WHEN put.qos IS DISTINCT FROM delivered.published_qos
    THEN 'published_qos is ' || coalesce(CAST(delivered.published_qos AS STRING), '?')
      || ', it was put with QoS ' || CAST(put.qos AS STRING) END,
  CASE WHEN put.payload_sum IS DISTINCT FROM delivered.payload_sum THEN 'the payload is not that of the put' END
) AS wrong
FROM (SELECT * FROM {_OF_MESSAGES} WHERE {_IS_PUT} AND qos IS NOT NULL) AS put
JOIN (SELECT * FROM {_OF_MESSAGES} WHERE {_IS_COPY}) AS copy
  ON copy.gateway = put.gateway AND copy.source_message_id = put.message_id
JOIN (SELECT * FROM {_OF_MESSAGES} WHERE kind = 'delivered') AS delivered
  ON delivered.gateway = copy.gateway AND delivered.message_id = copy.message_id"""
_DELIVERED_ACKNOWLEDGED: Final = _pairs(
    _OF_EXCHANGES,
    "kind = 'delivered'",
    "kind = 'acknowledged'",
    _SAME_EXCHANGE,
    *("message_id", "packet_identifier"),
    is_later=False,
)
_PUT_FORWARDED: Final = _pairs(
    _OF_MESSAGES, f"{_IS_PUT} AND destination IS NOT NULL", "kind = 'forwarded'", _SAME_MESSAGE, "queue"
)
_PUT_REFUSED: Final = _pairs(_OF_MESSAGES, _IS_PUT, "kind = 'refused'", _SAME_MESSAGE, "command")
_ANSWERED: Final = f"""
SELECT gateway, client, session_epoch, exchange, max(sequence) AS sequence, concat_ws('; ',
  CASE WHEN count_if(packet_type = 4) > 1 THEN 'acknowledged by PUBACK more than once' END,
  CASE WHEN count_if(packet_type = 7) > 1 THEN 'acknowledged by PUBCOMP more than once' END,
  CASE WHEN count_if(packet_type = 7) > 0 AND count_if(packet_type = 5) > 0
    AND min(CASE WHEN packet_type = 7 THEN sequence END) < min(CASE WHEN packet_type = 5 THEN sequence END)
    THEN 'PUBCOMP came before PUBREC' END,
  CASE WHEN count_if(packet_type = 7) > 0 AND count_if(packet_type = 5) = 0 AND count_if(kind = 'delivered') > 0
    THEN 'PUBCOMP came without PUBREC' END
) AS wrong
FROM {_OF_EXCHANGES} WHERE kind IN ('delivered', 'acknowledged')
GROUP BY gateway, client, session_epoch, exchange"""


def _disagreeing(query: str, subject: str, *doubts: tuple[str, str]) -> Rule:
    return doubting(violations(f"({query}) AS told", "wrong <> ''", subject=subject, detail="wrong"), *doubts)


#: A client that registered again gets retained publications once more; each other copy is one for its lane.
_TWO_COPIES: Final = """(
  SELECT gateway, max(message_id) AS message_id, max(sequence) AS sequence
  FROM copies
  SEMI JOIN (SELECT gateway AS of_gateway, correlation_id AS of_client FROM records
    WHERE kind = 'put' AND command = 'RegSub' AND direction = 'in') AS registered
    ON of_gateway = gateway AND of_client = correlation_id
  WHERE is_copy AND NOT is_retained AND source_message_id IS NOT NULL
  GROUP BY gateway, queue, correlation_id, source_message_id HAVING count(*) > 1
) AS doubled"""
_SERVED_TWICE: Final = """(
  SELECT gateway, source_message_id AS message_id, max(sequence) AS sequence
  FROM records WHERE conversion = 'service' AND source_message_id IS NOT NULL
  GROUP BY gateway, source_message_id HAVING count(*) > 1
) AS served"""

STAGES = Control(
    identifier="stages",
    title="All records of a message say the same of it",
    severity=Severity.ERROR,
    source="spark_audit/record/notes.py; MQTT 3.1.1 section 4.3; architecture: a copy is of one publication",
    tested=Tested(what="messages", table="messages"),
    rule=all_of(
        _disagreeing(
            _ACCEPTED_PUT,
            exchange("in"),
            ("exchanges", "side = 'in' AND put_at IS NOT NULL AND (said_low <> said_high OR put_at < accepted_last)"),
        ),
        _disagreeing(_DELIVERED_ACKNOWLEDGED, exchange("out"), ("exchanges", "side = 'out' AND said_low <> said_high")),
        _disagreeing(
            _ANSWERED,
            exchange("out"),
            ("exchanges", "side = 'out' AND (puback_last > puback_at OR pubcomp_last > pubcomp_at)"),
            ("exchanges", "side = 'out' AND pubcomp_at < coalesce(pubrec_at, pubcomp_at + 1)"),
        ),
        _disagreeing(
            _PUT_COPIED,
            MESSAGE,
            ("copies", f"is_copy AND ({differ('topic', 'put_topic')} OR sequence < put_last)"),
        ),
        _disagreeing(
            _COPIED_PAYLOAD,
            MESSAGE,
            ("copies", f"is_copy AND {differ('copy_payload', 'put_payload')}"),
            ("copies", "is_copy AND copy_payload_low IS NOT NULL AND put_last IS NOT NULL AND put_payload_low IS NULL"),
        ),
        _disagreeing(_COPIED_DELIVERED, MESSAGE, ("messages", "lane_low <> lane_high OR followed_at < numbered_last")),
        _disagreeing(_COPIED_DROPPED, MESSAGE, ("messages", "queue_low <> queue_high")),
        _disagreeing(
            _PUT_DELIVERED,
            MESSAGE,
            ("copies", "is_copy AND (published_low <> put_qos OR published_high <> put_qos)"),
            (
                "copies",
                "is_copy AND put_qos IS NOT NULL AND (is_unpaid <> (put_payload_low IS NULL)"
                f" OR {differ('delivered_payload', 'put_payload')})",
            ),
        ),
        _disagreeing(_PUT_FORWARDED, MESSAGE),
        _disagreeing(_PUT_REFUSED, MESSAGE, ("messages", "is_refused AND put_last IS NOT NULL")),
        violations(
            "messages",
            "numbered_last > numbered_at",
            sequence="numbered_last",
            subject=MESSAGE,
            detail="'its number was given twice'",
        ),
        violations(
            _TWO_COPIES,
            "true",
            subject=MESSAGE,
            detail="'it is one of several copies of a publication for the same client'",
        ),
        doubting(
            violations(
                f"""(
  SELECT gateway, message_id, max(sequence) AS sequence FROM {_OF_MESSAGES} WHERE kind IN ('acknowledged', 'dropped')
  GROUP BY gateway, message_id
  HAVING count_if(kind = 'dropped') > 0 AND count_if(kind = 'acknowledged' AND packet_type IN (4, 7)) > 0
) AS ended""",
                "true",
                subject=MESSAGE,
                detail="'acknowledged by its client, and dropped'",
            ),
            ("messages", "is_dropped AND is_completed"),
        ),
        violations(_SERVED_TWICE, "true", subject=MESSAGE, detail="'converted more than once'"),
        # what ends, or is refused, for a client was put
        of_messages(
            "gone_at IS NOT NULL AND made_at IS NULL AND NOT is_commanded",
            "told.kind = 'forwarded' OR (told.kind IN ('dropped', 'dead_lettered', 'refused')"
            " AND told.direction IS NOT NULL)",
            "told.kind || ', and nobody put it'",
            and_whole="has_begun AND NOT is_letter",
        ),
    ),
)

#: Exchanges whose number is not the next one of their session. A will that was put has a number, and no record of an
#: exchange; one that became a dead letter has such a record.
_OF_SESSION: Final = "PARTITION BY gateway, client, session_epoch ORDER BY begun_at"
_NUMBERED: Final = f"""(
  SELECT told.* FROM (
    SELECT *, lag(exchange) OVER ({_OF_SESSION}) AS before, lag(begun_at) OVER ({_OF_SESSION}) AS before_at,
      lag(wills) OVER ({_OF_SESSION}) AS wills_before
    FROM (
      SELECT *, sum(is_will) OVER ({_OF_SESSION} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS wills
      FROM (
        SELECT gateway, client, session_epoch, exchange, begun_at, 0 AS is_will
        FROM exchanges WHERE side = 'in' AND begun_at IS NOT NULL
        UNION ALL SELECT gateway, client, session_epoch, NULL, sequence, 1 FROM records WHERE {WILL}
      ) AS begun
    ) AS counted WHERE is_will = 0
  ) AS told
  ANTI JOIN (SELECT gateway, sequence AS started_at FROM records WHERE kind = 'started') AS run
    ON run.gateway = told.gateway AND run.started_at > told.before_at AND run.started_at <= told.begun_at
  WHERE told.exchange <> told.before + 1 + told.wills - told.wills_before
) AS numbered"""

NUMBERS = Control(
    identifier="exchanges",
    is_of_neighbours=True,
    title="No exchange of a client is missing between two others",
    severity=Severity.ERROR,
    source="spark_audit/record/fields.py: `exchange`; MQTT 3.1.1 section 4.6",
    tested=Tested(what="exchanges", table="exchanges", where="side = 'in' AND begun_at IS NOT NULL"),
    rule=violations(
        _NUMBERED,
        "true",
        sequence="begun_at",
        subject=exchange("in"),
        detail="'follows exchange ' || CAST(before AS STRING)",
    ),
)
