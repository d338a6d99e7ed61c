"""A topic of Kafka as a proposal: a landing of its messages, and a task that makes a table of them.

The messages of a sample are read as a run would read them from a landed batch. A topic orders the
messages of a partition, so a key needs no column for the order.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

import pyarrow.compute as pc
from pydantic import SecretStr, ValidationError

from polynya.formats.base import KnownTable, ReadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch, FilePart
from polynya.formats.contents.compressed import expanded
from polynya.formats.errors import RecordError
from polynya.formats.landed import VALUE, Counts, StreamFooter, batch_name, write_batch
from polynya.formats.registry import format_of
from polynya.model.config.connection import is_this_machine
from polynya.model.config.stream_landing import StreamingLanding, landed_table
from polynya.model.config.task import StorageTask, resolved
from polynya.model.documents.references import kept_as_text
from polynya.model.names import column_problem
from polynya.observe.events import counted
from polynya.proposal.column_types import json_column
from polynya.proposal.databases import refuse, some
from polynya.proposal.keys import proposed_events
from polynya.proposal.proposal import with_types
from polynya.proposal.samples import name_of
from polynya.proposal.settings import (
    DatasetProposal,
    ProposedEvents,
    ProposedSetting,
    SampleOutcome,
)
from polynya.proposal.task_file import events_lines
from polynya.proposal.yaml_lines import YamlLine, one_line, yaml_lines, yaml_name, yaml_value
from polynya.store.object_store import LocalObjectStore
from polynya.streams.kafka.sampling import TopicSample

SCHEME: Final = "kafka://"
#: Messages of a topic that are looked at, and bytes of them.
MOST_MESSAGES: Final = 2_000
MOST_BYTES: Final = 16 * 1024 * 1024
_PARAMETERS: Final = frozenset({"registry", "tls", "mechanism"})
_MODULES: Final[Mapping[str, str]] = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
#: With this byte begins what serializers of a registry write; the number of the schema follows.
_MAGIC: Final = 0
#: What the names of columns with metadata of messages begin with.
_HEADER: Final = "hdr__"
_LIMITS: Final = BatchLimits(max_rows=1 << 40, max_bytes=1 << 40)


@dataclass(frozen=True, slots=True)
class TopicUrl:
    """A topic, and how its brokers are reached.

    Attributes:
        servers: as `bootstrap_servers` has them.
        user: "" without a login.
        registry: of schemas, "" for none.
        mechanism: of the login.
    """

    servers: str
    topic: str
    user: str
    registry: str
    mechanism: str
    is_encrypted: bool

    def __str__(self) -> str:
        """The URL without a password."""
        user = f"{self.user}@" if self.user else ""
        return f"{SCHEME}{user}{self.servers}/{self.topic}"

    @property
    def name(self) -> str:
        """What tasks and the table are called after."""
        return name_of(landed_table(self.topic))[:100]

    @property
    def landing(self) -> str:
        """The name of the task that lands the topic."""
        return f"{self.name}_stream"

    def document(self, content: Any, variable: str | None) -> dict[str, Any]:
        """The settings of the landing; `variable` holds the password."""
        properties = {}
        if self.user:
            properties = {
                "security.protocol": "SASL_SSL" if self.is_encrypted else "SASL_PLAINTEXT",
                "sasl.mechanism": self.mechanism,
                "sasl.jaas.config": f'{_MODULES[self.mechanism]} required username="{self.user}" '
                f'password="${{env:{variable}}}";',
            }
        elif self.is_encrypted:
            properties = {"security.protocol": "SSL"}
        kafka = {"bootstrap_servers": self.servers, "topics": [self.topic]}
        return {
            "apiVersion": "polynya/v1",
            "kind": "streaming_landing",
            "name": self.landing,
            "source": {"kafka": {**kafka, **({"properties": properties} if properties else {})}},
            "content": content,
        }


def topic_url(text: str) -> TopicUrl:
    """The parts of `kafka://[USER@]HOST:PORT[,HOST:PORT]/TOPIC[?registry=URL&tls=true]`.

    Raises:
        ConfigError: POLYNYA-CLI-006, the URL lacks something. The message has no password.
    """
    rest, _, query = text[len(SCHEME) :].partition("?")
    place, _, topic = rest.partition("/")
    login, _, servers = place.rpartition("@")
    user, colon, _ = login.partition(":")
    shown = f"{SCHEME}{servers}/{topic}"
    example = "kafka://HOST:9092/TOPIC"
    if colon:
        fix = "leave it out: name the variable that has it with `--password-env`"
        refuse(shown, "a password of Kafka in the URL is not read", fix)
    topic, user = unquote(topic), unquote(user)
    if not servers or not topic:
        refuse(shown, f"the URL names no {'topic' if servers else 'broker'}", f"write `{example}`")
    if any(
        sign in part for part in (servers, topic, user) for sign in ('"', "\\", "${", "%")
    ) or not (servers.isprintable() and topic.isprintable() and user.isprintable()):
        refuse(shown, "a name in it cannot be written to a file", "correct the URL")
    given = dict(parse_qsl(query, keep_blank_values=True))
    for name in given.keys() - _PARAMETERS:
        fix = "after the `?` only `registry`, `tls` and `mechanism` are read"
        refuse(shown, f"the parameter `{one_line(name)[:40]}` is not known here", fix)
    mechanism = given.get("mechanism", "SCRAM-SHA-512").upper()
    if mechanism not in _MODULES:
        refuse(shown, f"the mechanism is none of {', '.join(_MODULES)}", "correct `mechanism`")
    is_encrypted = given.get("tls", "true" if user else "false").lower() == "true"
    hosts = (server.rpartition(":")[0] for server in servers.split(","))
    if user and not is_encrypted and not all(map(is_this_machine, hosts)):
        fix = "leave `tls` out"
        refuse(shown, "a password would cross the network without encryption", fix)
    return TopicUrl(servers, topic, user, given.get("registry", ""), mechanism, is_encrypted)


def landing_of(url: TopicUrl, content: Any, variable: str | None) -> StreamingLanding:
    """The landing as its file would say it; the password is left a reference.

    Raises:
        ConfigError: POLYNYA-CLI-006, a part of the URL is not right.
    """
    try:
        return StreamingLanding.model_validate(url.document(content, variable))
    except ValidationError as error:
        refuse(str(url), str(error.errors()[0]["msg"]), "correct the URL")


def reading_of(url: TopicUrl, password: str) -> StreamingLanding:
    """The landing with the password itself, to read a sample. Raises as `landing_of`."""
    landing = landing_of(url, "json", "PASSWORD")
    kafka = landing.source.kafka
    assert kafka is not None, "its URL is one of Kafka"
    text = kept_as_text(password).replace("\\", "\\\\").replace('"', '\\"')
    properties = {
        name: SecretStr(value.get_secret_value().replace("${env:PASSWORD}", text))
        for name, value in kafka.properties.items()
    }
    source = landing.source.model_copy(
        update={"kafka": kafka.model_copy(update={"properties": properties})}
    )
    return landing.model_copy(update={"source": source})


@dataclass(frozen=True, slots=True)
class TopicProposal:
    """What is proposed for a topic, and what a run would make of the sample.

    Attributes:
        content: of the landing, with its reason.
        tables: source tables whose events of Debezium the topic has; empty for other messages.
        dataset: how records become rows, of other messages.
        tombstones: messages without a value.
    """

    url: TopicUrl
    content: ProposedSetting
    tables: tuple[str, ...]
    dataset: DatasetProposal
    outcome: SampleOutcome
    tombstones: int


def proposed_topic(url: TopicUrl, sample: TopicSample, schema: str, folder: Path) -> TopicProposal:
    """The proposal for a topic out of a sample; `folder` is an empty one for the trial.

    Raises:
        ConfigError: POLYNYA-CLI-006, nothing can be proposed for these messages.
    """
    values = list(_plain(sample.rows.column(VALUE).to_pylist()))
    if not values:
        refuse(str(url), "the topic has no message with a value", "wait for messages")
    content = _content(url, values)
    trial = _TopicTrial(url, schema, content.value, folder, sample)
    if content.value == "json":
        tables = _captured(values)
        if tables:
            return _of_events(url, content, tables, sample)
    columns = _json_columns(values) if content.value == "json" else {}
    base = DatasetProposal(
        content, columns=columns, events=ProposedEvents(appended="a row for each record")
    )
    base, batch = with_types(trial, base)
    if {"op", "source", "after"} <= batch.schema.keys():
        found = Counter(_table_of(source) for source in batch.rows.column("source").to_pylist())
        tables = Counter({name: count for name, count in found.items() if name is not None})
        if tables:
            return _of_events(url, content, tables, sample)
    tombstones = sample.rows.column(VALUE).null_count
    events = _events(batch, url, sample)
    final = replace(base, events=events)
    batch = trial.read(final)
    outcome = SampleOutcome(
        records=batch.rows_in,
        copied=batch.rows.num_rows,
        quarantined=dict(Counter(record.rule for record in batch.rejected)),
        replaced=events.replaced,
        is_whole=sample.is_whole,
    )
    if not batch.rows.num_rows:
        rules = ", ".join(outcome.quarantined)
        why = f": {batch.rejected[0].error}" if batch.rejected else ""
        refuse(str(url), f"none of its messages can be read ({rules}){why}", "see docs/streams.md")
    return TopicProposal(url, content, (), final, outcome, tombstones)


def _plain(values: Iterable[bytes | None]) -> Iterator[bytes]:
    """The values that there are, decompressed, until they have more bytes than are looked at."""
    size = 0
    for value in values:
        if not value or size > 2 * MOST_BYTES:
            continue
        try:
            plain = expanded(value, MOST_BYTES)
        except RecordError:
            # The trial says so, of that message alone.
            continue
        size += len(plain)
        yield plain


def _content(url: TopicUrl, values: Sequence[bytes]) -> ProposedSetting:
    """What the messages are, by their first bytes."""
    of = counted(len(values), "message")
    numbered = sum(len(value) > 5 and value[0] == _MAGIC for value in values)
    if 2 * numbered > len(values):
        if not url.registry:
            fix = "name the registry of their schemas: `…/TOPIC?registry=http://HOST:8081`"
            refuse(str(url), f"{numbered:,} of {of} name their schema by a number", fix)
        reason = f"{numbered:,} of {of} name their schema by a number"
        registry = {"url": url.registry}
        return ProposedSetting({"type": "avro_with_schema", "schema_registry": registry}, reason)
    if 2 * sum(value.startswith(b"Obj\x01") for value in values) > len(values):
        return ProposedSetting("avro", f"{of} with their schemas")
    if 2 * sum(value.startswith(b"PAR1") for value in values) > len(values):
        return ProposedSetting("parquet", f"each of {of} is a file")
    objects = sum(value.lstrip()[:1] in {b"{", b"["} for value in values)
    if 2 * objects > len(values):
        return ProposedSetting("json", f"{objects:,} of {of} begin as JSON")
    if 2 * sum(value.lstrip()[:1] == b"<" for value in values) > len(values):
        return ProposedSetting("xml", f"most of {of} are documents of XML")
    if not all(b"\0" not in value and _is_text(value) for value in values):
        fix = "write the task by hand: the page Streams lists the types of `content`"
        refuse(str(url), "its messages are neither text nor of a known type", fix)
    return ProposedSetting("split_lines", "text: each line becomes the column `line`")


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _objects(values: Sequence[bytes]) -> Iterator[Mapping[str, Any]]:
    """The objects of messages of JSON, as far as they can be read."""
    for value in values:
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            continue
        yield from (one for one in (found if isinstance(found, list) else [found])
                    if isinstance(one, dict))  # fmt: skip


def _captured(values: Sequence[bytes]) -> Counter[str]:
    """The source tables of events of Debezium, where most messages are such."""
    found: Counter[str] = Counter()
    for message in _objects(values):
        event = message.get("payload", message)
        if isinstance(event, dict) and "op" in event and ("after" in event or "before" in event):
            name = _table_of(event.get("source"))
            if name is not None:
                found[name] += 1
    return found if 2 * found.total() > len(values) else Counter()


def _table_of(source: Any) -> str | None:
    if not isinstance(source, dict) or not isinstance(source.get("table"), str):
        return None
    return f"{source.get('schema') or source.get('db')}.{source['table']}"


def _of_events(
    url: TopicUrl, content: ProposedSetting, tables: Counter[str], sample: TopicSample
) -> TopicProposal:
    """Events of Debezium: they bring keys, order and operations."""
    tombstones = sample.rows.column(VALUE).null_count
    messages = sample.rows.num_rows - tombstones
    others = max(messages - tables.total(), 0)
    outcome = SampleOutcome(
        records=messages,
        copied=messages - others,
        quarantined={"not_an_event": others} if others else {},
        is_whole=sample.is_whole,
    )
    proposal = DatasetProposal(ProposedSetting("debezium", "events of Debezium"))
    return TopicProposal(url, content, tuple(sorted(tables)), proposal, outcome, tombstones)


def _json_columns(values: Sequence[bytes]) -> dict[str, ProposedSetting]:
    records = list(_objects(values))
    found = {}
    for name in dict.fromkeys(name for record in records for name in record):
        if column_problem(name) is None:
            kind = json_column(name, [record.get(name) for record in records])
            # A spelling of times is a setting of files.
            if kind is not None and not isinstance(kind.value, dict):
                found[name] = kind
    return found


def _events(batch: DatasetBatch, url: TopicUrl, sample: TopicSample) -> ProposedEvents:
    """Keys and time; a key needs no order, since the topic has one."""
    schema = {name: kind for name, kind in batch.schema.items() if not name.startswith(_HEADER)}
    rows = batch.rows
    tombstones = sample.rows.column(VALUE).null_count
    if tombstones and schema:
        has_values = [pc.is_valid(rows.column(name)) for name in schema]
        rows = rows.filter(functools.reduce(pc.or_, has_values))
    events = proposed_events(rows, schema, url.name, is_whole=sample.is_whole, has_order=True)
    if events.key is not None and tombstones:
        reason = f"with a key {counted(tombstones, 'message')} without a value would be rejected"
        return replace(ProposedEvents(timestamp=events.timestamp), appended=reason)
    return events


@dataclass(frozen=True, slots=True)
class _TopicTrial:
    """Reads the sample as a run would read it from a landed batch."""

    url: TopicUrl
    schema: str
    content: Any
    folder: Path
    sample: TopicSample

    def read(self, proposal: DatasetProposal) -> DatasetBatch:
        """One batch of all messages."""
        landing = landing_of(self.url, self.content, "NONE")
        registry = self.content if isinstance(self.content, dict) else {}
        settings = {name: one for name, one in registry.items() if name == "schema_registry"}
        task = StorageTask.model_validate(
            storage_document(self.url, proposal, self.schema, settings)
        )
        counts = Counts(self.sample.rows.num_rows, 0)
        footer = StreamFooter(
            landing.name, self.url.name, "kafka", 1, landing.content, {}, {},
            datetime.now(UTC), counts, counts,
        )  # fmt: skip
        path = f"{self.url.landing}/{self.url.name}/{batch_name(1)}"
        store = LocalObjectStore(self.folder)
        data = write_batch(footer, self.sample.rows)
        store.put_if_absent(path, data)
        table = KnownTable(resolved(task, task.datasets[0]))
        request = ReadRequest(store, [FilePart(path, len(data))], {table.source: table}, _LIMITS)
        return format_of(task).read(request).one


def storage_document(
    url: TopicUrl, proposal: DatasetProposal, schema: str, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings of the task that makes the table, without the reasons."""
    events = proposal.events
    dataset: dict[str, Any] = {"name": url.name}
    if events.key is None:
        dataset["mode"] = "append_only"
    else:
        dataset["keys"] = [events.key.value]
        if events.sequence is not None:
            dataset["sequence_by"] = [events.sequence.value]
    if events.timestamp is not None:
        dataset["timestamp"] = events.timestamp.value
    if events.deletes is not None:
        dataset["apply_as_deletes"] = events.deletes.value
    if events.left_out:
        dataset["except_columns"] = list(events.left_out)
    if proposal.columns:
        dataset["columns"] = {name: column.value for name, column in proposal.columns.items()}
    return {
        "apiVersion": "polynya/v1",
        "kind": "storage",
        "name": url.name,
        "schema": schema,
        "landing": {"path": url.landing, "format": "stream", **settings},
        "datasets": [dataset],
    }


def topic_files(found: TopicProposal, schema: str, variable: str | None) -> dict[str, str]:
    """The files of the tasks, by path."""
    url = found.url
    return {
        f"tasks/{url.landing}.yml": _landing_text(found, variable),
        f"tasks/{url.name}.yml": _storage_text(found, schema),
    }


_SCHEMA_LINE: Final = "# yaml-language-server: $schema=../.polynya/schema/task.v1.json\n"


def _landing_text(found: TopicProposal, variable: str | None) -> str:
    document = found.url.document(found.content.value, variable)
    kafka = document["source"]["kafka"]
    lines: list[YamlLine] = [
        ("source:", None),
        ("  kafka:", None),
        (f"    bootstrap_servers: {yaml_value(kafka['bootstrap_servers'])}", None),
        (f"    topics: {yaml_value(kafka['topics'])}", None),
    ]
    properties = kafka.get("properties", {})
    if properties:
        lines.append(("    properties:", None))
    for name, value in properties.items():
        # The login has a reference, which has to stay one.
        text = f"'{value}'" if "${env:" in value else yaml_value(value)
        lines.append((f"      {name}: {text}", None))
    lines.append((f"content: {yaml_value(found.content.value)}", found.content.reason))
    lines.append(("interval: 10s", "between landed batches"))
    head = f"apiVersion: polynya/v1\nkind: streaming_landing\nname: {found.url.landing}\n"
    return _SCHEMA_LINE + head + yaml_lines(lines)


def _storage_text(found: TopicProposal, schema: str) -> str:
    url = found.url
    outcome = one_line(str(found.outcome))
    head = (
        f"{_SCHEMA_LINE}# Proposed from messages of {one_line(str(url))}: look at each line.\n"
        f"# {outcome[0].upper()}{outcome[1:]}.\n"
        f"apiVersion: polynya/v1\nkind: storage\nname: {url.name}\nschema: {schema}\n"
    )
    if found.tables:
        lines: list[YamlLine] = [
            (f"landing: {{path: {url.landing}, format: debezium}}", "events of Debezium"),
            (
                f"include: {yaml_value(found.tables)}",
                "keys, order and types are those of the events",
            ),
            ("defaults: {history: true}", "every version; leave it out to keep the newest only"),
        ]
        return head + yaml_lines(lines)
    lines = [
        (f"landing: {{path: {url.landing}, format: stream}}", "what the landing lands"),
        ("datasets:", None),
        (f"  - name: {url.name}", None),
        *events_lines(found.dataset.events),
    ]
    if found.dataset.columns:
        lines.append(("    columns:", None))
    lines += [
        (f"      {yaml_name(name)}: {yaml_value(one.value)}", one.reason)
        for name, one in found.dataset.columns.items()
    ]
    return head + yaml_lines(lines)


def topic_notes(found: TopicProposal, sample: TopicSample) -> list[str]:
    """What a person should know beside the outcome."""
    read = counted(sample.rows.num_rows, "message")
    places = counted(sample.partitions, "partition")
    notes = [f"looked at {read} of {sample.offsets:,} in {places}"]
    if found.tables:
        notes.append(f"events of Debezium of {some(found.tables)}")
    if found.tombstones and not found.tables:
        what = "each becomes a row without values"
        notes.append(f"{counted(found.tombstones, 'message')} without a value: {what}")
    return notes


def project_to_read(url: TopicUrl) -> dict[str, str]:
    """The files of a project that has what reading the topic needs, without its login."""
    task = json.dumps(replace(url, user="", is_encrypted=False).document("json", None))
    project = {
        "apiVersion": "polynya/v1", "kind": "project", "name": "sample",
        "targets": {"local": {"landing": "./landing", "warehouse": "./warehouse"}},
    }  # fmt: skip
    return {"polynya.yml": json.dumps(project), "tasks/sample.yml": task}
