"""What a well-formed streaming landing can still have wrong."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from polynya.model.checks.unsecured import unsecured_login
from polynya.model.config.streaming.files import FilesSource
from polynya.model.config.streaming.kafka import OWN_PROPERTIES, KafkaSource
from polynya.model.config.streaming.kafka_properties import property_problem
from polynya.model.config.streaming.landing import Source, StreamingLanding
from polynya.model.contract.identifiers import shown
from polynya.model.documents.problems import Problem

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
