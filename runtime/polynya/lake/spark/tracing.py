"""Spans and logs of Spark's work: SQL statements, calls through py4j, and jobs.

Methods of PySpark become spans only when a trace is written (`observe/trace.py`). `--debug` also
logs each statement.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

from polynya.lake.spark import api
from polynya.observe import trace
from polynya.observe.trace import TraceEvent, named, span

if TYPE_CHECKING:
    from polynya.lake.spark.api import SparkSession

log = logging.getLogger(__name__)
_here = threading.local()

#: Of a statement in the log: the fold of a wide table takes pages.
_MAX_STATEMENT_CHARACTERS: Final = 4000


def trace_session(spark: SparkSession) -> None:
    """Show the work of a session in the trace, if one is written."""
    if not trace.is_on():
        return
    if not hasattr(api.JavaClient.send_command, "__wrapped__"):
        api.JavaClient.send_command = _counted(api.JavaClient.send_command)
        frame = spark.range(1)
        _trace_methods(spark, type(spark), "sql", "createDataFrame")
        _trace_methods(spark, type(frame), "toArrow", "collect", "count", "localCheckpoint")
        _trace_methods(spark, type(frame.write), "save")
    trace.add_source(Jobs(spark).ended)


def _counted(send: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(send)
    def counting(*args: Any, **kwargs: Any) -> Any:
        trace.count("py4j_calls")
        return send(*args, **kwargs)

    return counting


def _trace_methods(spark: SparkSession, owner: type, *names: str) -> None:
    """Make spans of methods; their jobs name the dataset that they work for."""
    for name in names:
        setattr(owner, name, _traced(spark, f"spark.{name}", getattr(owner, name)))


def _traced(spark: SparkSession, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def traced(*args: Any, **kwargs: Any) -> Any:
        if trace.is_on() and getattr(_here, "subject", "") != trace.subject():
            _here.subject = trace.subject()
            spark.sparkContext.setLocalProperty("spark.job.description", _here.subject)
        with span(name):
            return method(*args, **kwargs)

    return traced


def log_statements(spark: SparkSession) -> None:
    """Log every statement of this process from now on, with `--debug`."""
    kind = type(spark)
    if log.isEnabledFor(logging.DEBUG) and not hasattr(kind.sql, "logs_statements"):
        logged = _with_log(kind.sql)
        logged.logs_statements = True
        setattr(kind, "sql", logged)  # noqa: B010 - a method of PySpark's is exchanged


def _with_log(sql: Callable[..., Any]) -> Any:
    @wraps(sql)
    def logging_sql(session: SparkSession, statement: str, *args: Any, **kwargs: Any) -> Any:
        log.debug("SQL: %s", " ".join(statement.split())[:_MAX_STATEMENT_CHARACTERS])
        return sql(session, statement, *args, **kwargs)

    return logging_sql


class Jobs:
    """The jobs of a session, each reported once, after its end. A lane holds one at a time."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark._jvm
        context: Any = spark.sparkContext
        self._context: Any = context._jsc.sc()
        scala = getattr(jvm.com.fasterxml.jackson.module.scala, "DefaultScalaModule$")
        self._json = jvm.com.fasterxml.jackson.databind.ObjectMapper()
        self._json.registerModule(getattr(scala, "MODULE$"))
        self._pid = int(jvm.java.lang.ProcessHandle.current().pid())
        self._next = int(self._context.dagScheduler().nextJobId())
        self._running: list[int] = []
        self._lanes: list[float] = []

    def ended(self) -> Iterator[TraceEvent]:
        """Jobs that have ended since the last time."""
        if self._context.isStopped():
            return
        self._context.listenerBus().waitUntilEmpty()
        until = int(self._context.dagScheduler().nextJobId())
        self._running += range(self._next, until)
        self._next = until
        for number in list(self._running):
            job = self._job(number)
            if job is None or job["completionTime"] is not None:
                self._running.remove(number)
                yield from () if job is None else self._events(job)

    def _job(self, number: int) -> dict[str, Any] | None:
        """What Spark knows of a job; None when it has forgotten it."""
        try:
            document = self._json.writeValueAsString(self._context.statusStore().job(number))
        except api.Py4JError:
            return None
        job: dict[str, Any] = json.loads(document)
        return job

    def _events(self, job: dict[str, Any]) -> Iterator[TraceEvent]:
        began, ended = job["submissionTime"] * 1e3, job["completionTime"] * 1e3
        lane = next((n for n, end in enumerate(self._lanes) if end <= began), len(self._lanes))
        if lane == len(self._lanes):
            yield named("process_name", "Spark", self._pid)
            yield named("thread_name", f"jobs {lane + 1}", self._pid, lane + 1)
        self._lanes[lane : lane + 1] = [ended]
        taken = {"pid": self._pid, "tid": lane + 1, "ts": began, "dur": ended - began}
        args = {
            "dataset": job["description"] or "",
            "action": job["name"].split(" at ")[0],
            "stages": len(job["stageIds"]),
            "tasks": job["numTasks"],
            "status": job["status"],
        }
        yield {"ph": "X", "name": f"job {job['jobId']}", "cat": "spark", **taken, "args": args}
