"""The Dockerfile and the compose file, read by their rules: no container engine is needed, and none was asked.

compose-spec.json is the Compose Specification's own JSON schema (Apache License 2.0), of June 2026.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from gateway.config import Settings
from gateway.explain.set_up import heading, mqsc_text, set_up


@pytest.fixture(scope="module")
def compose(root: Path) -> dict[str, Any]:
    return yaml.safe_load((root / "docker-compose.yml").read_text())


@pytest.fixture(scope="module")
def dockerfile(root: Path) -> str:
    return (root / "Dockerfile").read_text()


def test_compose_file_obeys_the_schema_of_the_compose_specification(compose: dict[str, Any]) -> None:
    schema = json.loads((Path(__file__).parent / "compose-spec.json").read_text())
    assert [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(compose)] == []
    broken = compose | {"services": compose["services"] | {"gateway": {"imag": "rfhbridge"}}}
    assert [error.path[1] for error in jsonschema.Draft7Validator(schema).iter_errors(broken)] == ["gateway"]


def services_of(compose: dict[str, Any], profile: str) -> set[str]:
    return {name for name, service in compose["services"].items() if profile in service.get("profiles", [profile])}


def test_compose_has_a_profile_with_and_one_without_ibm_mq(compose: dict[str, Any]) -> None:
    assert services_of(compose, "embedded") == {"gateway", "sensors", "subscriber"}
    assert services_of(compose, "mq") == {"mq", "gateway-mq", "sensors", "subscriber"}
    assert services_of(compose, "audit") == {"audit"}


def test_compose_starts_without_ibm_mq_where_no_profile_is_named(root: Path) -> None:
    assert (root / ".env").read_text().splitlines()[-1] == "COMPOSE_PROFILES=embedded"


def test_compose_gives_the_queue_manager_what_explain_prints(root: Path, compose: dict[str, Any]) -> None:
    settings = Settings.load(root / "deploy/compose/rfhbridge.toml")
    (target,) = settings.target
    text = mqsc_text(set_up(target, settings.routes), heading=heading(target))
    assert (root / "deploy/mqsc/20-rfhbridge.mqsc").read_text() == text, "make it anew with rfhbridge explain --mqsc"
    assert "./deploy/mqsc/20-rfhbridge.mqsc:/etc/mqm/20-rfhbridge.mqsc:ro" in compose["services"]["mq"]["volumes"]
    assert compose["services"]["mq"]["environment"]["MQ_QMGR_NAME"] == target.queue_manager
    assert target.connections == ("mq(1414)",)


def test_compose_holds_no_password(root: Path, compose: dict[str, Any]) -> None:
    assert compose["secrets"] == {"mqAppPassword": {"environment": "MQ_APP_PASSWORD"}}
    assert "PASSWORD" not in "".join(compose["services"]["mq"]["environment"])
    (target,) = Settings.load(root / "deploy/compose/rfhbridge.toml").target
    assert target.password_file == "/run/secrets/mqAppPassword"


def test_compose_opens_the_gateway_to_this_machine_alone(compose: dict[str, Any]) -> None:
    ports = {port for service in compose["services"].values() for port in service.get("ports", [])}
    assert ports == {"127.0.0.1:1883:1883"}


def test_compose_clients_wait_for_a_healthy_gateway(compose: dict[str, Any]) -> None:
    healthy = {"condition": "service_healthy", "required": False}
    for gateway in ("gateway", "gateway-mq"):
        assert compose["services"][gateway]["healthcheck"]["test"][0] == "CMD"
        for client in ("subscriber", "sensors"):
            assert compose["services"][client]["depends_on"][gateway] == healthy


def test_compose_keeps_the_gateways_data_in_a_named_volume(compose: dict[str, Any]) -> None:
    for gateway in ("gateway", "gateway-mq", "audit"):
        volume, folder = compose["services"][gateway]["volumes"][0].split(":")
        assert volume in compose["volumes"]
        assert folder == "/var/lib/rfhbridge"


def test_image_and_distribution_have_one_version(compose: dict[str, Any], pyproject: dict[str, Any]) -> None:
    images = [service["image"] for service in compose["services"].values() if "build" in service]
    assert len(images) == 4
    assert {image.partition(":")[2] for image in images} == {pyproject["project"]["version"]}


def test_the_container_runs_the_gateway_as_a_user_of_its_own(dockerfile: str) -> None:
    final_stage = dockerfile.rsplit("FROM ", maxsplit=1)[-1]
    assert final_stage.startswith("base AS gateway")
    stages = dockerfile.split("FROM ")
    for stage in stages:
        if stage.startswith("base AS "):
            assert re.search(r"^USER rfhbridge$", stage, re.MULTILINE)
    (base,) = (stage for stage in stages if " AS base" in stage)
    assert 'CMD ["run", "--listen", "0.0.0.0:1883", "--data", "/var/lib/rfhbridge"]' in base


def test_the_container_installs_locked_requirements_alone(dockerfile: str) -> None:
    installs = [line for line in dockerfile.splitlines() if "pip install" in line]
    assert installs
    assert all("--require-hashes" in line or "/wheels/" in line for line in installs)


def test_what_the_dockerfile_copies_is_not_ignored(root: Path) -> None:
    let_through = {line[1:] for line in (root / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    packages = {"rfhbridge", "gateway", "mappings", "mq_adapters", "spark_audit"}
    scripts = {"deploy/setup/compiled.py", "deploy/setup/wheel_hook.py"}
    assert {*packages, *scripts, "requirements", "pyproject.toml"} <= let_through
    assert all((root / name).exists() for name in let_through)


#: The services whose images are ours, or need nothing but their command.
CONFINED = ("gateway", "gateway-mq", "sensors", "subscriber", "audit")


def test_no_container_of_ours_has_a_capability_or_writes_outside_its_volume(compose: dict[str, Any]) -> None:
    for name in CONFINED:
        service = compose["services"][name]
        assert (service["cap_drop"], service["read_only"]) == (["ALL"], True), name
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["tmpfs"][0].startswith("/tmp:size=")
    for name, service in compose["services"].items():
        assert "no-new-privileges:true" in service["security_opt"], name
        assert service["mem_limit"]
        assert service["pids_limit"]


def test_each_image_has_an_exact_version(compose: dict[str, Any], dockerfile: str) -> None:
    exact = re.compile(r"[^:]+:[0-9]+\.[0-9]+\.[0-9]+[^@]*(@sha256:[0-9a-f]{64})?")
    bases = re.findall(r"^ARG [A-Z_]+_IMAGE=(.*)$", dockerfile, re.MULTILINE)
    foreign = [service["image"] for service in compose["services"].values() if "build" not in service]
    named = [image.partition(":-")[2].rstrip("}") or image for image in foreign]
    assert [image for image in (*bases, *named) if not exact.fullmatch(image)] == []
    stages = re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)
    own = set(re.findall(r" AS (\S+)", dockerfile))
    assert [stage for stage in stages if stage not in own and not stage.startswith("${")] == []


DIGEST = "sha256:" + "ab" * 32


def _pinned(root: Path, folder: Path, answer: str) -> subprocess.CompletedProcess[str]:
    """The command on a copy of the Dockerfile, with a program in the place of docker that gives an answer."""
    shutil.copy(root / "Dockerfile", folder / "Dockerfile")
    (folder / "docker").write_text(f'#!/bin/sh\n[ "$2" = version ] && exit "${{BUILDX:-0}}"\n{answer}\n')
    (folder / "docker").chmod(0o755)
    command = [root / "deploy/setup/image-digests.sh", folder / "Dockerfile"]
    environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_digests_are_written_behind_the_versions_and_anew_the_next_time(root: Path, tmp_path: Path) -> None:
    for digest in (DIGEST, DIGEST.replace("ab", "cd")):
        assert _pinned(root, tmp_path, f"echo {digest}").returncode == 0
        text = (tmp_path / "Dockerfile").read_text()
        assert len(re.findall(rf"^ARG [A-Z_]+_IMAGE=[^@]+@{digest}$", text, re.MULTILINE)) == 2
    assert re.sub(r"@sha256:[0-9a-f]{64}", "", text) == (root / "Dockerfile").read_text()


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        ("exit 1", "run this on a machine that reaches the registry"),
        ("echo unknown", "look at the image in its registry"),
        (f"case $6 in *mq*) echo {DIGEST};; esac", "look at the image in its registry"),
    ],
)
def test_without_a_digest_for_each_image_the_dockerfile_stays(
    root: Path, tmp_path: Path, answer: str, advice: str
) -> None:
    ended = _pinned(root, tmp_path, answer)
    assert ended.returncode == 1
    assert "stays as it is" in ended.stderr
    assert advice in ended.stderr
    assert (tmp_path / "Dockerfile").read_text() == (root / "Dockerfile").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["Dockerfile", "docker"]


def test_a_docker_without_buildx_is_told_apart_from_a_registry_that_does_not_answer(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUILDX", "1")
    ended = _pinned(root, tmp_path, f"echo {DIGEST}")
    assert (ended.returncode, "has no plugin buildx" in ended.stderr) == (1, True)
    assert (tmp_path / "Dockerfile").read_text() == (root / "Dockerfile").read_text()
