"""Work on several datasets at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from polynya.lake.table.fence import epoch_found

T = TypeVar("T")
R = TypeVar("R")

#: Datasets that are copied or applied at the same time; more only wait for the same cores.
THREADS = 4


def in_threads(work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Do the work for each item, several at a time; an error is raised when all are done.

    Of several errors it is that of the table with the highest epoch, so that one new grant is
    enough, and otherwise the first.
    """
    with ThreadPoolExecutor(max_workers=THREADS) as pool:
        futures = [pool.submit(work, item) for item in items]
    failed = [error for future in futures if (error := future.exception()) is not None]
    if failed:
        raise max(failed, key=epoch_found)
    return [future.result() for future in futures]
