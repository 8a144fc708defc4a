"""A state in the tables of an engine, beside what was read behind it.

Carried rows of facts stand among those that were read. They are counted in no figure, and were judged by themselves.
The other tables of the state have names of their own (`since_heads` ...), which the rules of an increment ask.
"""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from spark_audit.controls.catalogue import CONTROLS
from spark_audit.engines.engine import Engine, Row
from spark_audit.facts.derived import TOLD_OF_EXCHANGES
from spark_audit.increments.state import TABLES, State

#: Up to which record the replay of custody knows each gateway.
_MEMORIES: Final = pa.schema([("gateway", pa.string()), ("sequence", pa.int64())])
_FACTS: Final = ("records", "confirmations", "runs")
SINCE: Final = "since_{}"
#: Of controls that compare a record with its neighbours, what they find among the carried ones is not told: those that
#: stood between are not carried.
_OF_NEIGHBOURS: Final = ", ".join(f"'{each.identifier}'" for each in CONTROLS if each.is_of_neighbours)
BEHIND_HEADS: Final = f"""ANTI JOIN since_heads ON since_heads.gateway = found.gateway
  AND found.sequence <= since_heads.sequence AND found.control IN ({_OF_NEIGHBOURS})"""


def give(engine: Engine, state: State) -> None:
    """Adds a state to the facts that an engine has read; an empty one gives empty tables."""
    for name in TABLES:
        if name not in _FACTS:
            engine.give(SINCE.format(name), state.table(name))
        elif state.table(name).num_rows:
            engine.add(name, state.table(name))
    known = [{"gateway": gateway, "sequence": each.sequence} for gateway, each in state.memories.items()]
    engine.give("since_memories", pa.Table.from_pylist(known, schema=_MEMORIES))


#: Records behind the state.
_NEW: Final = """
SELECT told.* FROM records AS told
LEFT JOIN since_heads AS head ON head.gateway = told.gateway
WHERE head.sequence IS NULL OR told.sequence > head.sequence"""
#: Messages that they name. `with_copies`: the rules ask the copies of the message too, because it is made here, or a
#: copy of it is; of a retained one each copy stands for itself.
_NAMED: Final = f"""
  SELECT gateway, message_id, kind IN ('put', 'received') AS with_copies FROM ({_NEW}) AS new
  WHERE message_id IS NOT NULL
  UNION
  SELECT gateway, dead_letter_id, false FROM ({_NEW}) AS new WHERE dead_letter_id IS NOT NULL
  UNION
  SELECT gateway, source_message_id, NOT coalesce(is_retained OR conversion = 'service', false) FROM ({_NEW}) AS new
  WHERE source_message_id IS NOT NULL"""
#: Messages that have a number of the time before the state, and are not known whole.
_MESSAGES: Final = f"""
SELECT named.gateway, named.message_id AS what
FROM ({_NAMED}
) AS named
JOIN since_numbers AS number ON number.gateway = named.gateway AND number.prefix = substr(named.message_id, 1, 32)
  AND named.message_id <= number.highest
LEFT JOIN since_messages AS known ON known.gateway = named.gateway AND known.message_id = named.message_id
WHERE known.gateway IS NULL OR (named.with_copies AND NOT known.is_recent)"""
#: The same of exchanges, by the numbers of their sessions.
_EXCHANGES: Final = f"""
SELECT named.gateway, CAST(named.exchange AS STRING) AS what
FROM (
  SELECT DISTINCT told.gateway, told.client, told.session_epoch, told.exchange, told.side
  FROM ({TOLD_OF_EXCHANGES}
  ) AS told
  LEFT JOIN since_heads AS head ON head.gateway = told.gateway
  WHERE head.sequence IS NOT NULL AND told.sequence > head.sequence
) AS named
JOIN since_heads AS head ON head.gateway = named.gateway
LEFT JOIN since_exchanges AS known ON known.gateway = named.gateway AND known.exchange = named.exchange
  AND known.client IS NOT DISTINCT FROM named.client
  AND known.session_epoch IS NOT DISTINCT FROM named.session_epoch AND known.side = named.side
LEFT JOIN since_sessions AS session ON session.gateway = named.gateway AND session.side = named.side
  AND session.client IS NOT DISTINCT FROM named.client
  AND session.session_epoch IS NOT DISTINCT FROM named.session_epoch
LEFT JOIN (
  SELECT DISTINCT gateway, client, session_epoch FROM ({_NEW}) AS new WHERE kind = 'session' AND event = 'opened'
) AS opened ON opened.gateway = named.gateway AND opened.client = named.client
  AND opened.session_epoch = named.session_epoch
WHERE known.gateway IS NULL AND CASE WHEN session.gateway IS NOT NULL THEN named.exchange <= session.last_exchange
  ELSE opened.gateway IS NULL AND coalesce(named.session_epoch <= head.last_epoch, true) END"""
_RECEIVED: Final = f"""
SELECT new.gateway, new.target_message_id AS what FROM ({_NEW}) AS new
JOIN since_received AS before ON before.gateway = new.gateway AND before.target_message_id = new.target_message_id
  AND before.queue_manager IS NOT DISTINCT FROM new.queue_manager AND before.queue IS NOT DISTINCT FROM new.queue
WHERE new.kind = 'received'"""
_NUMBERS: Final = """
SELECT runs.gateway, CAST(runs.first_sequence AS STRING) AS what FROM runs
JOIN since_heads AS head ON head.gateway = runs.gateway
WHERE runs.is_record AND runs.is_fresh AND runs.first_sequence <= head.sequence"""
_PARTS: Final = {
    "messages": _MESSAGES,
    "exchanges": _EXCHANGES,
    "messages of targets": _RECEIVED,
    "numbers of records": _NUMBERS,
}


class NamedBefore(Exception):
    """Records name what had ended before the state, so it does not have that. The text says what."""

    def __init__(self, found: Sequence[Row]) -> None:
        super().__init__(", ".join(f"{row['times']} {row['part']} ({row['example']})" for row in found))
        self.gateways = frozenset(row["gateway"] for row in found)


def check_names(engine: Engine) -> None:
    """Looks whether the state has everything that new records name of the time before it. Raises NamedBefore."""
    query = "\nUNION ALL\n".join(
        f"SELECT '{part}' AS part, gateway, count(*) AS times, min(what) AS example FROM ({named}) AS named"
        " GROUP BY gateway"
        for part, named in _PARTS.items()
    )
    if found := engine.rows(query):
        raise NamedBefore(found)
