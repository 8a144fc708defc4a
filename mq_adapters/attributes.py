"""The attributes of queue manager objects: which object has which, their ranges and defaults, and their stored form.

Keywords and values are those of MQSC (IBM MQ, "DEFINE queues", "DEFINE NAMELIST", "DEFINE TOPIC", "DEFINE CHANNEL",
"ALTER QMGR").
An attribute that is not here is not supported, and MQSC refuses it by its name. Where a default differs from that of
IBM MQ's SYSTEM.DEFAULT objects it is the safer one: DEFPSIST(YES), and room for every message that MQTT can bring.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Final

import ormsgpack

from mq_adapters.peer_name import PeerName
from mq_adapters.system_queues import DEAD_LETTER_QUEUE

#: 48 characters: IBM MQ, "Rules for naming IBM MQ objects".
MAXIMUM_NAME_CHARACTERS: Final = 48
_NAME_CHARACTERS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789./_%")
DEFAULT_MAXIMUM_DEPTH: Final = 999_999_999
#: The longest MQTT packet (268,435,455 bytes) with its header; IBM MQ's own ceiling is 100 MiB.
DEFAULT_MAXIMUM_MESSAGE_BYTES: Final = 257 * 1024 * 1024
#: IBM MQ's default of MAXUMSGS.
DEFAULT_MAXIMUM_UNIT_MESSAGES: Final = 10_000
_DESCRIPTION_CHARACTERS: Final = 64
_TOPIC_CHARACTERS: Final = 10_240
_MOST_NAMES: Final = 256
#: A user as MQMD.UserIdentifier has it.
_USER_CHARACTERS: Final = 12
#: IBM MQ, "SSLPEER": 1,024 bytes.
_PEER_NAME_CHARACTERS: Final = 1_024
#: IBM MQ, "Rules for naming IBM MQ objects".
_CHANNEL_NAME_CHARACTERS: Final = 20
_HEXADECIMAL_DIGITS: Final = frozenset("0123456789ABCDEF")

Value = int | str | tuple[str, ...]


class ObjectType(IntEnum):
    """Kinds of objects. The numbers are stored: never reuse one."""

    QLOCAL = 1
    QALIAS = 2
    QREMOTE = 3
    QMODEL = 4
    TOPIC = 5
    NAMELIST = 6
    QMGR = 7
    CHANNEL = 8


QUEUE_TYPES: Final = (ObjectType.QLOCAL, ObjectType.QALIAS, ObjectType.QREMOTE, ObjectType.QMODEL)


class AttributeValueError(Exception):
    """A value that an attribute cannot have; the text says which it may."""


def is_object_name(name: str) -> bool:
    """Whether a name keeps to MQ's rules for object names."""
    return 0 < len(name) <= MAXIMUM_NAME_CHARACTERS and _NAME_CHARACTERS.issuperset(name)


def longest_name(object_type: ObjectType) -> int:
    """The most characters that the name of such an object may have."""
    return _CHANNEL_NAME_CHARACTERS if object_type == ObjectType.CHANNEL else MAXIMUM_NAME_CHARACTERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """An attribute that is a whole number."""

    minimum: int
    maximum: int
    default: int

    def read(self, text: str) -> Value:
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdecimal()) or not self.minimum <= int(text) <= self.maximum:
            raise AttributeValueError(f"a number from {self.minimum} to {self.maximum}")
        return int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """An attribute that is one of a few words; with `is_flag` MQSC writes the word alone, as in NOHARDENBO."""

    words: tuple[str, ...]
    is_flag: bool = False

    @property
    def default(self) -> str:
        return self.words[0]

    def read(self, text: str) -> Value:
        if text.upper() not in self.words:
            raise AttributeValueError(" or ".join(self.words))
        return text.upper()


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """An attribute that is free text."""

    characters: int
    default: str = ""

    def read(self, text: str) -> Value:
        if len(text) > self.characters:
            raise AttributeValueError(f"text of at most {self.characters} characters")
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class WordOrBlank:
    """An attribute that is one of a few words, or blank."""

    words: tuple[str, ...]
    default: str = ""

    def read(self, text: str) -> Value:
        word = text.strip().upper()
        if word and word not in self.words:
            raise AttributeValueError(f"blank, {' or '.join(self.words)}")
        return word


@dataclass(frozen=True, slots=True, kw_only=True)
class DistinguishedName:
    """An attribute that says which distinguished names are accepted, or blank (peer_name.py)."""

    characters: int
    default: str = ""

    def read(self, text: str) -> Value:
        try:
            PeerName.parse(text.strip())
        except ValueError as error:
            raise AttributeValueError(f"a distinguished name: {error}") from None
        if len(text) > self.characters:
            raise AttributeValueError(f"text of at most {self.characters} characters")
        return text.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """An attribute that is the name of an object, or blank."""

    default: str = ""

    def read(self, text: str) -> Value:
        name = text.strip()
        if name and not is_object_name(name):
            raise AttributeValueError(f"a name of at most {MAXIMUM_NAME_CHARACTERS} letters, digits and . / _ %")
        return name


@dataclass(frozen=True, slots=True, kw_only=True)
class NameList:
    """An attribute that is a list of names."""

    default: tuple[str, ...] = ()

    def read(self, text: str) -> Value:
        names = tuple(name for part in text.split(",") if (name := part.strip()))
        if len(names) > _MOST_NAMES or not all(map(is_object_name, names)):
            raise AttributeValueError(f"up to {_MOST_NAMES} object names with commas between them")
        return names


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberOrNone:
    """An attribute that is a whole number, or the word that stands for none."""

    minimum: int
    maximum: int
    word: str
    default: str

    def read(self, text: str) -> Value:
        if text.upper() == self.word:
            return self.word
        if not (text.isascii() and text.isdecimal()) or not self.minimum <= int(text) <= self.maximum:
            raise AttributeValueError(f"{self.word} or a number from {self.minimum} to {self.maximum}")
        return int(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hexadecimal:
    """An attribute that is a number of bytes, written as twice as many hexadecimal digits."""

    length: int

    @property
    def default(self) -> str:
        return "00" * self.length

    def read(self, text: str) -> Value:
        digits = text.upper()
        if len(digits) != 2 * self.length or not _HEXADECIMAL_DIGITS.issuperset(digits):
            raise AttributeValueError(f"{2 * self.length} hexadecimal digits")
        return digits


Attribute = Number | Choice | WordOrBlank | DistinguishedName | Text | Name | NameList | NumberOrNone | Hexadecimal

_YES_NO: Final = Choice(words=("YES", "NO"))
_ENABLED: Final = Choice(words=("ENABLED", "DISABLED"))
_AS_PARENT: Final = Choice(words=("ASPARENT", "ENABLED", "DISABLED"))
_COMMON: Final[dict[str, Attribute]] = {"DESCR": Text(characters=_DESCRIPTION_CHARACTERS)}
_PUTTING: Final[dict[str, Attribute]] = {
    **_COMMON,
    "PUT": _ENABLED,
    "DEFPRTY": Number(minimum=0, maximum=9, default=0),
    "DEFPSIST": _YES_NO,
}
#: Which programs get the properties of messages, and how.
_PROPERTY_CONTROL: Final = Choice(words=("COMPAT", "NONE", "ALL", "FORCE", "V6COMPAT"))
_LOCAL: Final[dict[str, Attribute]] = {
    **_PUTTING,
    "GET": _ENABLED,
    "PROPCTL": _PROPERTY_CONTROL,
    "MAXDEPTH": Number(minimum=0, maximum=DEFAULT_MAXIMUM_DEPTH, default=DEFAULT_MAXIMUM_DEPTH),
    "MAXMSGL": Number(minimum=0, maximum=DEFAULT_MAXIMUM_MESSAGE_BYTES, default=DEFAULT_MAXIMUM_MESSAGE_BYTES),
    "MSGDLVSQ": Choice(words=("PRIORITY", "FIFO")),
    "BOTHRESH": Number(minimum=0, maximum=DEFAULT_MAXIMUM_DEPTH, default=0),
    "BOQNAME": Name(),
    "HARDENBO": Choice(words=("HARDENBO", "NOHARDENBO"), is_flag=True),
    "USAGE": Choice(words=("NORMAL", "XMITQ")),
}

#: The attributes of each kind of object. DISPLAY shows some more (embedded/mqsc/display.py).
ATTRIBUTES: Final[Mapping[ObjectType, Mapping[str, Attribute]]] = MappingProxyType(
    {
        ObjectType.QLOCAL: _LOCAL,
        ObjectType.QALIAS: {
            **_PUTTING,
            "GET": _ENABLED,
            "PROPCTL": _PROPERTY_CONTROL,
            "TARGET": Name(),
            "TARGTYPE": Choice(words=("QUEUE",)),
        },
        ObjectType.QREMOTE: {**_PUTTING, "RNAME": Name(), "RQMNAME": Name(), "XMITQ": Name()},
        ObjectType.QMODEL: {**_LOCAL, "DEFTYPE": Choice(words=("TEMPDYN", "PERMDYN"))},
        ObjectType.TOPIC: {
            **_COMMON,
            "TOPICSTR": Text(characters=_TOPIC_CHARACTERS),
            "PUB": _AS_PARENT,
            "SUB": _AS_PARENT,
        },
        ObjectType.NAMELIST: {**_COMMON, "NAMES": NameList()},
        ObjectType.CHANNEL: {
            **_COMMON,
            "CHLTYPE": Choice(words=("SVRCONN",)),
            "DISCINT": Number(minimum=0, maximum=999_999, default=0),
            "HBINT": Number(minimum=0, maximum=999_999, default=300),
            "MAXINST": Number(minimum=0, maximum=999_999_999, default=999_999_999),
            "MAXINSTC": Number(minimum=0, maximum=999_999_999, default=999_999_999),
            "MAXMSGL": Number(minimum=0, maximum=104_857_600, default=4_194_304),
            "MCAUSER": Text(characters=_USER_CHARACTERS),
            "SHARECNV": Number(minimum=0, maximum=999_999_999, default=10),
            "SSLCAUTH": Choice(words=("REQUIRED", "OPTIONAL")),
            "SSLPEER": DistinguishedName(characters=_PEER_NAME_CHARACTERS),
            "SSLCIPH": WordOrBlank(words=("ANY_TLS12_OR_HIGHER", "ANY_TLS13_OR_HIGHER")),
        },
        ObjectType.QMGR: {
            **_COMMON,
            "DEADQ": Name(default=DEAD_LETTER_QUEUE),
            "MAXMSGL": Number(minimum=0, maximum=DEFAULT_MAXIMUM_MESSAGE_BYTES, default=DEFAULT_MAXIMUM_MESSAGE_BYTES),
            "MAXUMSGS": Number(minimum=1, maximum=999_999_999, default=DEFAULT_MAXIMUM_UNIT_MESSAGES),
        },
    }
)
#: Other names of the same attribute.
SYNONYMS: Final = {"TARGQ": "TARGET", "NOHARDENBO": "HARDENBO", "DEFPRI": "DEFPRTY"}

_STORED_VERSION: Final = b"\x01"
_NOTHING: Final[Mapping[str, Value]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One object as it was defined. An attribute that the definition leaves out has its default."""

    object_type: ObjectType
    name: str
    said: Mapping[str, Value] = field(default_factory=lambda: _NOTHING)

    def __getitem__(self, keyword: str) -> Value:
        return self.said.get(keyword, ATTRIBUTES[self.object_type][keyword].default)

    def text(self, keyword: str) -> str:
        """An attribute that is a word, a text or a name."""
        value = self[keyword]
        assert isinstance(value, str), keyword
        return value

    def number(self, keyword: str) -> int:
        """An attribute that is a number."""
        value = self[keyword]
        assert isinstance(value, int), keyword
        return value

    def names(self, keyword: str) -> tuple[str, ...]:
        """An attribute that is a list of names."""
        value = self[keyword]
        assert isinstance(value, tuple), keyword
        return value

    def altered(self, changes: Mapping[str, Value]) -> "Definition":
        """The same object with some attributes changed."""
        return Definition(object_type=self.object_type, name=self.name, said={**self.said, **changes})

    def named(self, name: str, *, object_type: ObjectType | None = None) -> "Definition":
        """An object of that name with the attributes of this one, as far as its type has them."""
        wanted = self.object_type if object_type is None else object_type
        said = {keyword: value for keyword, value in self.said.items() if keyword in ATTRIBUTES[wanted]}
        return Definition(object_type=wanted, name=name, said=said)

    def pack(self) -> bytes:
        """The stored form of the attributes: a version byte, then what was said as a msgpack map."""
        return _STORED_VERSION + ormsgpack.packb(dict(self.said))


def longest_message_bytes(*objects: Definition) -> int:
    """The longest message that may pass all of these objects: the smallest MAXMSGL of those that have one."""
    return min(each.number("MAXMSGL") for each in objects if "MAXMSGL" in ATTRIBUTES[each.object_type])


def unpack_definition(object_type: int, name: str, packed: bytes) -> Definition:
    """The object of its stored form. Raises ValueError for another version, damage, or an unknown attribute."""
    if packed[:1] != _STORED_VERSION:
        raise ValueError(f"object {name} has stored version {packed[:1].hex()!r}, this program reads 01")
    kind = ObjectType(object_type)
    said = {}
    for keyword, stored in ormsgpack.unpackb(packed[1:]).items():
        if keyword not in ATTRIBUTES[kind]:
            raise ValueError(f"object {name} has an attribute {keyword!r:.40} that this program does not know")
        value = tuple(stored) if isinstance(stored, list) else stored
        if not isinstance(value, type(ATTRIBUTES[kind][keyword].default)):
            raise ValueError(f"object {name} has {keyword} {value!r:.40}")
        said[keyword] = value
    return Definition(object_type=kind, name=name, said=said)


def queue_manager_identifier(incarnation: bytes) -> str:
    """The identifier that no other queue manager has (MQCA_Q_MGR_IDENTIFIER), made of its store's 12 bytes."""
    return f"RFHBRIDGE_{incarnation.hex()}"
