"""INITIAL_DATA: what each side can do, offered by the client and answered by the queue manager.

      0  4  `ID  `                                    102  1  error flags 2
      4  1  FAP level                                 103  1  reserved
      5  1  capability flags 1, 6 "E" flags 1         104  2  header compression: 00 FF is none
      7  1  error flags 1                             106 16  message compression: 00 FF is none
      8  2  reserved                                  122  2  reserved
     10  2  messages per batch                        124  4  TLS key reset count
     12  4  transmission size                         --- from level 9
     16  4  maximum message length                    128  4  conversations per socket
     20  4  sequence wrap                             132  1  capability flags 3, 133 "E" flags 3
     24 20  channel name                              134  2  reserved
     44  1  capability flags 2, 45 "E" flags 2        136  4  process identifier, 140 thread, 144 trace
     46  2  CCSID                                     148 12  product identifier
     48 48  queue manager name                        --- from level 10
     --- from level 4                                 160 48  queue manager identifier
     96  4  heartbeat interval (s)                    --- from level 13
     --- from level 8                                 208 20  password protection: numbers of 2 bytes, FFFF ends
    100  2  length of what follows                    228 12  random bytes

Source: IBM MQ's client as it was observed (com.ibm.mq.allclient 9.4.5.0); names: Wireshark's MQ dissector.
"""

import struct
from dataclasses import dataclass, replace
from enum import IntFlag
from typing import ClassVar, Final, Self

from mq_adapters.client_channel.errors import ChannelProtocolError, StatusCode
from mq_adapters.client_channel.fields import BodyReader, Record, byte, octets, reserved, short, text, unsigned
from mq_adapters.client_channel.segments import ISO_8859_1, LARGEST_SEGMENT_BYTES, ByteOrder

LOWEST_LEVEL: Final = 4
HIGHEST_LEVEL: Final = 13
#: The highest level at which a client sends its password in clear although nothing protects the connection.
CLEAR_PASSWORD_LEVEL: Final = 12
#: At this level a client takes its own number of conversations, because the answer has no place for one.
_LEVEL_WITHOUT_NUMBER: Final = 8
#: Length of the structure from each level on.
_LENGTHS: Final = {13: 240, 10: 208, 9: 160, 8: 128, 4: 100, 0: 96}
_WHOLE_BYTES: Final = 240
_LENGTH_AT: Final = 100
_BEHIND_LENGTH: Final = 102
_LEVEL_WITH_CONVERSATIONS: Final = 9
#: Our choice: a smaller transmission size cuts calls into more segments than anybody wants.
SMALLEST_TRANSMISSION_SIZE: Final = 1_024


class Capability1(IntFlag):
    """Capability flags 1."""

    MESSAGE_SEQUENCE = 0x01
    CONVERSION_CAPABLE = 0x02
    SPLIT_MESSAGES = 0x04
    REQUEST_INITIATION = 0x08
    REQUEST_SECURITY = 0x10
    MQ_REQUEST = 0x20
    SVRCONN_SECURITY = 0x40
    RUNTIME_APPLICATION = 0x80

    #: What an MQI channel has.
    OF_CLIENT_CHANNEL = CONVERSION_CAPABLE | SPLIT_MESSAGES | MQ_REQUEST


class Capability2(IntFlag):
    """Capability flags 2."""

    DISTRIBUTION_LISTS = 0x01
    FAST_MESSAGES_REQUIRED = 0x02
    RESPONDER_CONVERSION = 0x04
    DUAL_UNIT_OF_WORK = 0x08
    XA_REQUEST = 0x10
    XA_RUNTIME_APPLICATION = 0x20
    SPI_REQUEST = 0x40
    TRACE_ROUTE = 0x80

    OF_CLIENT_CHANNEL = DISTRIBUTION_LISTS | XA_REQUEST | SPI_REQUEST


class Capability3(IntFlag):
    """Capability flags 3."""

    MESSAGE_PROPERTIES = 0x01
    MULTICAST = 0x02
    PROPERTIES_INTERNAL_SEPARATE = 0x04
    MULTIPLEXED_SYNCHRONOUS_GET = 0x08
    PROTECTION_ALGORITHMS = 0x10
    GENERATE_CONNECTION_TAG = 0x20


#: `password_protection` that asks for clear passwords. A client gives one only on TLS, or below level 13.
CLEAR_PASSWORDS: Final = b"\0\0".ljust(20, b"\xff")


@dataclass(frozen=True, slots=True, kw_only=True)
class InitialData(Record):
    """INITIAL_DATA of either side. Fields that its level does not have are zero or blank.

    `transmission_size` is the length of the largest segment. With `conversations_per_socket` 0 the socket has one
    conversation, and no segment has its number. `password_protection` is a list of numbers of two bytes. 0 is none, and
    1 is the algorithm that IBM's client has, which is not published: nobody here can read a password under it.
    """

    STRUC_ID: ClassVar[bytes] = b"ID  "

    level: int = byte(HIGHEST_LEVEL)
    capabilities_1: int = byte(Capability1.OF_CLIENT_CHANNEL)
    e_capabilities_1: int = byte()
    errors_1: int = byte()
    reserved_1: bytes = reserved(2)
    messages_per_batch: int = short()
    transmission_size: int = unsigned(LARGEST_SEGMENT_BYTES)
    maximum_message_length: int = unsigned()
    sequence_wrap: int = unsigned()
    channel_name: str = text(20)
    capabilities_2: int = byte(Capability2.OF_CLIENT_CHANNEL)
    e_capabilities_2: int = byte()
    ccsid: int = short(ISO_8859_1)
    queue_manager_name: str = text(48)
    heartbeat_interval_s: int = unsigned()
    errors_2: int = byte(behind=2)
    reserved_2: bytes = reserved(1)
    header_compression: bytes = octets(2, b"\x00\xff")
    message_compression: bytes = octets(16, b"\x00".ljust(16, b"\xff"))
    reserved_3: bytes = reserved(2)
    tls_key_reset_count: int = unsigned()
    conversations_per_socket: int = unsigned()
    capabilities_3: int = byte()
    e_capabilities_3: int = byte()
    reserved_4: bytes = reserved(2)
    process_identifier: int = unsigned()
    thread_identifier: int = unsigned(1)
    trace_identifier: int = unsigned(1)
    product_identifier: str = text(12)
    queue_manager_identifier: str = text(48)
    password_protection: bytes = octets(20, CLEAR_PASSWORDS)
    random_bytes: bytes = octets(12)

    @classmethod
    def read(cls, body: BodyReader) -> Self:
        """Reads as much as the level has. Raises ChannelProtocolError if less is there; more is not read."""
        data = body.take(min(body.left, _WHOLE_BYTES), "INITIAL_DATA")
        whole = BodyReader(data.ljust(_WHOLE_BYTES, b"\0"), body.byte_order)
        initial_data = super(InitialData, cls).read(whole)
        if len(data) < (needed := length_of(initial_data.level)):
            raise ChannelProtocolError(
                StatusCode.PROTOCOL_LENGTH_ERROR,
                f"INITIAL_DATA of level {initial_data.level} has {len(data)} bytes, not {needed}",
            )
        return initial_data

    def write(self, byte_order: ByteOrder) -> bytes:
        """As many bytes as the level has."""
        length = length_of(self.level)
        whole = bytearray(super(InitialData, self).write(byte_order))
        struct.pack_into(f"{byte_order.code}H", whole, _LENGTH_AT, max(0, length - _BEHIND_LENGTH))
        return bytes(whole[:length])


def length_of(level: int) -> int:
    """The length of the structure at a level."""
    return next(length for lowest, length in _LENGTHS.items() if level >= lowest)


def negotiate(offer: InitialData, ours: InitialData) -> InitialData:
    """The answer to a client: the lower level, the smaller sizes, its channel, and all else as `ours` has it.

    Level 8 becomes 7. Raises ChannelProtocolError, whose status code is for the refusal, where nothing fits both.
    """
    if not offer.capabilities_1 & Capability1.MQ_REQUEST:
        raise ChannelProtocolError(StatusCode.CHANNEL_WRONG_TYPE, "a message channel asks for a connection of a client")
    level = min(offer.level, ours.level)
    level -= level == _LEVEL_WITHOUT_NUMBER
    if level < LOWEST_LEVEL:
        raise ChannelProtocolError(
            StatusCode.FAP_LEVEL, f"a client of level {offer.level}; {LOWEST_LEVEL} is the lowest"
        )
    transmission_size = min(offer.transmission_size, ours.transmission_size)
    if transmission_size < SMALLEST_TRANSMISSION_SIZE:
        raise ChannelProtocolError(StatusCode.NEGOTIATION_FAILED, f"a transmission size of {transmission_size} bytes")
    shared = min(offer.conversations_per_socket, ours.conversations_per_socket)
    return replace(
        ours,
        level=level,
        transmission_size=transmission_size,
        maximum_message_length=min(offer.maximum_message_length, ours.maximum_message_length),
        channel_name=offer.channel_name,
        conversations_per_socket=shared if level >= _LEVEL_WITH_CONVERSATIONS else 0,
    )
