"""Deliveries to clients: a message reaches its client as often as its QoS says, with the payload that was put."""

from typing import Final

from spark_audit.controls.control import (
    MESSAGE,
    Control,
    Parameter,
    Severity,
    Tested,
    all_of,
    differ,
    doubting,
    is_another,
    of_exchanges,
    of_messages,
    violations,
)

_LANE: Final = "PARTITION BY gateway, queue, correlation_id"

#: At least once: messages without an end, while many later ones of their session were delivered.
#:
#: The messages of a session are one lane of the subscriber queue (its CorrelId), delivered in the order of their
#: commits. Each ends as delivered, dropped or dead-lettered. A message without an end waits, which is right while the
#: client is away or its window is full. The margin leaves room for messages of higher priority, which may overtake.
#:
#: A group that shares a subscription has one lane too. There a message may be too large for every member that has room,
#: and waits while smaller ones go on (MQTT 5.0 section 4.8.2); so only later ones of the same payload size count. The
#: control judges copies of messages that clients published with QoS 1 or 2: others may be lost in a crash, or come from
#: an application whose persistence the trail does not tell. Only lanes in which something waits are sorted.
AT_LEAST_ONCE = Control(
    identifier="delivery.qos1",
    title="QoS 1: no message for a client is passed over",
    severity=Severity.ERROR,
    source="QoS levels and flows (ac10850_), QoS level 1; MQTT 3.1.1 sections 4.3.2 and 4.6",
    tested=Tested(what="copies", table="copies", where="is_copy AND is_durable AND correlation_id IS NOT NULL"),
    rule=violations(
        f"""(
  SELECT *, count(CASE WHEN is_delivered THEN 1 END) OVER ({_LANE}, size ORDER BY batch DESC)
    - count(CASE WHEN is_delivered THEN 1 END) OVER ({_LANE}, size, batch) AS later
  FROM (
    SELECT of_lane.*, CASE WHEN min(who_low) OVER ({_LANE}) <> max(who_high) OVER ({_LANE}) THEN put_bytes ELSE 0 END
      AS size
    FROM copies AS of_lane
    SEMI JOIN (
      SELECT DISTINCT gateway, queue, correlation_id FROM copies
      WHERE is_copy AND is_durable AND NOT is_ended AND correlation_id IS NOT NULL
    ) AS waiting ON waiting.gateway = of_lane.gateway AND waiting.queue = of_lane.queue
      AND waiting.correlation_id = of_lane.correlation_id
    WHERE is_copy AND is_durable
  ) AS sized
) AS counted""",
        "NOT is_ended AND later >= {overtaken_by_messages}",
        subject=MESSAGE,
        detail=(
            "'never delivered, and ' || CAST(later AS STRING)"
            " || ' messages that were put later for the same session were'"
        ),
    ),
    parameters=(
        Parameter(
            name="overtaken_by_messages",
            value=1_000,
            unit="messages",
            meaning="a message without an end is a violation when so many later ones of its session were delivered",
            minimum=1,
        ),
    ),
)

#: Exactly once: QoS 2 messages with several exchanges in a session, and PUBLISHes sent again after PUBREC.
#:
#: Until the client's PUBREC the gateway may send the PUBLISH again with DUP; after that, only PUBREL. A publication
#: with several topics is one PUBLISH for each of them.
EXACTLY_ONCE = Control(
    identifier="delivery.qos2",
    title="QoS 2: a client gets a message in one exchange, not repeated after PUBREC",
    severity=Severity.ERROR,
    source="QoS levels and flows (ac10850_), QoS level 2; MQTT 3.1.1 section 4.3.3",
    tested=Tested(what="exchanges", table="exchanges", where="side = 'out' AND delivered_qos = 2"),
    rule=all_of(
        doubting(
            violations(
                """(
  SELECT gateway, message_id, max(sequence) AS sequence, count(DISTINCT exchange) AS exchanges
  FROM records_of_messages WHERE kind = 'delivered' AND qos = 2
  GROUP BY gateway, client, session_epoch, message_id, topic
) AS counted""",
                "exchanges > 1",
                subject=MESSAGE,
                detail="'delivered with QoS 2 in ' || CAST(exchanges AS STRING) || ' exchanges'",
            ),
            ("messages", "exchange_low <> exchange_high"),
        ),
        of_exchanges(
            "out",
            "delivered_of_2_last > pubrec_at",
            "told.kind = 'delivered' AND told.qos = 2 AND told.sequence > whole.pubrec_at",
            "'PUBLISH was sent again after the client''s PUBREC'",
        ),
    ),
)

_FIRST: Final = """least(coalesce(puback_at, 9223372036854775807), coalesce(pubrec_at, 9223372036854775807),
  coalesce(pubcomp_at, 9223372036854775807), coalesce(other_answer_at, 9223372036854775807))"""
_IS_ANSWERED: Final = "coalesce(puback_at, pubrec_at, pubcomp_at, other_answer_at) IS NOT NULL"
_IS_STRANGE: Final = """CASE delivered_qos WHEN 1 THEN coalesce(pubrec_at, pubcomp_at, other_answer_at)
  WHEN 2 THEN coalesce(puback_at, other_answer_at)
  ELSE coalesce(puback_at, pubrec_at, pubcomp_at, other_answer_at) END IS NOT NULL"""
_GOES_WITH_QOS: Final = """coalesce((whole.delivered_qos = 1 AND told.packet_type = 4)
  OR (whole.delivered_qos = 2 AND told.packet_type IN (5, 7)), false)"""
_ANSWER: Final = "told.kind = 'acknowledged'"
ACKNOWLEDGED = Control(
    identifier="delivery.acknowledged",
    title="Every message that a client acknowledged was delivered to it",
    severity=Severity.ERROR,
    source="QoS levels and flows (ac10850_); MQTT 3.1.1 sections 3.4 to 3.7",
    tested=Tested(what="exchanges", table="exchanges", where=f"side = 'out' AND {_IS_ANSWERED}"),
    rule=all_of(
        of_exchanges(
            "out",
            f"delivered_at IS NULL AND {_IS_ANSWERED}",
            _ANSWER,
            "'the client acknowledged a message that was never delivered to it'",
            and_whole="has_begun",
        ),
        of_exchanges(
            "out",
            f"{_IS_ANSWERED} AND delivered_at > {_FIRST}",
            f"{_ANSWER} AND told.sequence < whole.delivered_at",
            "'acknowledged before it was delivered'",
        ),
        of_exchanges(
            "out",
            f"delivered_at IS NOT NULL AND {_IS_STRANGE}",
            f"{_ANSWER} AND NOT {_GOES_WITH_QOS}",
            "'the acknowledgement does not go with the QoS of the delivery'",
        ),
    ),
)

#: What the conversion service put with another payload than the one that an application had put.
_SERVED: Final = """(
  SELECT served.gateway, served.sequence, served.message_id
  FROM (SELECT * FROM records WHERE conversion = 'service' AND payload IS NOT NULL) AS served
  JOIN (SELECT * FROM records WHERE kind = 'mqput' AND payload IS NOT NULL) AS taken
    ON taken.gateway = served.gateway AND taken.message_id = served.source_message_id
  WHERE taken.payload <> served.payload
) AS told"""

#: Messages whose payload differs where it was accepted, put and delivered, by length or SHA-256.
#:
#: The `source_message_id` of the copy leads from a delivery to the publication's put. A publication of an MQ
#: application has no put of the gateway to compare with.
PAYLOAD = Control(
    identifier="payload",
    title="The payload is the same when accepted, put and delivered",
    severity=Severity.ERROR,
    source="architecture: payloads are never changed, except maps of JMS, whose deliveries tell both",
    tested=Tested(
        what="exchanges", table="exchanges", where="accepted_payload_low IS NOT NULL AND put_payload_low IS NOT NULL"
    ),
    rule=all_of(
        of_exchanges(
            "in",
            differ("put_payload", "accepted_payload"),
            f"told.kind = 'put' AND {is_another('payload', 'accepted_payload')}",
            "'the payload that was put is not the payload that was accepted'",
        ),
        of_messages(
            f"source_message_id IS NOT NULL AND {differ('delivered_payload', 'put_payload')}",
            f"told.kind = 'delivered' AND {is_another('payload', 'put_payload')}",
            "'the payload that was delivered is not the payload that was put'",
            table="copies",
        ),
        violations(
            _SERVED,
            "true",
            subject=MESSAGE,
            detail="'the payload that the conversion service put is not the payload that it took'",
        ),
    ),
)
