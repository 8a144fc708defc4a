"""A publication as a content filter sees it: MQMD fields, properties, and the elements of an XML body.

The body is parsed only if a filter asks for it, and once for all filters. A body with a document type (and so with
entities) is not parsed. Bytes and depth have limits. Properties are those of folder usr, and the pairs of an MQRFH
publisher, except pairs whose names begin with MQ.
Source: IBM MQ documentation, "NameValueData", the types of a property.
"""

from typing import Final
from xml.parsers import expat

from mappings.commands.command import Publish
from mappings.errors import MappingError
from mappings.headers.charset import decode_text
from mq_adapters.command_header import CommandHeader
from mq_adapters.message import Message
from mq_adapters.selection.conditions import ContentError, Reference, ReferenceSource, Value
from mq_adapters.selection.message_content import MessageContent, descriptor_value
from mq_adapters.selection.properties import property_value

#: Longer bodies are not parsed for a filter.
MAXIMUM_BODY_BYTES: Final = 262_144
#: The most elements inside each other. With the limit on bytes this bounds the memory of the paths to about 20 MiB.
MAXIMUM_DEPTH: Final = 32

Path = tuple[str, ...]


class PublicationContent:
    """The values of one publication, as conditions.Content asks for them."""

    def __init__(self, message: Message, published: CommandHeader) -> None:
        self._message = message
        #: The same message as a selector sees it.
        self.of_message = MessageContent(message)
        self._published = published
        self._properties: dict[str, Value] | None = None
        self._elements: dict[Path, str] | None = None

    def value(self, reference: Reference) -> Value:
        """The value of a reference; None if it is missing. ContentError if the body cannot be parsed."""
        if reference.source is ReferenceSource.MQMD:
            return descriptor_value(self._message, reference.path[0])
        if reference.source is ReferenceSource.PROPERTY:
            if self._properties is None:
                self._properties = _properties(self._published)
            return self._properties.get(reference.path[0])
        if self._elements is None:
            self._elements = _elements(self._body())
        return self._elements.get(reference.path)

    def _body(self) -> str:
        length = len(self._message.body) - len(self._published.data)
        if length > MAXIMUM_BODY_BYTES:
            raise ContentError(f"the body has {length} bytes; up to {MAXIMUM_BODY_BYTES} are parsed for a filter")
        try:
            return decode_text(self._message.body[len(self._published.data) :], self._published.body_coded_char_set_id)
        except MappingError as error:
            raise ContentError(f"the body is not text of its character set: {error}") from None


def _properties(published: CommandHeader) -> dict[str, Value]:
    assert isinstance(published.command, Publish)
    found: dict[str, Value] = {name: text for name, text in published.command.data if not name.startswith("MQ")}
    for folder in published.property_folders:
        try:
            elements = folder.elements
        except MappingError as error:
            raise ContentError(f"folder usr cannot be read: {error}") from None
        found.update((element.name, property_value(element)) for element in elements if not element.children)
    return found


def _elements(body: str) -> dict[Path, str]:
    """The text of each element, by the names on its path. If several have the same path, the first counts."""
    reader = _ElementReader()
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = reader.refuse
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    try:
        parser.Parse(body.rstrip("\0 ").encode(), True)
    except expat.ExpatError as error:
        raise ContentError(f"the body is not XML: {error}") from None
    except UnicodeEncodeError:
        raise ContentError("the body holds half a surrogate pair") from None
    return reader.found


class _ElementReader:
    """Collects the text of elements; prefixes of name spaces are left out."""

    def __init__(self) -> None:
        self.found: dict[Path, str] = {}
        self._path: list[str] = []
        self._texts: list[list[str]] = []

    def refuse(self, *_declaration: object) -> None:
        raise ContentError("the body has a document type, which is not read")

    def start(self, name: str, _attributes: dict[str, str]) -> None:
        if len(self._path) >= MAXIMUM_DEPTH:
            raise ContentError(f"the body has more than {MAXIMUM_DEPTH} elements inside each other")
        self._path.append(name.rpartition(":")[2])
        self._texts.append([])

    def end(self, _name: str) -> None:
        self.found.setdefault(tuple(self._path), "".join(self._texts.pop()))
        self._path.pop()

    def text(self, text: str) -> None:
        self._texts[-1].append(text)
