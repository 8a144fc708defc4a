"""A message converted to the other format and back, held against the law of `tests.mappings.round_trip`."""

from dataclasses import dataclass

from mappings.commands.parameters import verb_of_elements, verb_of_pairs
from mappings.commands.response import read_response
from mappings.conversion.convert import Conversion, Folders, Mode, convert
from mappings.errors import MappingError
from mappings.headers.chain import HeaderChain, read_header_chain
from mappings.headers.mqrfh import Mqrfh
from mappings.headers.mqrfh2 import Mqrfh2
from mappings.headers.name_value import NameValues
from mappings.headers.opaque import OpaqueHeader
from mappings.reasons import Reason
from mappings.table import Dialect
from tests.mappings.round_trip import Meaning, meaning_of, surviving_meaning, surviving_response

#: Commands whose topics are patterns: one may come back wider, or as two.
PATTERN_VERBS = ("RegSub", "DeregSub", "ReqUpdate", "DeletePub", "DeregPub")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trips:
    """How messages are converted: what their MQMD says, the mode, and what becomes of folders."""

    coded_char_set_id: int
    encoding: int
    mode: Mode
    folders: Folders

    def chain(self, message: bytes, format: bytes) -> HeaderChain:
        return read_header_chain(
            message, format=format, coded_char_set_id=self.coded_char_set_id, encoding=self.encoding
        )

    def convert(self, message: bytes, format: bytes, to: Dialect) -> tuple[Conversion, bytes]:
        """The conversion, and the whole new message."""
        conversion = convert(
            message,
            format=format,
            coded_char_set_id=self.coded_char_set_id,
            encoding=self.encoding,
            to=to,
            mode=self.mode,
            folders=self.folders,
        )
        return conversion, conversion.header + message[conversion.body_offset :]

    def there_and_back(self, message: bytes, format: bytes, dialect: Dialect) -> tuple[Conversion, bytes]:
        there, message = self.convert(message, format, _other(dialect))
        return self.convert(message, there.format, dialect)


def assert_law_holds(
    data: bytes, *, format: bytes, coded_char_set_id: int, encoding: int, mode: Mode, folders: Folders = Folders.DROPPED
) -> bool:
    """Convert there and back and compare by the law; False when the message cannot be converted at all."""
    trips = Trips(coded_char_set_id=coded_char_set_id, encoding=encoding, mode=mode, folders=folders)
    try:
        chain = trips.chain(data, format)
        dialect = dialect_of(chain)
        there, message = trips.convert(data, format, _other(dialect))
    except MappingError:
        return False
    if message == data:  # it carries a command in either format, and is in the wanted one already
        return False
    assert dialect_of(trips.chain(message, there.format)) is _other(dialect)
    try:
        back, returned = trips.convert(message, there.format, dialect)
    except MappingError as problem:
        if stays_there(problem, chain, dialect):
            return True
        raise AssertionError("what got there must come back") from problem
    after = trips.chain(returned, back.format)
    assert returned[after.body_offset :] == data[chain.body_offset :]
    assert body_description(after) == body_description(chain)
    assert others(after, returned) == others(chain, data)
    if is_response(chain):
        assert read_response(after) == surviving_response(read_response(chain))
        return True
    verb, fields = command_fields(chain, dialect)
    assert meaning(after, dialect, mode) == surviving_meaning(verb, fields, dialect, mode)
    _assert_settles(trips, verb, after, back, returned)
    return True


def _assert_settles(trips: Trips, verb: str, after: HeaderChain, back: Conversion, returned: bytes) -> None:
    """What came back stays as it is; a pattern may come back as two once more, and stays after that."""
    dialect = dialect_of(after)
    try:
        second, returned_again = trips.there_and_back(returned, back.format, dialect)
    except MappingError as problem:
        allowed = verb == "ReqUpdate" and stays_there(problem, after, dialect)
        assert allowed, "what came back must go there again, but for a pattern that would now be two"
        return
    assert verb in PATTERN_VERBS or second.header == back.header
    third, _ = trips.there_and_back(returned_again, second.format, dialect)
    assert third.header == second.header


def _other(dialect: Dialect) -> Dialect:
    return Dialect.MQRFH if dialect is Dialect.MQRFH2 else Dialect.MQRFH2


def stays_there(problem: MappingError, chain: HeaderChain, dialect: Dialect) -> bool:
    """Whether the law lets a message stay in the other format: for a pattern that only that can say as it is."""
    if problem.reason_code != Reason.MQRCCF_TOPIC_ERROR or is_response(chain):
        return False
    verb, fields = command_fields(chain, dialect)
    if verb == "ReqUpdate" and dialect is Dialect.MQRFH:
        return True
    return any(name in ("Topic", "MQPSTopic") and ("+" in value or "#" in value) for name, value in fields)


def dialect_of(chain: HeaderChain) -> Dialect:
    """The format of the header that carries the command."""
    return Dialect.MQRFH if any(isinstance(header, Mqrfh) for header in chain.headers) else Dialect.MQRFH2


def body_description(chain: HeaderChain) -> tuple[bytes, int, int]:
    return chain.body_format, chain.body_coded_char_set_id, chain.body_encoding


def others(chain: HeaderChain, data: bytes) -> list[bytes]:
    """The headers that are walked over, without their description of what follows."""
    found = []
    for header, place in zip(chain.headers, chain.places, strict=True):
        if isinstance(header, OpaqueHeader):
            raw = data[place.offset : place.offset + header.struc_length]
            found.append(raw[:12] + raw[28:])
    return found


def is_response(chain: HeaderChain) -> bool:
    for header in chain.headers:
        if isinstance(header, Mqrfh2) and header.folder("pscr") is not None:
            return True
        if isinstance(header, Mqrfh):
            return header.pairs[:1] != () and header.pairs[0][0] == "MQPSCompCode"
    return False


def command_fields(chain: HeaderChain, dialect: Dialect) -> tuple[str, NameValues]:
    """The verb and the fields of the command in a chain."""
    if dialect is Dialect.MQRFH:
        (header,) = (header for header in chain.headers if isinstance(header, Mqrfh))
        return verb_of_pairs(header, header.pairs), header.pairs
    folders = [folder for header in chain.headers if isinstance(header, Mqrfh2) for folder in header.folders]
    (psc,) = (folder for folder in folders if folder.name == "psc")
    return verb_of_elements(psc.elements), tuple((element.name, element.text) for element in psc.elements)


def meaning(chain: HeaderChain, dialect: Dialect, mode: Mode) -> Meaning:
    verb, fields = command_fields(chain, dialect)
    return meaning_of(verb, fields, dialect, mode)
