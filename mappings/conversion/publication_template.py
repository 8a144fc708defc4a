"""The headers of publications that differ in their topic alone, built without going through the fields each time.

Step 4 on the way of a PUBLISH: a route of the bridge writes the same command again and again. All that depends on the
topic is the text itself, the padding behind it and the lengths in front, and those depend on its length alone. So the
bytes around a topic are worked out once for each length, by `write_command`; a topic that would have to be escaped or
quoted goes through `write_command` itself. No topic is remembered.
"""

from dataclasses import replace
from typing import Final

from mappings.commands.command import FORMAT_NONE, Dialect, Publish, write_command
from mappings.headers.charset import ENCODING_REVERSED, UTF_8, ascii_based_codec

MAXIMUM_REMEMBERED_BYTES: Final = 1_024  # of a topic; the bytes around longer ones are worked out each time


class PublicationTemplate:
    """Writes the header of `publish` with another topic, as `write_command` would with the same arguments.

    `publish` names one topic, in whose place the others are put. Raises what `write_command` raises.
    """

    __slots__ = ("_arguments", "_around", "_codec", "_dialect", "_is_plain", "_publish")

    def __init__(
        self,
        publish: Publish,
        dialect: Dialect,
        *,
        coded_char_set_id: int = UTF_8,
        encoding: int = ENCODING_REVERSED,
        body_format: bytes = FORMAT_NONE,
        body_coded_char_set_id: int = UTF_8,
        body_encoding: int = ENCODING_REVERSED,
        extra_folders: tuple[str, ...] = (),
    ) -> None:
        self._publish = publish
        self._dialect = dialect
        self._arguments = (
            coded_char_set_id,
            encoding,
            body_format,
            body_coded_char_set_id,
            body_encoding,
            extra_folders,
        )
        codec = "utf-8" if dialect is Dialect.MQRFH2 else ascii_based_codec(coded_char_set_id)
        self._codec = codec or "ascii"
        self._is_plain = _is_plain_in_folder if dialect is Dialect.MQRFH2 else _is_plain_in_string
        if codec is None:
            self._is_plain = _is_never_plain
        self._around: dict[int, tuple[bytes, bytes]] = {}
        (topic,) = publish.topics
        self._written(topic)

    def header(self, topic: str) -> bytes:
        """The header for a topic."""
        if self._is_plain(topic):
            try:
                text = topic.encode(self._codec)
            except UnicodeEncodeError:
                return self._written(topic)
            around = self._around.get(len(text))
            if around is not None:
                return around[0] + text + around[1]
            self._remember(len(text))
        return self._written(topic)

    def _remember(self, length_bytes: int) -> None:
        """What stands around topics of that length: the header of two such topics, where it is the same."""
        if not 0 < length_bytes <= MAXIMUM_REMEMBERED_BYTES:
            return
        first, second = self._written("x" * length_bytes), self._written("y" * length_bytes)
        start = next(at for at, (one, other) in enumerate(zip(first, second, strict=True)) if one != other)
        self._around[length_bytes] = first[:start], first[start + length_bytes :]

    def _written(self, topic: str) -> bytes:
        coded_char_set_id, encoding, body_format, body_coded_char_set_id, body_encoding, folders = self._arguments
        return write_command(
            replace(self._publish, topics=(topic,)),
            self._dialect,
            coded_char_set_id=coded_char_set_id,
            encoding=encoding,
            body_format=body_format,
            body_coded_char_set_id=body_coded_char_set_id,
            body_encoding=body_encoding,
            extra_folders=folders,
        )


def _is_plain_in_folder(topic: str) -> bool:
    return topic.isprintable() and "&" not in topic and "<" not in topic and ">" not in topic


def _is_plain_in_string(topic: str) -> bool:
    return (
        topic.isprintable()
        and " " not in topic
        and '"' not in topic
        and "%" not in topic
        and "*" not in topic
        and "?" not in topic
    )


def _is_never_plain(topic: str) -> bool:
    """In a page that does not extend ASCII."""
    return False
