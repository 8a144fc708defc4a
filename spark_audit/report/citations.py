"""The documents that the rules of controls come from, as a reader looks them up: by publisher, title and edition.

A control names its sources in short; docs/explanation/sources.md says the same of all that is cited in the program.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Citation:
    """A document. `mark` is how a source of a control begins to name it, `identifier` its anchor in the page."""

    mark: str
    identifier: str
    document: str


#: Where two marks fit, the first row counts.
CITATIONS: Final = (
    Citation("MQTT 3.1.1", "mqtt-3-1-1", "OASIS Standard: MQTT Version 3.1.1, 29 October 2014"),
    Citation("MQTT 5.0", "mqtt-5-0", "OASIS Standard: MQTT Version 5.0, 7 March 2019"),
    Citation(
        "Message formats (aq19780_)",
        "aq19780",
        "IBM WebSphere Message Broker V6 documentation: Message formats (page aq19780_)",
    ),
    Citation(
        "QoS levels and flows (ac10850_)",
        "ac10850",
        "IBM WebSphere Message Broker V6 documentation: WebSphere MQ Telemetry Transport quality of service levels and"
        " flows (page ac10850_)",
    ),
    Citation("WebSphere MQ V6", "sc34-6602", "IBM SC34-6602: WebSphere MQ V6 Publish/Subscribe User's Guide"),
    Citation("IBM MQ", "ibm-mq", "IBM MQ documentation, by the title of the page"),
    Citation("RFC 8032", "rfc-8032", "IETF RFC 8032: Edwards-Curve Digital Signature Algorithm (EdDSA), January 2017"),
    Citation("spark_audit", "rfhbridge-record", "rfhbridge documents: Audit record; The trail and its chain"),
    Citation("architecture", "rfhbridge-architecture", "rfhbridge: ARCHITECTURE.md, invariants"),
)


def cited_in(source: str) -> list[tuple[str, str]]:
    """The parts of a control's source, each with the anchor of its document; "" where no row names it."""
    parts = (part.strip() for part in source.split(";"))
    return [(part, next((row.identifier for row in CITATIONS if row.mark in part), "")) for part in parts if part]


def cited_by(sources: Iterable[str]) -> list[Citation]:
    """The documents that some sources name, in the order of the table."""
    found = {identifier for source in sources for _part, identifier in cited_in(source)}
    return [row for row in CITATIONS if row.identifier in found]
