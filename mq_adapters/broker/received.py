"""Reads a message on a queue of the broker: its command, or the reason why it has none."""

import re
from dataclasses import dataclass
from typing import Final

from mappings.commands.command import Command, find_command, read_command
from mappings.errors import MappingError
from mappings.headers.chain import Header, HeaderChain
from mappings.headers.mqrfh import FIXED_LENGTH_BYTES, Mqrfh
from mappings.headers.mqrfh2 import Folder, Mqrfh2
from mappings.headers.name_value import NameValues
from mappings.table import Dialect
from mq_adapters.command_header import DIALECT_OF_FORMAT, CommandHeader, chain_of
from mq_adapters.message import KnownHeader, Message

#: A wrong command's name is repeated in the answer up to this length: twice that of an object name.
_VERB_CHARACTERS: Final = 96
_COMMAND: Final = re.compile(r'(?:^| )MQPSCommand +([^ "\0]+)')


class ReadCommand(CommandHeader):
    """A header chain from outside, as it was read. `place` is the index of the header that carries the command."""

    __slots__ = ("_chain", "_echo", "place")

    def __init__(
        self,
        command: Command,
        dialect: Dialect,
        data: bytes,
        *,
        format: bytes,
        coded_char_set_id: int,
        encoding: int,
        chain: HeaderChain,
        place: int,
        echo: bytes,
    ) -> None:
        super().__init__(command, dialect, data, format=format, coded_char_set_id=coded_char_set_id, encoding=encoding)
        self.place = place
        self._chain = chain
        self._echo = echo

    @property
    def chain(self) -> HeaderChain:
        return self._chain

    @property
    def fields(self) -> NameValues:
        return fields_in(self._chain.headers[self.place])

    @property
    def echo(self) -> bytes:
        return self._echo

    def with_chain(self, data: bytes, chain: HeaderChain) -> "ReadCommand":
        """The same command in another header chain, which differs only outside the command."""
        return ReadCommand(
            self.command,
            self.dialect,
            data,
            format=self.format,
            coded_char_set_id=self.coded_char_set_id,
            encoding=self.encoding,
            chain=chain,
            place=self.place,
            echo=self._echo,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnreadableCommand:
    """A message in the format of a command that is no valid command. `verb`: the command that it names, if any."""

    error: MappingError
    dialect: Dialect
    verb: str = ""
    echo: bytes = b""


def received_command(message: Message) -> CommandHeader | UnreadableCommand:
    """The command of a message whose MQMD.Format is one of DIALECT_OF_FORMAT.

    A message that this process wrote comes with its command. A message from outside is read.
    """
    written = KnownHeader.of(message)
    return written if isinstance(written, CommandHeader) else read_command_header(message)


def read_command_header(message: Message) -> ReadCommand | UnreadableCommand:
    """Reads the command from the bytes of a message."""
    try:
        chain = chain_of(message)
    except MappingError as error:
        return UnreadableCommand(error=error, dialect=DIALECT_OF_FORMAT[message.descriptor.format])
    try:
        return _read_command(message, chain)
    except MappingError as error:
        return _unreadable(message, chain, error)


def fields_in(header: Header) -> NameValues:
    """Names and values of the command in a header."""
    if isinstance(header, Mqrfh):
        return header.pairs
    assert isinstance(header, Mqrfh2)
    folder = header.folder("psc")
    assert folder is not None
    return tuple((element.name, element.text) for element in folder.elements)


def _read_command(message: Message, chain: HeaderChain) -> ReadCommand:
    command = read_command(chain)
    folder, header = find_command(chain)
    descriptor = message.descriptor
    return ReadCommand(
        command,
        Dialect.MQRFH if folder is None else Dialect.MQRFH2,
        message.body[: chain.body_offset],
        format=descriptor.format,
        coded_char_set_id=descriptor.coded_char_set_id,
        encoding=descriptor.encoding,
        chain=chain,
        place=_place_of(chain, folder, header),
        echo=_echo(message.body, chain, folder, header),
    )


def _unreadable(message: Message, chain: HeaderChain, error: MappingError) -> UnreadableCommand:
    dialect = DIALECT_OF_FORMAT[message.descriptor.format]
    try:
        folder, header = find_command(chain)
        if folder is not None:
            names = {element.name: element.text for element in folder.elements}
            dialect, verb = Dialect.MQRFH2, names.get("Command", "")
        elif header is not None:
            dialect, verb = Dialect.MQRFH, _verb_of(header)
        else:
            return UnreadableCommand(error=error, dialect=dialect)
        echo = _echo(message.body, chain, folder, header)
    except MappingError:
        return UnreadableCommand(error=error, dialect=dialect)
    return UnreadableCommand(error=error, dialect=dialect, verb=verb[:_VERB_CHARACTERS], echo=echo)


def _verb_of(header: Mqrfh) -> str:
    """The name of the command in an MQRFH, even if its string cannot be parsed to the end."""
    try:
        return dict(header.pairs).get("MQPSCommand", "")
    except MappingError:
        found = _COMMAND.search(header.name_value_string)
        return found[1] if found is not None else ""


def _place_of(chain: HeaderChain, folder: Folder | None, header: Mqrfh | None) -> int:
    for place, candidate in enumerate(chain.headers):
        if candidate is header or (folder is not None and folder in getattr(candidate, "folders", ())):
            return place
    raise AssertionError("find_command answered with something outside the chain")


def _echo(body: bytes, chain: HeaderChain, folder: Folder | None, header: Mqrfh | None) -> bytes:
    """The NameValueString as it came, or the psc folder in UTF-8."""
    if folder is not None:
        return folder.text.encode()
    assert header is not None
    start = chain.places[_place_of(chain, folder, header)].offset
    return body[start + FIXED_LENGTH_BYTES : start + header.struc_length]
