"""What Amazon Data Firehose writes passes through a task, with and without its delimiter."""

from __future__ import annotations

import gzip
import json
from typing import Any

from tests.lab.lab import Feed, Lab

HOUR = "2026/11/28/07"
_PLAIN: dict[str, Any] = {
    **dict.fromkeys(("timestamp", "apply_as_deletes", "apply_as_truncates")),
    "path": "**/*",
    "except_columns": ["seq"],
    "history": False,
}


def records(*rows: dict[str, Any], end: bytes = b"\n") -> bytes:
    """A file as Firehose packs it: records one after the other, each with the delimiter, if any."""
    return gzip.compress(b"".join(json.dumps(row).encode() + end for row in rows))


def deliver(users: Feed, name: str, content: bytes) -> None:
    """Write an object below the prefix of a delivery stream."""
    path = users.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def row(key: int, seq: int, name: str) -> dict[str, Any]:
    return {"id": key, "seq": seq, "name": name}


def test_json_of_firehose_is_read_by_hour_and_by_partition_key(lab: Lab) -> None:
    users = lab.feed(**_PLAIN)
    stem = "web-1-2026-11-28-07-00-12-6f0c"
    deliver(users, f"{HOUR}/{stem}.json.gz", records(row(1, 1, "Ann"), row(2, 2, "Ben")))
    # Delivered twice, as Firehose may do; and below `!{partitionKeyFromQuery:country}`.
    deliver(users, f"{HOUR}/{stem}-again.json.gz", records(row(1, 1, "Ann"), row(2, 2, "Ben")))
    deliver(users, f"country=NO/{HOUR}/{stem}.json.gz", records(row(1, 3, "Anna")))
    # Without the delimiter: set aside whole, with the setting that reads it.
    deliver(users, f"{HOUR}/{stem}.old.gz", records(row(8, 4, "Hal"), row(9, 5, "Ida"), end=b""))

    users.run("always")

    assert users.current("id", "name") == [(1, "Anna"), (2, "Ben")]
    ((file, _, rule),) = users.rejected()
    assert (file.rpartition("/")[2], rule) == (f"{stem}.old.gz", "unreadable_file")


def test_records_without_a_delimiter_are_read_with_a_record_path(lab: Lab) -> None:
    users = lab.feed(
        **_PLAIN,
        task={"landing": {"path": f"{lab.schema}/users", "format": "json", "record_path": "$"}},
    )  # fmt: skip
    deliver(users, f"{HOUR}/a.gz", records(row(1, 1, "Ann"), row(2, 2, "B}{en"), end=b""))
    deliver(users, f"{HOUR}/b.gz", records(row(2, 3, "Ben")))

    users.run("always")

    assert users.current("id", "name") == [(1, "Ann"), (2, "Ben")]
    assert users.rejected() == []


def test_parquet_of_record_conversion(lab: Lab) -> None:
    users = lab.parquet_feed(path="**/*.parquet")
    users.land_table(f"{HOUR}/web-1-6f0c.parquet", id=[1, 2], seq=[1, 2], name=["Ann", "Ben"])
    users.land_table(f"{HOUR}/web-1-7a1d.parquet", id=[2], seq=[3], name=["Benny"])

    users.run("always")

    assert users.current("id", "name") == [(1, "Ann"), (2, "Benny")]
