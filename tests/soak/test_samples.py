"""What is measured is what is there: files by kind, steps of a run, means of parts of the time."""

from __future__ import annotations

import json
import math
from pathlib import Path

from tests.soak.reading import at
from tests.soak.samples import Sample, Told, newest, rows, stored, typical


def test_files_are_counted_by_kind(tmp_path: Path) -> None:
    kinds = {
        "data/a.parquet": 10,
        "data/part/b.parquet": 20,
        "metadata/00001-x.metadata.json": 3,
        "metadata/snap-1.avro": 4,
        "metadata/2-m0.avro": 5,
        "metadata/3.stats": 6,
        "metadata/.snap.crc": 1000,
    }
    for name, size in kinds.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"." * size)

    found = stored([tmp_path])

    assert (found.data, found.manifests, found.metadata_json, found.others) == (2, 2, 1, 1)
    assert (found.data_bytes, found.metadata_bytes) == (30, 18)


def test_figures_are_those_of_the_newest_snapshot() -> None:
    totals = {"total-records": "7", "total-data-files": "3", "total-delete-files": "1"}
    document = {
        "current-snapshot-id": 2,
        "snapshots": [
            {"snapshot-id": 1, "summary": {"total-records": "1"}},
            {"snapshot-id": 2, "summary": totals},
        ],
    }

    found = newest(json.dumps(document))

    assert dict(found) == {"rows": 7, "data_files": 3, "delete_files": 1, "snapshots": 2}


def test_what_a_run_tells_is_read_once_and_by_whole_lines(tmp_path: Path) -> None:
    output = tmp_path / "run.log"
    copied = '{"type":"batch.copied","subject":"a","seconds":0.5}\n'
    output.write_text("copied   a: text for people\n" + copied + copied[:20])
    told = Told(output)

    assert told.steps() == [0.5]
    assert told.steps() == []
    with output.open("a") as sink:
        sink.write(copied[20:])
    assert told.steps() == [0.5]


def test_actions_and_failures_of_maintenance_are_noticed(tmp_path: Path) -> None:
    def done(files: int) -> str:
        return json.dumps(
            {
                "type": "maintenance.done",
                "action": "expire_snapshots",
                "files_removed": files,
                "freed_bytes": files,
            }
        )

    failed = '{"type":"maintenance.failed","subject":"shop.a","error":"error[X]: no"}'
    output = tmp_path / "run.log"
    output.write_text("\n".join([done(3), done(0), failed, ""]))
    told = Told(output)
    told.steps()

    assert dict(told.actions) == {"expire_snapshots": 1}
    assert told.problems == ["maintenance.failed: shop.a: error[X]: no"]


def test_a_row_for_people_has_the_means_of_its_part() -> None:
    samples = [
        Sample(float(n), *(float(n) for _ in range(10)), math.nan if n < 6 else 1.0)
        for n in range(13)
    ]

    found = rows(samples, 4)

    assert [one.second for one in found] == [3.0, 6.0, 9.0, 12.0]
    assert [one.rows for one in found] == [1.5, 5.0, 8.0, 11.0]
    assert math.isnan(found[0].query_seconds)
    assert found[1].query_seconds == 1.0
    assert math.isnan(typical([]))


def test_a_live_view_is_asked_of_another_metadata_file() -> None:
    text = "SELECT * FROM iceberg_scan('/a/1.json') UNION SELECT * FROM iceberg_scan('/a/1.json')"

    assert at(text, "/it's/2.json") == text.replace("/a/1.json", "/it''s/2.json")
