"""A program whose certificate let it in goes when an operator takes away the authority of that certificate."""

import signal
import ssl

from mq_adapters.client_channel.errors import StatusCode
from mq_adapters.reasons import ReasonCode
from tests.end_to_end.clients.certificates import make_certificates
from tests.end_to_end.mq_clients.house import House
from tests.end_to_end.mq_clients.raw_client import RawClient


class SecureClient(RawClient):
    """A client that trusts the tests' authority, and may show a certificate that the authority has signed."""

    def __init__(self, house: House, *, is_certified: bool) -> None:
        super().__init__(house.secure_port)
        context = ssl.create_default_context(cadata=house.certificates.authority.read_text())
        if is_certified:
            context.load_cert_chain(house.certificates.certificate, house.certificates.key)
        self.socket = context.wrap_socket(self.socket, server_hostname="127.0.0.1")


def test_a_program_goes_with_the_authority_of_its_certificate_and_one_without_a_certificate_stays(
    house: House,
) -> None:
    with SecureClient(house, is_certified=True) as certified, SecureClient(house, is_certified=False) as other:
        certified.negotiate("MUTUAL")
        assert certified.log_in() == ReasonCode.MQRC_NONE
        other.connect(channel="SECURE")
        folder = house.certificates.authority.parent / "another"
        folder.mkdir()
        house.certificates.authority.write_bytes(make_certificates(folder).authority.read_bytes())
        house.gateway.signal(signal.SIGHUP)
        assert certified.end() == StatusCode.QM_TERMINATING
        house.gateway.wait_for_log(
            "connection closed", reason="^the authority of its certificate is no longer trusted$"
        )
        other.open("ORDERS", 0x10)
