"""A gateway that is attacked, and how far the attacks go."""

import resource
from collections.abc import Callable, Iterator
from typing import Final

import pytest

from tests.end_to_end.clients.certificates import make_certificates
from tests.end_to_end.gateway_process import Gateway
from tests.processes.forked import fresh

#: Descriptors that the longest attack needs here and in the gateway, which inherits the limit.
_DESCRIPTORS: Final = 12_000
#: Limits small enough to be reached soon; what is not here has its default.
CONFIGURATION: Final = """
[mqtt]
versions = ["3.1", "3.1.1", "5"]
connect_timeout_s = 2
maximum_retained_messages = 300
maximum_subscriptions = 500
maximum_sessions = 6_000
maximum_held_bytes = 8_388_608
maximum_unfinished_bytes_in_all = 67_108_864

[[listener]]
name = "tls"
listen = "127.0.0.1:0"
tls = {{ certificate = "{certificate}", key = "{key}" }}

[[listener]]
name = "websocket"
listen = "127.0.0.1:0"
transport = "websocket"
"""

Scale = Callable[[int, int], int]


@pytest.fixture(scope="session")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """One gateway for all attacks: none may hurt it. It is a fresh process, for its memory is measured."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    folder = tmp_path_factory.mktemp("attacks")
    configuration = folder / "rfhbridge.toml"
    made = make_certificates(folder)
    configuration.write_text(CONFIGURATION.format(certificate=made.certificate, key=made.key))
    gateway = Gateway(folder / "data", "--config", str(configuration), begin=fresh).start()
    try:
        yield gateway
        exit_code = gateway.stop()
    finally:
        gateway.clean_up()
    troubles = [line for line in gateway.lines if "Traceback" in line or '"level":"error"' in line]
    assert (exit_code, troubles) == (0, [])
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def tls_port(attacked: Gateway) -> int:
    port: int = attacked.wait_for_log("listener opened", name="^tls$")["port"]
    return port


@pytest.fixture
def websocket_port(attacked: Gateway) -> int:
    port: int = attacked.wait_for_log("listener opened", name="^websocket$")["port"]
    return port


@pytest.fixture
def scale(proof_scale: str) -> Scale:
    """The first number in a short proof, the second in a full one."""
    return lambda short, full: full if proof_scale == "full" else short
