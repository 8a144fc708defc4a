"""The header of a publication as a subscriber gets it.

The broker leaves out RegOpts, QName and QMgrName of the publisher (with DirectReq the two names stay, or come from the
MQMD), NoReg, a folder pscr, and the publisher's own SubPoint or SubUserData. It leaves out the stream name unless the
subscription has InclStreamName. IsRetainedPub stands only in a stored copy for a subscription with InformIfRet. The
broker adds the subscription's point and user data. Everything else stays as published, even other headers and folders.
A header without changes is delivered as the same bytes. For a subscriber with the other format the field-mapping table
converts the header (mappings.conversion, strict). The folders of a message of JMS then follow the MQRFH in an MQRFH2,
as JMS reads and writes them itself (BROKERVER V1).
Sources: WebSphere MQ V6 Publish/Subscribe User's Guide, "Publish"; IBM MQ, "MQRFH2 publish/subscribe".
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from mappings.commands.command import Publish
from mappings.commands.options import PublicationOption, RegistrationOption, option_number
from mappings.conversion.convert import convert
from mappings.conversion.publication_template import PublicationTemplate
from mappings.conversion.report import Folders
from mappings.headers.chain import DeadLetterHeader, Header, HeaderChain, HeaderPlace, read_header_chain
from mappings.headers.charset import INHERIT, encode_text, is_big_endian
from mappings.headers.mqrfh import Mqrfh, write_mqrfh
from mappings.headers.mqrfh2 import Folder, Mqrfh2, psc_folder, write_mqrfh2
from mappings.headers.name_value import NameValues
from mappings.table import Dialect
from mq_adapters.broker.received import ReadCommand, fields_in
from mq_adapters.command_header import CommandHeader, WrittenCommand

_CODED_CHAR_SET_ID_OFFSET: Final = 16  # of MQRFH and MQRFH2

_IS_RETAINED: Final = "IsRetainedPub"
_NOT_DELIVERED: Final = PublicationOption.NO_REGISTRATION | PublicationOption.IS_RETAINED_PUBLICATION
_NOT_DELIVERED_NUMBER: Final = int(_NOT_DELIVERED)

_HIDDEN: Final = "the publisher's own; not shown to subscribers"
_WITHOUT_DIRECT: Final = "shown to subscribers with DirectReq only"
_STREAM_HIDDEN: Final = "given to subscriptions with InclStreamName only"
_TOWARDS_BROKER: Final = "valid towards a broker only"
_RESPONSE_FOLDER: Final = "pscr"
_IGNORED: Final = "a response; a broker ignores it in a command"
_OF_THE_BROKER: Final = "set by the broker alone"


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedHeader:
    """The parts of a subscription and of the publication's MQMD that decide its header.

    `stream_name` is None without InclStreamName. `return_address` is the publisher's queue manager and queue. It is
    there for a publication with DirectReq whose header does not name them.
    """

    dialect: Dialect
    marks_retained: bool
    stream_name: str | None
    point: str = ""
    user_data: str = ""
    return_address: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeliveredHeader:
    """A header chain in front of a body, the MQMD fields that describe it, and the fields left out, with reasons.

    `written` is the header as its writer knows it, where this process wrote it anew.
    """

    format: bytes
    coded_char_set_id: int
    encoding: int
    data: bytes
    dropped: tuple[tuple[str, str], ...]
    written: WrittenCommand | None = None


def delivered_header(published: CommandHeader, wanted: WantedHeader) -> DeliveredHeader:
    """The header of a publication for a subscription. Raises MappingError if its format cannot express it."""
    if isinstance(published, WrittenCommand):
        if (short := unchanged_header(published, wanted)) is not None:
            return _delivered(published, short.data, short.format, (), None if short is published else short)
        shown: CommandHeader = published
    else:
        shown = _without_responses(published)
    edit = _Edit(_NAMES[shown.dialect], wanted, shown)
    data, format, dropped = shown.data, shown.format, tuple(edit.dropped)
    if data is not published.data:
        dropped = ((_RESPONSE_FOLDER, _IGNORED), *dropped)
    fields = edit.fields()
    if shown.dialect is wanted.dialect:
        with_additions = _with_additions(fields, wanted)
        if edit.changes or with_additions != fields:
            data = _with_fields(shown, with_additions)
    else:
        data = _with_fields(shown, fields) if edit.changes else data
        conversion = convert(
            data,
            format=format,
            coded_char_set_id=published.coded_char_set_id,
            encoding=published.encoding,
            to=wanted.dialect,
            folders=Folders.KEPT if shown.is_of_jms else Folders.DROPPED,
        )
        data, format = conversion.header, conversion.format
        dropped += tuple((outcome.name, outcome.reason) for outcome in conversion.report.dropped)
        data = _converted_with_additions(data, format, published, wanted)
    return _delivered(published, _resolved(shown, data, format), format, dropped)


def unchanged_header(published: WrittenCommand, wanted: WantedHeader) -> WrittenCommand | None:
    """The header itself, or the same with IsRetainedPub, where a delivery changes nothing else; None where it does."""
    if not _stays(published, wanted):
        return None
    return _marked(published) if wanted.marks_retained else published


def _delivered(
    published: CommandHeader,
    data: bytes,
    format: bytes,
    dropped: NameValues,
    written: WrittenCommand | None = None,
) -> DeliveredHeader:
    return DeliveredHeader(
        format=format,
        coded_char_set_id=published.coded_char_set_id,
        encoding=published.encoding,
        data=data,
        dropped=dropped,
        written=written,
    )


def _stays(published: WrittenCommand, wanted: WantedHeader) -> bool:
    """Whether a subscriber gets a header that this process wrote without a change, except IsRetainedPub."""
    return (
        published.dialect is wanted.dialect
        and not (wanted.point or wanted.user_data)
        and wanted.stream_name is None
        and wanted.return_address is None
        and is_shown_whole(published)
    )


def is_shown_whole(published: WrittenCommand) -> bool:
    """Whether a publication has nothing that a broker keeps from subscribers."""
    command = published.command
    assert isinstance(command, Publish)
    return (
        not int(command.publication_options) & _NOT_DELIVERED_NUMBER
        and not command.registration_options
        and command.queue_name is None
        and command.queue_manager_name is None
        and command.stream_name is None
        and command.subscription_point is None
        and command.subscription_user_data is None
    )


def _marked(published: WrittenCommand) -> WrittenCommand | None:
    """A header that `_stays` with IsRetainedPub; None where it says more than topic, options and properties."""
    command = published.command
    assert isinstance(command, Publish)
    folders = published.folders
    says_more = command.publication_time is not None or command.sequence_number is not None or bool(command.data)
    if says_more or len(command.topics) != 1 or len(folders) > 1:
        return None
    options, template = _template(int(command.publication_options), published.dialect)
    data = template.header(command.topics[0], folders=tuple([folder.raw.decode() for folder in folders]))
    marked = Publish(topics=command.topics, publication_options=options)
    return WrittenCommand(marked, published.dialect, data, folders)


@lru_cache(maxsize=16)
def _template(options: int, dialect: Dialect) -> tuple[PublicationOption, PublicationTemplate]:
    """The options with IsRetainedPub, and what writes a header with them."""
    marked = PublicationOption(options) | PublicationOption.IS_RETAINED_PUBLICATION
    return marked, PublicationTemplate(Publish(topics=("topic",), publication_options=marked), dialect)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ParameterNames:
    """The names of the parameters that a delivery changes, in one format."""

    command: str
    publication_option: str
    registration_option: str
    queue_manager_name: str
    queue_name: str
    topic: str
    point: str | None
    user_data: str
    stream_name: str | None


_NAMES: Final = {
    Dialect.MQRFH: _ParameterNames(
        command="MQPSCommand",
        publication_option="MQPSPubOpts",
        registration_option="MQPSRegOpts",
        queue_manager_name="MQPSQMgrName",
        queue_name="MQPSQName",
        topic="MQPSTopic",
        point=None,
        user_data="MQPSSubUserData",
        stream_name="MQPSStreamName",
    ),
    Dialect.MQRFH2: _ParameterNames(
        command="Command",
        publication_option="PubOpt",
        registration_option="RegOpt",
        queue_manager_name="QMgrName",
        queue_name="QName",
        topic="Topic",
        point="SubPoint",
        user_data="SubUserData",
        stream_name=None,
    ),
}


class _Edit:
    """Goes through the fields of a Publish once and notes what a delivery changes."""

    def __init__(self, names: _ParameterNames, wanted: WantedHeader, published: CommandHeader) -> None:
        assert isinstance(published.command, Publish)
        self._names = names
        self._wanted = wanted
        options = published.command.registration_options
        self._is_direct = RegistrationOption.DIRECT_REQUESTS in options
        self.changes = wanted.marks_retained or wanted.return_address is not None
        self.dropped: list[tuple[str, str]] = []
        self._kept = [kept for name, value in published.fields for kept in self._field(name, value)]

    def fields(self) -> NameValues:
        """The delivered fields, with IsRetainedPub and the publisher's address if the subscription wants them."""
        fields, names = tuple(self._kept), self._names
        if self._wanted.marks_retained:
            option = names.publication_option
            after = max(place for place, (name, _) in enumerate(fields) if name in (names.command, option))
            fields = (*fields[: after + 1], (option, _IS_RETAINED), *fields[after + 1 :])
        if self._wanted.return_address is not None:
            queue_manager_name, queue_name = self._wanted.return_address
            address = ((names.queue_name, queue_name), (names.queue_manager_name, queue_manager_name))
            shown = {name for name, _ in fields}
            fields = _before_first(names.topic, fields, tuple(field for field in address if field[0] not in shown))
        return fields

    def _field(self, name: str, value: str) -> Iterable[tuple[str, str]]:
        names = self._names
        if name == names.publication_option:
            return self._publication_option(name, value)
        if name == names.registration_option:
            return self._without(name, _HIDDEN)
        if name in (names.queue_name, names.queue_manager_name) and not self._is_direct:
            return self._without(name, _WITHOUT_DIRECT)
        if name in (names.point, names.user_data):
            return self._without(name, _OF_THE_BROKER)
        if name == names.stream_name and self._wanted.stream_name is None and self._wanted.dialect is Dialect.MQRFH:
            return self._without(name, _STREAM_HIDDEN)
        return ((name, value),)

    def _publication_option(self, name: str, value: str) -> Iterable[tuple[str, str]]:
        if value == "Local":
            return self._without(name, _HIDDEN)
        number = option_number(PublicationOption, value)
        left = number & ~_NOT_DELIVERED
        if left == number:
            return ((name, value),)
        remainder = self._without(name, f"{value}: {_TOWARDS_BROKER}")
        return ((name, str(left)),) if left else remainder

    def _without(self, name: str, reason: str) -> Iterable[tuple[str, str]]:
        self.changes = True
        self.dropped.append((name, reason))
        return ()


def _without_responses(published: CommandHeader) -> CommandHeader:
    """The publication without folders pscr. They mean nothing in it, and a conversion would take it for a response."""
    data, chain = published.data, published.chain
    for index, header in enumerate(published.chain.headers):
        if isinstance(header, Mqrfh2) and header.folder(_RESPONSE_FOLDER) is not None:
            folders = tuple(folder for folder in header.folders if folder.name != _RESPONSE_FOLDER)
            data = _replaced(data, chain, index, _mqrfh2(header, folders, chain.places[index]))
            chain = _chain(data, published.format, published)
    if data is published.data:
        return published
    assert isinstance(published, ReadCommand)
    return published.with_chain(data, chain)


def _with_fields(published: CommandHeader, fields: NameValues) -> bytes:
    """The header chain with other fields in the header of the command; all else as it was."""
    if isinstance(published, WrittenCommand):
        return published.with_fields(fields)
    assert isinstance(published, ReadCommand)
    chain, index = published.chain, published.place
    written = _written(chain.headers[index], fields, chain.places[index])
    return _replaced(published.data, chain, index, written)


def _replaced(data: bytes, chain: HeaderChain, index: int, written: bytes) -> bytes:
    start = chain.places[index].offset
    return data[:start] + written + data[start + chain.headers[index].struc_length :]


def _written(header: Header, fields: NameValues, place: HeaderPlace) -> bytes:
    if isinstance(header, Mqrfh):
        return write_mqrfh(
            fields,
            format=header.format,
            next_coded_char_set_id=header.coded_char_set_id,
            next_encoding=header.encoding,
            coded_char_set_id=place.coded_char_set_id,
            encoding=place.encoding,
            flags=header.flags,
        )
    assert isinstance(header, Mqrfh2)
    psc = encode_text(psc_folder(fields), header.name_value_ccsid, encoding=place.encoding)
    folders = tuple(replace(folder, raw=psc) if folder.name == "psc" else folder for folder in header.folders)
    return _mqrfh2(header, folders, place)


def _mqrfh2(header: Mqrfh2, folders: tuple[Folder, ...], place: HeaderPlace) -> bytes:
    """An MQRFH2 with its folders replaced."""
    return write_mqrfh2(
        folders,
        format=header.format,
        next_coded_char_set_id=header.coded_char_set_id,
        next_encoding=header.encoding,
        coded_char_set_id=place.coded_char_set_id,
        encoding=place.encoding,
        flags=header.flags,
        name_value_ccsid=header.name_value_ccsid,
    )


def _chain(data: bytes, format: bytes, published: CommandHeader) -> HeaderChain:
    return read_header_chain(
        data, format=format, coded_char_set_id=published.coded_char_set_id, encoding=published.encoding
    )


def _with_additions(fields: NameValues, wanted: WantedHeader) -> NameValues:
    """The fields plus those of the subscription: point and user data at the end, the stream before the topics."""
    names = _NAMES[wanted.dialect]
    at_end = tuple(
        (name, value)
        for name, value in ((names.point, wanted.point), (names.user_data, wanted.user_data))
        if name and value
    )
    stream = names.stream_name
    if stream and wanted.stream_name is not None and not any(name == stream for name, _ in fields):
        fields = _before_first(names.topic, fields, ((stream, wanted.stream_name),))
    return (*fields, *at_end)


def _converted_with_additions(data: bytes, format: bytes, published: CommandHeader, wanted: WantedHeader) -> bytes:
    """A header chain in the other format, with the additions of the subscription."""
    chain = _chain(data, format, published)
    index, header = next(
        (place, found) for place, found in enumerate(chain.headers) if _has_command(found, wanted.dialect)
    )
    before = fields_in(header)
    fields = _with_additions(before, wanted)
    return data if fields == before else _replaced(data, chain, index, _written(header, fields, chain.places[index]))


def _has_command(header: Header, dialect: Dialect) -> bool:
    if dialect is Dialect.MQRFH:
        return isinstance(header, Mqrfh)
    return isinstance(header, Mqrfh2) and header.folder("psc") is not None


def _before_first(name: str, fields: NameValues, added: NameValues) -> NameValues:
    place = next(place for place, field in enumerate(fields) if field[0] == name)
    return (*fields[:place], *added, *fields[place:])


def _resolved(published: CommandHeader, data: bytes, format: bytes) -> bytes:
    """The chain without MQCCSI_INHERIT, which a message of a broker must not have (PutApplType MQAT_BROKER)."""
    if isinstance(published, WrittenCommand) or not any(map(_inherits, published.chain.headers)):
        return data
    chain = _chain(data, format, published)
    following = [place.coded_char_set_id for place in chain.places[1:]] + [chain.body_coded_char_set_id]
    for header, place, coded_char_set_id in zip(chain.headers, chain.places, following, strict=True):
        if _inherits(header):
            at = place.offset + _CODED_CHAR_SET_ID_OFFSET
            layout = struct.Struct(">i" if is_big_endian(place.encoding) else "<i")
            data = data[:at] + layout.pack(coded_char_set_id) + data[at + layout.size :]
    return data


def _inherits(header: Header) -> bool:
    return header.coded_char_set_id == INHERIT and not isinstance(header, DeadLetterHeader)
