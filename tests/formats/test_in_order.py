"""Files that land in order: the newest one of a folder says which were read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from polynya.formats.batch import FileProgress
from polynya.formats.files import newest_only, unread
from polynya.store.object_store import ObjectInfo

WHOLE = FileProgress(1, 1, complete=True)


def there(*paths: str) -> list[ObjectInfo]:
    return [ObjectInfo(path, 1) for path in paths]


def names(*paths: str, done: dict[str, FileProgress]) -> list[tuple[str, int]]:
    found = unread(there(*paths), done, may_grow=False, in_order=True)
    return [(part.path, part.start) for part in found.files]


def test_files_before_the_newest_that_was_read_are_read() -> None:
    assert names("a/1", "a/2", "a/3", done={"a/2": WHOLE}) == [("a/3", 0)]


def test_folders_have_nothing_to_do_with_each_other() -> None:
    assert names("a/1", "b/1", "1", done={"a/2": WHOLE}) == [("1", 0), ("b/1", 0)]


def test_a_file_that_was_read_in_part_goes_on() -> None:
    assert names("a/1", "a/2", done={"a/1": FileProgress(1, 7, complete=False)}) == [
        ("a/1", 7), ("a/2", 0),
    ]  # fmt: skip


@given(st.sets(st.integers(0, 40)), st.integers(1, 7))
def test_what_is_remembered_is_enough(numbers: set[int], step: int) -> None:
    """Whatever was there at each look, each file is read once, in order."""
    landed = [f"a/{number:03d}" for number in sorted(numbers)]
    done: dict[str, FileProgress] = {}
    read: list[str] = []
    for end in range(0, len(landed) + step, step):
        for path, _ in names(*landed[:end], done=done):
            read.append(path)
            done = newest_only(done, {path: WHOLE})
            assert len(done) == 1

    assert read == landed
