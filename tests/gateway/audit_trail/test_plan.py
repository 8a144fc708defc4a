"""The plan of a trail comes from the configuration, and is kept for commands that run without a gateway."""

from importlib.metadata import version
from pathlib import Path

import pytest

from gateway.audit_trail.exporter import export_pending
from gateway.audit_trail.notes.notes import NoteKind
from gateway.audit_trail.plan import TrailPlan
from gateway.config import Settings
from mappings.table import TABLE_VERSION
from mq_adapters.reasons import StoreError
from spark_audit.verify import Verdict, verify

AT = 1_795_158_000_000_000
TARGET = {"name": "PLANT", "connections": ["localhost(1414)"]}


def _settings(tmp_path: Path, **audit: object) -> Settings:
    tables = {"data": str(tmp_path / "data"), "audit": audit, "target": [TARGET]}
    return Settings.model_validate(tables)


def test_the_plan_of_a_configuration_names_every_place_in_full(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = _settings(
        tmp_path,
        signing_key="keys/sign.pem",
        copy_folder="second",
        digest_target="PLANT",
        digest_queue="AUDIT.DIGESTS",
        keep_days=400,
        personal_data="keyed",
    )
    plan = TrailPlan.of(settings)
    assert plan.signing_key == str(tmp_path / "keys" / "sign.pem")
    assert plan.copy_folder == str(tmp_path / "second")
    assert plan.personal_key == str(tmp_path / "data" / "trail-personal.key")
    assert (plan.digest_transmission_queue, plan.digest_queue) == ("RFHBRIDGE.XMIT.PLANT.0", "AUDIT.DIGESTS")
    assert (plan.compress_after_hours, plan.keep_days) == (0, 400)
    assert plan.configuration_sha256 == settings.configuration_sha256


def test_by_default_the_key_is_in_the_data_folder_and_nothing_is_keyed_or_copied(tmp_path: Path) -> None:
    plan = TrailPlan.of(_settings(tmp_path))
    assert plan.signing_key == str(tmp_path / "data" / "trail-key.pem")
    assert (plan.personal_key, plan.copy_folder, plan.digest_queue, plan.keep_days) == ("", "", "", 0)


def test_a_plan_is_read_back_as_it_was_kept(tmp_path: Path) -> None:
    trail = tmp_path / "data" / "trail"
    trail.mkdir(parents=True)
    assert TrailPlan.kept(trail) == TrailPlan.standard(trail)
    plan = TrailPlan.of(_settings(tmp_path, personal_data="keyed", segment_minutes=3))
    plan.keep(trail)
    assert TrailPlan.kept(trail) == plan


def test_digests_name_the_versions_that_are_told_and_without_them_those_of_this_program() -> None:
    plan = TrailPlan(signing_key="sign.pem", configuration_sha256="c" * 64)
    told, found = plan.provenance(("1.2", "7")), plan.provenance()
    assert (told.code_version, told.table_version, told.configuration_sha256) == ("1.2", "7", "c" * 64)
    assert (found.code_version, found.table_version) == (version("rfhbridge"), TABLE_VERSION)


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"version":2}', b'{"version":1}', b'{"version":1,"other":1}'])
def test_what_is_no_plan_is_told(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "trail-plan.json").write_bytes(text)
    with pytest.raises(StoreError, match="start the gateway"):
        TrailPlan.kept(tmp_path / "trail")


def test_a_command_writes_what_waits_as_the_gateway_did(store, tmp_path: Path) -> None:
    (tmp_path / "personal.key").write_bytes(bytes(range(32)))
    (tmp_path / "personal.key").chmod(0o600)
    plan = TrailPlan(signing_key=str(tmp_path / "sign.pem"), personal_key=str(tmp_path / "personal.key"))
    store.trail.mkdir()
    plan.keep(store.trail)
    store.commit((NoteKind.SESSION, AT, "sensor-7", 1, "opened", 4, True))
    export_pending(store.queue_manager, store.trail, close_segment=True)
    assert (tmp_path / "sign.pem").exists()
    assert b"sensor-7" not in b"".join(path.read_bytes() for path in store.trail.rglob("*") if path.is_file())
    assert verify(store.trail).verdict is Verdict.INTACT


def test_a_command_without_the_key_leaves_what_waits(store, tmp_path: Path) -> None:
    plan = TrailPlan(signing_key=str(tmp_path / "sign.pem"), personal_key=str(tmp_path / "destroyed.key"))
    store.trail.mkdir()
    plan.keep(store.trail)
    store.commit((NoteKind.SESSION, AT, "sensor-7", 1, "opened", 4, True))
    with pytest.raises(StoreError, match=r"destroyed\.key is missing"):
        export_pending(store.queue_manager, store.trail, close_segment=True)
    assert store.queue_manager.depth("SYSTEM.RFHBRIDGE.AUDIT") == 1
