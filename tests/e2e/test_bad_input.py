"""Bad records and bad files end in quarantine, one row each; good rows are not delayed."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.oracle.driver import driver, query, run_project
from tests.oracle.emit import NATIVE_SETTINGS
from tests.oracle.pack import Landing, Pack
from tests.oracle.read_back import partition_counts

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


def test_bad_input_is_quarantined_and_nothing_is_lost(tmp_path: Path) -> None:
    settings = {**NATIVE_SETTINGS, "keys": ["id"], "history": True}
    Pack(tmp_path, [Landing("bad", "t", [[]], settings)]).write_project()
    folder = tmp_path / "landing" / "bad" / "t"
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

    run_project(tmp_path, "always")

    (rows,) = query(tmp_path, ["SELECT id FROM bad.t"])
    good = {1, 300, *range(2, 2 + len(BAD_LINES))}
    assert sorted(row["id"] for row in rows) == sorted(good)
    assert partition_counts(tmp_path, "bad", "t")["quarantine"] == len(BAD_LINES) + 2


def test_a_dataset_of_nothing_but_bad_rows_does_not_stop_the_others(tmp_path: Path) -> None:
    settings = {**NATIVE_SETTINGS, "keys": ["id"]}
    landings = [
        Landing("mixed", "bad", [['{"id":'], ["[]"]], settings),
        Landing("mixed", "good", [[_good(1).decode()], [_good(2).decode()]], settings),
    ]

    Pack(tmp_path, landings).run(driver(), lambda _: "policy")

    (rows,) = query(tmp_path, ["SELECT id FROM mixed.good ORDER BY id"])
    assert [row["id"] for row in rows] == [1, 2]
    assert partition_counts(tmp_path, "mixed", "bad")["quarantine"] == 2
