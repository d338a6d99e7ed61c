"""Schema evolution of a dataset: policies, changes and decisions (Semantics section 9).

Pure: the readers of landed files find the changes, the engine acts on the decisions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias, cast

from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema
from pydantic_core import PydanticKnownError

from polynya.model.config.fields import Frozen, Parsed, number_type
from polynya.model.types import DataType, Void

Policy: TypeAlias = Literal["apply", "ignore", "suspend", "stop"]
#: What files call a policy → what it is here, in tables, and in events. `apply` is its former name.
_WRITTEN: Final[Mapping[str, Policy]] = {
    "propagate": "apply",
    "ignore": "ignore",
    "suspend": "suspend",
    "stop": "stop",
    "apply": "apply",
}
_OFFERED: Final = tuple(name for name in _WRITTEN if name != "apply")
ChangeKind: TypeAlias = Literal[
    "new_dataset",
    "add_column",
    "widen_type",
    "incompatible_type",
    "drop_column",
    "rename_column",
    "rename_dataset",
    "drop_dataset",
    "truncate",
    "change_key",
    "restart_log",
]

_DEFAULTS: Final[Mapping[ChangeKind, Policy]] = {
    "new_dataset": "apply",
    "add_column": "apply",
    "widen_type": "apply",
    "incompatible_type": "suspend",
    "drop_column": "ignore",
    "rename_column": "suspend",
    "rename_dataset": "suspend",
    "drop_dataset": "ignore",
    "truncate": "apply",
    "change_key": "suspend",
    "restart_log": "suspend",
}


def _policy(value: object) -> object:
    if isinstance(value, str) and value in _WRITTEN:
        return _WRITTEN[value]
    *names, last = [repr(name) for name in _OFFERED]
    raise PydanticKnownError("literal_error", {"expected": f"{', '.join(names)} or {last}"})


def policy_in_words(policy: str) -> str:
    """A policy as files call it."""
    return "propagate" if policy == "apply" else policy


#: A policy as it is written in files.
WrittenPolicy: TypeAlias = Annotated[
    Policy,
    BeforeValidator(_policy),
    WithJsonSchema({"enum": list(_WRITTEN), "type": "string"}),
]


class ColumnPolicies(Frozen):
    """Policies for columns that appear, by where they do. What is not written is inherited."""

    root: WrittenPolicy | None = Field(
        default=None,
        description="A column appears, whatever its type. Default: `propagate`.",
    )
    struct: WrittenPolicy | None = Field(
        default=None,
        description="A field appears in an existing struct, at any depth, also in the elements of"
        " an array or the values of a map. Default: `propagate`.",
    )

    def over(self, defaults: AddedColumns | None) -> ColumnPolicies:
        """These policies, with those of `defaults` where nothing is written here."""
        if not isinstance(defaults, ColumnPolicies):
            defaults = ColumnPolicies(root=defaults, struct=defaults)
        return ColumnPolicies(
            root=self.root or defaults.root, struct=self.struct or defaults.struct
        )

    def accepting(self, policy: Policy) -> ColumnPolicies:
        """These policies, with what was accepted in the place of those that suspended.

        The others stay: who accepts a field of a struct did not ask for columns that are ignored.
        """
        return ColumnPolicies(
            root=policy if self.root == "suspend" else self.root,
            struct=policy if self.struct == "suspend" else self.struct,
        )


def _kind_of_policies(value: object) -> str:
    return "by place" if isinstance(value, Mapping | ColumnPolicies) else "everywhere"


#: One policy for columns wherever they appear, or one for each place.
AddedColumns: TypeAlias = Annotated[
    Annotated[WrittenPolicy, Tag("everywhere")] | Annotated[ColumnPolicies, Tag("by place")],
    Discriminator(_kind_of_policies),
]


def _wide_numbers(value: object) -> object:
    return value if value == "never" else number_type(value)


#: The type that whole numbers widen to when a fraction comes, as it is written in files.
WideNumbers: TypeAlias = Annotated[
    DataType | Literal["never"],
    Parsed(_wide_numbers),
    WithJsonSchema({"type": "string", "examples": ["never", "decimal", "decimal(18,4)", "double"]}),
]


class SchemaEvolution(Frozen):
    """Policies by kind of change. None means the default."""

    new_dataset: WrittenPolicy | None = Field(
        default=None,
        description="Under `defaults`: a source table appears after the first run. `propagate` "
        "creates a dataset, `ignore` leaves it out, `suspend` waits for `polynya "
        "dataset resume`. Default: `propagate`.",
    )
    add_column: AddedColumns | None = Field(
        default=None,
        description="A column or a nested field appears. `propagate` adds it, NULL in old rows; "
        "`ignore` leaves it out. `{root: …, struct: …}` sets columns and fields of "
        "structs separately. Default: `propagate`.",
    )
    widen_type: WrittenPolicy | None = Field(
        default=None,
        description="int to bigint, float to double, more decimal precision. `propagate` widens "
        "in place; `ignore` keeps the type, and values that do not fit go to "
        "quarantine. Default: `propagate`.",
    )
    widen_numbers: WideNumbers | None = Field(
        default=None,
        description="For `json` and `csv`: what happens when a number such as a fraction does not"
        " fit a column that was inferred as `bigint`. `decimal` (`decimal(38,10)`), "
        "`decimal(p,s)` or `double`: the column gets this type and all its rows are "
        "rewritten, if `widen_type` is `propagate`. `never`: the record goes to "
        "quarantine. Not for `keys`, `sequence_by`, `timestamp` and declared "
        "`columns`. Default: `never`.",
    )
    incompatible_type: WrittenPolicy | None = Field(
        default=None,
        description="A column gets a type to which the old one cannot be widened. `propagate` "
        "adds a column `<name>_<type>` for later values and fills the old one where a"
        " value fits; `ignore` sends records whose value does not fit to quarantine. "
        "Default: `suspend` if the source declares types, otherwise (json, csv) "
        "`ignore`.",
    )
    drop_column: WrittenPolicy | None = Field(
        default=None,
        description="The source no longer declares a column. `ignore` keeps it, NULL in later "
        "rows; `propagate` drops it from the tables. Default: `ignore`.",
    )
    rename_column: WrittenPolicy | None = Field(
        default=None,
        description="One column disappeared and one of the same type appeared, in one step. "
        "`propagate` renames in place; `ignore` treats it as a drop and an addition. Default: "
        "`suspend`.",
    )
    rename_dataset: WrittenPolicy | None = Field(
        default=None,
        description="The source reports that the table was renamed. `propagate` continues in the "
        "same dataset, with all its rows; `ignore` treats the new name as a new table. Default: "
        "`suspend`.",
    )
    drop_dataset: WrittenPolicy | None = Field(
        default=None,
        description="The source reports that the table was dropped. `ignore` keeps its rows; "
        "`propagate` deletes every record, as a truncate does, and keeps the tables and their "
        "history. Default: `ignore`.",
    )
    truncate: WrittenPolicy | None = Field(
        default=None,
        description="The source reports that a table was emptied. `propagate` deletes every "
        "record; `ignore` leaves the event out. Default: `propagate`.",
    )

    change_key: Annotated[
        Literal["ignore", "suspend", "stop"] | None,
        Field(
            description="For `debezium`: the keys of events name other columns than before, or "
            "none. `ignore` keeps the keys of the table; use it only if they still "
            "distinguish all rows. `propagate` is not possible. Default: `suspend`."
        ),
    ] = None
    restart_log: WrittenPolicy | None = Field(
        default=None,
        description="For `debezium`: positions begin again, as after a failover, `RESET MASTER` "
        "or a restore, so that newer events look like the oldest. `propagate` orders "
        "later events after all earlier ones; `ignore` takes positions as they are. "
        "Default: `suspend`.",
    )

    def policy(self, kind: ChangeKind, *, nested: bool = False) -> Policy:
        """The policy for a kind of change; `nested`: of a field of a struct, at any depth."""
        written = cast("Policy | ColumnPolicies | None", getattr(self, kind))
        if isinstance(written, ColumnPolicies):
            written = written.struct if nested else written.root
        return written or _DEFAULTS[kind]

    def over(self, defaults: SchemaEvolution | None) -> SchemaEvolution:
        """These policies, with those of `defaults` where nothing is written here."""
        if defaults is None:
            return self
        written = {name: value for name, value in self if value is not None}
        if isinstance(self.add_column, ColumnPolicies):
            written["add_column"] = self.add_column.over(defaults.add_column)
        return defaults.model_copy(update=written)

    @property
    def wide_numbers(self) -> DataType | None:
        """What whole numbers widen to when a fraction comes, None where they do not."""
        return None if isinstance(self.widen_numbers, str) else self.widen_numbers

    def accepting(self, accepted: Mapping[str, str]) -> SchemaEvolution:
        """These policies, with what was accepted when a suspended dataset was resumed."""
        known: dict[str, object] = {
            kind: policy for kind, policy in accepted.items() if kind in _DEFAULTS
        }
        if "add_column" in known and isinstance(self.add_column, ColumnPolicies):
            known["add_column"] = self.add_column.accepting(cast("Policy", known["add_column"]))
        return self.model_copy(update=known) if known else self


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One change of a source's shape, and what the policy says of it.

    `column` is a path (`home.zip`); `old` and `new` are types, or names for a rename.
    """

    kind: ChangeKind
    column: str
    policy: Policy
    old: str | None = None
    new: str | None = None

    def __str__(self) -> str:
        """As a sentence for the user."""
        says = {
            "new_dataset": "a new source table {column}",
            "add_column": "a new column {column} ({new})",
            "widen_type": "column {column} widens from {old} to {new}",
            "incompatible_type": "column {column} was {old} and now is {new}",
            "drop_column": "column {column} ({old}) is gone",
            "rename_column": "column {old} seems to be called {new} now",
            "rename_dataset": "the source table {old} is called {new} now",
            "drop_dataset": "the source table {column} was dropped",
            "truncate": "the source table was emptied",
            "change_key": "the keys of events named {old} and now name {new}",
            "restart_log": "the log of the source began again: an event is newer by its time, and "
            "older by its position{logs}, than events before it",
        }
        logs = f" (in {self.new}, before: {self.old})" if self.new else ""
        return says[self.kind].format(column=self.column, old=self.old, new=self.new, logs=logs)


def blocking(changes: Iterable[SchemaChange]) -> SchemaChange | None:
    """The change for which nothing of its batch may be copied: a `stop`, else a `suspend`."""
    found = {change.policy: change for change in reversed(list(changes))}
    return found.get("stop") or found.get("suspend")


def schema_changes(
    before: Sequence[str],
    declared: Sequence[str],
    *,
    known: Mapping[str, DataType],
    now: Mapping[str, DataType],
    keys: Sequence[str],
    policies: SchemaEvolution,
    changes: Sequence[SchemaChange],
) -> list[SchemaChange]:
    """The changes of a batch with what two schemas of the source say of columns that went.

    Args:
        before: columns of the last schema that the source declared.
        declared: columns of the newest one.
        known: types of all columns so far.
        now: types of all columns after the batch.
        keys: columns that a record cannot do without.
        policies: of the dataset.
        changes: what the batch was seen to change; the addition of a column that turns out to be
            a renamed one is left out.
    """
    lost = [name for name in before if name not in declared and name in known]
    gained = [name for name in declared if name not in known and name in now]
    pair = _renamed(lost, gained, known, now)
    if pair is not None and policies.policy("rename_column") != "ignore":
        old, new = pair
        rename = SchemaChange("rename_column", new, policies.policy("rename_column"), old, new)
        return [*(c for c in changes if (c.kind, c.column) != ("add_column", new)), rename]
    drop = policies.policy("drop_column")
    return [
        *changes,
        *(
            SchemaChange("drop_column", name, "suspend" if name in keys else drop, str(known[name]))
            for name in lost
        ),
    ]


def _renamed(
    lost: Sequence[str],
    gained: Sequence[str],
    known: Mapping[str, DataType],
    now: Mapping[str, DataType],
) -> tuple[str, str] | None:
    """The one column that went and the one that came, if they may be the same."""
    if len(lost) != 1 or len(gained) != 1:
        return None
    old, new = known[lost[0]], now[gained[0]]
    same = old == new or isinstance(old, Void) or isinstance(new, Void)
    return (lost[0], gained[0]) if same else None
