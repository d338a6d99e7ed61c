"""All stores behave alike; the local one never leaves its root."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from polynya.model.errors import OperationError
from polynya.store.object_store import LocalObjectStore, ObjectInfo, ObjectStore


def test_put_replaces_and_get_returns_the_bytes(store: ObjectStore) -> None:
    store.put("a/b.json", b"1")
    store.put("a/b.json", b"22")

    assert store.get("a/b.json") == b"22"
    assert store.size("a/b.json") == 2


def test_put_if_absent_lets_one_writer_win(store: ObjectStore) -> None:
    assert store.put_if_absent("lock", b"first")
    assert not store.put_if_absent("lock", b"second")
    assert store.get("lock") == b"first"


def test_a_file_is_put_as_a_whole_unless_there_is_something(store: ObjectStore) -> None:
    file = io.BytesIO(b"first")
    file.seek(3)

    assert store.put_file_if_absent("lock", file)
    assert not store.put_file_if_absent("lock", io.BytesIO(b"second"))
    assert store.get("lock") == b"first"


def test_list_gives_all_objects_of_a_folder_in_path_order(store: ObjectStore) -> None:
    for path in ("b/2", "b/1", "a", "bc/3", "b/sub/0"):
        store.put(path, b"x")

    assert [info.path for info in store.list("b")] == ["b/1", "b/2", "b/sub/0"]
    assert next(iter(store.list())) == ObjectInfo("a", 1)


def test_a_missing_folder_is_empty_and_a_missing_object_an_error(store: ObjectStore) -> None:
    assert list(store.list("nothing")) == []
    with pytest.raises(FileNotFoundError):
        store.get("nothing")
    store.delete("nothing")


def test_a_reader_seeks_and_ends(store: ObjectStore) -> None:
    store.put("a", b"0123456789")
    store.put("empty", b"")

    with store.open("a") as file:
        assert file.seek(-3, 2) == 7
        assert file.read() == b"789"
        assert file.read() == b""
        file.seek(2)
        assert file.read(3) == b"234"
    with store.open("empty") as file:
        assert file.read() == b""
    with pytest.raises(FileNotFoundError):
        store.open("nothing")
    with pytest.raises(FileNotFoundError):
        store.size("nothing")


def test_delete_removes(store: ObjectStore) -> None:
    store.put("a", b"x")
    store.delete("a")

    assert list(store.list()) == []


@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", "a/../../x", "a\\b", "a\0", "", ".", "a//b"]
)
def test_a_path_that_escapes_is_refused(store: ObjectStore, path: str) -> None:
    for attempt in (store.get, store.open, lambda p: store.put(p, b"x")):
        with pytest.raises(OperationError) as caught:
            attempt(path)
        assert caught.value.code == "POLYNYA-STO-001"


def test_a_symbolic_link_out_of_the_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"s")
    root = tmp_path / "root"
    root.mkdir()
    (root / "link").symlink_to(tmp_path / "secret")
    (root / "folder").symlink_to(tmp_path)
    store = LocalObjectStore(root)

    for path in ("link", "folder/secret"):
        with pytest.raises(OperationError):
            store.get(path)
    # A linked folder is not entered; a linked file is listed, so that reading it is reported.
    assert [info.path for info in store.list()] == ["link"]


def test_no_temporary_file_is_left_or_listed(tmp_path: Path) -> None:
    store = LocalObjectStore(tmp_path)
    store.put("a", b"1")
    store.put_if_absent("a", b"2")

    assert sorted(file.name for file in tmp_path.iterdir()) == ["a"]
