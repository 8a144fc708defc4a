"""Exchanges from a client to the gateway: what was acknowledged was stored first, and put as often as its QoS says."""

from typing import Final

from spark_audit.controls.control import (
    Control,
    Rule,
    Severity,
    Tested,
    all_of,
    differ,
    is_another,
    of_exchanges,
    told_by_reader,
)

_BEGUN: Final = "has_begun"


def _confirmed(packet_type: int) -> str:
    return f"told.kind = 'confirmed' AND told.packet_type = {packet_type}"


#: QoS 1: messages that PUBACK acknowledged, and that were neither put, refused nor dead-lettered.
AT_LEAST_ONCE = Control(
    identifier="qos.1",
    title="QoS 1: each acknowledged PUBLISH was put at least once",
    severity=Severity.ERROR,
    source="QoS levels and flows (ac10850_), QoS level 1; MQTT 3.1.1 section 4.3.2",
    tested=Tested(what="exchanges", table="exchanges", where="side = 'in' AND puback_at IS NOT NULL"),
    rule=all_of(
        of_exchanges(
            "in",
            "puback_at IS NOT NULL AND ended_at IS NULL",
            _confirmed(4),
            "'acknowledged with PUBACK, and no record says that it was put, refused or dead-lettered'",
            and_whole=_BEGUN,
        ),
        of_exchanges(
            "in",
            "puback_at IS NOT NULL AND accepted_qos <> 1",
            _confirmed(4),
            "'acknowledged with PUBACK at another QoS'",
        ),
        told_by_reader("qos.1"),
    ),
)

_IS_REPEATED: Final = "told.kind = 'repeated'"
#: QoS 2: messages that were completed and not put exactly once, and PUBRECs for a PUBLISH that was never stored.
#:
#: An exchange between PUBREC and PUBREL is pending: its session may come back. A PUBLISH that the gateway took for a
#: repeat must be one: the exchange was open, and the message was the same.
EXACTLY_ONCE = Control(
    identifier="qos.2",
    title="QoS 2: each completed PUBLISH was put exactly once",
    severity=Severity.ERROR,
    source="QoS levels and flows (ac10850_), QoS level 2; MQTT 3.1.1 section 4.3.3",
    tested=Tested(
        what="exchanges", table="exchanges", where="side = 'in' AND (accepted_qos = 2 OR pubrec_at IS NOT NULL)"
    ),
    rule=all_of(
        of_exchanges("in", "puts_of_2 > 1", "told.sequence = whole.put_of_2_last", "'put more than once'"),
        of_exchanges(
            "in",
            "pubcomp_at IS NOT NULL AND ended_at IS NULL",
            _confirmed(7),
            "'completed with PUBCOMP, and no record says that it was put, refused or dead-lettered'",
            and_whole=_BEGUN,
        ),
        of_exchanges(
            "in", "pubrec_at IS NOT NULL AND accepted_qos <> 2", _confirmed(5), "'answered with PUBREC at another QoS'"
        ),
        of_exchanges(
            "in",
            "pubrec_at IS NOT NULL AND accepted_at IS NULL AND ended_at IS NULL",
            _confirmed(5),
            "'answered with PUBREC, but never stored'",
            and_whole=_BEGUN,
        ),
        of_exchanges(
            "in",
            "repeated_at IS NOT NULL AND accepted_at IS NULL",
            _IS_REPEATED,
            "'taken for a repeat, but never accepted before'",
            and_whole=_BEGUN,
        ),
        of_exchanges(
            "in",
            "repeated_last > ended_at",
            f"{_IS_REPEATED} AND told.sequence > whole.ended_at",
            "'taken for a repeat, but its exchange had ended: it was a new message'",
        ),
        of_exchanges(
            "in",
            differ("repeat", "accepted"),
            f"{_IS_REPEATED} AND told.event = 'repeat' AND {is_another('publication', 'accepted')}",
            "'taken for a repeat, but it is another message'",
        ),
        told_by_reader("qos.2"),
    ),
)
#: A sender must not use an identifier for another message before PUBCOMP. A receiver must answer such a PUBLISH like a
#: repeat, so the message is acknowledged and reaches nobody. The client is at fault; the record tells of it.
IDENTIFIERS = Control(
    identifier="qos.identifiers",
    title="QoS 2: no packet identifier was used again before its PUBREL",
    severity=Severity.WARNING,
    source="MQTT 3.1.1 sections 2.3.1 and 4.3.3",
    tested=Tested(what="exchanges", table="exchanges", where="side = 'in' AND accepted_qos = 2"),
    rule=told_by_reader("qos.identifiers"),
)


def _too_early(packet: str, packet_type: int, answered_at: str, durable_at: str) -> Rule:
    detail = (
        f"'{packet} is confirmed here, the commit that it stands for comes later, in record ' ||"
        f" CAST(whole.{durable_at} AS STRING)"
    )
    doubt = f"{durable_at} > {answered_at}"
    return of_exchanges("in", doubt, f"{_confirmed(packet_type)} AND told.sequence < whole.{durable_at}", detail)


#: Acknowledgements whose commit comes later in the trail than they do.
#:
#: The gateway notes a confirmation after the acknowledgement has left, in a later group commit. So the exchange must be
#: in an earlier record: for PUBACK and PUBCOMP the outcome of the PUBLISH (put, refused, dead-lettered), for PUBREC the
#: record that it was stored (accepted). qos.1 and qos.2 find exchanges that are in no record at all.
COMMITTED = Control(
    identifier="qos.committed",
    title="Nothing was acknowledged before its commit",
    severity=Severity.ERROR,
    source="QoS levels and flows (ac10850_): the message is stored, then acknowledged; MQTT 3.1.1 section 4.3",
    tested=Tested(
        what="exchanges", table="exchanges", where="side = 'in' AND (answered_at IS NOT NULL OR pubcomp_at IS NOT NULL)"
    ),
    rule=all_of(
        _too_early("PUBACK", 4, "puback_at", "ended_at"),
        _too_early("PUBREC", 5, "pubrec_at", "accepted_at"),
        _too_early("PUBCOMP", 7, "pubcomp_at", "ended_at"),
    ),
)
