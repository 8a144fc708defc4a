"""Deleting what is retained: an empty PUBLISH with RETAIN is a DeletePub and then a Publish, and takes effect.

    PUBLISH, RETAIN, no payload    a DeletePub of the topic stands in front of the Publish, in the same commit
    after the DeletePub's commit   no copy is made of a publication that was retained before it

A copy that was made before the DeletePub and waits for its client is delivered all the same: it was published. A
DeletePub that the broker refused deletes nothing. The second rule is about the gateway's own stream: of a publication
that an application retained the trail has no put, so its topic space is not known.
"""

from typing import Final

from spark_audit.controls.control import MESSAGE, Control, Severity, Tested, all_of, exchange, violations

_EMPTY: Final = (
    "kind = 'put' AND direction = 'in' AND command = 'Publish' AND packet_type = 3 AND retain AND payload_bytes = 0"
)
_DELETE: Final = "kind = 'put' AND direction = 'in' AND command = 'DeletePub'"
_WITHOUT_DELETE: Final = f"""(
  SELECT empty.gateway, empty.client, empty.session_epoch, empty.exchange, empty.sequence, deletes.deleted_at
  FROM (SELECT * FROM records WHERE {_EMPTY}) AS empty
  LEFT JOIN (
    SELECT gateway, client, session_epoch, batch, topic, min(sequence) AS deleted_at FROM records
    WHERE {_DELETE} GROUP BY gateway, client, session_epoch, batch, topic
  ) AS deletes ON deletes.gateway = empty.gateway AND deletes.client = empty.client
    AND deletes.session_epoch = empty.session_epoch AND deletes.batch = empty.batch AND deletes.topic = empty.topic
) AS told"""
#: Copies of retained publications of clients, with the stream queue that the publication was put on, and the DeletePubs
#: that the embedded broker carried out, in the order of commits: the copies of one commit may be those of a command in
#: front of its DeletePub, whose records stand in front of what the broker does.
_COPIED_AFTER: Final = f"""(
  SELECT *, max(deletes) OVER (
    PARTITION BY gateway, queue, topic ORDER BY batch, CASE WHEN deletes IS NULL THEN 0 ELSE 1 END
    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
  ) AS deleted_by
  FROM (
    SELECT copy.gateway, source.queue, copy.topic, copy.sequence, copy.batch, copy.message_id,
      copy.source_message_id AS source, CAST(NULL AS STRING) AS deletes
    FROM records AS copy
    JOIN records AS source ON source.gateway = copy.gateway AND source.message_id = copy.source_message_id
      AND source.kind = 'put' AND source.direction = 'in'
    WHERE copy.is_retained AND copy.conversion = 'header_to_header'
    UNION ALL
    SELECT deletion.gateway, deletion.queue, deletion.topic, deletion.sequence, deletion.batch, deletion.message_id,
      CAST(NULL AS STRING) AS source, deletion.message_id AS deletes
    FROM (SELECT * FROM records WHERE {_DELETE} AND destination IS NULL) AS deletion
    ANTI JOIN messages AS m ON m.gateway = deletion.gateway AND m.message_id = deletion.message_id AND m.is_refused
  ) AS events
) AS told"""

CONTROL = Control(
    identifier="retained.deleted",
    title="A retained publication that was deleted is retained no longer",
    severity=Severity.ERROR,
    source="Message formats (aq19780_): DeletePub; MQTT 3.1.1 section 3.3.1.3",
    tested=Tested(
        what="messages",
        table="records",
        where=f"({_EMPTY}) OR (is_retained AND conversion = 'header_to_header')",
    ),
    rule=all_of(
        violations(
            _WITHOUT_DELETE,
            "NOT coalesce(deleted_at < sequence, false)",
            subject=exchange("in"),
            detail="'an empty PUBLISH with RETAIN was put without a DeletePub in front of it'",
        ),
        violations(
            _COPIED_AFTER,
            "source < deleted_by",
            subject=MESSAGE,
            detail="'a copy of publication ' || source || ', which DeletePub ' || deleted_by || ' had deleted'",
        ),
    ),
)
