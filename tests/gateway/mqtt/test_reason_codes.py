"""Table 2-6 of MQTT 5.0, typed from the standard: each reason code and the packets in which it may stand."""

import pytest

from gateway.mqtt import reason_codes
from gateway.mqtt.reason_codes import CONNECT_RETURN_CODES, ReasonCode

ALLOWED = {
    "CONNACK": reason_codes.CONNACK_CODES,
    "PUBACK": reason_codes.ACKNOWLEDGEMENT_CODES,
    "PUBREL": reason_codes.RELEASE_CODES,
    "SUBACK": reason_codes.SUBACK_CODES,
    "UNSUBACK": reason_codes.UNSUBACK_CODES,
    "DISCONNECT": reason_codes.DISCONNECT_CODES_OF_CLIENT | reason_codes.DISCONNECT_CODES_OF_SERVER,
    "AUTH": reason_codes.AUTH_CODES,
}

# PUBACK stands for PUBREC too, PUBREL for PUBCOMP.
TABLE = """
00 CONNACK PUBACK PUBREL SUBACK UNSUBACK DISCONNECT AUTH
01 SUBACK
02 SUBACK
04 DISCONNECT
10 PUBACK
11 UNSUBACK
18 AUTH
19 AUTH
80 CONNACK PUBACK SUBACK UNSUBACK DISCONNECT
81 CONNACK DISCONNECT
82 CONNACK DISCONNECT
83 CONNACK PUBACK SUBACK UNSUBACK DISCONNECT
84 CONNACK
85 CONNACK
86 CONNACK
87 CONNACK PUBACK SUBACK UNSUBACK DISCONNECT
88 CONNACK
89 CONNACK DISCONNECT
8A CONNACK
8B DISCONNECT
8C CONNACK
8D DISCONNECT
8E DISCONNECT
8F SUBACK UNSUBACK DISCONNECT
90 CONNACK PUBACK DISCONNECT
91 PUBACK SUBACK UNSUBACK
92 PUBREL
93 DISCONNECT
94 DISCONNECT
95 CONNACK DISCONNECT
96 DISCONNECT
97 CONNACK PUBACK SUBACK DISCONNECT
98 DISCONNECT
99 CONNACK PUBACK DISCONNECT
9A CONNACK DISCONNECT
9B CONNACK DISCONNECT
9C CONNACK DISCONNECT
9D CONNACK DISCONNECT
9E SUBACK DISCONNECT
9F CONNACK DISCONNECT
A0 DISCONNECT
A1 SUBACK DISCONNECT
A2 SUBACK DISCONNECT
"""
ROWS = {int(digits, 16): packets for digits, *packets in map(str.split, TABLE.strip().splitlines())}


def test_every_reason_code_of_the_standard_has_a_name() -> None:
    assert {int(code) for code in ReasonCode} == set(ROWS)


@pytest.mark.parametrize("packet", ALLOWED)
def test_reason_code_stands_where_the_table_says(packet: str) -> None:
    assert ALLOWED[packet] == {code for code, packets in ROWS.items() if packet in packets}


def test_a_client_disconnects_with_fewer_reason_codes_than_a_server() -> None:
    only_of_client = reason_codes.DISCONNECT_CODES_OF_CLIENT - reason_codes.DISCONNECT_CODES_OF_SERVER
    assert only_of_client == {ReasonCode.DISCONNECT_WITH_WILL_MESSAGE}
    assert not reason_codes.DISCONNECT_CODES_OF_CLIENT & {0x87, 0x89, 0x8B, 0x8D, 0x8E, 0x8F, 0x9C, 0x9D, 0xA2}


def test_return_codes_before_mqtt_5_are_those_of_3_1_1() -> None:
    assert set(CONNECT_RETURN_CODES.values()) == {1, 2, 3, 4, 5}
