"""What a verification does and why, in order: a list, and no effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias


class Fidelity(StrEnum):
    """How much a step proves of AWS, in the words of the report."""

    REAL = "real"
    STOOD_IN = "stood in for"
    NOT_POSSIBLE = "not possible"


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Attributes:
        name: in the report and among the actions.
        why: what it shows that no template can.
        undoes: of a step that tears down: the step whose beginning makes it due. It then runs
            whatever failed in between.
    """

    name: str
    why: str
    undoes: str | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """A step and how real it is where it runs, with the reason if it is not."""

    step: Step
    fidelity: Fidelity
    because: str = ""


#: Says of a step by its name how real it is, and why if it is not.
Judge: TypeAlias = Callable[[str], tuple[Fidelity, str]]

STEPS: Final = (
    Step("account", "the credentials work, and nothing of an earlier run is left"),
    Step("package", "what nodes fetch lies where the templates look for it"),
    Step("deploy", "CloudFormation accepts the templates, and creates them from nothing"),
    Step("guard", "S3 itself refuses a blind write where nodes agree on who owns what"),
    Step("push", "the project gets into the configuration bucket"),
    Step("land", "the demo capture gets into the landing bucket"),
    Step("wake", "what landed starts the first node of an empty group, and its agent gets ready"),
    Step("live", "the views have as many rows as the source database"),
    Step("edit", "an edited task makes a table without a deploy"),
    Step("interrupt", "Spot takes the node back, as the Fault Injection Service does it"),
    Step("replace", "another node gets into service"),
    Step("resume", "the new node continues: what lands now is in the table, and nothing twice"),
    Step("unfault", "the experiment and its role are gone", undoes="interrupt"),
    Step("empty", "S3 deletes only empty buckets", undoes="deploy"),
    Step("destroy", "no stack is left", undoes="deploy"),
    Step("left", "what is there all the same is listed", undoes="deploy"),
)


def plan(judge: Judge) -> tuple[Planned, ...]:
    """The steps as they will run."""
    return tuple(Planned(step, *judge(step.name)) for step in STEPS)
