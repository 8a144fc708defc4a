"""Nothing appears from nowhere and nothing vanishes.

    accepted = put + refused + dead-lettered + pending           of each client's exchanges
    copies   = delivered + dropped + dead-lettered + pending     of each subscriber's messages

A copy is the embedded broker's, or one that another broker made and a channel received.

The sums (report/figures.py) hold by counting each exchange and each copy once. Violations are what the sums cannot
show: a put of an exchange that was never accepted, one that was accepted twice, an accepted QoS 0 or 1 exchange without
an end, a delivery of what no copy made, a dead letter that was put back twice. What stands in the last batch of a
gateway may be cut by the end of the trail, and what began before its first record by the beginning: both are pending.
"""

from spark_audit.controls.control import (
    MESSAGE,
    Control,
    Severity,
    Tested,
    all_of,
    of_exchanges,
    of_messages,
    violations,
)

CONTROL = Control(
    identifier="conservation",
    title="Everything accepted has an end, and everything delivered a beginning",
    severity=Severity.ERROR,
    source="QoS levels and flows (ac10850_); spark_audit/record/kinds.py: kinds",
    tested=Tested(what="exchanges", table="exchanges", where="accepted_at IS NOT NULL OR delivered_at IS NOT NULL"),
    rule=all_of(
        of_exchanges(
            "in",
            "put_at IS NOT NULL AND accepted_at IS NULL",
            "told.kind = 'put' AND told.packet_type = 3",
            "'put, but never accepted'",
            and_whole="has_begun",
        ),
        of_exchanges(
            "in",
            "accepted_last > accepted_at",
            "told.kind = 'accepted' AND told.sequence > whole.accepted_at",
            "'accepted, and it was accepted before'",
        ),
        of_exchanges(
            "in",
            "accepted_qos < 2 AND ended_at IS NULL",
            "told.kind = 'accepted' AND told.qos < 2 AND told.batch < whole.last_batch",
            "'accepted, and nothing became of it'",
        ),
        of_messages(
            "delivered_at IS NOT NULL AND made_at IS NULL",
            "told.kind = 'delivered'",
            "'delivered, but never put'",
            and_whole="has_begun",
        ),
        violations(
            """(
  SELECT gateway, sequence, message_id,
    row_number() OVER (PARTITION BY gateway, dead_letter_id ORDER BY sequence) AS turn
  FROM records WHERE kind = 'redriven' AND dead_letter_id IS NOT NULL
) AS redriven""",
            "turn > 1",
            subject=MESSAGE,
            detail="'put back, and its dead letter was put back before'",
        ),
    ),
)
