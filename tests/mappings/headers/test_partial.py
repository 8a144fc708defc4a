"""A header as far as it goes: on whole headers it says what the strict readers say, on damaged ones where they stop."""

import struct

import pytest

from mappings.headers.chain import HeaderPlace, read_header_chain, walk_headers
from mappings.headers.mqrfh import Mqrfh
from mappings.headers.mqrfh2 import Mqrfh2
from mappings.headers.partial import PlacedElement, read_partially
from tests.every_case import for_every
from tests.mappings.vectors import READABLE, Vector


def flattened(elements: tuple[PlacedElement, ...]) -> list[PlacedElement]:
    return [each for element in elements for each in (element, *flattened(element.children))]


@for_every(READABLE)
def test_on_a_whole_header_it_says_what_the_strict_readers_say(vector: Vector) -> None:
    chain = read_header_chain(vector.data, **vector.mqmd)  # type: ignore[arg-type]  # by name
    for header, place in zip(chain.headers, chain.places, strict=True):
        partial = read_partially(vector.data, place)
        fields = {field.name: field.value for field in partial.fields}
        assert fields["CodedCharSetId"] == header.coded_char_set_id
        assert fields["Encoding"] == header.encoding
        if isinstance(header, Mqrfh):
            assert fields["StrucLength"] == header.struc_length
            if not partial.errors:
                assert tuple((pair.name, pair.value) for pair in partial.pairs) == header.pairs
        if isinstance(header, Mqrfh2):
            named = [folder for folder in partial.folders if folder.name]
            assert [(each.name, each.offset) for each in named] == [(each.name, each.offset) for each in header.folders]
            for folder in header.folders:
                assert vector.data[folder.offset :].startswith(folder.raw)


@for_every(READABLE)
def test_each_element_stands_at_its_offset(vector: Vector) -> None:
    chain = read_header_chain(vector.data, **vector.mqmd)  # type: ignore[arg-type]  # by name
    for header, place in zip(chain.headers, chain.places, strict=True):
        for folder in read_partially(vector.data, place).folders if isinstance(header, Mqrfh2) else ():
            for element in flattened(folder.elements):
                tag = f"<{element.name}" if "}" not in element.name else "<"  # a prefix was replaced by its namespace
                encoded = [tag.encode(codec) for codec in ("utf-8", "utf-16-le", "utf-16-be")]
                assert vector.data[element.offset :].startswith(tuple(encoded))


def test_a_walk_ends_at_the_first_wrong_header_and_says_what_is_wrong() -> None:
    string = b"MQPSCommand Publish "
    whole = struct.pack("<4siiii8si", b"RFH ", 1, 32 + len(string), 546, 1208, b"MQHRF   ", 0) + string
    chain, error = walk_headers(whole + whole[:40], format=b"MQHRF   ", coded_char_set_id=1208, encoding=546)
    assert [header.struc_length for header in chain.headers] == [52]
    assert error is not None
    assert (chain.body_offset, error.offset) == (52, 60)
    damaged = read_partially(whole + whole[:40], chain.body_place)
    assert [field.name for field in damaged.fields][-1] == "Flags"
    assert [(pair.offset, pair.name, pair.value) for pair in damaged.pairs] == [(84, "NameValueString", "MQPSComm")]


@pytest.mark.parametrize("mark", [b"\xfe\xff", b"\xff\xfe"])
def test_a_folder_with_a_byte_order_mark_is_read_behind_it(mark: bytes) -> None:
    codec = "utf-16-be" if mark == b"\xfe\xff" else "utf-16-le"
    folder = mark + "<usr><a>1</a></usr> ".encode(codec)
    folder += " ".encode(codec) * (-len(folder) % 4 // 2)
    fixed = struct.pack("<4siiii8siii", b"RFH ", 2, 40 + len(folder), 546, 1208, b"MQSTR   ", 0, 1200, len(folder))
    place = HeaderPlace(offset=0, format=b"MQHRF2  ", coded_char_set_id=1208, encoding=546)
    partial = read_partially(fixed + folder, place)
    assert partial.errors == ()
    (read,) = partial.folders
    assert (read.name, read.offset, read.text) == ("usr", 40, "<usr><a>1</a></usr>")
    assert [(element.name, element.offset) for element in read.elements] == [("a", 42 + 2 * len("<usr>"))]


def test_a_folder_that_is_not_in_its_page_is_an_error_of_the_folder_alone() -> None:
    first, second = b"<usr><a>\xff</a></usr> ", b"<mcd><Msd>x</Msd></mcd> "
    data = b"".join(struct.pack("<i", len(each)) + each for each in (first, second))
    fixed = struct.pack("<4siiii8sii", b"RFH ", 2, 36 + len(data), 546, 1208, b"MQSTR   ", 0, 1208)
    place = HeaderPlace(offset=0, format=b"MQHRF2  ", coded_char_set_id=1208, encoding=546)
    partial = read_partially(fixed + data, place)
    assert [(error.reason_code, error.offset) for error in partial.errors] == [(2421, 40)]
    assert [(folder.name, len(folder.elements)) for folder in partial.folders] == [("usr", 0), ("mcd", 1)]
