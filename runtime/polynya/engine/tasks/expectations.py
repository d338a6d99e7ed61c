"""Judge the result of a step by the expectations of its table, before it is committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from polynya.derived.expectations import (
    ExpectationCheck,
    FailedExpectation,
    JudgedResult,
    ReferencedTable,
    RowVerdict,
    expectation_checks,
    judged,
    judging_query,
    referenced,
    sample_query,
)
from polynya.derived.schema import known_type
from polynya.lake.copy.put_aside import ERROR, RULE, DividedRows
from polynya.lake.errors import machine_error
from polynya.lake.spark.api import DataFrame, Py4JError, PySparkException, SparkSession
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.config.derived import DerivedQuery
from polynya.model.error_catalogue.derived import EXPECTATION_FAILED, EXPECTATION_REFUSED
from polynya.model.names import quote, shown
from polynya.model.types import DataType


def _puts_aside(check: ExpectationCheck) -> bool:
    return check.expectation.on_failure == "quarantine"


@dataclass(frozen=True, slots=True)
class ResultJudge:
    """Judges the result of one step.

    `views` are quoted views of the tables that the step reads, by the names that the query and
    relationships give them; `began` is when the step began. `place` gives the place of an
    expectation by its number, for errors.
    """

    spark: SparkSession
    dataset: ResolvedDataset
    query: DerivedQuery
    views: Mapping[str, str]
    began: datetime
    place: Callable[[int], str]

    def judge(
        self,
        rows: DataFrame | None,
        whole: Callable[[], DataFrame] | None,
        columns: Mapping[str, DataType],
    ) -> Mapping[str, str | None]:
        """By what a result fails each expectation that only warns; None where it passes.

        `rows` are those that the step has computed, in `columns`, None without any; `whole` makes
        all rows of the table after the step, None where these are all. An expectation of single
        rows looks at `rows` alone: the others have been judged when they were computed.

        Raises OperationError for a result that fails an expectation with `on_failure: stop`, and
        for an expectation that cannot be judged.
        """
        checks = [one for one in self._checks(columns) if not _puts_aside(one)]
        of_rows = checks if whole is None else [check for check in checks if check.is_of_rows]
        of_table = [check for check in checks if check not in of_rows]
        failed = {} if rows is None else self._failed(of_rows, rows)
        if whole is not None and of_table:
            failed |= self._failed(of_table, whole())
        stops = [
            f"{name} fails: {failed[name]}"
            for check in checks
            if (name := check.expectation.label) in failed
            and check.expectation.on_failure == "stop"
        ]
        if stops:
            raise EXPECTATION_FAILED(where=self._name, failed="; ".join(stops))
        return {
            check.expectation.label: failed.get(check.expectation.label)
            for check in checks
            if check.expectation.on_failure == "warn"
        }

    @property
    def puts_rows_aside(self) -> bool:
        """Whether an expectation has `on_failure: quarantine`."""
        return any(one.on_failure == "quarantine" for one in self.query.expect)

    def divide(self, rows: DataFrame, columns: Mapping[str, DataType]) -> DividedRows:
        """Put rows aside that fail an expectation with `on_failure: quarantine`.

        `rows` are settled and have `columns`. Raises OperationError for an expectation that cannot
        be judged.
        """
        checks = [one for one in self._checks(columns) if _puts_aside(one)]
        failed = self._failed(checks, rows)
        verdicts = {one.expectation.label: failed.get(one.expectation.label) for one in checks}
        if not failed:
            return DividedRows(rows, None, verdicts)
        verdict = RowVerdict.of(checks)
        aside = rows.where(verdict.fails).selectExpr(
            "*", f"{verdict.rule} AS {RULE}", f"{verdict.error} AS {ERROR}"
        )
        return DividedRows(rows.where(f"NOT ({verdict.fails})"), aside, verdicts)

    def _checks(self, columns: Mapping[str, DataType]) -> list[ExpectationCheck]:
        return expectation_checks(self.query.expect, self._result(columns), self.place)

    @property
    def _name(self) -> str:
        return self.dataset.relations.current

    def _result(self, columns: Mapping[str, DataType]) -> JudgedResult:
        tables = {}
        for name in referenced(self.query.expect):
            view = self.views[name]
            fields = self.spark.table(view).schema.fields
            types = {field.name: known_type(field.dataType.simpleString()) for field in fields}
            known = {column: kind for column, kind in types.items() if kind is not None}
            tables[name] = ReferencedTable(view, known)
        return JudgedResult(self._name, columns, self.dataset.events.keys, tables, self.began)

    def _failed(self, checks: Sequence[ExpectationCheck], rows: DataFrame) -> dict[str, str]:
        """What says how rows fail checks, by the names of those that fail."""
        if not checks:
            return {}
        with self._view(rows) as view:
            try:
                figures = self._rows(judging_query(checks, view))[0].asDict()
            except (PySparkException, Py4JError) as error:
                fault = machine_error(error)
                if fault is not None:
                    raise fault from error
                self._refuse_culprit(checks, view)
                raise
            return {
                one.check.expectation.label: self._described(one, view)
                for one in judged(checks, figures)
            }

    def _described(self, failed: FailedExpectation, view: str) -> str:
        query = sample_query(failed.check, view)
        return failed.described([] if query is None else self._rows(query))

    def _refuse_culprit(self, checks: Sequence[ExpectationCheck], view: str) -> None:
        """Raise OperationError for the first check that Spark refuses."""
        for check in checks:
            try:
                self._rows(judging_query([check], view))
            except (PySparkException, Py4JError) as error:
                number = self.query.expect.index(check.expectation)
                raise EXPECTATION_REFUSED(
                    where=self.place(number),
                    expectation=f"the expectation {shown(check.expectation.label)}",
                    reason=str(error).strip().splitlines()[0][:500],
                    fix="correct the expectation; `polynya query` answers the same SQL",
                ) from error

    def _rows(self, text: str) -> list[Any]:
        return self.spark.sql(text).collect()

    @contextmanager
    def _view(self, rows: DataFrame) -> Iterator[str]:
        name = f"judged_{uuid4().hex}"
        rows.createOrReplaceTempView(name)
        try:
            yield quote(name)
        finally:
            self.spark.catalog.dropTempView(name)
