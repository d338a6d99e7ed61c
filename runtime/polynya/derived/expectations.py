"""Expectations of a result as SQL, and the judgement of what Spark counts.

All expectations over the same rows are aggregates of one query, so that it reads the rows once.
Only an expectation that failed costs another query, for the keys of some rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from polynya.derived.constants import constant_sql
from polynya.derived.schema import FlowColumn, FlowSchema, is_orderable
from polynya.derived.steps import FlowRelation, FlowStepScope
from polynya.model.config.expectations import ROW_KINDS, ResultExpectation
from polynya.model.config.fields import format_duration
from polynya.model.error_catalogue.derived import EXPECTATION_REFUSED
from polynya.model.names import literal, quote, shown
from polynya.model.types import DATE, DOUBLE, FLOAT, TIMESTAMP, TIMESTAMP_NTZ, DataType

#: Rows of which a failed expectation shows the keys.
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class ReferencedTable:
    """A table that relationships name: its relation in SQL, quoted, and its columns."""

    relation: str
    columns: Mapping[str, DataType]


@dataclass(frozen=True, slots=True)
class ExpectationCheck:
    """One expectation as SQL.

    Attributes:
        expectation: the expectation.
        failing: aggregate: how many rows fail, or 1 where the whole table does; 0 if it passes.
        seen: aggregate: what the message compares that with.
        says: what the message says, over `failing` and `seen`.
        join: what it adds to the relation that is judged, if anything.
        sample: columns of the rows that the message shows, and the rest of their query after
            `FROM`. None where no row is at fault.
        fails: condition of a row that fails, never NULL; None where no row is at fault by itself.
    """

    expectation: ResultExpectation
    failing: str
    seen: str
    says: Callable[[int, Any], str]
    join: str = ""
    sample: tuple[tuple[str, ...], str] | None = None
    fails: str | None = None

    @property
    def is_of_rows(self) -> bool:
        """Whether each row is judged by itself, so that unchanged rows need no second look."""
        return self.expectation.kind in ROW_KINDS


@dataclass(frozen=True, slots=True)
class FailedExpectation:
    """An expectation that rows do not satisfy, and how many do not."""

    check: ExpectationCheck
    says: str

    def described(self, sample: Sequence[Sequence[Any]]) -> str:
        """What failed, with the keys of some rows."""
        if self.check.sample is None or not sample:
            return self.says
        columns = ", ".join(self.check.sample[0])
        values = "; ".join(", ".join(shown(str(value)) for value in row) for row in sample)
        return f"{self.says}, such as {columns} = {values}"


def judging_query(checks: Sequence[ExpectationCheck], relation: str) -> str:
    """The query of one row that judges checks: `f0`, `s0`, `f1`, `s1` and so on.

    `relation` is the quoted name of the rows.
    """
    aggregates = (
        f"{check.failing} AS f{number}, {check.seen} AS s{number}"
        for number, check in enumerate(checks)
    )
    return f"SELECT {', '.join(aggregates)} FROM {_joined(checks, relation)}"


def sample_query(check: ExpectationCheck, relation: str) -> str | None:
    """The query of some rows at fault; None where no row is."""
    if check.sample is None:
        return None
    columns, rest = check.sample
    return f"SELECT {', '.join(map(quote, columns))} FROM {_joined([check], relation)} {rest}"


@dataclass(frozen=True, slots=True)
class RowVerdict:
    """SQL over a row that checks judge: whether it fails one, the first that it fails, and all."""

    fails: str
    rule: str
    error: str

    @classmethod
    def of(cls, checks: Sequence[ExpectationCheck]) -> RowVerdict:
        """The verdict of checks that judge each row by itself; there is at least one."""
        named = [(str(check.fails), literal(check.expectation.label)) for check in checks]
        first = " ".join(f"WHEN {fails} THEN {name}" for fails, name in named)
        each = ", ".join(f"IF({fails}, {name}, NULL)" for fails, name in named)
        return cls(
            " OR ".join(fails for fails, _ in named),
            f"CASE {first} END",
            f"concat('the row fails ', concat_ws(', ', {each}))",
        )


def _joined(checks: Sequence[ExpectationCheck], relation: str) -> str:
    return f"{relation} AS judged{''.join(check.join for check in checks)}"


def judged(
    checks: Sequence[ExpectationCheck], figures: Mapping[str, Any]
) -> list[FailedExpectation]:
    """Those that fail, by the row of `judging_query`."""
    return [
        FailedExpectation(check, check.says(figures[f"f{number}"], figures[f"s{number}"]))
        for number, check in enumerate(checks)
        if figures[f"f{number}"]
    ]


@dataclass(frozen=True, slots=True)
class JudgedResult:
    """The rows that expectations are about.

    Attributes:
        name: of the table.
        columns: of the result, with their types.
        keys: its keys.
        tables: those that relationships name.
        began: when the step began.
    """

    name: str
    columns: Mapping[str, DataType]
    keys: tuple[str, ...]
    tables: Mapping[str, ReferencedTable]
    began: datetime


def expectation_checks(
    expectations: Sequence[ResultExpectation],
    result: JudgedResult,
    place: Callable[[int], str],
) -> list[ExpectationCheck]:
    """The expectations as SQL over the columns of a result.

    `place` gives the place of an expectation by its number from 0, for errors.

    Raises OperationError for one that cannot be judged: an unknown column, a value or a type that
    does not fit, an expression that is refused.
    """
    checks = []
    for number, expectation in enumerate(expectations):
        where = place(number)
        label = f"the expectation {shown(expectation.label)}"
        scope = FlowStepScope((), label, lambda _, where=where: where)  # type: ignore[misc]
        check = _MAKERS[expectation.kind](expectation, result, scope, number)
        if scope.errors:
            first = scope.errors[0]
            raise EXPECTATION_REFUSED(first.message, where=where, fix=first.fix)
        checks.append(check)
    return checks


def _relation(result: JudgedResult) -> FlowRelation:
    columns = tuple(FlowColumn(name, kind) for name, kind in result.columns.items())
    return FlowRelation(result.name, (), FlowSchema(columns))


def _of_rows(
    expectation: ResultExpectation, result: JudgedResult, fails: str, join: str = ""
) -> ExpectationCheck:
    """A check that counts the rows for which a condition, never NULL, is true."""
    order = ", ".join(map(quote, result.keys))
    return ExpectationCheck(
        expectation,
        f"count_if({fails})",
        "count(*)",
        lambda failing, rows: f"{failing:,} of {rows:,} rows",
        join,
        (result.keys, f"WHERE {fails} ORDER BY {order} LIMIT {_SHOWN}"),
        fails,
    )


def _not_null(
    expectation: ResultExpectation, result: JudgedResult, scope: FlowStepScope, _: int
) -> ExpectationCheck:
    columns = scope.columns(_relation(result), expectation.not_null or (), "not_null")
    fails = " OR ".join(f"{quote(column.name)} IS NULL" for column in columns)
    return _of_rows(expectation, result, f"({fails})")


def _accepted_values(
    expectation: ResultExpectation, result: JudgedResult, scope: FlowStepScope, _: int
) -> ExpectationCheck:
    accepted = expectation.accepted_values
    assert accepted is not None
    column = scope.column(_relation(result), accepted.column, "accepted_values", "column")
    values = ", ".join(scope.constant(value, column) for value in accepted.values)
    name = quote(column.name)
    return _of_rows(expectation, result, f"({name} IS NOT NULL AND {name} NOT IN ({values}))")


def _range(
    expectation: ResultExpectation, result: JudgedResult, scope: FlowStepScope, _: int
) -> ExpectationCheck:
    limits = expectation.range
    assert limits is not None
    column = scope.column(_relation(result), limits.column, "range", "column")
    name = quote(column.name)
    outside = [
        f"{name} {beyond} {scope.constant(limit, column)}"
        for beyond, limit in (("<", limits.min), (">", limits.max))
        if limit is not None
    ]
    if column.type in {FLOAT, DOUBLE}:
        # Spark takes NaN for greater than any number.
        outside.append(f"isnan({name})")
    return _of_rows(expectation, result, f"coalesce({' OR '.join(outside)}, false)")


def _condition(
    expectation: ResultExpectation, result: JudgedResult, scope: FlowStepScope, _: int
) -> ExpectationCheck:
    condition = scope.condition(_relation(result), expectation.condition or "", "condition")
    return _of_rows(expectation, result, f"(NOT coalesce({condition}, false))")


def _unique(
    expectation: ResultExpectation, result: JudgedResult, scope: FlowStepScope, _: int
) -> ExpectationCheck:
    columns = scope.columns(_relation(result), expectation.unique or (), "unique")
    scope.orderable(columns, "unique")
    names = [column.name for column in columns]
    listed = ", ".join(map(quote, names))
    known = " AND ".join(f"{quote(name)} IS NOT NULL" for name in names)
    return ExpectationCheck(
        expectation,
        f"count_if({known}) - count(DISTINCT IF({known}, struct({listed}), NULL))",
        "count(*)",
        lambda failing, rows: f"{failing:,} of {rows:,} rows repeat the values of another",
        sample=(
            tuple(names),
            f"WHERE {known} GROUP BY {listed} HAVING count(*) > 1 ORDER BY {listed} LIMIT {_SHOWN}",
        ),
    )


def _relationship(
    expectation: ResultExpectation, result: JudgedResult, scope: FlowStepScope, number: int
) -> ExpectationCheck:
    related = expectation.relationship
    assert related is not None
    relation, table = _relation(result), result.tables[related.to]
    there = FlowRelation(
        related.to, (), FlowSchema(tuple(FlowColumn(*one) for one in table.columns.items()))
    )
    here_known, there_known, equal, values = [], [], [], []
    for place, (name, other) in enumerate(related.pairs):
        one = scope.column(relation, name, "relationship", "columns", place)
        two = scope.column(there, other, "relationship", "to_columns", place)
        kind = scope.common((one.name, one.type), (two.name, two.type), "relationship")
        if not is_orderable(kind):
            scope.refuse_type("types that can be compared", shown(one.name), kind, "relationship")
        key = quote(relation.schema.free_name(f"key_{number}_{place}"))
        cast = "" if kind is None else f" AS {kind}"
        values.append(f"CAST({quote(two.name)}{cast}) AS {key}")
        equal.append(f"CAST({quote(one.name)}{cast}) = {key}")
        here_known.append(f"{quote(one.name)} IS NOT NULL")
        there_known.append(f"{quote(two.name)} IS NOT NULL")
    found = quote(relation.schema.free_name(f"found_{number}"))
    distinct = f"SELECT DISTINCT {', '.join(values)} FROM {table.relation}"
    join = (
        f" LEFT JOIN (SELECT *, true AS {found} FROM "
        f"({distinct} WHERE {' AND '.join(there_known)})) ON {' AND '.join(equal)}"
    )
    fails = f"({' AND '.join(here_known)} AND {found} IS NULL)"
    return _of_rows(expectation, result, fails, join)


def _freshness(
    expectation: ResultExpectation, result: JudgedResult, scope: FlowStepScope, _: int
) -> ExpectationCheck:
    fresh = expectation.freshness
    assert fresh is not None
    column = scope.column(_relation(result), fresh.column, "freshness", "column")
    if column.type not in {TIMESTAMP, TIMESTAMP_NTZ, DATE, None}:
        scope.refuse_type("a time", shown(column.name), column.type, "freshness", "column")
    oldest = constant_sql((result.began - fresh.within).isoformat(), TIMESTAMP)
    newest, within = f"max({quote(column.name)})", format_duration(fresh.within)
    return ExpectationCheck(
        expectation,
        f"IF(coalesce(CAST({newest} AS TIMESTAMP) < {oldest}, true), 1, 0)",
        f"CAST({newest} AS STRING)",
        lambda _, value: (
            f"no row has a value in {column.name}"
            if value is None
            else f"the newest value of {column.name} is {value}, which is more than {within} ago"
        ),
    )


def _row_count(
    expectation: ResultExpectation, _: JudgedResult, __: FlowStepScope, ___: int
) -> ExpectationCheck:
    count = expectation.row_count
    assert count is not None
    wrong = [
        f"count(*) {beyond} {limit}"
        for beyond, limit in (("<", count.min), (">", count.max))
        if limit is not None
    ]
    ends = [
        f"at {end} {limit:,}"
        for end, limit in (("least", count.min), ("most", count.max))
        if limit is not None
    ]
    return ExpectationCheck(
        expectation,
        f"IF({' OR '.join(wrong)}, 1, 0)",
        "count(*)",
        lambda _, rows: f"{rows:,} rows, and {' and '.join(ends)} are expected",
    )


_MAKERS: Final[
    Mapping[
        str,
        Callable[[ResultExpectation, JudgedResult, FlowStepScope, int], ExpectationCheck],
    ]
] = {
    "not_null": _not_null,
    "unique": _unique,
    "accepted_values": _accepted_values,
    "range": _range,
    "condition": _condition,
    "relationship": _relationship,
    "freshness": _freshness,
    "row_count": _row_count,
}


def referenced(expectations: Sequence[ResultExpectation]) -> list[str]:
    """The tables that relationships name, each once, as they name them."""
    named = (one.relationship.to for one in expectations if one.relationship is not None)
    return list(dict.fromkeys(named))
