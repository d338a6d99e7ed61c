"""Relationships between tables, proposed from names, types, keys and values, each with reasons.

`candidates` says which columns may refer to which key, by names and types alone. Whoever calls
measures how many of their values the key has, and `judged` decides. Values alone prove nothing: the
ids of two tables are often the numbers 1 to n. So no relationship is strong without its name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Final

from polynya.model.names import shown
from polynya.model.types import BIGINT, INT, STRING, DataType, Decimal

#: Words at the end of a name that say that a value identifies something.
IDENTIFIERS: Final = frozenset({
    "id", "ids", "key", "uuid", "guid", "pk", "fk", "sk", "nk", "code", "no", "nr", "num",
    "number", "ref",
})  # fmt: skip
#: Those that also say something of any thing, so that two of them have to be the same word.
_ATTRIBUTES: Final = frozenset({"name", "title", "type", "status", "kind", "date", "value"})
#: Words of tables that do not name what their rows are.
_DECORATION: Final = frozenset({"dim", "fact", "tbl", "table", "stg", "raw", "vw", "view", "t"})
#: A column of such a name refers to another row of its own table.
_PARENTS: Final = frozenset({"parent", "root", "predecessor", "previous", "replaces", "ancestor"})
_BOSSES: Final = frozenset({"manager", "supervisor", "boss", "reports", "mentor", "lead"})
_PEOPLE: Final = frozenset({"employee", "staff", "person", "people", "worker", "user", "member"})
#: The share of the values that a key has, from which a relationship is strong or likely.
_NEARLY_ALL: Final = 0.9
_HALF: Final = 0.5
#: Names of a lower rank do not have the name of the table.
_BY_TABLE: Final = 80
#: Fewer values are in many a key by chance.
_FEW: Final = 3
#: Letters of an abbreviation, at least.
_ABBREVIATED: Final = 3
#: Letters of the beginning that all columns of a table share, at most: `ss_` of `store_sales`.
_PREFIX: Final = 5


class Confidence(StrEnum):
    """How sure a proposal is; `rejected` is none."""

    STRONG = "strong"
    LIKELY = "likely"
    WEAK = "weak"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """A column of a table; `first` and `last` are the days of one of times that was read."""

    name: str
    type: DataType
    first: date | None = None
    last: date | None = None


@dataclass(frozen=True)
class TableProfile:
    """A table: `schema.view`, the columns that tell its rows apart, and what is known of the rest.

    `rows` is None where they were not read; `unread` says why.
    """

    name: str
    keys: tuple[str, ...]
    columns: Mapping[str, ColumnProfile]
    rows: int | None = None
    unread: str = ""
    history: bool = False

    @property
    def view(self) -> str:
        """The name without its schema."""
        return self.name.rpartition(".")[2]

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words that say what its rows are."""
        found = _words(self.view)
        return tuple(word for word in found if word not in _DECORATION) or found

    @cached_property
    def prefix(self) -> str:
        """What all names of its columns begin with, `ss_` or the name of the table; mostly ""."""
        firsts = {name.lower().partition("_")[0] for name in self.columns if "_" in name}
        if len(firsts) != 1 or len(self.columns) < 2 or not all("_" in n for n in self.columns):
            return ""
        (first,) = firsts
        return f"{first}_" if len(first) <= _PREFIX or _is_one(first, self.words[-1]) else ""


@dataclass(frozen=True, slots=True)
class KeyReference:
    """Columns of a table that may refer to the key of another, in the order of the key.

    `name` says what in the names speaks for it, "" for nothing; `exact`, that nothing else is
    likely to have such a name; `rank`, how near the names are; `role` is what stands before.
    """

    child: str
    columns: tuple[str, ...]
    parent: str
    keys: tuple[str, ...]
    name: str = field(default="", compare=False)
    exact: bool = field(default=False, compare=False)
    rank: int = field(default=0, compare=False)
    role: str = field(default="", compare=False)
    types: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Overlap:
    """What values tell of a reference.

    Attributes:
        found: different values of it that the key has.
        values: all different values of it.
        keys: all values of the key.
        rows: rows with a value.
        nulls: rows without one.
    """

    found: int
    values: int
    keys: int
    rows: int
    nulls: int

    @property
    def share(self) -> float:
        """The share of the values that the key has."""
        return self.found / self.values if self.values else 0.0


@dataclass(frozen=True, slots=True)
class JudgedReference:
    """A reference with what was decided, and the reasons in the order of their weight."""

    reference: KeyReference
    confidence: Confidence
    reasons: tuple[str, ...]

    @property
    def is_proposed(self) -> bool:
        """Whether a mart gets it."""
        return self.confidence in {Confidence.STRONG, Confidence.LIKELY}


def candidates(tables: Sequence[TableProfile]) -> list[KeyReference]:
    """What may refer to what, by names and types; values have to be looked at."""
    found: list[KeyReference] = []
    for parent in tables:
        if not parent.keys:
            continue
        for child in tables:
            if len(parent.keys) == 1:
                found += _to_column(child, parent)
            elif child.name != parent.name and (whole := _to_columns(child, parent)) is not None:
                found.append(whole)
    return found


def _to_column(child: TableProfile, parent: TableProfile) -> Iterator[KeyReference]:
    key = parent.columns.get(parent.keys[0])
    if key is None or not _may_refer(key.type):
        return
    for column in child.columns.values():
        itself = child.name == parent.name and column.name == key.name
        if itself or not _may_refer(column.type) or _is_own_id(child, column.name):
            continue
        one = KeyReference(child.name, (column.name,), parent.name, (key.name,))
        named = _named(one, child, parent)
        looks_like = _split(_words(column.name))[1]
        if not named.name and (looks_like not in IDENTIFIERS or child.name == parent.name):
            continue
        if _differ(column.type, key.type):
            if named.name:
                yield replace(named, types=f"{column.type} is not {key.type}")
            continue
        yield named


def _to_columns(child: TableProfile, parent: TableProfile) -> KeyReference | None:
    """A reference to a key of several columns: each has a column with its name, or none at all."""
    chosen: list[str] = []
    parts: list[KeyReference] = []
    for key in parent.keys:
        target = parent.columns.get(key)
        if target is None:
            return None
        named = (
            _named(KeyReference(child.name, (column.name,), parent.name, (key,)), child, parent)
            for column in child.columns.values()
            if column.name not in chosen and not _differ(column.type, target.type)
        )
        fits = [one for one in named if one.exact and not one.role]
        if not fits:
            return None
        best = max(fits, key=lambda one: one.rank)
        chosen += best.columns
        parts.append(best)
    name = "; ".join(dict.fromkeys(part.name for part in parts))
    rank = min(part.rank for part in parts)
    return KeyReference(
        child.name, tuple(chosen), parent.name, parent.keys, name=name, exact=True, rank=rank
    )


def _may_refer(kind: DataType) -> bool:
    whole = isinstance(kind, Decimal) and kind.scale == 0
    return whole or kind in {INT, BIGINT, STRING}


def _differ(one: DataType, other: DataType) -> bool:
    """Whether no value of one type equals one of the other: a text is not a number."""
    return (one == STRING) != (other == STRING) or not (_may_refer(one) and _may_refer(other))


def _is_own_id(table: TableProfile, column: str) -> bool:
    """Whether a column is the id of the rows themselves: `id`, or `customer_id` of customers."""
    if table.keys != (column,):
        return False
    return any(
        stem == () or _ends_with(table.words, stem)
        for stem, tail in (_split(words) for words in _readings(table, column))
        if tail
    )


def _named(one: KeyReference, child: TableProfile, parent: TableProfile) -> KeyReference:
    """The reference with what its names say."""
    (column,), (key,) = one.columns, one.keys
    found = [
        graded
        for words in _readings(child, column)[: 1 if child.name == parent.name else None]
        for key_words in _readings(parent, key)
        for graded in _graded(one, words, key_words, child, parent)
    ]
    best = max(found, key=lambda graded: graded.rank, default=one)
    # Of two tables that fit, that of the same schema is nearer.
    nearer = child.name.partition(".")[0] == parent.name.partition(".")[0]
    return replace(best, rank=best.rank + 1) if best.name and nearer else best


def _readings(table: TableProfile, column: str) -> list[tuple[str, ...]]:
    """The words of a column, and those without what all columns of the table begin with."""
    names = [column[len(table.prefix) :], column] if table.prefix else [column]
    return [words for words in map(_words, names) if words]


def _graded(
    one: KeyReference,
    words: tuple[str, ...],
    key_words: tuple[str, ...],
    child: TableProfile,
    parent: TableProfile,
) -> Iterator[KeyReference]:
    """Yield what one reading of the two names says."""
    (column,), (key,) = one.columns, one.keys
    stem, tail = _split(words)
    key_stem, key_tail = _split(key_words)
    if tail != key_tail and (tail in _ATTRIBUTES or key_tail in _ATTRIBUTES):
        return
    if stem and (not key_stem or _ends_with(parent.words, key_stem)):
        # The key is `id`, or it is called after its table.
        for entity in dict.fromkeys((parent.words, key_stem or parent.words)):
            yield from _after_table(one, stem, entity, tail, exact=bool(tail) and tail == key_tail)
    if stem and key_stem and tail == key_tail and _ends_with(stem, key_stem):
        role = "_".join(stem[: len(stem) - len(key_stem)])
        text = f"{shown(column)} is called as the key {shown(key)}"
        if role:
            yield replace(one, name=f"{text}, in the role {shown(role)}", rank=55, role=role)
        else:
            yield replace(one, name=text, exact=True, rank=70)
    if child.name == parent.name and stem and (len(stem) == 1 or stem[1:] == ("to",)):
        of_people = any(_is_one(word, person) for word in parent.words for person in _PEOPLE)
        if stem[0] in _PARENTS or (stem[0] in _BOSSES and of_people):
            text = f"{shown(column)} is a name for another row of the same table"
            yield replace(one, name=text, rank=60, role=stem[0])


def _after_table(
    one: KeyReference, stem: tuple[str, ...], entity: tuple[str, ...], tail: str, *, exact: bool
) -> Iterator[KeyReference]:
    """Yield what a column says that is called after the table, such as `customer_id`."""
    column, of = shown(one.columns[0]), shown(one.parent.rpartition(".")[2])
    if _same(stem, entity):
        if one.child == one.parent:
            return
        yield replace(one, name=f"{column} names {of}", exact=exact, rank=90 if exact else 50)
    elif _ends_with(stem, entity):
        role = "_".join(stem[: len(stem) - len(entity)])
        text = f"{column} names {of} in the role {shown(role)}"
        yield replace(one, name=text, exact=exact, rank=80 if exact else 45, role=role)
    elif tail and len(stem) == len(entity) and all(map(_is_short_for, stem, entity)):
        yield replace(one, name=f"{column} may be short for {of}", rank=40)
    elif (
        tail
        and len(stem) > len(entity)
        and _is_short_for(stem[-1], entity[-1])
        and len(entity) == 1
    ):
        role = "_".join(stem[:-1])
        text = f"{column} may be short for {of} in the role {shown(role)}"
        yield replace(one, name=text, rank=38, role=role)
    elif tail and len(entity) > 1 and _ends_with(entity, stem):
        yield replace(one, name=f"{column} is the end of {of}", rank=35)


def judged(
    references: Sequence[KeyReference],
    overlaps: Mapping[KeyReference, Overlap],
    tables: Mapping[str, TableProfile],
) -> list[JudgedReference]:
    """What is decided of each, the surest first. A reference without an overlap was not read."""
    best: dict[tuple[str, tuple[str, ...]], list[KeyReference]] = {}
    for one in references:
        if one.name and not one.types and not _is_refuted(overlaps.get(one)):
            as_good = best.setdefault((one.child, one.columns), [])
            if as_good and one.rank > as_good[0].rank:
                as_good.clear()
            if not as_good or one.rank == as_good[0].rank:
                as_good.append(one)
    held: Counter[tuple[str, tuple[str, ...]]] = Counter(
        (one.child, one.columns) for one in references if _is_held(overlaps.get(one))
    )
    # Values that several keys have are in each of them by chance.
    by_chance = {place for place, keys in held.items() if keys > 1}
    found = [_judged(one, overlaps, tables, best.get((one.child, one.columns), []), references,
                     by_chance=(one.child, one.columns) in by_chance)
             for one in references]  # fmt: skip
    order = list(Confidence)
    return sorted(
        found,
        key=lambda one: (
            order.index(one.confidence), -one.reference.rank, one.reference.child,
            one.reference.columns, one.reference.parent,
        ),
    )  # fmt: skip


def _is_held(overlap: Overlap | None) -> bool:
    """Whether a key has all of enough values."""
    return overlap is not None and overlap.values >= _FEW and overlap.share == 1


def _is_refuted(overlap: Overlap | None) -> bool:
    return overlap is not None and bool(overlap.values and overlap.keys) and overlap.share < _HALF


def _judged(
    one: KeyReference,
    overlaps: Mapping[KeyReference, Overlap],
    tables: Mapping[str, TableProfile],
    best: Sequence[KeyReference],
    references: Sequence[KeyReference],
    *,
    by_chance: bool,
) -> JudgedReference:
    child, parent = tables[one.child], tables[one.parent]
    overlap = overlaps.get(one)
    known = overlap if overlap is not None and overlap.values and overlap.keys else None
    facts = tuple(_facts(one, overlap, child, parent))
    reasons = (one.name, *facts) if one.name else facts
    against = _against(one, overlap, best, by_chance=by_chance)
    if against is not None:
        return JudgedReference(one, Confidence.REJECTED, (against, *reasons))
    doubt = _doubt(one, known, child, best)
    if doubt is None and len(one.keys) > 1 and _is_bridge(parent, references, overlaps):
        doubt = "each part of the key refers to a table of its own"
    if doubt is not None:
        return JudgedReference(one, Confidence.WEAK, (doubt, *reasons))
    is_held = known is not None and known.share >= _NEARLY_ALL
    confidence = (Confidence.WEAK, Confidence.LIKELY, Confidence.STRONG)[one.exact + is_held]
    return JudgedReference(one, confidence, reasons)


def _against(
    one: KeyReference, overlap: Overlap | None, best: Sequence[KeyReference], *, by_chance: bool
) -> str | None:
    """Why a reference is rejected, None if it is not."""
    if one.types:
        return one.types
    if _is_refuted(overlap):
        return "most values are not there"
    if best and best[0].rank > one.rank:
        return f"{best[0].parent} fits better"
    if one.name:
        return None
    if by_chance:
        return "no name speaks for it, and other keys have these values as well"
    return None if _is_held(overlap) else "no name speaks for it"


def _doubt(
    one: KeyReference, known: Overlap | None, child: TableProfile, best: Sequence[KeyReference]
) -> str | None:
    """Why a reference is weak whatever its name and values say, None if nothing makes it so."""
    if not one.name:
        return "only the values speak for it, which may be chance"
    other = next((other for other in best if other != one), None)
    if other is not None:
        return f"{other.parent} fits as well"
    if one.columns == child.keys and one.rank < _BY_TABLE:
        if len(one.keys) == 1:
            return "it is the key of its own table, and the name is not that of the other"
        if not _is_one_sided(known):
            return "both are keys with the same values: it may be the other way"
    return None


def _is_one_sided(overlap: Overlap | None) -> bool:
    """Whether the key has all values of a reference, and more."""
    return overlap is not None and overlap.found == overlap.values < overlap.keys


def _is_bridge(
    table: TableProfile,
    references: Sequence[KeyReference],
    overlaps: Mapping[KeyReference, Overlap],
) -> bool:
    """Whether each column of the key of a table refers to another table."""
    refer = {
        column
        for one in references
        if one.child == table.name and one.exact and not _is_refuted(overlaps.get(one))
        for column in one.columns
        if len(one.columns) == 1
    }
    return refer >= set(table.keys)


def _facts(
    one: KeyReference, overlap: Overlap | None, child: TableProfile, parent: TableProfile
) -> Iterator[str]:
    """What is known of a reference besides its name."""
    if not one.types:
        kinds = {
            (str(child.columns[column].type), str(parent.columns[key].type))
            for column, key in zip(one.columns, one.keys, strict=True)
        }
        same = all(a == b for a, b in kinds)
        yield "same type" if same else " and ".join(f"{a} to {b}" for a, b in sorted(kinds))
    if overlap is None:
        unread = next((table for table in (child, parent) if table.unread), None)
        if unread is not None:
            yield f"not looked at: {unread.unread}"
        return
    if not overlap.values:
        yield "it has no values"
        return
    if not overlap.keys:
        yield f"{parent.name} has no rows"
        return
    yield f"{overlap.found:,} of {overlap.values:,} values found"
    if overlap.rows == overlap.values:
        yield "one to one"
    else:
        yield f"many to one, {overlap.rows / overlap.values:.1f} rows for each"
    yield f"NULL in {overlap.nulls:,} rows" if overlap.nulls else "never NULL"


@lru_cache(maxsize=4096)
def _words(name: str) -> tuple[str, ...]:
    """The words of a name, in small letters: `orderId` and `order_id` are `order`, `id`."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    return tuple(re.findall(r"[^\W\d_]+", parted.lower()))


def _split(words: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """What a name is of, and the word at its end that says what of it: `custkey` has two parts."""
    if not words:
        return (), ""
    last = words[-1]
    if last in IDENTIFIERS or last in _ATTRIBUTES:
        return words[:-1], last
    for end in ("key", "id"):
        if last.endswith(end) and len(last) >= len(end) + _ABBREVIATED:
            return (*words[:-1], last.removesuffix(end)), end
    return words, ""


def _forms(word: str) -> set[str]:
    """A word as it is, and as the singular that it may be the plural of."""
    forms = {word}
    if word.endswith("s") and len(word) > _ABBREVIATED:
        forms.add(word[:-1])
        if word.endswith("es"):
            forms.add(word[:-2])
        if word.endswith("ies"):
            forms.add(f"{word[:-3]}y")
    return forms


def _is_one(word: str, other: str) -> bool:
    return not _forms(word).isdisjoint(_forms(other))


def _same(words: tuple[str, ...], others: tuple[str, ...]) -> bool:
    return len(words) == len(others) and all(map(_is_one, words, others))


def _ends_with(words: tuple[str, ...], end: tuple[str, ...]) -> bool:
    return len(words) >= len(end) and _same(words[len(words) - len(end) :], end)


def _is_short_for(word: str, whole: str) -> bool:
    """Whether a word is another, or its beginning: `cust` of `customer`."""
    return _is_one(word, whole) or (len(word) >= _ABBREVIATED and whole.startswith(word))
