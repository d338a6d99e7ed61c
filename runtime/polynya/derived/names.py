"""What the names of a statement mean: inputs, columns, aliases, each with its place in the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from sqlglot import exp

from polynya.derived.trees import own_nodes, unwrapped
from polynya.model.documents.problems import suggest
from polynya.model.error_catalogue.transforms import (
    AMBIGUOUS_NAME,
    CLAUSE_NOT_ALLOWED,
    TABLE_NOT_ALLOWED,
    UNKNOWN_COLUMN,
    UNKNOWN_TABLE,
)
from polynya.model.names import shown

if TYPE_CHECKING:
    from polynya.derived.schema import DerivedInput

#: The tables of one SELECT: their names in small letters -> their columns, as they are written.
Tables: TypeAlias = dict[str, list[str]]
#: Formats that Spark reads where a path stands for a table.
_PATHS = frozenset(
    {
        "avro",
        "binaryfile",
        "csv",
        "delta",
        "iceberg",
        "jdbc",
        "json",
        "orc",
        "parquet",
        "text",
        "xml",
    }
)


@dataclass(frozen=True, slots=True)
class StatementText:
    """The text of a statement and its file."""

    text: str
    path: str

    @property
    def start(self) -> str:
        """The place of the first character."""
        return f"{self.path}:1:1"

    def at(self, offset: int) -> str:
        """`file:line:column` of a character."""
        before = self.text[:offset]
        return f"{self.path}:{before.count(chr(10)) + 1}:{offset - before.rfind(chr(10))}"

    def of(self, node: exp.Expr) -> str:
        """The place where a node starts, or the text if it is not written there."""
        starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
        return self.at(min(starts)) if starts else self.start


@dataclass(slots=True)
class _Scope:
    tables: Tables
    outer: _Scope | None
    #: Columns that USING and NATURAL joined, which have no table.
    joined: set[str] = field(default_factory=set)
    #: Tables of SEMI and ANTI joins, which only the condition of their join sees.
    hidden: set[str] = field(default_factory=set)

    def seen(self, clause: str) -> Tables:
        """The tables that a clause sees."""
        if clause == "on" or not self.hidden:
            return self.tables
        return {name: columns for name, columns in self.tables.items() if name not in self.hidden}


class StatementNames:
    """Resolves the tables and columns of one statement."""

    def __init__(self, source: StatementText, inputs: Mapping[str, DerivedInput]) -> None:
        self._source = source
        self._inputs = inputs
        self._numbers: dict[str, str] = {}
        self._unnamed = 0

    @property
    def tables(self) -> dict[str, str]:
        """The name of a table in the tree -> the name of its input."""
        return {table: name for name, table in self._numbers.items()}

    def resolve(self, tree: exp.Query) -> list[str | None]:
        """Give inputs their table and columns their table's name; the names of the result.

        Raises ConfigError: POLYNYA-TRF-004 to 007 and 011.
        """
        return list(self._query(tree, {}, None))

    def _query(
        self, query: exp.Expr, ctes: Mapping[str, list[str]], outer: _Scope | None
    ) -> list[str]:
        clause = query.args.get("with_")
        if clause is not None:
            ctes = dict(ctes)
            for cte in clause.expressions:
                columns = self._query(unwrapped(cte.this), ctes, None)
                if cte.alias.startswith("__"):
                    raise CLAUSE_NOT_ALLOWED(
                        what=f"the name {shown(cte.alias)}", where=self._source.of(cte)
                    )
                ctes[cte.alias.lower()] = _renamed(cte, columns)
        if isinstance(query, exp.Subquery):
            return self._query(query.this, ctes, outer)
        if isinstance(query, exp.SetOperation):
            columns = self._query(unwrapped(query.this), ctes, outer)
            others = self._query(unwrapped(query.expression), ctes, outer)
            if len(columns) != len(others):
                what = f"a {query.key.upper()} of {len(columns)} and {len(others)} columns"
                raise CLAUSE_NOT_ALLOWED(what=what, where=self._source.of(query.expression))
            if query.args.get("by_name"):
                raise CLAUSE_NOT_ALLOWED(what="BY NAME", where=self._source.of(query))
            return columns
        if not isinstance(query, exp.Select):
            raise TABLE_NOT_ALLOWED(what=query.key.upper(), where=self._source.of(query))
        return self._select(query, ctes, outer)

    def _select(
        self, select: exp.Select, ctes: Mapping[str, list[str]], outer: _Scope | None
    ) -> list[str]:
        scope = _Scope({}, outer)
        relations = [select.args["from_"].this] if select.args.get("from_") else []
        joins = select.args.get("joins") or []
        for relation in [*relations, *(join.this for join in joins)]:
            alias, columns = self._relation(relation, ctes, scope)
            self._add(alias, columns, scope, relation)
        for lateral in select.args.get("laterals") or []:
            alias = lateral.args.get("alias")
            columns = [column.name for column in alias.columns] if alias else []
            self._add(lateral.alias.lower(), columns or ["col"], scope, lateral)
        for join in joins:
            if str(join.args.get("kind") or "").upper() in {"SEMI", "ANTI"}:
                scope.hidden.add(join.this.alias_or_name.lower())
            using = join.args.get("using") or []
            scope.joined |= {column.name.lower() for column in using}
            if (join.args.get("method") or "").upper() == "NATURAL":
                raise CLAUSE_NOT_ALLOWED(what="NATURAL JOIN", where=self._source.of(join))
        aliases = {item.alias.lower() for item in select.expressions if item.alias}
        self._columns(select, scope, aliases, ctes)
        return [name for item in select.expressions for name in _names(item, scope)]

    def _relation(
        self, relation: exp.Expr, ctes: Mapping[str, list[str]], scope: _Scope
    ) -> tuple[str, list[str]]:
        if isinstance(relation, exp.Table):
            if relation.args.get("joins") or relation.args.get("pivots"):
                what = "PIVOT" if relation.args.get("pivots") else "a join in brackets"
                raise CLAUSE_NOT_ALLOWED(what=what, where=self._source.of(relation))
            columns = self._table(relation, ctes)
            return relation.alias_or_name.lower(), _renamed(relation, columns)
        if isinstance(relation, exp.Subquery) and isinstance(relation.this, exp.Query):
            if relation.args.get("pivots") or relation.args.get("joins"):
                what = "PIVOT" if relation.args.get("pivots") else "a join in brackets"
                raise CLAUSE_NOT_ALLOWED(what=what, where=self._source.of(relation))
            columns = self._query(relation.this, ctes, None)
            alias = relation.args.get("alias")
            if alias is not None and alias.args.get("columns"):
                # Outside, its columns have other names than in its text.
                relation.meta.pop("place", None)
            if not relation.alias:
                self._unnamed += 1
                name = exp.to_identifier(f"__t{self._unnamed}")
                relation.set("alias", exp.TableAlias(this=name))
            return relation.alias.lower(), _renamed(relation, columns)
        if isinstance(relation, exp.Lateral) and isinstance(relation.this, exp.Subquery):
            columns = self._query(relation.this.this, ctes, scope)
            return relation.alias.lower(), _renamed(relation, columns)
        raise TABLE_NOT_ALLOWED(
            what="a function that gives a table", where=self._source.of(relation)
        )

    def _table(self, table: exp.Table, ctes: Mapping[str, list[str]]) -> list[str]:
        parts = [part.name for part in table.parts]
        first, last = table.parts[0].meta, table.parts[-1].meta
        if "start" in first and "end" in last:
            table.meta["place"] = (
                first["start"],
                last["end"] + 1,
                None if table.alias else parts[-1],
            )
        if len(parts) == 1 and parts[0].lower() in ctes:
            return ctes[parts[0].lower()]
        place = self._source.of(table)
        written = ".".join(parts)
        is_path = len(parts) == 2 and (parts[0].lower() in _PATHS or "/" in parts[1])
        if is_path and not _has(list(self._inputs), written):
            raise TABLE_NOT_ALLOWED(what="a path", where=place)
        found = [
            name
            for name in self._inputs
            if name.lower() == written.lower()
            or (len(parts) == 1 and name.lower().partition(".")[2] == written.lower())
        ]
        if len(found) > 1:
            raise AMBIGUOUS_NAME(
                name=shown(written),
                meanings=", ".join(f"`{name}`" for name in sorted(found)),
                example=f"`{min(found)}`",
                where=place,
            )
        if not found:
            raise UNKNOWN_TABLE(
                name=shown(written), where=place, fix=self._table_fix(written, ctes)
            )
        alias = table.args.get("alias")
        if alias is None or not alias.this:
            columns = alias.args.get("columns") if alias else None
            table.set("alias", exp.TableAlias(this=exp.to_identifier(parts[-1]), columns=columns))
        number = self._numbers.setdefault(found[0], f"__in{len(self._numbers)}")
        table.set("this", exp.to_identifier(number))
        table.set("db", None)
        table.set("catalog", None)
        return list(self._inputs[found[0]].columns)

    def _table_fix(self, written: str, ctes: Mapping[str, list[str]]) -> str | None:
        short = [name.partition(".")[2] or name for name in self._inputs]
        names = [*self._inputs] if "." in written else [*self._inputs, *short, *ctes]
        hint, _, _ = (suggest(written, names) or "").partition("? ")
        if hint.startswith("did you mean"):
            return f"{hint}?"
        return suggest(written, list(self._inputs))

    def _add(self, alias: str, columns: list[str], scope: _Scope, relation: exp.Expr) -> None:
        if alias and alias in scope.tables:
            raise AMBIGUOUS_NAME(
                name=shown(alias),
                meanings="two tables of one FROM",
                example="each needs an alias of its own",
                where=self._source.of(relation),
            )
        scope.tables[alias or f"__{len(scope.tables)}"] = columns

    def _columns(
        self,
        select: exp.Select,
        scope: _Scope,
        aliases: set[str],
        ctes: Mapping[str, list[str]],
    ) -> None:
        roots = [(item, "select") for item in select.expressions]
        joins = select.args.get("joins") or []
        roots += [(join.args["on"], "on") for join in joins if join.args.get("on") is not None]
        for name in ("laterals", "windows"):
            roots += [(part, name) for part in select.args.get(name) or []]
        for name in ("where", "group", "having", "order", "distinct", "limit", "offset"):
            if select.args.get(name) is not None:
                roots.append((select.args[name], name))
        for root, clause in roots:
            for node in list(own_nodes(root)):
                if isinstance(node, exp.Query):
                    self._query(node, ctes, scope)
                elif isinstance(node, exp.Column):
                    self._column(node, scope, aliases, clause)

    def _column(self, column: exp.Column, scope: _Scope, aliases: set[str], clause: str) -> None:
        name, table = column.name, column.table.lower()
        if isinstance(column.this, exp.Star):
            if table and table not in scope.seen(clause):
                self._unknown(column, f"{table}.*", list(scope.seen(clause)))
            return
        if table:
            self._qualified(column, scope, clause)
            return
        if name.lower() in scope.joined:
            return
        around: _Scope | None = scope
        while around is not None:
            found = [t for t, columns in around.seen(clause).items() if _has(columns, name)]
            if len(found) > 1:
                raise AMBIGUOUS_NAME(
                    name=shown(name),
                    meanings=", ".join(f"`{t}.{name}`" for t in found),
                    example=f"`{found[0]}.{name}`",
                    where=self._source.of(column),
                )
            alias_wins = clause in {"having", "order"} and around is scope
            if found and alias_wins and name.lower() in aliases:
                return
            if found:
                column.set("table", exp.to_identifier(found[0]))
                return
            if around is scope and name.lower() in aliases:
                return
            around = around.outer
        known = [c for columns in scope.seen(clause).values() for c in columns]
        self._unknown(column, name, known)

    def _qualified(self, column: exp.Column, scope: _Scope, clause: str) -> None:
        parts = [part.name for part in column.parts]
        around: _Scope | None = scope
        while around is not None:
            # `task.dataset.column`: the alias of a table is its last part.
            for at in range(len(parts) - 1):
                columns = around.seen(clause).get(parts[at].lower())
                if columns is None:
                    continue
                if not _has(columns, parts[at + 1]):
                    self._unknown(column, ".".join(parts), columns)
                if at:
                    rest = [exp.to_identifier(part.name) for part in column.parts[at:]]
                    fresh = exp.column(rest[1], table=rest[0])
                    fresh.meta.update(column.this.meta)
                    whole: exp.Expr = fresh
                    for part in rest[2:]:
                        whole = exp.Dot(this=whole, expression=part)
                    column.replace(whole)
                return
            # A field of a struct: `column.field`.
            if any(_has(columns, parts[0]) for columns in around.seen(clause).values()):
                return
            around = around.outer
        self._unknown(column, ".".join(parts), list(scope.seen(clause)))

    def _unknown(self, column: exp.Column, name: str, known: Sequence[str]) -> None:
        raise UNKNOWN_COLUMN(
            name=shown(name),
            where=self._source.of(column),
            fix=suggest(
                name.rpartition(".")[2].lower(), sorted({other.lower() for other in known})
            ),
        )


def _has(columns: Sequence[str], name: str) -> bool:
    return any(column.lower() == name.lower() for column in columns)


def _renamed(aliased: exp.Expr, columns: list[str]) -> list[str]:
    """The columns of a relation, by the names in `AS t(a, b)` if there are some."""
    alias = aliased.args.get("alias")
    names = [column.name for column in alias.args.get("columns") or []] if alias else []
    return names if len(names) == len(columns) else columns


def _names(item: exp.Expr, scope: _Scope) -> list[str]:
    """The names that an item of a SELECT gives to the result."""
    if isinstance(item, exp.Aliases):
        return [alias.name for alias in item.aliases]
    star = item.this if isinstance(item, exp.Column) else item
    if isinstance(star, exp.Star):
        table = item.table.lower() if isinstance(item, exp.Column) else ""
        names = scope.seen("").get(table, []) if table else _all(scope)
        left_out = {column.name.lower() for column in star.args.get("except_") or []}
        return [name for name in names if name.lower() not in left_out]
    return [item.alias_or_name or item.output_name]


def _all(scope: _Scope) -> list[str]:
    names: list[str] = []
    for columns in scope.seen("").values():
        for column in columns:
            if column.lower() not in scope.joined or not _has(names, column):
                names.append(column)
    return names
