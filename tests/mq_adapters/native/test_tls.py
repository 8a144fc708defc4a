"""TLS to a gateway: CipherSpecs, who is trusted, names in certificates, certificates of the client's own."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.config.listeners import TlsSettings
from mq_adapters.embedded.mqsc.command_server import CommandServer
from mq_adapters.ibm_mq import ConnectionSettings, IbmMq
from mq_adapters.native.refusal import Refusal
from mq_adapters.native.tls import Tls
from mq_adapters.reasons import QueueManagerError
from tests.end_to_end.clients.certificates import Certificates, make_certificates
from tests.every_case import for_every
from tests.mq_adapters.native.gateway import APPLICATION, CHANNEL, NativeGateway

Connect = Callable[..., IbmMq]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def repository(tmp_path: Path, certificates: Certificates) -> Path:
    """A key repository that trusts the authority."""
    shutil.copy(certificates.authority, tmp_path / "trusted.pem")
    return tmp_path / "trusted"


@pytest.fixture
def gateway(data_folder: Path, certificates: Certificates) -> Iterator[NativeGateway]:
    tls = TlsSettings(
        certificate=str(certificates.certificate),
        key=str(certificates.key),
        client_authority=str(certificates.authority),
        client_certificate="optional",
    )
    made = NativeGateway(data_folder, tls=tls)
    for command in (
        f"DEFINE CHANNEL({CHANNEL}) CHLTYPE(SVRCONN) MCAUSER('{APPLICATION}') SSLCIPH(ANY_TLS12_OR_HIGHER)"
        " SSLCAUTH(OPTIONAL)",
        f"DEFINE CHANNEL(OWN.{CHANNEL}) CHLTYPE(SVRCONN) MCAUSER('{APPLICATION}') SSLCIPH(ANY_TLS12_OR_HIGHER)"
        " SSLCAUTH(REQUIRED)",
    ):
        assert made.call(lambda command=command: CommandServer(made.engine).execute(command)).succeeded  # type: ignore[misc]
    yield made
    made.stop()


@pytest.fixture
def connect(gateway: NativeGateway, repository: Path) -> Connect:
    def connected(host: str = "127.0.0.1", **changes: str) -> IbmMq:
        said = {"channel": CHANNEL, "cipher": "ANY_TLS12_OR_HIGHER", "key_repository": str(repository), **changes}
        name = f"{host}({gateway.mq_port})"
        return IbmMq(ConnectionSettings(package="native", connections=(name,), **said))  # type: ignore[arg-type]

    return connected


@pytest.mark.parametrize("cipher", ["ANY_TLS12", "ANY_TLS13_OR_HIGHER", "ECDHE_ECDSA_AES_256_GCM_SHA384"])
def test_a_connection_over_tls(connect: Connect, gateway: NativeGateway, cipher: str) -> None:
    with connect(cipher=cipher, peer_name="CN=127.0.0.*") as queue_manager:
        assert queue_manager.name == gateway.engine.name


@for_every(
    {
        "another suite": ({"cipher": "ECDHE_RSA_AES_256_GCM_SHA384"}, 2393),
        "another name": ({"peer_name": "CN=elsewhere"}, 2398),
        "authorities of the system": ({"key_repository": ""}, 2393),
        "no TLS": ({"cipher": ""}, 2059),
        "no certificate where one is wanted": ({"channel": f"OWN.{CHANNEL}"}, 2393),
    }
)
def test_what_does_not_fit_is_refused(case: tuple[dict[str, str], int], connect: Connect) -> None:
    with pytest.raises(QueueManagerError) as error:
        connect(**case[0])
    assert error.value.reason_code == case[1]


def test_missing_authorities_are_named_by_their_file(connect: Connect, tmp_path: Path) -> None:
    with pytest.raises(QueueManagerError) as error:
        connect(key_repository=str(tmp_path / "nothing"))
    assert error.value.reason_code == 2381
    assert f"{tmp_path / 'nothing'}.pem: " in str(error.value)
    assert "without .pem" in error.value.hint
    assert ".kdb" not in str(error.value)


def test_a_certificate_of_the_clients_own_is_shown(
    connect: Connect, repository: Path, certificates: Certificates
) -> None:
    own = certificates.certificate.read_bytes() + certificates.key.read_bytes()
    repository.with_suffix(".own.pem").write_bytes(own)
    with connect(channel=f"OWN.{CHANNEL}") as queue_manager:
        assert queue_manager.depth("SYSTEM.DEAD.LETTER.QUEUE") == 0


def test_a_host_name_that_the_certificate_has_not_is_refused_unless_a_peer_name_is_asked_for(
    connect: Connect, gateway: NativeGateway
) -> None:
    with pytest.raises(QueueManagerError, match="2393"):
        connect(host="localhost")
    with connect(host="localhost", peer_name="CN=127.0.0.1") as connected:
        assert connected.name == gateway.engine.name


@for_every(
    {
        "a cipher that nobody knows": (("TLS_RSA_WITH_NULL_MD5", "", ""), 2400),
        "a repository that is not there": (("ANY_TLS13", "/nowhere/at/all", ""), 2381),
        "a name that is none": (("ANY_TLS13", "", "127.0.0.1"), 2381),
    }
)
def test_a_setting_that_cannot_be_used_says_so_before_the_network(case: tuple[tuple[str, str, str], int]) -> None:
    with pytest.raises(Refusal) as error:
        Tls(*case[0])
    assert error.value.reason_code == case[1]
