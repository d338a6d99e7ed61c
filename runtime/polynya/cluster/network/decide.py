"""The next step for the versions of a network agent: a pure function of facts.

A version is named by the digest of its package; None is the installed one. All seconds count only
while the serving version is connected: while the network is down no version can show that it works,
so no version is rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

#: So many turns in which all clusters were reached show that a version works.
TRIAL_TURNS: Final = 3


@dataclass(frozen=True, slots=True)
class UpdateLimits:
    """Until when a version has to show that it works, and how long one that serves is doubted."""

    heartbeat_seconds: float = 120.0
    probation_seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class ObservedProcess:
    """What is known of a process.

    `turns` are those in which it reached all clusters. `quiet` is for how many seconds it had none,
    `ended` its exit code, None while it lives.
    """

    version: str | None
    turns: int = 0
    quiet: float = 0.0
    ended: int | None = None


@dataclass(frozen=True, slots=True)
class UpdateFacts:
    """What is known.

    Attributes:
        wanted: the version that is pinned.
        serving: the one that carries commands out.
        former: the one before, to go back to.
        doubted: how many seconds of its probation the serving one has left, 0 when it has none.
        deaths: how often it died in them.
        trial: the one on trial next to it.
        failed: versions that did not work, and why.
    """

    wanted: str | None
    serving: ObservedProcess
    former: str | None = None
    doubted: float = 0.0
    deaths: int = 0
    trial: ObservedProcess | None = None
    failed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stay:
    """There is nothing to do."""


@dataclass(frozen=True, slots=True)
class Try:
    """Start the wanted version next to the serving one."""


@dataclass(frozen=True, slots=True)
class Accept:
    """Let the tried version serve in place of the other."""


@dataclass(frozen=True, slots=True)
class Reject:
    """End the tried version; `failed`: it is not to be tried again."""

    reason: str
    failed: bool = True


@dataclass(frozen=True, slots=True)
class GoBack:
    """Let the former version serve again."""

    reason: str


Next: TypeAlias = Stay | Try | Accept | Reject | GoBack
#: An agent that dies once may have met bad luck.
_MAX_DEATHS: Final = 2


def decide(facts: UpdateFacts, limits: UpdateLimits) -> Next:
    """What is next."""
    if facts.trial is not None:
        return _of_trial(facts.trial, facts.wanted, limits)
    if facts.doubted > 0:
        if facts.deaths >= _MAX_DEATHS:
            return GoBack(f"it died {facts.deaths} times since it serves")
        if facts.serving.quiet >= limits.heartbeat_seconds:
            return GoBack(f"no heartbeat for {facts.serving.quiet:.0f} s since it serves")
    if facts.wanted != facts.serving.version and facts.wanted not in facts.failed:
        return Try()
    return Stay()


def _of_trial(trial: ObservedProcess, wanted: str | None, limits: UpdateLimits) -> Next:
    if trial.version != wanted:
        return Reject("another version is wanted by now", failed=False)
    if trial.ended is not None:
        return Reject(f"it ended with code {trial.ended} before it had served")
    if trial.turns >= TRIAL_TURNS:
        return Accept()
    if trial.quiet >= limits.heartbeat_seconds:
        return Reject(f"no heartbeat within {limits.heartbeat_seconds:.0f} s")
    return Stay()
