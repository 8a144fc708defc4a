"""USERID_DATA and CONAUTH_INFO, written from their layout, and every length of theirs that lies."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mq_adapters.client_channel.errors import ChannelProtocolError
from mq_adapters.client_channel.fields import BodyReader
from mq_adapters.client_channel.identification import ConAuthInfo, UserIdData
from mq_adapters.client_channel.segments import ByteOrder

BIG, LITTLE = ByteOrder
ASSERTED = b"UID " + b"ROOT".ljust(12) + b" " * 12 + b"root".ljust(64) + bytes(40)
SHOWN = b"CAUT" + bytes.fromhex("00000001 00000005 00000008 00000005 00000008 00000000 00000000") + b"alicepass wor"


def test_the_user_that_a_client_asserts_is_read_and_written() -> None:
    user = UserIdData(user="ROOT", long_user="root")
    assert len(ASSERTED) == 132
    assert UserIdData.read(BodyReader(ASSERTED, BIG)) == user
    assert user.write(BIG) == ASSERTED


def test_the_short_form_of_older_clients_has_no_long_user() -> None:
    user = UserIdData.read(BodyReader(ASSERTED[:28], BIG))
    assert (user.user, user.long_user) == ("ROOT", "")


@pytest.mark.parametrize("length", [length for length in range(132) if length != 28])
def test_a_user_that_is_cut_is_refused(length: int) -> None:
    with pytest.raises(ChannelProtocolError):
        UserIdData.read(BodyReader(ASSERTED[:length], BIG))


def test_a_password_of_compatibility_mode_is_read_and_never_shown() -> None:
    user = UserIdData.read(BodyReader(ASSERTED[:16] + b"secret".ljust(12) + ASSERTED[28:], BIG))
    assert user.password == b"secret      "
    assert "secret" not in repr(user)


def test_user_and_password_are_read_and_written_and_the_password_is_never_shown() -> None:
    shown = ConAuthInfo(user=b"alice", password=b"pass wor")
    assert ConAuthInfo.read(BodyReader(SHOWN, BIG)) == shown
    assert ConAuthInfo.read(BodyReader(SHOWN + bytes(3), BIG)) == shown
    assert shown.write(BIG) == SHOWN
    assert "pass" not in repr(shown).replace("password", "")
    assert ConAuthInfo.read(BodyReader(shown.write(LITTLE), LITTLE)) == shown


def test_lengths_may_be_less_than_their_fields() -> None:
    data = b"CAUT" + bytes.fromhex("00000001 00000004 00000003 00000001 00000002 00000000 00000000") + b"a\0\0\0pw\0"
    assert ConAuthInfo.read(BodyReader(data, BIG)) == ConAuthInfo(user=b"a", password=b"pw")


@pytest.mark.parametrize("length", range(45))
def test_credentials_that_are_cut_are_refused(length: int) -> None:
    with pytest.raises(ChannelProtocolError):
        ConAuthInfo.read(BodyReader(SHOWN[:length], BIG))


@pytest.mark.parametrize(
    "lengths",
    [
        "00000002 00000005 00000008 00000005 00000008",
        "00000001 00000005 00000008 00000006 00000008",
        "00000001 00000005 00000008 00000005 FFFFFFFF",
        "00000001 7FFFFFFF 00000008 00000005 00000008",
        "00000001 00000005 00000009 00000005 00000009",
        "00000001 FFFFFFFF 00000008 FFFFFFFF 00000008",
    ],
    ids=["another type", "a longer user", "a negative length", "a huge field", "a byte too many", "a negative field"],
)
def test_lengths_that_lie_are_refused(lengths: str) -> None:
    with pytest.raises(ChannelProtocolError):
        ConAuthInfo.read(BodyReader(b"CAUT" + bytes.fromhex(lengths) + SHOWN[24:], BIG))


@given(st.binary(max_size=150), st.sampled_from(ByteOrder))
def test_random_bytes_end_in_a_value_or_in_our_error(data: bytes, order: ByteOrder) -> None:
    for record, struc_id in ((UserIdData, b"UID "), (ConAuthInfo, b"CAUT")):
        try:
            read = record.read(BodyReader(struc_id + data, order))
        except ChannelProtocolError:
            continue
        assert record.read(BodyReader(read.write(order), order)) == read


def test_a_user_or_a_password_of_kilobytes_is_refused() -> None:
    assert ConAuthInfo.read(BodyReader(ConAuthInfo(user=b"u" * 1_024, password=b"p").write(BIG), BIG))
    with pytest.raises(ChannelProtocolError, match="a user of 1025 bytes"):
        ConAuthInfo.read(BodyReader(ConAuthInfo(user=b"u" * 1_025, password=b"p").write(BIG), BIG))
