"""A gateway that listens for MQ clients, and IBM's own client in Java, which deploy/setup/clients.sh fetches."""

import os
import socket
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from gateway.access.application_tokens import TokenHash
from gateway.access.password_hash import PasswordHash
from mq_adapters import connect
from tests.end_to_end.clients.certificates import make_certificates
from tests.end_to_end.gateway_process import Gateway
from tests.end_to_end.mq_clients.house import (
    BUILT,
    CONFIGURATION,
    PASSWORD,
    PATIENCE_S,
    QUEUES_OF_JMS,
    TOKEN,
    House,
)
from tests.gateway.access.jwt_vectors import ec_key, pem


@pytest.fixture(scope="module")
def house(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A gateway with the channel APP.SVRCONN and the queues ORDERS and OTHERS; a module may have `MORE` settings."""
    folder = tmp_path_factory.mktemp("mq")
    (folder / "tokens").write_text(f"billing:{TokenHash.of(TOKEN).text}\n")
    (folder / "users").write_text(f"anna:{PasswordHash.of(PASSWORD.encode()).text}\n")
    for secret in ("tokens", "users"):
        (folder / secret).chmod(0o600)
    configuration = folder / "rfhbridge.toml"
    reserved = socket.socket()  # it never listens, and the system gives its port to nobody but the gateway
    reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.bind(("127.0.0.1", 0))
    port = str(reserved.getsockname()[1])
    certificates = make_certificates(folder)
    settings = {"certificate": certificates.certificate, "key": certificates.key, "authority": certificates.authority}
    (folder / "keys.pem").write_text(pem(ec_key()))
    files = {"tokens": folder / "tokens", "users": folder / "users", "keys": folder / "keys.pem"}
    text = CONFIGURATION.format(port=port, **files, **settings)
    configuration.write_text(text + getattr(request.module, "MORE", ""))
    gateway = Gateway(folder / "data", "--config", str(configuration)).start()
    opened = {each["name"]: str(each["port"]) for each in gateway.logged("listener opened")}
    house = House(gateway, port, opened["secure"], opened["guarded"], certificates)
    with connect(str(gateway.data)) as operator:
        for name in ("ORDERS", "OTHERS"):
            operator.define(name)
        for command in (
            "DEFINE CHANNEL(APP.SVRCONN) CHLTYPE(SVRCONN)",
            "DEFINE CHANNEL(FEW) CHLTYPE(SVRCONN) MAXINST(1)",
            "DEFINE CHANNEL(QUEUED) CHLTYPE(SVRCONN) MCAUSER('queued')",
            *(f"DEFINE QLOCAL(SYSTEM.JMS.{name})" for name in QUEUES_OF_JMS),
            "DEFINE CHANNEL(SECURE) CHLTYPE(SVRCONN) SSLCIPH(ANY_TLS13_OR_HIGHER) SSLCAUTH(OPTIONAL)",
            "DEFINE CHANNEL(MUTUAL) CHLTYPE(SVRCONN) SSLCIPH(ANY_TLS12_OR_HIGHER) MCAUSER('billing')",
        ):
            assert operator.mqsc(command).succeeded
    yield house
    gateway.clean_up()
    reserved.close()


@pytest.fixture
def start_java() -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Starts a program with IBM's client; the test is skipped where it could not be had."""
    unavailable = BUILT / "unavailable"
    if not (BUILT / "stamp").exists():
        why = unavailable.read_text().strip() if unavailable.exists() else f"{BUILT} is not built (make setup)"
        pytest.skip(why)
    begun: list[subprocess.Popen[str]] = []

    def start(
        name: str, *given: str, folder: Path, options: Sequence[str] = (), stdin: Path | None = None
    ) -> "subprocess.Popen[str]":
        path = os.pathsep.join((f"{BUILT}/classes", f"{BUILT}/jars/*"))
        command = ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", *options, "-cp", path, name, *given]
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        with (stdin or Path(os.devnull)).open() as lines:
            begun.append(subprocess.Popen(command, stdin=lines, text=True, cwd=folder, **streams))
        return begun[-1]

    yield start
    for process in begun:
        process.kill()
        process.communicate(timeout=PATIENCE_S)


@pytest.fixture
def java(start_java: Callable[..., "subprocess.Popen[str]"], tmp_path: Path) -> Callable[..., list[str]]:
    """Runs a program with IBM's client to its end; the lines that it prints."""

    def run(name: str, *given: str, options: Sequence[str] = ()) -> list[str]:
        said, _ = start_java(name, *given, folder=tmp_path, options=options).communicate(timeout=PATIENCE_S)
        return said.splitlines()

    return run
