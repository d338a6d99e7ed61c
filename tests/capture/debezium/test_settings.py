"""What Debezium is told, so that its events are exact and land before the database is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from polynya.capture.source import Scratch, engine_settings

SCRATCH = Scratch(Path("/scratch"))


def settings(connector: str, *, has_history: bool = False, **own: str) -> dict[str, str]:
    return engine_settings(
        connector, own, SCRATCH, roll_bytes=1000, roll_seconds=0.25, has_history=has_history
    )


@pytest.mark.parametrize("connector", ["postgresql", "mariadb", "mysql"])
def test_nothing_is_left_out_or_rounded(connector: str) -> None:
    told = settings(connector)

    assert told["decimal.handling.mode"] == "precise"
    assert told["skipped.operations"] == "none"
    assert told["value.converter.replace.null.with.default"] == "false"
    assert int(told["max.queue.size"]) > int(told["max.batch.size"])
    assert told["poll.interval.ms"] == "100"
    assert told["errors.max.retries"] == "0"


def test_postgresql_begins_at_our_offset_without_a_snapshot_of_its_own() -> None:
    told = settings("postgresql")

    assert told["snapshot.mode"] == "no_data"
    assert told["publication.autocreate.mode"] == "disabled"
    assert told["offset.storage.file.filename"] == "/scratch/offsets.dat"


def test_a_binlog_is_read_by_the_history_where_there_is_one() -> None:
    assert settings("mariadb")["snapshot.mode"] == "recovery"
    assert settings("mariadb", has_history=True)["snapshot.mode"] == "no_data"


def test_the_database_has_the_last_word() -> None:
    assert settings("mariadb", **{"snapshot.mode": "when_needed"})["snapshot.mode"] == "when_needed"
