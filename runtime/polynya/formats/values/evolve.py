"""Schema policies for one column: the column of a batch compared with the known column.

The comparison finds changes, leaves out what the policy `ignore` covers, and moves values to a
variant column where the policy asks for one. Policies that suspend or stop are only reported
(`SchemaChange.policy`); the engine acts on them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polynya.formats.values.columns import Builder, Faults, TypedColumn
from polynya.model.config.evolution import ChangeKind, Policy, SchemaChange, SchemaEvolution
from polynya.model.promotion import differences, restricted, tag
from polynya.model.types import Array, DataType, MapType, Struct, Void

#: Columns `<name>_<type>` that one batch may add for one column.
_MAX_VARIANTS = 4


@dataclass(frozen=True, slots=True)
class Evolved:
    """The columns that one source column becomes (none, itself, and variants), and what changed."""

    columns: dict[str, TypedColumn]
    changes: tuple[SchemaChange, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchColumn:
    """One source column in a batch.

    Attributes:
        name: of the column.
        values: one a record.
        known: its type so far, None when it is new.
        conflict: a type that the source declares now and that `known` cannot be widened to.
        is_key: a key keeps its type.
        taken: names that belong to other columns of the source.
        siblings: types of all columns so far, among them its variants.
    """

    name: str
    values: Sequence[Any]
    known: DataType | None
    conflict: DataType | None = None
    is_key: bool = False
    taken: Collection[str] = ()
    siblings: Mapping[str, DataType] = field(default_factory=dict)


def evolved(
    source: BatchColumn, column: TypedColumn, builder: Builder, policies: SchemaEvolution
) -> Evolved:
    """Compare a column as it was built, free to grow, with what is known of it."""
    if source.known is None:
        added = policies.policy("add_column")
        change = SchemaChange("add_column", source.name, added, new=str(column.type))
        return Evolved({} if added == "ignore" else {source.name: column}, (change,))
    if isinstance(source.known, Void):
        return Evolved({source.name: column})
    policy = _incompatible(source, column, policies)
    if policy is not None:
        return _conflicting(source, column, builder, policy)
    return _grown(source, source.known, column, builder, policies)


def _incompatible(
    source: BatchColumn, column: TypedColumn, policies: SchemaEvolution
) -> Policy | None:
    """The policy for a type that does not fit, None when there is no such change."""
    if source.conflict is not None:
        policy = policies.policy("incompatible_type")
    else:
        # A source that declares no types cannot change them: by default the value is a bad one.
        policy = policies.incompatible_type or "ignore"
        if policy == "ignore" or not _misfits(column.faults):
            return None
    return "suspend" if source.is_key and policy == "apply" else policy


def _misfits(faults: Faults) -> set[int]:
    return {i for i, (rule, _) in faults.items() if rule in {"type_mismatch", "bad_value"}}


def _conflicting(
    source: BatchColumn, column: TypedColumn, builder: Builder, policy: Policy
) -> Evolved:
    new = source.conflict
    if new is None:
        misfits = _misfits(column.faults)
        values = [value if i in misfits else None for i, value in enumerate(source.values)]
        new = builder(values, None).type
    change = SchemaChange("incompatible_type", source.name, policy, str(source.known), str(new))
    if policy != "apply":
        return Evolved({source.name: column}, (change,))
    if source.conflict is not None:
        # Typed values are parsed for the old column: "7" is still a number.
        column = builder(source.values, source.known, declared=True)
    variants, faults = _variants(source, column, builder)
    if variants is None:
        blocked = SchemaChange(change.kind, change.column, "suspend", change.old, change.new)
        return Evolved({source.name: column}, (blocked,))
    # What another column holds is not in this one too, nor a part of it.
    moved = _misfits(column.faults) - set(faults)
    if moved:
        left = [None if i in moved else value for i, value in enumerate(source.values)]
        column = builder(left, column.type, declared=source.conflict is not None)
    return Evolved(
        {source.name: TypedColumn(column.type, column.array, faults), **variants}, (change,)
    )


def _variants(
    source: BatchColumn, column: TypedColumn, builder: Builder
) -> tuple[dict[str, TypedColumn] | None, Faults]:
    """Columns for what does not fit `column`; None when the name of one is taken."""
    variants: dict[str, TypedColumn] = {}
    faults = dict(column.faults)
    kind = source.conflict
    # A declared type takes all later values; otherwise only those that fit nowhere else.
    left = set(range(len(source.values))) if kind is not None else _misfits(faults)
    while left and len(variants) < _MAX_VARIANTS:
        values = [value if i in left else None for i, value in enumerate(source.values)]
        kind = kind or builder(values, None).type
        name = f"{source.name}_{tag(kind)}"
        if name in source.taken:
            return None, faults
        variant = builder(values, source.siblings.get(name, kind))
        if name in variants or variant.array.null_count == len(values):
            break
        variants[name] = variant
        for index in left - set(variant.faults):
            if values[index] is not None:
                faults.pop(index, None)
        left, kind = _misfits(faults) & left, None
    return variants, faults


def _grown(
    source: BatchColumn,
    known: DataType,
    column: TypedColumn,
    builder: Builder,
    policies: SchemaEvolution,
) -> Evolved:
    changes = []
    for difference in differences(known, column.type):
        path, new = source.name + difference.path, str(difference.new)
        kind: ChangeKind = "add_column" if difference.old is None else "widen_type"
        old = None if difference.old is None else str(difference.old)
        changes.append(SchemaChange(kind, path, policies.policy(kind, nested=True), old, new))
    ignored = {change.kind for change in changes if change.policy == "ignore"}
    if ignored:
        target = restricted(
            known,
            column.type,
            grow="add_column" not in ignored,
            widen="widen_type" not in ignored,
        )
        values = [_only_known(value, target) for value in source.values]
        kept = builder(values, target, declared=True)
        misfits = {i: ("type_mismatch", error) for i, (_, error) in kept.faults.items()}
        # What did not fit before does not become right by being parsed now.
        column = TypedColumn(kept.type, kept.array, {**misfits, **column.faults})
    return Evolved({source.name: column}, tuple(changes))


def _only_known(value: Any, kind: DataType) -> Any:
    """A value without the fields that its type does not have."""
    match kind, value:
        case Struct(members), dict():
            known = dict(members)
            return {n: _only_known(v, known[n]) for n, v in value.items() if n in known}
        case Array(element), list() | tuple():
            return [_only_known(item, element) for item in value]
        case MapType(_, item), dict():
            return {key: _only_known(inner, item) for key, inner in value.items()}
        case MapType(_, item), list():
            return [(key, _only_known(inner, item)) for key, inner in value]
        case _:
            return value


def variants_of(types: Mapping[str, DataType]) -> dict[str, list[str]]:
    """The columns `<name>_<type>` of each column that has some, told by their names and types."""
    found: dict[str, list[str]] = {}
    for name, kind in types.items():
        original = name.removesuffix(f"_{tag(kind)}")
        if original != name and original in types:
            found.setdefault(original, []).append(name)
    return found


def with_variants(
    unsent: Sequence[str], variants: Mapping[str, Sequence[str]], sent: Collection[str]
) -> list[str]:
    """Columns that were not sent, with the variants of each: a variant is part of its column."""
    more = [name for column in unsent for name in variants.get(column, ()) if name not in sent]
    return list(dict.fromkeys([*unsent, *more]))
