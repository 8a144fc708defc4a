"""A compressed segment from outside: what is no whole frame is an error of ours, in bounded memory, in every reader."""

import gzip
import io
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import zstandard

from gateway.audit_trail.segment_files import SegmentFile as TrailFile
from spark_audit.facts.pieces import SegmentPiece
from spark_audit.trail import segment_forms
from spark_audit.trail.segment_forms import CLOSED, GZIP, ZSTANDARD, DamagedSegment, text_of
from spark_audit.verify import Verdict, verify

NAME = "000000000001-20261120T07"
LINES = b"".join(b'{"sequence":%d,"topic":"plant/pump-7/bar"}\n' % number for number in range(20_000))
MIB = 1024 * 1024


def _compressed(data: bytes, times: int = 1) -> bytes:
    """One frame, which says how long it is: so many times these bytes, which are never all in memory."""
    frame = zstandard.ZstdCompressor(level=3, write_checksum=True).compressobj(size=len(data) * times)
    return b"".join(frame.compress(data) for _ in range(times)) + frame.flush()


FRAME = _compressed(LINES)
#: A window of 2 ** (10 + 17) bytes is asked for, and one block without compression is the last (RFC 8878, 3.1.1).
WIDE_FRAME = bytes.fromhex("28b52ffd 00 88 490000") + b"one line\n"
#: Each damage with a part of what is said of it.
DAMAGES = {
    "cut": (FRAME[:-20], "ends within its frame"),
    "cut in its header": (FRAME[:3], "ends within its frame"),
    "cut before its checksum": (FRAME[:-4], "ends within its frame"),
    "empty": (b"", "ends within its frame"),
    "another checksum": (FRAME[:-4] + bytes(4), "checksum"),
    "a bit in the middle": (FRAME[:900] + bytes([FRAME[900] ^ 1]) + FRAME[901:], "decompressor error"),
    "no frame": (LINES, "decompress"),
    "something behind it": (FRAME + b"more", "bytes stand behind its frame"),
    "a step behind it": (FRAME + bytes(5000), "bytes stand behind its frame"),
    "two frames": (FRAME + FRAME, "bytes stand behind its frame"),
    "a frame that is skipped, then one": (b"\x50\x2a\x4d\x18\x04\0\0\0abcd" + FRAME, "bytes stand behind its frame"),
    "a window of 128 MiB": (WIDE_FRAME, "memory"),
}


def _read(data: bytes, ending: str) -> bytes:
    with text_of(io.BytesIO(data), ending) as text:
        return b"".join(iter(lambda: text.read(70_000), b""))


@pytest.mark.parametrize(
    ("ending", "compress"),
    [(CLOSED, bytes), (GZIP, partial(gzip.compress, compresslevel=1)), (ZSTANDARD, _compressed)],
    ids=["plain", "gzip", "zstd"],
)
@pytest.mark.parametrize(
    ("text", "times"), [(b"", 1), (b"\n", 1), (LINES, 1), (LINES, 100)], ids=["nothing", "one byte", "lines", "large"]
)
def test_each_form_gives_the_same_lines(
    ending: str, compress: Callable[[bytes], bytes], text: bytes, times: int
) -> None:
    data = text * times
    assert _read(compress(data), ending) == data


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_not_one_whole_frame_is_damaged_to_every_reader(damage: str, tmp_path: Path) -> None:
    data, said = DAMAGES[damage]
    with pytest.raises(DamagedSegment, match=said):
        _read(data, ZSTANDARD)
    path = tmp_path / (NAME + ZSTANDARD)
    path.write_bytes(data)
    file = TrailFile.of(path)
    assert file is not None
    with pytest.raises(OSError, match="the compressed file is damaged"):
        file.read()
    (*_, last) = SegmentPiece(trail="", path=path).lines()
    assert last.record is None
    assert (verify(tmp_path).verdict, verify(tmp_path).records) != (Verdict.INTACT, 20_000)


def test_bytes_behind_a_frame_are_seen_where_a_step_ends_with_it(monkeypatch) -> None:
    monkeypatch.setattr(segment_forms, "_STEP_BYTES", len(FRAME))
    assert _read(FRAME, ZSTANDARD) == LINES
    with pytest.raises(DamagedSegment, match="bytes stand behind its frame"):
        _read(FRAME + b"more", ZSTANDARD)


def test_a_frame_that_is_cut_anywhere_is_damaged() -> None:
    short = _compressed(LINES[:500])
    for length in range(len(short)):
        with pytest.raises(DamagedSegment):
            _read(short[:length], ZSTANDARD)


@pytest.mark.parametrize("byte", [b"a", b"\n", b"\0"])
def test_a_bomb_costs_bounded_memory(byte: bytes) -> None:
    bomb = _compressed(byte * MIB, times=512)
    assert len(bomb) < 64 * 1024
    tracemalloc.start()
    with text_of(io.BytesIO(bomb), ZSTANDARD) as text:
        assert sum(map(len, iter(lambda: text.read(MIB), b""))) == 512 * MIB
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 128 * MIB
