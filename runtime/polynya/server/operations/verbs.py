"""The actions that become operations: their parameters, and the arguments of their command."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from polynya.server.access.actions import Action


def _one_word(text: str) -> str:
    """Refuse what a command could take for an option, and what no name has."""
    if text.startswith("-"):
        raise ValueError("must not begin with `-`")
    return _one_line(text)


def _one_line(text: str) -> str:
    if not text.isprintable() or text.strip() != text:
        raise ValueError("must be one line without blanks at its ends")
    return text


@dataclass(frozen=True, slots=True)
class Positional:
    """Marks a parameter that the command takes as an argument, not as an option."""


Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=300), AfterValidator(_one_word)]
Text: TypeAlias = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_one_line)]
OneName: TypeAlias = Annotated[Name, Positional()]
Names: TypeAlias = Annotated[list[Name], Field(max_length=1000), Positional()]


class NoParameters(BaseModel):
    """The body of an action; unknown parameters are refused."""

    model_config = ConfigDict(extra="forbid")


class TaskParameters(NoParameters):
    """An action on one task of the project."""

    task: OneName


class MigrateParameters(NoParameters):
    """`yes` is the confirmation; without it the command asks nobody and changes nothing.

    `if_unchanged` is the fingerprint of a plan: nothing is done if the project is another by now.
    """

    yes: bool = False
    if_unchanged: Name | None = None


class RunParameters(NoParameters):
    """A run of tasks (names or globs; all if there are none), until it is cancelled or `once`."""

    tasks: Names = []
    once: bool = False
    apply: Literal["policy", "always", "never"] = "policy"
    fail_on: list[Literal["quarantine", "stale"]] = []
    if_unchanged: Name | None = None


class ReloadParameters(TaskParameters):
    """A reload, as of `polynya reload`; `as_of` is when the full load began."""

    dataset: Name | None = None
    mode: Literal[
        "compare_and_apply_with_deleted_rows",
        "compare_and_apply_without_deleted_rows",
        "truncate_and_insert",
        "drop_and_create",
    ] = "compare_and_apply_with_deleted_rows"
    files: Name | None = None
    from_: Annotated[Literal["landing", "source"], Field(alias="from")] = "landing"
    as_of: datetime | None = None
    abandon: bool = False
    accept_incomplete: bool = False
    reason: Text | None = None
    wait: bool = False


class ReplayParameters(NoParameters):
    """Rejected records by their identifiers, or `all` of a dataset or of the project."""

    identifiers: Names = []
    all_: Annotated[bool, Field(alias="all")] = False
    dataset: Name | None = None


class MaintainParameters(NoParameters):
    """Datasets by name or glob; all if there are none."""

    datasets: Names = []
    dry_run: bool = False


class ResumeParameters(TaskParameters):
    """A suspended dataset; `accept` lets the next batch do what it was suspended for, once."""

    dataset: OneName
    accept: Literal["propagate", "ignore"] | None = None


class VerifyParameters(NoParameters):
    """One dataset, or all."""

    dataset: Annotated[Name | None, Positional()] = None


class CompareParameters(TaskParameters):
    """Tables of a captured database; `wait` is in seconds."""

    table: Annotated[list[Name], Field(max_length=1000)] = []
    wait: Annotated[float, Field(ge=0, le=86_400)] = 300.0


class ReasonParameters(NoParameters):
    """A request to a cluster, with a reason for other operators."""

    reason: Text | None = None


class TaskReasonParameters(TaskParameters):
    """A request about one task of a cluster, with a reason for other operators."""

    reason: Text | None = None


class RecreateParameters(TaskReasonParameters):
    """The tables of a task, or of one `dataset`, made again."""

    dataset: Name | None = None
    wait: bool = False


class TaskRunParameters(ReasonParameters):
    """A run of tasks by the nodes that own their tables; `apply` as of a run."""

    tasks: Annotated[Names, Field(min_length=1)]
    apply: Literal["policy", "always", "never"] = "policy"
    wait: bool = False


class WaitParameters(ReasonParameters):
    """A request to a cluster; the operation lasts until it is done if `wait` is set."""

    wait: bool = False


class ScaleParameters(WaitParameters):
    """The wanted number of nodes."""

    nodes: Annotated[int, Field(ge=0, le=1000), Positional()]


class NodeParameters(NoParameters):
    """One node of the cluster."""

    node: OneName


class DrainParameters(NodeParameters):
    """A node to drain, with a reason for other operators."""

    reason: Text | None = None


class UnitParameters(NoParameters):
    """`unit` is `TASK` for all its units, or `TASK/DATASET`."""

    unit: OneName


class MoveParameters(UnitParameters):
    """A unit, and the node that it moves to."""

    node: OneName
    reason: Text | None = None


class TablesParameters(TaskParameters):
    """Tables of a capture as in the database; all if there are none."""

    tables: Names = []


class AutomationParameters(NoParameters):
    """An automation of the project, by its name."""

    automation: OneName


class Writes(Enum):
    """What an action does to data, which decides what it excludes."""

    NOTHING = "nothing was written: the command only reads"
    TABLES = (
        "each commit is whole: what was committed stays, and nothing else was written; the same "
        "command continues"
    )
    LAYOUT = "each change is whole: `polynya plan` shows what is left; the same command continues"
    ACTIONS = (
        "the log of the run says which actions ended and which may have; each commit of them is "
        "whole, and nothing of the run is done a second time"
    )
    REQUEST = (
        "the request was left for the cluster or the capture whole, or not at all; their status "
        "shows which"
    )


@dataclass(frozen=True, slots=True)
class Verb:
    """One action of the API: the words of its command, its parameters, and what it may do."""

    name: str
    words: tuple[str, ...]
    parameters: type[NoParameters]
    action: Action
    writes: Writes
    summary: str
    #: Exit codes of success.
    done: frozenset[int] = frozenset({0})


def _verb(
    command: str,
    parameters: type[NoParameters],
    action: Action,
    writes: Writes,
    summary: str,
    *done: int,
) -> Verb:
    words = tuple(command.split())
    return Verb("-".join(words), words, parameters, action, writes, summary, frozenset({0, *done}))


_TABLES, _REQUEST, _NOTHING = Writes.TABLES, Writes.REQUEST, Writes.NOTHING
#: Each action by its name, which is its path below `/api/v1/actions/`.
VERBS: Final = {
    verb.name: verb
    for verb in (
        _verb("validate", NoParameters, Action.VALIDATE, _NOTHING, "Check all files."),
        _verb("plan", NoParameters, Action.PLAN, _NOTHING, "Show what has to change.", 3),
        _verb("migrate", MigrateParameters, Action.MIGRATE, Writes.LAYOUT, "Execute a plan."),
        _verb("run", RunParameters, Action.RUN, _TABLES, "Process what has landed."),
        _verb("reload", ReloadParameters, Action.RELOAD, _TABLES, "Compare with a new full load."),
        _verb(
            "quarantine replay",
            ReplayParameters,
            Action.REPLAY_QUARANTINE,
            _TABLES,
            "Try rejected records again.",
        ),
        _verb("maintain", MaintainParameters, Action.MAINTAIN, _TABLES, "Maintain tables now."),
        _verb("verify", VerifyParameters, Action.PLAN, _NOTHING, "Check tables by their rules."),
        _verb("compare", CompareParameters, Action.PLAN, _NOTHING, "Compare with the database."),
        _verb(
            "dataset resume",
            ResumeParameters,
            Action.RESUME,
            _TABLES,
            "Resume a suspended dataset.",
        ),
        _verb("task run", TaskRunParameters, Action.RUN, _REQUEST, "Let its nodes run a task."),
        _verb("task stop", TaskReasonParameters, Action.STOP, _REQUEST, "Stop a task."),
        _verb("task start", TaskParameters, Action.RESUME, _REQUEST, "Start a stopped task."),
        _verb("task resume", TaskReasonParameters, Action.RESUME, _REQUEST, "Resume a task."),
        _verb("task recreate", RecreateParameters, Action.RECREATE, _REQUEST, "Make tables again."),
        _verb("landing stop", TaskParameters, Action.STOP, _REQUEST, "Stop a capture."),
        _verb("landing resume", TablesParameters, Action.RESUME, _REQUEST, "Resume tables."),
        _verb("landing reload", TablesParameters, Action.RELOAD, _REQUEST, "Load tables again."),
        _verb(
            "automation run",
            AutomationParameters,
            Action.RUN_AUTOMATION,
            Writes.ACTIONS,
            "Run an automation now.",
        ),
        _verb("cluster start", WaitParameters, Action.OPERATE_CLUSTER, _REQUEST, "Start nodes."),
        _verb("cluster stop", WaitParameters, Action.OPERATE_CLUSTER, _REQUEST, "Stop nodes."),
        _verb("cluster scale", ScaleParameters, Action.OPERATE_CLUSTER, _REQUEST, "Scale nodes."),
        _verb("cluster roll", WaitParameters, Action.OPERATE_CLUSTER, _REQUEST, "Replace nodes."),
        _verb("cluster drain", DrainParameters, Action.OPERATE_CLUSTER, _REQUEST, "Drain a node."),
        _verb("cluster undrain", NodeParameters, Action.OPERATE_CLUSTER, _REQUEST, "End a drain."),
        _verb("cluster move", MoveParameters, Action.OPERATE_CLUSTER, _REQUEST, "Move a unit."),
        _verb("cluster unmove", UnitParameters, Action.OPERATE_CLUSTER, _REQUEST, "End a move."),
        _verb(
            "cluster freeze", ReasonParameters, Action.OPERATE_CLUSTER, _REQUEST, "Move no units."
        ),
        _verb(
            "cluster unfreeze", NoParameters, Action.OPERATE_CLUSTER, _REQUEST, "Move units again."
        ),
    )
}


#: They write nothing, and read by Spark.
_READ_BY_SPARK: Final = frozenset({"verify", "compare"})


def arguments(verb: Verb, given: NoParameters) -> list[str]:
    """The arguments of the command: options with their values in one word, then names after `--`.

    A value can so never be taken for an option.
    """
    options: list[str] = []
    names: list[str] = []
    for field, info in type(given).model_fields.items():
        value = getattr(given, field)
        if value is None or value is False:
            continue
        if any(isinstance(one, Positional) for one in info.metadata):
            names += [str(one) for one in (value if isinstance(value, list) else [value])]
            continue
        option = "--" + (info.alias or field).replace("_", "-")
        options += [option] if value is True else list(_valued(option, value))
    return [*verb.words, *options, *(["--", *names] if names else [])]


def _valued(option: str, value: Any) -> Iterator[str]:
    for one in value if isinstance(value, list) else [value]:
        yield f"{option}={one.isoformat() if isinstance(one, datetime) else one}"


def objects(given: NoParameters) -> tuple[str, ...]:
    """What an action works on: names or globs; nothing stands for everything."""
    for field in ("task", "unit", "node", "automation", "dataset"):
        name = getattr(given, field, None)
        if name is not None:
            return (str(name),)
    for field in ("tasks", "datasets", "identifiers"):
        names = getattr(given, field, None)
        if names:
            return tuple(names)
    return ()


def works_on_tables(verb: Verb, *, in_cluster: bool) -> bool:
    """Whether an action needs Java or writes tables where it runs.

    In a cluster `reload` and `maintain` leave a request for the node that has the table.
    """
    if verb.name in {"reload", "maintain"} and in_cluster:
        return False
    return verb.writes in {Writes.TABLES, Writes.LAYOUT} or verb.name in _READ_BY_SPARK


def exclude_each_other(
    one: Verb, its: tuple[str, ...], other: Verb, others: tuple[str, ...]
) -> bool:
    """Whether two actions must not be under way at once.

    Readers exclude nothing. `migrate` excludes all that writes tables. Otherwise an action excludes
    only itself on the same object: different commands on one table wait for each other by its lock.
    """
    writes = {one.writes, other.writes}
    if Writes.NOTHING in writes:
        return False
    if Writes.LAYOUT in writes:
        return Writes.REQUEST not in writes
    if one.name != other.name:
        return False
    return not its or not others or any(_overlap(a, b) for a in its for b in others)


def _overlap(one: str, other: str) -> bool:
    """Whether two names or globs can mean the same; two globs are taken to."""
    globs = [any(sign in name for sign in "*?[") for name in (one, other)]
    return all(globs) or fnmatchcase(one, other) or fnmatchcase(other, one)
