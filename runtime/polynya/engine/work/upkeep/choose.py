"""Which action of maintenance to take now: a pure function from facts to a choice with its reason.

What small files, deletes and snapshots cost their readers piles up, and each action costs something
by itself. So an action is taken once what has been wasted since the last one reaches its cost:

    score = gain per hour * hours of waiting / 2 / cost

The waste grows about evenly from nothing, hence the half. A table that gets a thousand files an
hour is so maintained often and one that gets three a day seldom, and neither too late nor for
nothing: it is the rule of the economic order quantity (F. W. Harris, "How Many Parts to Make at
Once", 1913). Gain for cost is how Upsolver's and Qlik's optimizers choose, small files from
fragments on is Amoro's rule; docs/adr/0033-maintenance-decisions.md has the sources.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from polynya.engine.work.upkeep.worth import Worth, worth
from polynya.lake.maintenance.look.facts import TableFacts
from polynya.lake.maintenance.rewrite.plan import Rule
from polynya.model.config.maintenance.actions import ACTIONS, ActionName
from polynya.model.config.maintenance.settings import Maintenance

#: Nothing waits longer for the rule: a table that was left alone for a month is not urgent.
LONGEST_WAIT: Final = timedelta(days=7)
#: What a run that ends takes at most: what it costs, in bytes read.
CHEAP_BYTES: Final = 256 * 2**20
#: An action that did nothing is not tried again for so long: the rule was wrong about it...
PAUSE: Final = timedelta(minutes=15)
#: ...or something was in its way.
SHORT_PAUSE: Final = timedelta(minutes=1)
#: Those that write group by group.
_IN_GROUPS: Final = frozenset[ActionName]({"rewrite_data_files", "rewrite_layout"})


@dataclass(frozen=True, slots=True)
class Left:
    """What is left of the budget: bytes to write and seconds to work, None for no limit.

    `cheap_only`: the run ends when all is done, and waits for no action that takes long.
    """

    written_bytes: int | None = None
    seconds: float | None = None
    cheap_only: bool = False

    def within(self, seconds: float) -> Left:
        """The same, of which no more than so many seconds are left."""
        known = seconds if self.seconds is None else min(self.seconds, seconds)
        return replace(self, seconds=known)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is thought of one action. `score` is 1 when it pays.

    `reason` says why it is taken, or why not now; `at` when it is to be thought of again, None:
    not before the table changes.
    """

    action: ActionName
    taken: bool
    reason: str
    score: float = 0.0
    worth: Worth | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """The action to take now, None for none, and what is thought of each."""

    taken: Verdict | None
    verdicts: tuple[Verdict, ...]

    @property
    def next(self) -> Verdict | None:
        """The action that comes next: the one taken, else the first to be thought of again."""
        if self.taken is not None:
            return self.taken
        waiting = [one for one in self.verdicts if one.at is not None]
        return min(waiting, key=lambda one: (one.at, -one.score), default=None)

    @property
    def look_at(self) -> datetime | None:
        """When to look again although the table did not change."""
        return min((one.at for one in self.verdicts if one.at is not None), default=None)


@dataclass(frozen=True, slots=True)
class _Terms:
    """What a choice is made by, besides the facts."""

    settings: Maintenance
    rule: Rule
    left: Left


def choose(
    facts: TableFacts,
    settings: Maintenance,
    *,
    rule: Rule,
    left: Left = Left(),
    built: frozenset[ActionName] = frozenset(ACTIONS),
) -> Choice:
    """Choose the action with the highest score that pays and that the budget allows."""
    terms = _Terms(settings, rule, left)
    known = {one.action: one for one in worth(facts, settings, rule)}
    verdicts = [
        _verdict(action, known.get(action), facts, terms) for action in ACTIONS if action in built
    ]
    paying = [one for one in verdicts if one.taken]
    best = max(paying, key=lambda one: one.score, default=None)
    return Choice(best, tuple(_after(one, best, facts.at) for one in verdicts))


def _verdict(action: ActionName, one: Worth | None, facts: TableFacts, terms: _Terms) -> Verdict:
    """What is thought of an action by itself."""
    if not terms.settings.allows(action):
        return Verdict(action, taken=False, reason="it is switched off")
    if one is None:
        return Verdict(action, taken=False, reason="there is nothing to do")
    score, pays_at = _score(one, facts)
    if (paused := _paused(action, facts)) is not None:
        last = facts.record.last[action]
        reason = f"{one.what}; at {last.at:%H:%M} UTC it did nothing: {last.why}"
        return Verdict(action, taken=False, reason=reason, score=score, worth=one, at=paused)
    if score < 1:
        reason = f"{one.what}: {_waiting(pays_at, facts.at)}"
        return Verdict(action, taken=False, reason=reason, score=score, worth=one, at=pays_at)
    if (why := _over(one, terms)) is not None:
        at = None if terms.left.cheap_only else facts.at + PAUSE
        reason = f"{one.what}: {why}"
        return Verdict(action, taken=False, reason=reason, score=score, worth=one, at=at)
    return Verdict(action, taken=True, reason=_paying(one, facts.at), score=score, worth=one)


def _after(one: Verdict, best: Verdict | None, now: datetime) -> Verdict:
    """A verdict beside the one that is taken: one action at a time."""
    if best is None or one is best or not one.taken:
        return one
    reason = f"{one.reason}; {best.action} comes first"
    return Verdict(one.action, taken=False, reason=reason, score=one.score, worth=one.worth, at=now)


def _score(one: Worth, facts: TableFacts) -> tuple[float, datetime | None]:
    """How well an action pays, and when it will; 1 or more when it pays now."""
    waited = _waited(one, facts)
    score = one.gain * (waited / timedelta(hours=1)) / 2 / one.cost
    at = facts.at if score >= 1 else None
    if at is None and one.gain > 0:
        at = facts.at - waited + timedelta(hours=min(2 * one.cost / one.gain, 24 * 365))
        if at - facts.at > LONGEST_WAIT:
            at = None
    if one.due_at is not None:
        if one.due_at <= facts.at:
            return max(score, 1.0), facts.at
        at = one.due_at if at is None else min(at, one.due_at)
    return score, at


def _waited(one: Worth, facts: TableFacts) -> timedelta:
    """For how long the waste has piled up: since the action was last taken to its end."""
    last = facts.record.last.get(one.action)
    begins = [one.since, last.at if last is not None and last.whole else None]
    since = max((moment for moment in begins if moment is not None), default=facts.oldest)
    if since is None:
        return timedelta()
    return min(max(facts.at - since, timedelta()), LONGEST_WAIT)


def _paused(action: ActionName, facts: TableFacts) -> datetime | None:
    """Until when an action waits that did nothing the last time."""
    last = facts.record.last.get(action)
    if last is None or last.files_removed or last.freed_bytes or last.written_bytes:
        return None
    until = last.at + (PAUSE if last.whole else SHORT_PAUSE)
    return until if until > facts.at else None


def _over(one: Worth, terms: _Terms) -> str | None:
    """Why the budget does not allow an action; None where it does."""
    left = terms.left
    if left.cheap_only and one.cost > CHEAP_BYTES:
        return "it takes too long for a run that ends; a run that goes on or `maintain` does it"
    if left.seconds is not None and left.seconds <= 0:
        return "the share of time of this hour is used up"
    in_groups = one.action in _IN_GROUPS
    least = min(one.written, terms.rule.group_bytes) if in_groups else one.written
    if left.written_bytes is not None and least > left.written_bytes:
        return (
            f"it writes {least / 2**20:,.0f} MiB, and {left.written_bytes / 2**20:,.0f} MiB "
            "are left of the budget of this hour"
        )
    return None


def _paying(one: Worth, now: datetime) -> str:
    if one.due_at is not None and one.due_at <= now:
        return f"{one.what}: due since {one.due_at:%Y-%m-%d %H:%M} UTC"
    return f"{one.what}: saves {one.gain / 2**20:,.1f} MiB an hour for {one.cost / 2**20:,.1f} MiB"


def _waiting(at: datetime | None, now: datetime) -> str:
    if at is None:
        return "it does not pay as long as nothing changes"
    minutes = max(1, round((at - now) / timedelta(minutes=1)))
    return f"it pays in {minutes:,} minute{'' if minutes == 1 else 's'} if nothing changes"
