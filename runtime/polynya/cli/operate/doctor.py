"""`polynya doctor`: one line per thing that has to work, each with a fix."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from polynya.cli.context import CommandContext, Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.operate.adopt import tell_adopted
from polynya.cli.operate.checked.captures import capture_checks
from polynya.cli.operate.checked.coordination import coordination_check
from polynya.cli.operate.checks import Check, Status, guarded
from polynya.cli.operate.doctor_machine import machine_checks, memory_check, output_check
from polynya.model.errors import ConfigErrors
from polynya.model.reading.loader import LoadedProject

_STYLES: Final[dict[Status, str]] = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(
    *,
    stream: str | None = None,
    coordination: str | None = None,
    cluster: str | None = None,
    aws: bool = False,
    repair: bool = False,
    context: Context,
) -> int:
    """Check everything that a run needs: Java, memory, jars, project, landing, warehouse, catalog.

    For captures it also checks the engine, and each database like `polynya connection test`. For a
    target on AWS it checks identity, buckets, catalog and stream, and names missing grants. For a
    coordination place it checks whether nodes can coordinate there. It removes what it writes as a
    test, except one record in the stream.

    For example: `polynya doctor --json`.

    Args:
        stream: the workload stream, a Kinesis data stream by name or ARN; default: none.
        coordination: where nodes of a cluster agree, as the agents have it; default
            `POLYNYA_COORDINATION`, else it is not checked.
        cluster: its name; default `POLYNYA_CLUSTER`, else the project's name.
        aws: also check the account: its quotas, and the defaults of Lake Formation.
        repair: first register the tables of the warehouse again if the catalog on this machine is
            lost or damaged, or names missing files. A damaged catalog is moved aside.
        context: given by `main`.
    """
    if repair:
        _repair(context)
    worst = 0
    failed = 0
    place = coordination or os.environ.get("POLYNYA_COORDINATION")
    named = cluster or os.environ.get("POLYNYA_CLUSTER")
    for check in _checks(context, stream, place, named, aws=aws):
        _say(context, check)
        if check.status == "fail":
            failed += 1
            worst = worst or check.exit_code
    summary = "everything is in place" if not failed else f"{failed} of the checks failed"
    context.output.result("doctor", {"ok": not failed, "failed": failed}, summary)
    return worst


def _checks(
    context: CommandContext,
    stream: str | None,
    coordination: str | None,
    cluster: str | None,
    *,
    aws: bool,
) -> Iterator[Check]:
    yield guarded("java", _java)
    yield guarded("memory", memory_check)
    yield output_check()
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
    yield from machine_checks(project)
    yield from capture_checks(project)
    if project.target.on_aws or stream is not None:
        # Start-up time: the AWS SDK.
        from polynya.cli.operate.doctor_aws import aws_checks

        yield from aws_checks(project, stream)
    if coordination:
        named, access = cluster or project.project.name, project.target.aws
        yield guarded("coordination", partial(coordination_check, coordination, named, access))
    if aws:
        from polynya.cli.operate.doctor_account import account_checks

        yield from account_checks(project.target.aws)


def _repair(context: CommandContext) -> None:
    # The lake room is imported where it is needed only: start-up time.
    from polynya.lake.spark.naming import CATALOG
    from polynya.lake.warehouse.adopt import repair

    done = repair(context.load(tolerant=True).target, CATALOG)
    tell_adopted(context, done, "registered")


def _java() -> Check:
    # The lake room is imported where it is needed only: start-up time.
    from polynya.lake.spark.java import find_java

    java = find_java()
    return Check("java", "ok", f"{java.version} from {java.origin} at {java.runtime}")


def _jars(project: LoadedProject | None) -> Check:
    from polynya.lake.spark.jars import jars_of

    found = jars_of(None) if project is None else jars_of(project.target, project.stream_jars)
    paths = [Path(path) for path in found]
    return Check("jars", "ok", f"{len(paths)} verified in {paths[0].parent}")


def _project(project: LoadedProject) -> Check:
    if project.errors:
        count = len(project.errors)
        detail = f"{count} error{'s' if count > 1 else ''}; the first: {project.errors[0]}"
        return Check("project", "fail", detail, "polynya validate", ExitCode.USAGE)
    detail = f"{project.project.name}, target {project.target.name}, tasks: {len(project.works)}"
    if not project.works:
        return Check("project", "warn", detail, "add files to `tasks/`")
    return Check("project", "ok", detail)


def _say(context: CommandContext, check: Check) -> None:
    from rich.text import Text

    line = Text.assemble(
        (f"{check.status:5}", _STYLES[check.status]), f"{check.name:18} {check.detail}"
    )
    if check.fix and check.status != "ok":
        line.append(f"\n{'':5}fix: {check.fix}")
    data = {"name": check.name, "status": check.status, "detail": check.detail, "fix": check.fix}
    context.output.result("check", data, line)
