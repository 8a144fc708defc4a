"""What a publication carries of MQTT, because a broker would lose it: QoS, client, exchange, user, and properties.

A delivered publication has a new MsgId, the subscriber's CorrelId and the subscriber's user. So this travels in the
header: in MQRFH2 as properties in folder `usr`, which queue managers keep, in MQRFH as pairs of the publisher's own:

    rfhbQos     i4       QoS of the PUBLISH, 0 to 2
    rfhbClient  string   MQTT client identifier; left out where a folder cannot hold it
    rfhbSeq     i8       the session's own number of the exchange, from 1
    rfhbRetain  i4       1 where an empty PUBLISH had RETAIN: it deletes, so no RetainPub says it; else left out
    rfhbUser    string   MQTT user, where UserIdentifier does not say it; left out where a folder cannot hold it

and the properties of MQTT 5.0 (carried_properties.py). The embedded broker keeps a publication's private origin, so
there the properties alone are carried, where there are any.

What comes back is from outside, and anyone who may publish there can write it: it is checked, and used for the QoS and
the properties of the delivery and as information for the audit. Beside it may stand properties of an MQ or JMS
application (application_properties.py). What has no place in a PUBLISH is named, so that the audit hears of it.
Source: IBM MQ, "NameValueData (MQCHARn)", folder usr.
"""

import re
from dataclasses import dataclass
from typing import Final

from gateway.bridge.application_properties import with_application_properties
from gateway.bridge.carried_properties import CARRIED_NAMES, TYPES, read_properties
from gateway.mqtt.properties import PublishProperties
from mappings.errors import MappingError
from mappings.header_chain import HeaderChain
from mappings.mqrfh import Mqrfh
from mappings.mqrfh2 import Element, Folder, Mqrfh2, elements_text
from mappings.name_value import NameValues

QOS: Final = "rfhbQos"
CLIENT: Final = "rfhbClient"
SEQUENCE: Final = "rfhbSeq"
DELETES: Final = "rfhbRetain"
USER: Final = "rfhbUser"
#: The folder that it travels in.
FOLDER: Final = "usr"
#: Types of properties that are no strings (IBM MQ, "MQRFH2 folders", attribute dt).
_TYPES: Final = {QOS: "i4", SEQUENCE: "i8", DELETES: "i4", **TYPES}
#: What a folder of an MQRFH2 cannot hold (XML 1.0, production Char).
_NOT_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
_QOS: Final = re.compile(r"[0-2]")
_SEQUENCE: Final = re.compile(r"[1-9][0-9]{0,18}")
_MAXIMUM_SEQUENCE: Final = 2**63 - 1
#: Folders that are longer (bytes), or that have more tags, are not read for their carrier: properties of 262,144 bytes
#: may become ten times as long, and ours have at most 1,010 elements, of two tags.
_LONGEST_READ_FOLDER: Final = 3 * 1024 * 1024
_MOST_READ_TAGS: Final = 2_500
#: The folder and the names of a command; the names of it that a PUBLISH says in its own way.
_COMMAND_FOLDER: Final = "psc"
_COMMAND_PREFIX: Final = "MQPS"
_SAID: Final = frozenset({"Command", "Topic", "PubOpt", "PubOpts", "StreamName"})
#: What the gateway takes from a header for itself.
_TAKEN: Final = frozenset({QOS, CLIENT, SEQUENCE, DELETES, USER})
_NO_PLACE: Final = "MQTT has no place for it"
_BEFORE_LEVEL_5: Final = "MQTT has no properties before version 5"


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """What a publication says of the PUBLISH that it was; `qos` is None where it says nothing.

    `client` and `sequence` are "" and 0 where they are missing or no such thing. From outside: for information only.
    `deletes`: it had RETAIN and no payload. `left_out` are names, with the reason, of what a PUBLISH of level 5 does
    not say; `left_out_before_5` is the same of earlier levels, which have no properties at all.
    """

    qos: int | None = None
    client: str = ""
    sequence: int = 0
    deletes: bool = False
    properties: PublishProperties | None = None
    left_out: NameValues = ()
    left_out_before_5: NameValues = ()

    @property
    def has_unfit_properties(self) -> bool:
        """Whether a property is left out for what it is: a command's own fields and other folders never are any."""
        return any(reason is not _NO_PLACE for _, reason in self.left_out)

    @property
    def is_of_one_message(self) -> bool:
        """Whether other messages will hardly have the same header."""
        properties = self.properties
        if self.sequence or properties is None:
            return self.sequence > 0
        return properties.correlation_data is not None or bool(properties.user_properties)


def carried_pairs(*, qos: int, client: str, sequence: int, deletes: bool, user: str | None) -> NameValues:
    """Names and values of a carrier for a target, in their order; properties stand behind them."""
    texts = [(QOS, str(qos))]
    if not _NOT_XML.search(client):
        texts.append((CLIENT, client))
    texts.append((SEQUENCE, str(sequence)))
    if deletes:
        texts.append((DELETES, "1"))
    if user and not _NOT_XML.search(user):
        texts.append((USER, user))
    return tuple(texts)


def carrier_folder(pairs: NameValues) -> str:
    """The folder `usr` with these properties."""
    inside = "".join(_property(name, value) for name, value in pairs)
    return f"<{FOLDER}>{inside}</{FOLDER}>"


def read_carried(chain: HeaderChain) -> Carried:
    """What a publication's headers carry, whichever of them it stands in."""
    elements, placeless = _contents(chain)
    texts: dict[str, str] = {}
    for element in elements:
        texts.setdefault(element.name, element.text)
    properties, unreadable = read_properties(texts)
    others = [each for each in elements if each.name not in CARRIED_NAMES and each.name not in _TAKEN]
    unfit: NameValues = ()
    if others:
        own = () if properties is None else properties.user_properties
        user_properties, unfit = with_application_properties(own, others)
        properties = (properties or PublishProperties())._replace(user_properties=user_properties)
    sequence = int(texts[SEQUENCE]) if _SEQUENCE.fullmatch(texts.get(SEQUENCE, "")) else 0
    names = dict.fromkeys(each.name for each in elements if each.name not in _TAKEN)
    return Carried(
        qos=int(texts[QOS]) if _QOS.fullmatch(texts.get(QOS, "")) else None,
        client=texts.get(CLIENT, "").partition("\0")[0],
        sequence=sequence if sequence <= _MAXIMUM_SEQUENCE else 0,
        deletes=texts.get(DELETES) == "1",
        properties=properties,
        left_out=placeless + unreadable + unfit,
        left_out_before_5=placeless + tuple((name, _BEFORE_LEVEL_5) for name in names),
    )


def _property(name: str, value: str) -> str:
    """A property with its type; text is escaped."""
    text = elements_text(((name, value),))
    kind = _TYPES.get(name)
    return text if kind is None else text.replace(f"<{name}>", f"<{name} dt='{kind}'>", 1)


def _contents(chain: HeaderChain) -> tuple[list[Element], NameValues]:
    """The properties in the headers of a chain, whoever wrote them; and what stands there beside them and a command."""
    elements: list[Element] = []
    placeless: list[tuple[str, str]] = []
    for header in chain.headers:
        if isinstance(header, Mqrfh):
            for name, value in header.pairs:
                if not name.startswith(_COMMAND_PREFIX):
                    elements.append(Element(name=name, text=value))
                elif name.removeprefix(_COMMAND_PREFIX) not in _SAID:
                    placeless.append((name, _NO_PLACE))
        for folder in header.folders if isinstance(header, Mqrfh2) else ():
            reason = _read_folder(folder, elements, placeless)
            if reason:
                placeless.append((folder.name, reason))
    return elements, tuple(placeless)


def _read_folder(folder: Folder, elements: list[Element], placeless: list[tuple[str, str]]) -> str:
    """Adds what a folder holds to either list; returns why nothing of it can be read, empty where it can."""
    if folder.name not in (FOLDER, _COMMAND_FOLDER):
        return _NO_PLACE
    if len(folder.raw) > _LONGEST_READ_FOLDER or folder.raw.count(b"<") > _MOST_READ_TAGS:
        return "it is too long to be read"
    try:
        found = folder.elements
    except MappingError:
        return "it cannot be read"  # what nobody can read carries nothing
    if folder.name == FOLDER:
        elements += found
    else:
        placeless += [(each.name, _NO_PLACE) for each in found if each.name not in _SAID]
    return ""
