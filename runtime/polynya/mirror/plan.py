"""What a mirror changes in its target: from facts to statements, each with its reason.

An object is the mirror's if its comment carries the mark of the mirror. Nothing else is altered or
dropped, whatever its name is.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final, Literal, Self, TypeAlias

from polynya.lake.fold.shape import Shape
from polynya.mirror import snowflake
from polynya.model.config.dataset import Relations, ResolvedDataset
from polynya.model.config.mirror import ConnectedMirror, ViewKind
from polynya.model.error_catalogue.mirrors import CANNOT_BE_SHOWN, NAME_TAKEN, NAMES_FOLD
from polynya.model.errors import PolynyaError
from polynya.model.names import Dialect, shown
from polynya.query.dialects import EngineView, views_in

ObjectKind: TypeAlias = Literal["TABLE", "VIEW"]
Action: TypeAlias = Literal["create", "replace", "refresh", "drop"]

_PREFIX: Final = "polynya mirror "
#: Snowflake takes longer comments; a mark of ours is a tenth of this.
_LONGEST_MARK: Final = 10_000


@dataclass(frozen=True, slots=True)
class MirrorOrigin:
    """The mirror that made an object: two projects or targets may have mirrors of one name."""

    project: str
    target: str
    task: str


@dataclass(frozen=True, slots=True)
class Mark:
    """What the comment of an object says: who made it, of which dataset, and with which text.

    `definition` is the digest of the text, `columns` that of names and types of the columns.
    """

    origin: MirrorOrigin
    dataset: str
    kind: str
    definition: str
    columns: str = ""

    @property
    def text(self) -> str:
        """The comment."""
        return _PREFIX + json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def of(cls, comment: str) -> Self | None:
        """The mark in a comment; None for any other comment."""
        if not comment.startswith(_PREFIX) or len(comment) > _LONGEST_MARK:
            return None
        try:
            said = json.loads(comment.removeprefix(_PREFIX))
            mark = cls(**{**said, "origin": MirrorOrigin(**said["origin"])})
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        texts = (*asdict(mark.origin).values(), mark.dataset, mark.kind, mark.definition)
        return mark if all(isinstance(text, str) for text in (*texts, mark.columns)) else None


@dataclass(frozen=True, slots=True)
class TargetObject:
    """A table or view of the target's schema. `name` is as the target stores it."""

    name: str
    kind: ObjectKind
    comment: str = ""


@dataclass(frozen=True, slots=True)
class MirroredDataset:
    """A dataset that is to be shown, with the columns of its newest commit."""

    dataset: ResolvedDataset
    shape: Shape
    format_version: int = 2

    @property
    def name(self) -> str:
        """`schema.view`."""
        return self.dataset.relations.current


@dataclass(frozen=True, slots=True)
class MirrorStatement:
    """A statement, and why it is needed. `dataset` is `schema.view`, `name` that of the object."""

    action: Action
    kind: ObjectKind
    name: str
    dataset: str
    sql: str
    reason: str


@dataclass(frozen=True, slots=True)
class MirrorPlan:
    """The statements in their order, why datasets are not mirrored, and what is left as it is."""

    statements: tuple[MirrorStatement, ...] = ()
    refused: Mapping[str, PolynyaError] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Wanted:
    """An object that has to be there, and the text after its comment that makes it."""

    name: str
    kind: ObjectKind
    mark: Mark
    made: snowflake.CreateText

    def statement(self, *, replace: bool) -> str:
        return self.made.statement(self.mark.text, replace=replace)


def table_name(task: ConnectedMirror, relations: Relations) -> str:
    """Name of the external table of a dataset in the target."""
    return Dialect.SNOWFLAKE.fold(f"{task.views.prefix}{relations.internal_table}")


def plan(
    task: ConnectedMirror,
    origin: MirrorOrigin,
    datasets: Sequence[MirroredDataset],
    there: Collection[TargetObject],
    *,
    complete: bool = True,
) -> MirrorPlan:
    """What makes the target show the datasets.

    Args:
        task: the mirror.
        origin: what marks its objects.
        datasets: all that are to be shown.
        there: all tables and views of the target's schema.
        complete: `datasets` are all there are. Otherwise nothing is dropped.
    """
    refused = dict(_folding(task, datasets))
    wanted: dict[str, list[_Wanted]] = {}
    notes = []
    for one in datasets:
        if one.name in refused:
            continue
        try:
            objects = list(_objects(task, origin, one))
        except PolynyaError as error:
            reason = error.why or error.message
            refused[one.name] = CANNOT_BE_SHOWN(where=one.name, dataset=one.name, reason=reason)
            continue
        if one.format_version > 2:
            notes.append(
                f"{one.name} has Iceberg's format {one.format_version}: after an upgrade from "
                "format 2 Snowflake refuses refreshes until the next commit"
            )
        wanted[one.name] = objects
    known = {thing.name: thing for thing in there}
    taken = _taken(origin, wanted, known)
    refused |= taken
    statements: list[MirrorStatement] = []
    for name, objects in wanted.items():
        if name not in taken:
            changes, kept = _changes(task, objects, known)
            statements += changes
            notes += kept
    names = {thing.name for objects in wanted.values() for thing in objects}
    drops = _drops(task, origin, there, names, refused) if complete else []
    # First, so that a name that another dataset had is free.
    return MirrorPlan((*drops, *statements), refused, tuple(notes))


def _folding(
    task: ConnectedMirror, datasets: Sequence[MirroredDataset]
) -> Iterator[tuple[str, PolynyaError]]:
    """The datasets whose names, or two of whose columns, are one name in the target."""
    owners: dict[str, str] = {}
    for one in datasets:
        columns = Counter(map(Dialect.SNOWFLAKE.fold, one.shape.columns))
        for name in (name for name, count in columns.items() if count > 1):
            alike = [c for c in one.shape.columns if Dialect.SNOWFLAKE.fold(c) == name]
            yield one.name, _fold(f"column {alike[0]}", f"column {alike[1]}", name, one.name)
        for name in _names(task, one.dataset.relations).values():
            other = owners.setdefault(name, one.name)
            if other != one.name:
                error = _fold(other, one.name, name, one.name)
                yield one.name, error
                yield other, error


def _fold(one: str, other: str, name: str, where: str) -> PolynyaError:
    return NAMES_FOLD(where=where, one=shown(one), other=shown(other), name=shown(name))


def _names(task: ConnectedMirror, relations: Relations) -> dict[str, str]:
    """The names in the target: of the table, and of each kind of view that is wanted."""
    views: dict[ViewKind, str] = {
        "current": relations.view,
        "history": relations.history_view,
        "changes": relations.changes_view,
        "current_stored": relations.current_stored_view,
        "history_stored": relations.history_stored_view,
    }
    prefix, fold = task.views.prefix, Dialect.SNOWFLAKE.fold
    named: dict[str, str] = {}
    if task.target.snowflake.linked_database is None:
        named["table"] = table_name(task, relations)
    for kind in task.views.kinds:
        named[kind] = fold(f"{prefix}{views[kind]}")
    return named


def _objects(
    task: ConnectedMirror, origin: MirrorOrigin, one: MirroredDataset
) -> Iterator[_Wanted]:
    """What a dataset has in the target. Raises OperationError for a view without a translation."""
    target, relations = task.target.snowflake, one.dataset.relations
    names = _names(task, relations)
    if "table" in names:
        made = snowflake.external_table(target, names["table"], relations, task.refresh)
        mark = Mark(origin, one.name, "table", _digest(made.before, made.after))
        yield _Wanted(names["table"], "TABLE", mark, made)
    table = snowflake.table_path(target, names.get("table"), relations)
    found = {view.name: view for view in views_in(Dialect.SNOWFLAKE, one.dataset, one.shape, table)}
    plain = _names(task.model_copy(update={"views": _without_prefix(task)}), relations)
    for kind in task.views.kinds:
        view = found.get(plain[kind])
        # A dataset without history has no such views.
        if view is not None:
            made = snowflake.view(target, names[kind], view.sql, secure=task.views.secure)
            mark = Mark(origin, one.name, kind, _digest(made.before, made.after), _columns(view))
            yield _Wanted(names[kind], "VIEW", mark, made)


def _without_prefix(task: ConnectedMirror) -> object:
    return task.views.model_copy(update={"prefix": ""})


def _columns(view: EngineView) -> str:
    return _digest(*(f"{name} {kind}" for name, kind in view.columns.items()))


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _taken(
    origin: MirrorOrigin, wanted: Mapping[str, Sequence[_Wanted]], known: Mapping[str, TargetObject]
) -> dict[str, PolynyaError]:
    """The datasets of which a name belongs to an object that this mirror did not make."""
    taken: dict[str, PolynyaError] = {}
    for name, objects in wanted.items():
        for thing in objects:
            there = known.get(thing.name)
            mark = None if there is None else Mark.of(there.comment)
            if there is not None and (mark is None or mark.origin != origin):
                taken[name] = NAME_TAKEN(where=name, name=shown(thing.name), task=origin.task)
    return taken


def _changes(
    task: ConnectedMirror, objects: Sequence[_Wanted], known: Mapping[str, TargetObject]
) -> tuple[list[MirrorStatement], list[str]]:
    """The statements about one dataset, and what stays as it is."""
    statements: list[MirrorStatement] = []
    notes: list[str] = []
    is_new = False
    for thing in objects:
        there, about = known.get(thing.name), (thing.kind, thing.name, thing.mark.dataset)
        mark = None if there is None else Mark.of(there.comment)
        if there is not None and there.kind != thing.kind:
            gone = snowflake.drop(task.target.snowflake, there.kind, there.name)
            why = f"it is a {there.kind.lower()}, and a {thing.kind.lower()} is needed"
            statements.append(MirrorStatement("drop", there.kind, there.name, about[2], gone, why))
            mark = None
        if mark is None:
            sql = thing.statement(replace=False)
            statements.append(MirrorStatement("create", *about, sql, "it does not exist"))
            is_new = is_new or thing.kind == "TABLE"
        elif mark.definition != thing.mark.definition:
            if mark.columns != thing.mark.columns and task.schema_evolution == "freeze":
                notes.append(f"{thing.name} keeps its columns: `schema_evolution: freeze`")
                continue
            reason = (
                "its columns changed"
                if mark.columns != thing.mark.columns
                else ("its definition changed")
            )
            sql = thing.statement(replace=True)
            statements.append(MirrorStatement("replace", *about, sql, reason))
            is_new = is_new or thing.kind == "TABLE"
    table = objects[0] if objects and objects[0].kind == "TABLE" else None
    if statements and table is not None and not is_new:
        # The views may name columns that the table there does not know yet.
        sql = snowflake.refresh(task.target.snowflake, table.name)
        reason = "its views are about to change"
        first = MirrorStatement("refresh", "TABLE", table.name, table.mark.dataset, sql, reason)
        statements.insert(0, first)
    return statements, notes


def _drops(
    task: ConnectedMirror,
    origin: MirrorOrigin,
    there: Collection[TargetObject],
    wanted: Collection[str],
    refused: Mapping[str, PolynyaError],
) -> list[MirrorStatement]:
    """Drops of what the mirror made and needs no more; views before the tables that they read."""
    gone = []
    for thing in there:
        mark = Mark.of(thing.comment)
        if mark is None or mark.origin != origin or thing.name in wanted:
            continue
        # What was refused for now keeps what it has.
        if mark.dataset not in refused:
            sql = snowflake.drop(task.target.snowflake, thing.kind, thing.name)
            reason = "the mirror does not show it any more"
            gone.append(MirrorStatement("drop", thing.kind, thing.name, mark.dataset, sql, reason))
    return sorted(gone, key=lambda one: (one.kind == "TABLE", one.name))
