"""What a text names: a folder of this machine, or a place of another one."""

import pickle
from pathlib import Path

import pytest

from spark_audit.location import Location, LocationFailed, UnknownLocation, local_path, scheme_of


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("var/trail", "var/trail"),
        ("/var/trail", "/var/trail"),
        ("a:b/c", "a:b/c"),
        ("C:/trail", "C:/trail"),
        ("./s3:/b", "s3:/b"),
        ("file:/var/a%20trail", "/var/a trail"),
        ("FILE:///var/trail", "/var/trail"),
        ("file://localhost/var/trail", "/var/trail"),
        ("file:///%ff", "/\udcff"),
        ("s3://bucket/trail", None),
        ("s3a:/bucket/trail", None),
    ],
)
def test_a_path_and_a_uri_of_a_file_are_folders_of_this_machine(text: str, path: str | None) -> None:
    assert local_path(text) == (None if path is None else Path(path))


@pytest.mark.parametrize(
    "text",
    ["", "file://key:secret@other/var/trail", "file:///trail?secret", "file:///trail#secret", "file://[secret/trail"],
)
def test_a_uri_of_a_file_that_names_none_of_this_machine_is_refused(text: str) -> None:
    with pytest.raises(UnknownLocation) as refused:
        local_path(text)
    assert "secret" not in str(refused.value)


def test_a_scheme_has_two_letters_or_more() -> None:
    assert [scheme_of(text) for text in ("S3A://b", "gs:/b", "c:/b", "b", "b:c")] == ["s3a", "gs", "", "", ""]


def test_a_place_that_failed_says_so_in_another_process_too() -> None:
    error = pickle.loads(pickle.dumps(LocationFailed("s3://bucket/trail", "nobody answers (check the network)")))
    assert str(error) == "s3://bucket/trail: nobody answers (check the network)"
    assert (error.filename, error.strerror) == ("s3://bucket/trail", "nobody answers (check the network)")


def test_a_folder_of_this_machine_is_a_location(tmp_path: Path) -> None:
    def names(location: Location) -> list[str]:
        return sorted(each.name for each in location.iterdir())

    (tmp_path / "file").write_bytes(b"")
    assert names(tmp_path) == ["file"]
