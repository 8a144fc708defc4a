"""The commands of queued publish/subscribe: one typed form for both dialects, read from and written to headers.

Step 4 on the way of a PUBLISH: the bridge's command becomes header bytes; in the broker it is read back. Which command
takes which parameter stands in `fields.toml`, which option in `options.toml`. Topics are plain text: in MQRFH the topic
names of Publish and RegPub are unescaped on reading and escaped on writing; patterns are left in their own scheme.
Sources: IBM MQ documentation, the pages of the queued publish/subscribe commands; WebSphere MQ V6 Publish/Subscribe
User's Guide, the parameters of each command.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from mappings.commands.options import (
    NO_DELETE_OPTIONS,
    NO_PUBLICATION_OPTIONS,
    NO_REGISTRATION_OPTIONS,
    DeleteOption,
    PublicationOption,
    RegistrationOption,
)
from mappings.commands.parameters import (
    MQRFH_ONLY_VERBS,
    TEXT_KEYS,
    Parameters,
    gather_elements,
    gather_pairs,
    list_elements,
    list_pairs,
    verb_of_pairs,
)
from mappings.commands.response import Completion, Response, ResponseReason, read_response, write_response
from mappings.commands.rules import check_parameters
from mappings.errors import CommandError, ConversionError
from mappings.headers.chain import (
    FORMAT_DEAD_LETTER,
    FORMAT_MQRFH,
    FORMAT_MQRFH2,
    FORMAT_NONE,
    FORMAT_STRING,
    HeaderChain,
)
from mappings.headers.charset import ENCODING_REVERSED, UTF_8
from mappings.headers.mqrfh import Mqrfh, write_mqrfh
from mappings.headers.mqrfh2 import Folder, Mqrfh2, psc_folder, write_mqrfh2
from mappings.headers.name_value import NameValues
from mappings.reasons import Reason
from mappings.table import Dialect

__all__ = [
    "FORMAT_DEAD_LETTER",
    "FORMAT_MQRFH",
    "FORMAT_MQRFH2",
    "FORMAT_NONE",
    "FORMAT_STRING",
    "Command",
    "Completion",
    "DeletePublication",
    "DeregisterPublisher",
    "DeregisterSubscriber",
    "Dialect",
    "Publish",
    "RegisterPublisher",
    "RegisterSubscriber",
    "RequestUpdate",
    "Response",
    "ResponseReason",
    "read_command",
    "read_response",
    "write_command",
    "write_response",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    """A publication for one or more topic names; `data` are the pairs that travel inside an MQRFH.

    `subscription_point` and `subscription_user_data` are set by a broker on delivery, never by a publisher.
    """

    verb: ClassVar[str] = "Publish"
    topics: tuple[str, ...]
    publication_options: PublicationOption = NO_PUBLICATION_OPTIONS
    registration_options: RegistrationOption = NO_REGISTRATION_OPTIONS
    stream_name: str | None = None
    queue_manager_name: str | None = None
    queue_name: str | None = None
    publication_time: str | None = None
    sequence_number: str | None = None
    subscription_point: str | None = None
    subscription_user_data: str | None = None
    data: NameValues = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePublication:
    """Deletes the retained publications of some topics."""

    verb: ClassVar[str] = "DeletePub"
    topics: tuple[str, ...]
    delete_options: DeleteOption = NO_DELETE_OPTIONS
    stream_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _SubscriberCommand:
    """What the three commands of a subscriber have in common."""

    topics: tuple[str, ...] = ()
    registration_options: RegistrationOption = NO_REGISTRATION_OPTIONS
    stream_name: str | None = None
    subscription_point: str | None = None
    filter: str | None = None
    queue_manager_name: str | None = None
    queue_name: str | None = None
    subscription_name: str | None = None
    subscription_identity: str | None = None
    subscription_user_data: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterSubscriber(_SubscriberCommand):
    """Subscribes to some topic patterns."""

    verb: ClassVar[str] = "RegSub"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeregisterSubscriber(_SubscriberCommand):
    """Ends the subscriptions to some patterns, or with DeregAll all of them."""

    verb: ClassVar[str] = "DeregSub"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestUpdate(_SubscriberCommand):
    """Asks for the retained publications of one existing subscription."""

    verb: ClassVar[str] = "ReqUpdate"


@dataclass(frozen=True, slots=True, kw_only=True)
class _PublisherCommand:
    """What the two commands of a publisher's registration have in common; MQRFH only."""

    topics: tuple[str, ...] = ()
    registration_options: RegistrationOption = NO_REGISTRATION_OPTIONS
    stream_name: str | None = None
    queue_manager_name: str | None = None
    queue_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterPublisher(_PublisherCommand):
    """Announces a publisher of some topics."""

    verb: ClassVar[str] = "RegPub"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeregisterPublisher(_PublisherCommand):
    """Ends the registration of a publisher."""

    verb: ClassVar[str] = "DeregPub"


Command = (
    Publish
    | DeletePublication
    | RegisterSubscriber
    | DeregisterSubscriber
    | RequestUpdate
    | RegisterPublisher
    | DeregisterPublisher
)

_ATTRIBUTES = {
    "StreamName": "stream_name",
    "QName": "queue_name",
    "QMgrName": "queue_manager_name",
    "SubPoint": "subscription_point",
    "Filter": "filter",
    "PubTime": "publication_time",
    "SeqNum": "sequence_number",
    "SubName": "subscription_name",
    "SubIdentity": "subscription_identity",
    "SubUserData": "subscription_user_data",
}


def read_command(chain: HeaderChain) -> Command:
    """Read the command of a message: its psc folder, or else its MQRFH, wherever in the chain it stands.

    Topics come out as plain text: escapes of an MQRFH topic name are undone, patterns stay in their own scheme.
    Raises CommandError where there is no command, more than one, or an invalid one, NameValueError for a string that
    breaks its grammar and HeaderError for a malformed folder, each with the reason code that a broker answers with.
    Source: IBM MQ documentation, the pages of the queued publish/subscribe commands.
    """
    folder, header = find_command(chain)
    if folder is not None:
        parameters, dialect = gather_elements(folder), Dialect.MQRFH2
    elif header is not None:
        pairs = header.pairs
        parameters, dialect = gather_pairs(verb_of_pairs(header, pairs), pairs), Dialect.MQRFH
    else:
        raise CommandError(
            Reason.MQRC_RFH_ERROR, "no header in this message carries a command; send an MQRFH, or an MQRFH2 with psc"
        )
    check_parameters(parameters, dialect)
    return _BUILDERS[parameters.verb](parameters)


def find_command(chain: HeaderChain) -> tuple[Folder | None, Mqrfh | None]:
    """The psc folder, or else the MQRFH, that carries the command; two of them are an error (MQRC_RFH_ERROR)."""
    folders = [
        folder
        for header in chain.headers
        if isinstance(header, Mqrfh2)
        for folder in header.folders
        if folder.name == "psc"
    ]
    headers = [header for header in chain.headers if isinstance(header, Mqrfh)]
    if len(folders) > 1 or len(headers) > 1 or (folders and headers):
        raise CommandError(
            Reason.MQRC_RFH_ERROR, "the message carries more than one command; send one message for each"
        )
    return (folders[0] if folders else None), (headers[0] if headers else None)


def write_command(
    command: Command,
    dialect: Dialect,
    *,
    coded_char_set_id: int = UTF_8,
    encoding: int = ENCODING_REVERSED,
    body_format: bytes = FORMAT_NONE,
    body_coded_char_set_id: int = UTF_8,
    body_encoding: int = ENCODING_REVERSED,
    extra_folders: tuple[str, ...] = (),
) -> bytes:
    """Write a command as the header of a message: an MQRFH, or an MQRFH2 with folder psc. The body follows it.

    `coded_char_set_id` (1208 is UTF-8) and `encoding` (273 big-endian, 546 little-endian) are those of the MQMD in
    front, whose Format is FORMAT_MQRFH or FORMAT_MQRFH2. The three `body_...` say the same of the body;
    `body_format` has 8 bytes, blank padded. `extra_folders` are whole folders, `<usr>...</usr>`, that follow psc.
    Raises CommandError for an invalid command, ConversionError for what the format cannot say, HeaderError for a
    character that the code page lacks and NameValueError for a NUL in an MQRFH.
    Source: IBM MQ documentation, "MQRFH", "MQRFH2" and the pages of the queued publish/subscribe commands.
    """
    parameters = _parameters_of(command)
    check_parameters(parameters, dialect)
    if dialect is Dialect.MQRFH2:
        return write_mqrfh2(
            (_psc_of(parameters).encode(), *(folder.encode() for folder in extra_folders)),
            format=body_format,
            next_coded_char_set_id=body_coded_char_set_id,
            next_encoding=body_encoding,
            coded_char_set_id=coded_char_set_id,
            encoding=encoding,
        )
    if extra_folders:
        raise ConversionError(Reason.MQRC_RFH_PARM_ERROR, "MQRFH has no folders; use MQRFH2 or leave them out")
    return write_mqrfh(
        list_pairs(parameters),
        format=body_format,
        next_coded_char_set_id=body_coded_char_set_id,
        next_encoding=body_encoding,
        coded_char_set_id=coded_char_set_id,
        encoding=encoding,
    )


def command_fields(command: Command, dialect: Dialect) -> NameValues:
    """The pairs or psc elements that `write_command` writes for a command, in their order."""
    parameters = _parameters_of(command)
    return list_elements(parameters) if dialect is Dialect.MQRFH2 else list_pairs(parameters)


def _psc_of(parameters: Parameters) -> str:
    if parameters.verb in MQRFH_ONLY_VERBS:
        raise ConversionError(
            Reason.MQRC_RFH_COMMAND_ERROR, f"{parameters.verb} has no psc form; use MQRFH", parameter=parameters.verb
        )
    if parameters.data:
        raise ConversionError(
            Reason.MQRC_RFH_PARM_ERROR,
            "psc carries no publication data; put them into the body or into folder usr",
            parameter=parameters.data[0][0],
        )
    return psc_folder(list_elements(parameters))


def _parameters_of(command: Command) -> Parameters:
    texts = {key: getattr(command, _ATTRIBUTES[key], None) for key in TEXT_KEYS}
    return Parameters(
        verb=command.verb,
        topics=command.topics,
        registration_options=RegistrationOption(getattr(command, "registration_options", 0)),
        publication_options=PublicationOption(getattr(command, "publication_options", 0)),
        delete_options=DeleteOption(getattr(command, "delete_options", 0)),
        texts={key: value for key, value in texts.items() if value is not None},
        data=command.data if isinstance(command, Publish) else (),
    )


def _publish(parameters: Parameters) -> Publish:
    texts = parameters.texts
    return Publish(
        topics=parameters.topics,
        publication_options=parameters.publication_options,
        registration_options=parameters.registration_options,
        stream_name=texts.get("StreamName"),
        queue_manager_name=texts.get("QMgrName"),
        queue_name=texts.get("QName"),
        publication_time=texts.get("PubTime"),
        sequence_number=texts.get("SeqNum"),
        subscription_point=texts.get("SubPoint"),
        subscription_user_data=texts.get("SubUserData"),
        data=parameters.data,
    )


def _delete_publication(parameters: Parameters) -> DeletePublication:
    return DeletePublication(
        topics=parameters.topics,
        delete_options=parameters.delete_options,
        stream_name=parameters.texts.get("StreamName"),
    )


_Subscriber = TypeVar("_Subscriber", RegisterSubscriber, DeregisterSubscriber, RequestUpdate)
_Publisher = TypeVar("_Publisher", RegisterPublisher, DeregisterPublisher)


def _subscriber_command(command: type[_Subscriber], parameters: Parameters) -> _Subscriber:
    texts = parameters.texts
    return command(
        topics=parameters.topics,
        registration_options=parameters.registration_options,
        stream_name=texts.get("StreamName"),
        subscription_point=texts.get("SubPoint"),
        filter=texts.get("Filter"),
        queue_manager_name=texts.get("QMgrName"),
        queue_name=texts.get("QName"),
        subscription_name=texts.get("SubName"),
        subscription_identity=texts.get("SubIdentity"),
        subscription_user_data=texts.get("SubUserData"),
    )


def _publisher_command(command: type[_Publisher], parameters: Parameters) -> _Publisher:
    texts = parameters.texts
    return command(
        topics=parameters.topics,
        registration_options=parameters.registration_options,
        stream_name=texts.get("StreamName"),
        queue_manager_name=texts.get("QMgrName"),
        queue_name=texts.get("QName"),
    )


_BUILDERS: dict[str, Callable[[Parameters], Command]] = {
    "Publish": _publish,
    "DeletePub": _delete_publication,
    "RegSub": lambda parameters: _subscriber_command(RegisterSubscriber, parameters),
    "DeregSub": lambda parameters: _subscriber_command(DeregisterSubscriber, parameters),
    "ReqUpdate": lambda parameters: _subscriber_command(RequestUpdate, parameters),
    "RegPub": lambda parameters: _publisher_command(RegisterPublisher, parameters),
    "DeregPub": lambda parameters: _publisher_command(DeregisterPublisher, parameters),
}
