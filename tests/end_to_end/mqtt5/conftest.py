"""Gateways that take MQTT 5.0."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.end_to_end.conftest import StartGateway
from tests.end_to_end.gateway_process import Gateway

NewGateway = Callable[..., Gateway]

_VERSIONS = 'versions = ["3.1", "3.1.1", "5"]'
_OPEN = 'dollar_topics = ["$Own/#"]'


def _configured(folder: Path, *lines: str) -> tuple[str, str]:
    config = folder / "rfhbridge.toml"
    config.write_text("\n".join(["[mqtt]", _VERSIONS, *lines]), encoding="utf-8")
    return "--config", str(config)


@pytest.fixture
def new_five(new_gateway: StartGateway, tmp_path: Path) -> NewGateway:
    """Starts a gateway of the test's own; lines go to table [mqtt] of its configuration."""

    def make(*lines: str) -> Gateway:
        return new_gateway(*_configured(tmp_path, *lines)).start()

    return make


@pytest.fixture(scope="session")
def _running_five(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("five")
    gateway = Gateway(folder / "data", *_configured(folder, _OPEN)).start()
    yield gateway
    gateway.clean_up()


@pytest.fixture
def five(_running_five: Gateway) -> Gateway:
    """A gateway that many tests use: each with client identifiers and topics of its own."""
    assert _running_five.is_running, _running_five.log
    return _running_five
