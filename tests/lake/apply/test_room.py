"""Which indexes give way to a new one."""

from __future__ import annotations

import pytest

from polynya.lake.apply.key_index import (
    ABANDONED_SECONDS,
    IN_USE_SECONDS,
    IndexFileEntry,
    key_indexes,
    to_remove,
)
from polynya.model.errors import ConfigError

NOW = 10_000_000.0
OLD = IndexFileEntry("old.keys", 40, NOW - 9 * IN_USE_SECONDS)
OLDER = IndexFileEntry("older.keys", 40, NOW - 10 * IN_USE_SECONDS)
USED = IndexFileEntry("used.keys", 40, NOW - 1)
LEFT = IndexFileEntry(".building-x", 40, NOW - 2 * ABANDONED_SECONDS)
GROWING = IndexFileEntry(".building-y", 40, NOW - 1)


@pytest.mark.parametrize(
    ("entries", "needed", "free", "expected"),
    [
        ([OLD, OLDER, USED], 10, 1000, []),
        ([OLD, OLDER, USED], 40, 1000, ["older.keys"]),
        ([USED, OLD, OLDER], 70, 1000, ["older.keys", "old.keys"]),
        ([OLD, USED, LEFT], 60, 1000, [".building-x"]),
        ([OLD, GROWING], 110, 1000, "in use"),
        ([OLD, OLDER, USED], 140, 1000, "in use"),
        # A tenth of the disk stays free.
        ([OLD, OLDER], 10, 110, []),
        ([OLD, OLDER], 10, 109, ["older.keys"]),
        ([LEFT], 10, 109, [".building-x"]),
        ([USED], 10, 109, "1 bytes are missing"),
    ],
)
def test_the_least_recently_used_go(
    entries: list[IndexFileEntry], needed: int, free: int, expected: list[str] | str
) -> None:
    found = to_remove(entries, needed, limit=140, free=free, disk=1000, now=NOW)

    if isinstance(expected, str):
        assert isinstance(found, str)
        assert expected in found
    else:
        assert found == expected


def test_the_size_of_all_is_a_setting_of_the_machine() -> None:
    usual, small = key_indexes(None), key_indexes("300MB")

    assert usual is not None
    assert usual.folder.limit == 4 << 30
    assert small is not None
    assert small.folder.limit == 300 << 20
    assert key_indexes("0") is None
    with pytest.raises(ConfigError) as raised:
        key_indexes("plenty")
    assert raised.value.code == "POLYNYA-CFG-009"
    assert "POLYNYA_KEY_INDEX" in raised.value.message
