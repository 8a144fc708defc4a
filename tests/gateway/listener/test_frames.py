"""Frames of WebSockets: the examples of RFC 6455 section 5.7, cut anywhere, and what may not be."""

import random

import pytest

from gateway.listener.frames import CloseCode, FrameError, FrameReader, Opcode, header, unmask

MASK = bytes.fromhex("37FA213D")
#: Section 5.7, "Hello" masked; there it is a text message, 81.
HELLO = bytes.fromhex("82 85 37FA213D 7F9F4D5158")
PING = bytes.fromhex("89 85 37FA213D 7F9F4D5158")
PONG = bytes.fromhex("8A 85 37FA213D 7F9F4D5158")
#: The same word as two frames, masked with zeros: "Hel" and "lo".
FRAGMENTS = bytes.fromhex("02 83 00000000 48656C") + bytes.fromhex("80 82 00000000 6C6F")
CLOSE = bytes.fromhex("88 82 00000000 03E8")
EVERYTHING = HELLO + PING + FRAGMENTS + HELLO + PONG + CLOSE
MAXIMUM = 100_000


def _joined(events: list[tuple[Opcode, bytes]]) -> list[tuple[Opcode, bytes]]:
    """Pieces of messages that follow each other, as one."""
    found: list[tuple[Opcode, bytes]] = []
    for opcode, payload in events:
        if opcode is Opcode.BINARY and found and found[-1][0] is Opcode.BINARY:
            found[-1] = (opcode, found[-1][1] + payload)
        else:
            found.append((opcode, payload))
    return found


def _read(*pieces: bytes, maximum: int = MAXIMUM) -> list[tuple[Opcode, bytes]]:
    reader = FrameReader(maximum)
    return _joined([event for piece in pieces for event in reader.receive_data(piece)])


WANTED = [
    (Opcode.BINARY, b"Hello"),
    (Opcode.PING, b"Hello"),
    (Opcode.BINARY, b"HelloHello"),
    (Opcode.PONG, b"Hello"),
    (Opcode.CLOSE, b"\x03\xe8"),
]


def test_the_examples_of_the_standard_are_read() -> None:
    assert _read(EVERYTHING) == WANTED


@pytest.mark.parametrize("place", range(1, len(EVERYTHING)))
def test_frames_that_are_cut_anywhere_are_read(place: int) -> None:
    assert _read(EVERYTHING[:place], EVERYTHING[place:]) == WANTED


def test_frames_are_read_byte_by_byte() -> None:
    assert _read(*(bytes((each,)) for each in EVERYTHING)) == WANTED


def test_half_a_message_is_given_out_as_it_comes() -> None:
    reader = FrameReader(MAXIMUM)
    assert list(reader.receive_data(bytes.fromhex("02 83 37FA213D 7F"))) == [(Opcode.BINARY, b"H")]
    assert list(reader.receive_data(bytes.fromhex("9F"))) == [(Opcode.BINARY, b"e")]
    assert list(reader.receive_data(bytes.fromhex("4D 80"))) == [(Opcode.BINARY, b"l")]


def test_a_control_frame_may_stand_between_the_frames_of_a_message() -> None:
    """Section 5.5."""
    assert _read(FRAGMENTS[:9] + PING + FRAGMENTS[9:]) == [
        (Opcode.BINARY, b"Hel"),
        (Opcode.PING, b"Hello"),
        (Opcode.BINARY, b"lo"),
    ]


@pytest.mark.parametrize(
    ("head", "length"),
    [("82 FE 0100", 256), ("82 FF 0000000000010000", 65_536), ("82 FF 0000000000000005", 5), ("82 80", 0)],
)
def test_each_form_of_the_length_is_read(head: str, length: int) -> None:
    """Section 5.7 has the first two. What is longer than need be says nothing wrong."""
    payload = random.Random(1).randbytes(length)
    frame = bytes.fromhex(head) + MASK + bytes(each ^ MASK[at % 4] for at, each in enumerate(payload))
    assert _read(frame, HELLO) == [(Opcode.BINARY, payload + b"Hello")]


@pytest.mark.parametrize("length", [0, 1, 3, 4, 5, 8, 1_001])
def test_a_mask_is_taken_off(length: int) -> None:
    """Section 5.3."""
    payload = random.Random(length).randbytes(length)
    assert unmask(payload, MASK) == bytes(each ^ MASK[at % 4] for at, each in enumerate(payload))


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("C2 80 00000000", CloseCode.PROTOCOL_ERROR),
        ("A2 80 00000000", CloseCode.PROTOCOL_ERROR),
        ("83 80 00000000", CloseCode.PROTOCOL_ERROR),
        ("8B 80 00000000", CloseCode.PROTOCOL_ERROR),
        ("82 05 48656C6C6F", CloseCode.PROTOCOL_ERROR),
        ("09 80 00000000", CloseCode.PROTOCOL_ERROR),
        ("89 FE 007E 00000000", CloseCode.PROTOCOL_ERROR),
        ("80 80 00000000", CloseCode.PROTOCOL_ERROR),
        ("02 80 00000000 82 80 00000000", CloseCode.PROTOCOL_ERROR),
        ("88 81 00000000 03", CloseCode.PROTOCOL_ERROR),
        ("88 82 00000000 03EC", CloseCode.PROTOCOL_ERROR),
        ("88 82 00000000 0000", CloseCode.PROTOCOL_ERROR),
        ("88 83 00000000 03E8 FF", CloseCode.INVALID_TEXT),
        ("81 85 37FA213D 7F9F4D5158", CloseCode.UNSUPPORTED_DATA),
        ("01 80 00000000", CloseCode.UNSUPPORTED_DATA),
        ("82 FF 00000000000186A1 00000000", CloseCode.MESSAGE_TOO_BIG),
        ("82 FF FFFFFFFFFFFFFFFF 00000000", CloseCode.MESSAGE_TOO_BIG),
    ],
    ids=[
        "first reserved bit",
        "second reserved bit",
        "opcode of no data frame",
        "opcode of no control frame",
        "not masked",
        "control frame in parts",
        "long control frame",
        "continuation of nothing",
        "message within a message",
        "half a close code",
        "close code that is never sent",
        "close code 0",
        "close reason that is no text",
        "text",
        "first part of a text",
        "one byte too long",
        "as long as can be said",
    ],
)
def test_what_may_not_be_is_refused_behind_what_may(frame: str, code: CloseCode) -> None:
    """Sections 5.2, 5.4, 5.5, 7.4.1; each as soon as it is there, however it is cut."""
    for pieces in ((HELLO + bytes.fromhex(frame),), tuple(bytes((each,)) for each in HELLO + bytes.fromhex(frame))):
        reader = FrameReader(MAXIMUM)
        found: list[tuple[Opcode, bytes]] = []

        def read(reader: FrameReader, pieces: tuple[bytes, ...], found: list[tuple[Opcode, bytes]]) -> None:
            for piece in pieces:
                found.extend(reader.receive_data(piece))

        with pytest.raises(FrameError) as raised:
            read(reader, pieces, found)
        assert raised.value.code is code
        assert _joined(found) == [(Opcode.BINARY, b"Hello")]


def test_the_parts_of_a_message_together_are_at_most_as_long_as_one_may_be() -> None:
    reader = FrameReader(5)
    assert list(reader.receive_data(FRAGMENTS)) == [(Opcode.BINARY, b"Hel"), (Opcode.BINARY, b"lo")]
    with pytest.raises(FrameError, match="longer than maximum_message_bytes"):
        list(reader.receive_data(bytes.fromhex("02 83 00000000 48656C 80 83 00000000")))


@pytest.mark.parametrize("seed", range(200))
def test_random_bytes_end_in_frames_or_in_our_error(seed: int) -> None:
    noise = random.Random(seed)
    reader = FrameReader(1_000)
    try:
        for _ in range(20):
            list(reader.receive_data(noise.randbytes(noise.randrange(1, 50))))
    except FrameError as error:
        assert error.code in CloseCode  # noqa: PT017  a reader that takes all of it is as good


@pytest.mark.parametrize(
    ("length", "head"),
    [(5, "82 05"), (125, "82 7D"), (126, "82 7E 007E"), (256, "82 7E 0100"), (65_536, "82 7F 0000000000010000")],
)
def test_what_is_sent_is_a_message_each_and_not_masked(length: int, head: str) -> None:
    """Sections 5.1, 5.7."""
    assert header(Opcode.BINARY, length) == bytes.fromhex(head)
