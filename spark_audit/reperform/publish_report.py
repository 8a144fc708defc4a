"""What a header does not name of a packet's user properties is in the record's report, where each is to have a name.

The JSON in rfhbUserProps has all of them. A report says that each one was to have a property of its own: then it names
those that have none, and no other. Source: JMS 1.1 sections 3.5.1 and 3.8.1.1; MQTT 5.0 section 3.3.2.3.7.
"""

from collections.abc import Iterator

from spark_audit.reperform.facts import Facts
from spark_audit.reperform.meaning import Meaning
from spark_audit.reperform.packet_to_header import publish_of
from spark_audit.reperform.properties import Properties, read_properties
from spark_audit.reperform.target import read_carrier
from spark_audit.reperform.user_properties import OWN_PREFIX


def publish_report_faults(facts: Facts, actual: Meaning) -> Iterator[str]:
    """What was left out without a word, and what the report says and the header has."""
    _, _, _, section = publish_of(facts)
    properties = read_properties(section) if section else Properties()
    written = {name for name, _ in read_carrier(actual.folders, actual.unmapped) if not name.startswith(OWN_PREFIX)}
    reported = {name for name, _ in facts.dropped_fields}
    names = dict.fromkeys(name for name, _ in properties.user_properties)
    for name in names if written or reported else ():
        if name not in written and name not in reported:
            yield f"{name} was left out without a word"
    for name in sorted(reported):
        if name in written or name not in names:
            yield f"{name} was not left out, though the report says so"
