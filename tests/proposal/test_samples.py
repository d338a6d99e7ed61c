"""Which files are found, in which families, and why others are refused."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from polynya.cli.main import main
from polynya.model.errors import ConfigError
from polynya.model.loader import load_project
from polynya.model.names import S3Location
from polynya.proposal.proposal import encoding_of, proposed
from polynya.proposal.samples import families_of, found_files


@pytest.mark.parametrize(
    ("paths", "families"),
    [
        (["orders_2026-01-01.csv", "orders_2026-01-02.csv"], {"orders": "orders_*.csv"}),
        (["orders.csv", "users.csv"], {"orders": "orders.csv", "users": "users.csv"}),
        (["orders.csv", "orders.json"], {"orders": "orders.csv", "orders_2": "orders.json"}),
        (["2026-01.csv", "2026-02.csv"], {"shop": "*.csv"}),
        (["orders/1.csv", "orders/2.csv"], {"orders": "orders/*.csv"}),
        (
            ["orders/dt=2026-01-01/part-00000.parquet", "orders/dt=2026-01-02/part-00000.parquet"],
            {"dt": "orders/dt=*/part-*.parquet"},
        ),
        (["a-0a1b2c3d-0000-4000-8000-00000000abcd.json"], {"a": "a-*.json"}),
    ],
)
def test_families_of_names(paths: list[str], families: dict[str, str]) -> None:
    assert {family.name: family.glob for family in families_of(paths, "shop")} == families


def test_a_folder_and_a_glob_give_the_same_files(tmp_path: Path) -> None:
    for name in ("orders_1.csv", "orders_2.csv", "users.csv", ".hidden.csv", "half.csv.part"):
        (tmp_path / name).write_text("id\n1\n")

    folder = found_files(str(tmp_path))
    glob = found_files(f"{tmp_path}/orders_*.csv")

    assert [family.files for family in folder.families] == [
        ("orders_1.csv", "orders_2.csv"),
        ("users.csv",),
    ]
    assert glob.families == folder.families[:1]


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The bucket `acme-landing` in a stand-in for AWS."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with mock_aws():
        s3 = boto3.client("s3")
        s3.create_bucket(Bucket="acme-landing")
        yield s3


def test_files_on_s3_stay_where_they_are(bucket: Any) -> None:
    for name in ("orders_1.csv", "orders_2.csv", "users.csv"):
        bucket.put_object(Bucket="acme-landing", Key=f"shop/in/{name}", Body=b"id;city\n1;a\n2;b\n")

    found = found_files("s3://acme-landing/shop/in/orders_*.csv")

    (family,) = found.families
    assert found.place == S3Location("acme-landing", "shop/in")
    assert (family.name, family.glob) == ("orders", "orders_*.csv")
    assert proposed(found, family, "shop").outcome.copied == 4
    assert [family.name for family in found_files("s3://acme-landing/shop/in").families] == [
        "orders",
        "users",
    ]
    assert found_files("s3://acme-landing/shop/in/users.csv").families[0].files == ("users.csv",)


def test_a_project_for_files_on_s3_names_their_folder(bucket: Any, tmp_path: Path) -> None:
    bucket.put_object(Bucket="acme-landing", Key="shop/in/users.csv", Body=b"id;city\n1;a\n")

    assert main(["init", str(tmp_path / "p"), "--from", "s3://acme-landing/shop/in/"]) == 0

    project = load_project(tmp_path / "p")
    [task] = project.tasks
    assert project.target.landing == S3Location("acme-landing", "shop")
    assert (task.landing.path, task.datasets[0].path) == ("in", "users.csv")
    assert not (tmp_path / "p/landing").exists()


def test_a_family_on_s3_takes_no_file_of_another(bucket: Any) -> None:
    for name in ("orders_1.csv", "orders_1_eu.csv"):
        bucket.put_object(Bucket="acme-landing", Key=f"shop/{name}", Body=b"id\n1\n")

    with pytest.raises(ConfigError, match=r"names files of `orders_\*_eu.csv`, too"):
        found_files("s3://acme-landing/shop")


def test_the_root_of_a_bucket_is_refused(bucket: Any) -> None:
    with pytest.raises(ConfigError, match="not the root of a bucket"):
        found_files("s3://acme-landing/*.csv")


def archive(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        for name in names:
            packed.writestr(name, "x")
    return file.getvalue()


def tar() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as packed:
        packed.addfile(tarfile.TarInfo("a.csv"))
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "what", "fix"),
    [
        (archive("[Content_Types].xml", "xl/workbook.xml"), "broken workbook", "check"),
        (archive("mimetype", "content.xml"), "spreadsheet", "CSV UTF-8"),
        (archive("a.txt", "b.pdf"), "a ZIP archive with files of several kinds", "check"),
        (archive()[:20], "broken ZIP archive", "check"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "an old Office file", "CSV UTF-8"),
        (b"%PDF-1.7\n%\xe2\xe3", "a PDF document", "ask for the data"),
        (b"\x89PNG\r\n\x1a\n\0\0", "a PNG image", "the file with the data"),
        (gzip.compress(tar(), mtime=0), "a tar archive", "tar -xf"),
        (b"<!doctype HTML><html>", "a web page", "login"),
        (b'<?xml version="1.0"?><a/>', "an XML document", "convert"),
        ("id,city\n1,a\n".encode("utf-32-le"), "UTF-32 without a byte order mark", "iconv"),
        (bytes(range(256)) * 40, "not text", "CSV, JSON or Parquet"),
        (b"id,city\r1,a\r2,b\r", "old Macs", "tr "),
        # Names and cities in Cyrillic letters, as windows-1251 has them.
        (
            b"\xe8\xec\xff,\xe3\xee\xf0\xee\xe4\n\xc8\xe2\xe0\xed,\xcc\xee\xf1\xea\xe2\xe0\n",
            "western alphabet",
            "iconv",
        ),
        (b"", "no records", "with records"),
        (b"id,city\n", "no records", "with records"),
        (b"PAR1", "Parquet", "check"),
        (gzip.compress(b"id\n1\n" * 99, mtime=0)[:-9], "broken gzip archive", "check"),
        (b'{"a": ', "not JSON", "correct"),
        (b"[1]\n", "other values than objects", "JSON object"),
    ],
)
def test_files_without_records_are_refused_with_what_they_are(
    tmp_path: Path, content: bytes, what: str, fix: str
) -> None:
    file = tmp_path / "file.dat"
    file.write_bytes(content)
    found = found_files(str(file))

    with pytest.raises(ConfigError) as caught:
        proposed(found, found.families[0], "shop")

    assert caught.value.where == str(file)
    assert what in caught.value.message
    assert fix in (caught.value.fix or "")


@pytest.mark.parametrize("place", ["missing.csv", "missing/*.csv", "*.none"])
def test_a_place_without_files_is_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(ConfigError, match=r"no such file|no file with content"):
        found_files(str(tmp_path / place))


@pytest.mark.parametrize(
    ("content", "encoding"),
    [
        ("Köln".encode(), None),
        ("Köln".encode("cp1252"), "windows-1252"),
        ("5 €".encode("cp1252") + b" and more", "windows-1252"),
        (b"K\xf6ln \x81", "iso-8859-1"),
        (b"\xff\xfea\0", "utf-16"),
        ("Köln, Århus".encode("utf-32"), "utf-32"),
        ("Köln, Århus".encode("utf-16-be"), "utf-16-be"),
        # One damaged line does not change what all others say.
        ("Köln\nÅrhus\n".encode() + b"K\xf6ln\n", None),
    ],
)
def test_encodings(content: bytes, encoding: str | None) -> None:
    found = encoding_of(content)

    assert (found and found.value) == encoding
