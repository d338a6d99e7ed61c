"""Bad records and bad files end in quarantine, one row each; good rows are not delayed.

What is asked at the end is a process of its own, as users start it: nothing of the runs is in it.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.oracle.emit import NATIVE_SETTINGS
from tests.oracle.packs.driver import CliDriver, Driver
from tests.oracle.packs.pack import Landing, Pack, alternating
from tests.oracle.packs.read_back import partition_counts

pytestmark = pytest.mark.spark


def _good(key: int) -> bytes:
    return b'{"id":%d,"name":"n%d","op":"U","seq":%d,"eventTime":"2026-01-01T00:00:01Z"}' % (
        key,
        key,
        key,
    )


BAD_LINES = (
    b'{"id":101,"name":"\xff\xfe","op":"U","seq":1}',
    b'{"id":102,"name":"cut off',
    b'{"id":103,"name":"n","op":"U","seq":NaN}',
    b'{"id":104,"id":105,"name":"n","op":"U","seq":1}',
    b'{"id":null,"name":"n","op":"U","seq":1}',
    b'{"id":106,"name":"n","op":"U","seq":null}',
    b'{"id":107,"name":"n","op":"U","seq":1,"eventTime":"99999-01-01"}',
    b'{"id":108,"name":{"an":"object"},"op":"U","seq":1}',
    b"[1, 2]",
    b'"text"',
    b'{"id":109,"deep":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"id":"110","name":"text where numbers were","op":"U","seq":1}',
)


@pytest.fixture(scope="module")
def shop(driver: Driver, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs over what is bad in one dataset, all there is in another, and good in a third."""
    folder = tmp_path_factory.mktemp("bad-input")
    keyed = {**NATIVE_SETTINGS, "keys": ["id"]}
    landings = [
        Landing("bad", "some", [[]], {**keyed, "history": True}),
        Landing("bad", "all", [['{"id":'], ["[]"]], keyed),
        Landing("bad", "none", [[_good(1).decode()], [_good(2).decode()]], keyed),
    ]
    pack = Pack(folder, landings)
    pack.write_project()
    _land_bad_files(folder / "landing" / "bad" / "some")
    pack.run(driver, alternating)
    return folder


def _land_bad_files(folder: Path) -> None:
    lines = [
        _good(1),
        *(
            line
            for bad, n in zip(BAD_LINES, range(2, 99), strict=False)
            for line in (bad, _good(n))
        ),
    ]
    (folder / "1.json").write_bytes(b"\n".join(lines) + b"\n\n")
    (folder / "2.json").write_bytes(gzip.compress(_good(200) * 50)[:-9])
    (folder / "3.json").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(200))
    (folder / "4.json").write_bytes(b"\xef\xbb\xbf" + _good(300))


def test_each_bad_record_and_file_is_in_quarantine(shop: Path) -> None:
    assert partition_counts(shop, "bad", "some")["quarantine"] == len(BAD_LINES) + 2
    assert partition_counts(shop, "bad", "all")["quarantine"] == 2


def test_no_good_row_is_lost_nor_held_up_by_bad_ones(shop: Path) -> None:
    some, none = CliDriver().query(shop, ["SELECT id FROM bad.some", "SELECT id FROM bad.none"])

    good = {1, 300, *range(2, 2 + len(BAD_LINES))}
    assert sorted(row["id"] for row in some) == sorted(good)
    assert sorted(row["id"] for row in none) == [1, 2]
