"""Files that land as long as the faults last, and the events in them: what the judge folds."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any, Final

from tests.cluster_demo.captured import Dataset
from tests.cluster_demo.project import lines_of
from tests.oracle.fold import DELETE, UPSERT, Event
from tests.oracle.values import EPOCH

_KEYS: Final = 150
_COLUMNS: Final = ("qty", "price")


@dataclass
class Source:
    """One table's events as they happen. Some land late, and some of keyed tables land twice."""

    dataset: Dataset
    dice: random.Random
    events: list[Event] = field(default_factory=list)
    _numbers: Any = field(default_factory=lambda: count(1))
    _held: list[Event] = field(default_factory=list)

    @classmethod
    def of(cls, task: str, name: str, *, keyed: bool, seed: int) -> Source:
        """A table without events."""
        events: list[Event] = []
        return cls(Dataset(task, name, keyed, _COLUMNS, events), random.Random(seed), events)

    def more(self, number: int) -> list[dict[str, Any]]:
        """The records of the next file, so many new ones and what was held back."""
        new = [self._event() for _ in range(number)]
        self.events += new
        landing, self._held = [*self._held, *new], []
        if self.dataset.keyed:
            self._held = [one for one in landing if self.dice.random() < 0.1]
            late = {one.sequence for one in self._held}
            again = self.dice.sample(self.events, k=min(2, len(self.events) - len(self._held)))
            landing = [one for one in (*landing, *again) if one.sequence not in late]
        return self._lines(landing)

    def rest(self) -> list[dict[str, Any]]:
        """What was held back to the last."""
        held, self._held = self._held, []
        return self._lines(held)

    def _lines(self, events: Sequence[Event]) -> list[dict[str, Any]]:
        one = self.dataset
        return lines_of(Dataset(one.task, one.name, one.keyed, one.columns, events))

    def _event(self) -> Event:
        number = next(self._numbers)
        gone = self.dataset.keyed and self.dice.random() < 0.2
        values = {} if gone else {name: str(self.dice.randrange(10**6)) for name in _COLUMNS}
        key = (f"k{self.dice.randrange(_KEYS)}",)
        moment = EPOCH + timedelta(seconds=number)
        return Event(key, number, DELETE if gone else UPSERT, values, moment)


class Feed:
    """Lands a file for each source every `pause` seconds until it is stopped."""

    def __init__(self, landing: Path, sources: Sequence[Source], *, pause: float) -> None:
        self._landing, self._sources, self._pause = landing, sources, pause
        self._numbers = count()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def finish(self) -> None:
        """Land what is left, and no more."""
        self._stop.set()
        self._thread.join()
        for source in self._sources:
            self._land(source, source.rest())

    def _run(self) -> None:
        while not self._stop.wait(self._pause):
            for source in self._sources:
                self._land(source, source.more(source.dice.randint(2, 8)))

    def _land(self, source: Source, lines: Sequence[dict[str, Any]]) -> None:
        if not lines:
            return
        folder = self._landing / source.dataset.task / source.dataset.name
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{next(self._numbers):07}.json"
        whole = folder / f".{name}"
        whole.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        whole.rename(folder / name)
