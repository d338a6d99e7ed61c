"""Several datasets at the same time: which error is raised."""

from __future__ import annotations

import pytest

from polynya.engine.scheduler import run_in_threads
from polynya.model.errors import FencedError, OperationError


def raised(error: Exception) -> None:
    raise error


def test_the_first_error_is_raised_when_all_are_done() -> None:
    done: list[int] = []
    first = OperationError("X", "broken")

    def work(number: int) -> None:
        done.append(number)
        if number:
            raise first if number == 1 else OperationError("X", "broken too")

    with pytest.raises(OperationError) as failed:
        run_in_threads(work, [0, 1, 2, 3])

    assert failed.value is first
    assert sorted(done) == [0, 1, 2, 3]


def test_of_tables_with_newer_owners_the_highest_epoch_is_told() -> None:
    """A grant above it is enough for all of them."""
    errors: list[Exception] = [OperationError("X", "broken")]
    errors += [FencedError("POLYNYA-LAKE-060", "taken", epoch=number) for number in (5, 9, 7)]

    with pytest.raises(FencedError) as failed:
        run_in_threads(raised, errors)

    assert failed.value.epoch == 9
