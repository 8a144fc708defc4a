"""Reads every header whose values travelled with its message, and compares: what was handed over, and what was read."""

import functools

from mappings.commands.response import read_response
from mappings.headers.chain import HeaderChain, read_header_chain
from mq_adapters.broker.received import ReadCommand, read_command_header
from mq_adapters.command_header import CommandHeader, WrittenCommand, WrittenResponse
from mq_adapters.message import KnownHeader, Message

#: How many headers were compared, by the class of what was handed over: a test that compares none proves nothing.
compared: dict[type, int] = {}


class HeaderDiffers(AssertionError):
    """The values that travelled with a message are not those that its bytes say."""


def compare_every_header() -> None:
    """From now on a header that is taken from a message as it was written is read as well, in this process."""
    taken = KnownHeader.of
    if getattr(taken, "is_compared", False):
        return

    @functools.wraps(taken)
    def compared_too(message: Message) -> KnownHeader | None:
        known = taken(message)
        if known is not None:
            compare(known, message)
        return known

    compared_too.is_compared = True  # type: ignore[attr-defined]
    KnownHeader.of = staticmethod(compared_too)  # type: ignore[assignment]


def compare(known: KnownHeader, message: Message) -> None:
    """HeaderDiffers unless the bytes of a message say what its writer says."""
    if isinstance(known, WrittenCommand):
        read = read_command_header(message)
        _expect(isinstance(read, ReadCommand), "is no command", read)
        assert isinstance(read, ReadCommand)
        for name in (
            "command",
            "dialect",
            "data",
            "format",
            "coded_char_set_id",
            "encoding",
            "fields",
            "echo",
            "property_folders",
            "body_coded_char_set_id",
        ):
            _expect(getattr(known, name) == getattr(read, name), name, (getattr(known, name), getattr(read, name)))
        _expect(
            WrittenCommand(known.command, known.dialect, known.data).chain == _chain(message) == read.chain,
            "chain",
            read.chain,
        )
        _expect(known.with_fields(known.fields) == known.data, "header written anew", known.data)
    elif isinstance(known, WrittenResponse):
        response = read_response(_chain(message))
        _expect(known.response == response, "response", (known.response, response))
        _expect(known.data == message.body, "response's bytes", message.body)
    else:
        _expect(not isinstance(known, CommandHeader), "read, and not written", known)
    compared[type(known)] = compared.get(type(known), 0) + 1


def _chain(message: Message) -> HeaderChain:
    descriptor = message.descriptor
    return read_header_chain(
        message.body,
        format=descriptor.format,
        coded_char_set_id=descriptor.coded_char_set_id,
        encoding=descriptor.encoding,
    )


def _expect(is_equal: bool, what: str, values: object) -> None:
    if not is_equal:
        raise HeaderDiffers(f"{what}: {values!r}")
