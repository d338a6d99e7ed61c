"""ZIP archives of data: their members are one file, and damage or a bomb refuses the whole."""

from __future__ import annotations

import gzip
import io
import os
import random
import struct
import zipfile
from collections.abc import Mapping

import pytest

from polynya.formats import limits
from polynya.model.config.settings import Delivery
from tests.formats.helpers import a_dataset, column, json_lines, read, rules

SEED = int(os.environ.get("POLYNYA_TEST_SEED", "1"))
FIRST, SECOND = b"id,n\n1,10\n2,20", b"id,n\r\n3,30\n"


def packed(
    members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED, comment: bytes = b""
) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.comment = comment
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def test_a_zipped_file_is_read_as_it_is() -> None:
    assert column(read(packed({"a.csv": FIRST}), a_dataset("csv")), "n") == [10, 20]
    lines = packed({"a.json": json_lines({"id": 1, "n": 2})}, comment=b"by hand")
    assert column(read(lines), "n") == [2]


def test_members_of_one_kind_are_one_file() -> None:
    members = {"in/2.csv": SECOND, "in/1.csv": FIRST, "__MACOSX/in/._1.csv": b"x", ".DS_Store": b""}

    batch = read(packed(members), a_dataset("csv"))

    assert column(batch, "id") == [1, 2, 3]
    assert rules(batch) == []


def test_a_batch_goes_on_inside_of_an_archive() -> None:
    archive = packed({"1.csv": FIRST, "2.csv": SECOND})

    assert column(read({"a": archive}, a_dataset("csv"), starts={"a": 2}), "id") == [3]


def test_a_setting_names_the_members_with_the_data() -> None:
    archive = packed({"readme.txt": b"hello", "data/1.csv": FIRST})

    batch = read(archive, a_dataset("csv", delivery=Delivery(zip_member="*.csv")))
    (refused,) = read(archive, a_dataset("csv")).rejected

    assert column(batch, "id") == [1, 2]
    assert 'set `zip_member`, as in `zip_member: "*.csv"`' in refused.error


def test_each_member_has_its_own_mark_and_title() -> None:
    members = {
        name: f"title {name}\n# note\nid;n\n{name};5\n".encode("utf-16") for name in ("1", "2")
    }
    delivery = Delivery(encoding="utf-16", delimiter=";", comment="#", skip_lines=1)
    dataset = a_dataset("csv", delivery=delivery)

    assert column(read(packed(members), dataset), "id") == [1, 2]


@pytest.mark.parametrize(
    ("archive", "reason"),
    [
        (packed({"1.csv": FIRST, "2.csv": b"n,id\n1,2\n"}), "header lines differ"),
        (packed({}), "without files"),
        (packed({"a.csv": FIRST})[:-30], "broken ZIP archive"),
        (packed({"a.gz": gzip.compress(FIRST)}), "a gzip archive inside a ZIP archive"),
        (packed({"a.zip": packed({"a.csv": FIRST})}), "a ZIP archive inside a ZIP archive"),
        (packed({"a.csv": FIRST}, zipfile.ZIP_LZMA), "compressed by method 14"),
        (
            packed({"xl/workbook.xml": b"<a/>", "b.rels": b""}),
            "workbook (.xlsx): land it with `format: excel`",
        ),
        (packed({f"{n}.csv": b"" for n in range(10_001)}), "10,001 files"),
        (packed({"a.csv": b'id,"n\nm"\n1,2\n'}), "a header of several lines"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_archives_are_refused_whole(archive: bytes, reason: str) -> None:
    batch = read(archive, a_dataset("csv"))

    (refused,) = batch.rejected
    assert rules(batch) == [(-1, "unreadable_file")]
    assert reason in refused.error


def test_an_encrypted_member_is_named() -> None:
    archive = bytearray(packed({"a.csv": FIRST}))
    for mark, at in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        archive[archive.index(mark) + at] |= 1

    (refused,) = read(bytes(archive), a_dataset("csv")).rejected

    assert "`a.csv` in the ZIP archive is encrypted" in refused.error


def test_a_bomb_is_refused_before_it_fills_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SMALL_BYTES", 1 << 20)
    archive = packed({f"{n}.csv": b"id,n\n" + b"1,1\n" * 200_000 for n in range(3)})

    (refused,) = read(archive, a_dataset("csv")).rejected

    assert f"a ZIP archive of {len(archive):,} bytes holds more than 1,048,576" in refused.error


def test_a_table_of_contents_that_cannot_be_meant_is_not_read() -> None:
    archive = packed({"a.csv": FIRST})
    end = archive.index(b"PK\5\6")
    large = archive[:end] + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, 9, 9, 1 << 30, 0, 0)

    (refused,) = read(large, a_dataset("csv")).rejected

    assert "table of contents of 1,073,741,824 bytes" in refused.error


@pytest.mark.parametrize("number", range(60))
def test_damage_anywhere_is_a_refusal_of_the_file(number: int) -> None:
    choice = random.Random(f"{SEED} {number}")
    archive = bytearray(packed({"1.csv": FIRST, "2.csv": SECOND}, comment=b"c" * 20))
    for _ in range(choice.randint(1, 4)):
        at = choice.randrange(4, len(archive))
        archive[at] = choice.randrange(256)

    batch = read(bytes(archive), a_dataset("csv"))

    assert column(batch, "id") == [1, 2, 3] or rules(batch)
