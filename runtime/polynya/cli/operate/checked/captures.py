"""`polynya doctor` of captures: the engine, and each database that a capture reads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from polynya.cli.exit_codes import ExitCode
from polynya.cli.operate.checks import Check, guarded
from polynya.model.reading.loader import LoadedProject
from polynya.observe.events import counted


def capture_checks(project: LoadedProject) -> Iterator[Check]:
    """Everything that captures need; nothing of a project without one."""
    if not project.captures:
        return
    yield guarded("capture engine", lambda: _engine(project))
    for name in sorted({task.connection for task in project.captures}):
        yield guarded(f"connection {name}", partial(_connection, project, name))


def _engine(project: LoadedProject) -> Check:
    # Start-up time: the lake room.
    from polynya.lake.spark.jars import DEBEZIUM, jar_paths

    jars = jar_paths(groups=(DEBEZIUM,), repository=project.target.maven_repository)
    return Check("capture engine", "ok", f"Debezium, {counted(len(jars), 'jar')} verified")


def _connection(project: LoadedProject, name: str) -> Check:
    # Start-up time: drivers of databases.
    from polynya.engine.verbs.captures import findings_of

    found = findings_of(project, name)
    wrong = [one for one in found if not one.ok]
    if wrong:
        detail = f"{len(wrong)} of {len(found)} are wrong; the first: {wrong[0].what}"
        fix = f"`polynya connection test {name}`"
        return Check(f"connection {name}", "fail", detail, fix, ExitCode.FAILED)
    return Check(f"connection {name}", "ok", f"{found[0].what}; {len(found)} of {len(found)} right")
