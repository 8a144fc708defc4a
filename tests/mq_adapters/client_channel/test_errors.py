"""What an error of the client channel tells the operator and the peer."""

from mq_adapters.client_channel.errors import ChannelProtocolError, StatusCode


def test_an_error_tells_the_operator_what_was_wrong_and_the_peer_a_status_code() -> None:
    error = ChannelProtocolError(StatusCode.CONV_ID_ERROR, "conversation 7 does not exist")
    assert str(error) == "conversation 7 does not exist (CONV_ID_ERROR)"
    assert (error.status_code, error.what) == (30, "conversation 7 does not exist")
