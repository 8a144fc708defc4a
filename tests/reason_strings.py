"""Reason Strings taken out of what a server of MQTT 5 sends, so that a test's bytes say what it is about.

Which refusal says what has tests of its own. Nothing here is the gateway's code: it reads packets by the tables of
MQTT 5.0 sections 2.2.2.2 and 3. What has no Reason String is given back as it came.
"""

REASON_STRING = 0x1F
#: Where the properties begin behind the fixed header, by packet type: CONNACK, PUBACK to PUBCOMP, SUBACK, UNSUBACK,
#: DISCONNECT.
_OFFSETS = {2: 2, 4: 3, 5: 3, 6: 3, 7: 3, 9: 2, 11: 2, 14: 1}
#: Of these packets nothing is left of empty properties, not even their length.
_SHORT = frozenset({4, 5, 6, 7, 14})
_TEXT, _PAIR = -1, -2
_LENGTHS = {0x11: 4, 0x12: _TEXT, 0x13: 2, 0x15: _TEXT, 0x16: _TEXT, 0x1A: _TEXT, 0x1C: _TEXT, 0x1F: _TEXT} | {
    0x21: 2, 0x22: 2, 0x24: 1, 0x25: 1, 0x26: _PAIR, 0x27: 4, 0x28: 1, 0x29: 1, 0x2A: 1
}  # fmt: skip


def split_packets(data: bytes) -> tuple[list[bytes], bytes]:
    """Whole packets, and what is left behind them."""
    packets = []
    while (end := _end(data)) is not None:
        packets.append(data[:end])
        data = data[end:]
    return packets, data


def without_reason_string(packet: bytes) -> tuple[bytes, str]:
    """A packet without its Reason String, and that; "" where it has none."""
    offset = _OFFSETS.get(packet[0] >> 4)
    _, body_start = _number(packet, 1)
    body = packet[body_start:]
    if offset is None or len(body) <= offset:
        return packet, ""
    length, start = _number(body, offset)
    properties, rest = body[start : start + length], body[start + length :]
    kept, told = _properties(properties) if start + length <= len(body) else (properties, "")
    if not told:
        return packet, ""
    body = body[:offset] + (b"" if not kept and packet[0] >> 4 in _SHORT else _encoded(len(kept)) + kept) + rest
    return packet[:1] + _encoded(len(body)) + body, told


def _properties(data: bytes) -> tuple[bytes, str]:
    kept, told, place = b"", "", 0
    while place < len(data):
        kind = _LENGTHS.get(data[place])
        if kind is None:
            return data, ""
        end = place + 1 + max(kind, 0)
        for _ in range(max(-kind, 0)):
            end += 2 + int.from_bytes(data[end : end + 2], "big")
        if data[place] == REASON_STRING:
            told = data[place + 3 : end].decode()
        else:
            kept += data[place:end]
        place = end
    return kept, told


def _end(data: bytes) -> int | None:
    if len(data) < 2 or all(byte & 0x80 for byte in data[1:5]):
        return None
    length, start = _number(data, 1)
    return start + length if start + length <= len(data) else None


def _number(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(data):
        value |= (data[place] & 0x7F) << shift
        shift, place = shift + 7, place + 1
        if not data[place - 1] & 0x80:
            break
    return value, place


def _encoded(number: int) -> bytes:
    data = b""
    while number > 0x7F:
        data, number = data + bytes((number & 0x7F | 0x80,)), number >> 7
    return data + bytes((number,))


def plain(data: bytes) -> bytes:
    """What was sent, without Reason Strings."""
    packets, rest = split_packets(data)
    return b"".join(without_reason_string(packet)[0] for packet in packets) + rest
