"""The Dockerfile and the compose file."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

SERVICE_KEYS = {
    "build", "image", "command", "ports", "volumes", "healthcheck", "depends_on", "restart", "stop_grace_period",
}  # fmt: skip


@pytest.fixture(scope="module")
def compose(root: Path) -> dict[str, Any]:
    return yaml.safe_load((root / "docker-compose.yml").read_text())


@pytest.fixture(scope="module")
def dockerfile(root: Path) -> str:
    return (root / "Dockerfile").read_text()


def test_compose_names_the_gateway_and_a_client_each_way(compose: dict[str, Any]) -> None:
    assert compose["services"].keys() == {"gateway", "subscriber", "publisher"}
    assert "mosquitto_sub" in compose["services"]["subscriber"]["command"]
    assert "mosquitto_pub" in " ".join(compose["services"]["publisher"]["command"])


def test_compose_uses_known_keys_alone(compose: dict[str, Any]) -> None:
    assert compose.keys() <= {"name", "services", "volumes"}
    for service in compose["services"].values():
        assert service.keys() <= SERVICE_KEYS
        assert service.keys() & {"build", "image"}


def test_compose_opens_the_gateway_to_this_machine_alone(compose: dict[str, Any]) -> None:
    ports = [port for service in compose["services"].values() for port in service.get("ports", [])]
    assert ports == ["127.0.0.1:1883:1883"]


def test_compose_clients_wait_for_a_healthy_gateway(compose: dict[str, Any]) -> None:
    assert compose["services"]["gateway"]["healthcheck"]["test"][0] == "CMD"
    for client in ("subscriber", "publisher"):
        assert compose["services"][client]["depends_on"] == {"gateway": {"condition": "service_healthy"}}


def test_compose_keeps_the_gateways_data_in_a_named_volume(compose: dict[str, Any]) -> None:
    (mount,) = compose["services"]["gateway"]["volumes"]
    volume, folder = mount.split(":")
    assert volume in compose["volumes"]
    assert folder == "/var/lib/rfhbridge"


def test_image_and_distribution_have_one_version(compose: dict[str, Any], pyproject: dict[str, Any]) -> None:
    assert compose["services"]["gateway"]["image"] == f"rfhbridge:{pyproject['project']['version']}"


def test_the_container_runs_the_gateway_as_a_user_of_its_own(dockerfile: str) -> None:
    final_stage = dockerfile.rsplit("FROM ", maxsplit=1)[-1]
    assert re.search(r"^USER rfhbridge$", final_stage, re.MULTILINE)
    assert 'CMD ["run", "--listen", "0.0.0.0:1883", "--data", "/var/lib/rfhbridge"]' in final_stage


def test_the_container_installs_locked_requirements_alone(dockerfile: str) -> None:
    installs = [line for line in dockerfile.splitlines() if "pip install" in line]
    assert installs
    assert all("--require-hashes" in line or "/wheels/" in line for line in installs)


def test_what_the_dockerfile_copies_is_not_ignored(root: Path) -> None:
    let_through = {line[1:] for line in (root / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert {"gateway", "mappings", "mq_adapters", "spark_audit", "requirements", "pyproject.toml"} <= let_through
    assert all((root / name).exists() for name in let_through)
