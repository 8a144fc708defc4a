"""The rescue folder is made ready before the store is opened, and a rescued store is never replaced by an empty one."""

from pathlib import Path

import pytest

from gateway.config import ConfigurationError, Settings
from gateway.rescue_folder import ready_rescue_folder


def settings(tmp_path: Path, folder: Path) -> Settings:
    return Settings.model_validate({"data": str(tmp_path / "var"), "rescue_folder": str(folder)})


def test_the_folder_is_made_for_its_owner_alone_and_none_where_none_is_named(tmp_path: Path) -> None:
    ready_rescue_folder(settings(tmp_path, tmp_path / "other" / "rescue"))
    assert (tmp_path / "other" / "rescue").stat().st_mode & 0o777 == 0o700
    ready_rescue_folder(Settings.model_validate({"data": str(tmp_path / "var")}))
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_a_folder_that_cannot_be_had_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=r"rescue_folder: .*cannot be used: Not a directory"):
        ready_rescue_folder(settings(tmp_path, tmp_path / "file" / "rescue"))
