"""Status codes as reason codes."""

from mq_adapters.client_channel.errors import StatusCode
from mq_adapters.native.refusal import reason_of
from tests.every_case import for_every


@for_every(
    {
        "no channel": (StatusCode.NO_CHANNEL, 2540),
        "a channel of another type": (StatusCode.CHANNEL_WRONG_TYPE, 2539),
        "a broken protocol": (StatusCode.PROTOCOL_LENGTH_ERROR, 2539),
        "a stopped channel": (StatusCode.CHANNEL_UNAVAILABLE, 2537),
        "TLS": (StatusCode.CIPHER_SPEC, 2393),
        "a certificate": (StatusCode.SSL_CLIENT_CERTIFICATE, 2393),
        "a queue manager that stops": (StatusCode.QM_TERMINATING, 2059),
        "no code": (None, 2059),
        "a code that nobody knows": (99, 2059),
    }
)
def test_a_status_code_becomes_the_reason_that_ibms_clients_report(case: tuple[int | None, int]) -> None:
    assert reason_of(case[0]) == case[1]
