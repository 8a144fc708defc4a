"""A gateway for MQ clients, with one application."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.end_to_end.clients.certificates import Certificates
from tests.end_to_end.gateway_process import Gateway

PATIENCE_S: Final = 120.0
BUILT: Final = Path(__file__).resolve().parents[3] / ".venv" / "clients" / "ibm"
TOKEN: Final = "rfhbridge_a-token-for-tests"
#: That of the user anna of the password file.
PASSWORD: Final = "the-password-of-anna"
#: What provider version 6 uses for queued publish/subscribe, behind SYSTEM.JMS.
QUEUES_OF_JMS: Final = ("REPORT.QUEUE", "ND.SUBSCRIBER.QUEUE", "D.SUBSCRIBER.QUEUE")
CONFIGURATION: Final = """
[http]
enabled = true
listen = "127.0.0.1:0"

[access]
password_file = "{users}"
anonymous = true

[access.token]
key_files = ["{keys}"]

[queue_manager]
name = "RFHB"
token_file = "{tokens}"

[[application]]
name = "billing"
put = ["ORDERS", "REPLY.*", "AMQ.*"]
get = ["ORDERS", "REPLY.*", "AMQ.*", "SYSTEM.DEFAULT.MODEL.QUEUE"]
browse = ["ORDERS"]
publish = ["plant/#", "panel/#"]
subscribe = ["plant/#"]

[[application]]
name = "queued"
put = ["SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM", "SYSTEM.JMS.*"]
get = ["SYSTEM.JMS.*"]
browse = ["SYSTEM.JMS.*"]
publish = ["plant/#"]
subscribe = ["plant/#"]

[[application]]
name = "panels"
access_users = ["anna"]
put = ["ORDERS"]
get = ["ORDERS"]
browse = ["ORDERS"]

[[mq_listener]]
listen = "127.0.0.1:{port}"

[[mq_listener]]
name = "secure"
listen = "127.0.0.1:0"
tls.certificate = "{certificate}"
tls.key = "{key}"
tls.client_authority = "{authority}"
tls.client_certificate = "optional"

[[mq_listener]]
name = "guarded"
listen = "127.0.0.1:0"

[[mq_listener.channel]]
name = "APP.*"
users = ["anna"]
addresses = ["127.0.0.0/8"]

[[mq_listener.channel]]
name = "QUEUED"
addresses = ["192.0.2.0/24"]
"""


@dataclass(frozen=True, slots=True)
class House:
    """A running gateway, and its ports for MQ clients. Only the one without TLS stays the same when it starts again."""

    gateway: Gateway
    port: str
    secure_port: str
    guarded_port: str
    certificates: Certificates

    def as_billing(self, *given: str, channel: str = "APP.SVRCONN") -> tuple[str, ...]:
        """The arguments of a program that connects as the application billing."""
        return self.port, channel, "billing", TOKEN, *given
