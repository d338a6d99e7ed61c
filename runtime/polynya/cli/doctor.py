"""`polynya doctor`: checks of machine, project, captures and coordination, each with a fix."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final
from uuid import uuid4

from polynya.cli.checks import Check, guarded, say_check
from polynya.cli.connections import check_connection, connection_checks
from polynya.cli.context import CommandContext, Context
from polynya.cli.doctor_tables import tables_check
from polynya.cli.exit_codes import ExitCode
from polynya.cli.tables import tell_adopted
from polynya.model.config.aws import AwsAccess
from polynya.model.config.derived import DerivedTask
from polynya.model.config.registered import RegisteredDataset
from polynya.model.config.stream_landing import DirectTask
from polynya.model.config.target import ResolvedTarget
from polynya.model.errors import ConfigErrors, PolynyaError
from polynya.model.loader import LoadedProject
from polynya.observe.events import counted

#: With fewer free bytes a run soon ends in an error.
_LITTLE_ROOM: Final = 512 * 2**20


def machine_checks(project: LoadedProject) -> Iterator[Check]:
    """Everything of a project that is on this machine."""
    landing, warehouse = project.target.landing, project.target.warehouse
    if isinstance(landing, Path):
        yield _landing(landing, makes=bool(project.captures))
        for task in project.tasks:
            if isinstance(task, DirectTask | DerivedTask):
                continue
            yield _task_folder(task.name, landing / task.landing.path)
    if isinstance(warehouse, Path):
        yield guarded("warehouse", lambda: _warehouse(warehouse))
    if project.target.rest is None and not project.target.on_glue:
        yield guarded("catalog", lambda: _catalog(project.target))


def _has_tables(project: LoadedProject) -> bool:
    from polynya.lake.spark.catalog import CATALOG
    from polynya.lake.warehouse.check import entries_of

    return any(not entry.is_view for entry in entries_of(project.target, CATALOG))


def memory_check() -> Check:
    """The heap that a run would start with."""
    # The lake room is imported where it is needed only: start-up time.
    from polynya.lake.spark.session import MEMORY_VARIABLE, asked_heap, driver_heap, machine_memory

    machine, asked = machine_memory(), os.environ.get(MEMORY_VARIABLE)
    heap = asked_heap(asked, machine) if asked else driver_heap(machine, dedicated=False)
    origin = f" by {MEMORY_VARIABLE}" if asked else ""
    return Check("memory", "ok", f"heap of {heap} MiB{origin}, the machine has {machine} MiB")


def output_check() -> Check:
    """Whether every character can be printed."""
    encoding = sys.stdout.encoding or "ascii"
    try:
        "\u03b1\u20ac\u6f22".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return Check(
            "output",
            "warn",
            f"{encoding} cannot print every character",
            "PYTHONIOENCODING=utf-8, or a locale with UTF-8 such as LANG=C.UTF-8",
        )
    return Check("output", "ok", encoding)


def _landing(folder: Path, *, makes: bool) -> Check:
    if not folder.is_dir() and makes:
        return Check("landing", "ok", f"{folder} (will be created)")
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
    from polynya.lake.warehouse.check import refuse_unwritable

    existing = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        refuse_unwritable(existing)
    except PolynyaError as error:
        fix = "choose another warehouse in polynya.yml, or fix the permissions"
        detail = f"cannot write to {existing}: {error.why}"
        return Check("warehouse", "fail", detail, error.fix or fix, error.exit_code)
    free = shutil.disk_usage(existing).free
    room = f"{free / 2**30:.1f} GiB free"
    if free < _LITTLE_ROOM:
        return Check("warehouse", "warn", f"{folder}: {room}", "make room on the disk")
    made = "" if existing == folder else " (will be created)"
    return Check("warehouse", "ok", f"{folder}{made}, {room}")


def _catalog(target: ResolvedTarget) -> Check:
    from polynya.lake.spark.catalog import CATALOG
    from polynya.lake.warehouse.catalogs import catalog_file
    from polynya.lake.warehouse.check import entries_of, refuse_incomplete, refuse_unusable

    file, database = catalog_file(target), target.database
    place = str(file) if database is None else f"PostgreSQL at {database.text}"
    refuse_unusable(target, CATALOG)
    refuse_incomplete(target, CATALOG)
    tables = [entry for entry in entries_of(target, CATALOG) if not entry.is_view]
    if not tables:
        return Check("catalog", "ok", f"{place}: no tables yet")
    if file is not None and not os.access(file, os.W_OK):
        return Check("catalog", "fail", f"{file} cannot be written", f"chmod u+w {file}")
    return Check("catalog", "ok", f"{place}: tables: {len(tables)}, all in the warehouse")


def capture_checks(project: LoadedProject) -> Iterator[Check]:
    """Everything that captures and landings of APIs need; nothing of a project without one."""
    if project.captures:
        yield guarded("capture engine", lambda: _engine(project))
    https = (task.source.http for task in project.landings)
    apis = {source.connection for source in https if source is not None}
    for name in sorted({task.connection for task in project.captures} | apis):
        yield guarded(f"connection {name}", partial(check_connection, project, name))


def registered_checks(project: LoadedProject) -> Iterator[Check]:
    """Whether the tables that others maintain are there; nothing of a project without one."""
    for task in project.registered:
        for dataset in task.datasets():
            name = f"registered {dataset.relations.current}"
            yield guarded(name, partial(_registered, name, project, dataset))


def _registered(name: str, project: LoadedProject, dataset: RegisteredDataset) -> Check:
    # Start-up time: PyIceberg.
    from polynya.engine.project_views import ProjectViews, registered_view
    from polynya.query.translate import NotEmbeddedError

    try:
        return Check(name, "ok", registered_view(project, ProjectViews(project), dataset).summary)
    except NotEmbeddedError as error:
        return Check(name, "warn", f"only a run can tell: {error}", "`polynya run --once`")


def _engine(project: LoadedProject) -> Check:
    # Start-up time: the lake room.
    from polynya.lake.spark.jars import DEBEZIUM, jar_paths

    jars = jar_paths(groups=(DEBEZIUM,), repository=project.target.maven_repository)
    return Check("capture engine", "ok", f"Debezium, {counted(len(jars), 'jar')} verified")


def coordination_check(place: str, cluster: str, access: AwsAccess) -> Check:
    """List, read, write under conditions and delete, as nodes do; the store has to compare."""
    # Start-up time: pyarrow.
    from polynya.cluster.control.requests import coordination_store
    from polynya.cluster.coordination.store import NODES, element, probe, probe_path

    store, token = coordination_store(place, access), uuid4().hex
    leases = sum(1 for _ in store.list(f"{element(cluster)}/{NODES}"))
    probe(store, cluster, token)
    # A node that may not delete leaves its probes there; here that is what was asked.
    path = probe_path(cluster, token)
    with suppress(FileNotFoundError):
        store.delete_if_unchanged(path, store.read(path, 64).version)
    detail = f"{place}: written under conditions, compared, deleted; leases of {cluster}: {leases}"
    return Check("coordination", "ok", detail)


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

    For captures and REST APIs it also checks each connection like `polynya connection test`, and
    for captures the engine. For other connections it checks that their servers can be reached. For
    a target on AWS it checks identity, buckets, catalog and stream, and names missing grants. For a
    coordination place it checks whether nodes can coordinate there. It removes what it writes as a
    test, except one record in the stream.

    For example: `polynya doctor --json`.

    Args:
        stream: the workload stream, a Kinesis data stream by name or ARN; default: none.
        coordination: where nodes of a cluster agree, as the agents have it; default
            `POLYNYA_COORDINATION`, else it is not checked.
        cluster: its name; default `POLYNYA_CLUSTER`, else the project's name.
        aws: also check the account of the target: what a stage needs of its quotas, what they allow
            and what is used, and the defaults of Lake Formation.
        repair: first register the tables of the warehouse again if the catalog on this machine is
            lost or damaged, or names missing files. A damaged catalog is moved aside.
    """
    if repair:
        _repair(context)
    worst = 0
    failed = 0
    place = coordination or os.environ.get("POLYNYA_COORDINATION")
    named = cluster or os.environ.get("POLYNYA_CLUSTER")
    for check in _checks(context, stream, place, named, aws=aws):
        say_check(context, check)
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
    usable = True
    for check in machine_checks(project):
        yield check
        usable = usable and check.status != "fail"
    if usable and not project.target.on_glue and _has_tables(project):
        yield guarded("other engines", partial(tables_check, project))
    yield from capture_checks(project)
    yield from registered_checks(project)
    yield from connection_checks(project, servers_only=True)
    if project.target.rest is not None:
        # Start-up time: most projects have no such catalog.
        from polynya.cli.doctor_rest import rest_checks

        yield from rest_checks(project)
    if project.target.on_aws or stream is not None:
        # Start-up time: the AWS SDK.
        from polynya.cli.doctor_aws import aws_checks

        yield from aws_checks(project, stream)
    if coordination:
        named, access = cluster or project.project.name, project.target.aws
        yield guarded("coordination", partial(coordination_check, coordination, named, access))
    if aws:
        from polynya.cli.doctor_account import account_checks

        yield from account_checks(project)


def _repair(context: CommandContext) -> None:
    # The lake room is imported where it is needed only: start-up time.
    from polynya.lake.spark.catalog import CATALOG
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

    jars = jars_of(None) if project is None else jars_of(project.target, project.stream_jars)
    paths = [Path(path) for path in jars]
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
