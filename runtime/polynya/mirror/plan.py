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
from polynya.mirror.statements import ObjectKind, ObjectText, TargetStatements
from polynya.mirror.targets import statements_of
from polynya.model.config.dataset import Relations, ResolvedDataset
from polynya.model.config.mirror import ConnectedMirror, ViewKind
from polynya.model.error_catalogue.mirrors import CANNOT_BE_SHOWN, NAME_TAKEN, NAMES_FOLD
from polynya.model.errors import PolynyaError
from polynya.model.names import shown
from polynya.query.dialects import EngineView, views_in

Action: TypeAlias = Literal["create", "replace", "refresh", "drop"]

_PREFIX: Final = "polynya mirror "
#: A mark of ours is a tenth of this.
_LONGEST_MARK: Final = 10_000


@dataclass(frozen=True, slots=True)
class MirrorOrigin:
    """The mirror that made an object: two projects or targets may have mirrors of one name."""

    project: str
    target: str
    task: str

    @property
    def digest(self) -> str:
        """What names hold that only this mirror uses."""
        return _digest(self.project, self.target, self.task)


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
    """What is done to one object, and why: `texts` are its statements, in their order.

    `dataset` is `schema.view`, `name` that of the object.
    """

    action: Action
    kind: ObjectKind
    name: str
    dataset: str
    texts: tuple[str, ...]
    reason: str

    @property
    def sql(self) -> str:
        """The statements as a script, without the last semicolon."""
        return ";\n".join(self.texts)


@dataclass(frozen=True, slots=True)
class MirrorPlan:
    """The statements in their order, why datasets are not mirrored, and what is left as it is."""

    statements: tuple[MirrorStatement, ...] = ()
    refused: Mapping[str, PolynyaError] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Wanted:
    """An object that has to be there, and its mark."""

    text: ObjectText
    mark: Mark

    @property
    def name(self) -> str:
        return self.text.name

    @property
    def kind(self) -> ObjectKind:
        return self.text.kind


@dataclass(frozen=True, slots=True)
class _Own:
    """An object of the mirror in the target, as it is now."""

    name: str
    kind: ObjectKind
    mark: Mark


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
    target = statements_of(task)
    refused = dict(_folding(task, target, datasets))
    wanted: list[tuple[MirroredDataset, list[_Wanted]]] = []
    notes: list[str] = []
    for one in datasets:
        if one.name in refused:
            continue
        reason = target.why_not(one.shape, one.format_version) or _too_long(task, target, one)
        try:
            objects = [] if reason else list(_objects(task, target, origin, one, notes))
        except PolynyaError as error:
            reason = error.why or error.message
        if reason:
            refused[one.name] = CANNOT_BE_SHOWN(where=one.name, dataset=one.name, reason=reason)
            continue
        if note := target.note(one.format_version):
            notes.append(f"{one.name} has Iceberg's format {one.format_version}: {note}")
        wanted.append((one, objects))
    own = {thing.name: made for thing in there if (made := _own(target, origin, thing))}
    taken = _taken(origin, wanted, {thing.name for thing in there} - own.keys())
    refused |= taken
    statements: list[MirrorStatement] = []
    for one, objects in wanted:
        if one.name not in taken:
            changes, kept = _changes(task, target, one, objects, own)
            statements += changes
            notes += kept
    names = {thing.name for _, objects in wanted for thing in objects}
    drops = _drops(target, own, names, refused) if complete else []
    # First, so that a name that another dataset had is free.
    cleared = [*_unfinished(target, origin, there), *drops]
    return MirrorPlan((*cleared, *statements), refused, tuple(notes))


def _own(target: TargetStatements, origin: MirrorOrigin, thing: TargetObject) -> _Own | None:
    """An object that this mirror made and finished; None for any other one."""
    if thing.kind not in target.kinds or target.is_unfinished(origin.digest, thing.name):
        return None
    mark = Mark.of(thing.comment)
    return _Own(thing.name, thing.kind, mark) if mark and mark.origin == origin else None


def _folding(
    task: ConnectedMirror, target: TargetStatements, datasets: Sequence[MirroredDataset]
) -> Iterator[tuple[str, PolynyaError]]:
    """The datasets whose names, or two of whose columns, are one name in the target."""
    owners: dict[str, str] = {}
    for one in datasets:
        columns = Counter(map(target.stored, one.shape.columns))
        for name in (name for name, count in columns.items() if count > 1):
            alike = [c for c in one.shape.columns if target.stored(c) == name]
            yield one.name, _fold(f"column {alike[0]}", f"column {alike[1]}", name, one.name)
        for name in _names(task, target, one.dataset.relations):
            other = owners.setdefault(name, one.name)
            if other != one.name:
                error = _fold(other, one.name, name, one.name)
                yield one.name, error
                yield other, error


def _too_long(task: ConnectedMirror, target: TargetStatements, one: MirroredDataset) -> str | None:
    """Which name the target would cut; None if it keeps all. A cut name is never found again."""
    relations, most = one.dataset.relations, target.longest_name
    names = (*_names(task, target, relations), relations.internal_table, *one.shape.columns)
    for name in names:
        if most is not None and len(name.encode()) > most:
            return f"names have {most} bytes at most there, and {shown(name)} has more"
    return None


def _fold(one: str, other: str, name: str, where: str) -> PolynyaError:
    return NAMES_FOLD(where=where, one=shown(one), other=shown(other), name=shown(name))


def _views(relations: Relations) -> Mapping[ViewKind, str]:
    return {
        "current": relations.view,
        "history": relations.history_view,
        "changes": relations.changes_view,
        "current_stored": relations.current_stored_view,
        "history_stored": relations.history_stored_view,
    }


def _names(task: ConnectedMirror, target: TargetStatements, relations: Relations) -> list[str]:
    """The names in the target: of the table, and of each kind of view that is wanted."""
    table, views = target.table(relations), _views(relations)
    named = [] if table is None else [table[0]]
    return [*named, *(_view_name(task, target, views[kind]) for kind in task.views.kinds)]


def _view_name(task: ConnectedMirror, target: TargetStatements, view: str) -> str:
    return target.stored(f"{task.views.prefix}{view}")


def _objects(
    task: ConnectedMirror,
    target: TargetStatements,
    origin: MirrorOrigin,
    one: MirroredDataset,
    notes: list[str],
) -> Iterator[_Wanted]:
    """What a dataset has in the target. Raises OperationError for a view without a translation."""
    relations = one.dataset.relations
    made = target.table(relations)

    def wanted(name: str, what: ObjectKind, kind: str, text: str, columns: str) -> _Wanted:
        # What surrounds the text is a part of the definition, too: such as `SECURE`.
        around = target.create(ObjectText(name, what, text, "", origin.digest))
        mark = Mark(origin, one.name, kind, _digest(*around), columns)
        return _Wanted(ObjectText(name, what, text, mark.text, origin.digest), mark)

    if made is not None:
        yield wanted(made[0], "TABLE", "table", made[1], "")
    place = target.table_path(relations)
    found = {view.name: view for view in views_in(target.dialect, one.dataset, one.shape, place)}
    left_out: dict[str, None] = {}
    for kind in task.views.kinds:
        plain = _views(relations)[kind]
        view = found.get(target.dialect.fold(plain))
        # A dataset without history has no such views.
        if view is not None:
            name = _view_name(task, target, plain)
            left_out |= dict.fromkeys(view.left_out)
            yield wanted(name, "VIEW", kind, view.sql, _columns(view))
    if left_out:
        columns = ", ".join(map(shown, left_out))
        notes.append(f"{one.name} has columns that the target's views do not show: {columns}")


def _columns(view: EngineView) -> str:
    return _digest(*(f"{name} {kind}" for name, kind in view.columns.items()))


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def _taken(
    origin: MirrorOrigin,
    wanted: Sequence[tuple[MirroredDataset, Sequence[_Wanted]]],
    others: Collection[str],
) -> dict[str, PolynyaError]:
    """The datasets of which a name belongs to an object that this mirror did not make."""
    return {
        one.name: NAME_TAKEN(where=one.name, name=shown(thing.name), task=origin.task)
        for one, objects in wanted
        for thing in objects
        if thing.name in others
    }


def _changes(
    task: ConnectedMirror,
    target: TargetStatements,
    one: MirroredDataset,
    objects: Sequence[_Wanted],
    own: Mapping[str, _Own],
) -> tuple[list[MirrorStatement], list[str]]:
    """The statements about one dataset, and what stays as it is."""
    statements: list[MirrorStatement] = []
    notes: list[str] = []
    is_new = False
    for thing in objects:
        there, about = own.get(thing.name), (thing.kind, thing.name, one.name)
        if there is not None and there.kind != thing.kind:
            gone = (target.drop(there.kind, there.name),)
            why = f"it is a {there.kind.lower()}, and a {thing.kind.lower()} is needed"
            statements.append(MirrorStatement("drop", there.kind, there.name, one.name, gone, why))
            there = None
        if there is None:
            texts = target.create(thing.text)
            statements.append(MirrorStatement("create", *about, texts, "it does not exist"))
            is_new = is_new or thing.kind == "TABLE"
        elif there.mark.definition != thing.mark.definition:
            same = there.mark.columns == thing.mark.columns
            if not same and task.schema_evolution == "freeze":
                notes.append(f"{thing.name} keeps its columns: `schema_evolution: freeze`")
                continue
            reason = "its definition changed" if same else "its columns changed"
            texts = target.replace(thing.text, same_columns=same)
            statements.append(MirrorStatement("replace", *about, texts, reason))
            is_new = is_new or thing.kind == "TABLE"
    relations = one.dataset.relations
    refresh = target.refresh(relations)
    if statements and refresh is not None and not is_new:
        # The views may name columns that the target does not know yet.
        made = target.table(relations)
        name = relations.internal if made is None else made[0]
        reason = "its views are about to change"
        first = MirrorStatement("refresh", "TABLE", name, one.name, (refresh,), reason)
        statements.insert(0, first)
    return statements, notes


def _drops(
    target: TargetStatements,
    own: Mapping[str, _Own],
    wanted: Collection[str],
    refused: Mapping[str, PolynyaError],
) -> list[MirrorStatement]:
    """Drops of what the mirror made and needs no more; views before the tables that they read."""
    gone = []
    for thing in own.values():
        dataset = thing.mark.dataset
        # What was refused for now keeps what it has.
        if thing.name not in wanted and dataset not in refused:
            texts = (target.drop(thing.kind, thing.name),)
            reason = "the mirror does not show it any more"
            gone.append(MirrorStatement("drop", thing.kind, thing.name, dataset, texts, reason))
    return sorted(gone, key=lambda one: (one.kind == "TABLE", one.name))


def _unfinished(
    target: TargetStatements, origin: MirrorOrigin, there: Collection[TargetObject]
) -> Iterator[MirrorStatement]:
    """Drops of views that a kill kept from getting their name."""
    for thing in there:
        if thing.kind == "VIEW" and target.is_unfinished(origin.digest, thing.name):
            texts = (target.drop(thing.kind, thing.name),)
            reason = "its creation was not finished"
            yield MirrorStatement("drop", thing.kind, thing.name, origin.task, texts, reason)
