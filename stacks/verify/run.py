"""Going through the steps: the first failure ends the trial, and never the tear-down."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias, TypeVar

from stacks.verify.steps import Fidelity, Planned

#: Does a step and returns what it saw, in one line.
Action: TypeAlias = Callable[[], str]
Seen = TypeVar("Seen")


class Clock(Protocol):
    """Seconds, and waiting."""

    def now(self) -> float:
        """Seconds since some moment."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


class StepError(Exception):
    """A step did not find what it is to show; the message says what it found instead."""


class Ending(StrEnum):
    """How a step ended."""

    PASSED = "passed"
    FAILED = "FAILED"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a step; `seconds` since the beginning of the run."""

    planned: Planned
    ending: Ending
    said: str
    began: float
    ended: float


def run(
    steps: Sequence[Planned],
    actions: Mapping[str, Action],
    clock: Clock,
    tell: Callable[[Result], None] = lambda _result: None,
) -> tuple[Result, ...]:
    """Do the steps in their order; `tell` hears of each as it ends.

    After a failure, or an interruption by hand, only steps that tear down go on, each of them even
    if the one before failed.
    """
    start, failed = clock.now(), False
    results: list[Result] = []
    begun: set[str] = set()
    for planned in steps:
        began, step = clock.now() - start, planned.step
        skip = _reason_to_skip(planned, begun, failed=failed)
        if skip is not None:
            ending, said = Ending.SKIPPED, skip
        else:
            begun.add(step.name)
            ending, said = _attempt(actions[step.name])
            failed = failed or ending is Ending.FAILED
        results.append(Result(planned, ending, said, began, clock.now() - start))
        tell(results[-1])
    return tuple(results)


def _reason_to_skip(planned: Planned, begun: set[str], *, failed: bool) -> str | None:
    undone = planned.step.undoes
    if undone is not None and undone not in begun:
        return f"there was no {undone} to undo"
    if undone is None and failed:
        return "an earlier step failed"
    if planned.fidelity is Fidelity.NOT_POSSIBLE:
        return planned.because
    return None


def _attempt(action: Action) -> tuple[Ending, str]:
    """Anything that goes wrong is a result: an exception here would leave the stage behind."""
    try:
        return Ending.PASSED, action()
    except KeyboardInterrupt:
        return Ending.FAILED, "stopped by hand"
    except StepError as error:
        return Ending.FAILED, str(error)
    except Exception as error:  # noqa: BLE001
        return Ending.FAILED, f"{type(error).__name__}: {error}"


def until(
    clock: Clock, what: str, seconds: float, look: Callable[[], Seen | None], *, every: float = 10
) -> Seen:
    """Look every `every` seconds until there is something other than None; returns it.

    Raises:
        StepError: when it is not there in time.
    """
    began = clock.now()
    while (seen := look()) is None:
        if clock.now() - began >= seconds:
            raise StepError(f"{what}: not within {seconds / 60:.0f} minutes")
        clock.sleep(every)
    return seen
