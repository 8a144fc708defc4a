"""Controls of an archive of captured messages, beside the controls of conversions.

Each finding is of one message by itself: archive/examination.py finds it. Only that a name stands twice is a matter of
several messages. The controls HELD_BY_PAIRS judge conversions, and only an archive that has some can be judged by them.
"""

from typing import Final

from spark_audit.controls import reperformance
from spark_audit.controls.control import MESSAGE, Control, Scope, Severity, Tested, told_by_reader, violations

_NINE: Final = "Message formats (aq19780_): table of functionally equivalent fields"
_MESSAGES: Final = Tested(what="messages", table="records", where="has_message")
_PAIRS: Final = Tested(what="conversions", table="records", where="has_made")


def _of_messages(identifier: str, title: str, source: str, severity: Severity = Severity.ERROR) -> Control:
    return Control(
        identifier=identifier,
        title=title,
        severity=severity,
        source=source,
        rule=told_by_reader(identifier),
        tested=_MESSAGES,
    )


def _of_pairs(identifier: str, title: str, source: str, severity: Severity = Severity.ERROR) -> Control:
    return Control(
        identifier=identifier,
        title=title,
        severity=severity,
        source=source,
        rule=told_by_reader(identifier),
        tested=_PAIRS,
        scope=Scope.CONVERSIONS,
    )


READABLE: Final = _of_messages(
    "archive.readable", "Each message begins with headers that can be read", "IBM MQ: MQRFH, MQRFH2, MQDLH"
)
JUDGED: Final = _of_messages(
    "archive.judged",
    "The audit's own reading knows each header and code page",
    "spark_audit/reperform",
    Severity.WARNING,
)
CONVERTIBLE: Final = _of_messages(
    "archive.convertible",
    "Each message can be written in the other format",
    "Message formats (aq19780_): option support table; IBM MQ: Wildcard schemes",
)
LOSSES: Final = _of_messages("archive.losses", "No field is left out in the other format", _NINE, Severity.WARNING)
NAMES: Final = Control(
    identifier="archive.names",
    title="A name stands for one message",
    severity=Severity.WARNING,
    source="spark_audit/archive/files.py",
    tested=_MESSAGES,
    rule=violations(
        "(SELECT gateway, sequence, message_id, count(*) AS times FROM records WHERE has_message"
        " GROUP BY gateway, sequence, message_id) AS names",
        "times > 1",
        subject=MESSAGE,
        detail="CAST(times AS STRING) || ' messages have this name'",
    ),
)
PAIRED: Final = _of_pairs(
    "archive.paired",
    "Each message that can be converted was converted, and no other",
    "spark_audit/archive/files.py",
)
BODY: Final = _of_pairs(
    "archive.body",
    "The body behind the headers stayed as it was, byte for byte",
    "Message formats (aq19780_): the header alone is converted",
)
BYTES: Final = _of_pairs("archive.bytes", "Each header is byte for byte what the audit writes", _NINE, Severity.WARNING)

#: In the order in which they run and are shown.
OF_MESSAGES: Final = (READABLE, JUDGED, CONVERTIBLE, LOSSES, NAMES)
HELD_BY_PAIRS: Final = (
    PAIRED,
    reperformance.CONTROL,
    reperformance.UNREADABLE,
    reperformance.FIELDS,
    reperformance.SUPPORT,
    reperformance.REPORT,
    BODY,
    BYTES,
)
