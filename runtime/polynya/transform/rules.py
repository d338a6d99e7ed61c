"""Rules resolved: the mapping that a dataset has by them, with the reason for each change.

The result is a dataset with an ordinary mapping, so nothing that copies, plans or applies knows of
rules. It depends on the columns that are known: one that appears later is matched when it appears.
Rules see the columns as the dataset's own settings make them, one rule after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, TypeAlias

from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.mapping import MappedColumn
from polynya.model.config.masks import Mask
from polynya.model.config.rules import TransformationRule, is_literal
from polynya.model.error_catalogue.configuration import (
    CONFLICTING_RULES,
    MASK_NOT_POSSIBLE,
    MASKED_VALUE_READ,
)
from polynya.model.errors import ConfigError
from polynya.model.headers import RESERVED_PREFIX
from polynya.model.names import folded, quote, shown
from polynya.model.types import STRING, DataType, Decimal, Primitive, Struct, Void
from polynya.transform.expressions import path_of
from polynya.transform.mapping import columns_read, mapped

_Path: TypeAlias = tuple[str, ...]

#: What `hash` takes beside decimals: types whose values have one text. Floats have several.
_HASHABLE: Final = frozenset(
    {
        "string", "boolean", "tinyint", "smallint", "int", "bigint", "date", "timestamp",
        "timestamp_ntz", "binary",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RuleEffect:
    """What one rule did to a column, or why it did nothing; `column` None: to whole rows.

    `column` is the name that the rule met, `now` the name after it, None for one that is dropped.
    """

    place: str
    does: str
    column: str | None
    now: str | None
    why: str


@dataclass(frozen=True, slots=True)
class ResolvedRules:
    """A dataset whose mapping does what its rules say.

    Attributes:
        dataset: with its mapping.
        masks: the rule that masks each column, by the name of the column in the table. The
            expressions of the mapping give the values before the mask.
        effects: in the order of the rules.
        order: the names of the columns, in the order of a new table.
    """

    dataset: ResolvedDataset
    masks: Mapping[str, TransformationRule] = field(default_factory=dict)
    effects: tuple[RuleEffect, ...] = ()
    order: tuple[str, ...] = ()


@dataclass(slots=True)
class _RuledColumn:
    """A column on its way through the rules.

    `path` is the column or field of the source that it is, None for a computed one. `setters` has
    the rule that decided each property.
    """

    name: str
    expression: str
    kind: DataType | None
    path: _Path | None
    own: MappedColumn | None = None
    type: DataType | None = None
    dropped: bool = False
    setters: dict[str, TransformationRule] = field(default_factory=dict)

    @property
    def is_listed(self) -> bool:
        """Whether the mapping has to name it."""
        return self.own is not None or bool(self.setters)

    @property
    def place(self) -> str:
        """Where its name comes from."""
        rule = self.setters.get("name")
        return "the dataset itself" if rule is None else rule.place


def resolve(dataset: ResolvedDataset, columns: Mapping[str, DataType]) -> ResolvedRules:
    """Resolve the rules of a dataset for the columns of its source that are known.

    Raises:
        ConfigError: POLYNYA-CFG-075, two rules contradict each other; POLYNYA-CFG-076, a mask does
            not fit its column; POLYNYA-CFG-077, a column shows what is masked in another one.
    """
    rules = dataset.mapping.rules
    if not rules:
        return ResolvedRules(dataset)
    return _Resolution(dataset, columns).result()


def with_rules(dataset: ResolvedDataset, columns: Mapping[str, DataType]) -> ResolvedDataset:
    """The dataset with the mapping of its rules. Raises as `resolve`."""
    return resolve(dataset, columns).dataset


def columns_named(dataset: ResolvedDataset) -> dict[str, DataType]:
    """Columns of the source that are known before any record: declared ones, and those of rules.

    Of the latter the type is not known.
    """
    rules = dataset.mapping.rules
    made = {*dataset.mapping.names, *(rule.rename for rule in rules)}
    made |= {name for rule in rules for name in rule.added}
    named = {name for rule in rules for name in rule.when.column if is_literal(name)}
    unknown: dict[str, DataType] = dict.fromkeys(sorted(named - made), Void())
    return {**unknown, **dataset.mapping.declared}


def columns_after(
    ruled: ResolvedRules, columns: Mapping[str, DataType]
) -> Iterator[tuple[str, str, tuple[str, ...] | None]]:
    """The columns of the table that the resolved mapping makes of these columns of the source.

    Each with its expression before a mask, and the column or field of the source that it only
    renames, None for a computed one. Raises as `resolve`.
    """
    for column in _columns_before(ruled.dataset, columns):
        if column.path is None or column.path not in ruled.dataset.mapping.left_out:
            yield column.name, column.expression, column.path


class _Resolution:
    def __init__(self, dataset: ResolvedDataset, columns: Mapping[str, DataType]) -> None:
        self._dataset = dataset
        self._called = dataset.relations.current
        self._source = columns
        self._columns = list(_columns_before(dataset, columns))
        if not columns:
            self._columns += self._unmet_keys()
        self._filters: list[str] = []
        self._effects: list[RuleEffect] = []

    def result(self) -> ResolvedRules:
        for rule in self._dataset.mapping.rules:
            self._apply(rule)
        left = [column for column in self._columns if not column.dropped]
        self._refuse_one_name_twice(left)
        masked = {column.name: column for column in left if "mask" in column.setters}
        for column in masked.values():
            self._refuse_unfit(column)
        self._refuse_shown(left, masked)
        return ResolvedRules(
            self._with_mapping(left),
            {name: column.setters["mask"] for name, column in masked.items()},
            tuple(self._effects),
            tuple(column.name for column in left),
        )

    def _unmet_keys(self) -> Iterator[_RuledColumn]:
        """The columns of the source that keys are, before any record has told its columns.

        A reader has to know its keys. One that might be several columns is left out: whether
        records have it is seen when they are mapped.
        """
        rules = [rule for rule in self._dataset.mapping.rules if rule.gives_name]
        met = {column.name for column in self._columns}
        for key in self._dataset.events.keys if rules else ():
            if key in met:
                continue
            sources = {name for name in _names_before(key, rules) if _renamed(name, rules) == key}
            if len(sources) == 1:
                (name,) = sources
                yield _RuledColumn(name, quote(name), None, (name,))
            else:
                # In parentheses it counts as computed.
                own = MappedColumn.model_construct(name=key, expression=f"({quote(key)})")
                yield _RuledColumn(key, own.expression, None, None, own=own)

    def _apply(self, rule: TransformationRule) -> None:
        before = len(self._effects)
        if rule.filter is not None:
            self._filters.append(rule.filter)
            self._tell(rule, None, None, "takes the dataset")
        elif rule.add is not None:
            for name, text in rule.added.items():
                self._add(rule, name, text)
        else:
            for column in self._columns:
                kind = "void" if column.kind is None else str(column.kind)
                if not column.dropped and rule.takes_column(column.name, kind):
                    self._change(rule, column)
        if len(self._effects) == before:
            self._tell(rule, None, None, "no column fits so far")

    def _add(self, rule: TransformationRule, name: str, text: str) -> None:
        lacking = sorted(columns_read(text) - self._source.keys())
        if lacking:
            names = ", ".join(f"`{one}`" for one in lacking)
            self._tell(rule, None, None, f"not added so far: the source has no {names}")
            return
        column = _RuledColumn(name, text, None, None, setters={"name": rule})
        self._columns.append(column)
        self._tell(rule, None, name, "takes the dataset")

    def _change(self, rule: TransformationRule, column: _RuledColumn) -> None:
        met, kind = column.name, "" if column.kind is None else f" {column.kind}"
        why = f"`{met}`{kind} fits `when`"
        match rule.action:
            case "drop":
                column.dropped = True
                column.setters["drop"] = rule
            case "mask":
                self._decide(column, "mask", rule)
            case "type":
                self._decide(column, "type", rule)
                column.type = rule.type
            case _:
                if rule.rename is not None:
                    self._decide(column, "rename", rule)
                name = rule.renamed(column.name)
                if name == column.name:
                    return
                column.name = name
                column.setters["name"] = rule
        self._tell(rule, met, None if column.dropped else column.name, why)

    def _decide(self, column: _RuledColumn, what: str, rule: TransformationRule) -> None:
        other = column.setters.get(what)
        if other is not None:
            reason = f"{other.place} says `{other.does}`, and {rule.place} says `{rule.does}`"
            raise self._conflict(column.name, reason, rule.place)
        column.setters[what] = rule

    def _tell(
        self, rule: TransformationRule, column: str | None, now: str | None, why: str
    ) -> None:
        self._effects.append(RuleEffect(rule.place, rule.does, column, now, why))

    def _refuse_one_name_twice(self, columns: list[_RuledColumn]) -> None:
        taken: dict[str, _RuledColumn] = {}
        for column in columns:
            other = taken.setdefault(folded(column.name), column)
            named = {*column.setters, *other.setters} & {"name"}
            if other is not column and named:
                reason = f"two columns get the name, from {other.place} and from {column.place}"
                raise self._conflict(column.name, reason, column.place)

    def _conflict(self, column: str, reason: str, place: str) -> ConfigError:
        error = CONFLICTING_RULES(
            where=place, dataset=self._called, column=shown(column), reason=reason
        )
        assert isinstance(error, ConfigError)
        return error

    def _refuse_unfit(self, column: _RuledColumn) -> None:
        rule = column.setters["mask"]
        reason = self._unfit(column, rule)
        if reason is not None:
            raise MASK_NOT_POSSIBLE(
                where=rule.place, dataset=self._called, column=shown(column.name), reason=reason[0],
                fix=reason[1],
            )  # fmt: skip

    def _unfit(self, column: _RuledColumn, rule: TransformationRule) -> tuple[str, str] | None:
        events = self._dataset.events
        if column.name in events.keys and rule.hash_key is None:
            return f"it is a key, which `{rule.does}` would not keep apart", "use `hash`"
        if column.path is not None:
            orders = {*events.sequence_by, *([events.timestamp] if events.timestamp else [])}
            if column.path[0] in orders:
                return (
                    "it gives the order or the time of events, which are stored with them",
                    "order by another column",
                )
        kind = column.type or column.kind
        if kind is None or isinstance(kind, Void):
            return None
        return unfit_type(rule, kind)

    def _refuse_shown(
        self, columns: list[_RuledColumn], masked: Mapping[str, _RuledColumn]
    ) -> None:
        hidden = [
            (column.path, column.setters["mask"])
            for column in masked.values()
            if column.path is not None
        ]
        for column in columns:
            if column.name in masked:
                continue
            for path, rule in hidden:
                if _shows(column, path):
                    raise MASKED_VALUE_READ(
                        where=column.place if "name" in column.setters else rule.place,
                        dataset=self._called,
                        column=shown(column.name),
                        source=".".join(path),
                        place=rule.place,
                    )

    def _with_mapping(self, left: list[_RuledColumn]) -> ResolvedDataset:
        mapping, events = self._dataset.mapping, self._dataset.events
        listed = tuple(_mapped_column(column) for column in left if column.is_listed)
        dropped = {c.path for c in self._columns if c.dropped and c.path is not None}
        there = {column.path for column in left}
        conditions = [mapping.where] if mapping.where is not None else []
        conditions += self._filters
        where = " AND ".join(f"({text})" for text in conditions) if self._filters else mapping.where
        types = {column.name: column.type for column in left if column.type is not None}
        new = replace(
            mapping,
            columns=listed,
            where=where,
            left_out=frozenset(path for path in dropped if path not in there),
        )
        declared = MappingProxyType({**events.columns, **types})
        return replace(self._dataset, mapping=new, events=replace(events, columns=declared))


def unfit_type(rule: TransformationRule, kind: DataType) -> tuple[str, str] | None:
    """Why a mask cannot take a type, and what to do; None where it can."""
    mask = rule.mask
    if not isinstance(mask, Mask):
        return None
    has_one_text = isinstance(kind, Decimal) or (
        isinstance(kind, Primitive) and kind.name in _HASHABLE
    )
    if mask.hash is not None and not has_one_text:
        return f"`hash` does not take {kind}", "use `redact` or `replace`, or another type"
    if mask.truncate is not None and kind != STRING:
        return f"`truncate` does not take {kind}", "use `redact`, `replace` or `hash`"
    return None


def _columns_before(
    dataset: ResolvedDataset, columns: Mapping[str, DataType]
) -> Iterator[_RuledColumn]:
    """The columns of the table before its rules: those of the list, then what is kept."""
    mapping = dataset.mapping
    own = mapped(dataset)
    gone: set[_Path] = set()
    for column in mapping.columns:
        path = path_of(own.columns[column.name].text) if not column.reads_elements else None
        if path is not None:
            gone.add(path)
        kind = column.type or (None if path is None else _kind_at(columns, path))
        yield _RuledColumn(column.name, column.expression, kind, path, own=column, type=column.type)
    if own.array is not None:
        gone.add(own.array.steps[0])
    taken = {folded(name) for name in mapping.names}
    excepted = set(dataset.events.except_columns)
    for name, kind in columns.items():
        if name in excepted or folded(name).startswith(RESERVED_PREFIX):
            continue
        for path, inner in _parts((name,), kind, expand=mapping.nested == "expand", gone=gone):
            called = "_".join(path)
            if folded(called) not in taken:
                text = ".".join(quote(one) for one in path)
                yield _RuledColumn(called, text, inner, path)


def _parts(
    path: _Path, kind: DataType, *, expand: bool, gone: set[_Path]
) -> Iterator[tuple[_Path, DataType]]:
    if path in gone:
        return
    if expand and isinstance(kind, Struct):
        for name, inner in kind.fields:
            yield from _parts((*path, name), inner, expand=expand, gone=gone)
        return
    yield path, kind


def _renamed(name: str, rules: Iterable[TransformationRule]) -> str:
    """What a column of an unknown type is called after the rules."""
    for rule in rules:
        if rule.takes_column(name, str(Void())):
            name = rule.renamed(name)
    return name


def _names_before(name: str, rules: Sequence[TransformationRule]) -> set[str]:
    """Names that a column may have had before the rules, among others."""
    names = {name}
    for rule in reversed(rules):
        if rule.rename is not None:
            if rule.rename in names:
                # A column of the source that is called so already would be a conflict.
                names = names - {rule.rename} | {one for one in rule.when.column if is_literal(one)}
        elif rule.case is not None:
            names |= {text for one in names for text in (one.lower(), one.upper())}
        else:
            names |= {
                one.removeprefix(rule.prefix or "").removesuffix(rule.suffix or "") for one in names
            }
    return names - {""}


def _kind_at(columns: Mapping[str, DataType], path: _Path) -> DataType | None:
    kind = columns.get(path[0])
    for name in path[1:]:
        kind = dict(kind.fields).get(name) if isinstance(kind, Struct) else None
    return kind


def _shows(column: _RuledColumn, path: _Path) -> bool:
    """Whether a column has the value of a column or field of the source, or a part of it."""
    if column.path is not None:
        shorter = min(len(column.path), len(path))
        return column.path[:shorter] == path[:shorter]
    return path[0] in columns_read(column.expression)


def _mapped_column(column: _RuledColumn) -> MappedColumn:
    if column.own is not None and not column.setters:
        return column.own
    ordinal = None if column.own is None else column.own.key
    # Its parts were checked with the settings that they come from.
    return MappedColumn.model_construct(
        name=column.name, expression=column.expression, type=column.type, key=ordinal
    )
