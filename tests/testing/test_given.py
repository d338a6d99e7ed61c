"""What a batch of a test lands."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyarrow import parquet

from polynya.formats.files import glob_pattern
from polynya.model.errors import ConfigError, OperationError
from polynya.model.loader import load_project
from polynya.model.task_tests import load_tests
from polynya.testing.runner import landing_files
from tests.projects import BANK, USERS, write_project

HEAD = "apiVersion: polynya/v1\nkind: tests\ntests:\n  - name: one\n    expect: {current: []}\n"


def lands(folder, batches, *, path="*.json", task="users"):
    users = USERS.replace("name: users\n    keys", f"name: users\n    path: '{path}'\n    keys")
    write_project(folder, users=users, bank=BANK)
    (folder / "tests").mkdir()
    about = "users" if task == "users" else "bank\n    dataset: accounts"
    (folder / "tests/a.yml").write_text(f"{HEAD}    task: {about}\n    given: [{batches}]\n")
    (test,), errors = load_tests(load_project(folder))
    assert errors == []
    return [dict(landing_files(test, number, folder)) for number in range(len(test.test.given))]


def test_records_become_lines_of_files_that_sort_like_the_batches(tmp_path):
    batches = "{events: [{a: 1}, {a: é}]}, {lines: '{'}"

    assert lands(tmp_path, batches) == [
        {"users/0001.json": '{"a": 1}\n{"a": "é"}\n'.encode()},
        {"users/0002.json": b"{"},
    ]


def test_records_of_documents_stand_at_their_path(tmp_path, monkeypatch):
    users = USERS.replace("format: json", "format: json, record_path: $.data.rows")
    monkeypatch.setattr("tests.testing.test_given.USERS", users)

    assert lands(tmp_path, "{events: [{a: 1}]}") == [
        {"users/0001.json": b'{"data": {"rows": {"a": 1}}}\n'}
    ]


@pytest.mark.parametrize(
    "glob", ["*", "**/*.json", "a/**/b?.json", "**", "[ab]-*.json", "x{1}/*.gz", "2*/[0-9]*"]
)
def test_a_file_gets_a_name_that_the_dataset_takes(tmp_path, glob):
    names = [
        name for files in lands(tmp_path, "{lines: x}, {lines: y}", path=glob) for name in files
    ]

    assert all(glob_pattern(glob).fullmatch(name.removeprefix("users/")) for name in names)
    assert names == sorted(set(names)) and len(names) == (2 if "*" in glob else 1)


def test_a_name_that_cannot_be_made_has_to_be_given(tmp_path):
    with pytest.raises(ConfigError, match="no file name could be made from the glob") as caught:
        lands(tmp_path, "{lines: x}", path="[!a].json")

    assert caught.value.where == "tests/a.yml:7:13"


def test_a_named_file_and_a_capture_land_below_the_landing_path(tmp_path):
    assert lands(tmp_path / "a", "{lines: x, file: b/c.json}") == [{"users/b/c.json": b"x"}]
    assert lands(tmp_path / "b", "{lines: x}", task="bank") == [{"bank/0001.jsonl": b"x"}]


def test_a_folder_lands_as_it_is(tmp_path):
    (tmp_path / "data/one/deep").mkdir(parents=True)
    (tmp_path / "data/one/deep/x.json").write_bytes(b"x")

    assert lands(tmp_path, "{folder: data/one}") == [{"users/deep/x.json": b"x"}]


def test_a_folder_without_files_or_outside_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="has no files"):
        lands(tmp_path / "a", "{folder: nowhere}")
    (tmp_path / "b").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/x").write_text("x")
    (tmp_path / "b/link").symlink_to(tmp_path / "secret")
    with pytest.raises(OperationError):
        lands(tmp_path / "b", "{folder: link}")


LANDING = """\
apiVersion: polynya/v1
kind: streaming_landing
name: clicks
source: {SOURCE}
content: CONTENT
"""
TRANSFORM = """\
apiVersion: polynya/v1
kind: streaming_transform
name: facts
from: clicks
stream: clicks
mode: append_only
"""
KAFKA = "kafka: {bootstrap_servers: 'b:9092', topics: [clicks]}"
KINESIS = "kinesis: {streams: [clicks], region: eu-central-1}"


def messages(folder, batches, *, source=KAFKA, content="json"):
    landing = LANDING.replace("SOURCE", source).replace("CONTENT", content)
    write_project(folder, clicks=landing, facts=TRANSFORM)
    (folder / "tests").mkdir()
    (folder / "tests/a.yml").write_text(f"{HEAD}    task: facts\n    given: [{batches}]\n")
    tests, errors = load_tests(load_project(folder))
    if errors:
        return errors
    (test,) = tests
    return [dict(landing_files(test, number, folder)) for number in range(len(test.test.given))]


def rows_of(files):
    ((path, content),) = files.items()
    with pa.BufferReader(content) as file:
        return path, parquet.read_table(file).to_pylist()


def test_events_and_lines_of_a_stream_become_messages_of_landed_batches(tmp_path):
    events = "{events: [{a: 1, hdr__kafka_key: eA==}, {a: é}]}"
    first, second = messages(
        tmp_path, f'{events}, {{lines: "oops\\n7", clock: 2026-02-01T00:00:00Z}}'
    )

    path, rows = rows_of(first)
    assert path == "clicks/clicks/batch-00000000000000000001.parquet"
    assert [row["value"].decode() for row in rows] == ['{"a": 1}', '{"a": "é"}']
    assert [row["hdr__kafka_key"] for row in rows] == ["eA==", None]
    path, rows = rows_of(second)
    assert path == "clicks/clicks/batch-00000000000000000002.parquet"
    assert [(row["value"], row["hdr__kafka_offset"]) for row in rows] == [(b"oops", 2), (b"7", 3)]
    assert {str(row["hdr__kafka_timestamp"]) for row in rows} == {"2026-02-01 00:00:00+00:00"}


def test_messages_have_the_header_columns_of_their_source(tmp_path):
    at = "hdr__kinesis_timestamp: '2026-03-01T00:00:00Z'"
    (files,) = messages(tmp_path, f"{{events: [{{a: 1, {at}}}]}}", source=KINESIS)

    _, (row,) = rows_of(files)
    assert (row["hdr__kinesis_stream"], row["hdr__kinesis_offset"]) == ("clicks", "0")
    assert str(row["hdr__kinesis_timestamp"]) == "2026-03-01 00:00:00+00:00"


@pytest.mark.parametrize("given", ["hdr__kafka_offset: 1", "hdr__kinesis_timestamp: soon"])
def test_a_header_column_that_the_source_cannot_have_is_refused(tmp_path, given):
    with pytest.raises(ConfigError) as caught:
        messages(tmp_path, f"{{events: [{{{given}}}]}}", source=KINESIS)

    assert caught.value.code == "POLYNYA-TEST-002"


@pytest.mark.parametrize(
    ("batch", "content", "said"),
    [
        ("{events: [{a: 1}]}", "csv", "only for messages of `auto`, `json`"),
        ("{lines: x}", "{type: avro, schema: '\"string\"'}", "and clicks lands `avro`"),
        ("{lines: x, file: a.json}", "json", "landed batches have their own names"),
    ],
)
def test_messages_that_a_test_cannot_write_are_errors_of_the_file(tmp_path, batch, content, said):
    (error,) = messages(tmp_path, batch, content=content)

    assert said in error.message
