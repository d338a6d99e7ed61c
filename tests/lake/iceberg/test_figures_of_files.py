"""What the metadata says of a file that was written without Spark: what Iceberg reads in it."""

from __future__ import annotations

from polynya.formats.loads import LoadLimits
from polynya.model.headers import Partition
from tests.lab.lab import Lab, Look, drop, put

FIGURES = ("valueCounts", "nullValueCounts", "lowerBounds", "upperBounds")


def checked(users: Look, partition: Partition) -> int:
    """Compare the figures of each file of a partition; the number of files."""
    state, table = users.table().state, users.table().table
    assert state.snapshot is not None
    config = table.iceberg.MetricsConfig.forTable(table.java)
    copied = table.spark._jvm.java.util.HashMap
    files = table._scanned(partition, state.snapshot, with_bounds=True)
    for file in files:
        content = table.java.io().newInputFile(file.location())
        read = table.iceberg.parquet.ParquetUtil.fileMetrics(content, config)
        assert file.fileSizeInBytes() == content.getLength()
        assert file.recordCount() == read.recordCount()
        for name in FIGURES:
            told = copied(getattr(file, name)())
            assert len(told) > 5
            assert told.equals(copied(getattr(read, name)())), name
    return len(files)


def test_figures_of_changed_rows(lab: Lab) -> None:
    users = lab.feed()
    users.apply(put(1, 1, name="Ann", size=1.5), put(2, 2, name=None), drop(3, 3))

    assert (checked(users, Partition.CURRENT), checked(users, Partition.PRIOR)) == (1, 1)


def test_figures_of_loaded_rows(lab: Lab) -> None:
    users = lab.feed(initial_load="load/*.json", apply_as_truncates=None)
    users.applier = {"load_limits": LoadLimits(least_bytes=1)}
    users.land(*({"id": n, "name": f"user {n}"} for n in range(100)), file="load/1.json")
    users.run("never")

    assert checked(users, Partition.CURRENT) == 1
