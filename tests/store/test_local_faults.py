"""What the machine lacks for a moment is told apart from what is wrong with a file."""

from __future__ import annotations

import errno
import gzip
import io
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from polynya.formats.errors import UnreadableFileError
from polynya.formats.opening import landed_file
from polynya.model.errors import DependencyError
from polynya.store import object_store
from polynya.store.object_store import LocalObjectStore, ObjectInfo

PASSING = [errno.EACCES, errno.EIO, errno.EMFILE, errno.ESTALE, errno.ENOMEM]


@pytest.fixture
def store(tmp_path: Path) -> LocalObjectStore:
    (tmp_path / "a.json").write_text('{"id": 1}\n' * 50_000)
    return LocalObjectStore(tmp_path)


@pytest.mark.parametrize("number", PASSING)
def test_a_file_that_cannot_be_opened_now_is_no_damaged_one(
    store: LocalObjectStore, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: io.FileIO, path: Path) -> None:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr("polynya.store.object_store._Local.__init__", refuse)

    with pytest.raises(DependencyError) as caught, landed_file(store, "a.json", "json"):
        pass

    assert caught.value.code == "POLYNYA-STO-003"
    assert caught.value.retryable


@pytest.mark.parametrize("number", PASSING)
@pytest.mark.parametrize("content", ["json", "gzip", "parquet"])
def test_nor_is_one_whose_reading_breaks_off(
    store: LocalObjectStore, number: int, content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = {
        "json": b"x" * 200_000,
        "gzip": gzip.compress(random.Random(1).randbytes(200_000)),
        "parquet": b"PAR1" + b"x" * 200_000,
    }
    (store.root / "b").write_bytes(contents[content])
    reads = iter(range(1_000))
    real = io.FileIO.readinto

    def breaks_off(file: io.FileIO, buffer: bytearray) -> int:
        if next(reads) > 0:
            raise OSError(number, os.strerror(number))
        return real(file, buffer)

    monkeypatch.setattr(object_store, "read_into", breaks_off)

    kind = "parquet" if content == "parquet" else "json"
    with pytest.raises(DependencyError), landed_file(store, "b", kind) as file:
        file.read()


def test_what_is_no_regular_file_is_refused_as_a_file(store: LocalObjectStore) -> None:
    os.mkfifo(store.root / "pipe.json")
    (store.root / "loop.json").symlink_to("loop.json")

    for name in ("pipe.json", "loop.json", "nothing.json"):
        with pytest.raises(UnreadableFileError), landed_file(store, name, "json"):
            pass


def test_a_name_that_is_not_utf_8_is_listed_and_refused_as_a_file(store: LocalObjectStore) -> None:
    os.makedirs(os.fsencode(store.root) + b"/in\xff", exist_ok=True)
    for name in (b"b\xff.json", b"in\xff/c.json"):
        Path(os.fsdecode(os.fsencode(store.root) + b"/" + name)).write_text('{"id": 1}')

    listed = [info.path for info in store.list()]

    assert sorted(listed) == ["a.json", "b\\xff.json", "in\\xff/c.json"]
    assert sorted(info.path for info in store.beginning("")) == sorted(listed)
    for name in listed[1:]:
        with (
            pytest.raises(UnreadableFileError, match="not UTF-8"),
            landed_file(store, name, "json"),
        ):
            pass


@pytest.mark.parametrize("number", PASSING)
@pytest.mark.parametrize("list_all", [LocalObjectStore.list, lambda store: store.beginning("")])
def test_a_folder_that_cannot_be_listed_now_is_not_empty(
    store: LocalObjectStore,
    list_all: Callable[[LocalObjectStore], Iterator[ObjectInfo]],
    number: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (store.root / "in").mkdir()
    real = os.scandir

    def refuse(folder: Any) -> Any:
        if str(folder).endswith("/in"):
            raise OSError(number, os.strerror(number), str(folder))
        return real(folder)

    monkeypatch.setattr(os, "scandir", refuse)

    with pytest.raises(DependencyError, match="cannot be read now"):
        list(list_all(store))


def test_a_folder_that_is_gone_is_empty(store: LocalObjectStore) -> None:
    assert list(store.list("nothing")) == []
    assert list(store.beginning("nothing/")) == []


def test_all_of_a_file_is_read_by_every_way(store: LocalObjectStore) -> None:
    whole = (store.root / "a.json").read_bytes()

    with store.open("a.json") as file:
        assert file.read() == whole
    with store.open("a.json") as file:
        assert file.read(10) + file.read(200_000) + file.read() == whole
