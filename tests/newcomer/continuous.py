"""A run that goes on: a file for each table every two seconds, without and with kill -9."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

from tests.newcomer.checks import Check, tried
from tests.newcomer.faults.judging import unseemly
from tests.newcomer.shop.feed import FIRST_MARKER, TABLES
from tests.newcomer.shop.freshness import Landed, freshness
from tests.newcomer.shop.project import SCHEMA, Shop
from tests.newcomer.shop.service import Service, land, until
from tests.newcomer.shop.watching import Watcher
from tests.oracle.packs.read_back import internal_table

#: Seconds between two files of a table, and the records of each.
EVERY_SECONDS, RECORDS = 2.0, 25
#: Between two kills, in seconds, the start of the next process included.
_KILLS = (25.0, 60.0)
#: Between two questions to the live views while files land.
_ASK_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Options:
    """`floor` is the highest p95 in seconds, None where it is not judged; `seed` for the kills."""

    minutes: float
    floor: float | None
    kills: bool
    seed: int = 1


def checks(shop: Shop, options: Options) -> Iterator[Check]:
    """Let files land for so many minutes, then compare what is there."""
    part = "kills" if options.kills else "continuous"
    minutes = f"{options.minutes:g} min, a file per table every {EVERY_SECONDS:g} s"
    yield tried(part, minutes, lambda: _fed(shop, options))
    yield tried(part, "live, as it was left", shop.damage)
    yield tried(part, "applied", lambda: _applied(shop))


def _fed(shop: Shop, options: Options) -> Check:
    names = {internal_table(SCHEMA, one.name): one.name for one in TABLES}
    with Watcher(shop.folder, names) as watcher, ExitStack() as stack:
        service = Service(shop, stack)
        began = time.monotonic()
        service.start()
        first = land(shop, RECORDS)
        until(lambda: first.keys() <= watcher.seen.keys(), service)
        ready = time.monotonic() - began
        with _Asking(shop, watcher) as asking:
            closed = _feed(shop, service, options)
        until(lambda: closed.keys() <= watcher.seen.keys(), service)
        code = service.end()
    found = freshness(closed, watcher.seen)
    ended = [f"exit code {code} after SIGTERM"] if code else []
    odd = [f"it said: {text}" for said in service.said for text in unseemly(said)]
    problems = [*found.problems(options.floor), *ended, *asking.problems, *odd]
    killed = f", {service.kills} kills" if options.kills else ""
    said = f"{found}; {found.files} files{killed}; ready after {ready:.0f} s"
    figures = {"p50": found.p50, "p95": found.p95, "max": found.most, "files": found.files}
    figures |= {"kills": service.kills, "ready": ready, "views asked": asking.asked}
    return Check("", "", tuple(problems), said, figures)


def _feed(shop: Shop, service: Service, options: Options) -> dict[Landed, float]:
    """Land file after file; the moments at which they were closed."""
    chance = random.Random(options.seed)
    closed: dict[Landed, float] = {}
    began = time.monotonic()
    next_kill = began + chance.uniform(*_KILLS)
    for tick in range(round(options.minutes * 60 / EVERY_SECONDS)):
        time.sleep(max(0.0, began + tick * EVERY_SECONDS - time.monotonic()))
        closed |= land(shop, RECORDS)
        if not service.lives:
            break
        if options.kills and time.monotonic() >= next_kill:
            service.kill()
            next_kill = time.monotonic() + chance.uniform(*_KILLS)
    return closed


class _Asking:
    """Asks live views now and then whether they show what the watcher says that they show."""

    def __init__(self, shop: Shop, watcher: Watcher) -> None:
        self._shop, self._watcher = shop, watcher
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask, name="asking")
        self.asked = 0
        self.problems: list[str] = []

    def __enter__(self) -> _Asking:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        if not self.asked and not self.problems:
            self.problems.append("no live view was asked")

    def _ask(self) -> None:
        # Soon after the start, so that a short run has asked as well.
        wait = EVERY_SECONDS * 4
        while not self._stop.wait(wait):
            wait = _ASK_SECONDS
            for table in TABLES:
                visible = {n for name, n in list(self._watcher.seen) if name == table.name}
                self.problems += missing_markers(visible, self._shown(table.name), table.name)
            self.asked += 1

    def _shown(self, name: str) -> set[int]:
        table = next(one for one in TABLES if one.name == name)
        try:
            return self._shop.live_keys(table, FIRST_MARKER)
        except Exception as error:  # said at the end, with all that else is wrong
            self.problems.append(f"the live view of {name} was not answered: {error}")
            return set()


def missing_markers(visible: set[int], shown: set[int], name: str) -> list[str]:
    """Files that were taken for visible, and whose first record a live view does not show.

    Files of the first load have no such record: a file counts when a later one shows its own.
    """
    markers = {key - FIRST_MARKER for key in shown}
    first = min(markers, default=0)
    lost = sorted(number for number in visible - markers if number >= first)
    return [f"{name}: visible by its files, not in the live view: {lost[:5]}"] if lost else []


def _applied(shop: Shop) -> list[str]:
    shop.polynya.must("run", "--once", "--apply", "always")
    printed = shop.polynya.call("verify")
    unsound = [] if printed.code == 0 else [printed.output + printed.errors]
    return [*unsound, *shop.damage(stored=True)]
