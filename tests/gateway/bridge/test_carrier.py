"""What publications from a target carry: read from headers typed by hand, which anyone may have written."""

import pytest

from gateway.bridge.usr_folder import Carried, read_carried
from gateway.mqtt.properties import PublishProperties
from mappings.headers.chain import read_header_chain
from tests.gateway.bridge.test_target_messages import mqrfh, mqrfh2

PSC = "<psc><Command>Publish</Command><Topic>a</Topic></psc>"


def carried(header: bytes) -> Carried:
    format = b"MQHRF   " if header[4] == 1 else b"MQHRF2  "
    return read_carried(read_header_chain(header, format=format, coded_char_set_id=1208, encoding=546))


def test_a_folder_usr_is_read_with_and_without_types() -> None:
    """A queue manager that makes the folder anew from message properties may quote otherwise."""
    usr = '<usr><other>1</other><rfhbQos dt="i4">2</rfhbQos><rfhbClient>a&amp;b</rfhbClient><rfhbSeq>9</rfhbSeq></usr>'
    found = carried(mqrfh2(PSC, usr))
    assert (found.qos, found.client, found.sequence) == (2, "a&b", 9)
    assert found.properties == PublishProperties(user_properties=(("other", "1"),))


def test_what_deletes_is_read_from_folder_and_pairs() -> None:
    usr = "<usr><rfhbQos>1</rfhbQos><rfhbSeq>9</rfhbSeq><rfhbRetain dt='i4'>1</rfhbRetain></usr>"
    assert carried(mqrfh2(PSC, usr)) == Carried(qos=1, sequence=9, deletes=True)
    assert carried(mqrfh("MQPSCommand Publish MQPSTopic a rfhbQos 1 rfhbRetain 1")) == Carried(qos=1, deletes=True)
    assert not carried(mqrfh2(PSC, usr.replace(">1</rfhbRetain", ">yes</rfhbRetain"))).deletes


def test_pairs_of_an_mqrfh_are_read() -> None:
    header = mqrfh('MQPSCommand Publish MQPSTopic a rfhbQos 0 rfhbClient "a b" rfhbSeq 12')
    assert carried(header) == Carried(qos=0, client="a b", sequence=12)


def test_a_publication_without_a_carrier_says_nothing() -> None:
    assert carried(mqrfh2(PSC)) == carried(mqrfh("MQPSCommand Publish MQPSTopic a")) == Carried()


@pytest.mark.parametrize("qos", ["3", "-1", "1.0", "", "00", "one", "٢"])
def test_what_is_no_qos_is_none(qos: str) -> None:
    assert carried(mqrfh2(PSC, f"<usr><rfhbQos>{qos}</rfhbQos></usr>")).qos is None


@pytest.mark.parametrize("sequence", ["0", "-5", "9" * 20, "9223372036854775808", "x", "9" * 100_000])
def test_what_is_no_sequence_is_none(sequence: str) -> None:
    assert carried(mqrfh2(PSC, f"<usr><rfhbSeq>{sequence}</rfhbSeq></usr>")).sequence == 0


@pytest.mark.parametrize(
    "usr", ["<usr><rfhbQos>1</usr>", "<usr><!DOCTYPE x></usr>", "<usr><g><rfhbQos>1</rfhbQos></g></usr>"]
)
def test_a_folder_that_nobody_can_read_carries_nothing_and_is_told(usr: str) -> None:
    found = carried(mqrfh2(PSC, usr))
    assert found.qos is None
    assert found.properties in (None, PublishProperties())
    assert [name for name, _ in found.left_out] == ["g" if "<g>" in usr else "usr"]
    assert found.has_unfit_properties


@pytest.mark.parametrize("padding", ["x" * 3 * 2**20, "</padding><padding>" * 1_250])
def test_a_folder_that_is_longer_than_any_of_ours_is_not_read(padding: str) -> None:
    usr = f"<usr><padding>{padding}</padding><rfhbQos>1</rfhbQos></usr>"
    told = (("usr", "it is too long to be read"),)
    assert carried(mqrfh2(PSC, usr)) == Carried(left_out=told, left_out_before_5=told)


def test_what_has_no_place_in_a_packet_is_told() -> None:
    more = "<psc><Command>Publish</Command><Topic>a</Topic><PubTime>2026112215000000</PubTime></psc>"
    folders = "<mcd><Msd>jms_text</Msd></mcd>", "<jms><Dst>topic://a</Dst></jms>"
    found = carried(mqrfh2(more, *folders))
    assert [name for name, _ in found.left_out] == ["PubTime", "mcd", "jms"]
    assert found.left_out == found.left_out_before_5
    assert not found.has_unfit_properties
    assert [name for name, _ in carried(mqrfh("MQPSCommand Publish MQPSTopic a MQPSSeqNum 4")).left_out] == [
        "MQPSSeqNum"
    ]


def test_properties_are_told_as_left_out_to_clients_that_have_none() -> None:
    found = carried(mqrfh2(PSC, "<usr><unit>bar</unit><rfhbQos>1</rfhbQos><rfhbContentType>t</rfhbContentType></usr>"))
    assert found.left_out == ()
    assert [name for name, _ in found.left_out_before_5] == ["unit", "rfhbContentType"]
