"""Every conversion is performed again from its raw bytes, by a reading of its own (spark_audit/reperform).

A conversion that breaks a single rule mostly differs from its re-performance too. The control of the whole says that it
is wrong; the others say which rule of the specification it breaks (reperform/rules.py). The reader has performed them
(facts/conversions.py).
"""

from typing import Final

from spark_audit.controls.control import Control, Scope, Severity, Tested, told_by_reader
from spark_audit.reperform.comparison import Status

_ALL: Final = Tested(what="conversions", table="records", where="status IS NOT NULL")
#: Without those that nobody can perform again, because their headers are encrypted, for example.
PERFORMED: Final = f"status IS NOT NULL AND status <> '{Status.NOT_REPERFORMABLE}'"
_PERFORMED: Final = Tested(what="conversions", table="records", where=PERFORMED)


def _control(
    identifier: str, title: str, source: str, severity: Severity = Severity.ERROR, tested: Tested = _PERFORMED
) -> Control:
    return Control(
        identifier=identifier,
        title=title,
        severity=severity,
        source=source,
        scope=Scope.CONVERSIONS,
        tested=tested,
        rule=told_by_reader(identifier),
    )


CONTROL = _control(
    "conversion.reperformance",
    "Each conversion, performed again, has the same result",
    "Message formats (aq19780_): field table; MQTT 3.1.1 section 3.3",
)
UNREADABLE = _control(
    "conversion.reperformable",
    "Each conversion can be performed again",
    "Message formats (aq19780_): field table",
    Severity.WARNING,
    _ALL,
)
FIELDS = _control(
    "conversion.fields",
    "The nine fields pass under their other names, and nothing else",
    "Message formats (aq19780_): table of functionally equivalent fields",
)
SUPPORT = _control(
    "conversion.support",
    "Options stand only where notes 1 to 7 support them",
    "Message formats (aq19780_): option support table, notes 1 to 7",
)
REPORT = _control(
    "conversion.report",
    "Every field that is left out is reported",
    "Message formats (aq19780_): fields that are not copied",
)
BYTES = _control(
    "records.bytes",
    "Each record says what its own bytes say",
    "MQTT 3.1.1 sections 3.3, 3.8 and 3.10; spark_audit/record/notes.py",
)
RETAIN = _control(
    "retained.option",
    "RETAIN, RetainPub and IsRetainedPub stand for each other",
    "Message formats (aq19780_): RetainPub, IsRetainedPub; MQTT 3.1.1 section 3.3.1.3",
)
