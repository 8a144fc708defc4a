"""The tables that are made of the facts once: a row an exchange, a row a message, and those that are doubtful.

    exchanges   an exchange of a client: `side` in, from the client (accepted, put ... confirmed), or out, to it
                (delivered, acknowledged). Columns that end in `_at` are the sequence of the first record that says so
    messages    a message by its number in the store: made, forwarded, delivered, ended
    copies      a message that was made of another one or came over a channel, with its end and its source's payload
    gateways    where a gateway's records begin and end; `is_late`: what began before them is not known
    sessions    the first exchange of a session that is known to have begun within the records; only of gateways that
                are late
    firsts      the first message of a late gateway that is known
    segments    lines, numbers and last hash of a segment

    doubtful_exchanges, doubtful_messages, doubtful_copies   rows for which a doubt of a rule holds (control.py)
    records_of_exchanges, records_of_messages                the records of these

Sums are over numbers and flags alone: to sum texts, Spark would sort every row. A number that stands for a text has a
lowest and a highest value, as which of two texts has the lower number is chance. What is said of a figure (`is_put`,
`was_delivered` ...) is said of the records of the audit's period; everything else of all records.
"""

from collections.abc import Iterable
from typing import Final


def _min(condition: str, value: str = "sequence") -> str:
    return f"min(CASE WHEN {condition} THEN {value} END)"


def _max(condition: str, value: str = "sequence") -> str:
    return f"max(CASE WHEN {condition} THEN {value} END)"


def _count(condition: str) -> str:
    return f"count(CASE WHEN {condition} THEN 1 END)"


def _bool_or(condition: str, value: str) -> str:
    return f"bool_or(CASE WHEN {condition} THEN {value} END)"


def _is_any(condition: str) -> str:
    return f"coalesce(bool_or({condition}), false)"


def _columns(columns: dict[str, str]) -> str:
    return ",\n  ".join(f"{value} AS {name}" for name, value in columns.items())


_OUTCOME: Final = "kind IN ('put', 'refused', 'dead_lettered')"
_MADE: Final = "kind IN ('put', 'received')"
_ANSWER: Final = "kind IN ('confirmed', 'acknowledged')"
_COPY: Final = "conversion = 'header_to_header'"
#: A will that was put as a publication.
WILL: Final = "kind = 'put' AND direction = 'in' AND command = 'Publish' AND packet_type = 1"
_IN_PUT: Final = "kind = 'put' AND direction = 'in'"

_EXCHANGE_COLUMNS: Final = {
    "accepted_at": _min("kind = 'accepted'"),
    "accepted_last": _max("kind = 'accepted'"),
    "accepted_us": _min("kind = 'accepted'", "at_us"),
    "accepted_qos": _min("kind = 'accepted'", "qos"),
    "accepted_payload_low": _min("kind = 'accepted'", "payload"),
    "accepted_payload_high": _max("kind = 'accepted'", "payload"),
    "accepted_low": _min("kind = 'accepted'", "publication"),
    "accepted_high": _max("kind = 'accepted'", "publication"),
    "ended_at": _min(_OUTCOME),
    "put_at": _min("kind = 'put' AND packet_type = 3"),
    "puts_of_2": _count("kind = 'put' AND qos = 2"),
    "put_of_2_last": _max("kind = 'put' AND qos = 2"),
    "put_payload_low": _min("kind = 'put'", "payload"),
    "put_payload_high": _max("kind = 'put'", "payload"),
    "puback_at": _min(f"{_ANSWER} AND packet_type = 4"),
    "pubrec_at": _min(f"{_ANSWER} AND packet_type = 5"),
    "pubcomp_at": _min(f"{_ANSWER} AND packet_type = 7"),
    "other_answer_at": _min("kind = 'acknowledged' AND coalesce(packet_type NOT IN (4, 5, 7), true)"),
    "answered_at": _min("kind = 'confirmed' AND packet_type IN (4, 5)"),
    "answered_us": _min("kind = 'confirmed' AND packet_type IN (4, 5)", "at_us"),
    "delivered_at": _min("kind = 'delivered'"),
    "delivered_qos": _max("kind = 'delivered'", "qos"),
    "delivered_of_2_last": _max("kind = 'delivered' AND qos = 2"),
    "begun_at": _min("kind IN ('accepted', 'dropped', 'refused', 'dead_lettered')"),
    "repeated_at": _min("kind = 'repeated'"),
    "repeated_last": _max("kind = 'repeated'"),
    "repeat_low": _min("kind = 'repeated' AND event = 'repeat'", "publication"),
    "repeat_high": _max("kind = 'repeated' AND event = 'repeat'", "publication"),
    "said_low": "min(said)",
    "said_high": "max(said)",
    "puback_last": _max(f"{_ANSWER} AND packet_type = 4"),
    "pubcomp_last": _max(f"{_ANSWER} AND packet_type = 7"),
    "is_asked": _bool_or("kind IN ('accepted', 'delivered')", "is_asked"),
    "counted_qos": _max("kind = 'accepted' AND is_counted", "qos"),
    "is_counted": _is_any("kind = 'accepted' AND is_counted"),
    "is_put": _is_any("kind = 'put' AND is_counted"),
    "is_refused": _is_any("kind = 'refused' AND is_counted"),
    "is_dead_lettered": _is_any("kind = 'dead_lettered' AND is_counted"),
    "sent_qos": _max("kind = 'delivered' AND direction = 'out' AND is_counted", "qos"),
    "is_completed": _is_any("kind = 'acknowledged' AND direction = 'out' AND packet_type IN (4, 7) AND is_counted"),
    "puback_us": _min("kind = 'confirmed' AND packet_type = 4 AND is_counted", "at_us"),
    "pubcomp_us": _min("kind = 'confirmed' AND packet_type = 7 AND is_counted", "at_us"),
}
OF_EXCHANGES: Final = (
    "kind IN ('delivered', 'acknowledged') OR"
    " (direction = 'in' AND kind IN ('accepted', 'put', 'refused', 'dead_lettered', 'dropped', 'repeated'))"
)
#: Columns of the records of an exchange that a confirmation has too, and those that it has not.
_CONFIRMED: Final = ("gateway", "client", "session_epoch", "exchange", "packet_type", "sequence", "at_us", "is_counted")
_UNCONFIRMED: Final = {
    **dict.fromkeys(("qos", "batch", "payload", "publication", "said", "packet_identifier"), "BIGINT"),
    **dict.fromkeys(("event", "topic", "command", "message_id"), "STRING"),
    **dict.fromkeys(("is_asked", "retain"), "BOOLEAN"),
}
_NULLS: Final = ", ".join(f"CAST(NULL AS {kind})" for kind in _UNCONFIRMED.values())
#: The records of exchanges, and what confirms them, with the side of their exchange.
TOLD_OF_EXCHANGES: Final = f"""
  SELECT {", ".join((*_CONFIRMED, *_UNCONFIRMED))}, kind, direction,
    CASE WHEN kind IN ('delivered', 'acknowledged') THEN 'out' ELSE 'in' END AS side
  FROM records WHERE exchange IS NOT NULL AND ({OF_EXCHANGES})
  UNION ALL
  SELECT {", ".join(_CONFIRMED)}, {_NULLS}, 'confirmed', 'in', 'in'
  FROM confirmations"""
EXCHANGES: Final = f"""
SELECT gateway, client, session_epoch, exchange, side,
  {_columns(_EXCHANGE_COLUMNS)}
FROM ({TOLD_OF_EXCHANGES}
) AS told
GROUP BY gateway, client, session_epoch, exchange, side
"""

_MESSAGE_COLUMNS: Final = {
    "made_at": _min("kind IN ('put', 'received', 'redriven')"),
    "numbered_at": _min(_MADE),
    "numbered_last": _max(_MADE),
    "is_commanded": _is_any("kind = 'commanded'"),
    "followed_at": _min("kind IN ('delivered', 'dropped', 'forwarded', 'refused')"),
    "gone_at": _min(
        "kind = 'forwarded' OR (kind IN ('dropped', 'dead_lettered', 'refused') AND direction IS NOT NULL)"
    ),
    "topic_low": "min(topic_number)",
    "topic_high": "max(topic_number)",
    "queue_low": "min(queue_number)",
    "queue_high": "max(queue_number)",
    "lane_low": "min(lane)",
    "lane_high": "max(lane)",
    "published_low": _min("kind = 'delivered'", "coalesce(published_qos, -1)"),
    "published_high": _max("kind = 'delivered'", "coalesce(published_qos, -1)"),
    "copy_payload_low": _min(_COPY, "payload"),
    "copy_payload_high": _max(_COPY, "payload"),
    "is_unpaid": _is_any("kind = 'delivered' AND payload IS NULL"),
    "put_last": _max(_IN_PUT),
    "put_qos": _min(_IN_PUT, "qos"),
    "is_dropped": _is_any("kind = 'dropped'"),
    "is_completed": _is_any("kind = 'acknowledged' AND packet_type IN (4, 7)"),
    "made_us": _min(_MADE, "at_us"),
    "is_made": _is_any(f"{_MADE} AND is_counted"),
    "sent_at": _min("kind = 'put' AND destination IS NOT NULL"),
    "sent_us": _min("kind = 'put' AND destination IS NOT NULL", "at_us"),
    "forwarded_at": _min("kind = 'forwarded'"),
    "forwarded_last": _max("kind = 'forwarded'"),
    "forwarded_us": _min("kind = 'forwarded'", "at_us"),
    "delivered_at": _min("kind = 'delivered'"),
    "delivered_us": _min("kind = 'delivered'", "at_us"),
    "delivered_last_us": _max("kind = 'delivered'", "at_us"),
    "delivered_payload_low": _min("kind = 'delivered'", "payload"),
    "delivered_payload_high": _max("kind = 'delivered'", "payload"),
    "exchange_low": _min("kind = 'delivered' AND qos = 2", "exchange"),
    "exchange_high": _max("kind = 'delivered' AND qos = 2", "exchange"),
    "delivered_qos": _max("kind = 'delivered' AND is_counted", "qos"),
    "who_low": "min(who)",
    "who_high": "max(who)",
    "put_payload_low": _min(_IN_PUT, "payload"),
    "put_payload_high": _max(_IN_PUT, "payload"),
    "put_bytes": _min(_IN_PUT, "payload_bytes"),
    "is_durable": _is_any(f"{_IN_PUT} AND qos > 0"),
    "is_delivered": _is_any("kind = 'delivered'"),
    "is_ended": _is_any("kind IN ('delivered', 'dropped', 'dead_lettered')"),
    "is_passed": _is_any("kind IN ('forwarded', 'dropped', 'dead_lettered')"),
    "is_refused": _is_any("kind = 'refused'"),
    "is_asked": _bool_or("kind = 'put'", "is_asked"),
    **{
        f"was_{kind}": _is_any(f"kind = '{kind}' AND is_counted")
        for kind in ("delivered", "dropped", "dead_lettered", "forwarded")
    },
}
MESSAGES: Final = f"""
SELECT gateway, message_id,
  {_columns(_MESSAGE_COLUMNS)}
FROM records WHERE message_id IS NOT NULL
GROUP BY gateway, message_id
"""

_OF_COPY: Final = (
    *(
        "is_ended",
        "is_delivered",
        "is_unpaid",
        "who_low",
        "who_high",
        "delivered_payload_low",
        "delivered_payload_high",
    ),
    *("was_delivered", "was_dropped", "was_dead_lettered", "topic_low", "topic_high", "published_low"),
    *("published_high", "copy_payload_low", "copy_payload_high"),
)
COPIES: Final = f"""
SELECT made.gateway, made.message_id, made.queue, made.correlation_id, made.source_message_id, made.sequence,
  made.batch, made.is_copy, made.is_counted, made.is_retained, {", ".join(f"of_copy.{name}" for name in _OF_COPY)},
  of_source.put_payload_low, of_source.put_payload_high, of_source.put_bytes, of_source.put_qos, of_source.put_last,
  of_source.topic_low AS put_topic_low, of_source.topic_high AS put_topic_high,
  coalesce(of_source.is_durable, false) AS is_durable
FROM (
  SELECT gateway, message_id, queue, correlation_id, source_message_id,
    min(sequence) AS sequence, min(batch) AS batch, bool_or(is_retained) AS is_retained,
    bool_or(coalesce({_COPY}, false)) AS is_copy,
    bool_or(is_counted AND (coalesce({_COPY}, false) OR kind = 'received')) AS is_counted
  FROM records
  WHERE message_id IS NOT NULL
    AND (conversion = 'header_to_header' OR kind = 'received' OR source_message_id IS NOT NULL)
  GROUP BY gateway, message_id, queue, correlation_id, source_message_id
) AS made
JOIN messages AS of_copy ON of_copy.gateway = made.gateway AND of_copy.message_id = made.message_id
LEFT JOIN messages AS of_source
  ON of_source.gateway = made.gateway AND of_source.message_id = made.source_message_id
"""

GATEWAYS: Final = """
SELECT gateway, min(first_sequence) > 1 OR bool_or(is_restored) AS is_late, max(last_batch) AS last_batch,
  max(highest_at_us) AS last_at_us
FROM runs WHERE is_record GROUP BY gateway
"""

#: The same for an audit that goes on from another one, whose tables of sessions and gateways say what that one knew.
GATEWAYS_SINCE: Final = """
SELECT told.gateway, bool_or(told.is_restored) OR coalesce(bool_or(head.is_late), min(told.first_sequence) > 1)
  AS is_late, max(told.last_batch) AS last_batch, max(told.highest_at_us) AS last_at_us
FROM runs AS told LEFT JOIN since_heads AS head ON head.gateway = told.gateway
WHERE told.is_record GROUP BY told.gateway
"""

FIRSTS: Final = """
SELECT gateway, min(message_id) AS first_message FROM records
WHERE kind IN ('put', 'received') AND message_id IS NOT NULL GROUP BY gateway
"""
#: Exchanges of messages that were made within the records. A message that waited before them, or is sent again, does
#: not tell which other exchanges began before.
SENT: Final = f"""
  SELECT sent.gateway, sent.client, sent.session_epoch, 'out' AS side, sent.exchange FROM records AS sent
  JOIN ({FIRSTS}) AS made ON made.gateway = sent.gateway AND sent.message_id >= made.first_message
  WHERE sent.kind = 'delivered' AND sent.exchange IS NOT NULL"""

SESSIONS: Final = f"""
SELECT gateway, client, session_epoch, side, min(exchange) AS first_exchange
FROM (
  SELECT gateway, client, session_epoch, side, exchange FROM exchanges WHERE accepted_at IS NOT NULL
  UNION ALL {SENT}
  UNION ALL
  SELECT gateway, client, session_epoch, 'in', 0 FROM records WHERE kind = 'session' AND event = 'opened'
  UNION ALL
  SELECT gateway, client, session_epoch, 'out', 0 FROM records WHERE kind = 'session' AND event = 'opened'
) AS known
GROUP BY gateway, client, session_epoch, side
"""

SESSIONS_SINCE: Final = f"""
SELECT gateway, client, session_epoch, side, min(first_exchange) AS first_exchange
FROM (
  SELECT * FROM ({SESSIONS}) AS known
  UNION ALL SELECT gateway, client, session_epoch, side, first_exchange FROM since_sessions
) AS told
GROUP BY gateway, client, session_epoch, side
"""

FIRSTS_SINCE: Final = f"""
SELECT gateway, min(first_message) AS first_message
FROM (SELECT * FROM ({FIRSTS}) AS known UNION ALL SELECT gateway, first_message FROM since_heads) AS told
GROUP BY gateway
"""

SEGMENTS: Final = """
SELECT trail, segment, sum(lines) AS lines, sum(records) AS records,
  min(first_sequence) AS first_sequence, max(last_sequence) AS last_sequence,
  min(lowest_at_us) AS lowest_at_us, max(highest_at_us) AS highest_at_us,
  max(CASE WHEN is_last THEN last_hash END) AS head,
  max(CASE WHEN is_last THEN last_line_hash END) AS last_line_hash
FROM (
  SELECT *, row_number() OVER (PARTITION BY trail, segment ORDER BY block DESC, place DESC) = 1 AS is_last FROM runs
) AS ordered
GROUP BY trail, segment
"""

_DOUBTFUL: Final = {
    # `has_begun`: it began within the records. Numbers tell it, for exchanges and messages are numbered as they begin
    # `is_letter`: it was made as the dead letter of another message
    "exchanges": """
SELECT whole.*, g.last_batch,
  NOT coalesce(g.is_late, false) OR coalesce(whole.exchange >= s.first_exchange, false) AS has_begun
FROM (SELECT * FROM exchanges WHERE {doubt}) AS whole
LEFT JOIN gateways AS g ON g.gateway = whole.gateway
LEFT JOIN sessions AS s ON s.gateway = whole.gateway AND s.client = whole.client
  AND s.session_epoch = whole.session_epoch AND s.side = whole.side""",
    "messages": """
SELECT whole.*, letters.dead_letter_id IS NOT NULL AS is_letter,
  NOT coalesce(g.is_late, false) OR coalesce(whole.message_id >= f.first_message, false) AS has_begun
FROM (SELECT * FROM messages WHERE {doubt}) AS whole
LEFT JOIN (SELECT DISTINCT gateway, dead_letter_id FROM records WHERE kind = 'dead_lettered') AS letters
  ON letters.gateway = whole.gateway AND letters.dead_letter_id = whole.message_id
LEFT JOIN gateways AS g ON g.gateway = whole.gateway
LEFT JOIN firsts AS f ON f.gateway = whole.gateway""",
    "copies": "SELECT * FROM copies WHERE {doubt}",
}


def doubtful(doubts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Queries by the names of their tables: the doubtful rows, and the records of these."""
    conditions: dict[str, list[str]] = {table: ["false"] for table in _DOUBTFUL}
    for table, condition in dict.fromkeys(doubts):
        conditions[table].append(f"({condition})")
    rows = {
        f"doubtful_{table}": query.format(doubt=" OR ".join(conditions[table])) for table, query in _DOUBTFUL.items()
    }
    return rows | {"records_of_exchanges": _RECORDS_OF_EXCHANGES, "records_of_messages": _RECORDS_OF_MESSAGES}


_RECORDS_OF_EXCHANGES: Final = f"""
SELECT told.* FROM ({TOLD_OF_EXCHANGES}
) AS told
SEMI JOIN doubtful_exchanges AS whole ON whole.gateway = told.gateway AND whole.exchange = told.exchange
  AND whole.client IS NOT DISTINCT FROM told.client AND whole.session_epoch IS NOT DISTINCT FROM told.session_epoch
  AND whole.side = told.side
"""
_RECORDS_OF_MESSAGES: Final = """
SELECT told.* FROM records AS told
SEMI JOIN (
  SELECT gateway, message_id FROM doubtful_messages
  UNION SELECT gateway, message_id FROM doubtful_copies
  UNION SELECT gateway, source_message_id AS message_id FROM doubtful_copies
) AS whole ON whole.gateway = told.gateway AND whole.message_id = told.message_id
"""
