"""What a channel took to a target, or from one, it took once, and of each client in the order of its puts.

    put for a target = forwarded + dead-lettered + dropped + pending

A message that was forwarded may be dead-lettered afterwards: its broker refuses after the put has succeeded.
"""

from spark_audit.controls.control import MESSAGE, Control, Severity, Tested, all_of, of_messages, violations

CONTROL = Control(
    identifier="passages",
    title="Each message went over a channel once",
    severity=Severity.ERROR,
    source="spark_audit/record/kinds.py: kinds forwarded and received",
    tested=Tested(what="records", table="records", where="kind IN ('forwarded', 'received')"),
    rule=all_of(
        of_messages(
            "forwarded_last > forwarded_at",
            "told.kind = 'forwarded' AND told.sequence > whole.forwarded_at",
            "'forwarded, and it was forwarded before'",
        ),
        violations(
            """(
  SELECT gateway, sequence, message_id, row_number() OVER (
    PARTITION BY gateway, queue_manager, queue, target_message_id ORDER BY sequence
  ) AS turn
  FROM records WHERE kind = 'received' AND target_message_id IS NOT NULL
) AS received""",
            "turn > 1",
            subject=MESSAGE,
            detail="'received, and it was received before'",
        ),
    ),
)
ORDER = Control(
    identifier="passages.order",
    title="A channel carries the messages of one client in their order",
    severity=Severity.ERROR,
    source="MQTT 3.1.1 section 4.6; spark_audit/record/kinds.py: kind forwarded",
    tested=Tested(what="messages", table="messages", where="sent_at IS NOT NULL AND forwarded_at IS NOT NULL"),
    rule=violations(
        """(
  SELECT put.gateway, put.message_id, m.forwarded_at, max(m.forwarded_at) OVER (
    PARTITION BY put.gateway, put.destination, put.client, put.session_epoch ORDER BY put.sequence
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
  ) AS latest
  FROM records AS put
  JOIN messages AS m ON m.gateway = put.gateway AND m.message_id = put.message_id AND m.forwarded_at IS NOT NULL
  WHERE put.kind = 'put' AND put.direction = 'in' AND put.destination IS NOT NULL AND put.client IS NOT NULL
) AS ordered""",
        "forwarded_at < latest",
        sequence="forwarded_at",
        subject=MESSAGE,
        detail=(
            "'overtook a message that the client had put before it; that one went in record ' || CAST(latest AS STRING)"
        ),
    ),
)
