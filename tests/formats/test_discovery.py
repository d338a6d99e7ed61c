"""Which files are read, and in which order."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polynya.formats.batch import FilePart, FileProgress
from polynya.formats.files import (
    ChangedFile,
    Discovery,
    LandedFiles,
    glob_pattern,
    matching,
    unread,
)
from polynya.store.object_store import LocalObjectStore, ObjectInfo
from polynya.testing.fakes import MemoryObjectStore


def _store(*paths: str) -> MemoryObjectStore:
    return MemoryObjectStore(dict.fromkeys(paths, b"12345"))


def discover(
    store: MemoryObjectStore, root: str, glob: str, done: Mapping[str, FileProgress]
) -> Discovery:
    return unread(matching(store.list(root), root, glob), done)


def test_files_come_in_name_order() -> None:
    found = discover(_store("u/2.json", "u/10.json", "u/1.json", "v/0.json"), "u", "*.json", {})

    assert [part.path for part in found.files] == ["u/1.json", "u/10.json", "u/2.json"]


def test_unfinished_and_hidden_files_wait() -> None:
    names = [".a.json", "_b.json", "c.json.tmp", "d.part", "e.inprogress", "_tmp/f.json", "ok.json"]

    found = discover(_store(*names), "", "**", {})

    assert [part.path for part in found.files] == ["ok.json"]


def test_a_partly_read_file_goes_on_and_a_complete_one_is_left_alone() -> None:
    done = {"a": FileProgress(5, 3, complete=False), "b": FileProgress(5, 9, complete=True)}

    found = discover(_store("a", "b", "c"), "", "*", done)

    assert found.files == (FilePart("a", 5, 3), FilePart("c", 5, 0))
    assert found.changed == ()


def test_a_changed_file_is_reported_and_not_read() -> None:
    done = {"a": FileProgress(4, 3, complete=True), "b": FileProgress(9, 3, complete=False)}

    found = discover(_store("a", "b"), "", "*", done)

    assert found.files == ()
    assert found.changed == (ChangedFile("a", 4, 5), ChangedFile("b", 9, 5))


def test_a_partly_read_file_may_grow() -> None:
    found = discover(_store("a"), "", "*", {"a": FileProgress(4, 3, complete=False)})

    assert found.files == (FilePart("a", 5, 3),)


@pytest.mark.parametrize(
    ("glob", "matching", "other"),
    [
        ("*.json", "a.json", "load/a.json"),
        ("load/*.json", "load/a.json", "load/x/a.json"),
        ("**/*.json", "x/y/a.json", "a.csv"),
        ("**/*.json", "a.json", "b"),
        ("**", "x/y/z", ""),
        ("a?c", "abc", "a/c"),
        ("[ab].json", "a.json", "c.json"),
        ("[!ab].json", "c.json", "a.json"),
        ("[^a]x", "^x", "bx"),
        ("A.json", "A.json", "a.json"),
        ("a+(b)", "a+(b)", "aab"),
    ],
)
def test_globs(glob: str, matching: str, other: str) -> None:
    assert glob_pattern(glob).fullmatch(matching)
    assert not other or not glob_pattern(glob).fullmatch(other)


@pytest.mark.parametrize("root", ["", "in"])
@pytest.mark.parametrize(
    "glob", ["*/*.json", "a/*", "a/1.json", "a/?.json", "b*/[12].json", "[ab]/**", "**/2.json", "c"]
)
def test_a_list_in_order_gives_what_any_list_gives(root: str, glob: str) -> None:
    names = ["a/1.json", "a/2.json", "a/11.json", "a-b/1.json", "b/1.json", "bc/2.json", "c", "d/c"]
    paths = [f"{root}/{name}" if root else name for name in names]
    landed = [ObjectInfo(path, 1) for path in sorted(paths)]

    found = matching(LandedFiles(reversed(landed)), root, glob)

    assert list(found) == list(matching(landed, root, glob))


def test_of_a_list_in_order_only_files_of_the_dataset_are_looked_at() -> None:
    landed = LandedFiles(
        ObjectInfo(f"t{table}/{file}.json", 1) for table in range(30) for file in "ab"
    )

    found = landed.below("t2/")

    assert [info.path for info in found] == ["t2/a.json", "t2/b.json"]


NAMES = st.sets(st.text("ab/1", min_size=1, max_size=4).map(lambda rest: f"x/{rest}"), max_size=12)


@given(before=NAMES, now=NAMES, sizes=st.integers(1, 2), data=st.data())
def test_files_with_other_ends_are_those_that_a_whole_list_would_have(
    before: set[str], now: set[str], sizes: int, data: st.DataObject
) -> None:
    old = LandedFiles(ObjectInfo(path, 1, "1") for path in before)
    starts = data.draw(st.sets(st.sampled_from(["x/a", "x/b", "x/1"])))
    after = {one: data.draw(st.sampled_from(["", *sorted(before)])) for one in sorted(starts)}
    found = {
        start: [
            ObjectInfo(path, sizes, str(sizes))
            for path in sorted(now)
            if path.startswith(start) and path > after[start]
        ]
        for start in starts
    }

    result = old.with_ends((start, after[start], found[start]) for start in sorted(starts))

    kept = [
        one
        for one in old
        if not any(one.path.startswith(start) and one.path > after[start] for start in starts)
    ]
    whole = LandedFiles([*kept, *(one for some in found.values() for one in some)])
    assert [(one.path, one.size, one.version) for one in result] == [
        (one.path, one.size, one.version) for one in whole
    ]
    assert result.paths == whole.paths


@given(
    st.dictionaries(
        st.sampled_from(["a/1.json", "a/2.json", "a/_3.json", "b/4.json", "b/5.csv"]),
        st.integers(0, 2),
    ),
    st.dictionaries(
        st.sampled_from(["a/1.json", "a/2.json", "b/4.json", "b/5.csv", "gone.json"]),
        st.builds(FileProgress, st.integers(0, 2), st.integers(0, 2), complete=st.booleans()),
    ),
)
def test_files_that_were_read_may_be_left_out_before_their_names_are_compared(
    sizes: dict[str, int], done: dict[str, FileProgress]
) -> None:
    landed = [ObjectInfo(path, size, "") for path, size in sizes.items()]

    found = unread(matching(landed, "", "*/*.json", done=done), done)

    assert found == unread(matching(landed, "", "*/*.json"), done)
    assert [one.path for one in matching(landed, "", "*/*.json", done=done)] == [
        one.path
        for one in matching(landed, "", "*/*.json")
        if one.path not in done or not done[one.path].complete or done[one.path].size != one.size
    ]


def _stamped(path: str, size: int, stamp: int) -> ObjectInfo:
    return ObjectInfo(path, size, stamp=stamp)


@pytest.mark.parametrize("complete", [True, False])
def test_a_file_that_was_replaced_by_one_of_equal_size_is_reported(complete: bool) -> None:
    done = {"a": FileProgress(7, 1, complete, stamp=5)}
    landed = [_stamped("a", 7, 6), _stamped("b", 7, 6)]

    found = unread(matching(landed, "", "*", done=done), done)

    assert found.changed == (ChangedFile("a", 7, 7),)
    assert found.changed[0].stamp == 6
    assert [part.path for part in found.files] == ["b"]


def test_a_file_that_was_not_replaced_or_of_which_nobody_knows_is_not_reported() -> None:
    for now, then in ((5, 5), (0, 5), (5, 0)):
        done = {"a": FileProgress(7, 1, complete=True, stamp=then)}

        assert unread(matching([_stamped("a", 7, now)], "", "*", done=done), done).changed == ()


def test_a_file_that_grew_while_it_was_read_is_read_on() -> None:
    done = {"a": FileProgress(7, 1, complete=False, stamp=5)}

    (part,) = unread([_stamped("a", 9, 6)], done).files

    assert part == FilePart("a", 9, 1)
    assert part.read(2, complete=True).stamp == 6


def test_a_listing_tells_a_replaced_file_from_a_copied_one(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("1")
    store = LocalObjectStore(tmp_path)
    (first,) = store.list()
    shutil.copy2(tmp_path / "a.json", tmp_path / "b.json")
    (tmp_path / "b.json").replace(tmp_path / "a.json")
    (copied,) = store.list()
    (tmp_path / "a.json").write_text("2")
    os.utime(tmp_path / "a.json", ns=(0, 1))
    (replaced,) = store.list()

    assert first.stamp == copied.stamp != replaced.stamp
    assert 0 < replaced.stamp < 1 << 24
