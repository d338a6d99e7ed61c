"""Whatever is wrong with an index costs time, never a row; the log says what it was."""

from __future__ import annotations

import errno
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from polynya.lake.apply import key_index_file
from polynya.lake.apply.key_index_file import UnusableError, open_index, write_index
from tests.lake.apply.stored import BUILDS, Files, Watched

KEYS = [(number * 37 % 101, f"part {number}") for number in range(100)]
TOUCHED = [KEYS[3], KEYS[50], (999, "nobody"), KEYS[99]]


@pytest.fixture(autouse=True)
def log_of_decisions(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "polynya.lake.apply")


class Indexed(NamedTuple):
    """Two data files with their indexes, which are used."""

    table: Files
    indexes: Watched
    expected: list[dict[str, Any]]

    @property
    def paths(self) -> list[Path]:
        folder = self.indexes.folder.path
        return [folder / self.table.source(number).identity.name for number in (0, 1)]

    def found(self) -> list[dict[str, Any]]:
        self.indexes.used = 0
        return self.table.find(TOUCHED, indexes=self.indexes)


@pytest.fixture
def indexed(tmp_path: Path) -> Indexed:
    table = Files(tmp_path, {"id": "long", "part": "string"})
    table.write(KEYS, groups=3)
    table.write(KEYS[::-1])
    indexes = Watched(tmp_path / "keys")
    for number in (0, 1):
        indexes.build(table.source(number))
    given = Indexed(table, indexes, table.find(TOUCHED))
    assert given.found() == given.expected
    assert indexes.used == 2
    return given


def lose(indexed: Indexed) -> None:
    indexed.paths[0].unlink()


def cut_off(indexed: Indexed) -> None:
    os.truncate(indexed.paths[0], indexed.paths[0].stat().st_size // 2)


def empty(indexed: Indexed) -> None:
    indexed.paths[0].write_bytes(b"")


def flip_a_byte(indexed: Indexed) -> None:
    flip(indexed.paths[0], indexed.paths[0].stat().st_size // 2)


def append_a_byte(indexed: Indexed) -> None:
    with indexed.paths[0].open("ab") as stream:
        stream.write(b"x")


def copy_that_of_another_file(indexed: Indexed) -> None:
    shutil.copy(indexed.paths[1], indexed.paths[0])


def link_that_of_another_file(indexed: Indexed) -> None:
    indexed.paths[0].unlink()
    indexed.paths[0].symlink_to(indexed.paths[1])


def copy_that_of_another_key(indexed: Indexed) -> None:
    indexes = Watched(indexed.indexes.folder.path)
    source = indexed.table.source()
    other = key_index_file.Identity(
        source.identity.file, source.identity.size_bytes, source.identity.rows,
        source.identity.keys[::-1], source.identity.kept,
    )  # fmt: skip
    write_index(indexes.folder.path, other, opened(indexed))
    (indexes.folder.path / other.name).replace(indexed.paths[0])


def let_another_version_write(indexed: Indexed) -> None:
    identity, index = indexed.table.source().identity, opened(indexed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_index_file, "VERSION", key_index_file.VERSION + 1)
        name = identity.name
        write_index(indexed.indexes.folder.path, identity, index)
    (indexed.indexes.folder.path / name).replace(indexed.paths[0])


def let_others_write(indexed: Indexed) -> None:
    indexed.paths[0].chmod(0o666)


def put_a_folder_in_its_place(indexed: Indexed) -> None:
    indexed.paths[0].unlink()
    indexed.paths[0].mkdir()


def remove_the_folder(indexed: Indexed) -> None:
    shutil.rmtree(indexed.indexes.folder.path)


def opened(indexed: Indexed) -> Any:
    return open_index(indexed.indexes.folder.path, indexed.table.source().identity).index


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    ("fault", "said", "used"),
    [
        (lose, "", 1),
        (cut_off, "is not what was written", 1),
        (empty, "is cut off", 1),
        (flip_a_byte, "is not what was written", 1),
        (append_a_byte, "is not what was written", 1),
        (copy_that_of_another_file, "is of another data file", 1),
        (link_that_of_another_file, "is of another data file", 1),
        (copy_that_of_another_key, "is of another data file, key", 1),
        (let_another_version_write, "key or version", 1),
        (let_others_write, "can be changed by others", 1),
        (put_a_folder_in_its_place, "", 1),
        (remove_the_folder, "", 0),
    ],
)
@pytest.mark.parametrize("again", [False, True], ids=["open", "in another process"])
def test_a_fault_costs_time(
    indexed: Indexed, fault: Callable[[Indexed], None], said: str, used: int, again: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    fault(indexed)
    if again:
        indexed = indexed._replace(indexes=Watched(indexed.indexes.folder.path))

    assert indexed.found() == indexed.expected
    assert indexed.indexes.used == used
    assert said in caplog.text
    # What is broken is built again, and then used.
    if fault is not put_a_folder_in_its_place:
        BUILDS.wait()
        indexed.found()
        BUILDS.wait()
        assert indexed.found() == indexed.expected
        assert indexed.indexes.used == 2


def test_every_byte_is_checked(indexed: Indexed) -> None:
    folder, identity = indexed.indexes.folder.path, indexed.table.source().identity
    path = folder / identity.name
    whole = path.read_bytes()

    for at in range(0, len(whole), 23):
        flip(path, at)
        with pytest.raises(UnusableError):
            open_index(folder, identity)
        path.write_bytes(whole)
    for size in range(0, len(whole), 101):
        path.write_bytes(whole[:size])
        with pytest.raises(UnusableError):
            open_index(folder, identity)
    path.write_bytes(whole)
    assert len(open_index(folder, identity).index) == len(KEYS)


def test_an_index_that_is_given_up_while_it_is_used_stays_whole(indexed: Indexed) -> None:
    index = opened(indexed)
    indexed.indexes.folder.remove(indexed.paths[0].name)

    touched = indexed.table.records(TOUCHED).by_key(["id", "part"])
    assert touched is not None
    assert len(index.matches(touched)) == 3


def test_an_open_index_holds_no_file_open(indexed: Indexed) -> None:
    held = [opened(indexed) for _ in range(3)]

    links = [Path("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
    assert indexed.paths[0] not in [link.resolve() for link in links]
    assert [len(index) for index in held] == [len(KEYS)] * 3


def test_one_that_another_process_built_again_is_used(indexed: Indexed) -> None:
    Watched(indexed.indexes.folder.path).build(indexed.table.source())

    assert indexed.found() == indexed.expected
    assert indexed.indexes.used == 2


def test_only_this_user_reads_them(indexed: Indexed) -> None:
    folder = indexed.indexes.folder.path

    assert folder.stat().st_mode & 0o777 == 0o700
    assert [path.stat().st_mode & 0o777 for path in indexed.paths] == [0o600, 0o600]


def full(_: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_leaves_nothing(
    indexed: Indexed, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lose(indexed)
    monkeypatch.setattr(os, "fsync", full)

    indexed.indexes.build(indexed.table.source())

    assert [path.name for path in indexed.indexes.folder.path.iterdir()] == [indexed.paths[1].name]
    assert "No space left on device" in caplog.text
    assert indexed.found() == indexed.expected


def test_nothing_is_built_where_the_limit_or_others_forbid_it(
    indexed: Indexed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = indexed.table
    in_the_way, shared = tmp_path / "file", tmp_path / "shared"
    in_the_way.write_bytes(b"")
    shared.mkdir()
    shared.chmod(0o777)

    for indexes, said in [
        (Watched(tmp_path / "small", limit=1000), "bytes are missing"),
        (Watched(in_the_way), "File exists"),
        (Watched(in_the_way / "below"), "File exists"),
        (Watched(shared), "others can change what is in"),
    ]:
        caplog.clear()
        indexes.build(table.source())
        assert said in caplog.text
        assert table.find(TOUCHED, indexes=indexes) == indexed.expected
        BUILDS.wait()
    assert list(shared.iterdir()) == []


def test_the_least_recently_used_gives_way(indexed: Indexed) -> None:
    folder, size = indexed.indexes.folder.path, indexed.paths[0].stat().st_size
    for number, path in enumerate(indexed.paths):
        os.utime(path, (number, number))
    later = Watched(folder, limit=int(2.5 * size))
    indexed.table.write(KEYS)

    later.build(indexed.table.source(2))

    assert {path.name for path in folder.iterdir()} == {
        indexed.paths[1].name, indexed.table.source(2).identity.name,
    }  # fmt: skip
