"""What a person asks of single units: to reload them, or to let them begin again.

Every node reads all wishes; the owner of a unit carries its wish out and deletes it. What became of
it is written first, so that a node that dies in between leaves no wish that looks undone. What a
new owner has listed may be half a minute old, and done by the one before: it reads it again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final, cast, get_args

from polynya.cluster.coordination import paths
from polynya.cluster.coordination.documents import UnitOutcome, UnitWish
from polynya.cluster.coordination.register import STORE_ERRORS, Found, Register
from polynya.cluster.unit import JobKey
from polynya.engine.verbs.errand import Errand, ErrandKind
from polynya.model.config.reload import ReloadMode
from polynya.model.errors import OperationError
from polynya.store.clock import Clock

#: What is asked takes minutes, and a listing costs a request.
EVERY_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A wish that this version can carry out. `wish` is its nonce."""

    wish: str
    errand: Errand
    by: str
    since: datetime
    reason: str = ""

    def text(self) -> str:
        """What is asked, by whom, and why."""
        return f"{self.errand.kind}, asked by {self.by}" + (
            f": {self.reason}" if self.reason else ""
        )


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of a wish; `done`: it was carried out, else `text` says why not."""

    unit: JobKey
    asked: Asked
    done: bool
    text: str
    epoch: int


class UnitWishes:
    """The wishes as far as the store answers: what was known stays so. `node`: the id of this one.

    Called on one thread; `settle` may be called on any.
    """

    def __init__(self, register: Register, node: str, clock: Clock) -> None:
        self._register, self._node, self._clock = register, node, clock
        #: By path, with the version; None for one that is done, or that this version cannot do.
        self._known: dict[str, tuple[str, Asked | None]] = {}
        self._settled: deque[Settled] = deque()
        self._read_at: float | None = None
        #: The epoch of each unit under which its wish was read again; only of units with a wish.
        self._confirmed: dict[JobKey, int] = {}

    def settle(self, settled: Settled) -> None:
        """Let everybody know with the next call what became of a wish."""
        self._settled.append(settled)

    def __call__(self) -> Mapping[JobKey, Asked]:
        """What is asked, by unit, as it was listed last; what was settled is told first."""
        # What is wrong with the store the member meets in the same turn, and tells.
        with suppress(*STORE_ERRORS):
            self._tell()
        now = self._clock.monotonic()
        if self._read_at is None or now - self._read_at >= EVERY_SECONDS:
            with suppress(*STORE_ERRORS):
                self._read()
                self._read_at = now
        return self._asked_now()

    def confirmed(self, grants: Mapping[JobKey, int]) -> Mapping[JobKey, Asked]:
        """What is asked of the units of this node, as it has been since each was granted.

        A wish that cannot be read again under its grant is left out.
        """
        before = self._confirmed
        sure = {unit: one for unit, one in before.items() if grants.get(unit) == one}
        for unit in self._asked_now():
            if unit in grants and unit not in sure:
                with suppress(*STORE_ERRORS):
                    self._look_again(unit)
                    sure[unit] = grants[unit]
        self._confirmed = sure
        return {unit: asked for unit, asked in self._asked_now().items() if unit in sure}

    def _asked_now(self) -> dict[JobKey, Asked]:
        done = {one.asked.wish for one in list(self._settled)}
        units = ((paths.unit_at(path), asked) for path, (_, asked) in self._known.items())
        return {
            unit: asked
            for unit, asked in units
            if unit is not None and asked is not None and asked.wish not in done
        }

    def _tell(self) -> None:
        while self._settled:
            one = self._settled[0]
            if not self._write(one):
                return
            self._withdraw(one.unit, one.asked.wish)
            self._known.pop(paths.wish_path(one.unit), None)
            self._settled.popleft()

    def _write(self, one: Settled) -> bool:
        """Write what became of a wish; False: it is to be tried again."""
        path = paths.outcome_path(one.unit)
        found = self._register.read(UnitOutcome, path)
        if found is not None and found.document.epoch > one.epoch:
            # Of somebody who has owned the unit since.
            return True
        outcome = UnitOutcome(
            wish=one.asked.wish,
            kind=one.asked.errand.kind,
            done=one.done,
            text=one.text[:2000],
            node=self._node,
            epoch=one.epoch,
            by=one.asked.by,
            asked=one.asked.since,
            ended=self._clock.now(),
        )
        unknown = found.document.model_extra if found is not None else None
        outcome = outcome.model_copy(update=unknown or {})
        version = found.version if found is not None else None
        return self._register.write(path, outcome, version)

    def _withdraw(self, unit: JobKey, wish: str) -> None:
        path = paths.wish_path(unit)
        found = self._register.read(UnitWish, path)
        if found is not None and found.document.nonce == wish:
            self._register.delete(path, found.version)

    def _read(self) -> None:
        found = {path: one.version for path, one in self._register.list(paths.WISHES).items()}
        known = {path: one for path, one in self._known.items() if path in found}
        for path, version in found.items():
            if path not in known or known[path][0] != version:
                known[path] = (version, self._asked(path))
        self._known = known

    def _look_again(self, unit: JobKey) -> None:
        path = paths.wish_path(unit)
        self._known[path] = (self._known[path][0], self._asked(path))

    def _asked(self, path: str) -> Asked | None:
        unit = paths.unit_at(path)
        try:
            found = self._register.read(UnitWish, path)
        except OperationError:
            return None
        if unit is None or found is None or self._is_done(unit, found):
            return None
        return _understood(found.document)

    def _is_done(self, unit: JobKey, found: Found[UnitWish]) -> bool:
        """Whether its last owner said so and died before it could delete it; then that is done."""
        outcome = self._register.read(UnitOutcome, paths.outcome_path(unit))
        done = outcome is not None and outcome.document.wish == found.document.nonce
        if done:
            self._register.delete(paths.wish_path(unit), found.version)
        return done


def _understood(wish: UnitWish) -> Asked | None:
    """A wish as an errand; None for one that another version has to carry out."""
    mode = wish.mode or Errand("reload").mode
    if wish.kind not in get_args(ErrandKind) or mode not in get_args(ReloadMode):
        return None
    errand = Errand(
        cast("ErrandKind", wish.kind),
        wish.dataset,
        cast("ReloadMode", mode),
        wish.files,
        wish.as_of,
        wish.accept_incomplete,
    )
    return Asked(wish.nonce, errand, wish.by, wish.since, wish.reason)
