"""Random statements over the tables of `shop`: joins, groups, windows and set operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.derived.shop import INPUTS

_LITERALS = {
    "int": ("0", "1", "2", "3"),
    "string": ("'a'", "'b'", "'c'"),
    "boolean": ("true", "false"),
    "double": ("0.5D", "1.0D"),
    "decimal(9,2)": ("1.25", "3.25"),
    "date": ("DATE '2026-01-02'", "DATE '2026-01-04'"),
    "bigint": ("1", "2"),
}


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class _Source:
    sql: str
    columns: tuple[_Column, ...]


@dataclass(frozen=True, slots=True)
class _Named:
    """A source under an alias."""

    alias: str
    columns: tuple[_Column, ...]


#: The orders of each customer in an order of which the analysis does not know that it is total.
_NUMBERED = (
    "SELECT *, row_number() OVER (PARTITION BY p ORDER BY k) AS r, lag(s) OVER (PARTITION BY p "
    "ORDER BY k) AS before FROM (SELECT id AS k, cust AS p, st AS s, amt AS a FROM orders)"
)
_NUMBERED_COLUMNS = (
    _Column("k", "int"), _Column("p", "int"), _Column("s", "string"),
    _Column("a", "decimal(9,2)"), _Column("r", "int"), _Column("before", "string"),
)  # fmt: skip


class Statements:
    """Makes statements from a source of random numbers."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._aliases = 0
        self._ctes: list[tuple[str, _Source]] = []

    def statement(self) -> str:
        """One statement; its columns are called p0, p1 …."""
        kind = self._random.randrange(16)
        body = self._totals() if kind < 2 else self._chain() if kind == 2 else self._query(2)
        if not self._ctes:
            return body.sql
        shown = ", ".join(f"{name} AS ({cte.sql})" for name, cte in self._ctes)
        return f"WITH {shown} {body.sql}"

    def _alias(self) -> str:
        self._aliases += 1
        return f"x{self._aliases}"

    def _source(self, depth: int) -> _Source:
        what = self._random.randrange(10)
        if depth > 0 and what >= 8:
            inner = self._query(depth - 1)
            return _Source(f"({inner.sql})", inner.columns)
        if depth > 0 and what == 7:
            if not self._ctes or self._random.randrange(2):
                inner = self._query(depth - 1)
                self._ctes.append((f"c{len(self._ctes)}", inner))
            name, inner = self._random.choice(self._ctes)
            return _Source(name, inner.columns)
        if depth > 0 and what == 6:
            # The newest row for each key, which `id` decides; in the second form the analysis does
            # not know that it does.
            if self._random.randrange(2):
                return _Source(
                    "(SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY cust ORDER BY "
                    "placed DESC, id) AS rn FROM orders) WHERE rn = 1)",
                    (*self._columns_of("shop.orders"), _Column("rn", "int")),
                )
            return _Source(f"({_NUMBERED})", _NUMBERED_COLUMNS)
        name = self._random.choice(list(INPUTS))
        return _Source(name, self._columns_of(name))

    def _columns_of(self, name: str) -> tuple[_Column, ...]:
        return tuple(_Column(column, kind) for column, kind in INPUTS[name].columns.items())

    def _chain(self) -> _Source:
        """Windows over what windows have let through, as a dimension of versions has them."""
        text, columns = f" FROM ({_NUMBERED}) AS n", list(_NUMBERED_COLUMNS)
        if self._random.randrange(3) == 2:
            text += f" JOIN customers AS c ON c.{self._random.choice(('id', 'seg'))} = n.p"
            if self._random.randrange(2):
                text += f" AND {self._simple([_Named('c', self._columns_of('shop.customers'))])}"
        text = f"SELECT n.*{text}{self._where_of_chain('n', columns)}"
        for level in range(self._random.randrange(1, 4)):
            alias, name = f"m{level}", f"q{level}"
            window = self._random.choice(
                (
                    f"lead(k) OVER (PARTITION BY p ORDER BY k) AS {name}",
                    f"row_number() OVER (PARTITION BY p ORDER BY k DESC) AS {name}",
                    f"sum(r) OVER (PARTITION BY p ORDER BY k ROWS UNBOUNDED PRECEDING) AS {name}",
                    f"count(*) OVER (PARTITION BY p) AS {name}",
                )
            )
            text = f"SELECT *, {window} FROM ({text}) AS {alias}"
            columns.append(_Column(name, "int"))
            text = f"SELECT * FROM ({text}) AS w{level}{self._where_of_chain(f'w{level}', columns)}"
        if self._random.randrange(3) == 2:
            last = columns[-1].name
            shown = [("p", "int"), (f"max({last})", "int"), ("count(DISTINCT s)", "bigint")]
            return self._selected("SELECT", shown, f" FROM ({text}) AS g GROUP BY p")
        picked = [*self._random.sample(columns, 3), *([_Column("p", "int")] * 2)]
        kept = picked[: 3 + self._random.randrange(2)]
        union = ""
        if self._random.randrange(4) == 3:
            nothing = ", ".join("NULL" for _ in kept)
            union = f" UNION ALL SELECT {nothing}"
        return self._selected(
            "SELECT", [(c.name, c.kind) for c in kept], f" FROM ({text}) AS g{union}"
        )

    def _where_of_chain(self, alias: str, columns: Sequence[_Column]) -> str:
        match self._random.randrange(4):
            case 0:
                return f" WHERE {self._simple([_Named(alias, tuple(columns))])}"
            case 1:
                return f" WHERE NOT ({alias}.s <=> {alias}.before)"
            case 2:
                return f" WHERE {alias}.{columns[-1].name} IS NOT NULL"
            case _:
                return ""

    def _totals(self) -> _Source:
        """One row: an aggregate without GROUP BY, or several in FROM."""
        number = self._random.choice((1, 1, 1, 2, 3))
        found = [self._total() for _ in range(number)]
        if number == 1:
            return found[0]
        aliases = [self._alias() for _ in found]
        shown = ", ".join(
            f"({one.sql}) AS {alias}" for one, alias in zip(found, aliases, strict=True)
        )
        columns = [
            (f"{alias}.{column.name}", column.kind)
            for one, alias in zip(found, aliases, strict=True)
            for column in one.columns
        ]
        return self._selected("SELECT", columns, f" FROM {shown}")

    def _total(self) -> _Source:
        depth, what = self._random.randrange(3), self._random.randrange(6)
        if what == 0:
            inner, alias = self._set(1), self._alias()
            text, sources = f" FROM ({inner.sql}) AS {alias}", [_Named(alias, inner.columns)]
        elif what == 1:
            full = self._full_sources(1)
            text, sources = full if full is not None else self._from(depth)
        else:
            text, sources = self._from(depth)
        text += self._where(sources)
        source, column = self._pick(sources, 1)[0]
        counted = f"{source.alias}.{column.name}"
        aggregates = [self._additive(sources, counted) for _ in range(self._random.randrange(1, 4))]
        return self._selected("SELECT", aggregates, text)

    def _additive(self, sources: Sequence[_Named], counted: str) -> tuple[str, str]:
        number = self._random.randrange(8)
        if number == 0:
            return f"count(DISTINCT {counted})", "bigint"
        numbers = [
            (f"{s.alias}.{c.name}", c.kind)
            for s in sources
            for c in s.columns
            if c.kind in {"int", "decimal(9,2)"}
        ]
        if not numbers or number == 1:
            return "count(*)", "bigint"
        name, kind = self._random.choice(numbers)
        match number:
            case 2:
                return f"max({name})", kind
            case 3:
                return f"coalesce(sum({name}), 0)", kind
            case 4:
                return f"count({name}) FILTER (WHERE {self._simple(sources)})", "bigint"
            case 5:
                return f"sum(CASE WHEN {self._simple(sources)} THEN {name} END)", kind
            case 6:
                return f"min({name})", kind
            case _:
                return f"sum({name})", kind

    def _query(self, depth: int) -> _Source:
        kind = self._random.choice(
            ("rows", "rows", "group", "group", "group", "distinct", "window", "window", "set",
             "full", "rollup")
        )  # fmt: skip
        if kind == "set" and depth > 0:
            return self._set(depth)
        if kind == "full":
            return self._full(depth)
        text, sources = self._from(depth)
        text += self._where(sources)
        if kind in {"group", "rollup"}:
            return self._group(text, sources, rollup=kind == "rollup")
        if kind == "window":
            return self._window(text, sources)
        picked = self._pick(sources, self._random.randrange(1, 5))
        word = "SELECT DISTINCT" if kind == "distinct" else "SELECT"
        columns = [(f"{s.alias}.{c.name}", c.kind) for s, c in picked]
        if kind == "rows" and self._random.randrange(4) == 3:
            columns.append((self._scalar(sources), "bigint"))
        return self._selected(word, columns, text)

    def _selected(self, word: str, columns: Sequence[tuple[str, str]], text: str) -> _Source:
        shown = ", ".join(f"{sql} AS p{at}" for at, (sql, _) in enumerate(columns))
        names = tuple(_Column(f"p{at}", kind) for at, (_, kind) in enumerate(columns))
        return _Source(f"{word} {shown}{text}", names)

    def _pick(self, sources: Sequence[_Named], number: int) -> list[tuple[_Named, _Column]]:
        pairs = [(source, column) for source in sources for column in source.columns]
        return [self._random.choice(pairs) for _ in range(number)]

    def _from(self, depth: int) -> tuple[str, list[_Named]]:
        sources: list[_Named] = []
        hidden: list[_Named] = []
        text, only_inner = "", True
        for at in range(self._random.choice((1, 1, 2, 2, 2, 3, 4))):
            source = self._source(depth)
            named = _Named(self._alias(), source.columns)
            shown = f"{source.sql} AS {named.alias}"
            if not at:
                text, sources = f" FROM {shown}", [named]
                continue
            how = self._random.choice(
                ("JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "LEFT SEMI JOIN",
                 "LEFT ANTI JOIN", "CROSS JOIN")
            )  # fmt: skip
            if how == "RIGHT JOIN" and not only_inner:
                how = "LEFT JOIN"
            only_inner = only_inner and how in {"JOIN", "CROSS JOIN"}
            on = self._equal(named, sources)
            if on is None or how == "CROSS JOIN":
                text += f" CROSS JOIN {shown}"
                sources.append(named)
                continue
            if self._random.randrange(4) == 3:
                on += f" AND {self._simple([named, *sources])}"
            text += f" {how} {shown} ON {on}"
            (hidden if "SEMI" in how or "ANTI" in how else sources).append(named)
        return text, sources

    def _equal(self, named: _Named, sources: Sequence[_Named]) -> str | None:
        pairs = [
            (f"{named.alias}.{one.name}", f"{source.alias}.{other.name}")
            for one in named.columns
            for source in sources
            for other in source.columns
            if one.kind == other.kind and one.kind != "boolean"
        ]
        if not pairs:
            return None
        one, other = self._random.choice(pairs)
        if self._random.randrange(8) == 7:
            return f"{one} <=> {other}"
        return f"{one} = {other}"

    def _where(self, sources: Sequence[_Named]) -> str:
        number = self._random.choice((0, 0, 1, 1, 2))
        parts = [
            self._random.choice((self._simple, self._simple, self._nested))(sources)
            for _ in range(number)
        ]
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def _simple(self, sources: Sequence[_Named]) -> str:
        source, column = self._pick(sources, 1)[0]
        name = f"{source.alias}.{column.name}"
        literal = self._random.choice(_LITERALS[column.kind])
        match self._random.randrange(6):
            case 0:
                return f"{name} IS NULL"
            case 1:
                return f"{name} IS NOT NULL"
            case 2:
                return f"coalesce({name}, {literal}) <> {literal}"
            case 3:
                other, second = self._pick(sources, 1)[0]
                return f"({name} = {literal} OR {other.alias}.{second.name} IS NULL)"
            case 4:
                return f"NOT {name} >= {literal}"
            case _:
                return f"{name} >= {literal}"

    def _inner(self, kind: str | None = None) -> tuple[str, _Named, _Column]:
        """FROM of a subquery, its source, and a column of it of some type."""
        names = list(INPUTS)
        if kind is not None:
            names = [name for name in names if kind in INPUTS[name].columns.values()]
        if not names:
            return "", _Named("", ()), _Column("", "")
        name = self._random.choice(names)
        named = _Named(self._alias(), self._columns_of(name))
        columns = [c for c in named.columns if kind is None or c.kind == kind]
        text = f" FROM {name} AS {named.alias}"
        if self._random.randrange(4) == 3:
            more = _Named(self._alias(), self._columns_of(self._random.choice(names)))
            table = next(n for n in INPUTS if self._columns_of(n) == more.columns)
            on = self._equal(more, [named])
            how = self._random.choice(("JOIN", "LEFT JOIN"))
            text += f" {how} {table} AS {more.alias} ON {on or '1 = 1'}"
            text += f" WHERE {self._simple([named, more])}"
            return text, named, self._random.choice(columns)
        return f"{text} WHERE {self._simple([named])}", named, self._random.choice(columns)

    def _nested(self, sources: Sequence[_Named]) -> str:
        source, column = self._pick(sources, 1)[0]
        name = f"{source.alias}.{column.name}"
        text, inner, other = self._inner(column.kind)
        what = self._random.randrange(7)
        if not text:
            return self._simple(sources)
        if what <= 1:
            word = "NOT IN" if what else "IN"
            return f"{name} {word} (SELECT {inner.alias}.{other.name}{text})"
        if what == 2:
            return f"({name} IN (SELECT {inner.alias}.{other.name}{text})) IS NOT NULL"
        correlated = f"{text} AND {inner.alias}.{other.name} = {name}"
        if what <= 4:
            word = "NOT EXISTS" if what == 3 else "EXISTS"
            return f"{word} (SELECT 1{correlated})"
        if what == 5:
            return f"(SELECT count(*){correlated}) > {self._random.randrange(2)}"
        deeper, third, last = self._inner(other.kind)
        return (
            f"EXISTS (SELECT 1{correlated} AND EXISTS (SELECT 1{deeper} AND "
            f"{third.alias}.{last.name} = {inner.alias}.{other.name}))"
        )

    def _scalar(self, sources: Sequence[_Named]) -> str:
        source, column = self._pick(sources, 1)[0]
        text, inner, other = self._inner(column.kind)
        if not text:
            return "CASE WHEN 1 = 1 THEN 1 END"
        name = f"{source.alias}.{column.name}"
        return f"(SELECT count(*){text} AND {inner.alias}.{other.name} = {name})"

    def _aggregate(self, sources: Sequence[_Named]) -> tuple[str, str]:
        source, column = self._pick(sources, 1)[0]
        name = f"{source.alias}.{column.name}"
        choices = [("count(*)", "bigint"), (f"count(DISTINCT {name})", "bigint")]
        if column.kind != "boolean":
            choices += [(f"max({name})", column.kind), (f"min({name})", column.kind)]
        if column.kind in {"int", "double", "decimal(9,2)"}:
            choices.append((f"sum({name})", "bigint" if column.kind == "int" else column.kind))
        return self._random.choice(choices)

    def _group(self, text: str, sources: Sequence[_Named], *, rollup: bool) -> _Source:
        picked = self._pick(sources, self._random.choice((1, 1, 2)))
        keys = list(dict.fromkeys((f"{s.alias}.{c.name}", c.kind) for s, c in picked))
        columns = [*keys, self._aggregate(sources), self._aggregate(sources)]
        names = ", ".join(name for name, _ in keys)
        if rollup:
            names = self._random.choice((f"ROLLUP ({names})", f"CUBE ({names})"))
        elif self._random.randrange(4) == 3:
            names = self._random.choice(("ALL", ", ".join(str(n + 1) for n in range(len(keys)))))
        having = ""
        if self._random.randrange(3) == 2:
            having = f" HAVING count(*) > {self._random.randrange(3)}"
        return self._selected("SELECT", columns, f"{text} GROUP BY {names}{having}")

    def _window(self, text: str, sources: Sequence[_Named]) -> _Source:
        picked = self._pick(sources, self._random.randrange(2, 4))
        columns = [(f"{s.alias}.{c.name}", c.kind) for s, c in picked]
        partition = columns[0][0]
        other = self._pick(sources, 1)[0]
        value, kind = self._aggregate(sources)
        if "DISTINCT" in value:
            value, kind = "count(*)", "bigint"
        order = f"{other[0].alias}.{other[1].name}"
        columns += [
            (f"{value} OVER (PARTITION BY {partition})", kind),
            (f"rank() OVER (PARTITION BY {partition} ORDER BY {order})", "int"),
        ]
        return self._selected("SELECT", columns, text)

    def _set(self, depth: int) -> _Source:
        word = self._random.choice(("UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT"))
        kinds: list[str] = []
        branches = []
        for _ in range(2):
            text, sources = self._from(depth - 1)
            text += self._where(sources)
            if not kinds:
                kinds = [c.kind for _, c in self._pick(sources, self._random.randrange(1, 4))]
            columns = []
            for kind in kinds:
                fitting = [
                    f"{s.alias}.{c.name}" for s in sources for c in s.columns if c.kind == kind
                ]
                literal = self._random.choice(_LITERALS[kind])
                columns.append((self._random.choice(fitting) if fitting else literal, kind))
            branches.append(self._selected("SELECT", columns, text))
        return _Source(f"{branches[0].sql} {word} {branches[1].sql}", branches[0].columns)

    def _full_sources(self, depth: int) -> tuple[str, list[_Named]] | None:
        """FROM of a FULL JOIN by columns of one type, where there are such."""
        left, right = self._source(depth), self._source(depth)
        one, other = _Named(self._alias(), left.columns), _Named(self._alias(), right.columns)
        pairs = [(a, b) for a in left.columns for b in right.columns if a.kind == b.kind]
        if not pairs:
            return None
        a, b = self._random.choice(pairs)
        on = f"{one.alias}.{a.name} = {other.alias}.{b.name}"
        text = f" FROM {left.sql} AS {one.alias} FULL JOIN {right.sql} AS {other.alias} ON {on}"
        return text, [one, other]

    def _full(self, depth: int) -> _Source:
        left, right = self._source(depth), self._source(depth)
        one, other = _Named(self._alias(), left.columns), _Named(self._alias(), right.columns)
        pairs = [
            (a, b) for a in left.columns for b in right.columns if a.kind == b.kind != "boolean"
        ]
        if not pairs:
            return self._query(depth)
        a, b = self._random.choice(pairs)
        first, second = f"{one.alias}.{a.name}", f"{other.alias}.{b.name}"
        on = f"{first} = {second}"
        if self._random.randrange(4) == 3:
            on += f" AND {self._simple([one, other])}"
        text = f" FROM {left.sql} AS {one.alias} FULL JOIN {right.sql} AS {other.alias} ON {on}"
        key = f"coalesce({first}, {second})"
        if self._random.randrange(3) == 2:
            return self._selected(
                "SELECT",
                [(key, a.kind), ("count(*)", "bigint"), self._aggregate([one, other])],
                f"{text} GROUP BY {key}",
            )
        if self._random.randrange(3) == 2:
            text += f" WHERE {self._simple([one, other])}"
        picked = self._pick([one, other], 2)
        columns = [(key, a.kind), *((f"{s.alias}.{c.name}", c.kind) for s, c in picked)]
        return self._selected("SELECT", columns, text)
