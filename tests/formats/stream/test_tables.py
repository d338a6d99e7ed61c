"""Which landed batches are read next: those after the newest that was read."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from polynya.formats.batch import FileProgress
from polynya.formats.files import LandedFiles, newest_only
from polynya.formats.stream.format import unread_of
from polynya.store.object_store import ObjectInfo
from tests.formats.stream.streams import path_of, request_for

DATASET = request_for(b"").table.dataset
WHOLE, PART = FileProgress(9, 5, complete=True), FileProgress(9, 2, complete=False)


def unread(numbers: range, done: Mapping[int, FileProgress]) -> list[tuple[str, int]]:
    """Paths of what is read next, each with its first record."""
    landed = LandedFiles(ObjectInfo(path_of(number), 9) for number in numbers)
    progress = {path_of(number): one for number, one in done.items()}
    found = unread_of(landed, progress, DATASET)
    assert found.changed == ()
    return [(part.path, part.start) for part in found.files]


@pytest.mark.parametrize(
    ("landed", "done", "expected"),
    [
        pytest.param(range(1, 4), {}, [(1, 0), (2, 0), (3, 0)], id="nothing was read"),
        pytest.param(range(1, 4), {2: WHOLE}, [(3, 0)], id="what is before the newest was read"),
        pytest.param(range(1, 4), {2: PART}, [(2, 2), (3, 0)], id="a part of the newest was"),
        pytest.param(range(6, 8), {4: WHOLE}, [(6, 0), (7, 0)], id="what was read has expired"),
        pytest.param(range(1, 3), {4: WHOLE}, [(1, 0), (2, 0)], id="the folder begins anew"),
        pytest.param(range(0), {4: WHOLE}, [], id="the folder is empty"),
    ],
)
def test_batches_are_read_once_and_in_order(
    landed: range, done: dict[int, FileProgress], expected: list[tuple[int, int]]
) -> None:
    assert unread(landed, done) == [(path_of(number), start) for number, start in expected]


def test_only_the_newest_batch_is_remembered_also_of_a_folder_that_begins_anew() -> None:
    before = {path_of(4): WHOLE, "clicks/others/batch-9": WHOLE}

    assert newest_only(before, {}) == before
    assert newest_only(before, {path_of(5): WHOLE, path_of(6): PART}) == {
        path_of(6): PART,
        "clicks/others/batch-9": WHOLE,
    }
    assert newest_only(before, {path_of(1): WHOLE})[path_of(1)] == WHOLE
    assert path_of(4) not in newest_only(before, {path_of(1): WHOLE})
