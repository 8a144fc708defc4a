"""Recognizes the header of a publication that the gateway has written in an earlier run.

A header that this process writes travels with its values (command_header.py), and they are not stored. To read a header
takes as long as to make ten copies of its message, and after a restart all that is retained would have to be read. Most
of these headers are those of plain PUBLISHes with RETAIN, which differ in topic and properties alone. Such a header is
compared with what this process would write today. If it is the same, so are its values.
"""

from functools import cache
from typing import Final

from mappings.commands.command import Publish
from mappings.commands.options import PublicationOption
from mappings.conversion.publication_template import PublicationTemplate
from mappings.headers.mqrfh2 import Folder
from mappings.table import Dialect
from mq_adapters.command_header import DIALECT_OF_FORMAT, PROPERTY_FOLDER, WrittenCommand
from mq_adapters.message import Message

#: The options of a PUBLISH with RETAIN, as the gateway writes it (gateway/bridge/commands/requests.py).
_OPTIONS: Final = {
    Dialect.MQRFH2: PublicationOption.RETAIN_PUBLICATION,
    Dialect.MQRFH: PublicationOption.RETAIN_PUBLICATION | PublicationOption.NO_REGISTRATION,
}
_LENGTH: Final = slice(8, 12)


def recognized_header(message: Message) -> WrittenCommand | None:
    """The header of a message with RetainPub that the gateway put; None where it must be read."""
    dialect = DIALECT_OF_FORMAT.get(message.descriptor.format)
    if dialect is None or not message.origin:
        return None
    data = message.body[: int.from_bytes(message.body[_LENGTH], "little")]
    found = _template(dialect).read(data)
    if found is None:
        return None
    topic, folder = found
    if folder and not folder.startswith(f"<{PROPERTY_FOLDER}>"):
        return None
    command = Publish(topics=(topic,), publication_options=_OPTIONS[dialect])
    folders = (Folder(name=PROPERTY_FOLDER, raw=folder.encode()),) if folder else ()
    return WrittenCommand(command, dialect, data, folders)


@cache
def _template(dialect: Dialect) -> PublicationTemplate:
    return PublicationTemplate(Publish(topics=("topic",), publication_options=_OPTIONS[dialect]), dialect)
