"""The effects of a changed configuration on tables: settings, layout, types. Pure.

`plan_dataset` turns facts into changes. Each change says what differs, what that means for the
data, and which actor must act.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from polynya.lake.fold.live_views import definitions
from polynya.lake.fold.shape import Shape
from polynya.lake.table.shaping import data_columns, shape_of
from polynya.lake.table.state import CopyState
from polynya.model.config.dataset import (
    LATER,
    LAYOUT,
    ResolvedDataset,
    contradicted,
    format_before,
    recorded,
    shown_before,
)
from polynya.model.config.layout import PartitionTerm, SortTerm
from polynya.model.error_catalogue.configuration import (
    UNKNOWN_COLUMN_IN_SETTING,
    UNSUITABLE_LAYOUT_TYPE,
)
from polynya.model.error_catalogue.lake import (
    FORMAT_VERSION_LOWERED,
    KEYS_CHANGED,
    ORDER_CHANGED,
    SECOND_TASK,
    VALUES_DO_NOT_FIT,
)
from polynya.model.formats import rules_of
from polynya.model.promotion import is_rewritable, widen
from polynya.model.types import DataType, parse_type
from polynya.observe.events import counted
from polynya.transform.named_columns import UnknownColumn, unknown_columns

#: The actor: `polynya migrate` ("apply", its former name), the next run, an operator ("decide"), or
#: "nobody".
Action: TypeAlias = Literal["apply", "run", "decide", "nobody"]


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """One consequence of a changed setting.

    Attributes:
        kind: a stable name.
        what: the difference.
        means: what it does to the data.
        action: the actor.
        destructive: something that can be queried now will be gone.
        rewrites: what is read and written for it; None: no row is, or it is not known.
    """

    kind: str
    what: str
    means: str
    action: Action
    destructive: bool = False
    rewrites: StoredSize | None = None


@dataclass(frozen=True, slots=True)
class StoredSize:
    """The rows of a table in its files, with those that are deleted and not yet removed."""

    rows: int
    size_bytes: int
    files: int


@dataclass(frozen=True, slots=True)
class DatasetFacts:
    """One configured dataset and its table.

    Attributes:
        dataset: as it is configured.
        copy: the state of its table, None before there is one.
        included: false for a source table that `include` and `exclude` leave out.
        tasks: names of all tasks of the project.
        stored: the rows that a rewrite would write, None where none is planned.
    """

    dataset: ResolvedDataset
    copy: CopyState | None
    included: bool = True
    tasks: frozenset[str] = frozenset()
    stored: StoredSize | None = None

    @property
    def has_rows(self) -> bool:
        """Whether any record was ever written."""
        return self.copy is not None and bool(self.copy.books.totals.get("rows_out"))


@dataclass(frozen=True, slots=True)
class DatasetPlan:
    """All changes of one dataset; `stale_views` are those that `apply` drops, as `schema.view`."""

    name: str
    task: str
    changes: tuple[PlannedChange, ...]
    stale_views: tuple[str, ...] = ()


_EXISTING_FILES: Final = "existing files keep theirs until maintenance rewrites them"
_LAYOUT_MEANS: Final = {
    "partition_by": "new files of Current and Prior are partitioned like this; "
    f"{_EXISTING_FILES}, and queries return the same rows",
    "sort_by": "full loads and files that maintenance rewrites are sorted like this; "
    f"{_EXISTING_FILES}",
    "target_file_size": f"new files get about this size; {_EXISTING_FILES}",
}
_SETTING_MEANS: Final = {
    "landing_path": "files are searched there; what was copied stays",
    "path": "files that match are read if they were not read before; what was copied stays",
    "initial_load": "its files are read if they were not read before",
    "reload": "decides when the full load is read again, and what that changes",
    "source": "events of this source table are taken from now on; what was copied stays",
    "timestamp": "times of later events come from it; existing versions keep theirs",
    "apply_as_deletes": "decides for later events; what was copied keeps its operation",
    "apply_as_truncates": "decides for later events; what was copied keeps its operation",
    "ignore_null_updates": "decides for later events; what was copied keeps its NULLs",
    "extracts": "decides for later extracts; what was compared stays",
    "numbers": "newly inferred columns have it; existing columns keep theirs",
    "columns": "later records are read with these types; existing rows are not reread",
    "mapping": "columns of later records are made like this; existing rows are unchanged",
    "nested": "structs of later records are stored like this; existing columns are unchanged",
    "rules": "later records are changed like this; existing rows are unchanged, so a value that is "
    "now masked stays until `polynya reload`",
    "where": "decides for later events; what was copied or filtered stays so",
    "tombstone_retention": "holds from the next apply on",
    "changes_retention": "events that are applied from now on are kept for this long; without it, "
    "and after that time, the next apply removes retained events",
    "retention": "the next maintenance removes older rows from Current and history; removed rows "
    "do not come back when it is longer",
    "on_bad_record": "decides for later bad records; quarantined ones stay there",
    "schema_evolution": "decides for later changes of the source",
}
#: Settings, and whether they are removed, that make something unavailable to queries.
_FORGETTING_SETTINGS: Final = frozenset({("changes_retention", True), ("retention", False)})
_ORDER_CHANGED_MEANS: Final = (
    f"refused ({ORDER_CHANGED.code}): what was copied and what comes next cannot be put into one "
    "order; give the dataset a new `name`, which builds a new table from what has landed, or undo "
    "the change"
)


def plan_dataset(facts: DatasetFacts) -> DatasetPlan:
    """Decide what the configuration does to one dataset."""
    dataset, copy = facts.dataset, facts.copy
    name = dataset.relations.current
    if copy is None:
        return DatasetPlan(name, dataset.task, (_new(dataset),))
    views = _views(dataset, copy)
    changes = [
        *_task(facts, copy),
        *_keys(facts, copy),
        *_lasting(facts, copy),
        *_format(dataset, copy),
        *_columns(dataset, copy),
        *_history(dataset, copy),
        *_deletes(dataset, copy),
        *views.changes(),
        *type_changes(dataset, copy, facts.stored),
        *layout_changes(dataset, copy),
        *_later(dataset, copy),
        *_unknown(facts, copy),
    ]
    return DatasetPlan(name, dataset.task, tuple(changes), views.gone)


def _new(dataset: ResolvedDataset) -> PlannedChange:
    what = f"new dataset: {dataset.relations.internal}"
    return PlannedChange(
        "new_dataset", what, "the next run copies all that has landed for it", "apply"
    )


def _task(facts: DatasetFacts, copy: CopyState) -> Iterator[PlannedChange]:
    dataset = facts.dataset
    if not facts.included:
        yield PlannedChange(
            "excluded",
            f"the source table {dataset.landing.source} is excluded",
            "its tables and views stay as they are; nothing is copied to them",
            "nobody",
        )
    if copy.membership.task is None or copy.membership.task == dataset.task:
        return
    what = f"the task {dataset.task} fills it, instead of {copy.membership.task}"
    if copy.membership.task in facts.tasks:
        yield PlannedChange(
            "task",
            what,
            f"refused ({SECOND_TASK.code}): both tasks exist; give one a `prefix` or a `schema`",
            "decide",
        )
    else:
        yield PlannedChange(
            "task", what, "the task was renamed; it continues with the same tables", "apply"
        )


def _keys(facts: DatasetFacts, copy: CopyState) -> Iterator[PlannedChange]:
    before, now = copy.columns.keys, list(facts.dataset.events.keys)
    if facts.has_rows and now and before != now:
        yield PlannedChange(
            "keys",
            f"keys: {_setting_text(before)} → {_setting_text(now)}",
            f"refused ({KEYS_CHANGED.code}): versions are matched by the keys that the table was "
            "made with; restore the old ones, or give the dataset a new `name`",
            "decide",
        )


def _lasting(facts: DatasetFacts, copy: CopyState) -> Iterator[PlannedChange]:
    after = recorded(facts.dataset, {}, has_rows=False)
    for name in contradicted(facts.dataset, copy.settings) if facts.has_rows else ():
        what = f"{name}: {_setting_text(copy.settings.get(name))} → {_setting_text(after[name])}"
        yield PlannedChange("full_reload", what, _ORDER_CHANGED_MEANS, "decide")


def _format(dataset: ResolvedDataset, copy: CopyState) -> Iterator[PlannedChange]:
    before, now = format_before(copy.settings), dataset.kept.format_version
    if before == now:
        return
    what = f"format_version: {before} → {now}"
    if now > before:
        means = "the table is upgraded, its files stay; afterwards only readers that support the "
        means += "format can read it"
        yield PlannedChange("format_version", what, means, "apply")
    else:
        means = f"refused ({FORMAT_VERSION_LOWERED.code}): a table cannot be downgraded; restore "
        means += (
            "the setting, or give the dataset a new `name`, which builds a new table from what "
        )
        means += "has landed"
        yield PlannedChange("format_version", what, means, "decide")


def _columns(dataset: ResolvedDataset, copy: CopyState) -> Iterator[PlannedChange]:
    if "except_columns" not in copy.settings:
        return
    before, now = set(copy.settings["except_columns"]), set(dataset.events.except_columns)
    names = set(copy.columns.schema)
    if gone := sorted((now - before) & names):
        means = "the views lose it, later rows hold NULL in it; what is stored stays stored"
        yield PlannedChange(
            "columns_excluded", f"excluded: {', '.join(gone)}", means, "apply", destructive=True
        )
    if back := sorted((before - now) & names):
        means = "the views show it; rows that were copied without it hold NULL"
        yield PlannedChange(
            "columns_included", f"no longer excluded: {', '.join(back)}", means, "apply"
        )


def _history(dataset: ResolvedDataset, copy: CopyState) -> Iterator[PlannedChange]:
    before = copy.settings.get("history")
    if before is None or before == dataset.kept.history:
        return
    if dataset.kept.history:
        means = "versions are kept from now on; those before the last apply are missing"
        if dataset.kept.changes_retention is not None:
            means += ", until `polynya rebuild` derives them from the retained events"
        yield PlannedChange("history_on", "history: false → true", means, "apply")
    else:
        means = "applies keep no more versions, and remove existing ones when they are old"
        yield PlannedChange(
            "history_off", "history: true → false", means, "apply", destructive=True
        )


def _deletes(dataset: ResolvedDataset, copy: CopyState) -> Iterator[PlannedChange]:
    before, now = copy.settings.get("delete_mode"), dataset.kept.delete_mode
    if before is None or before == now or dataset.kept.mode == "append_only":
        return
    what = f"delete_mode: {before} → {now}"
    if now == "soft":
        means = (
            "records that are deleted from now on stay in Current, shown with `hdr__deleted`; "
            "those that were removed from it do not come back"
        )
        if dataset.kept.history:
            means += "; History has all of them"
        yield PlannedChange("deletes_soft", what, means, "apply")
    else:
        means = (
            "records that are deleted from now on are removed from Current, and it no longer shows "
            "those that were deleted before"
        )
        yield PlannedChange("deletes_hard", what, means, "apply", destructive=True)


@dataclass(frozen=True, slots=True)
class _Views:
    made: tuple[str, ...]
    changed: tuple[str, ...]
    gone: tuple[str, ...]

    def changes(self) -> Iterator[PlannedChange]:
        if self.made:
            yield PlannedChange(
                "views", f"new views: {', '.join(self.made)}", "metadata only", "apply"
            )
        if self.changed:
            what = f"views recreated: {', '.join(self.changed)}"
            yield PlannedChange("views", what, "metadata only", "apply")
        if self.gone:
            what = f"views dropped: {', '.join(self.gone)}"
            means = "queries that name them fail; the rows stay in the internal table"
            yield PlannedChange("views", what, means, "apply", destructive=True)


def _views(dataset: ResolvedDataset, copy: CopyState) -> _Views:
    """Compare the SQL of the views under the recorded settings and under today's."""
    if not copy.columns.schema or not copy.settings:
        return _Views((), (), ())
    old = shown_before(dataset, copy.settings)
    before, after = _sql(old, copy), _sql(dataset, copy)
    return _Views(
        made=tuple(sorted(set(after) - set(before))),
        changed=tuple(sorted(n for n in set(after) & set(before) if after[n] != before[n])),
        gone=tuple(sorted(set(before) - set(after))),
    )


def _sql(dataset: ResolvedDataset, copy: CopyState) -> dict[str, str]:
    types: Mapping[str, DataType] = {
        name: parse_type(kind) for name, kind in copy.columns.schema.items()
    }
    keys = tuple(key for key in copy.columns.keys if key in data_columns(dataset, types))
    shape: Shape = shape_of(dataset, copy, types, keys)
    sql = definitions(dataset, shape, dataset.relations.internal_table)
    return {f"{dataset.relations.schema}.{name}": text for name, text in sql.items()}


def type_changes(
    dataset: ResolvedDataset, copy: CopyState, stored: StoredSize | None
) -> Iterator[PlannedChange]:
    """Declared types that the columns of the table lack and cannot get in place."""
    again = columns_to_rewrite(dataset, copy)
    recorded: Mapping[str, str] = copy.settings.get("columns", {})
    for name, (present, declared) in _declared(dataset, copy).items():
        what = f"columns: {name} is {present}, {declared} is declared"
        if name in again:
            means = _rewrite(declared, stored)
            yield PlannedChange("type_rewritten", what, means, "apply", rewrites=stored)
        elif widen(present, declared) is None and recorded.get(name) != str(declared):
            yield PlannedChange(
                "type_out_of_reach",
                what,
                f"a table cannot change {present} to {declared}: {name} stays {present}, and "
                "values that do not fit go to quarantine. Undo the declaration, or give the "
                "dataset a new `name`, which rereads everything with the declared types",
                "decide",
            )


def columns_to_rewrite(dataset: ResolvedDataset, copy: CopyState) -> dict[str, DataType]:
    """Columns that get their declared type only by a rewrite of every row."""
    fixed = {*copy.columns.keys, *dataset.events.sequence_by, *dataset.events.except_columns}
    return {
        name: declared
        for name, (stored, declared) in _declared(dataset, copy).items()
        if name not in fixed and is_rewritable(stored, declared)
    }


def _declared(dataset: ResolvedDataset, copy: CopyState) -> dict[str, tuple[DataType, DataType]]:
    """Columns of the table with the type that they have and the one that is declared."""
    return {
        name: (parse_type(copy.columns.schema[name]), declared)
        for name, declared in dataset.events.columns.items()
        if name in copy.columns.schema
    }


def _rewrite(declared: DataType, stored: StoredSize | None) -> str:
    much = "every row"
    if stored is not None:
        rows, files = counted(stored.rows, "row"), counted(stored.files, "file")
        much = f"{rows} in {files} ({stored.size_bytes / 2**20:,.1f} MiB)"
    return (
        f"rewrites {much} with {declared}, in one commit; refused ({VALUES_DO_NOT_FIT.code}) if a "
        "value would change; earlier snapshots keep the old column. Then `polynya quarantine "
        "replay` rereads the values that did not fit"
    )


def layout_changes(dataset: ResolvedDataset, copy: CopyState) -> Iterator[PlannedChange]:
    """Changes of the layout."""
    after = recorded(dataset, {}, has_rows=False)
    for name in LAYOUT:
        before, now = copy.settings.get(name) or None, after[name] or None
        if before == now:
            continue
        what = f"{name}: {_layout_text(before)} → {_layout_text(now)}"
        why = _refusal(dataset, copy, name)
        if why is None:
            yield PlannedChange("layout", what, _LAYOUT_MEANS[name], "apply")
        else:
            means = (
                f"refused ({UNSUITABLE_LAYOUT_TYPE.code}): {why}; name another column or transform"
            )
            yield PlannedChange("layout", what, means, "decide")


def _refusal(dataset: ResolvedDataset, copy: CopyState, name: str) -> str | None:
    """Why a column of the table cannot be used like this."""
    terms: dict[str, list[tuple[PartitionTerm | SortTerm, str]]] = {
        "partition_by": [(term, term.column) for term in dataset.layout.partition_by],
        "sort_by": [(term, column) for term in dataset.layout.sort_by for column in term.columns],
    }
    for term, column in terms.get(name, ()):
        type_name = copy.columns.schema.get(column)
        if (
            type_name is not None
            and type_name != "void"
            and (why := term.refusal(parse_type(type_name)))
        ):
            return f"`{column}`: {why}"
    return None


def _layout_text(value: object) -> str:
    if value is None:
        return "not set"
    return f"[{', '.join(value)}]" if isinstance(value, list) else f"{value:,} bytes"


def _later(dataset: ResolvedDataset, copy: CopyState) -> Iterator[PlannedChange]:
    after = recorded(dataset, {}, has_rows=False)
    # Tables of versions without mappings remember none.
    remembered = {"mapping": [], "nested": "keep", "where": None, "rules": []} | copy.settings
    for name in LATER:
        if name in remembered and remembered[name] != after[name]:
            # The name of the source is in the data; it is only a setting where it was declared.
            if name == "source" and not rules_of(dataset.landing.format).finds_tables:
                continue
            if name == "columns" and _are_all_rewritten(dataset, copy):
                continue
            what = f"{name}: {_setting_text(remembered[name])} → {_setting_text(after[name])}"
            forgets = (name, after[name] is None) in _FORGETTING_SETTINGS
            yield PlannedChange("setting", what, _SETTING_MEANS[name], "run", destructive=forgets)


def _are_all_rewritten(dataset: ResolvedDataset, copy: CopyState) -> bool:
    """Whether `columns` differs only in types that a rewrite gives."""
    before: Mapping[str, str] = copy.settings["columns"]
    after = {name: str(kind) for name, kind in dataset.events.columns.items()}
    changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
    return changed <= columns_to_rewrite(dataset, copy).keys()


def _unknown(facts: DatasetFacts, copy: CopyState) -> Iterator[PlannedChange]:
    """Columns that settings have named since the last records, and that none of these had."""
    dataset = facts.dataset
    if not facts.has_rows or copy.columns.named is None:
        return
    met = {*copy.columns.schema, *copy.columns.of_source, *dataset.mapping.names}
    for column in unknown_columns(dataset, met, accepted=copy.columns.named):
        if column.stops and not _was_named(dataset, copy, column):
            guess = f"; did you mean `{column.meant}`?" if column.meant else ""
            yield PlannedChange(
                "unknown_column",
                f"`{column.setting}` names `{column.column}`, which the table does not have{guess}",
                f"refused ({UNKNOWN_COLUMN_IN_SETTING.code}) unless the next records have it: "
                "correct it, or list it in `optional_columns`",
                "decide",
            )


def _was_named(dataset: ResolvedDataset, copy: CopyState, column: UnknownColumn) -> bool:
    """Whether a setting already named a column when records were copied, or cannot change."""
    before = copy.settings.get(column.setting)
    after = recorded(dataset, {}, has_rows=False).get(column.setting)
    return before == after or (isinstance(before, list | dict) and column.column in before)


def _setting_text(value: Any) -> str:
    match value:
        case None:
            return "not set"
        case list():
            return f"[{', '.join(map(str, value))}]"
        case dict():
            return f"{{{', '.join(f'{name}: {kind}' for name, kind in value.items())}}}"
        case bool():
            return str(value).lower()
        case _:
            return str(value)
