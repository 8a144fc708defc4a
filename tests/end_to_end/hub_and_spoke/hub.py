"""Two gateways: a hub that listens for MQ clients, and a spoke whose target it is, through the native client."""

import contextlib
import json
import socket
from pathlib import Path
from typing import Final

from gateway.access.application_tokens import TokenHash
from mq_adapters.embedded.socket.client import SocketClient
from mq_adapters.mqsc import commands_of
from tests.end_to_end.clients.certificates import make_certificates
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.ibm_mq.central import Applications
from tests.end_to_end.ibm_mq.target_gateway import Table, TargetGateway

TOKEN: Final = "rfhbridge_a-token-for-the-spoke"
CHANNEL: Final = "SPOKE1.SVRCONN"
#: What docs/how-to/hub-and-spoke.md gives a spoke.
_CONFIGURATION: Final = """
[queue_manager]
name = "HUB"
token_file = "{tokens}"

[[application]]
name = "spoke1"
put = ["SPOKE1.*", "SYSTEM.BROKER.CONTROL.QUEUE", "SYSTEM.BROKER.DEFAULT.STREAM", "SYSTEM.DEAD.LETTER.QUEUE"]
get = ["SPOKE1.*"]
browse = ["SPOKE1.*", "SYSTEM.BROKER.DEFAULT.STREAM"]
publish = ["#"]
subscribe = ["#"]
set_context = "identity"

[[mq_listener]]
listen = "127.0.0.1:{port}"
tls.certificate = "{certificate}"
tls.key = "{key}"
"""


class Hub(Gateway, Applications):
    """The hub. Its port for MQ clients stays the same when it starts again."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        certificates = make_certificates(folder)
        self.authority = certificates.authority
        (folder / "tokens").write_text(f"spoke1:{TokenHash.of(TOKEN).text}\n")
        (folder / "tokens").chmod(0o600)
        self._mq_reserved = socket.socket()
        self._mq_reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._mq_reserved.bind(("127.0.0.1", 0))
        self.mq_port = self._mq_reserved.getsockname()[1]
        self.config = folder / "rfhbridge.toml"
        self.config.write_text(
            _CONFIGURATION.format(
                tokens=folder / "tokens",
                port=self.mq_port,
                certificate=certificates.certificate,
                key=certificates.key,
            )
        )
        super().__init__(folder / "data", "--config", str(self.config))

    def client(self) -> SocketClient:
        return SocketClient(self.data, application_name="hub")

    def set_up(self, mqsc: str) -> None:
        """Carries out the MQSC of a spoke's set-up, as its operator would."""
        with self.client() as operator:
            for command in commands_of(mqsc.splitlines()):
                answer = operator.mqsc(command)
                assert answer.succeeded, (command, answer.lines)

    def clean_up(self) -> None:
        with contextlib.closing(self._mq_reserved):
            super().clean_up()


class Spoke(TargetGateway):
    """A gateway all of whose topics go to the hub."""

    def __init__(self, folder: Path, hub: Hub, **target: object) -> None:
        folder.mkdir()
        (folder / "password").write_text(TOKEN)
        (folder / "hub.pem").write_bytes(hub.authority.read_bytes())
        to_hub: Table = {
            "binding": "native",
            "queue_manager": "HUB",
            "connections": [f"127.0.0.1({hub.mq_port})"],
            "channel": CHANNEL,
            "user": "spoke1",
            "password_file": str(folder / "password"),
            "cipher": "ANY_TLS13_OR_HIGHER",
            "key_repository": str(folder / "hub"),
            "state_queue": "SPOKE1.STATE",
            "subscriber_queue": "SPOKE1.SUBSCRIBER",
            "reply_queue": "SPOKE1.REPLY",
            "set_identity": True,
            **json.loads(json.dumps(target)),
        }
        super().__init__(folder, {}, target=to_hub)
