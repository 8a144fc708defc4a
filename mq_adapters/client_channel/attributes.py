"""Parameters of MQINQ and MQSET: selectors, and the attributes that they select.

     0  4  number of selectors              12     selectors, 4 bytes each; in the reply to MQINQ and in MQSET
     4  4  number of integers                      integers, 4 bytes each
     8  4  length of the characters                characters

A selector below 2001 (MQCA_FIRST) selects an integer. Both lists are in the order of their selectors.
Source: IBM MQ, "MQINQ - Inquire object attributes"; layout: IBM MQ's client as it was observed
(com.ibm.mq.allclient 9.4.5.0).
"""

from dataclasses import dataclass
from typing import Final, Self

from mq_adapters.client_channel.fields import BodyReader, invalid, write_integers
from mq_adapters.client_channel.parameters import Parameters, number
from mq_adapters.client_channel.segments import ByteOrder

MQCA_FIRST: Final = 2001
#: A queue manager refuses more with 2065 to 2067; a client that asks for more is not believed.
MOST_SELECTORS: Final = 256
#: Our choice: 1,024 bytes for each of so many selectors.
LONGEST_CHAR_ATTRS: Final = 262_144


@dataclass(frozen=True, slots=True, kw_only=True)
class MqinqRequest:
    """MQINQ: what is asked, and how many integers and characters the client has room for."""

    selectors: tuple[int, ...] = ()
    int_attr_count: int = 0
    char_attr_length: int = 0

    @classmethod
    def read(cls, body: BodyReader) -> Self:
        """Reads counts and selectors. Raises ChannelProtocolError for more than any object has."""
        selector_count, int_attr_count, char_attr_length = _read_counts(body)
        return cls(
            selectors=body.integers(selector_count, "selectors"),
            int_attr_count=int_attr_count,
            char_attr_length=char_attr_length,
        )

    def write(self, byte_order: ByteOrder) -> bytes:
        counts = len(self.selectors), self.int_attr_count, self.char_attr_length
        return write_integers(byte_order, *counts, *self.selectors)

    def reply(self, int_attrs: tuple[int, ...] = (), char_attrs: bytes = b"") -> "Attributes":
        """The reply: exactly as much as the client has room for, filled up with zeros and blanks."""
        missing = self.int_attr_count - len(int_attrs)
        return Attributes(
            selectors=self.selectors,
            int_attrs=(int_attrs + (0,) * missing)[: self.int_attr_count],
            char_attrs=char_attrs.ljust(self.char_attr_length)[: self.char_attr_length],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Attributes:
    """The reply to MQINQ, and the request of MQSET: selectors with their attributes."""

    selectors: tuple[int, ...] = ()
    int_attrs: tuple[int, ...] = ()
    char_attrs: bytes = b""

    @classmethod
    def read(cls, body: BodyReader) -> Self:
        """Reads counts, selectors and attributes. Raises ChannelProtocolError for a count that lies."""
        selector_count, int_attr_count, char_attr_length = _read_counts(body)
        return cls(
            selectors=body.integers(selector_count, "selectors"),
            int_attrs=body.integers(int_attr_count, "integer attributes"),
            char_attrs=body.take(char_attr_length, "character attributes"),
        )

    def write(self, byte_order: ByteOrder) -> bytes:
        counts = len(self.selectors), len(self.int_attrs), len(self.char_attrs)
        return write_integers(byte_order, *counts, *self.selectors, *self.int_attrs) + self.char_attrs


@dataclass(frozen=True, slots=True, kw_only=True)
class MqsetReply(Parameters):
    """The reply to MQSET: the counts of its request."""

    selector_count: int = number()
    int_attr_count: int = number()
    char_attr_length: int = number()


def _read_counts(body: BodyReader) -> tuple[int, int, int]:
    selectors, integers, characters = body.integers(3, "counts of attributes")
    if max(selectors, integers) > MOST_SELECTORS or min(selectors, integers, characters) < 0:
        invalid(f"a call has {selectors} selectors and {integers} integer attributes")
    if characters > LONGEST_CHAR_ATTRS:
        invalid(f"a call has {characters} bytes of character attributes")
    return selectors, integers, characters
