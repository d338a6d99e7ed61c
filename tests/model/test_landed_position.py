"""Landed batches that were gone before a table copied them: never passed over in silence."""

from __future__ import annotations

import pytest

from polynya.formats.batch import FileProgress
from polynya.formats.landed import batch_name, before_copy, gone_between
from polynya.model.positions import Gone, Reached, Read, Span, after_copy, gone

FOLDER = "clicks/users"


def batch(number: int, *, whole: bool = True) -> Read:
    """A batch of ten messages, of which six were read unless it was read whole."""
    begin = 10 * (number - 1)
    return Read(number, whole, begin, begin + (10 if whole else 6))


def at(number: int, messages: int | None, *, whole: bool = True) -> Reached:
    return Reached(FOLDER, number, whole, messages)


@pytest.mark.parametrize(
    ("before", "read", "missing"),
    [
        pytest.param(at(4, 40), [5, 6], [], id="the next ones"),
        pytest.param(at(4, 36, whole=False), [4, 5], [], id="the rest of the newest"),
        pytest.param(at(4, 40), [7, 8], [Gone(5, 6, 20)], id="two were removed"),
        pytest.param(at(4, 36, whole=False), [5], [Gone(4, 4, 4)], id="the rest of the newest was"),
        pytest.param(at(4, 40), [5, 7], [Gone(6, 6, 10)], id="one in between was"),
        pytest.param(at(4, None), [6], [Gone(5, 5, None)], id="by a state of an older version"),
        pytest.param(None, [9], [], id="a new table begins with what is there"),
        pytest.param(at(4, 40), [1, 2], [], id="the folder was emptied"),
    ],
)
def test_what_is_missing_between_what_was_copied_and_what_was_read(
    before: Reached | None, read: list[int], missing: list[Gone]
) -> None:
    span = Span(FOLDER, tuple(batch(number) for number in read))

    assert list(gone(before, span)) == missing


def test_a_batch_that_could_not_be_read_is_in_quarantine_and_not_missing() -> None:
    span = Span(FOLDER, (batch(5), Read(6, whole=True), batch(7), batch(9)))

    assert gone(at(4, 40), span) == (Gone(8, 8, 10),)


def test_what_was_lost_stays_counted() -> None:
    lost = Reached(FOLDER, 4, whole=True, messages=40, lost_batches=3, lost_messages=30)

    after = after_copy(lost, lost, Span(FOLDER, (batch(6), batch(7, whole=False))))

    assert after == Reached(FOLDER, 7, False, 66, lost_batches=4, lost_messages=40)
    assert after_copy(None, after, Span(FOLDER, (batch(1),))).lost_batches == 4


def test_a_state_without_that_position_has_it_from_its_files() -> None:
    files = {
        f"{FOLDER}/{batch_name(4)}": FileProgress(9, 5, complete=True),
        f"other/{batch_name(9)}": FileProgress(9, 5, complete=True),
    }

    assert before_copy(None, files, FOLDER) == at(4, None)
    assert before_copy(at(4, 40), files, FOLDER) == at(4, 40)
    # A reload has read on: what is known of the newest before it says nothing.
    assert before_copy(at(3, 30), files, FOLDER) == at(4, None)
    assert before_copy(at(4, 40), files, "another") is None


def test_tasks_whose_tables_share_files_lack_batches_folder_by_folder() -> None:
    whole, part = FileProgress(9, 5, complete=True), FileProgress(9, 2, complete=False)

    def files(**numbers: list[int]) -> dict[str, FileProgress]:
        return {
            f"{folder}/{batch_name(number)}": whole
            for folder, found in numbers.items()
            for number in found
        }

    done = files(a=[3, 4], b=[7]) | {f"c/{batch_name(2)}": part, "a/other.json": whole}
    read = files(a=[6, 9], b=[8], c=[3], d=[5]) | {"a/more.json": whole}

    assert gone_between(done, read) == {
        "a": (Gone(5, 5, None), Gone(7, 8, None)),
        "c": (Gone(2, 2, None),),
    }
    assert gone_between({}, read) == {"a": (Gone(7, 8, None),)}
