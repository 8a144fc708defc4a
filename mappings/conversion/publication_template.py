"""The headers of publications that differ in topic and properties alone, without going through the fields each time.

Step 4 on the way of a PUBLISH: a gateway writes the same command again and again. Only the topic, what follows the
command, the padding and the lengths in front differ. `write_command` writes one such header, and the bytes of others
are put together around their topics. A topic that would have to be escaped or quoted goes through `write_command`
itself, and so does a long one.
"""

from dataclasses import replace
from typing import Final

from mappings.commands.command import Dialect, Publish, write_command
from mappings.headers.chain import FORMAT_NONE
from mappings.headers.name_value import NameValues, format_name_value_string

#: Topics of more characters go through `write_command`, which refuses those that MQ cannot carry.
LONGEST_TOPIC_CHARACTERS: Final = 1_024
_SAMPLES: Final = ("x", "y")
_STRUC_LENGTH_OFFSET: Final = 8
_MQRFH_BYTES: Final = 32
#: The fixed part of an MQRFH2 ends with the length of its first folder.
_MQRFH2_BYTES: Final = 40
_LENGTH_BYTES: Final = 4
_PADDING: Final = (b"", b" ", b"  ", b"   ")


class PublicationTemplate:
    """Writes the header of `publish` with another topic, in UTF-8 and little-endian, as `write_command` would.

    `publish` names one topic, and the others are put in its place. `body_format`: of the payload behind
    it. Raises what `write_command` raises.
    """

    __slots__ = ("_after", "_before", "_body_format", "_dialect", "_publish", "_rest", "_start")

    def __init__(self, publish: Publish, dialect: Dialect, body_format: bytes = FORMAT_NONE) -> None:
        self._publish = publish
        self._body_format = body_format
        self._dialect = dialect
        (topic,) = publish.topics
        self._written(topic, (), ())
        first, second = [self._written(sample, (), ()) for sample in _SAMPLES]
        place = next(at for at, (one, other) in enumerate(zip(first, second, strict=True)) if one != other)
        begins_at, lengths_end = (
            (_MQRFH2_BYTES, _MQRFH2_BYTES - _LENGTH_BYTES) if dialect is Dialect.MQRFH2 else (_MQRFH_BYTES,) * 2
        )
        #: The fixed part in front of StrucLength and behind it, and what stands around the topic.
        self._start = first[:_STRUC_LENGTH_OFFSET]
        self._rest = first[_STRUC_LENGTH_OFFSET + _LENGTH_BYTES : lengths_end]
        self._before = first[begins_at:place]
        self._after = first[place + 1 :].rstrip(b" ")

    def header(self, topic: str, *, folders: tuple[str, ...] = (), data: NameValues = ()) -> bytes:
        """The header for a topic. `folders` follow psc in an MQRFH2, `data` follow the command in an MQRFH."""
        if self._dialect is Dialect.MQRFH2:
            if data or not _is_plain_in_folder(topic):
                return self._written(topic, folders, data)
            return self._mqrfh2(topic.encode(), folders)
        if folders or not _is_plain_in_string(topic):
            return self._written(topic, folders, data)
        return self._mqrfh(topic.encode(), data)

    def read(self, header: bytes) -> tuple[str, str] | None:
        """Topic and folder of a header that this template has put together; None for any other header.

        It believes no byte: it writes the header again, and compares. A header with `data` is another one.
        """
        is_mqrfh2 = self._dialect is Dialect.MQRFH2
        begins_at = _MQRFH2_BYTES if is_mqrfh2 else _MQRFH_BYTES
        ends_at = len(header)
        if is_mqrfh2:
            ends_at = begins_at + int.from_bytes(header[begins_at - _LENGTH_BYTES : begins_at], "little")
        named = header[begins_at:ends_at].rstrip(b" ")
        topic_ends_at = len(named) - len(self._after)
        if not header.startswith(self._start) or not named.endswith(self._after):
            return None
        try:
            topic = named[len(self._before) : topic_ends_at].decode()
            folder = header[ends_at + _LENGTH_BYTES :].rstrip(b" ").decode()
        except UnicodeDecodeError:
            return None
        if is_mqrfh2:
            is_own = _is_plain_in_folder(topic) and self._mqrfh2(topic.encode(), (folder,) if folder else ()) == header
        else:
            is_own = _is_plain_in_string(topic) and self._mqrfh(topic.encode(), ()) == header
        return (topic, folder) if is_own else None

    def _mqrfh2(self, topic: bytes, folders: tuple[str, ...]) -> bytes:
        psc_bytes = len(self._before) + len(topic) + len(self._after)
        padding = _PADDING[-psc_bytes % 4]
        psc_bytes += len(padding)
        behind = b"".join([_folder(each) for each in folders]) if folders else b""
        return b"".join(
            (
                self._start,
                (_MQRFH2_BYTES + psc_bytes + len(behind)).to_bytes(_LENGTH_BYTES, "little"),
                self._rest,
                psc_bytes.to_bytes(_LENGTH_BYTES, "little"),
                self._before,
                topic,
                self._after,
                padding,
                behind,
            )
        )

    def _mqrfh(self, topic: bytes, data: NameValues) -> bytes:
        behind = b" " + format_name_value_string(data).encode() if data else b""
        string_bytes = len(self._before) + len(topic) + len(self._after) + len(behind)
        padding = _PADDING[-string_bytes % 4]
        return b"".join(
            (
                self._start,
                (_MQRFH_BYTES + string_bytes + len(padding)).to_bytes(_LENGTH_BYTES, "little"),
                self._rest,
                self._before,
                topic,
                self._after,
                behind,
                padding,
            )
        )

    def _written(self, topic: str, folders: tuple[str, ...], data: NameValues) -> bytes:
        command = replace(self._publish, topics=(topic,), data=self._publish.data + data)
        return write_command(command, self._dialect, body_format=self._body_format, extra_folders=folders)


def _folder(folder: str) -> bytes:
    """A folder with its length in front, padded with blanks."""
    text = folder.encode()
    text += _PADDING[-len(text) % 4]
    return len(text).to_bytes(_LENGTH_BYTES, "little") + text


def _is_plain_in_folder(topic: str) -> bool:
    return (
        0 < len(topic) <= LONGEST_TOPIC_CHARACTERS
        and topic.isprintable()
        and (topic.isascii() or max(topic) <= "\uffff")
        and "&" not in topic
        and "<" not in topic
        and ">" not in topic
    )


def _is_plain_in_string(topic: str) -> bool:
    return (
        0 < len(topic) <= LONGEST_TOPIC_CHARACTERS
        and topic.isprintable()
        and " " not in topic
        and '"' not in topic
        and "%" not in topic
        and "*" not in topic
        and "?" not in topic
    )
