"""The usual hand-written `MERGE INTO`, with its table properties."""

from __future__ import annotations

from bench.floors.records import COLUMNS

#: Of an Iceberg table.
MERGE_ON_READ = (
    "'write.merge.mode'='merge-on-read', 'write.update.mode'='merge-on-read', "
    "'write.delete.mode'='merge-on-read', 'write.merge.distribution-mode'='none'"
)


def merge_into(table: str, batch: str) -> str:
    """Merge a relation of events: the newest event of each key, where it is newer than the row."""
    columns = ", ".join(COLUMNS)
    newest = (
        "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY seq DESC) AS n "
        f"FROM {batch}) WHERE n = 1"
    )
    values = ", ".join(f"t.{column} = s.{column}" for column in COLUMNS)
    inserted = ", ".join(f"s.{column}" for column in COLUMNS)
    return (
        f"MERGE INTO {table} t USING ({newest}) s ON t.id = s.id "
        "WHEN MATCHED AND s.seq > t.seq AND s.op = 'D' THEN DELETE "
        f"WHEN MATCHED AND s.seq > t.seq THEN UPDATE SET {values} "
        f"WHEN NOT MATCHED AND s.op <> 'D' THEN INSERT ({columns}) VALUES ({inserted})"
    )
