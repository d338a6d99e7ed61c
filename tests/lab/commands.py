"""The commands of the product in this process, over the JVM of the tests."""

from __future__ import annotations

import io
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, Final

import pytest

from polynya.cli.main import main
from polynya.lake.spark.api import SparkSession
from polynya.lake.spark.catalog import CATALOG, spark_properties
from polynya.lake.spark.session import use_in_this_thread
from polynya.model.loader import LoadedProject
from tests.oracle.packs.driver import CommandDriver, Printed

#: A sixth of a test's time was generating and compiling code, for queries over a dozen rows that
#: run once. `make test-slow`, `make scenarios` and the processes that tests start generate it, and
#: so do the views that are compared with those of other engines.
INTERPRETED: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}

#: The same for processes with one JVM each, that run each query once: as environment.
INTERPRETED_THERE: Final = {
    "PYSPARK_SUBMIT_ARGS": " ".join(
        [*(f"--conf {name}={value}" for name, value in INTERPRETED.items()), "pyspark-shell"]
    )
}


class InProcessDriver(CommandDriver):
    """Each command has a session of its own, as a new process would: nothing is cached in it."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def call(self, *arguments: str) -> Printed:
        """See `CommandDriver`."""
        output, errors = io.StringIO(), io.StringIO()
        try:
            with (
                commands_over(lambda project: fresh_session(self._spark, project)),
                redirect_stdout(output),
                redirect_stderr(errors),
            ):
                code = main(arguments)
        finally:
            use_everywhere(self._spark)
        return Printed(code, output.getvalue(), errors.getvalue())


@contextmanager
def commands_over(session: Callable[[LoadedProject], Any]) -> Iterator[pytest.MonkeyPatch]:
    """Let commands take the session that `session` makes, and no signals beyond the block."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    kept = [signal.getsignal(number) for number in numbers]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polynya.engine.session.start_spark", lambda project, **_: session(project))
        try:
            yield patch
        finally:
            for number, handler in zip(numbers, kept, strict=True):
                signal.signal(number, handler)


def fresh_session(spark: Any, project: LoadedProject, *, compiled: bool = False) -> Any:
    """A session of its own over the catalog of a project, in the JVM of the tests.

    It takes the place of `spark` there, until `use_everywhere(spark)`. Queries are `compiled` as
    users have them, or as those of `spark` are.
    """
    project.target.warehouse.mkdir(parents=True, exist_ok=True)
    session = spark.newSession()
    if not compiled:
        for name in INTERPRETED:
            session.conf.set(name, spark.conf.get(name))
    for name, value in spark_properties(project.target).items():
        session.conf.set(f"spark.sql.catalog.{CATALOG}.{name}", value)
    use_everywhere(session)
    return session


def use_everywhere(spark: Any) -> None:
    """Make a session the one that Java code finds, in this thread and in new ones."""
    spark._jvm.org.apache.spark.sql.SparkSession.setDefaultSession(spark._jsparkSession)
    use_in_this_thread(spark)
