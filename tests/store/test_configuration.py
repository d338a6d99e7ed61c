"""The files of a project as a value: identity, hostile names, all or nothing on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polynya.model.errors import ConfigError
from polynya.store.configuration import (
    ConfigurationSnapshot,
    FolderSource,
    identity_of,
    is_project_file,
    write_to,
)

FILES = st.dictionaries(st.text(max_size=4), st.binary(max_size=4), max_size=4)


@given(FILES, FILES)
def test_the_identity_tells_two_sets_of_files_apart(one: dict, other: dict) -> None:
    assert (identity_of(one) == identity_of(other)) == (one == other)


def test_a_folder_is_its_configuration_and_not_its_data(tmp_path: Path) -> None:
    parts = (
        "polynya.yml",
        "tasks/users.yml",
        "tests/users.yml",
        "connections/rds.pem",
        "bindings/prod.yml",
    )
    for name in (*parts, "landing/1.json", "tasks/.x", "tasks/x.pem", "connections/x.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    source = FolderSource(tmp_path)

    before = source.read()
    (tmp_path / "landing/2.json").touch()
    same = source.read()
    (tmp_path / "tasks/users.yml").write_text("other", encoding="utf-8")

    assert before.files == {name: name.encode() for name in parts}
    assert all(map(is_project_file, parts))
    assert not any(map(is_project_file, ("tasks/x.pem", "connections/x.txt", "connections/.pem")))
    assert (before.revision, before.edited) == (None, ())
    assert same == before
    assert source.read().identity != before.identity


def test_what_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        FolderSource(tmp_path / "nowhere").read()
    assert caught.value.code == "POLYNYA-CFG-001"


def test_a_file_of_any_size_is_read_as_far_as_it_takes_to_refuse_it(tmp_path: Path) -> None:
    (tmp_path / "polynya.yml").write_bytes(b"#" * 3_000_000)

    assert len(FolderSource(tmp_path).read().files["polynya.yml"]) == 1_000_001


def test_written_files_replace_those_from_before(tmp_path: Path) -> None:
    folder = tmp_path / "config"
    first, second = {"polynya.yml": b"1", "tasks/a.yml": b"a"}, {"polynya.yml": b"2"}

    for files in (first, second):
        write_to(ConfigurationSnapshot("-", files), folder)
        assert FolderSource(folder).read().files == files

    assert len(list(tmp_path.iterdir())) == 2  # the folder and the link to it


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "a\\b", "x\0", "", "polynya.yml/x"])
def test_a_hostile_name_is_written_nowhere(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "work" / "config"
    write_to(ConfigurationSnapshot("-", {"polynya.yml": b"1"}), folder)
    before = sorted(tmp_path.rglob("*"))

    with pytest.raises(ConfigError) as caught:
        write_to(ConfigurationSnapshot("-", {"polynya.yml": b"2", name: b"x"}), folder)

    assert caught.value.code == "POLYNYA-CFG-011"
    assert sorted(tmp_path.rglob("*")) == before
