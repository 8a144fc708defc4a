"""The stages of one message agree: accepted, put, copied, delivered, acknowledged, refused, dropped, forwarded.

A message is told by several records, and each says again what the one before it has said. A publication of an MQ
application has no put of the gateway, so there is less to compare. The rules are queries over the records.
"""

from collections.abc import Callable
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_audit.controls.control import (
    MESSAGE,
    Control,
    Scope,
    Severity,
    all_of,
    exchange_subject,
    message_subject,
    violations,
)
from spark_audit.controls.window_edge import begun_messages

_SAME_EXCHANGE: Final = """one.gateway = two.gateway AND one.client = two.client
  AND one.session_epoch = two.session_epoch AND one.exchange = two.exchange"""
_SAME_MESSAGE: Final = "one.gateway = two.gateway AND one.message_id = two.message_id"
_IS_COPY: Final = "conversion = 'header_to_header'"
_IS_PUT: Final = "kind = 'put' AND direction = 'in'"


def _pairs(one: str, two: str, on: str, *differ: str, later: bool = True) -> str:
    """Records `two` that differ from their record `one` in a field, or stand in front of it, and how, in words."""
    words = [
        f"CASE WHEN NOT (one.{name} <=> two.{name}) THEN concat('{name} is ', coalesce(CAST(two.{name} AS STRING), "
        f"'left out'), ', before it was ', coalesce(CAST(one.{name} AS STRING), 'left out')) END"
        for name in differ
    ]
    if later:
        words.append("CASE WHEN two.sequence < one.sequence THEN 'it stands in front of what it follows from' END")
    return f"""
SELECT two.*, concat_ws('; ', {", ".join(words)}) AS wrong
FROM (SELECT * FROM {{records}} WHERE {one}) AS one
JOIN (SELECT * FROM {{records}} WHERE {two}) AS two ON {on}"""


#: What was accepted is what is put; what is put is what is copied; what is copied is what is delivered or dropped; what
#: is delivered is what is acknowledged; what is put for a target goes to its queue there.
_ACCEPTED_PUT: Final = _pairs(
    "kind = 'accepted' AND direction = 'in'",
    f"{_IS_PUT} AND packet_type = 3 AND command = 'Publish'",
    _SAME_EXCHANGE,
    *("topic", "qos", "retain"),
)
_FROM_SOURCE: Final = "one.gateway = two.gateway AND one.message_id = two.source_message_id"
_PUT_COPIED: Final = _pairs(_IS_PUT, _IS_COPY, _FROM_SOURCE, "topic")
#: An earlier version told no payload of a copy.
_COPIED_PAYLOAD: Final = _pairs(_IS_PUT, f"{_IS_COPY} AND payload_sha256 IS NOT NULL", _FROM_SOURCE, "payload_sha256")
_COPIED_DELIVERED: Final = _pairs(_IS_COPY, "kind = 'delivered'", _SAME_MESSAGE, "queue", "correlation_id")
_COPIED_DROPPED: Final = _pairs(_IS_COPY, "kind = 'dropped'", _SAME_MESSAGE, "queue")
_PUT_DELIVERED: Final = """
SELECT delivered.*, concat_ws('; ',
  CASE WHEN NOT (put.topic <=> delivered.topic)
    THEN concat('topic is ', delivered.topic, ', it was put with ', put.topic) END,
  CASE WHEN NOT (put.qos <=> delivered.published_qos) THEN concat('published_qos is ', delivered.published_qos,
    ', it was put with QoS ', put.qos) END,
  CASE WHEN NOT (put.payload_sha256 <=> delivered.payload_sha256) THEN 'payload_sha256 is not that of the put' END
) AS wrong
FROM (SELECT * FROM {records} WHERE kind = 'put' AND direction = 'in' AND qos IS NOT NULL) AS put
JOIN (SELECT * FROM {records} WHERE conversion = 'header_to_header') AS copy
  ON copy.gateway = put.gateway AND copy.source_message_id = put.message_id
JOIN (SELECT * FROM {records} WHERE kind = 'delivered') AS delivered
  ON delivered.gateway = copy.gateway AND delivered.message_id = copy.message_id"""
_DELIVERED_ACKNOWLEDGED: Final = _pairs(
    "kind = 'delivered'",
    "kind = 'acknowledged'",
    _SAME_EXCHANGE,
    *("message_id", "packet_identifier"),
    later=False,
)
_PUT_FORWARDED: Final = _pairs(f"{_IS_PUT} AND destination IS NOT NULL", "kind = 'forwarded'", _SAME_MESSAGE, "queue")
_PUT_REFUSED: Final = _pairs(_IS_PUT, "kind = 'refused' AND message_id IS NOT NULL", _SAME_MESSAGE, "command")
_ANSWERED: Final = """
SELECT gateway, client, session_epoch, exchange, max(sequence) AS sequence, concat_ws('; ',
  CASE WHEN count_if(packet_type = 4) > 1 THEN 'acknowledged by PUBACK more than once' END,
  CASE WHEN count_if(packet_type = 7) > 1 THEN 'acknowledged by PUBCOMP more than once' END,
  CASE WHEN count_if(packet_type = 7) > 0 AND count_if(packet_type = 5) > 0
    AND min(CASE WHEN packet_type = 7 THEN sequence END) < min(CASE WHEN packet_type = 5 THEN sequence END)
    THEN 'PUBCOMP came before PUBREC' END,
  CASE WHEN count_if(packet_type = 7) > 0 AND count_if(packet_type = 5) = 0 AND count_if(kind = 'delivered') > 0
    THEN 'PUBCOMP came without PUBREC' END
) AS wrong
FROM {records} WHERE kind IN ('delivered', 'acknowledged')
GROUP BY gateway, client, session_epoch, exchange"""
_TWICE: Final = """
SELECT gateway, message_id, max(sequence) AS sequence, 'its number was given twice' AS wrong
FROM {records} WHERE kind IN ('put', 'received') AND message_id IS NOT NULL
GROUP BY gateway, message_id HAVING count(*) > 1"""
_TWO_COPIES: Final = """
SELECT gateway, max(message_id) AS message_id, max(sequence) AS sequence,
  'it is one of several copies of a publication for the same client' AS wrong
FROM {records} AS copy
LEFT SEMI JOIN (SELECT gateway AS of_gateway, correlation_id AS of_client FROM {records}
  WHERE kind = 'put' AND command = 'RegSub' AND direction = 'in') AS registered
  ON of_gateway = gateway AND of_client = correlation_id
WHERE conversion = 'header_to_header' AND NOT is_retained
GROUP BY gateway, queue, correlation_id, source_message_id HAVING count(*) > 1"""
_TWO_ENDS: Final = """
SELECT gateway, message_id, max(sequence) AS sequence, 'acknowledged by its client, and dropped' AS wrong
FROM {records} WHERE kind IN ('acknowledged', 'dropped') AND message_id IS NOT NULL
GROUP BY gateway, message_id
HAVING count_if(kind = 'dropped') > 0 AND count_if(kind = 'acknowledged' AND packet_type IN (4, 7)) > 0"""
_SERVED_TWICE: Final = """
SELECT gateway, source_message_id AS message_id, max(sequence) AS sequence, 'converted more than once' AS wrong
FROM {records} WHERE conversion = 'service' AND source_message_id IS NOT NULL
GROUP BY gateway, source_message_id HAVING count(*) > 1"""
#: What ends, or is refused, for a client was put.
_ENDED: Final = """
SELECT gateway, message_id, sequence, concat(kind, ', and nobody put it') AS wrong
FROM {records} AS ended
WHERE message_id IS NOT NULL
  AND (kind = 'forwarded' OR (kind IN ('dropped', 'dead_lettered', 'refused') AND direction IS NOT NULL))
  AND NOT EXISTS (SELECT 1 FROM {records} AS made WHERE made.gateway = ended.gateway
    AND made.message_id = ended.message_id AND made.kind IN ('put', 'received', 'redriven', 'commanded'))"""

_OF_EXCHANGES: Final = (_ACCEPTED_PUT, _DELIVERED_ACKNOWLEDGED, _ANSWERED)
_OF_MESSAGES: Final = (
    *(_PUT_COPIED, _COPIED_PAYLOAD, _COPIED_DELIVERED, _COPIED_DROPPED, _PUT_DELIVERED, _PUT_FORWARDED, _PUT_REFUSED),
    *(_TWICE, _TWO_COPIES, _TWO_ENDS, _SERVED_TWICE),
)


def _asked(records: DataFrame) -> Callable[[str], DataFrame]:
    """Runs a query over the records; what is wrong stands in a column of that name."""

    def ask(query: str) -> DataFrame:
        return records.sparkSession.sql(query, records=records).where(sf.col("wrong") != "")

    return ask


def find_disagreeing(records: DataFrame) -> DataFrame:
    ask = _asked(records)
    outgoing = (_DELIVERED_ACKNOWLEDGED, _ANSWERED)
    told = [(ask(query), exchange_subject("out" if query in outgoing else "in")) for query in _OF_EXCHANGES]
    told += [(ask(query), message_subject()) for query in _OF_MESSAGES]
    told.append((begun_messages(ask(_ENDED).select(*MESSAGE, "sequence", "wrong"), records), message_subject()))
    return all_of(*(violations(frame, subject=subject, detail=sf.col("wrong")) for frame, subject in told))


STAGES = Control(
    identifier="stages",
    title="All records of a message say the same of it",
    severity=Severity.ERROR,
    source="spark_audit/record/notes.py; MQTT 3.1.1 section 4.3; architecture: a copy is of one publication",
    scope=Scope.RECORDS,
    rule=find_disagreeing,
)

_NUMBERED: Final = """
SELECT gateway, client, session_epoch, exchange, sequence, concat('follows exchange ', before) AS wrong
FROM (
  SELECT *, lag(exchange) OVER (PARTITION BY gateway, client, session_epoch, run ORDER BY sequence) AS before
  FROM (
    SELECT gateway, client, session_epoch, exchange, min(sequence) AS sequence, min(run) AS run
    FROM (
      SELECT *, count_if(kind = 'started') OVER (PARTITION BY gateway ORDER BY sequence
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS run
      FROM {records}
    ) AS runs
    WHERE direction = 'in' AND exchange IS NOT NULL AND kind IN ('accepted', 'dropped', 'refused', 'dead_lettered')
    GROUP BY gateway, client, session_epoch, exchange
  ) AS begun
) AS numbered
WHERE exchange <> before + 1"""


def find_unnumbered(records: DataFrame) -> DataFrame:
    """Exchanges of a session that do not follow each other by one, between two starts: some of them have no record."""
    wrong = _asked(records)(_NUMBERED)
    return violations(wrong, subject=exchange_subject("in"), detail=sf.col("wrong"))


NUMBERS = Control(
    identifier="exchanges",
    title="No exchange of a client is missing between two others",
    severity=Severity.ERROR,
    source="spark_audit/record/fields.py: `exchange`; MQTT 3.1.1 section 4.6",
    scope=Scope.RECORDS,
    rule=find_unnumbered,
)
