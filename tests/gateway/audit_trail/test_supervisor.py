"""Keys that are missing or wrong are told before the gateway starts."""

import os
from pathlib import Path

import pytest

from gateway import daemon
from gateway.audit_trail.segment import Trail
from gateway.config import ConfigurationError, Settings


@pytest.fixture
def begun(data_folder: Path, clock, batches) -> Path:
    """A data folder whose trail has a digest."""
    data_folder.mkdir()
    with Trail.open(data_folder / "trail", now=clock) as trail:
        trail.append(*batches())
        trail.close_segment()
    return data_folder


def _run(data: Path, **audit: object) -> int:
    settings = Settings.model_validate({"listen": "127.0.0.1:0", "data": str(data), "audit": audit})
    return daemon.run(settings, ready=lambda _listeners: pytest.fail("the port was opened"))


def test_a_gateway_without_the_signing_key_of_its_trail_does_not_start(begun: Path) -> None:
    (begun / "trail-key.pem").rename(begun / "lost.pem")
    with pytest.raises(ConfigurationError, match=r"trail-key\.pem is missing"):
        _run(begun)


def test_a_gateway_with_another_signing_key_does_not_start(begun: Path, tmp_path: Path) -> None:
    with Trail.open(tmp_path / "other" / "trail"):
        other = tmp_path / "other" / "trail-key.pem"
    with pytest.raises(ConfigurationError, match="is not the key of this trail"):
        _run(begun, signing_key=str(other))


def test_a_gateway_whose_personal_key_was_destroyed_does_not_start(begun: Path) -> None:
    with pytest.raises(ConfigurationError, match="head -c 32 /dev/urandom"):
        _run(begun, personal_data="keyed")


def test_a_data_folder_that_cannot_be_had_is_named_before_the_keys_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=r"data: .*/file cannot be had: File exists \(name a folder that"):
        _run(tmp_path / "file")
    with pytest.raises(ConfigurationError, match=r"data: .*/file/var cannot be had: Not a directory"):
        _run(tmp_path / "file" / "var")
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    with pytest.raises(ConfigurationError, match="cannot be had: Permission denied"):
        _run(tmp_path)
