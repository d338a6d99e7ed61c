"""Landed batches among other files: the newest of a folder says which were read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from polynya.formats.batch import FileProgress
from polynya.formats.files import not_passed, still_told
from polynya.store.object_store import ObjectInfo

WHOLE = FileProgress(1, 1, complete=True)


def is_ordered(path: str) -> bool:
    return path.rpartition("/")[2].startswith("batch")


def left(*paths: str, done: dict[str, FileProgress]) -> list[str]:
    found = not_passed([ObjectInfo(path, 1) for path in paths], done, is_ordered)
    return [info.path for info in found]


def told(before: list[str], now: list[str], live: set[str] | None = None) -> set[str]:
    return set(
        still_told(dict.fromkeys(before, WHOLE), dict.fromkeys(now, WHOLE), live, is_ordered)
    )


def test_batches_before_the_newest_that_was_read_are_read() -> None:
    done = {"a/batch2": WHOLE}

    assert left("a/batch1", "a/batch2", "a/batch3", "b/batch1", "a/x", done=done) == [
        "a/batch2", "a/batch3", "b/batch1", "a/x",
    ]  # fmt: skip


def test_a_folder_that_was_emptied_begins_anew() -> None:
    assert left("a/batch1", "a/batch2", done={"a/batch7": WHOLE}) == ["a/batch1", "a/batch2"]


def test_only_the_newest_batch_and_those_of_the_last_read_are_told() -> None:
    assert told(["a/batch1", "a/batch2"], []) == {"a/batch2"}
    assert told(["a/batch2"], ["a/batch3", "a/batch4"]) == {"a/batch3", "a/batch4"}
    assert told(["a/batch2", "b/batch9", "x"], ["a/batch3"]) == {"a/batch3", "b/batch9", "x"}


def test_other_files_are_forgotten_when_they_are_gone_and_the_newest_batch_is_not() -> None:
    assert told(["x", "y", "a/batch4"], [], live={"x", "z"}) == {"x", "a/batch4"}


@given(st.sets(st.integers(10, 60)), st.integers(1, 5))
def test_every_batch_is_read_once(numbers: set[int], step: int) -> None:
    """Whatever was there at each look."""
    there: list[ObjectInfo] = []
    done: dict[str, FileProgress] = {}
    read: list[str] = []
    for number in range(10, 61):
        there.append(ObjectInfo(f"a/batch{number}", 1))
        if number not in numbers:
            continue
        files = [info.path for info in not_passed(there, done, is_ordered)]
        now = dict.fromkeys([path for path in files if path not in done][:step], WHOLE)
        done = still_told(done, now, None, is_ordered)
        read += now
        assert len(done) <= max(1, step)
    assert read == [info.path for info in there][: len(read)]
