"""The folders with which the publication of a packet is a message of JMS, as the audit expects them.

    mcd    Msd   jms_text if the packet says that its payload is UTF-8, and it is; else jms_bytes
    jms    Dst   topic:// and the topic; missing if that has CR, which IBM's client cannot read
           Tms   the time of the record, in milliseconds
           Pri   0
           Dlv   2 from QoS 1 on, else 1
    mqps   Top   the topic

A header has all three or none: the record does not say whether its gateway writes them. No record has a payload. So the
audit believes a report that a payload is no UTF-8, unless the payload is empty.
Source: IBM MQ, "The MQRFH2 header and JMS"; "Publish/subscribe message properties"; MQTT 5.0 section 3.3.2.3.2.
"""

from typing import Final

from spark_audit.reperform.comparison import UnreadableBytes
from spark_audit.reperform.facts import Facts
from spark_audit.reperform.folder import Folder, read_elements
from spark_audit.reperform.meaning import Meaning
from spark_audit.reperform.properties import read_properties

FOLDERS: Final = ("mcd", "jms", "mqps")
#: The report of a payload that is no text although its publisher says so.
NO_TEXT: Final = ("jms_text", "the payload is no UTF-8: it is bytes")
_TIME: Final = "Tms"
_US_OF_A_MS: Final = 1_000
_SAYS_TEXT: Final = 1
_UTF_8: Final = 1208

Elements = tuple[tuple[str, str], ...]
JmsFolders = tuple[tuple[str, Elements], ...]


def expected_folders(facts: Facts, actual: Meaning, topic: str, qos: int, *, is_text: bool) -> JmsFolders:
    """The folders of a publication on `topic` with their elements; none where the header has none of them."""
    written = {folder.name for folder in actual.folders}
    if facts.command != "Publish" or actual.version == 1 or written.isdisjoint(FOLDERS):
        return ()
    jms = (
        *((("Dst", f"topic://{topic}"),) if "\r" not in topic else ()),
        (_TIME, _time(facts, actual)),
        ("Pri", "0"),
        ("Dlv", "2" if qos else "1"),
    )
    return ("mcd", (("Msd", "jms_text" if is_text else "jms_bytes"),)), ("jms", jms), ("mqps", (("Top", topic),))


def is_map(publication: Meaning) -> bool:
    """Whether a publication's payload is that of a MapMessage, which may be sent as JSON."""
    kinds = [_elements(folder) for folder in publication.folders if folder.name == "mcd"]
    is_of_map = any(("Msd", "jms_map") in elements for elements in kinds)
    return is_of_map and publication.body.coded_char_set_id == _UTF_8


def is_text(facts: Facts, section: bytes) -> bool:
    """Whether a payload is text, by the properties of its packet and the report."""
    return says_text(section) and NO_TEXT not in facts.dropped_fields


def says_text(section: bytes) -> bool:
    """Whether the properties of a packet say that its payload is UTF-8."""
    return bool(section) and read_properties(section).payload_format == _SAYS_TEXT


def folder_differences(expected: JmsFolders, facts: Facts, actual: Meaning, section: bytes) -> list[str]:
    """Sentences about folders that are missing, twice there or say something else, and about a false report."""
    words: list[str] = []
    for name, elements in expected:
        written = [_elements(folder) for folder in actual.folders if folder.name == name]
        if written != [elements]:
            words.append(f"folder {name} has {written}, not {[elements]}")
    if NO_TEXT in facts.dropped_fields and not (expected and says_text(section) and facts.payload_bytes != 0):
        words.append("the report says of a payload that it is no text, and nobody says that it is, or it is empty")
    return words


def _time(facts: Facts, actual: Meaning) -> str:
    """The time of the record. An archive has no records: there any number is right."""
    if facts.at_us >= 0:
        return str(facts.at_us // _US_OF_A_MS)
    told = "".join(dict(_elements(folder)).get(_TIME, "") for folder in actual.folders if folder.name == "jms")
    return told if told.isdecimal() and told.isascii() else "0"


def _elements(folder: Folder) -> Elements:
    """The elements of a folder; of a malformed one its text, which is no name."""
    try:
        return read_elements(folder)
    except UnreadableBytes:
        return ((folder.text, ""),)
