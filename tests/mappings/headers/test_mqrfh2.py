"""MQRFH2 against bytes worked out by hand, and folders that try to break the parser."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mappings.errors import ConversionError, HeaderError
from mappings.headers import mqrfh2
from mappings.headers.mqrfh2 import Element, Folder, Mqrfh2, flat_folder, psc_folder, read_mqrfh2, write_mqrfh2
from tests.every_case import for_every

PUBLISH_PSC = b"<psc><Command>Publish</Command><PubOpt>RetainPub</PubOpt><Topic>a/b</Topic></psc>"
LITTLE_ENDIAN = bytes.fromhex(
    "52464820 02000000 7c000000 22020000 b8040000 4d51535452202020 00000000 b8040000 54000000"
    "3c7073633e3c436f6d6d616e643e5075626c6973683c2f436f6d6d616e643e3c5075624f70743e52657461696e"
    "5075623c2f5075624f70743e3c546f7069633e612f623c2f546f7069633e3c2f7073633e202020"
)
BIG_ENDIAN = bytes.fromhex(
    "52464820 00000002 000000a0 00000111 000004b8 2020202020202020 00000000 000004b8 00000020"
    "3c6d63643e3c4d73643e6a6d735f62797465733c2f4d73643e3c2f6d63643e20 00000054"
    "3c7073633e3c436f6d6d616e643e5265675375623c2f436f6d6d616e643e3c5265674f70743e436f7272656c41"
    "7349643c2f5265674f70743e3c546f7069633e612f233c2f546f7069633e3c2f7073633e202020"
)
REGISTER_PSC = b"<psc><Command>RegSub</Command><RegOpt>CorrelAsId</RegOpt><Topic>a/#</Topic></psc>"
MCD = b"<mcd><Msd>jms_bytes</Msd></mcd>"


def read(data: bytes) -> Mqrfh2:
    return read_mqrfh2(data, coded_char_set_id=1208, encoding=546)


def around(data: bytes, *, name_value_ccsid: int = 1208) -> bytes:
    """A little-endian MQRFH2 around one padded NameValueData, written field by field."""
    fixed = struct.pack(
        "<4siiii8siii", b"RFH ", 2, 40 + len(data), 546, 1208, b"MQSTR   ", 0, name_value_ccsid, len(data)
    )
    return fixed + data


def elements(text: bytes) -> tuple[Element, ...]:
    return read(around(text.ljust(-(-len(text) // 4) * 4))).folders[0].elements


@pytest.mark.parametrize(
    ("vector", "encoding", "folders", "format"),
    [
        (LITTLE_ENDIAN, 546, (PUBLISH_PSC,), b"MQSTR   "),
        (BIG_ENDIAN, 273, (MCD, REGISTER_PSC), b"        "),
    ],
)
def test_the_worked_bytes_are_read_and_written(
    vector: bytes, encoding: int, folders: tuple[bytes, ...], format: bytes
) -> None:
    header = read_mqrfh2(vector + b"body", coded_char_set_id=1208, encoding=encoding)
    assert tuple(folder.raw for folder in header.folders) == folders
    assert (header.format, header.name_value_ccsid, header.struc_length) == (format, 1208, len(vector))
    written = write_mqrfh2(
        header.folders,
        format=format,
        next_coded_char_set_id=1208,
        next_encoding=encoding,
        coded_char_set_id=1208,
        encoding=encoding,
    )
    assert written == vector


def test_folders_are_found_by_name_and_parsed_when_asked_for() -> None:
    header = read_mqrfh2(BIG_ENDIAN, coded_char_set_id=1208, encoding=273)
    psc = header.folder("psc")
    assert psc is not None
    assert [(element.name, element.text) for element in psc.elements] == [
        ("Command", "RegSub"),
        ("RegOpt", "CorrelAsId"),
        ("Topic", "a/#"),
    ]
    assert header.folder("usr") is None


@for_every(range(len(LITTLE_ENDIAN)))
def test_a_header_cut_at_any_length_is_refused(length: int) -> None:
    with pytest.raises(HeaderError) as caught:
        read(LITTLE_ENDIAN[:length])
    assert caught.value.reason_code == 2334


@pytest.mark.parametrize(
    "length", [b"\x55\0\0\0", b"\x58\0\0\0", b"\xff\xff\xff\xff", b"\xfc\xff\xff\x7f", b"\xfc\xff\xff\xff"]
)
def test_a_name_value_length_that_does_not_fit_is_refused(length: bytes) -> None:
    with pytest.raises(HeaderError, match="NameValueLength"):
        read(LITTLE_ENDIAN[:36] + length + LITTLE_ENDIAN[40:])


def test_a_struc_length_that_ends_in_a_length_field_is_refused() -> None:
    with pytest.raises(HeaderError, match="ends inside"):
        read(LITTLE_ENDIAN[:8] + b"\x26\0\0\0" + LITTLE_ENDIAN[12:])


@pytest.mark.parametrize("ccsid", [0, 819, 17548, -1])
def test_another_name_value_ccsid_is_refused(ccsid: int) -> None:
    with pytest.raises(HeaderError) as caught:
        read(around(PUBLISH_PSC.ljust(84), name_value_ccsid=ccsid))
    assert (caught.value.reason_code, caught.value.offset) == (2111, 32)


@pytest.mark.parametrize("padding", [b"   ", b"\0\0\0", b" \0 ", b"  \0"])
def test_padding_may_be_blanks_or_nuls(padding: bytes) -> None:
    assert read(around(PUBLISH_PSC + padding)).folders[0].raw == PUBLISH_PSC


@pytest.mark.parametrize("data", [b"", b"    ", b"\0\0\0\0"])
def test_a_pair_of_nothing_but_padding_is_no_folder(data: bytes) -> None:
    assert read(around(data)).folders == ()


@pytest.mark.parametrize("data", [b"abcd", b"<1a>", b"<!--", b"<psc", b"</a>", b"<?x>"])
def test_data_without_the_tag_of_a_folder_are_refused(data: bytes) -> None:
    with pytest.raises(HeaderError) as caught:
        read(around(data))
    assert (caught.value.reason_code, caught.value.offset) == (2421, 40)


@pytest.mark.parametrize("ccsid", [1200, 13488, 17584])
@pytest.mark.parametrize(("encoding", "codec"), [(546, "utf-16-le"), (273, "utf-16-be")])
def test_folders_in_two_byte_pages_follow_the_byte_order_of_the_header(ccsid: int, encoding: int, codec: str) -> None:
    order = "<" if encoding == 546 else ">"
    folder = "<psc><Topic>Straße</Topic></psc>".encode(codec)
    padded = folder + " ".encode(codec) * (len(folder) % 4 // 2)
    fixed = struct.pack(
        f"{order}4siiii8siii", b"RFH ", 2, 40 + len(padded), 546, 1208, b"MQSTR   ", 0, ccsid, len(padded)
    )
    header = read_mqrfh2(fixed + padded, coded_char_set_id=1208, encoding=encoding)
    assert header.folders[0].raw == folder
    assert header.folders[0].elements == (Element(name="Topic", text="Straße"),)
    written = write_mqrfh2(
        header.folders,
        format=b"MQSTR",
        next_coded_char_set_id=1208,
        next_encoding=546,
        coded_char_set_id=1208,
        encoding=encoding,
        name_value_ccsid=ccsid,
    )
    assert written == fixed + padded


def test_a_folder_is_recoded_when_the_name_value_ccsid_changes() -> None:
    folder = Folder(name="usr", raw="<usr>é</usr>".encode("utf-16-le"), coded_char_set_id=1200, encoding=546)
    written = write_mqrfh2(
        (folder,), format=b"", next_coded_char_set_id=1208, next_encoding=546, coded_char_set_id=1208, encoding=546
    )
    assert written[40:].rstrip(b" ") == "<usr>é</usr>".encode()


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        (b"<psc><Topic>a &amp; b</Topic></psc>", "a & b"),
        (b"<psc><Topic>&lt;&gt;&quot;&apos;</Topic></psc>", "<>\"'"),
        (b"<psc><Topic>&#65;&#x42;</Topic></psc>", "AB"),
        (b"<psc><Topic>  a  </Topic></psc>", "  a  "),
        (b"<psc> <Topic>a</Topic>\n</psc>", "a"),
        (b"<psc><Topic dt='string'>a</Topic></psc>", "a"),
        (b"<psc><Topic>a>b</Topic></psc>", "a>b"),
        (b"<psc><Topic>a\r\nb\tc</Topic></psc>", "a\r\nb\tc"),
        (b"<psc><Topic></Topic></psc>", ""),
        (b"<psc><Topic/></psc>", ""),
        (b'<psc a="1"><Topic>x</Topic></psc>', "x"),
        ("<psc><Topic>Fußball/日本/\U0001f600</Topic></psc>".encode(), "Fußball/日本/\U0001f600"),
    ],
)
def test_text_is_read_with_its_blanks_and_without_its_escapes(text: bytes, topic: str) -> None:
    assert [(element.name, element.text) for element in elements(text)] == [("Topic", topic)]


def test_groups_attributes_and_null_are_kept() -> None:
    (group,) = elements(b"<usr><g copy='1'><a dt=\"i4\">5</a><b xsi:nil='true'/></g></usr>")
    assert group.attributes == (("copy", "1"),)
    assert group.children == (
        Element(name="a", text="5", attributes=(("dt", "i4"),)),
        Element(name="b", text="", attributes=(("xsi:nil", "true"),)),
    )


@pytest.mark.parametrize(
    "text",
    [
        b'<!DOCTYPE psc [<!ENTITY a "b">]><psc>&a;</psc>',
        b'<psc><!DOCTYPE x SYSTEM "file:///etc/passwd"></psc>',
        b"<psc><!-- comment --><Topic>a</Topic></psc>",
        b"<psc><Topic><![CDATA[a]]></Topic></psc>",
        b"<psc><?run me?></psc>",
        b"<psc>&lol;</psc>",
        b"<psc><Topic>&nbsp;</Topic></psc>",
        b"<psc><Topic>&#0;</Topic></psc>",
        b"<psc><Topic>a & b</Topic></psc>",
        b"<psc><Topic>a",
        b"<psc></pscr>",
        b"<psc></psc><psc></psc>",
        b"<psc></psc>tail",
        b"<psc></psc></folder><folder>",
        b"<psc>text<Topic>a</Topic></psc>",
        b"<psc><Topic>a</Topic>text</psc>",
        b"<psc>text</psc>",
        b"<psc><x:Topic>a</x:Topic></psc>",
        b"<psc><Topic>\x01</Topic></psc>",
        b"<psc><Topic>a\0b</Topic></psc>",
        b"<psc><Topic>\xff</Topic></psc>",
        b"<psc><Topic>\xef\xbf\xbf</Topic></psc>",
        b"<psc>" + b"<g>" * 100 + b"</g>" * 100 + b"</psc>",
        b"<psc>" + b"<g>" * 5_000 + b"</g>" * 5_000 + b"</psc>",
    ],
)
def test_a_folder_that_is_not_plain_is_refused(text: bytes) -> None:
    folder = Folder(name="psc", raw=text)
    with pytest.raises(HeaderError) as caught:
        _ = folder.elements
    assert caught.value.reason_code == 2421


@pytest.mark.parametrize(
    ("text", "place"),
    [(b"<psc><a>1</b></psc>", "line 1, column 14;"), (b"<psc><a>1</a>\n<b x></b></psc>", "line 2, column 5;")],
)
def test_an_error_of_the_parser_names_the_column_in_the_folder_itself(text: bytes, place: str) -> None:
    with pytest.raises(HeaderError) as refused:
        assert Folder(name="psc", raw=text).elements
    assert place in refused.value.hint
    assert "<string>" not in refused.value.hint


def test_a_folder_beyond_four_mebibytes_is_not_parsed() -> None:
    with pytest.raises(HeaderError, match="beyond the limit of 4194304 bytes"):
        _ = Folder(name="usr", raw=b"<usr><a>&amp;" + b"x" * 4_194_304 + b"</a></usr>").elements


@pytest.mark.timeout(20)
def test_a_hundred_thousand_elements_take_linear_time() -> None:
    plain = Folder(name="psc", raw=b"<psc>" + b"<Topic>a</Topic>" * 100_000 + b"</psc>")
    escaped = Folder(name="psc", raw=b"<psc>" + b"<Topic>&lt;</Topic>" * 100_000 + b"</psc>")
    assert len(plain.elements) == len(escaped.elements) == 100_000


@pytest.mark.parametrize(
    "text", [b"<psc><a>x</b></psc>", b"<psc><a>x</a>y<b>z</b></psc>", b"<psc><a>1</a></psc><psc></psc>"]
)
def test_the_fast_path_leaves_everything_unusual_to_the_parser(text: bytes) -> None:
    with pytest.raises(HeaderError):
        _ = Folder(name="psc", raw=text).elements


FLAT_TEXT = st.text(alphabet="/ab; é\U0001f600", max_size=6)
ANY_TEXT = st.text(alphabet="<>/ab&;\x01\r\n\t é\ufffe\U0001f600", max_size=6)


@given(st.lists(st.tuples(st.sampled_from(["a", "b1", "psc"]), FLAT_TEXT | ANY_TEXT), max_size=4))
def test_the_fast_path_reads_what_the_parser_reads_or_nothing(fields: list[tuple[str, str]]) -> None:
    text = "<psc>" + "".join(f"<{name}>{value}</{name}>" for name, value in fields) + "</psc>"
    fast = mqrfh2._flat_elements(text, "psc")
    assert fast is None or mqrfh2._parsed_elements(text) == fast


@given(st.lists(st.tuples(st.sampled_from(["a", "b1", "psc"]), FLAT_TEXT), max_size=4))
def test_the_fast_path_reads_all_text_without_escapes(fields: list[tuple[str, str]]) -> None:
    text = "<psc>" + "".join(f"<{name}>{value}</{name}>" for name, value in fields) + "</psc>"
    assert mqrfh2._flat_elements(text, "psc") == mqrfh2._parsed_elements(text)


@pytest.mark.parametrize(("encoding", "codec"), [(546, "utf-16-le"), (273, "utf-16-be")])
def test_padding_of_a_two_byte_folder_may_be_long_and_mixed(encoding: int, codec: str) -> None:
    order = "<" if encoding == 546 else ">"
    data = "<a>Ā</a>".encode(codec) + (" ".encode(codec) + b"\0\0") * 100_000
    fixed = struct.pack(f"{order}4siiii8siii", b"RFH ", 2, 40 + len(data), 546, 1208, b"MQSTR   ", 0, 1200, len(data))
    header = read_mqrfh2(fixed + data, coded_char_set_id=1208, encoding=encoding)
    assert header.folders[0].text == "<a>Ā</a>"


def test_psc_is_written_on_one_line_with_its_text_escaped() -> None:
    fields = (("Command", "Publish"), ("Topic", "a<b>&c/ d "))
    assert psc_folder(fields) == "<psc><Command>Publish</Command><Topic>a&lt;b&gt;&amp;c/ d </Topic></psc>"


@pytest.mark.parametrize(("name", "reason"), [("Topic", 3072), ("SubName", 2337)])
def test_a_control_character_cannot_be_written(name: str, reason: int) -> None:
    with pytest.raises(ConversionError) as caught:
        psc_folder(((name, "a\x01b"),))
    assert caught.value.reason_code == reason


def test_cr_and_characters_beyond_the_basic_plane_are_hexadecimal_references() -> None:
    text = flat_folder("usr", (("a", "\U0001f600 <\r\n\t\uffef>"),))
    assert text == "<usr><a>&#x1f600; &lt;&#xd;\n\t\uffef&gt;</a></usr>"
    (element,) = Folder(name="usr", raw=text.encode()).elements
    assert element.text == "\U0001f600 <\r\n\t\uffef>"


@pytest.mark.parametrize(
    "text",
    [
        "<usr><cost$>$5</cost$><$n>3</$n></usr>",
        "<usr><cost$>$5</cost$><$n dt='i4'>3</$n></usr>",
        "<usr><cost$ a='$'>$5</cost$><$n/></usr>",
        "<usr><a$b$c>&amp;$</a$b$c><g><x$>$</x$></g></usr>",
    ],
)
def test_names_may_have_a_dollar_sign(text: str) -> None:
    elements = Folder(name="usr", raw=text.encode()).elements
    assert elements[0].name in ("cost$", "a$b$c")
    assert elements[0].text in ("$5", "&$")
    assert all("$" not in child.name or child.name == "x$" for element in elements for child in element.children)


def test_a_letter_that_stands_for_the_dollar_sign_is_no_dollar_sign() -> None:
    (element,) = Folder(name="usr", raw="<usr><a\ufdf1 dt='i4'>1</a\ufdf1></usr>".encode()).elements
    assert (element.name, element.text) == ("a\ufdf1", "1")
    with pytest.raises(HeaderError):
        _ = Folder(name="usr", raw="<usr><a\ufdf1 dt='i4'>1</a\ufdf1><$/></usr>".encode()).elements
