"""Checks of well-formed captures, connections and streaming landings. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final

from polynya.model.checks import unsecured_login
from polynya.model.config.capture import CaptureLanding, IncrementalExtraction, has_wildcard
from polynya.model.config.client_properties import connector_problems, property_problem
from polynya.model.config.connection import GENERIC, Connection, is_this_machine
from polynya.model.config.fields import KEEPING
from polynya.model.config.masks import Mask
from polynya.model.config.server_connection import AnyConnection
from polynya.model.config.stream_landing import (
    OWN_PROPERTIES,
    FilesSource,
    KafkaServer,
    Source,
    StreamingLanding,
)
from polynya.model.documents.problems import Problem, suggest
from polynya.model.documents.yaml import NodePath
from polynya.model.error_catalogue.bindings import CONNECTION_CONFLICT
from polynya.model.error_catalogue.capture import (
    CAPTURE_SETTINGS_CONFLICT,
    CONNECTION_MISSING,
    CONNECTION_NOT_SECURE,
    MASK_AMBIGUOUS,
    TABLE_NOT_CAPTURED,
)
from polynya.model.error_catalogue.configuration import NO_SUCH_TARGET
from polynya.model.error_catalogue.stream_sources import KAFKA_PROPERTY_REFUSED
from polynya.model.error_catalogue.streams import (
    CONTENT_NOT_IN_FILES,
    LANDING_INCOMPLETE,
    READERS_NOT_FOR_FILES,
    SETTING_NEEDS_LANDING,
    START_TIME_NEEDS_DATES,
)
from polynya.model.http_checks import landed_api_problems
from polynya.model.names import shown

#: Spark's prefix for properties of the client; project files have Kafka's names.
_PREFIX: Final = "kafka."
#: Settings of a landing that are about landed batches in the landing zone.
_OF_LANDED: Final = ("folder", "folder_retention", "max_uncopied")


def landing_problems(task: StreamingLanding) -> Iterator[Problem]:
    """Yield the problems of one landing that need no other file."""
    yield from _source_problems(task.source)
    into = task.into
    if (into.each is None) == (into.table is None):
        yield Problem(
            ("into",),
            LANDING_INCOMPLETE(
                "exactly one of `each` and `table` is expected here",
                fix="write `{each: topic}` or `{table: NAME}`",
            ),
        )
    if task.direct:
        yield from _direct_problems(task)
    if task.source.kafka is not None:
        yield from kafka_problems(task.source.kafka, ("source", "kafka"))
    if task.source.files is not None:
        yield from _files_problems(task, task.source.files)
    if task.source.http is not None:
        yield from landed_api_problems(task, task.source.http)


def _direct_problems(task: StreamingLanding) -> Iterator[Problem]:
    for name in _OF_LANDED:
        if name in task.model_fields_set:
            yield Problem((name,), SETTING_NEEDS_LANDING(setting=name))


def _source_problems(source: Source) -> Iterator[Problem]:
    chosen = source.chosen
    if len(chosen) == 1:
        return
    names = " and ".join(f"`{name}`" for name in chosen)
    message = f"a landing reads one source, not {names}" if chosen else "no source is named"
    fix = f"write one of: {', '.join(sorted(Source.model_fields))}"
    yield Problem(("source",), LANDING_INCOMPLETE(message, fix=fix))


def _files_problems(task: StreamingLanding, source: FilesSource) -> Iterator[Problem]:
    if task.readers != "auto":
        yield Problem(("readers",), READERS_NOT_FOR_FILES())
    if isinstance(task.start_from, datetime) and not source.has_dates:
        yield Problem(("start_from",), START_TIME_NEEDS_DATES())
    if task.content.type == "avro_with_schema":
        yield Problem(("content", "type"), CONTENT_NOT_IN_FILES())


def kafka_problems(source: KafkaServer, place: NodePath) -> Iterator[Problem]:
    """Yield why brokers cannot be reached so. `place` is where the settings stand."""
    yield from unsecured_login(source, place)
    for name, value in source.properties.items():
        path = (*place, "properties", name)
        if name in OWN_PROPERTIES:
            message = f"a task cannot set the property {shown(name)}: {OWN_PROPERTIES[name]}"
            yield Problem(path, KAFKA_PROPERTY_REFUSED(message, fix="remove it"))
        elif name.startswith(_PREFIX):
            yield Problem(
                path,
                KAFKA_PROPERTY_REFUSED(
                    f"properties have Kafka's names, and none of them begins with `{_PREFIX}`",
                    fix=f"write `{name.removeprefix(_PREFIX)}`",
                ),
            )
        elif name != name.lower():
            message = f"properties of Kafka are in lower case, and {shown(name)} is not"
            fix = "remove it" if name.lower() in OWN_PROPERTIES else f"write `{name.lower()}`"
            yield Problem(path, KAFKA_PROPERTY_REFUSED(message, fix=fix))
        elif problem := property_problem(name, value.get_secret_value()):
            message, fix = problem
            yield Problem(path, KAFKA_PROPERTY_REFUSED(message, fix=fix))
    if not any(part.strip() for part in source.bootstrap_servers.split(",")):
        yield Problem(
            (*place, "bootstrap_servers"),
            LANDING_INCOMPLETE(
                "no broker is named",
                fix="write `bootstrap_servers: HOST:PORT`, or `connection: NAME`",
            ),
        )


#: Settings that only one type of database has.
_OF_POSTGRESQL: Final = ("rows", "slot", "publication")
#: Settings that need more of a database than Debezium alone does.
_OF_OWN_LOADS: Final = ("load", "mask")
_OF_CHANGES: Final = ("slot", "publication")


def connection_problems(connection: Connection) -> Iterator[Problem]:
    """Yield the problems of one connection that need no other file."""
    if connection.engine.model_fields_set and connection.type not in GENERIC:
        yield Problem(
            ("engine",),
            CAPTURE_SETTINGS_CONFLICT(
                f"connections of type {connection.type} need no `engine`",
                fix=f"remove it; it is for {', '.join(sorted(GENERIC))}",
            ),
        )
    for name, (message, fix) in connector_problems(connection.engine.properties):
        error = CAPTURE_SETTINGS_CONFLICT(message, fix=fix)
        yield Problem(("engine", "properties", name), error)
    if connection.type == "postgresql" and connection.database is None:
        yield Problem(
            (),
            CAPTURE_SETTINGS_CONFLICT(
                "a connection to PostgreSQL needs the name of its database",
                fix="add `database: NAME`",
            ),
        )
    yield from _plain_problems(connection, ())
    for name, override in connection.targets.items():
        changed = {"tls", "host"} & override.model_fields_set
        if changed:
            key = "tls" if "tls" in changed else "host"
            yield from _plain_problems(connection.in_target(name), ("targets", name, key))


def _plain_problems(connection: Connection, path: NodePath) -> Iterator[Problem]:
    """Yield a connection to another machine without TLS, or with an unverified server."""
    if connection.tls.mode == "disable" and not is_this_machine(connection.host):
        yield Problem(
            path or ("tls", "mode"),
            CONNECTION_NOT_SECURE(
                f"{shown(connection.host)} is on another machine, and `tls` is disabled: password "
                "and rows would go over the network unencrypted"
            ),
        )
    unverified = connection.tls.mode == "require" and not connection.tls.allow_unverified
    if unverified and not is_this_machine(connection.host):
        yield Problem(
            path or ("tls", "mode"),
            CONNECTION_NOT_SECURE(
                f"{shown(connection.host)} is on another machine, and `require` does not verify "
                "its identity: another server could get the password",
                fix="write `tls: {mode: verify}`, with `ca` if the authority is your own, or add "
                "`allow_unverified: true`",
            ),
        )


def target_problems(named: Iterable[str], targets: Collection[str]) -> Iterator[Problem]:
    """Yield overrides for targets that the project does not have; `named` are all overrides."""
    for name in named:
        if name not in targets:
            fix = suggest(name, list(targets))
            yield Problem(("targets", name), NO_SUCH_TARGET(fix=fix, target=shown(name)))


def capture_problems(task: CaptureLanding) -> Iterator[Problem]:
    """Yield the problems of one capture that need no other file."""
    yield from _method_problems(task)
    for path, table in _named_tables(task):
        if has_wildcard(table) or not task.tables.takes(table):
            yield Problem(path, TABLE_NOT_CAPTURED(table=shown(table)))
    for table, columns in task.mask.items():
        for column, mask in columns.items():
            if isinstance(mask, Mask) and len(mask.chosen) != 1:
                yield Problem(("mask", table, column), MASK_AMBIGUOUS())
    pauses = task.errors.environment
    if pauses.from_ > pauses.to:
        yield Problem(
            ("errors", "environment", "from"),
            CAPTURE_SETTINGS_CONFLICT(
                "the first pause is longer than the longest", fix="make `from` shorter than `to`"
            ),
        )


def _method_problems(task: CaptureLanding) -> Iterator[Problem]:
    yield from _schedule_problems(task)
    yield from _incremental_problems(task)
    yield from _table_reload_problems(task)
    if not task.follows:
        for name in _OF_CHANGES:
            if name in task.model_fields_set:
                method = task.update_method
                message = f"`update_method: {method}` follows no changes, so it has no `{name}`"
                yield Problem((name,), CAPTURE_SETTINGS_CONFLICT(message, fix="remove it"))


def _schedule_problems(task: CaptureLanding) -> Iterator[Problem]:
    if not task.follows and task.schedule is None:
        yield Problem(
            ("update_method",),
            CAPTURE_SETTINGS_CONFLICT(
                f"`update_method: {task.update_method}` needs a schedule",
                fix="add a `schedule`, such as `30 2 * * *` or `FREQ=DAILY;BYHOUR=2`",
            ),
        )
    if task.follows and task.schedule is not None:
        yield Problem(
            ("schedule",),
            CAPTURE_SETTINGS_CONFLICT(
                "`update_method: cdc` captures changes all the time, without a schedule",
                fix="remove `schedule`, or write `update_method: reload`; `reload: {schedule: …}` "
                "compares the tables with new loads while changes are captured",
            ),
        )
    if task.update_method != "reload" and "reload_mode" in task.model_fields_set:
        yield Problem(
            ("reload_mode",),
            CAPTURE_SETTINGS_CONFLICT(
                f"`update_method: {task.update_method}` does not load everything at each moment",
                fix="write `reload: {schedule: …, mode: …}`",
            ),
        )


def _incremental_problems(task: CaptureLanding) -> Iterator[Problem]:
    settings = task.incremental
    if task.update_method != "incremental":
        if settings is not None:
            message = "`incremental` is for `update_method: incremental`"
            yield Problem(("incremental",), CAPTURE_SETTINGS_CONFLICT(message))
        return
    if settings is None or not (settings.column or any(t.column for t in settings.tables.values())):
        yield Problem(
            ("update_method",),
            CAPTURE_SETTINGS_CONFLICT(
                "`update_method: incremental` needs the column by which new rows are found",
                fix="add `incremental: {column: updated_at}`",
            ),
        )
        return
    yield from _masked_column_problems(task, settings)


def _masked_column_problems(
    task: CaptureLanding, settings: IncrementalExtraction
) -> Iterator[Problem]:
    """A column that grows stands in the position of landed batches, as it is."""
    for table, columns in task.mask.items():
        own = settings.tables.get(table)
        column = own.column if own is not None and own.column else settings.column
        if column in columns:
            message = (
                f"{shown(str(column))} finds the new rows of {shown(table)}, so its values land"
            )
            fix = "remove the mask, or find new rows by another column"
            yield Problem(("mask", table, column), CAPTURE_SETTINGS_CONFLICT(message, fix=fix))


def _table_reload_problems(task: CaptureLanding) -> Iterator[Problem]:
    if task.reload is None:
        return
    if task.update_method == "reload":
        yield Problem(
            ("reload",),
            CAPTURE_SETTINGS_CONFLICT(
                "`update_method: reload` loads everything at each moment of its `schedule`",
                fix="remove `reload`; `reload_mode` is the mode",
            ),
        )
    filtered = [table for table in task.load.filter if task.reload.takes(table)]
    if filtered and task.follows and task.reload.mode != KEEPING:
        yield Problem(
            ("reload", "mode"),
            CAPTURE_SETTINGS_CONFLICT(
                f"`load.filter` excludes rows of {shown(filtered[0])}, which the reload would "
                "delete",
                fix=f"write `mode: {KEEPING}`, or remove the filter",
            ),
        )


def _named_tables(task: CaptureLanding) -> Iterator[tuple[NodePath, str]]:
    for table in task.load.order:
        yield ("load", "order", table), table
    for table in task.load.filter:
        yield ("load", "filter", table), table
    for table in task.mask:
        yield ("mask", table), table
    for table in task.rows:
        yield ("rows", table), table
    for table in task.incremental.tables if task.incremental is not None else ():
        yield ("incremental", "tables", table), table


def connected_problems(
    task: CaptureLanding, connections: Mapping[str, AnyConnection | None]
) -> Iterator[Problem]:
    """Yield why a capture cannot use its connection; None stands for a wrong connection."""
    if task.connection not in connections:
        fix = suggest(task.connection, sorted(connections)) or (
            f"add `connections/{task.connection}.yml`"
        )
        error = CONNECTION_MISSING(fix=fix, connection=shown(task.connection))
        yield Problem(("connection",), error)
        return
    connection = connections[task.connection]
    if connection is not None and not isinstance(connection, Connection):
        message = (
            f"{shown(task.connection)} is of type {connection.type}, and a capture needs a database"
        )
        yield Problem(("connection",), CONNECTION_CONFLICT(message, fix="name another connection"))
        return
    if connection is None or connection.type == "postgresql":
        return
    for name in _OF_POSTGRESQL:
        if name in task.model_fields_set:
            message = (
                f"`{name}` is only for PostgreSQL, and {shown(task.connection)} is of type "
                f"{connection.type}"
            )
            yield Problem((name,), CAPTURE_SETTINGS_CONFLICT(message, fix="remove it"))
    if connection.type in GENERIC:
        yield from _generic_problems(task, connection)


def _generic_problems(task: CaptureLanding, connection: Connection) -> Iterator[Problem]:
    """Yield settings that a database cannot have if Debezium alone loads and follows it."""
    for name in _OF_OWN_LOADS:
        if name in task.model_fields_set:
            message = f"`{name}` is not for type {connection.type}, which Debezium loads"
            yield Problem((name,), CAPTURE_SETTINGS_CONFLICT(message, fix="remove it"))
    if connection.type == "mongodb" and task.lobs is not None:
        message = "a document of MongoDB is one value that cannot be cut"
        yield Problem(("lobs",), CAPTURE_SETTINGS_CONFLICT(message, fix="remove it"))
    if task.reload is not None:
        yield Problem(
            ("reload",),
            CAPTURE_SETTINGS_CONFLICT(
                f"a database of type {connection.type} cannot be loaded beside its changes",
                fix="remove it; `polynya landing reload` loads all tables again",
            ),
        )
    if not task.follows:
        yield Problem(
            ("update_method",),
            CAPTURE_SETTINGS_CONFLICT(
                f"a database of type {connection.type} cannot be loaded without its changes",
                fix="write `update_method: cdc`, and remove `schedule`",
            ),
        )
