"""Statistics for planners, as readers of Iceberg find them."""

from __future__ import annotations

import itertools
import json
import struct
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.table.statistics import StatisticsFile

from polynya.lake.maintenance.base import ActionLimits
from polynya.lake.maintenance.snapshots import sizes
from polynya.lake.maintenance.statistics import compute_statistics
from polynya.lake.read.inspect import load
from polynya.lake.spark.catalog import python_catalog
from polynya.model.loader import load_project
from tests.lab.lab import STARTED, Feed, Lab, put
from tests.lab.owned import owned

MAGIC = b"PFA1"
#: A sketch that holds each value that it has seen says so by two longs before them, or by one.
EXACT = {2: lambda sketch: struct.unpack_from("<i", sketch, 8)[0], 1: lambda _: 1}


def by_pyiceberg(users: Feed) -> list[StatisticsFile]:
    catalog = python_catalog(load_project(users.lab.project, tolerant=True).target)
    table = load(catalog, users.dataset)
    assert table is not None
    return table.metadata.statistics


def sketched(puffin: Path) -> dict[int, int]:
    """Distinct values by field of a Puffin file, read by its specification and that of a sketch."""
    data = puffin.read_bytes()
    size, _, end = struct.unpack("<ii4s", data[-12:])
    assert data[:4] == end == data[-16 - size : -12 - size][:4] == MAGIC
    found = {}
    for blob in json.loads(data[-12 - size : -12])["blobs"]:
        assert blob["type"] == "apache-datasketches-theta-v1"
        packed = data[blob["offset"] : blob["offset"] + blob["length"]]
        codec = blob.get("compression-codec")
        sketch = (
            pa.CompressedInputStream(pa.BufferReader(packed), codec).read() if codec else packed
        )
        (field,) = blob["fields"]
        found[field] = EXACT[sketch[0] & 0x3F](sketch)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("version", [2, 3])
def test_readers_of_iceberg_find_them(lab: Lab, version: int) -> None:
    users = lab.feed(history=True, format_version=version)
    users.apply(*(put(key, key, name=f"n{key % 7}", tags=["x"]) for key in range(1, 41)))
    table = owned(users)

    done = compute_statistics(table, ActionLimits(STARTED))

    assert (done.commits, done.why.partition(" of snapshot")[0]) == (
        1, "distinct values of 2 columns",
    )  # fmt: skip
    ids = {one["name"]: one["id"] for one in table.table.columns()}
    wanted = {ids["id"]: 40, ids["name"]: 7}
    # Java wrote them; PyIceberg reads the metadata, and the sketches are read here.
    (file,) = by_pyiceberg(users)
    assert file.snapshot_id == table.state.snapshot
    blobs = file.blob_metadata
    assert {one.fields[0]: int((one.properties or {})["ndv"]) for one in blobs} == wanted
    path = Path(file.statistics_path.removeprefix("file:"))
    assert path.stat().st_size == file.file_size_in_bytes == done.written_bytes
    assert sketched(path) == wanted


def test_they_give_way_in_the_middle_of_the_scan(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    # A scan of so few rows may be over before the first look.
    monkeypatch.setattr("polynya.lake.spark.tasks._POLL_SECONDS", 0.005)
    users = lab.feed()
    users.apply(*(put(key, key, name=f"n{key}") for key in range(1, 41)))
    table = owned(users)
    asked = itertools.count()

    # Nobody waits when it begins.
    done = compute_statistics(table, ActionLimits(STARTED, give_way=lambda: next(asked) > 0))

    assert (done.commits, done.whole, done.why) == (0, False, "it gave way")
    assert next(asked) > 1
    assert table.table.metadata().get("statistics", []) == []
    assert not [path for path in sizes(table.table) if path.endswith(".stats")]
    # The session is of use as before.
    assert compute_statistics(table, ActionLimits(STARTED)).commits == 1
