"""The report of a conversion: it names everything that the conversion leaves out, and nothing else.

The report is the record's `dropped_fields`: names as the old header has them, each with a reason. A PUBLISH to a client
expresses Command, Topic and PubOpt of the command in its own way. The report names other fields of the command, folders
beside psc and usr, and properties that are no user property. In the other direction the JSON in rfhbUserProps has all
user properties of the packet. If each was to have a property of its own, the report names those that have none.

Sources: "Message formats" (aq19780_), fields that are not copied; JMS 1.1 sections 3.5.1 and 3.8.1.1; MQTT 5.0 section
3.3.2.3.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from spark_audit.reperform.facts import Facts
from spark_audit.reperform.jms import NO_TEXT
from spark_audit.reperform.meaning import Meaning
from spark_audit.reperform.mqtt import FIRST_LEVEL_WITH_PROPERTIES, read_publish
from spark_audit.reperform.packet_to_header import publish_of
from spark_audit.reperform.properties import Pairs, Properties, read_properties
from spark_audit.reperform.table import OPTION_ELEMENTS, TO_NAME
from spark_audit.reperform.target import USR, delivered_elements, read_carrier, usr_elements
from spark_audit.reperform.user_properties import OWN_PREFIX, unsaid_names

_PREFIX: Final = "MQPS"
#: A broker removes the publisher's own, and adds its subscriber's.
_OF_THE_BROKER: Final = frozenset({"StreamName", "SubPoint", "SubUserData"})


def unreported(source: Meaning, actual: Meaning, reported: frozenset[str]) -> list[str]:
    """Names that were left out without a report, and names in the report that were not left out."""
    return [*_fields(source, actual, reported), *_folders(source, actual, reported), *_false_reports(actual, reported)]


def _fields(source: Meaning, actual: Meaning, reported: frozenset[str]) -> Iterable[str]:
    """A mapped name counts as kept if any of its values is kept.

    Patterns are translated, and sums of options are split. An option whose tokens stand under another option's name
    counts as kept too.
    """
    kept = {name for name, _ in actual.fields} | {_plain(name) for name, _ in actual.unmapped}
    tokens = frozenset[str]().union(*(actual.options(name) for name in OPTION_ELEMENTS))
    kept |= {name for name in OPTION_ELEMENTS if source.options(name) <= tokens}
    own_names = dict.fromkeys(_own_name(source, name) for name, _ in source.fields)
    names = [*own_names, *dict.fromkeys(name for name, _ in source.unmapped)]
    for name in names:
        if _element(name) not in kept and name not in reported:
            yield f"{name} was left out without a word"


def _folders(source: Meaning, actual: Meaning, reported: frozenset[str]) -> Iterable[str]:
    kept = {folder.name for folder in actual.folders}
    for folder in source.folders:
        if folder.name not in kept and folder.name not in reported:
            yield f"folder {folder.name} was left out without a word"


def _false_reports(actual: Meaning, reported: frozenset[str]) -> Iterable[str]:
    """Names that the report reports falsely.

    Names of options may stand on both sides, if some of their tokens are left out.
    """
    kept = {_plain(name) for name, _ in actual.unmapped} - _OF_THE_BROKER
    kept |= {name for name, _ in actual.fields if name not in OPTION_ELEMENTS}
    kept |= {folder.name for folder in actual.folders}
    for name in sorted(reported):
        if _element(name) in kept or name in kept:
            yield f"{name} was copied, though the report says that it was left out"


def _own_name(source: Meaning, element: str) -> str:
    return TO_NAME[element] if source.version == 1 else element


def _element(name: str) -> str:
    """The psc element of a mapped name; for another name the name without MQPS."""
    return next((element for element, mapped in TO_NAME.items() if mapped == name), _plain(name))


def _plain(name: str) -> str:
    return name.removeprefix(_PREFIX)


def publish_report_faults(facts: Facts, actual: Meaning) -> Iterator[str]:
    """Names that were left out without a report, and names in the report that the header has."""
    _, _, _, section = publish_of(facts)
    properties = read_properties(section) if section else Properties()
    written = {name for name, _ in read_carrier(actual.folders, actual.unmapped) if not name.startswith(OWN_PREFIX)}
    reported = {name for name, reason in facts.dropped_fields if (name, reason) != NO_TEXT}
    names = dict.fromkeys(name for name, _ in properties.user_properties)
    for name in names if written or reported else ():
        if name not in written and name not in reported:
            yield f"{name} was left out without a word"
    for name in sorted(reported):
        if name in written or name not in names:
            yield f"{name} was not left out, though the report says so"


_SAID: Final = frozenset({"Command", "Topic", "PubOpt"})
_STREAMS: Final = frozenset({"StreamName", "MQPSStreamName"})
_COMMAND_PREFIX: Final = "MQPS"


def delivery_report_faults(facts: Facts, publication: Meaning) -> Iterator[str]:
    """Names that were left out without a report, and names in the report that the packet has."""
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
