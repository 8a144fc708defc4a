"""A gateway for MQ clients, with one application."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.end_to_end.gateway_process import Gateway

PATIENCE_S: Final = 120.0
BUILT: Final = Path(__file__).resolve().parents[3] / ".venv" / "clients" / "ibm"
TOKEN: Final = "rfhbridge_a-token-for-tests"
CONFIGURATION: Final = """
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

[[mq_listener]]
listen = "127.0.0.1:{port}"
"""


@dataclass(frozen=True, slots=True)
class House:
    """A running gateway, and its port for MQ clients, which stays the same when it starts again."""

    gateway: Gateway
    port: str

    def as_billing(self, *given: str, channel: str = "APP.SVRCONN") -> tuple[str, ...]:
        """The arguments of a program that connects as the application billing."""
        return self.port, channel, "billing", TOKEN, *given
