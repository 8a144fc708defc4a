"""What of a trail a state carries: everything with which a later record may still be compared.

    messages     that wait for somebody, that are retained, dead letters; and by which others are judged: the later ones
                 of a lane in which one waits, a registration of each subscriber, wills behind the last exchange
    exchanges    that are not complete, and the last one of each session
    the last commit, because more of it may come; the last start, connections of sessions

Of each the state has all records. So the records of an exchange bring the messages that they name, those their sources
and exchanges, until nothing more comes.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from spark_audit.controls.custody import MEMORY
from spark_audit.custody.memory import Memory
from spark_audit.engines.engine import Engine
from spark_audit.facts.derived import FIRSTS, OF_EXCHANGES, SENT, TOLD_OF_EXCHANGES, WILL
from spark_audit.increments.state import TABLES, Rules, State, TrailHead

#: Messages from targets whose MsgIds there are kept, the newest: those of more than a day at 1 a second.
_MOST_RECEIVED: Final = 100_000
#: Far more than what the gateway's clock may jump between a change and its record.
_JUMP_US: Final = 20_000_000

_ENDED: Final = """
SELECT DISTINCT gateway, client, session_epoch FROM records WHERE kind = 'session' AND event = 'ended'"""
_NOT_ENDED: Final = f"""ANTI JOIN ({_ENDED}) AS ended ON ended.gateway = told.gateway AND ended.client = told.client
  AND ended.session_epoch = told.session_epoch"""
_WITHIN_COMMIT: Final = """
SELECT told.* FROM records AS told JOIN memories ON memories.gateway = told.gateway
WHERE told.sequence > memories.sequence"""

# -- messages ----------------------------------------------------------------------------------------------------------

#: What was put on a queue and has not left it. A publication leaves the broker's queue in its own commit.
_WAITING: Final = """
SELECT gateway, message_id FROM records WHERE message_id IS NOT NULL
GROUP BY gateway, message_id
HAVING coalesce(bool_or(kind IN ('received', 'redriven', 'mqput')
    OR (kind = 'put' AND (coalesce(direction, '') <> 'in' OR destination IS NOT NULL))), false)
  AND NOT coalesce(bool_or(kind IN ('dropped', 'dead_lettered', 'mqget', 'commanded', 'forwarded')
    OR (kind = 'acknowledged' AND packet_type IN (4, 7))), false)
  AND NOT coalesce(max(CASE WHEN kind = 'delivered' THEN qos END) = 0, false)"""
_WITHOUT_SERVED: Final = f"""
SELECT told.* FROM ({_WAITING}) AS told
ANTI JOIN (SELECT gateway, source_message_id FROM records WHERE conversion = 'service') AS served
  ON served.gateway = told.gateway AND served.source_message_id = told.message_id"""
_LETTERS: Final = """
SELECT told.gateway, told.dead_letter_id AS message_id FROM records AS told
ANTI JOIN (SELECT gateway, dead_letter_id FROM records WHERE kind = 'redriven') AS back
  ON back.gateway = told.gateway AND back.dead_letter_id = told.dead_letter_id
ANTI JOIN (SELECT gateway, message_id FROM records WHERE kind IN ('mqget', 'dropped')) AS gone
  ON gone.gateway = told.gateway AND gone.message_id = told.dead_letter_id
WHERE told.kind = 'dead_lettered' AND told.dead_letter_id IS NOT NULL"""
#: The replay says what is retained. Where it does not know everything, the last publication of each topic may be.
_RETAINED: Final = """
SELECT gateway, message_id FROM (
  SELECT gateway, message_id, payload_bytes,
    row_number() OVER (PARTITION BY gateway, queue, topic ORDER BY sequence DESC) AS turn
  FROM records
  WHERE kind = 'put' AND direction = 'in' AND command = 'Publish' AND destination IS NULL AND message_id IS NOT NULL
    AND (retain OR packet_type = 1)
) AS last WHERE turn = 1 AND coalesce(payload_bytes, 1) > 0"""
_REGISTRATIONS: Final = f"""
SELECT told.gateway, told.message_id FROM (
  SELECT gateway, client, session_epoch, message_id,
    row_number() OVER (PARTITION BY gateway, correlation_id ORDER BY sequence DESC) AS turn
  FROM records
  WHERE kind = 'put' AND command = 'RegSub' AND direction = 'in' AND correlation_id IS NOT NULL
    AND message_id IS NOT NULL
) AS told {_NOT_ENDED}
WHERE turn = 1"""
_LANE: Final = "gateway, queue, correlation_id"
_SAME_LANE: Final = (
    "lane.gateway = told.gateway AND lane.queue = told.queue AND lane.correlation_id = told.correlation_id"
)
#: Of a lane in which a copy waits, the later ones that were delivered (delivery.qos1 counts them).
_OVERTAKING: Final = f"""
SELECT told.gateway, told.message_id FROM copies AS told
JOIN (
  SELECT {_LANE}, min(batch) AS batch FROM copies
  WHERE is_copy AND is_durable AND NOT is_ended AND correlation_id IS NOT NULL GROUP BY {_LANE}
) AS lane ON {_SAME_LANE}
LEFT JOIN (
  SELECT {_LANE} FROM copies WHERE correlation_id IS NOT NULL GROUP BY {_LANE} HAVING min(who_low) <> max(who_high)
) AS of_group ON of_group.gateway = told.gateway AND of_group.queue = told.queue
  AND of_group.correlation_id = told.correlation_id
LEFT JOIN (
  SELECT DISTINCT {_LANE}, put_bytes FROM copies
  WHERE is_copy AND is_durable AND NOT is_ended AND correlation_id IS NOT NULL
) AS alike ON alike.gateway = told.gateway AND alike.queue = told.queue
  AND alike.correlation_id = told.correlation_id AND alike.put_bytes IS NOT DISTINCT FROM told.put_bytes
WHERE told.is_copy AND told.is_durable AND told.is_delivered AND told.batch > lane.batch
  AND (of_group.gateway IS NULL OR alike.gateway IS NOT NULL)"""
#: Of a lane of a group one message of two of its members each, which show that it is one; of all others one would do,
#: and the registration tells their client.
_OF_MEMBERS: Final = f"""
SELECT gateway, min(message_id) AS message_id FROM (
  SELECT told.*, min(who_low) OVER (PARTITION BY {_LANE}) AS lowest,
    max(who_high) OVER (PARTITION BY {_LANE}) AS highest
  FROM copies AS told
  SEMI JOIN (
    SELECT gone.gateway, gone.correlation_id FROM records AS gone
    JOIN records AS asked ON asked.gateway = gone.gateway AND asked.correlation_id = gone.correlation_id
      AND asked.kind = 'put' AND asked.command = 'RegSub' AND asked.client <> gone.client
    WHERE gone.kind = 'delivered'
  ) AS lane ON lane.gateway = told.gateway AND lane.correlation_id = told.correlation_id
  WHERE who_low IS NOT NULL AND is_copy AND is_durable
) AS sized
WHERE who_low = lowest OR who_high = highest
GROUP BY {_LANE}, CASE WHEN who_low = lowest THEN 1 ELSE 2 END"""
#: Wills behind the last exchange of a session: each has a number in front of that of the next one.
_WILLS: Final = f"""
SELECT told.gateway, told.message_id FROM (SELECT * FROM records WHERE {WILL} AND message_id IS NOT NULL) AS told
JOIN (
  SELECT gateway, client, session_epoch, max(begun_at) AS begun_at FROM exchanges
  WHERE side = 'in' GROUP BY gateway, client, session_epoch
) AS last ON last.gateway = told.gateway AND last.client = told.client AND last.session_epoch = told.session_epoch
  AND told.sequence > last.begun_at
{_NOT_ENDED}"""
_MESSAGES: Final = (
    _WITHOUT_SERVED,
    _LETTERS,
    _RETAINED,
    "SELECT gateway, message_id FROM kept",
    _REGISTRATIONS,
    _OVERTAKING,
    _OF_MEMBERS,
    _WILLS,
    f"SELECT gateway, message_id FROM ({_WITHIN_COMMIT}) AS told WHERE message_id IS NOT NULL",
)

# -- exchanges ---------------------------------------------------------------------------------------------------------

_EXCHANGE: Final = "gateway, client, session_epoch, exchange, side"
_OPEN: Final = f"""
SELECT {_EXCHANGE} FROM exchanges AS told {_NOT_ENDED}
WHERE NOT coalesce(CASE WHEN side = 'in' THEN CASE
      WHEN accepted_at IS NULL THEN begun_at IS NOT NULL OR ended_at IS NOT NULL
      WHEN ended_at IS NULL THEN false
      ELSE accepted_qos = 0 OR (accepted_qos = 1 AND puback_at IS NOT NULL) OR pubcomp_at IS NOT NULL END
    ELSE delivered_qos = 0 OR (delivered_qos = 1 AND puback_at IS NOT NULL) OR pubcomp_at IS NOT NULL END, false)"""
_LAST: Final = f"""
SELECT {_EXCHANGE} FROM (
  SELECT *, row_number() OVER (PARTITION BY gateway, client, session_epoch ORDER BY begun_at DESC) AS turn
  FROM exchanges WHERE side = 'in' AND begun_at IS NOT NULL
) AS told {_NOT_ENDED}
WHERE turn = 1"""
_SIDE: Final = "CASE WHEN kind IN ('delivered', 'acknowledged') THEN 'out' ELSE 'in' END"
_EXCHANGES: Final = (
    _OPEN,
    _LAST,
    f"SELECT gateway, client, session_epoch, exchange, {_SIDE} AS side FROM ({_WITHIN_COMMIT}) AS told"
    f" WHERE exchange IS NOT NULL AND ({OF_EXCHANGES})",
)

# -- what brings what --------------------------------------------------------------------------------------------------

_LINKS: Final = f"""
SELECT DISTINCT {_EXCHANGE}, message_id FROM ({TOLD_OF_EXCHANGES}
) AS told WHERE message_id IS NOT NULL"""
#: What a message brings: the one that it was made of, the one whose dead letter it is, the DeletePub in front of it.
_SOURCES: Final = """
SELECT DISTINCT gateway, message_id, source_message_id AS other FROM records
WHERE message_id IS NOT NULL AND source_message_id IS NOT NULL
UNION
SELECT DISTINCT gateway, dead_letter_id AS message_id, message_id AS other FROM records
WHERE message_id IS NOT NULL AND dead_letter_id IS NOT NULL
UNION
SELECT DISTINCT empty.gateway, empty.message_id, deletion.message_id AS other
FROM (SELECT * FROM records WHERE kind = 'put' AND command = 'Publish' AND retain AND payload_bytes = 0) AS empty
JOIN (SELECT * FROM records WHERE kind = 'put' AND command = 'DeletePub') AS deletion
  ON deletion.gateway = empty.gateway AND deletion.client = empty.client AND deletion.batch = empty.batch
  AND deletion.session_epoch = empty.session_epoch AND deletion.topic = empty.topic
WHERE empty.message_id IS NOT NULL AND deletion.message_id IS NOT NULL"""
_SAME_EXCHANGE: Final = """one.gateway = two.gateway AND one.exchange = two.exchange
  AND one.client IS NOT DISTINCT FROM two.client AND one.session_epoch IS NOT DISTINCT FROM two.session_epoch
  AND one.side = two.side"""
_SAME_MESSAGE: Final = "one.gateway = two.gateway AND one.message_id = two.message_id"
_MORE_MESSAGES: Final = f"""
SELECT gateway, message_id FROM carried_messages
UNION SELECT one.gateway, one.message_id FROM links AS one SEMI JOIN carried_exchanges AS two ON {_SAME_EXCHANGE}
UNION SELECT one.gateway, one.other FROM sources AS one SEMI JOIN carried_messages AS two ON {_SAME_MESSAGE}"""
_MORE_EXCHANGES: Final = f"""
SELECT {_EXCHANGE} FROM carried_exchanges
UNION SELECT one.gateway, one.client, one.session_epoch, one.exchange, one.side FROM links AS one
  SEMI JOIN carried_messages AS two ON {_SAME_MESSAGE}"""

# -- the tables of the state -------------------------------------------------------------------------------------------

_STARTS: Final = """
SELECT gateway, max(sequence) AS sequence FROM records WHERE kind = 'started' GROUP BY gateway
UNION
SELECT gateway, max(sequence) FROM records WHERE kind = 'started' AND table_version IS NOT NULL GROUP BY gateway"""
#: The latest connection of each session (timeliness).
_CONNECTIONS: Final = f"""
SELECT told.gateway, told.sequence FROM (
  SELECT gateway, client, session_epoch, sequence,
    row_number() OVER (PARTITION BY gateway, client, session_epoch ORDER BY at_us DESC, sequence DESC) AS turn
  FROM records WHERE kind = 'session' AND event IN ('opened', 'resumed')
) AS told {_NOT_ENDED}
WHERE turn = 1"""
_JUMPS: Final = f"""
SELECT told.gateway, told.sequence FROM records AS told JOIN gateways AS g ON g.gateway = told.gateway
WHERE told.kind = 'clock_jumped' AND told.at_us >= g.last_at_us - {_JUMP_US}"""
_BY_THEMSELVES: Final = "\nUNION\n".join(
    (_STARTS, _CONNECTIONS, _JUMPS, f"SELECT gateway, sequence FROM ({_WITHIN_COMMIT}) AS told")
)
_CARRIED: Final = f"""
SELECT told.* FROM (
  SELECT *, CASE WHEN exchange IS NOT NULL AND ({OF_EXCHANGES}) THEN {_SIDE} END AS side FROM records
) AS told
LEFT JOIN carried_messages AS of_message
  ON of_message.gateway = told.gateway AND of_message.message_id = told.message_id
LEFT JOIN carried_exchanges AS of_exchange ON of_exchange.gateway = told.gateway
  AND of_exchange.exchange = told.exchange AND of_exchange.client IS NOT DISTINCT FROM told.client
  AND of_exchange.session_epoch IS NOT DISTINCT FROM told.session_epoch AND of_exchange.side = told.side
LEFT JOIN by_themselves AS alone ON alone.gateway = told.gateway AND alone.sequence = told.sequence
WHERE of_message.gateway IS NOT NULL OR alone.gateway IS NOT NULL
  OR of_exchange.gateway IS NOT NULL"""
_CONFIRMATIONS: Final = """
SELECT told.* FROM confirmations AS told
SEMI JOIN (SELECT * FROM carried_exchanges WHERE side = 'in') AS of_exchange ON of_exchange.gateway = told.gateway
  AND of_exchange.exchange = told.exchange AND of_exchange.client IS NOT DISTINCT FROM told.client
  AND of_exchange.session_epoch IS NOT DISTINCT FROM told.session_epoch"""
#: The last segment of each gateway and trail, and those that wait for their digests.
_RUNS: Final = """
SELECT told.*, late.gateway IS NOT NULL AS is_of_late FROM runs AS told
SEMI JOIN (
  SELECT trail, max(segment) AS segment FROM runs WHERE is_record GROUP BY trail, gateway
  UNION SELECT trail, segment FROM undigested
) AS kept ON kept.trail = told.trail AND kept.segment = told.segment
LEFT JOIN (SELECT DISTINCT trail, gateway FROM runs WHERE begins_late) AS late
  ON late.trail = told.trail AND late.gateway = told.gateway"""
_KEYS: Final = "gateway, client, session_epoch"
_SESSIONS: Final = f"""
SELECT told.gateway, told.client, told.session_epoch, told.side, min(first_exchange) AS first_exchange,
  max(last_exchange) AS last_exchange
FROM (
  SELECT {_KEYS}, side, CASE WHEN accepted_at IS NOT NULL THEN exchange END AS first_exchange,
    exchange AS last_exchange FROM exchanges
  UNION ALL SELECT {_KEYS}, side, exchange, exchange FROM ({SENT}) AS sent
  UNION ALL SELECT {_KEYS}, side, first_exchange, last_exchange FROM since_sessions
  UNION ALL SELECT {_KEYS}, side, CASE WHEN opened THEN 0 END, 0 FROM (
    SELECT {_KEYS}, event = 'opened' AS opened FROM records WHERE kind = 'session'
    UNION ALL SELECT {_KEYS}, false FROM exchanges
  ) AS there CROSS JOIN (SELECT 'in' AS side UNION ALL SELECT 'out' AS side) AS sides
) AS told {_NOT_ENDED}
GROUP BY told.gateway, told.client, told.session_epoch, told.side"""
_HEADS: Final = f"""
SELECT ends.gateway, max(ends.sequence) AS sequence, bool_or(ends.is_late) AS is_late,
  min(ends.first_message) AS first_message, max(ends.last_epoch) AS last_epoch
FROM (
  SELECT gateway, sequence, is_late, first_message, last_epoch FROM since_heads
  UNION ALL SELECT gateway, last_sequence, false, NULL, NULL FROM runs WHERE is_record
  UNION ALL SELECT gateway, NULL, is_late, NULL, NULL FROM gateways
  UNION ALL SELECT gateway, NULL, false, first_message, NULL FROM ({FIRSTS}) AS firsts
  UNION ALL SELECT gateway, NULL, false, NULL, session_epoch FROM records
) AS ends GROUP BY ends.gateway"""
_NUMBERS: Final = """
SELECT gateway, prefix, max(highest) AS highest FROM (
  SELECT gateway, substr(message_id, 1, 32) AS prefix, message_id AS highest FROM records
  WHERE kind IN ('put', 'received', 'redriven') AND message_id IS NOT NULL
  UNION ALL SELECT gateway, substr(dead_letter_id, 1, 32), dead_letter_id FROM records WHERE dead_letter_id IS NOT NULL
  UNION ALL SELECT gateway, prefix, highest FROM since_numbers
) AS told GROUP BY gateway, prefix"""
_KNOWN: Final = f"""
SELECT told.gateway, told.message_id, recent.gateway IS NOT NULL AS is_recent FROM carried_messages AS told
LEFT JOIN (SELECT DISTINCT gateway, message_id FROM ({_WITHIN_COMMIT}) AS inside) AS recent
  ON recent.gateway = told.gateway AND recent.message_id = told.message_id"""
_OF_TARGETS: Final = f"""
SELECT gateway, queue_manager, queue, target_message_id, max(sequence) AS sequence FROM (
  SELECT gateway, queue_manager, queue, target_message_id, sequence FROM records
  WHERE kind = 'received' AND target_message_id IS NOT NULL
  UNION ALL SELECT gateway, queue_manager, queue, target_message_id, sequence FROM since_received
) AS told GROUP BY gateway, queue_manager, queue, target_message_id ORDER BY sequence DESC LIMIT {_MOST_RECEIVED}"""
_TOLD: Final = """
SELECT control, gateway, sequence, subject FROM told UNION SELECT control, gateway, sequence, subject FROM since_told"""
_TABLES: Final = {
    "records": _CARRIED,
    "confirmations": _CONFIRMATIONS,
    "runs": _RUNS,
    "heads": _HEADS,
    "sessions": _SESSIONS,
    "exchanges": f"SELECT {_EXCHANGE} FROM carried_exchanges",
    "messages": _KNOWN,
    "numbers": _NUMBERS,
    "received": _OF_TARGETS,
    "told": _TOLD,
}
#: What carried rows no longer say: they are counted in no figure, and were compared with nothing here.
_CHANGED: Final[Mapping[str, Mapping[str, object]]] = {
    "records": {"is_counted": False, "status": None, "same_bytes": None},
    "confirmations": {"is_counted": False},
    "runs": {
        "is_fresh": False,
        **dict.fromkeys(("other_versions", "sealed", "counted", "plain", "keyed"), 0),
    },
}
_OF_MESSAGES: Final = pa.schema([TABLES["messages"].field(name) for name in ("gateway", "message_id")])
_MEMORIES: Final = pa.schema([TABLES["heads"].field(name) for name in ("gateway", "sequence")])
_OF_EXCHANGES: Final = TABLES["exchanges"]
_UNDIGESTED: Final = pa.schema([("trail", pa.string()), ("segment", pa.string())])


def state_of(
    engine: Engine,
    before: State,
    rules: Rules,
    trails: tuple[TrailHead, ...],
    undigested: Iterable[tuple[str, str]],
) -> State:
    """The state behind an audit, whose tables the engine still has, and which went on from `before`.

    `undigested`: trail and segment (as it was read) of those without a digest.
    """
    memories = dict(before.memories) | dict(_memories(engine))
    _give(engine, memories, undigested)
    _close_over(engine)
    tables = {name: _table(engine, name) for name in TABLES}
    return State(rules=rules, trails=trails, memories=memories, tables=tables)


def _memories(engine: Engine) -> Iterator[tuple[str, Memory]]:
    for row in engine.each(f"SELECT gateway, detail FROM custody WHERE control = '{MEMORY}'"):
        yield row["gateway"], Memory.parse(row["detail"])


def _give(engine: Engine, memories: Mapping[str, Memory], undigested: Iterable[tuple[str, str]]) -> None:
    known = [{"gateway": gateway, "sequence": each.sequence} for gateway, each in memories.items()]
    engine.give("memories", pa.Table.from_pylist(known, schema=_MEMORIES))
    kept = [
        {"gateway": gateway, "message_id": message_id}
        for gateway, each in memories.items()
        for message_id in each.retained
    ]
    engine.give("kept", pa.Table.from_pylist(kept, schema=_OF_MESSAGES))
    waiting = [{"trail": trail, "segment": segment} for trail, segment in undigested]
    engine.give("undigested", pa.Table.from_pylist(waiting, schema=_UNDIGESTED))


def _close_over(engine: Engine) -> None:
    """Makes the tables carried_messages and carried_exchanges: what is open, and all that its records bring.

    Each round's rows come here, as those of the state do. So the next round asks rows, and not the plans of all rounds.
    """
    engine.keep("links", _LINKS)
    engine.keep("sources", _SOURCES)
    engine.keep("by_themselves", _BY_THEMSELVES)
    messages, exchanges = _union(engine, _MESSAGES, _OF_MESSAGES), _union(engine, _EXCHANGES, _OF_EXCHANGES)
    before = -1
    while before != messages.num_rows + exchanges.num_rows:
        before = messages.num_rows + exchanges.num_rows
        engine.give("carried_messages", messages)
        engine.give("carried_exchanges", exchanges)
        messages = _rows(engine, _MORE_MESSAGES, _OF_MESSAGES)
        engine.give("carried_messages", messages)
        exchanges = _rows(engine, _MORE_EXCHANGES, _OF_EXCHANGES)


def _union(engine: Engine, queries: Iterable[str], schema: pa.Schema) -> pa.Table:
    return _rows(engine, "\nUNION\n".join(f"SELECT * FROM ({each}) AS part" for each in queries), schema)


def _rows(engine: Engine, query: str, schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist(list(engine.each(query)), schema=schema)


def _table(engine: Engine, name: str) -> pa.Table:
    changed = _CHANGED.get(name, {})
    rows: list[dict[str, Any]] = []
    for row in engine.each(_TABLES[name]):
        rows.append({**row, **changed, "begins_late": row.get("is_of_late")})
    return pa.Table.from_pylist(rows, schema=TABLES[name])
