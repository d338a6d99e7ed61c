"""Work on several datasets at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from polynya.model.errors import SuspendedError

T = TypeVar("T")

#: Datasets that are copied or applied at the same time; more only wait for the same cores.
THREADS = 4


def in_threads(work: Callable[[T], object], items: Iterable[T]) -> None:
    """Do the work for each item, several at a time; an error is raised when all are done.

    That one dataset waits for a decision hides no failure of another.
    """
    with ThreadPoolExecutor(max_workers=THREADS) as pool:
        futures = [pool.submit(work, item) for item in items]
    errors = [error for future in futures if (error := future.exception()) is not None]
    for error in sorted(errors, key=lambda error: isinstance(error, SuspendedError)):
        raise error
