"""Work on several datasets at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

#: Datasets that are copied or applied at the same time; more only wait for the same cores.
THREADS = 4


def in_threads(work: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Do the work for each item, several at a time; an error is raised when all are done."""
    with ThreadPoolExecutor(max_workers=THREADS) as pool:
        futures = [pool.submit(work, item) for item in items]
    return [future.result() for future in futures]
