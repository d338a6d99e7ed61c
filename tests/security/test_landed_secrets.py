"""No value of a landed object reaches the vault or a socket (S1, S2).

Whoever can write to the landing zone can write anything into a footer, a position, a request, a
record of the nodes' stream. Every text of such an object is replaced by a reference to a secret
and by an address; then the code that reads the object reads it.
"""

from __future__ import annotations

import io
import json
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from polynya.capture.landing.position import CapturePosition
from polynya.capture.wire import RequestFolder
from polynya.cluster.gossip.records import Skipped, read_record
from polynya.formats.batch import WHOLE_FILE
from polynya.formats.contents.decoders import decoder_of
from polynya.formats.debezium.captured import read_header
from polynya.formats.debezium.envelope import HEADER
from polynya.formats.errors import UnreadableFileError
from polynya.formats.landed import METADATA_KEY, StreamFooter, kept_message, read_footer
from polynya.formats.stream.reading import read_stream
from polynya.model.errors import OperationError, PolynyaError
from polynya.store.vault import Vault
from polynya.streams.files.position import FilesPosition
from polynya.streams.kafka.position import KafkaPosition
from polynya.streams.kinesis.plan import KinesisPosition
from polynya.testing.fakes import MemoryObjectStore
from tests.formats.debezium.builders import read_capture
from tests.formats.debezium.messages import LandedTopic
from tests.formats.stream.streams import landed, request_for
from tests.streams.files.given import Landing, day

ATTACKER = "http://attacker.example:8081"


@dataclass
class Watched:
    """What was asked of the vault and of the network."""

    asked: list[str] = field(default_factory=list)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    found = Watched()

    def opened(_: Vault, text: str, *, quoted: bool = False) -> Any:
        del quoted
        found.asked.append(f"vault: {text}")
        raise AssertionError(text)

    def connected(*args: Any, **_: Any) -> Any:
        found.asked.append(f"socket: {args}")
        raise OSError("no network in this test")

    monkeypatch.setattr(Vault, "open", opened)
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, connected)
    monkeypatch.setattr(socket, "getaddrinfo", connected)
    yield found
    assert found.asked == []


@pytest.fixture
def secret(tmp_path: Path) -> str:
    (tmp_path / "secret").write_text("s3cr3t")
    return f"${{file:{tmp_path}/secret}}"


def with_texts(value: Any, text: str) -> Iterator[Any]:
    """The value with each of its texts replaced, one at a time, and with keys that nobody asked."""
    if isinstance(value, str):
        yield text
    elif isinstance(value, dict):
        for key, one in value.items():
            for changed in with_texts(one, text):
                yield {**value, key: changed}
        for extra in ("user", "password", "schema_registry", "url", "bootstrap.servers"):
            yield {**value, extra: text}
    elif isinstance(value, list):
        for at, one in enumerate(value):
            for changed in with_texts(one, text):
                yield [*value[:at], changed, *value[at + 1 :]]


def with_footer(batch: bytes, footer: dict[str, Any]) -> bytes:
    rows = parquet.read_table(io.BytesIO(batch))
    buffer = io.BytesIO()
    metadata = {METADATA_KEY: json.dumps(footer).encode()}
    parquet.write_table(rows.replace_schema_metadata(metadata), buffer)
    return buffer.getvalue()


def registry_batch(**login: str) -> bytes:
    registry = {"url": ATTACKER}
    batch = landed([b"\0\0\0\0\1\2"], type="avro_with_schema", schema_registry=registry)
    footer = json.loads(read_footer(io.BytesIO(batch)).to_json())
    footer["content"]["schema_registry"] |= login
    return with_footer(batch, footer)


def test_a_login_in_a_landed_batch_refuses_the_file(watched: Watched, secret: str) -> None:
    bad = registry_batch(user=secret, password="${secret:prod/db}")

    found = read_stream(request_for(bad, landed([b'{"id":1}'], number=2)))

    [refused] = found.rejected
    assert (refused.rule, refused.offset) == ("unreadable_file", WHOLE_FILE)
    assert "schema_registry.user: Extra inputs" in refused.error
    assert found.rows.num_rows == 1


def test_the_registry_of_a_landed_batch_is_never_asked(watched: Watched) -> None:
    with pytest.raises(OperationError) as caught:
        read_stream(request_for(registry_batch()))

    assert caught.value.code == "POLYNYA-STR-091"
    assert ATTACKER in caught.value.where


def test_the_registry_of_a_message_in_quarantine_is_never_asked(
    watched: Watched, secret: str
) -> None:
    said = {"source": "files", "hdr__file_name": "a", "hdr__file_size": 1, "hdr__file_record": 0}
    registry = {"url": ATTACKER}
    content = {"type": "avro_with_schema", "schema_registry": registry}
    raw = json.dumps({**said, "content": content}).encode() + b"\n\0\0\0\0\1\2"
    kept = kept_message("x", raw)

    with pytest.raises(OperationError, match="names none"):
        decoder_of(kept.messages.content)
    registry["user"] = registry["password"] = secret
    raw = json.dumps({**said, "content": content}).encode() + b"\n\0\0\0\0\1\2"
    with pytest.raises(ValueError, match=r"schema_registry\.user"):
        kept_message("x", raw)


def test_the_registry_of_a_landed_capture_is_never_asked(watched: Watched, secret: str) -> None:
    topic = LandedTopic(content={"type": "avro_with_schema", "schema_registry": {"url": ATTACKER}})
    topic.land({"value": {"op": "c", "after": {"id": 1}, "source": {"table": "t"}}})

    with pytest.raises(PolynyaError, match="names none"):
        read_capture(topic.files)


@pytest.mark.parametrize("text", ["${file:%s}", "${secret:prod/db#password}", ATTACKER])
def test_no_text_of_a_footer_is_opened_or_asked(
    watched: Watched, tmp_path: Path, text: str
) -> None:
    text = text.replace("%s", str(tmp_path / "secret"))
    batch = landed([b'{"id":1}'])
    registry = json.loads(read_footer(io.BytesIO(registry_batch())).to_json())
    footers = [json.loads(read_footer(io.BytesIO(batch)).to_json()), registry]

    for footer in (changed for one in footers for changed in with_texts(one, text)):
        try:
            read_stream(request_for(with_footer(batch, footer)))
        except PolynyaError as error:
            assert error.code in {"POLYNYA-STR-091", "POLYNYA-STR-021", "POLYNYA-STR-020"}


POSITIONS: list[tuple[Callable[[Any], Any], dict[str, Any]]] = [
    (KafkaPosition.from_json, {"topics": {"a": {"id": "x", "partitions": {"0": 1}}}}),
    (
        KinesisPosition.from_json,
        {"streams": {"a": {"created": "2026-01-01T00:00:00+00:00", "shards": {}}}},
    ),
    (
        FilesPosition.from_json,
        {
            "known": {},
            "taken": [{"name": "a", "size": 1, "version": "v"}],
            "cut": {"name": "a", "size": 1, "version": "v", "record": 1, "byte": 0, "initial": 0},
        },
    ),
    (
        CapturePosition.of,
        {"stream": {"offset": {"lsn": "x"}}, "history": 0, "tables": {"a.b": {"state": "queued"}}},
    ),
    (
        lambda value: StreamFooter.from_json(json.dumps(value)),
        json.loads(read_footer(io.BytesIO(landed([b"{}"]))).to_json()),
    ),
]


@pytest.mark.parametrize(("read", "good"), POSITIONS)
def test_no_text_of_a_position_is_opened_or_asked(
    watched: Watched, secret: str, read: Callable[[Any], Any], good: dict[str, Any]
) -> None:
    for changed in with_texts(good, secret):
        try:
            read(changed)
        except (
            PolynyaError,
            UnreadableFileError,
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
        ):
            continue


def test_no_text_of_a_captured_batch_is_opened_or_asked(watched: Watched, secret: str) -> None:
    header = {
        "version": 1, "task": "t", "number": 1, "writer": "w", "events": 0,
        "written_at": datetime(2026, 1, 1, tzinfo=UTC).isoformat(), "position": {"stream": "x"},
        "schemas": {"a.b": [{"from": 1, "schema": {"type": "struct"}}]},
    }  # fmt: skip
    for changed in with_texts({HEADER: header}, secret):
        line = json.dumps(changed).encode() + b"\n"
        packed = pa.compress(line, codec="zstd", asbytes=True)
        try:
            read_header(io.BytesIO(packed), "x")
        except (UnreadableFileError, OperationError):
            continue


def test_no_text_of_a_request_to_a_capture_is_opened_or_asked(
    watched: Watched, secret: str
) -> None:
    said = {"tables": ["a.b"], "reload": True}
    files = {
        f"cdc/_asked/{number}.json": json.dumps(one).encode()
        for number, one in enumerate(with_texts(said, secret))
    }

    pending = RequestFolder(MemoryObjectStore(files), "cdc").pending()

    # A request names tables, and nothing else of it is taken.
    assert {request.reload for request in pending.requests.values()} == {True}


def test_no_text_of_a_record_of_the_nodes_is_opened_or_asked(watched: Watched, secret: str) -> None:
    record = {"v": 1, "type": "work", "cluster": "c", "node": "n", "incarnation": "i",
              "seq": 1, "at": "2026-01-01T00:00:00+00:00", "to": ["x"]}  # fmt: skip
    for changed in with_texts(record, secret):
        found = read_record(json.dumps(changed).encode(), "c")
        assert isinstance(found, Skipped) or found is not None


def test_a_landed_position_deletes_only_files_of_its_source() -> None:
    landing = Landing({"delete_after_load": True})
    landing.put(day(0, "a"), '{"id":1}')
    landing.store.put("other/secret.json", b"{}")
    other = next(one for one in landing.store.list("other"))
    landing.land()
    assert landing.position is not None
    landing.position["taken"] = [{"name": other.path, "size": 2, "version": other.version}]

    landing.again()
    landing.land()

    assert landing.store.get("other/secret.json") == b"{}"
