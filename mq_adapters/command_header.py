"""The header of a message as values: a command, or a broker's answer to one.

The values of a header from outside are read from its bytes. A header that this process writes has its values already:
they travel with the message (`Message.written`), and nobody reads the bytes that were written a moment ago.
"""

from abc import abstractmethod
from typing import Final

from mappings.commands.command import Command, command_fields
from mappings.commands.response import Response
from mappings.headers.chain import FORMAT_MQRFH, FORMAT_MQRFH2, FORMAT_NONE, HeaderChain, read_header_chain
from mappings.headers.charset import ENCODING_REVERSED, UTF_8
from mappings.headers.mqrfh import FIXED_LENGTH_BYTES, write_mqrfh
from mappings.headers.mqrfh2 import Folder, Mqrfh2, psc_folder, write_mqrfh2
from mappings.headers.name_value import NameValues
from mappings.table import Dialect
from mq_adapters.message import KnownHeader, Message, MessageDescriptor

#: A message with another MQMD.Format is no command at all (WebSphere MQ V6 Publish/Subscribe User's Guide).
DIALECT_OF_FORMAT: Final = {FORMAT_MQRFH: Dialect.MQRFH, FORMAT_MQRFH2: Dialect.MQRFH2}
FORMAT_OF_DIALECT: Final = {dialect: format for format, dialect in DIALECT_OF_FORMAT.items()}


def chain_of(message: Message) -> HeaderChain:
    """The headers in front of a message's body, read from its bytes. Raises MappingError."""
    descriptor = message.descriptor
    return read_header_chain(
        message.body,
        format=descriptor.format,
        coded_char_set_id=descriptor.coded_char_set_id,
        encoding=descriptor.encoding,
    )


#: The folder of an MQRFH2 that carries message properties.
PROPERTY_FOLDER: Final = "usr"
#: The folders without which a message is none of JMS.
_FOLDERS_OF_JMS: Final = ("mcd", "jms")


class CommandHeader(KnownHeader):
    """A header chain with a command. `data` are its bytes, all that stands in front of the body.

    `format`, character set and encoding are those of the MQMD, which describe the first header.
    """

    __slots__ = ("command", "dialect")

    def __init__(
        self, command: Command, dialect: Dialect, data: bytes, *, format: bytes, coded_char_set_id: int, encoding: int
    ) -> None:
        super().__init__(data, format=format, coded_char_set_id=coded_char_set_id, encoding=encoding)
        self.command = command
        self.dialect = dialect

    @property
    def verb(self) -> str:
        """The command's name on the wire."""
        return self.command.verb

    @property
    @abstractmethod
    def chain(self) -> HeaderChain:
        """Every header, with its place."""

    @property
    def property_folders(self) -> tuple[Folder, ...]:
        """The first folder usr of each MQRFH2."""
        found = [header.folder(PROPERTY_FOLDER) for header in self.chain.headers if isinstance(header, Mqrfh2)]
        return tuple([folder for folder in found if folder is not None])

    @property
    def is_of_jms(self) -> bool:
        """Whether folders beside the command make a message of JMS of it."""
        for header in self.chain.headers:
            if isinstance(header, Mqrfh2):
                for folder in header.folders:
                    if folder.name in _FOLDERS_OF_JMS:
                        return True
        return False

    @property
    def body_coded_char_set_id(self) -> int:
        """The character set of the body."""
        return self.chain.body_coded_char_set_id

    @property
    @abstractmethod
    def fields(self) -> NameValues:
        """Names and values of the command, in the order in which they stand in its header."""

    @property
    @abstractmethod
    def echo(self) -> bytes:
        """The command as an answer repeats it: the NameValueString as it came, or the psc folder in UTF-8."""


class WrittenCommand(CommandHeader):
    """One header that this process has written for a command: in UTF-8, little-endian, in front of a body of any kind.

    `folders` stand behind psc in an MQRFH2: those of JMS or none, then one folder usr or none. `body_format` is the
    Format of the body.
    """

    __slots__ = ("_body_format", "_chain", "folders")

    def __init__(
        self,
        command: Command,
        dialect: Dialect,
        data: bytes,
        folders: tuple[Folder, ...] = (),
        body_format: bytes = FORMAT_NONE,
    ) -> None:
        super().__init__(
            command,
            dialect,
            data,
            format=FORMAT_OF_DIALECT[dialect],
            coded_char_set_id=UTF_8,
            encoding=ENCODING_REVERSED,
        )
        self.folders = folders
        self._body_format = body_format
        self._chain: HeaderChain | None = None

    def message(self, descriptor: MessageDescriptor, payload: bytes, origin: bytes) -> Message:
        """The command in front of a payload, as a message with which it travels."""
        message = Message(descriptor, self.data + payload, origin)
        message.written = self
        return message

    @property
    def chain(self) -> HeaderChain:
        """The header as it is read, once for all copies."""
        if self._chain is None:
            self._chain = read_header_chain(
                self.data, format=self.format, coded_char_set_id=self.coded_char_set_id, encoding=self.encoding
            )
        return self._chain

    @property
    def property_folders(self) -> tuple[Folder, ...]:
        return tuple([folder for folder in self.folders if folder.name == PROPERTY_FOLDER])

    @property
    def body_coded_char_set_id(self) -> int:
        return UTF_8

    @property
    def fields(self) -> NameValues:
        """Names and values of the command, in the order in which they were written."""
        return command_fields(self.command, self.dialect)

    @property
    def echo(self) -> bytes:
        """The command as an answer repeats it."""
        if self.dialect is Dialect.MQRFH:
            return self.data[FIXED_LENGTH_BYTES:]
        return psc_folder(self.fields).encode()

    def with_fields(self, fields: NameValues) -> bytes:
        """The header with other fields in the place of the command's."""
        if self.dialect is Dialect.MQRFH:
            return write_mqrfh(
                fields,
                format=FORMAT_NONE,
                next_coded_char_set_id=UTF_8,
                next_encoding=ENCODING_REVERSED,
                coded_char_set_id=UTF_8,
                encoding=ENCODING_REVERSED,
            )
        return write_mqrfh2(
            (psc_folder(fields).encode(), *self.folders),
            format=self._body_format,
            next_coded_char_set_id=UTF_8,
            next_encoding=ENCODING_REVERSED,
            coded_char_set_id=UTF_8,
            encoding=ENCODING_REVERSED,
        )


class WrittenResponse(KnownHeader):
    """A broker's answer, with the values that reading it would give."""

    __slots__ = ("response",)

    def __init__(
        self, response: Response, data: bytes, *, format: bytes, coded_char_set_id: int, encoding: int
    ) -> None:
        super().__init__(data, format=format, coded_char_set_id=coded_char_set_id, encoding=encoding)
        self.response = response
