"""What a PUBLISH to a client does not say of its publication is in the record's report, and nothing else is.

A PUBLISH says Command, Topic and PubOpt of the command in its own way. Everything else of the header that it does not
say has to be named in `dropped_fields`: other fields of the command, folders beside psc and usr, and properties that
are no user property. Source: "Message formats" (aq19780_), fields that are not copied; MQTT 5.0 section 3.3.2.3.
"""

from collections.abc import Iterator
from typing import Final

from spark_audit.reperform.facts import Facts
from spark_audit.reperform.meaning import Meaning
from spark_audit.reperform.mqtt import FIRST_LEVEL_WITH_PROPERTIES, read_publish
from spark_audit.reperform.properties import Pairs, read_properties
from spark_audit.reperform.table import TO_NAME
from spark_audit.reperform.target import USR, delivered_elements, usr_elements
from spark_audit.reperform.user_properties import unsaid_names

_SAID: Final = frozenset({"Command", "Topic", "PubOpt"})
_STREAMS: Final = frozenset({"StreamName", "MQPSStreamName"})
_COMMAND_PREFIX: Final = "MQPS"


def delivery_report_faults(facts: Facts, publication: Meaning) -> Iterator[str]:
    """What was left out without a word, and what the report says and was given."""
    given = _given(facts)
    unsaid = dict.fromkeys(_unsaid(facts, publication, given))
    reported = {name for name, _ in facts.dropped_fields}
    for name in unsaid:
        if name not in reported:
            yield f"{name} was left out without a word"
    for name, _ in given:
        if name in reported and name not in unsaid:
            yield f"{name} was given, though the report says that it was left out"


def _given(facts: Facts) -> Pairs:
    packet = read_publish(facts.output, facts.protocol_level)
    return read_properties(packet.properties).user_properties if packet.properties else ()


def _unsaid(facts: Facts, publication: Meaning, given: Pairs) -> Iterator[str]:
    for name, _ in publication.fields:
        if name not in _SAID:
            yield TO_NAME[name] if publication.version == 1 else name
    for name, _ in publication.unmapped:
        if name not in _STREAMS and (publication.version == 2 or name.startswith(_COMMAND_PREFIX)):
            yield name
    for folder in publication.folders:
        if folder.name != USR or usr_elements(folder) is None:
            yield folder.name
    level = facts.protocol_level if facts.protocol_level >= FIRST_LEVEL_WITH_PROPERTIES else 0
    yield from unsaid_names(delivered_elements(publication), given, level)
