"""When to copy and when to apply: from facts to a decision with its reason. Pure.

An apply costs a scan of the keys of Current, so it should be worth that; a query pays for pending
changes, so they should not pile up (Semantics section 8). docs/adr/0010-when-to-apply.md has the
sources of the default figures.

A commit costs about the same for one record as for a thousand. So while records trickle in, the
number of commits follows `batch.freshness`, not how often the landing zone is listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Literal
from zlib import crc32

from polynya.engine.unit import LONG_STEP_BYTES, TimeSlice
from polynya.formats.batch import FileProgress
from polynya.formats.files import Discovery
from polynya.model.config.settings import ApplyPolicy, BatchSettings


@dataclass(slots=True)
class StepSpeeds:
    """Seconds for a byte of the last step of each dataset. A dataset has one step at a time."""

    _seconds_a_byte: dict[str, float] = field(default_factory=dict)

    def took(self, name: str, size_bytes: int, seconds: float) -> None:
        """Record a step over a number of bytes of work."""
        if size_bytes > 0:
            self._seconds_a_byte[name] = seconds / size_bytes

    def seconds_for(self, name: str, size_bytes: int) -> float | None:
        """Time that a step will take, None before the first one of a dataset."""
        speed = self._seconds_a_byte.get(name)
        return None if speed is None else speed * size_bytes


#: Landed text is this many times as large as the pending changes made of it. An apply folds and
#: writes each of them.
_LANDED_BYTES_PER_PENDING_BYTE: Final = 4
#: Of Current an apply reads the keys, or an index of them, and a few columns of what matched: in
#: 0.2 to 0.5 s of 900 MB, in which a copy takes in 2 to 5 MB. With history it reads whole rows.
_STORED_BYTES_PER_READ_BYTE: Final = 128
_STORED_BYTES_PER_BYTE_OF_ROWS: Final = 16

ApplyMode = Literal["policy", "always", "never"]


@dataclass(frozen=True, slots=True)
class PendingFacts:
    """Pending Changes of one dataset and the size of its Current.

    `age` is None without pending changes. `history`: the apply also closes former versions.
    """

    rows: int
    size_bytes: int
    files: int
    current_rows: int
    age: timedelta | None = None
    current_bytes: int = 0
    history: bool = False

    @property
    def work_bytes(self) -> int:
        """Landed bytes that a copy takes in about the time that the apply takes."""
        share = _STORED_BYTES_PER_BYTE_OF_ROWS if self.history else _STORED_BYTES_PER_READ_BYTE
        return self.size_bytes * _LANDED_BYTES_PER_PENDING_BYTE + self.current_bytes // share


@dataclass(frozen=True, slots=True)
class ApplyDecision:
    """Whether to apply, and why or why not."""

    apply: bool
    reason: str


def decide(facts: PendingFacts, policy: ApplyPolicy, mode: ApplyMode = "policy") -> ApplyDecision:
    """Decide whether pending changes are applied now."""
    if facts.rows == 0:
        return ApplyDecision(apply=False, reason="nothing is pending")
    if mode == "always":
        return ApplyDecision(apply=True, reason="this run always applies")
    if mode == "never":
        return ApplyDecision(apply=False, reason="this run never applies")
    enough = _enough_rows(facts, policy)
    limits = [
        (facts.rows >= enough, f"{facts.rows} pending rows reached {enough}"),
        (
            facts.size_bytes >= policy.max_pending_bytes,
            f"{facts.size_bytes} pending bytes reached {policy.max_pending_bytes}",
        ),
        (
            facts.files >= policy.max_pending_files,
            f"{facts.files} pending files reached {policy.max_pending_files}",
        ),
        (
            facts.age is not None and facts.age >= policy.max_pending_age,
            f"the oldest pending change is {_seconds(facts.age)} old",
        ),
    ]
    for reached, reason in limits:
        if reached:
            return ApplyDecision(apply=True, reason=reason)
    return ApplyDecision(
        apply=False,
        reason=f"{facts.rows} pending rows of {enough}, "
        f"{facts.files} files of {policy.max_pending_files}",
    )


#: How much earlier than at `max_pending_age` an apply may come, if a copy can take it along.
_EARLIER_SHARE: Final = 0.25


def with_spread_age(policy: ApplyPolicy, name: str) -> ApplyPolicy:
    """The policy for an apply that the commit of a copy can take along.

    Datasets that begin together would be applied together as long as records trickle in, and all
    copies would wait meanwhile. So a hash of the name gives each dataset an age of its own, up to a
    quarter below `max_pending_age`.
    """
    share = 1 - _EARLIER_SHARE * crc32(name.encode()) / 2**32
    return policy.model_copy(update={"max_pending_age": policy.max_pending_age * share})


#: So many rows are always few enough to be applied with their copy...
_FEW_ROWS: Final = 20_000
#: ...and of a large table one in so many: after ten such batches an apply rewrites data files with
#: many deleted rows, which the commit of a copy does not do.
_PARTS_OF_CURRENT: Final = 32


def goes_with_a_copy(facts: PendingFacts, rows: int, size_bytes: int) -> bool:
    """Whether the apply of all that is pending and of a batch is small enough for one commit.

    `rows` and `size_bytes`, in memory, are those of the batch; `facts` are of what was there.
    """
    few = max(_FEW_ROWS, facts.current_rows // _PARTS_OF_CURRENT)
    return rows <= few and facts.work_bytes + size_bytes < LONG_STEP_BYTES


def wait_for_apply(
    facts: PendingFacts, policy: ApplyPolicy, mode: ApplyMode = "policy"
) -> str | None:
    """Why copies wait for the apply, which cannot keep up; None: they continue.

    An apply and a query pay for each pending change, so pending changes must not pile up without
    end. Where nothing is ever applied, there is nothing to wait for.
    """
    if mode == "never":
        return None
    times = policy.copies_wait_at
    limits = [
        ("rows", facts.rows, _enough_rows(facts, policy)),
        ("bytes", facts.size_bytes, policy.max_pending_bytes),
        ("files", facts.files, policy.max_pending_files),
    ]
    for name, pending, limit in limits:
        if pending >= times * limit:
            return f"{pending:,} pending {name} are {times} times {limit:,}"
    return None


def _enough_rows(facts: PendingFacts, policy: ApplyPolicy) -> int:
    return max(policy.max_pending_rows, int(policy.min_fraction * facts.current_rows))


def _seconds(age: timedelta | None) -> str:
    return f"{age.total_seconds():.0f} s" if age is not None else "unknown"


#: The part of `freshness` after which the next copy may come. With the whole of it, data that lands
#: once in that time would always wait as long as one copy was late; so copies fall in step with it.
_SHORTEST_PAUSE: Final = 0.9


@dataclass(frozen=True, slots=True)
class WaitingFacts:
    """What waits for a dataset, or for all that share its files.

    Attributes:
        size_bytes: size of the files that are not read to their end.
        left_over: the last copy ended at a limit and left some of what had landed by then.
        since_copy: seconds since the last copy of this process began, None before the first.
    """

    size_bytes: int
    left_over: bool = False
    since_copy: float | None = None


@dataclass(frozen=True, slots=True)
class CopyDecision:
    """Whether to copy now, and why. `wait` is the seconds until a copy is due."""

    copy: bool
    reason: str
    wait: float = 0.0


def decide_copy(facts: WaitingFacts, batch: BatchSettings) -> CopyDecision:
    """Decide whether waiting files are copied now, or wait for more."""
    pause, since = _SHORTEST_PAUSE * batch.freshness.total_seconds(), facts.since_copy
    if since is None:
        return CopyDecision(copy=True, reason="the first copy of this process")
    if facts.left_over:
        return CopyDecision(copy=True, reason="the last copy left some of what had landed")
    if facts.size_bytes >= batch.max_bytes:
        return CopyDecision(
            copy=True, reason=f"{facts.size_bytes} bytes are a batch of {batch.max_bytes}"
        )
    if since >= pause:
        return CopyDecision(copy=True, reason=f"the last copy was {since:.1f} s ago")
    return CopyDecision(
        copy=False,
        reason=f"copied {since:.1f} s ago, and {facts.size_bytes} bytes may wait {pause:g} s",
        wait=pause - since,
    )


def read_whole(discovery: Discovery, files: Mapping[str, FileProgress]) -> bool:
    """Whether all that was found is read; `files` is how far each file was read."""
    done = {path for path, progress in files.items() if progress.complete}
    return all(part.path in done for part in discovery.files)


class CopyPace:
    """When the last copy of a unit began, and whether it left something. Monotonic seconds."""

    def __init__(self, batch: BatchSettings) -> None:
        self._batch = batch
        self._began: float | None = None
        self._left_over = False

    def decide(self, discovery: Discovery, time_slice: TimeSlice, now: float) -> CopyDecision:
        """Whether to copy now what was found."""
        if time_slice.at_once:
            return CopyDecision(copy=True, reason="this run copies everything")
        since = None if self._began is None else now - self._began
        facts = WaitingFacts(discovery.size_bytes, self._left_over, since)
        return decide_copy(facts, self._batch)

    def copied(self, discovery: Discovery, files: Mapping[str, FileProgress], began: float) -> None:
        """Record a copy of what was found; `files` is how far each file was read."""
        self._began = began
        self._left_over = not read_whole(discovery, files)
