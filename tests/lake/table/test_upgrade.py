"""A table of an earlier version gets what bounds the metadata of a new one."""

from __future__ import annotations

import pytest

from polynya.lake.iceberg.layout import TABLE_PROPERTIES, missing_bounds
from tests.lab.lab import Feed, Lab, put

DELETE, KEPT, MERGE = (
    "write.metadata.delete-after-commit.enabled",
    "write.metadata.previous-versions-max",
    "commit.manifest.min-count-to-merge",
)
CODEC = "write.metadata.compression-codec"


@pytest.mark.parametrize(
    ("properties", "wanted"),
    [
        (TABLE_PROPERTIES, {}),
        ({**TABLE_PROPERTIES, MERGE: "30"}, {MERGE: "8"}),
        ({}, {DELETE: "true", KEPT: "20", MERGE: "8"}),
        ({DELETE: "false", KEPT: "100", MERGE: "50"}, {}),
    ],
    ids=["a new one", "of an earlier version", "of another engine", "chosen by somebody"],
)
def test_only_what_nobody_has_chosen_is_set(
    properties: dict[str, str], wanted: dict[str, str]
) -> None:
    assert missing_bounds(properties) == wanted


def test_a_table_of_an_earlier_version_is_bounded_when_it_is_taken_over(lab: Lab) -> None:
    users = lab.feed()
    users.copy(put(1, 1, name="Ann"))
    table = users.relation
    lab.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{MERGE}' = '30', 'theirs' = 'kept')")
    lab.spark.sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('{KEPT}')")

    users.table("ours").take_over()

    found = users.table().table.properties()
    assert (found[MERGE], found[KEPT], found["theirs"]) == ("8", "20", "kept")
    assert missing_bounds(found) == {}
    assert users.current("id", "name") == [(1, "Ann")]


def test_metadata_files_are_compressed_unless_somebody_wants_plain_ones(lab: Lab) -> None:
    users = lab.feed()
    users.copy(put(1, 1, name="Ann"))
    assert metadata_file(users).endswith(".gz.metadata.json")

    lab.spark.sql(f"ALTER TABLE {users.relation} SET TBLPROPERTIES ('{CODEC}' = 'none')")
    users.copy(put(2, 2, name="Ben"))

    assert not metadata_file(users).endswith(".gz.metadata.json")
    assert users.current("id", "name") == [(1, "Ann"), (2, "Ben")]


def metadata_file(users: Feed) -> str:
    """Where the newest metadata of a table is."""
    return str(users.table().table.java.operations().current().metadataFileLocation())
