"""Messages that name their schema in a registry: over HTTP, with references, logins and faults."""

from __future__ import annotations

import base64
import io
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pydantic import SecretStr

from polynya.formats.contents.decoded import Decoded
from polynya.formats.contents.decoders import decoder_of, registry_at
from polynya.formats.errors import RecordError
from polynya.formats.stream.reading import read_stream
from polynya.model.config.settings import SchemaRegistry
from polynya.model.config.stream_content import landed_content
from polynya.model.errors import DependencyError
from polynya.model.types import BIGINT, Array, Struct
from tests.formats.stream.streams import knowing, landed, request_for, rows_of, rules_of

CITY = {"type": "record", "name": "City", "namespace": "geo",
        "fields": [{"name": "name", "type": "string"}]}  # fmt: skip
USER_1 = {"type": "record", "name": "User", "fields": [{"name": "id", "type": "int"}]}
USER_2 = {"type": "record", "name": "User",
          "fields": [{"name": "id", "type": "long"}, {"name": "home", "type": "geo.City"},
                     {"name": "seen", "type": {"type": "array", "items": "geo.City"}}]}  # fmt: skip


class Registry:
    """A registry on a loopback port; `answers` may be changed while it runs."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {
            "/schemas/ids/1": {"schema": json.dumps(USER_1)},
            "/schemas/ids/2": {
                "schema": json.dumps(USER_2),
                "references": [{"name": "geo.City", "subject": "geo/city", "version": 3}],
            },
            "/subjects/geo%2Fcity/versions/3": {"schema": json.dumps(CITY), "schemaType": "AVRO"},
            "/schemas/ids/3": {"schema": "syntax = ...", "schemaType": "PROTOBUF"},
            "/schemas/ids/4": {"schema": '{"type":"record"'},
            "/schemas/ids/5": {
                "schema": json.dumps(USER_2),
                "references": [{"name": "geo.City", "subject": "gone", "version": 1}],
            },
        }
        self.asked: list[str] = []
        self.codes: dict[str, int] = {}
        self.login: str | None = None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(self.path)
                wanted = outer.login and f"Basic {base64.b64encode(outer.login.encode()).decode()}"
                answer = outer.answers.get(self.path)
                if wanted and self.headers.get("Authorization") != wanted:
                    self.send_response(401)
                elif isinstance(answer, int):
                    self.send_response(answer)
                    self.send_header("Location", "/schemas/ids/1")
                else:
                    self.send_response(outer.codes.get(self.path, 404 if answer is None else 200))
                self.end_headers()
                if answer is None:
                    answer = {"error_code": 40403, "message": "Schema not found"}
                if isinstance(answer, dict):
                    self.wfile.write(json.dumps(answer).encode())
                elif isinstance(answer, bytes):
                    self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=[0.02], daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def registry() -> Iterator[Registry]:
    found = Registry()
    yield found
    found.close()


def message(number: int, record: dict[str, Any]) -> bytes:
    named: dict[str, Any] = {}
    fastavro.parse_schema(CITY, named)
    schema = fastavro.parse_schema(USER_1 if number == 1 else USER_2, named)
    buffer = io.BytesIO(b"\0" + number.to_bytes(4, "big"))
    buffer.seek(5)
    fastavro.schemaless_writer(buffer, schema, record)
    return buffer.getvalue()


ANN = message(1, {"id": 1})
BEN = message(2, {"id": 1 << 40, "home": {"name": "Leon"}, "seen": [{"name": "Puebla"}]})


def content(registry: Registry) -> dict[str, Any]:
    return {"type": "avro_with_schema", "schema_registry": {"url": registry.url}}


def decoded(registry: Registry, *messages: bytes) -> list[Decoded | RecordError]:
    access = SchemaRegistry(url=registry.url)
    return list(decoder_of(landed_content(content(registry)), access).decode(messages))


def named(registry: Registry, **login: str) -> dict[str, Any]:
    """The settings of a task that names the registry."""
    return {"schema_registry": {"url": registry.url, **login}}


def test_schemas_evolve_and_refer_to_others(registry: Registry) -> None:
    ann, ben = decoded(registry, ANN, BEN)

    assert isinstance(ann, Decoded)
    assert isinstance(ben, Decoded)
    assert ann.items == ({"id": 1},)
    assert ben.items == ({"id": 1 << 40, "home": {"name": "Leon"}, "seen": [{"name": "Puebla"}]},)
    assert ben.types["id"] == BIGINT
    assert isinstance(ben.types["home"], Struct)
    assert isinstance(ben.types["seen"], Array)


def test_a_schema_is_asked_for_once(registry: Registry) -> None:
    for _ in range(3):
        decoded(registry, ANN, BEN, ANN)

    assert sorted(registry.asked) == sorted(
        ["/schemas/ids/1", "/schemas/ids/2", "/subjects/geo%2Fcity/versions/3"]
    )


def test_a_number_that_is_not_there_is_asked_for_again_in_the_next_batch(
    registry: Registry,
) -> None:
    unknown = b"\0\0\0\0\x09" + ANN[5:]

    (first, twice) = decoded(registry, unknown, unknown)
    registry.answers["/schemas/ids/9"] = registry.answers["/schemas/ids/1"]
    (later,) = decoded(registry, unknown)

    assert isinstance(first, RecordError)
    assert (first.rule, first.error) == ("unknown_schema", "the registry has no schema 9")
    assert isinstance(twice, RecordError)
    assert isinstance(later, Decoded)
    assert registry.asked == ["/schemas/ids/9"] * 2


@pytest.mark.parametrize(
    ("number", "why"),
    [(3, "of type PROTOBUF"), (4, "cannot be used"), (5, "no version 1 of 'gone'")],
)
def test_a_schema_that_cannot_be_used_refuses_its_messages(
    registry: Registry, number: int, why: str
) -> None:
    (found,) = decoded(registry, b"\0" + number.to_bytes(4, "big") + b"\x02")

    assert isinstance(found, RecordError)
    assert found.rule == "unknown_schema"
    assert why in found.error


def test_what_has_no_number_is_refused(registry: Registry) -> None:
    for bad in (b"", b"\0\0\0", b'{"id":1}', ANN + b"x", ANN[:5]):
        (found,) = decoded(registry, bad)
        assert isinstance(found, RecordError)
        assert found.rule == "bad_avro"


@pytest.mark.parametrize("said", [b"", b"<html>", b"[]", b'{"error_code": 404}', b"[" * 200_000])
def test_an_address_that_is_none_of_a_registry_stops_the_batch(
    registry: Registry, said: bytes
) -> None:
    registry.answers["/schemas/ids/1"] = said
    registry.codes["/schemas/ids/1"] = 404

    with pytest.raises(DependencyError) as caught:
        decoded(registry, ANN)

    assert (caught.value.code, caught.value.retryable) == ("POLYNYA-STR-083", True)


@pytest.mark.parametrize("answer", [503, 302, b"no json", b"[]", {"other": 1}])
def test_a_registry_that_does_not_answer_stops_the_batch(registry: Registry, answer: Any) -> None:
    registry.answers["/schemas/ids/1"] = answer

    with pytest.raises(DependencyError) as caught:
        decoded(registry, ANN)

    assert caught.value.code == "POLYNYA-STR-022"
    assert caught.value.retryable
    assert caught.value.where == registry.url
    assert registry.asked == ["/schemas/ids/1"]


def test_a_registry_that_is_down_stops_the_batch_and_is_asked_again(registry: Registry) -> None:
    request = request_for(landed([ANN], **content(registry)), landing=named(registry))
    registry.answers["/schemas/ids/1"] = 500
    with pytest.raises(DependencyError):
        read_stream(request)
    registry.answers["/schemas/ids/1"] = {"schema": json.dumps(USER_1)}

    batch = read_stream(request)

    assert rows_of(batch, "id") == [1]
    gone = SchemaRegistry(url="http://127.0.0.1:9")
    with pytest.raises(DependencyError, match="does not answer"):
        registry_at(gone, landed_content(content(registry))).by_number(1)


def test_the_login_is_that_of_the_task_which_copies(registry: Registry) -> None:
    registry.login = "ann:s3cr3t"
    files = landed([ANN], **content(registry))
    login = named(registry, user="ann", password="s3cr3t")

    batch = read_stream(request_for(files, landing=login))
    with pytest.raises(DependencyError) as caught:
        read_stream(request_for(files, landing=named(registry)))

    assert rows_of(batch, "id") == [1]
    assert caught.value.code == "POLYNYA-STR-023"
    assert "s3cr3t" not in repr(SchemaRegistry(url=registry.url, password=SecretStr("s3cr3t")))


def test_a_login_that_was_exchanged_is_taken_by_the_next_batch(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POLYNYA_SECRETS", str(tmp_path))
    (tmp_path / "password").write_text("old\n")
    access = {"url": registry.url, "user": "ann", "password": f"${{file:{tmp_path}/password}}"}
    asked = request_for(landed([ANN], **content(registry)), landing={"schema_registry": access})
    registry.login = "ann:old"
    assert rows_of(read_stream(asked), "id") == [1]

    registry.login = "ann:new"
    (tmp_path / "password").write_text("new\n")

    assert rows_of(read_stream(asked), "id") == [1]
    assert len(registry.asked) == 2


def test_old_and_new_schemas_side_by_side_widen_and_drop_nothing(registry: Registry) -> None:
    values = [ANN, BEN, ANN, b"\0\0\0\0\x09x"]
    settings = {"landing": named(registry)}
    first = read_stream(request_for(landed([ANN], **content(registry)), **settings))

    again = request_for(landed(values, **content(registry)), **settings)
    batch = read_stream(knowing(again, first))

    assert rows_of(batch, "id") == [1, 1 << 40, 1]
    assert batch.schema["id"] == BIGINT
    assert rules_of(batch) == [(3, "unknown_schema")]
    assert {(one.kind, one.column) for one in batch.changes} == {
        ("widen_type", "id"), ("add_column", "home"), ("add_column", "seen"),
    }  # fmt: skip
    assert batch.declared is None
