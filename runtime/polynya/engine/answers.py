"""Answers by the first engine that suffices: the embedded one, else Spark, which starts then."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from polynya.engine.asked import Engine
from polynya.engine.embedded import answer_embedded, published_views, view_columns
from polynya.lake.read.statements import Statement, refuse_writing, unanswered
from polynya.lake.read.values import Answer
from polynya.lake.spark.naming import CATALOG
from polynya.lake.warehouse.check import refuse_unusable
from polynya.mirror.embedded.refusal import NotEmbeddedError
from polynya.model.errors import PolynyaError
from polynya.model.reading.loader import LoadedProject

if TYPE_CHECKING:  # start-up time: most statements need no PySpark
    from polynya.lake.spark.api import SparkSession

log = logging.getLogger(__name__)


class Answers:
    """Answers the statements of a process, each over the newest commits.

    `start` gives the Spark session, once one is needed. `tell` is given the reason of each
    statement that is left to Spark.
    """

    def __init__(
        self,
        project: LoadedProject,
        start: Callable[[], SparkSession],
        *,
        engine: Engine = Engine.AUTO,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.project = project
        self._start, self._engine, self._tell = start, engine, tell
        self._spark: SparkSession | None = None

    def check(self) -> None:
        """Raise a PolynyaError where the warehouse cannot be used."""
        refuse_unusable(self.project.target, CATALOG)

    @property
    def spark(self) -> SparkSession:
        """The Spark session, started if it is not."""
        if self._spark is None:
            self._spark = self._start()
            self._spark.conf.set("spark.sql.caseSensitive", "false")
        return self._spark

    def answer(self, statement: Statement, *, limit: int | None = None) -> Answer:
        """Answer one statement; at most `limit` rows.

        Raises:
            OperationError: it does not only read, or Spark refuses it (POLYNYA-QRY-001), or only
                Spark could answer it and may not (POLYNYA-QRY-002).
            PolynyaError: the warehouse cannot be used, or Spark does not start.
        """
        refuse_writing(statement)
        if self._engine is not Engine.SPARK:
            reason = self._reason_or_answer(statement, limit)
            if isinstance(reason, Answer):
                return reason
            if self._engine is Engine.EMBEDDED:
                raise unanswered(
                    statement,
                    f"the embedded engine leaves it to Spark: {reason}",
                    "leave `--engine embedded` out, so that Spark answers it",
                    code="POLYNYA-QRY-002",
                )
            self._tell(f"Spark answers: {reason}")
        # Start-up time: pyspark.
        from polynya.lake.read.query import answer

        return answer(self.spark, statement, limit=limit)

    def see_newest(self) -> None:
        """Let what follows see the newest commits, as the embedded engine does by itself."""
        if self._spark is not None:
            # Start-up time: pyspark.
            from polynya.lake.read.newest import see_newest

            see_newest(self._spark)

    def cancel(self) -> None:
        """End what Spark is at."""
        if self._spark is not None:
            self._spark.sparkContext.cancelAllJobs()

    def views(self) -> list[str]:
        """`schema.view` of every view that can be read, in order."""
        known = published_views(self.project)
        if known is not None:
            return known
        # Start-up time: pyspark.
        from polynya.lake.read.hints import view_names

        return view_names(self.spark)

    def columns(self, view: str) -> list[str]:
        """Names of the columns of a view; none where only Spark knows, which does not run."""
        if self._spark is not None:
            return self._spark.table(view).columns
        try:
            return view_columns(self.project, view)
        except NotEmbeddedError:
            return []

    def _reason_or_answer(self, statement: Statement, limit: int | None) -> Answer | str:
        try:
            schema, batches = answer_embedded(self.project, statement.text, limit=limit)
        except NotEmbeddedError as error:
            return str(error)
        except PolynyaError:
            raise
        except Exception as error:
            # A fault of ours, and no fault of the fast way may cost an answer: people are told.
            failure = f"the embedded engine failed: {type(error).__name__}: {error}"
            log.warning("%s", failure)
            log.debug("where it failed", exc_info=error)
            return failure
        return Answer(schema, iter(batches))
