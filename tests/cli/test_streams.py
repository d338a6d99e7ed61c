"""`polynya status` and `polynya plan` of landings: from landed batches alone, without a source."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from polynya.cli.exit_codes import ExitCode
from polynya.cli.main import main
from polynya.cli.status import stream_block
from polynya.formats.landed import SCHEMAS, Counts, Lost, StreamFooter
from polynya.model.config.stream_content import JSON_CONTENT
from polynya.model.loader import load_project
from polynya.store.object_store import LocalObjectStore
from polynya.streams.files.files import RememberedFiles
from polynya.streams.files.position import FilesPosition
from polynya.streams.kafka.position import KafkaPosition, TopicPosition
from polynya.streams.kinesis.plan import KinesisPosition, KinesisStreamPosition, ShardPosition
from polynya.streams.landed_status import status_of, stream_statuses
from polynya.streams.landing import LandedLog
from tests.projects import CLICKS, write_project

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def footer(number=1, *, read=40, end=50, newest=NOON, lost=(), gone=0, task="clicks"):
    topic = TopicPosition("id-1", {0: read, 1: 7}, {0: end, 1: 7})
    counts = Counts(20, 2000, gone)
    return StreamFooter(
        task=task, table="clicks", source="kafka", number=number, content=JSON_CONTENT, begin={},
        end=KafkaPosition({"clicks": topic}, newest).to_json(),
        written_at=NOON + timedelta(seconds=10 * number), counts=counts,
        totals=Counts(20 * number, 2000 * number, gone), lost=lost,
    )  # fmt: skip


@pytest.fixture
def project(tmp_path):
    return write_project(tmp_path, clicks=CLICKS)


def landed(project, *footers):
    log = LandedLog(LocalObjectStore(project / "landing"), "clicks", "clicks")
    for one in footers:
        log.put(one, SCHEMAS["kafka"].empty_table())


def said(capsys, *arguments):
    code = main(arguments)
    return code, capsys.readouterr().out


def test_a_stream_that_is_behind_says_how_far_and_for_how_long():
    found = status_of(footer(3), footer(2), NOON + timedelta(minutes=5))

    assert (found.behind_records, found.behind_seconds) == (10, 300.0)
    assert (found.records, found.size_bytes, found.batches) == (60, 6000, 3)
    assert (found.records_per_second, found.bytes_per_second) == (2.0, 200.0)
    assert found.positions == {"clicks/0": "40", "clicks/1": "7"}


def test_a_stream_that_is_not_behind_is_no_seconds_behind():
    found = status_of(footer(read=50), None, NOON + timedelta(minutes=5))

    assert (found.behind_records, found.behind_seconds) == (0, 0.0)
    assert found.records_per_second is None


@pytest.mark.parametrize(
    ("source", "end", "shown"),
    [
        (
            "kinesis",
            KinesisPosition(
                {
                    "clicks": KinesisStreamPosition(
                        NOON,
                        {
                            "s0": ShardPosition("1", seen=NOON, ended=True),
                            "s1": ShardPosition("2", seen=NOON + timedelta(minutes=2)),
                            "s2": ShardPosition("3", seen=NOON + timedelta(minutes=4)),
                        },
                    )
                },
                behind=1,
            ),
            "behind     1 shard, 3.0 m",
        ),
        (
            "files",
            FilesPosition(RememberedFiles(), left=2, oldest=NOON.timestamp() + 60),
            "behind     2 files, 4.0 m",
        ),
        ("kinesis", KinesisPosition({}, behind=0), "behind     nothing when it was landed"),
        (
            "files",
            FilesPosition(RememberedFiles(), left=0),
            "behind     nothing when it was landed",
        ),
        # What older versions wrote does not say it.
        ("kinesis", KinesisPosition({}), None),
        ("files", FilesPosition(RememberedFiles()), None),
    ],
)
def test_each_source_is_behind_in_what_it_counts(source, end, shown):
    of_source = replace(footer(), source=source, end=json.loads(json.dumps(end.to_json())))

    found = status_of(of_source, None, NOON + timedelta(minutes=5))

    lines = stream_block(found, NOON, positions=False).splitlines()
    behind = [line.strip() for line in lines if line.startswith("  behind")]
    assert [line[: len(shown or "")] for line in behind] == ([shown] if shown else [])
    assert found.behind_records is None


def test_status_shows_streams_before_datasets(project, capsys):
    lost = (Lost("clicks/0", "3", "9", "retention"),)
    landed(project, footer(1), footer(2, lost=lost, gone=6))

    code, text = said(capsys, "status", "--project", str(project), "--verbose")

    assert code == ExitCode.OK
    lines = [line.strip() for line in text.splitlines()]
    assert lines[0] == "clicks/clicks"
    assert "landed     40 records, 4 KiB, 2 batches" in lines
    assert "rate       2.0 records/s, 200 bytes/s" in lines
    assert "lost       6 records at most" in lines
    assert "last loss  clicks/0: 3 to 9, retention" in lines
    assert "positions  clicks/0: 40, clicks/1: 7" in lines
    assert any(line.startswith("behind     10 records, ") for line in lines)


def test_the_rate_is_that_of_the_newest_ten_batches(project):
    store = LocalObjectStore(project / "landing")
    task = load_project(project).landings[0]
    rates = {}
    for number in range(1, 14):
        # The first two minutes were slow.
        at = NOON + timedelta(seconds=number + (120 if number > 2 else 0))
        landed(project, replace(footer(number), written_at=at))
        [found] = stream_statuses(store, task, at)
        rates[number] = found.records_per_second
    LandedLog(store, "clicks", "clicks").delete(3)
    [found] = stream_statuses(store, task, NOON)

    assert (rates[1], rates[2], rates[13]) == (None, 20.0, 20.0)
    assert rates[3] == round(40 / 122, 3)
    # Retention has removed the tenth before the newest.
    assert found.records_per_second == 20.0


def test_status_of_a_stream_for_programs(project, capsys):
    landed(project, footer(1))

    _, text = said(capsys, "status", "--project", str(project), "--json", "clicks/*")

    line = json.loads(text.splitlines()[1])
    assert (line["type"], line["stream"], line["behind_records"]) == (
        "stream.status",
        "clicks/clicks",
        10,
    )
    assert line["positions"] == {"clicks/0": "40", "clicks/1": "7"}


def test_a_landing_that_never_ran_is_named(project, capsys):
    _, text = said(capsys, "status", "--project", str(project))

    assert "nothing was landed yet: `polynya run`" in text


def test_a_name_that_neither_a_stream_nor_a_dataset_has_is_an_error(project, capsys):
    landed(project, footer(1))

    code, _ = said(capsys, "status", "--project", str(project), "klicks")

    assert code == ExitCode.USAGE


def test_a_plan_names_a_landing_until_it_has_landed(project, capsys):
    code, text = said(capsys, "plan", "--project", str(project), "--json")
    landed(project, footer(1))
    after, _ = said(capsys, "plan", "--project", str(project), "--json")

    assert (code, after) == (ExitCode.CHANGES, ExitCode.OK)
    first = json.loads(text.splitlines()[1])
    assert (first["type"], first["task"], first["kind"]) == ("plan.task", "clicks", "new_task")
