"""What the names of a statement mean: inputs, columns, aliases, each with its place in the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeAlias

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
from polynya.model.errors import ConfigError, ConfigErrors
from polynya.model.names import shown

if TYPE_CHECKING:
    from polynya.derived.schema import DerivedInput


@dataclass(frozen=True, slots=True)
class RelationColumns:
    """The columns of a relation of a statement, as they are written, in order.

    Attributes:
        names: empty for a column that no plain name stands for, such as `a + 1`.
        is_open: it may have others, too.
        lacks: names in small letters of columns that it surely lacks, where it is open.
    """

    names: tuple[str, ...]
    is_open: bool = False
    lacks: frozenset[str] = frozenset()

    def has(self, name: str) -> bool:
        """Whether it surely has a column."""
        return any(column.lower() == name.lower() for column in self.names)

    def may_have(self, name: str, *, quoted: bool = False) -> bool:
        """Whether it has a column, as far as that is known."""
        if self.has(name) or (quoted and "" in self.names):
            return True
        return self.is_open and name.lower() not in self.lacks

    def renamed(self, aliased: exp.Expr) -> RelationColumns:
        """The columns by the names in `AS t(a, b)` if there are some."""
        alias = aliased.args.get("alias")
        names = [column.name for column in alias.args.get("columns") or []] if alias else []
        if not names or (len(names) != len(self.names) and not self.is_open):
            return self
        return RelationColumns(tuple(names))


#: The columns of a relation of which nothing is known.
ANY_COLUMNS: Final = RelationColumns((), is_open=True)
#: The tables of one SELECT: their names in small letters -> their columns.
Tables: TypeAlias = dict[str, RelationColumns]
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
#: Functions of whose three arguments the first is a unit of time, as in `dateadd(DAY, 1, d)`.
_WITH_UNIT: Final = frozenset(
    {
        *("dateadd", "date_add", "timestampadd"),
        *("datediff", "date_diff", "timestampdiff", "timediff"),
    }
)
#: What Spark takes for a function without brackets where no column has the name.
_WORDS: Final = frozenset(
    {
        *("current_catalog", "current_database", "current_date", "current_schema"),
        *("current_time", "current_timestamp", "current_user", "grouping__id"),
        *("localtimestamp", "session_user", "user"),
    }
)
#: Functions that give columns with names of their own.
_GENERATORS: Final = frozenset(
    {
        *("explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer"),
        *("json_tuple", "stack", "variant_explode", "variant_explode_outer"),
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
    #: Whether all of FROM is followed; otherwise any name may mean something.
    is_known: bool = True

    def and_outer(self) -> Iterator[_Scope]:
        """The scope, and those around it."""
        around: _Scope | None = self
        while around is not None:
            yield around
            around = around.outer

    def seen(self, clause: str) -> Tables:
        """The tables that a clause sees."""
        if clause == "on" or not self.hidden:
            return self.tables
        return {name: columns for name, columns in self.tables.items() if name not in self.hidden}


class StatementNames:
    """Resolves the tables and columns of one statement.

    `names_only`: only wrong names of columns are errors, all of them. What this class does not
    follow may have any columns then, where an analysis refuses it.
    """

    def __init__(
        self,
        source: StatementText,
        inputs: Mapping[str, DerivedInput],
        *,
        names_only: bool = False,
    ) -> None:
        self._source = source
        self._inputs = inputs
        self._names_only = names_only
        self._numbers: dict[str, str] = {}
        self._unnamed = 0
        self._wrong: list[ConfigError] = []

    @property
    def tables(self) -> dict[str, str]:
        """The name of a table in the tree -> the name of its input."""
        return {table: name for name, table in self._numbers.items()}

    def resolve(self, tree: exp.Query) -> RelationColumns:
        """Give inputs their table and columns their table's name; the columns of the result.

        Raises ConfigError: POLYNYA-TRF-004 to 007 and 011; for names only, 006 and 007, and
        ConfigErrors for several of them.
        """
        columns = self._query(tree, {}, None)
        wrong: dict[str, ConfigError] = {}
        for error in self._wrong:
            # Each name once, at its first place.
            wrong.setdefault(error.message, error)
        if wrong:
            raise self._wrong[0] if len(wrong) == 1 else ConfigErrors(wrong.values())
        return columns

    def _refuse(self, error: ConfigError) -> None:
        """Note a wrong name. Raises the error for an analysis, which needs no others."""
        if not self._names_only:
            raise error
        self._wrong.append(error)

    def _not_followed(self, error: ConfigError, scope: _Scope | None = None) -> RelationColumns:
        """What a part that is not followed may have. Raises the error for an analysis."""
        if not self._names_only:
            raise error
        if scope is not None:
            scope.is_known = False
        return ANY_COLUMNS

    def _query(
        self, query: exp.Expr, ctes: Mapping[str, RelationColumns], outer: _Scope | None
    ) -> RelationColumns:
        before = len(self._wrong)
        columns = self._followed(query, ctes, outer)
        # Where a name is wrong here, those that follow from it are not known to be.
        return columns if len(self._wrong) == before else ANY_COLUMNS

    def _followed(
        self, query: exp.Expr, ctes: Mapping[str, RelationColumns], outer: _Scope | None
    ) -> RelationColumns:
        clause = query.args.get("with_")
        if clause is not None:
            ctes = dict(ctes)
            if clause.args.get("recursive"):
                ctes |= {cte.alias.lower(): ANY_COLUMNS for cte in clause.expressions}
            for cte in clause.expressions:
                columns = self._query(unwrapped(cte.this), ctes, self._around(outer))
                if cte.alias.startswith("__"):
                    columns = self._not_followed(
                        CLAUSE_NOT_ALLOWED(
                            what=f"the name {shown(cte.alias)}", where=self._source.of(cte)
                        )
                    )
                ctes[cte.alias.lower()] = columns.renamed(cte)
        if isinstance(query, exp.Subquery):
            return self._query(query.this, ctes, outer)
        if isinstance(query, exp.SetOperation):
            return self._set_operation(query, ctes, outer)
        if not isinstance(query, exp.Select):
            return self._not_followed(
                TABLE_NOT_ALLOWED(what=query.key.upper(), where=self._source.of(query))
            )
        return self._select(query, ctes, outer)

    def _around(self, outer: _Scope | None) -> _Scope | None:
        """What a query in FROM or WITH sees of the query around the one that it stands in.

        Spark lets it see that, the analysis does not follow it.
        """
        return outer if self._names_only else None

    def _set_operation(
        self, query: exp.SetOperation, ctes: Mapping[str, RelationColumns], outer: _Scope | None
    ) -> RelationColumns:
        columns = self._query(unwrapped(query.this), ctes, outer)
        others = self._query(unwrapped(query.expression), ctes, outer)
        if query.args.get("by_name"):
            return self._not_followed(
                CLAUSE_NOT_ALLOWED(what="BY NAME", where=self._source.of(query))
            )
        is_open = columns.is_open or others.is_open
        if not is_open and len(columns.names) != len(others.names):
            numbers = f"{len(columns.names)} and {len(others.names)}"
            self._refuse(
                CLAUSE_NOT_ALLOWED(
                    f"the sides of this {query.key.upper()} have {numbers} columns",
                    where=self._source.of(query.expression),
                    fix="select the same number of columns on both sides",
                )
            )
        order = query.args.get("order")
        for column in () if order is None else _columns_in(order):
            name = column.name
            known = columns.may_have(name, quoted=_is_quoted(column)) or _is_word(column)
            if not (column.table or known or name.lower() == "all"):
                self._unknown(column, name, columns.names)
        return columns

    def _select(
        self, select: exp.Select, ctes: Mapping[str, RelationColumns], outer: _Scope | None
    ) -> RelationColumns:
        scope = _Scope({}, outer)
        joins = select.args.get("joins") or []
        first = select.args.get("from_")
        for relation in [first.this] if first else []:
            self._add(*self._relation(relation, ctes, scope), scope, relation)
        for join in joins:
            before = list(scope.tables.values())
            alias, columns = self._relation(join.this, ctes, scope)
            self._add(alias, columns, scope, join.this)
            for named in join.args.get("using") or []:
                self._joined(named, before, columns, scope)
            if (join.args.get("method") or "").upper() == "NATURAL":
                self._not_followed(
                    CLAUSE_NOT_ALLOWED(what="NATURAL JOIN", where=self._source.of(join))
                )
                tables = scope.tables.values()
                scope.joined |= {name.lower() for table in tables for name in table.names}
            if str(join.args.get("kind") or "").upper() in {"SEMI", "ANTI"}:
                scope.hidden.add(join.this.alias_or_name.lower())
        for lateral in select.args.get("laterals") or []:
            alias = lateral.args.get("alias")
            names = tuple(column.name for column in alias.columns) if alias else ()
            given = ANY_COLUMNS if self._names_only else RelationColumns(("col",))
            made = RelationColumns(names) if names else given
            self._add(lateral.alias.lower(), made, scope, lateral)
        result = _together(_columns_of(item, scope) for item in select.expressions)
        self._columns(select, scope, result, ctes)
        return result

    def _joined(
        self,
        named: exp.Expr,
        before: Sequence[RelationColumns],
        columns: RelationColumns,
        scope: _Scope,
    ) -> None:
        """Note a column of USING, which both sides have."""
        scope.joined.add(named.name.lower())
        there = any(table.may_have(named.name) for table in before)
        if scope.is_known and not (there and columns.may_have(named.name)):
            both = [name for table in (*before, columns) for name in table.names]
            self._unknown(named, named.name, both)

    def _relation(
        self, relation: exp.Expr, ctes: Mapping[str, RelationColumns], scope: _Scope
    ) -> tuple[str, RelationColumns]:
        if isinstance(relation, exp.Table | exp.Subquery) and (
            relation.args.get("joins") or relation.args.get("pivots")
        ):
            what = "PIVOT" if relation.args.get("pivots") else "a join in brackets"
            error = CLAUSE_NOT_ALLOWED(what=what, where=self._source.of(relation))
            return relation.alias_or_name.lower(), self._not_followed(error, scope)
        if isinstance(relation, exp.Table) and isinstance(relation.this, exp.Identifier):
            columns = self._table(relation, ctes, scope)
            return relation.alias_or_name.lower(), columns.renamed(relation)
        if isinstance(relation, exp.Subquery) and isinstance(relation.this, exp.Query):
            columns = self._query(relation.this, ctes, self._around(scope.outer))
            alias = relation.args.get("alias")
            if alias is not None and alias.args.get("columns"):
                # Outside, its columns have other names than in its text.
                relation.meta.pop("place", None)
            if not relation.alias:
                self._unnamed += 1
                name = exp.to_identifier(f"__t{self._unnamed}")
                relation.set("alias", exp.TableAlias(this=name))
            return relation.alias.lower(), columns.renamed(relation)
        if isinstance(relation, exp.Lateral) and isinstance(relation.this, exp.Subquery):
            columns = self._query(relation.this.this, ctes, scope)
            return relation.alias.lower(), columns.renamed(relation)
        error = TABLE_NOT_ALLOWED(
            what="a function that gives a table", where=self._source.of(relation)
        )
        return relation.alias_or_name.lower(), self._not_followed(error, scope)

    def _table(
        self, table: exp.Table, ctes: Mapping[str, RelationColumns], scope: _Scope
    ) -> RelationColumns:
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
        found = self._inputs_called(written)
        is_path = len(parts) == 2 and (parts[0].lower() in _PATHS or "/" in parts[1])
        if is_path and not any(name.lower() == written.lower() for name in self._inputs):
            return self._not_followed(TABLE_NOT_ALLOWED(what="a path", where=place), scope)
        if len(found) > 1:
            meanings = ", ".join(f"`{name}`" for name in sorted(found))
            error = AMBIGUOUS_NAME(
                name=shown(written), meanings=meanings, example=f"`{min(found)}`", where=place
            )
            return self._not_followed(error)
        if not found:
            fix = self._table_fix(written, ctes)
            return self._not_followed(UNKNOWN_TABLE(name=shown(written), where=place, fix=fix))
        alias = table.args.get("alias")
        if alias is None or not alias.this:
            columns = alias.args.get("columns") if alias else None
            table.set("alias", exp.TableAlias(this=exp.to_identifier(parts[-1]), columns=columns))
        number = self._numbers.setdefault(found[0], f"__in{len(self._numbers)}")
        table.set("this", exp.to_identifier(number))
        table.set("db", None)
        table.set("catalog", None)
        one = self._inputs[found[0]]
        return RelationColumns(tuple(one.columns), one.is_open, one.lacks)

    def _inputs_called(self, written: str) -> list[str]:
        """The inputs that a name may mean: the one that is called so, else by their last part."""
        exact = [name for name in self._inputs if name.lower() == written.lower()]
        return exact or [
            name for name in self._inputs if name.lower().partition(".")[2] == written.lower()
        ]

    def _table_fix(self, written: str, ctes: Mapping[str, RelationColumns]) -> str | None:
        short = [name.partition(".")[2] or name for name in self._inputs]
        names = [*self._inputs] if "." in written else [*self._inputs, *short, *ctes]
        hint, _, _ = (suggest(written, names) or "").partition("? ")
        if hint.startswith("did you mean"):
            return f"{hint}?"
        return suggest(written, list(self._inputs))

    def _add(self, alias: str, columns: RelationColumns, scope: _Scope, relation: exp.Expr) -> None:
        if alias and alias in scope.tables:
            error = AMBIGUOUS_NAME(
                name=shown(alias),
                meanings="two tables of one FROM",
                example="each needs an alias of its own",
                where=self._source.of(relation),
            )
            columns = self._not_followed(error, scope)
        scope.tables[alias or f"__{len(scope.tables)}"] = columns

    def _columns(
        self,
        select: exp.Select,
        scope: _Scope,
        result: RelationColumns,
        ctes: Mapping[str, RelationColumns],
    ) -> None:
        aliases = {item.alias.lower() for item in select.expressions if item.alias}
        for item in select.expressions:
            if isinstance(item, exp.Aliases):
                aliases |= {alias.name.lower() for alias in item.aliases}
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
                elif isinstance(node, exp.Column) and not _is_unit(node):
                    self._column(node, scope, aliases, result, clause)

    def _column(
        self,
        column: exp.Column,
        scope: _Scope,
        aliases: set[str],
        result: RelationColumns,
        clause: str,
    ) -> None:
        if not all(around.is_known for around in scope.and_outer()):
            return
        if isinstance(column.this, exp.Star):
            self._star(column, scope, aliases, clause)
        elif column.table:
            self._qualified(column, scope, aliases, clause)
        else:
            self._plain(column, scope, aliases, result, clause)

    def _star(self, column: exp.Column, scope: _Scope, aliases: set[str], clause: str) -> None:
        table, seen = column.table.lower(), scope.seen(clause)
        fields = table in aliases or any(one.may_have(table) for one in seen.values())
        if table and table not in seen and not fields:
            self._unknown_table_of(column, table, seen)

    def _plain(
        self,
        column: exp.Column,
        scope: _Scope,
        aliases: set[str],
        result: RelationColumns,
        clause: str,
    ) -> None:
        name = column.name
        for around in scope.and_outer():
            if name.lower() in around.joined:
                return
            seen = around.seen(clause)
            found = [t for t, columns in seen.items() if columns.has(name)]
            of_result = clause in {"having", "order"} and around is scope
            if of_result and name.lower() in aliases:
                return
            if len(found) > 1 and not (of_result and result.has(name)):
                self._refuse(
                    AMBIGUOUS_NAME(
                        name=shown(name),
                        meanings=", ".join(f"`{t}.{name}`" for t in found),
                        example=f"`{found[0]}.{name}`",
                        where=self._source.of(column),
                    )
                )
            if len(found) == 1:
                column.set("table", exp.to_identifier(found[0]))
            if found or (around is scope and name.lower() in aliases):
                return
            if any(columns.may_have(name, quoted=_is_quoted(column)) for columns in seen.values()):
                return
        if _is_word(column) or (clause in {"group", "order"} and name.lower() == "all"):
            return
        known = [c for columns in scope.seen(clause).values() for c in columns.names]
        self._unknown(column, name, known)

    def _qualified(self, column: exp.Column, scope: _Scope, aliases: set[str], clause: str) -> None:
        parts = [part.name for part in column.parts]
        for around in scope.and_outer():
            seen = around.seen(clause)
            # A field of a struct: `column.field`.
            is_field = any(columns.has(parts[0]) for columns in seen.values())
            # `task.dataset.column`: the alias of a table is its last part.
            for at in range(len(parts) - 1):
                columns = seen.get(parts[at].lower())
                if columns is None:
                    continue
                quoted = bool(column.parts[at + 1].args.get("quoted"))
                if not columns.may_have(parts[at + 1], quoted=quoted):
                    if is_field:
                        return
                    self._unknown(column, ".".join(parts), columns.names)
                if at:
                    rest = [exp.to_identifier(part.name) for part in column.parts[at:]]
                    fresh = exp.column(rest[1], table=rest[0])
                    fresh.meta.update(column.this.meta)
                    whole: exp.Expr = fresh
                    for part in rest[2:]:
                        whole = exp.Dot(this=whole, expression=part)
                    column.replace(whole)
                return
            if is_field or any(columns.may_have(parts[0]) for columns in seen.values()):
                return
            if around is scope and parts[0].lower() in aliases:
                return
        self._unknown_table_of(column, parts[0], scope.seen(clause))

    def _unknown_table_of(self, column: exp.Expr, table: str, seen: Tables) -> None:
        tables = sorted(name for name in seen if not name.startswith("__"))
        self._refuse(
            UNKNOWN_COLUMN(
                f"no table of this SELECT is called {shown(table)}",
                where=self._source.of(column),
                fix=suggest(table.lower(), tables),
            )
        )

    def _unknown(self, column: exp.Expr, name: str, known: Iterable[str]) -> None:
        names = sorted({other.lower() for other in known if other})
        self._refuse(
            UNKNOWN_COLUMN(
                name=shown(name),
                where=self._source.of(column),
                fix=suggest(name.rpartition(".")[2].lower(), names),
            )
        )


def _columns_in(root: exp.Expr) -> Iterator[exp.Column]:
    """The columns of an expression, none of a query inside."""
    for node in own_nodes(root):
        if isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier):
            yield node


def _is_word(column: exp.Column) -> bool:
    """Whether Spark takes a name that no column has for a function."""
    return not _is_quoted(column) and column.name.lower() in _WORDS


def _is_quoted(column: exp.Column) -> bool:
    return bool(column.this.args.get("quoted"))


def _is_unit(column: exp.Column) -> bool:
    """Whether a name is the unit of time of a function."""
    call = column.parent
    return (
        isinstance(call, exp.Anonymous)
        and call.name.lower() in _WITH_UNIT
        and len(call.expressions) == 3
        and call.expressions[0] is column
        and not column.table
    )


def _columns_of(item: exp.Expr, scope: _Scope) -> RelationColumns:
    """The columns that an item of a SELECT gives to the result."""
    if isinstance(item, exp.Aliases):
        return RelationColumns(tuple(alias.name for alias in item.aliases))
    star = item.this if isinstance(item, exp.Column) else item
    if isinstance(star, exp.Star):
        table = item.table.lower() if isinstance(item, exp.Column) else ""
        if not scope.is_known:
            return ANY_COLUMNS
        columns = scope.seen("").get(table, ANY_COLUMNS) if table else _all(scope)
        gone = frozenset(column.name.lower() for column in star.args.get("except_") or [])
        names = tuple(name for name in columns.names if name.lower() not in gone)
        return replace(columns, names=names, lacks=columns.lacks | gone)
    if isinstance(item, exp.Alias):
        return RelationColumns((item.alias,))
    if isinstance(item, exp.Anonymous) and item.name.lower() in _GENERATORS:
        return ANY_COLUMNS
    # What Spark makes of other expressions can only be named in quotes.
    named = item.this if isinstance(item, exp.Cast) else item
    is_named = isinstance(named, exp.Column | exp.Dot | exp.Literal)
    return RelationColumns((named.output_name if is_named else "",))


def _together(parts: Iterable[RelationColumns]) -> RelationColumns:
    """The columns of several parts, in order."""
    names: tuple[str, ...] = ()
    is_open = False
    lacks: frozenset[str] | None = None
    for part in parts:
        names += part.names
        if part.is_open:
            is_open = True
            lacks = part.lacks if lacks is None else lacks & part.lacks
    return RelationColumns(names, is_open, lacks or frozenset())


def _all(scope: _Scope) -> RelationColumns:
    whole = _together(scope.seen("").values())
    names: list[str] = []
    for name in whole.names:
        if name.lower() not in scope.joined or name.lower() not in {n.lower() for n in names}:
            names.append(name)
    return replace(whole, names=tuple(names))
