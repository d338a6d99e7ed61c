"""What a well-formed capture or streaming landing can still have wrong. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from polynya.model.checks import unsecured_login
from polynya.model.config.capture import CaptureLanding, Mask, has_wildcard
from polynya.model.config.client_properties import connector_problems, property_problem
from polynya.model.config.connection import GENERIC, Connection, is_this_machine
from polynya.model.config.stream_landing import (
    OWN_PROPERTIES,
    FilesSource,
    KafkaSource,
    Source,
    StreamingLanding,
)
from polynya.model.documents.problems import Problem, suggest
from polynya.model.documents.yaml import NodePath
from polynya.model.names import shown

#: How Spark spells properties of the client; files write them as Kafka does.
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
            "POLYNYA-STR-001",
            "one of `each` and `table` is expected here",
            "write `{each: topic}` or `{table: NAME}`",
        )
    if task.direct:
        yield from _direct_problems(task)
    if task.source.kafka is not None:
        yield from _kafka_problems(task.source.kafka)
    if task.source.files is not None:
        yield from _files_problems(task, task.source.files)


def _direct_problems(task: StreamingLanding) -> Iterator[Problem]:
    for name in _OF_LANDED:
        if name in task.model_fields_set:
            yield Problem(
                (name,),
                "POLYNYA-STR-060",
                f"with `direct: true` nothing is landed, so `{name}` has nothing to say",
                f"take `{name}` out, or `direct`",
            )


def _source_problems(source: Source) -> Iterator[Problem]:
    chosen, known = source.chosen, sorted(Source.model_fields)
    if len(chosen) == 1:
        return
    several = " and ".join(f"`{name}`" for name in chosen)
    yield Problem(
        ("source",),
        "POLYNYA-STR-001",
        f"a landing reads one source, and here are {several}" if chosen else "no source is named",
        f"write one of: {', '.join(known)}",
    )


def _files_problems(task: StreamingLanding, source: FilesSource) -> Iterator[Problem]:
    if task.readers != "auto":
        yield Problem(
            ("readers",),
            "POLYNYA-STR-056",
            "files are read one after the other, so that they land in their order",
            "take `readers` out",
        )
    if isinstance(task.start_from, datetime) and not source.has_dates:
        yield Problem(
            ("start_from",),
            "POLYNYA-STR-043",
            "a time is compared with the dates in the paths of files, and `pattern` has none",
            "write `earliest` or `now`, or placeholders such as `<yyyy>` in `pattern`",
        )
    if task.content.type == "avro_with_schema":
        yield Problem(
            ("content", "type"),
            "POLYNYA-STR-044",
            "a file holds no single message of a schema registry",
            "write `avro`: files of Avro name their schema themselves",
        )


def _kafka_problems(source: KafkaSource) -> Iterator[Problem]:
    yield from unsecured_login(source)
    for name, value in source.properties.items():
        path = ("source", "kafka", "properties", name)
        if name in OWN_PROPERTIES:
            yield Problem(
                path,
                "POLYNYA-STR-002",
                f"the property {shown(name)} is not for you to set: {OWN_PROPERTIES[name]}",
                "leave it out",
            )
        elif name.startswith(_PREFIX):
            yield Problem(
                path,
                "POLYNYA-STR-002",
                f"properties are written as Kafka calls them, and none begins with `{_PREFIX}`",
                f"write `{name.removeprefix(_PREFIX)}`",
            )
        elif name != name.lower():
            yield Problem(
                path,
                "POLYNYA-STR-002",
                f"properties of Kafka are in lower case, and {shown(name)} is not",
                "leave it out" if name.lower() in OWN_PROPERTIES else f"write `{name.lower()}`",
            )
        elif wrong := property_problem(name, value.get_secret_value()):
            yield Problem(path, "POLYNYA-STR-002", *wrong)
    if not any(part.strip() for part in source.bootstrap_servers.split(",")):
        yield Problem(
            ("source", "kafka", "bootstrap_servers"),
            "POLYNYA-STR-001",
            "no broker is named",
            "write `HOST:PORT`",
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
            "POLYNYA-GTW-061",
            f"connections of type {connection.type} bring what they need",
            f"take it out; it is for {', '.join(sorted(GENERIC))}",
        )
    for name, wrong in connector_problems(connection.engine.properties):
        yield Problem(("engine", "properties", name), "POLYNYA-GTW-061", *wrong)
    if connection.type == "postgresql" and connection.database is None:
        yield Problem(
            (),
            "POLYNYA-GTW-061",
            "a connection to PostgreSQL leads to one database, and none is named",
            "add `database: NAME`",
        )
    yield from _plain_problems(connection, ())
    for name, there in connection.targets.items():
        changed = {"tls", "host"} & there.model_fields_set
        if changed:
            key = "tls" if "tls" in changed else "host"
            yield from _plain_problems(connection.in_target(name), ("targets", name, key))


def _plain_problems(connection: Connection, path: NodePath) -> Iterator[Problem]:
    """A way over a network on which others read along, or answer."""
    if connection.tls.mode == "disable" and not is_this_machine(connection.host):
        yield Problem(
            path or ("tls", "mode"),
            "POLYNYA-GTW-064",
            f"{shown(connection.host)} is on another machine, and `tls` is disabled: password and "
            "rows would go over the network as they are",
            "write `tls: {mode: verify}`, with `ca` where the authority is your own",
        )
    unverified = connection.tls.mode == "require" and not connection.tls.allow_unverified
    if unverified and not is_this_machine(connection.host):
        yield Problem(
            path or ("tls", "mode"),
            "POLYNYA-GTW-064",
            f"{shown(connection.host)} is on another machine, and `require` does not check whether "
            "it is the right one: who answers in its place gets the password",
            "write `tls: {mode: verify}`, with `ca` where the authority is your own, or add "
            "`allow_unverified: true`",
        )


def target_problems(connection: Connection, targets: Mapping[str, object]) -> Iterator[Problem]:
    """Yield the overrides of targets that the project does not have."""
    for name in connection.targets:
        if name not in targets:
            yield Problem(
                ("targets", name),
                "POLYNYA-CFG-017",
                f"the project has no target {shown(name)}",
                suggest(name, list(targets)),
            )


def capture_problems(task: CaptureLanding) -> Iterator[Problem]:
    """Yield the problems of one capture that need no other file."""
    yield from _method_problems(task)
    for path, table in _named_tables(task):
        if has_wildcard(table) or not task.tables.takes(table):
            yield Problem(
                path,
                "POLYNYA-GTW-062",
                f"the task captures no table called {shown(table)}",
                "write the name of one table that `tables` takes, such as `public.orders`",
            )
    for table, columns in task.mask.items():
        for column, mask in columns.items():
            if isinstance(mask, Mask) and len(mask.chosen) != 1:
                yield Problem(
                    ("mask", table, column),
                    "POLYNYA-GTW-063",
                    "a column is masked in one way",
                    "write `drop`, or one of `hash`, `truncate` and `replace`",
                )
    pauses = task.errors.environment
    if pauses.from_ > pauses.to:
        yield Problem(
            ("errors", "environment", "from"),
            "POLYNYA-GTW-061",
            "the first pause is longer than the longest",
            "make `from` shorter than `to`",
        )


def _method_problems(task: CaptureLanding) -> Iterator[Problem]:
    if task.update_method == "reload" and task.schedule is None:
        yield Problem(
            ("update_method",),
            "POLYNYA-GTW-061",
            "nothing says when the tables are loaded again",
            "add a `schedule`, such as `30 2 * * *` or `FREQ=DAILY;BYHOUR=2`",
        )
    if task.update_method == "cdc" and task.schedule is not None:
        yield Problem(
            ("schedule",),
            "POLYNYA-GTW-061",
            "changes are captured all the time, so there is no schedule",
            "take `schedule` out, or write `update_method: reload`",
        )
    if task.update_method == "reload":
        for name in _OF_CHANGES:
            if name in task.model_fields_set:
                yield Problem(
                    (name,),
                    "POLYNYA-GTW-061",
                    f"a reload follows no changes, so it has no `{name}`",
                    "take it out",
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


def connected_problems(
    task: CaptureLanding, connections: Mapping[str, Connection | None]
) -> Iterator[Problem]:
    """Yield why a capture cannot use its connection; None is one that is wrong itself."""
    if task.connection not in connections:
        yield Problem(
            ("connection",),
            "POLYNYA-GTW-060",
            f"there is no connection {shown(task.connection)}",
            suggest(task.connection, sorted(connections))
            if connections
            else f"add `connections/{task.connection}.yml`",
        )
        return
    connection = connections[task.connection]
    if connection is None or connection.type == "postgresql":
        return
    for name in _OF_POSTGRESQL:
        if name in task.model_fields_set:
            yield Problem(
                (name,),
                "POLYNYA-GTW-061",
                f"`{name}` is of PostgreSQL, and {shown(task.connection)} is of type "
                f"{connection.type}",
                "take it out",
            )
    if connection.type in GENERIC:
        yield from _generic_problems(task, connection)


def _generic_problems(task: CaptureLanding, connection: Connection) -> Iterator[Problem]:
    """What a database cannot that Debezium alone loads and follows."""
    for name in _OF_OWN_LOADS:
        if name in task.model_fields_set:
            yield Problem(
                (name,),
                "POLYNYA-GTW-061",
                f"`{name}` is not for a database of type {connection.type}, which Debezium loads",
                "take it out",
            )
    if connection.type == "mongodb" and task.lobs is not None:
        yield Problem(
            ("lobs",),
            "POLYNYA-GTW-061",
            "a document of MongoDB is one value, of which nothing can be cut",
            "take it out",
        )
    if task.update_method == "reload":
        yield Problem(
            ("update_method",),
            "POLYNYA-GTW-061",
            f"a database of type {connection.type} is not loaded without its changes",
            "write `update_method: cdc`, and take `schedule` out",
        )
