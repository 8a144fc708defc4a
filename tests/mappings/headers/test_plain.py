"""The plain readers give the values of the strict readers, or nothing, on any bytes."""

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

import tests.headers
from mappings.headers.mqrfh import read_mqrfh
from mappings.headers.mqrfh2 import read_mqrfh2
from mappings.headers.plain import read_plain_mqrfh, read_plain_mqrfh2
from tests.mappings.conversion.test_plain import CODED_CHAR_SET_IDS, ENCODINGS, PLAIN_FOLDER, PLAIN_STRING, order_of

mqrfh = partial(tests.headers.mqrfh, ccsid=819, padded=False)
mqrfh2 = partial(tests.headers.mqrfh2, encoding=273, ccsid=-2)


@given(st.binary(max_size=60), CODED_CHAR_SET_IDS, ENCODINGS)
def test_plain_values_are_those_of_the_full_readers(variable: bytes, coded_char_set_id: int, encoding: int) -> None:
    order = order_of(encoding)
    string, folder = mqrfh(variable, order=order), mqrfh2(b"<psc><Topic>" + variable + b"</Topic></psc>", order=order)
    plain = read_plain_mqrfh(string, coded_char_set_id, encoding)
    if plain is not None:
        header = read_mqrfh(string, coded_char_set_id=coded_char_set_id, encoding=encoding)
        assert plain == (header.pairs, header.format, header.coded_char_set_id, header.encoding, header.struc_length)
    plain = read_plain_mqrfh2(folder, coded_char_set_id, encoding)
    if plain is not None:
        full = read_mqrfh2(folder, coded_char_set_id=coded_char_set_id, encoding=encoding)
        pairs = tuple((element.name, element.text) for element in full.folders[0].elements)
        assert plain == (pairs, full.format, full.coded_char_set_id, full.encoding, full.struc_length)


def test_the_common_publication_is_plain() -> None:
    plain = read_plain_mqrfh(mqrfh(PLAIN_STRING), 1208, 546)
    assert plain is not None
    assert plain.pairs == (("MQPSCommand", "Publish"), ("MQPSPubOpts", "RetainPub"), ("MQPSTopic", "a b"))
    assert (plain.format, plain.coded_char_set_id, plain.encoding, plain.struc_length) == (b"MQSTR   ", 819, 546, 92)
    plain = read_plain_mqrfh2(mqrfh2(PLAIN_FOLDER), 1208, 546)
    assert plain is not None
    assert plain.pairs == (("Command", "Publish"), ("PubOpt", "RetainPub"), ("Topic", "a b"))
