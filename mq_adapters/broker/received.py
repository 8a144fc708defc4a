"""What the broker makes of a message on one of its queues: a command, or the reason why it is none."""

import re
from dataclasses import dataclass
from typing import Final

from mappings.commands.command import Command, find_command, read_command
from mappings.errors import MappingError
from mappings.headers.chain import FORMAT_MQRFH, FORMAT_MQRFH2, HeaderChain, read_header_chain
from mappings.headers.mqrfh import FIXED_LENGTH_BYTES, Mqrfh
from mappings.headers.mqrfh2 import Folder
from mappings.table import Dialect
from mq_adapters.message import Message

#: A message with another MQMD.Format is no command at all (WebSphere MQ V6 Publish/Subscribe User's Guide).
DIALECT_OF_FORMAT: Final = {FORMAT_MQRFH: Dialect.MQRFH, FORMAT_MQRFH2: Dialect.MQRFH2}
FORMAT_OF_DIALECT: Final = {dialect: format for format, dialect in DIALECT_OF_FORMAT.items()}

#: A wrong command's name is repeated in the answer up to this length: twice that of an object name.
_VERB_CHARACTERS: Final = 96
_COMMAND: Final = re.compile(r'(?:^| )MQPSCommand +([^ "\0]+)')


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CommandHeader:
    """A header chain with a command. `data` are its bytes, all that stands in front of the body.

    `place` is the index in the chain of the header that carries the command; `format`, character set and encoding are
    those of the MQMD, which describe the first header. `echo` is the command as an answer repeats it.
    """

    command: Command
    dialect: Dialect
    chain: HeaderChain
    place: int
    data: bytes
    format: bytes
    coded_char_set_id: int
    encoding: int
    echo: bytes

    @property
    def verb(self) -> str:
        """The command's name on the wire."""
        return self.command.verb


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnreadableCommand:
    """A message that wants to be a command and is none. `verb` is what it calls itself, as far as that can be read."""

    error: MappingError
    dialect: Dialect
    verb: str = ""
    echo: bytes = b""


def read_received(message: Message) -> CommandHeader | UnreadableCommand:
    """Reads the command of a message whose MQMD.Format is one of DIALECT_OF_FORMAT."""
    descriptor = message.descriptor
    try:
        chain = read_header_chain(
            message.body,
            format=descriptor.format,
            coded_char_set_id=descriptor.coded_char_set_id,
            encoding=descriptor.encoding,
        )
    except MappingError as error:
        return UnreadableCommand(error=error, dialect=DIALECT_OF_FORMAT[descriptor.format])
    try:
        return _read_command(message, chain)
    except MappingError as error:
        return _unreadable(message, chain, error)


def _read_command(message: Message, chain: HeaderChain) -> CommandHeader:
    command = read_command(chain)
    folder, header = find_command(chain)
    descriptor = message.descriptor
    return CommandHeader(
        command=command,
        dialect=Dialect.MQRFH if folder is None else Dialect.MQRFH2,
        chain=chain,
        place=_place_of(chain, folder, header),
        data=message.body[: chain.body_offset],
        format=descriptor.format,
        coded_char_set_id=descriptor.coded_char_set_id,
        encoding=descriptor.encoding,
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
    """What an MQRFH calls itself, also where its string cannot be taken apart to the end."""
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
