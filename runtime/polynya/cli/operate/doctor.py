"""`polynya doctor`: one line per thing that has to work, each with a fix."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.operate.checks import Check, Status, guarded
from polynya.model.errors import ConfigErrors
from polynya.model.reading.loader import LoadedProject

_STYLES: Final[dict[Status, str]] = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(*, stream: str | None = None, aws: bool = False, context: Context) -> int:
    """Check everything that a run needs: Java, jars, project, landing and warehouse.

    Of a target on AWS: identity, buckets, catalog and stream too, each with the grant that is
    missing. What it writes to try it takes back, but for one record in the stream.

    For example: `polynya doctor --json`.

    Args:
        stream: the workload stream, a Kinesis data stream by name or ARN; default: none.
        aws: look at the account, too: its quotas, and the defaults of Lake Formation.
        context: given by `main`.
    """
    worst = 0
    failed = 0
    for check in _checks(context, stream, aws=aws):
        _say(context, check)
        if check.status == "fail":
            failed += 1
            worst = worst or check.exit_code
    summary = "everything is in place" if not failed else f"{failed} of the checks failed"
    context.output.result("doctor", {"ok": not failed, "failed": failed}, summary)
    return worst


def _checks(context: CommandContext, stream: str | None, *, aws: bool) -> Iterator[Check]:
    yield guarded("java", _java)
    project: LoadedProject | None = None
    problem: ConfigErrors | None = None
    try:
        project = context.load(tolerant=True)
    except ConfigErrors as error:
        problem = error
    yield guarded("jars", lambda: _jars(project))
    if project is None:
        yield Check("project", "fail", str(problem), "polynya validate", ExitCode.USAGE)
        return
    yield _project(project)
    landing, warehouse = project.target.landing, project.target.warehouse
    if isinstance(landing, Path):
        yield _landing(landing)
        for task in project.tasks:
            yield _task_folder(task.name, landing / task.landing.path)
    if isinstance(warehouse, Path):
        yield _warehouse(warehouse)
    if project.target.on_aws or stream is not None:
        # Start-up time: the AWS SDK.
        from polynya.cli.operate.doctor_aws import aws_checks

        yield from aws_checks(project, stream)
    if aws:
        from polynya.cli.operate.doctor_account import account_checks

        yield from account_checks(project.target.aws)


def _java() -> Check:
    # The lake room is imported where it is needed only: start-up time.
    from polynya.lake.spark.java import find_java

    java = find_java()
    return Check("java", "ok", f"{java.version} from {java.origin} at {java.runtime}")


def _jars(project: LoadedProject | None) -> Check:
    from polynya.lake.spark.jars import jars_of

    paths = [Path(path) for path in jars_of(project.target if project is not None else None)]
    return Check("jars", "ok", f"{len(paths)} verified in {paths[0].parent}")


def _project(project: LoadedProject) -> Check:
    if project.errors:
        count = len(project.errors)
        detail = f"{count} error{'s' if count > 1 else ''}; the first: {project.errors[0]}"
        return Check("project", "fail", detail, "polynya validate", ExitCode.USAGE)
    detail = f"{project.project.name}, target {project.target.name}, tasks: {len(project.tasks)}"
    if not project.tasks:
        return Check("project", "warn", detail, "add files to `tasks/`")
    return Check("project", "ok", detail)


def _landing(folder: Path) -> Check:
    if not folder.is_dir():
        return Check("landing", "fail", f"no folder {folder}", f"mkdir -p {folder}")
    if not os.access(folder, os.R_OK | os.X_OK):
        return Check("landing", "fail", f"{folder} is not readable", f"chmod u+rx {folder}")
    return Check("landing", "ok", str(folder))


def _task_folder(task: str, folder: Path) -> Check:
    name = f"landing of {task}"
    if not folder.is_dir():
        return Check(name, "warn", f"no folder {folder} yet", "files that land there are found")
    return Check(name, "ok", str(folder))


def _warehouse(folder: Path) -> Check:
    """Really write: permission bits say nothing about full disks and read-only mounts."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=existing) as file:
            file.write(b"polynya")
    except OSError as error:
        fix = "choose another warehouse in polynya.yml, or fix the permissions"
        return Check("warehouse", "fail", f"cannot write to {existing}: {error.strerror}", fix)
    return Check("warehouse", "ok", f"{folder}{'' if existing == folder else ' (will be created)'}")


def _say(context: CommandContext, check: Check) -> None:
    from rich.text import Text

    line = Text.assemble(
        (f"{check.status:5}", _STYLES[check.status]), f"{check.name:18} {check.detail}"
    )
    if check.fix and check.status != "ok":
        line.append(f"\n{'':5}fix: {check.fix}")
    data = {"name": check.name, "status": check.status, "detail": check.detail, "fix": check.fix}
    context.output.result("check", data, line)
