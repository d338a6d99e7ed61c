"""Which maintenance action to take now: gain, cost and budget. Pure.

`worth` computes the gain and the cost of each action from the facts of a table. Both are in bytes
that could be read in the same time, so that opening a file, writing a byte and storing one for an
hour can be compared with reading.

`choose` turns them into a choice with its reason. Small files, deletes and snapshots cost readers
more and more, and each action has a cost of its own. So an action is due once the waste since the
last one reaches its cost:

    score = gain per hour * hours of waiting / 2 / cost

The waste grows about evenly from nothing, hence the half. So a table that gets a thousand files an
hour is maintained often, and one that gets three a day seldom. It is the rule of the economic order
quantity (F. W. Harris, "How Many Parts to Make at Once", 1913). Upsolver's and Qlik's optimizers
also choose by gain per cost, and Amoro also compacts from a number of small files on;
docs/adr/0033-maintenance-decisions.md has the sources.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any, Final

from polynya.lake.maintenance.health import (
    USUAL_MANIFESTS,
    Done,
    FilesFacts,
    MaintenanceRecord,
    TableFacts,
)
from polynya.lake.maintenance.rewrite_plan import OPEN_BYTES, RETENTION_WINDOWS, RewriteRule
from polynya.model.config.maintenance import ACTIONS, ActionName, Maintenance, MaintenanceBudget
from polynya.observe.events import counted

#: What an action costs besides its bytes: planning, a commit or two.
FIXED_BYTES: Final = 64 * 2**20
#: Writing a byte takes as long as reading this many.
WRITE_COST: Final = 3.0
#: Storing a byte for an hour costs as much as reading this part of it (S3 and EC2, list prices).
STORAGE_COST_PER_HOUR: Final = 0.2
#: Bytes of a snapshot in the metadata file, which each commit reads and writes.
SNAPSHOT_BYTES: Final = 1300
#: To expire a snapshot its manifests are read.
EXPIRING_BYTES: Final = 64 * 2**10
#: Reading one more manifest.
MANIFEST_BYTES: Final = 64 * 2**10
#: Part of a read that a planner saves when it knows how many values a column has.
PLANNING_SHARE: Final = 0.05
#: Planners err by little over fewer rows.
LEAST_ROWS_FOR_STATISTICS: Final = 1_000_000
#: Part of the files that a read skips after a change of the layout, on average: one query in four
#: filters by its columns, and then reads half of them.
PRUNED_SHARE: Final = 1 / 8
#: Share of their retention after which expired rows are searched, and the shortest interval.
RETENTION_SHARE: Final = 1 / 30
LEAST_RETENTION: Final = timedelta(hours=1)
#: Delete files that are not worth the commit that makes one of them.
USUAL_DELETES: Final = 10
#: Nothing waits longer for the rule: a table that was left alone for a month is not urgent.
LONGEST_WAIT: Final = timedelta(days=7)
#: What a run that ends takes at most: what it costs, in bytes read.
CHEAP_BYTES: Final = 256 * 2**20
#: Pause after an action that did nothing: the rule was wrong about it...
PAUSE_AFTER_NOTHING: Final = timedelta(minutes=15)
#: ...or something was in its way.
PAUSE_AFTER_OBSTACLE: Final = timedelta(minutes=1)
#: Costs are bytes that could be read in the same time. So many can in a second: those of an action
#: by itself (`FIXED_BYTES`) take half of one. On a slower machine or store every action costs
#: more by the same factor, so that actions can be compared with each other.
READ_BYTES_PER_SECOND: Final = 128 * 2**20
#: Those that write group by group.
_IN_GROUPS: Final = frozenset[ActionName]({"rewrite_data_files", "rewrite_layout"})
_HOUR_SECONDS: Final = 3600.0


@dataclass(frozen=True, slots=True)
class ActionWorth:
    """What one action would gain for what it costs, in bytes; the gain is per hour.

    Attributes:
        action: which.
        what: what there is to do, in words.
        gain: what readers, applies and commits no longer read, and what is no longer stored.
        cost: what the action reads and writes.
        written: bytes that it writes.
        since: since when there is something to do, None: as long as the table was not maintained.
        due_at: when it is done regardless of its gain, None for never.
    """

    action: ActionName
    what: str
    gain: float
    cost: float
    written: int = 0
    since: datetime | None = None
    due_at: datetime | None = None


def worth(facts: TableFacts, settings: Maintenance, rule: RewriteRule) -> list[ActionWorth]:
    """What every action is worth that has something to do."""
    worths = [
        _rewriting(facts, rule),
        _layout(facts),
        _delete_files(facts),
        _manifests(facts),
        _expiring(facts, settings),
        _orphans(facts, settings),
        _old_rows(facts),
        _old_events(facts),
        _statistics(facts),
    ]
    return [action_worth for action_worth in worths if action_worth is not None]


def _reads_per_hour(facts: TableFacts) -> float:
    """How often the table is read in an hour."""
    return facts.reads + facts.applies


def _rewriting(facts: TableFacts, rule: RewriteRule) -> ActionWorth | None:
    """Small files are compacted, and deleted rows removed."""
    joined = [join for part in facts.files.values() for join in _possible_joins(part, rule)]
    best = max(joined, key=lambda join: _cost_of_reading(*join), default=None)
    parts = facts.rewritable
    # No rows: single files were not examined, and few rows are deleted.
    dead = min(1.0, facts.deleted_rows / parts.rows) if parts.rows else 0.0
    if best is None and dead < rule.dead_share:
        return None
    files, size = best or (0, 0)
    saved, written, reasons = files * OPEN_BYTES, size, []
    if files:
        reasons.append(f"{counted(files, 'small file')} fewer to open")
    if dead >= rule.dead_share:
        saved += int(dead * parts.size_bytes) + facts.delete_files * OPEN_BYTES
        written = max(written, parts.size_bytes)
        reasons.append(f"{dead:.0%} of the rows are deleted")
    return ActionWorth(
        "rewrite_data_files",
        ", ".join(reasons),
        gain=saved * _reads_per_hour(facts),
        cost=FIXED_BYTES + (1 + WRITE_COST) * written,
        written=written,
    )


def _possible_joins(part: FilesFacts, rule: RewriteRule) -> Iterator[tuple[int, int]]:
    """Files that are saved and bytes that are written, for each number of smallest files joined.

    As many as `plan` of a rewrite lets join. The best of them is the worth, so that a file more
    that is as small as the smallest never lowers it.
    """
    for number, size in enumerate(accumulate(part.small), 1):
        if number >= rule.least_files and size >= rule.growth * part.small[number - 1]:
            left = max(1, round(size / rule.target_bytes))
            if number > left:
                yield number - left, size


def _cost_of_reading(files: int, size: int) -> float:
    return files * OPEN_BYTES / (FIXED_BYTES + (1 + WRITE_COST) * size)


def _layout(facts: TableFacts) -> ActionWorth | None:
    """Files get the configured partitions and order.

    Nobody notes when a layout was changed. So the waiting begins when all files had theirs the last
    time, or when the table was first maintained: a layout that changes every hour is not followed.
    """
    outdated = facts.rewritable
    if not outdated.outdated:
        return None
    return ActionWorth(
        "rewrite_layout",
        f"{counted(outdated.outdated, 'file')} of another layout, "
        f"{outdated.outdated_bytes / 2**20:,.1f} MiB",
        # An apply finds rows by their key.
        gain=PRUNED_SHARE * outdated.outdated_bytes * facts.reads,
        cost=FIXED_BYTES + (1 + WRITE_COST) * outdated.outdated_bytes,
        written=outdated.outdated_bytes,
        since=facts.record.began,
    )


def _delete_files(facts: TableFacts) -> ActionWorth | None:
    """Many files of deletes become few, but for those that the last run left."""
    last = facts.record.last.get("rewrite_position_delete_files")
    left = last.delete_files if last is not None and last.whole else 0
    fewer = facts.delete_files - max(USUAL_DELETES, left)
    if fewer <= 0 or facts.has_vectors:
        return None
    # A position is a path and a number, and paths repeat.
    written = 16 * facts.deleted_rows
    return ActionWorth(
        "rewrite_position_delete_files",
        f"{counted(facts.delete_files, 'file')} of deletes to open",
        gain=fewer * OPEN_BYTES * _reads_per_hour(facts),
        cost=FIXED_BYTES + facts.delete_files * OPEN_BYTES + (1 + WRITE_COST) * written,
        written=written,
    )


def _manifests(facts: TableFacts) -> ActionWorth | None:
    """Every reader and every commit reads all manifests. Those of data files can be joined."""
    fewer = facts.data_manifests - USUAL_MANIFESTS
    if fewer <= 0:
        return None
    size = facts.data_manifests * MANIFEST_BYTES
    return ActionWorth(
        "rewrite_manifests",
        f"{counted(facts.data_manifests, 'manifest')} of data files to read",
        gain=fewer * MANIFEST_BYTES * (_reads_per_hour(facts) + facts.commits),
        cost=FIXED_BYTES + (1 + WRITE_COST) * size,
        written=size,
    )


def _expiring(facts: TableFacts, settings: Maintenance) -> ActionWorth | None:
    """Each commit writes all snapshots again, and what only they have is stored."""
    if not facts.expirable:
        return None
    age = settings.snapshot_expiry.age
    since = facts.expirable_since
    metadata = facts.expirable * SNAPSHOT_BYTES * (1 + WRITE_COST) * facts.commits
    return ActionWorth(
        "expire_snapshots",
        f"{counted(facts.expirable, 'snapshot')} to expire, which hold "
        f"{facts.expirable_bytes / 2**20:,.1f} MiB",
        gain=metadata + STORAGE_COST_PER_HOUR * facts.expirable_bytes,
        cost=FIXED_BYTES + facts.expirable * EXPIRING_BYTES,
        since=since,
        # What expires must be gone within hours, also where no reader gains by it.
        due_at=None if since is None else since + max(age, timedelta(hours=1)),
    )


def _orphans(facts: TableFacts, settings: Maintenance) -> ActionWorth | None:
    """Orphan files of killed processes, which only a search finds."""
    last, every = facts.record.last.get("remove_orphan_files"), settings.orphan_files.every
    # A table of few snapshots may have had no reason yet for any other action.
    begins = facts.record.began or facts.oldest if last is None else last.at
    if begins is None or facts.written_at is None:
        return None
    if last is not None and last.whole:
        # No file came since that could be old enough, or will be.
        quiet = facts.written_at + settings.orphan_files.older_than < last.at
        if quiet:
            return None
    return ActionWorth(
        "remove_orphan_files",
        "a look for files that no snapshot has",
        gain=0.0,
        cost=FIXED_BYTES + (facts.data_files + facts.snapshots) * MANIFEST_BYTES,
        since=begins,
        due_at=begins + every,
    )


def _old_rows(facts: TableFacts) -> ActionWorth | None:
    """Rows older than their retention must be removed, whether that pays or not."""
    if facts.retention is None or not facts.rows:
        return None
    last, oldest = facts.record.last.get("expire_rows"), facts.oldest
    wait = max(RETENTION_SHARE * facts.retention, LEAST_RETENTION)
    begins = last.at if last is not None else oldest
    return ActionWorth(
        "expire_rows",
        "a look for rows that are too old",
        gain=0.0,
        cost=FIXED_BYTES + facts.data_files * MANIFEST_BYTES,
        since=begins,
        due_at=None if begins is None else begins + wait,
    )


def _old_events(facts: TableFacts) -> ActionWorth | None:
    """Kept events must go when they are too old, also without an apply that removes them.

    They go by whole files, which hold those of a share of their time.
    """
    if facts.events_kept is None or facts.oldest_event is None:
        return None
    last, wait = facts.record.last.get("expire_changes"), facts.events_kept / RETENTION_WINDOWS
    due = facts.oldest_event + facts.events_kept + wait
    if last is not None:
        due = max(due, last.at + max(wait, LEAST_RETENTION))
    return ActionWorth(
        "expire_changes",
        f"applied events since {facts.oldest_event:%Y-%m-%d %H:%M} UTC are kept",
        gain=0.0,
        cost=FIXED_BYTES + facts.data_files * MANIFEST_BYTES,
        since=facts.oldest_event,
        due_at=due,
    )


def _statistics(facts: TableFacts) -> ActionWorth | None:
    """Statistics are of one snapshot: they are worth a scan where a large table rests."""
    if facts.has_statistics or facts.rows < LEAST_ROWS_FOR_STATISTICS:
        return None
    return ActionWorth(
        "compute_statistics",
        f"{counted(facts.rows, 'row')} without numbers of distinct values",
        gain=PLANNING_SHARE * facts.size_bytes * facts.reads,
        cost=FIXED_BYTES + facts.size_bytes,
        since=facts.written_at,
    )


@dataclass(frozen=True, slots=True)
class BudgetLeft:
    """What is left of the budget: bytes to write and seconds to work, None for no limit.

    `cheap_only`: the run ends when all is done, and waits for no action that takes long.
    """

    written_bytes: int | None = None
    seconds: float | None = None
    cheap_only: bool = False

    def within(self, seconds: float) -> BudgetLeft:
        """The same with at most this many seconds left."""
        left = seconds if self.seconds is None else min(self.seconds, seconds)
        return replace(self, seconds=left)


@dataclass(frozen=True, slots=True)
class ActionVerdict:
    """The judgement of one action. `score` is at least 1 when it pays.

    `reason` says why it is taken, or why not now; `at` when to consider it again, None:
    not before the table changes.
    """

    action: ActionName
    taken: bool
    reason: str
    score: float = 0.0
    worth: ActionWorth | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class MaintenanceChoice:
    """The action to take now, None for none, and the judgement of each action."""

    taken: ActionVerdict | None
    verdicts: tuple[ActionVerdict, ...]

    @property
    def next(self) -> ActionVerdict | None:
        """The next action: the one taken, else the first to consider again."""
        if self.taken is not None:
            return self.taken
        waiting = [verdict for verdict in self.verdicts if verdict.at is not None]
        return min(waiting, key=lambda verdict: (verdict.at, -verdict.score), default=None)

    @property
    def look_at(self) -> datetime | None:
        """When to choose again although the table did not change."""
        return min(
            (verdict.at for verdict in self.verdicts if verdict.at is not None), default=None
        )


@dataclass(frozen=True, slots=True)
class _Terms:
    """What a choice is made by, besides the facts."""

    settings: Maintenance
    rule: RewriteRule
    left: BudgetLeft


def choose(
    facts: TableFacts,
    settings: Maintenance,
    *,
    rule: RewriteRule,
    left: BudgetLeft = BudgetLeft(),
    built: frozenset[ActionName] = frozenset(ACTIONS),
) -> MaintenanceChoice:
    """Choose the action with the highest score that pays and that the budget allows."""
    terms = _Terms(settings, rule, left)
    worths = {action_worth.action: action_worth for action_worth in worth(facts, settings, rule)}
    verdicts = [
        _verdict(action, worths.get(action), facts, terms) for action in ACTIONS if action in built
    ]
    paying = [verdict for verdict in verdicts if verdict.taken]
    best = max(paying, key=lambda action_worth: action_worth.score, default=None)
    return MaintenanceChoice(
        best, tuple(_deferred(verdict, best, facts.at) for verdict in verdicts)
    )


def _verdict(
    action: ActionName, action_worth: ActionWorth | None, facts: TableFacts, terms: _Terms
) -> ActionVerdict:
    """Judge an action by itself."""
    if not terms.settings.allows(action):
        return ActionVerdict(action, taken=False, reason="it is switched off")
    if action_worth is None:
        return ActionVerdict(action, taken=False, reason="there is nothing to do")
    score, pays_at = _score(action_worth, facts)
    if (paused := _paused_until(action, facts)) is not None:
        last = facts.record.last[action]
        reason = f"{action_worth.what}; at {last.at:%H:%M} UTC it did nothing: {last.why}"
        return ActionVerdict(
            action, taken=False, reason=reason, score=score, worth=action_worth, at=paused
        )
    if score < 1:
        reason = f"{action_worth.what}: {_reason_to_wait(pays_at, facts.at)}"
        return ActionVerdict(
            action, taken=False, reason=reason, score=score, worth=action_worth, at=pays_at
        )
    if (why := _budget_refusal(action_worth, terms)) is not None:
        at = None if terms.left.cheap_only else facts.at + PAUSE_AFTER_NOTHING
        reason = f"{action_worth.what}: {why}"
        return ActionVerdict(
            action, taken=False, reason=reason, score=score, worth=action_worth, at=at
        )
    return ActionVerdict(
        action,
        taken=True,
        reason=_reason_to_act(action_worth, facts.at),
        score=score,
        worth=action_worth,
    )


def _deferred(verdict: ActionVerdict, best: ActionVerdict | None, now: datetime) -> ActionVerdict:
    """A verdict on an action other than the chosen one: one action at a time."""
    if best is None or verdict is best or not verdict.taken:
        return verdict
    reason = f"{verdict.reason}; {best.action} comes first"
    return ActionVerdict(
        verdict.action, taken=False, reason=reason, score=verdict.score, worth=verdict.worth, at=now
    )


def _score(action_worth: ActionWorth, facts: TableFacts) -> tuple[float, datetime | None]:
    """How well an action pays, and when it will; 1 or more when it pays now."""
    waited = _time_waited(action_worth, facts)
    score = action_worth.gain * (waited / timedelta(hours=1)) / 2 / action_worth.cost
    at = facts.at if score >= 1 else None
    if at is None and action_worth.gain > 0:
        at = (
            facts.at
            - waited
            + timedelta(hours=min(2 * action_worth.cost / action_worth.gain, 24 * 365))
        )
        if at - facts.at > LONGEST_WAIT:
            at = None
    if action_worth.due_at is not None:
        if action_worth.due_at <= facts.at:
            return max(score, 1.0), facts.at
        at = action_worth.due_at if at is None else min(at, action_worth.due_at)
    return score, at


def _time_waited(action_worth: ActionWorth, facts: TableFacts) -> timedelta:
    """For how long the waste has piled up: since the action was last taken to its end."""
    last = facts.record.last.get(action_worth.action)
    begins = [action_worth.since, last.at if last is not None and last.whole else None]
    since = max((moment for moment in begins if moment is not None), default=facts.oldest)
    if since is None:
        return timedelta()
    return min(max(facts.at - since, timedelta()), LONGEST_WAIT)


def _paused_until(action: ActionName, facts: TableFacts) -> datetime | None:
    """Until when an action waits that did nothing the last time."""
    last = facts.record.last.get(action)
    if last is None or last.files_removed or last.freed_bytes or last.written_bytes:
        return None
    until = last.at + (PAUSE_AFTER_NOTHING if last.whole else PAUSE_AFTER_OBSTACLE)
    return until if until > facts.at else None


def _budget_refusal(action_worth: ActionWorth, terms: _Terms) -> str | None:
    """Why the budget does not allow an action; None where it does."""
    left = terms.left
    if left.cheap_only and action_worth.cost > CHEAP_BYTES:
        return (
            "it takes too long for a run that ends; a continuous run or `polynya maintain` does it"
        )
    if left.seconds is not None and left.seconds <= 0:
        return "the share of time of this hour is used up"
    in_groups = action_worth.action in _IN_GROUPS
    least = min(action_worth.written, terms.rule.group_bytes) if in_groups else action_worth.written
    if left.written_bytes is not None and least > left.written_bytes:
        return (
            f"it writes {least / 2**20:,.0f} MiB, and {left.written_bytes / 2**20:,.0f} MiB "
            "are left of the budget of this hour"
        )
    return None


def _reason_to_act(action_worth: ActionWorth, now: datetime) -> str:
    if action_worth.due_at is not None and action_worth.due_at <= now:
        return f"{action_worth.what}: due since {action_worth.due_at:%Y-%m-%d %H:%M} UTC"
    gain, cost = action_worth.gain / 2**20, action_worth.cost / 2**20
    return f"{action_worth.what}: saves {gain:,.1f} MiB an hour for {cost:,.1f} MiB"


def _reason_to_wait(at: datetime | None, now: datetime) -> str:
    if at is None:
        return "it does not pay as long as nothing changes"
    minutes = max(1, round((at - now) / timedelta(minutes=1)))
    return f"it pays in {minutes:,} minute{'' if minutes == 1 else 's'} if nothing changes"


@dataclass(slots=True)
class BudgetUsed:
    """What all actions of this process wrote and how long they took; safe for threads.

    `now` is in monotonic seconds.
    """

    _entries: deque[tuple[float, int, float]] = field(default_factory=deque)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _seconds: float = 0.0

    @property
    def seconds(self) -> float:
        """What all actions took since the process began."""
        return self._seconds

    def took(self, written_bytes: int, seconds: float, now: float) -> None:
        """Record an action that has ended."""
        with self._lock:
            self._entries.append((now, written_bytes, seconds))
            self._seconds += seconds

    def left(
        self, budget: MaintenanceBudget, now: float, *, cheap_only: bool = False
    ) -> BudgetLeft:
        """What is left of a budget."""
        with self._lock:
            while self._entries and self._entries[0][0] <= now - _HOUR_SECONDS:
                self._entries.popleft()
            written = sum(size for _, size, _ in self._entries)
            seconds = sum(took for _, _, took in self._entries)
        return BudgetLeft(
            written_bytes=max(0, budget.bytes_per_hour - written),
            seconds=budget.share * _HOUR_SECONDS - seconds,
            cheap_only=cheap_only,
        )


def cost_of_seconds(seconds: float) -> int:
    """The cost of an action that took this many seconds, in bytes."""
    return int(seconds * READ_BYTES_PER_SECOND)


@dataclass(frozen=True, slots=True)
class ActionReview:
    """Expected and actual cost and gain of an action when it was last taken.

    Costs in bytes, gains in bytes per hour. The ratios are what came true by what was expected,
    None where nothing was. Of an action that is not `whole` the cost is that of a part.
    """

    action: ActionName
    at: datetime
    whole: bool
    expected_cost: int
    cost: int
    expected_gain: int
    gain: int

    @property
    def cost_ratio(self) -> float | None:
        """Above 1: it cost more than the rule reckoned with."""
        return _rounded_ratio(self.cost, self.expected_cost)

    @property
    def gain_ratio(self) -> float | None:
        """Below 1: it gained less than the rule reckoned with."""
        return _rounded_ratio(self.gain, self.expected_gain)

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "action": self.action,
            "at": self.at.isoformat(),
            "whole": self.whole,
            "expected_cost": self.expected_cost,
            "cost": self.cost,
            "cost_ratio": self.cost_ratio,
            "expected_gain": self.expected_gain,
            "gain": self.gain,
            "gain_ratio": self.gain_ratio,
        }


def review_actions(record: MaintenanceRecord) -> list[ActionReview]:
    """Review each action that was taken, the newest first."""
    newest_first = sorted(record.last.items(), key=lambda item: item[1].at, reverse=True)
    return [_review(action, done) for action, done in newest_first]


def _review(action: ActionName, done: Done) -> ActionReview:
    return ActionReview(
        action,
        done.at,
        done.whole,
        expected_cost=done.expected_cost,
        cost=done.cost,
        expected_gain=done.expected_gain,
        gain=done.gain,
    )


def _rounded_ratio(actual: int, expected: int) -> float | None:
    return round(actual / expected, 2) if expected else None
