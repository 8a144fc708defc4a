"""A true trail of programs of MQ clients: they connect, put, get, go and are refused, and the gateway starts again."""

from pathlib import Path
from typing import Final

from gateway.access.application_tokens import TokenHash
from mq_adapters import connect as to_queue_manager
from mq_adapters.client_channel.segments import SegmentType
from mq_adapters.reasons import ReasonCode
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.mq_clients.house import TOKEN
from tests.end_to_end.mq_clients.raw_client import RawClient, getting
from tests.spark_audit.forger.true_trails import Record, records_of

_CONFIGURATION: Final = """
[queue_manager]
token_file = "{tokens}"

[[application]]
name = "billing"
put = ["ORDERS"]
get = ["ORDERS"]

[[application]]
name = "guest"
get = ["ORDERS"]

[[mq_listener]]
listen = "127.0.0.1:0"

[[mq_listener.channel]]
name = "APP"

[[mq_listener.channel]]
name = "GUEST"
users = ["guest"]
"""
_OUTPUT, _INPUT_SHARED = 0x10, 0x2


def programs(folder: Path) -> list[Record]:
    """Two runs of one gateway."""
    folder.mkdir()
    tokens, config = folder / "tokens", folder / "rfhbridge.toml"
    tokens.write_text(f"billing:{TokenHash.of(TOKEN).text}\n")
    tokens.chmod(0o600)
    config.write_text(_CONFIGURATION.format(tokens=tokens))
    gateway = Gateway(folder / "data", "--config", str(config)).start()
    try:
        with to_queue_manager(gateway.data) as operator:
            operator.define("ORDERS")
            for command in ("APP) CHLTYPE(SVRCONN)", "GUEST) CHLTYPE(SVRCONN) MCAUSER('guest')"):
                assert operator.mqsc(f"DEFINE CHANNEL({command}").succeeded
        _work(_port(gateway))
        _are_refused(_port(gateway))
        assert gateway.stop() == 0, gateway.log
        gateway.start()
        _work(_port(gateway))
        assert gateway.stop() == 0, gateway.log
    finally:
        gateway.clean_up()
    return records_of(gateway.data)


def _port(gateway: Gateway) -> str:
    return str(next(each["port"] for each in gateway.logged("listener opened")[::-1] if each["name"] == "mq"))


def _work(port: str) -> None:
    with RawClient(port) as billing, RawClient(port) as guest:
        billing.connect(channel="APP", appl_name="Orders")
        billing.put(billing.open("ORDERS", _OUTPUT))
        guest.negotiate("GUEST")
        assert guest.log_in() == 0
        got, _ = guest.ask(SegmentType.MQGET, getting(), guest.open("ORDERS", _INPUT_SHARED))
        assert got.completion_code == 0
        assert billing.ask(SegmentType.MQDISC)[0].completion_code == 0


def _are_refused(port: str) -> None:
    for channel, user, password in (
        ("APP", "billing", "wrong"),
        ("APP", "billing", "wrong"),
        ("GUEST", "billing", TOKEN),
    ):
        with RawClient(port) as client:
            client.negotiate(channel)
            assert client.log_in(user, password) == ReasonCode.MQRC_NOT_AUTHORIZED
    with RawClient(port) as client:
        client.send_offer("NO.CHANNEL")
        client.end()
