"""Bodies of MapMessages as JSON. The first one was sent by IBM MQ classes for JMS 9.4.5."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mappings.conversion.jms_maps import LONGEST_BODY_BYTES, map_json

OF_JMS = (
    "<map><elt name=\"small\" dt='i1'>7</elt><elt name=\"large\" dt='i8'>9223372036854775807</elt>"
    "<elt name=\"level\" dt='i4'>-3</elt><elt name=\"nothing\" xsi:nil='true'></elt>"
    '<elt name="raw" dt=\'bin.hex\'>00FF</elt><elt name="none" dt=\'r8\'>NaN</elt><elt name="a b$">x</elt>'
    "<elt name=\"bar\" dt='r8'>4.2</elt><elt name=\"letter\" dt='char'>ß</elt>"
    '<elt name="name">Größe &lt;&amp;&gt; &#x1f600;\t"</elt><elt name="few" dt=\'r4\'>1.0E-10</elt>'
    "<elt name=\"short\" dt='i2'>300</elt><elt name=\"open\" dt='boolean'>1</elt></map>"
)


def test_each_type_has_its_form_and_the_names_keep_their_order() -> None:
    made = map_json(OF_JMS.encode())
    assert made is not None
    assert made.decode() == (
        '{"small":7,"large":9223372036854775807,"level":-3,"nothing":null,"raw":"00ff","none":"NaN","a b$":"x",'
        '"bar":4.2,"letter":"ß","name":"Größe <&> \U0001f600\\t\\"","few":1.0E-10,"short":300,"open":true}'
    )


def test_older_programs_name_the_elements_themselves() -> None:
    assert map_json(b"<map><level dt='i4'>3</level><elt name='x'>elt</elt></map>") == b'{"level":3,"x":"elt"}'


@pytest.mark.parametrize("body", [b"<map></map>", b"<map/>", b"<map></map>  \0"])
def test_an_empty_map_is_an_empty_object(body: bytes) -> None:
    assert map_json(body) == b"{}"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"4.2",
        b"<stream><elt>x</elt></stream>",
        b"<map>",
        b"<map><elt name='a'>x</elt>",
        b"<map>text</map>",
        b"<map><elt>x</elt></map>",
        b"<map><elt name=''>x</elt></map>",
        b"<map><elt name='a'><b>x</b></elt></map>",
        b"<map><elt name='a'>x</elt><elt name='a'>y</elt></map>",
        b"<map><elt name='a' more='1'>x</elt></map>",
        b"<map><elt name='a' dt='i3'>1</elt></map>",
        b"<map><elt name='a' dt='i4'>01</elt></map>",
        b"<map><elt name='a' dt='i4'>1,\"b\":2</elt></map>",
        b"<map><elt name='a' dt='i4'>\xd9\xa3</elt></map>",
        b"<map><elt name='a' dt='i8'>" + b"1" * 5_000 + b"</elt></map>",
        b"<map><elt name='a' dt='r8'>1.</elt></map>",
        b"<map><elt name='a' dt='r8'>nan</elt></map>",
        b"<map><elt name='a' dt='bin.hex'>0</elt></map>",
        b"<map><elt name='a'>\xff</elt></map>",
        b"<!DOCTYPE map [<!ENTITY a 'aaaa'>]><map><elt name='a'>&a;</elt></map>",
        b"<map><elt name='a'>&a;</elt></map>",
        b"<map><elt name='a'>" + b"x" * LONGEST_BODY_BYTES + b"</elt></map>",
        b"<map>" + b"<a/>" * 5_000 + b"</map>",
    ],
)
def test_anything_else_stays_as_it_is(body: bytes) -> None:
    assert map_json(body) is None


def test_the_largest_map_takes_little_time() -> None:
    entry = "<elt name=\"{0}\" dt='i4'>1</elt>"
    body = "".join(("<map>", *(entry.format(number) for number in range(2_000)), "</map>")).encode()
    begun = time.process_time()
    made = map_json(body)
    assert time.process_time() - begun < 1
    assert made is not None
    assert len(json.loads(made)) == 2_000


texts = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc",), exclude_characters="\ufffe\uffff"), max_size=20
)


@given(st.dictionaries(texts.filter(bool), texts, max_size=5))
def test_texts_come_as_they_are(entries: dict[str, str]) -> None:
    def escaped(text: str) -> str:
        return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")

    inside = "".join(f'<elt name="{escaped(name)}">{escaped(text)}</elt>' for name, text in entries.items())
    made = map_json(f"<map>{inside}</map>".encode())
    assert made is not None
    assert json.loads(made) == entries


@given(st.binary(max_size=200) | st.text(alphabet="<>/map elt'\"dt=1&;", max_size=80).map(str.encode))
def test_no_body_is_an_error(body: bytes) -> None:
    for each in (body, b"<map>" + body + b"</map>"):
        made = map_json(each)
        assert made is None or isinstance(json.loads(made), dict)
