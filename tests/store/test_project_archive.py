"""Archives of projects: what goes in, what is refused, and what a hostile one cannot do."""

from __future__ import annotations

import gzip
import io
import tarfile

import pytest

from polynya.model.config.aws import AwsAccess
from polynya.model.errors import ConfigError, ConfigErrors
from polynya.model.names import S3Location
from polynya.store.object_store import LocalObjectStore
from polynya.store.project_archive import MAX_ARCHIVE_BYTES, export, packed, unpack
from tests.projects import CLICKS, PROJECT, USERS, write_project

SHOP = "type: postgresql\nhost: 127.0.0.1\ndatabase: shop\nuser: reader\npassword: {env: SHOP_PW}\n"


@pytest.fixture
def project(tmp_path):
    folder = write_project(tmp_path / "shop", project=PROJECT, users=USERS)
    for path, text in {
        "connections/shop.yml": SHOP,
        "connections/rds.pem": "-----BEGIN CERTIFICATE-----\nMII=\n-----END CERTIFICATE-----\n",
        "bindings/local.yml": "connections: {shop: {host: db.prod}}\n",
        ".polynya/state.json": "{}\n",
        ".env": "SHOP_PW=hunter2\n",
        "landing/users/1.json": "{}\n",
        "warehouse/catalog.db": "",
    }.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return folder


def archive_of(*members: tuple[tarfile.TarInfo | str, bytes]) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for member, content in members:
            info = tarfile.TarInfo(member) if isinstance(member, str) else member
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), mtime=0)


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def test_an_archive_has_the_project_without_data_state_and_bindings(project, tmp_path):
    names = export(project, tmp_path / "shop.tar.gz", AwsAccess())

    assert names == [
        "connections/rds.pem", "connections/shop.yml", "polynya.yml", "tasks/users.yml"
    ]  # fmt: skip
    assert unpack(tmp_path / "shop.tar.gz", tmp_path / "copy") == names
    for name in names:
        assert (tmp_path / "copy" / name).read_bytes() == (project / name).read_bytes()
    found = [path for path in (tmp_path / "copy").rglob("*") if path.is_file()]
    assert len(found) == len(names)


def test_the_same_files_give_the_same_bytes(project, tmp_path):
    export(project, tmp_path / "a.tar.gz", AwsAccess())
    (project / "polynya.yml").touch()
    export(project, tmp_path / "b.tar.gz", AwsAccess())

    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()
    assert packed({"b": b"", "a": b""}) == packed({"a": b"", "b": b""})


@pytest.mark.parametrize(
    ("path", "text", "where"),
    [
        ("connections/shop.yml", SHOP.replace("{env: SHOP_PW}", "hunter2"), ":5:1"),
        (
            "connections/shop.yml",
            SHOP + "targets: {local: {password: '${env:PW:-hunter2}'}}\n",
            ":6:19",
        ),
        ("tasks/clicks.yml", CLICKS.replace("SSL}", "SSL, ssl.key.password: hunter2}"), ":8:42"),
        ("polynya.yml", PROJECT + "  prod: {catalog: {password: hunter2}}\n", ":6:20"),
        ("tasks/users.yml", USERS + "# postgres://app:hunter2@db/shop\n", ":11:11"),
        ("tasks/users.yml", USERS + "# AKIA" + "IOSFODNN7EXAMPLE\n", ":11:3"),
        ("connections/rds.pem", "x\n-----BEGIN RSA " + "PRIVATE KEY-----\n", ":2:1"),
        ("connections/shop.yml", "type: unknown\npassword: hunter2\n", ":2:1"),
    ],
)
def test_a_file_with_a_secret_is_named_and_nothing_is_written(project, tmp_path, path, text, where):
    (project / path).write_text(text, encoding="utf-8")

    with pytest.raises(ConfigErrors) as caught:
        export(project, tmp_path / "shop.tar.gz", AwsAccess())

    assert caught.value.errors[0].code == "POLYNYA-CFG-035"
    assert caught.value.errors[0].where == path + where
    assert "hunter2" not in str(caught.value)
    assert not (tmp_path / "shop.tar.gz").exists()


def test_a_file_that_cannot_be_read_is_not_passed_on_unread(project, tmp_path):
    (project / "tasks" / "users.yml").write_text("a: [", encoding="utf-8")

    with pytest.raises(ConfigErrors):
        export(project, tmp_path / "shop.tar.gz", AwsAccess())


def test_an_export_overwrites_nothing(project, tmp_path):
    (tmp_path / "shop.tar.gz").write_text("mine")

    with pytest.raises(ConfigError) as caught:
        export(project, tmp_path / "shop.tar.gz", AwsAccess())

    assert caught.value.code == "POLYNYA-CFG-054"
    assert (tmp_path / "shop.tar.gz").read_text() == "mine"


def test_an_archive_in_a_bucket_overwrites_nothing_either(project, tmp_path, monkeypatch):
    def bucket(place, _):
        return LocalObjectStore(tmp_path / place.bucket / place.prefix)

    monkeypatch.setattr("polynya.store.project_archive.store_at", bucket)
    place = S3Location("acme-lake", "archives/shop.tar.gz")
    names = export(project, place, AwsAccess())

    assert unpack(tmp_path / "acme-lake/archives/shop.tar.gz", tmp_path / "copy") == names
    for wrong in (place, S3Location("acme-lake")):
        with pytest.raises(ConfigError) as caught:
            export(project, wrong, AwsAccess())
        assert caught.value.code == "POLYNYA-CFG-054"


GOOD = ("polynya.yml", PROJECT.encode())


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (archive_of(GOOD, ("../evil.yml", b"")), "is not a file of a project"),
        (archive_of(GOOD, ("/tmp/evil.yml", b"")), "is not a file of a project"),
        (archive_of(GOOD, ("tasks/../../evil.yml", b"")), "is not a file of a project"),
        (archive_of(GOOD, ("tasks/a/b.yml", b"")), "is not a file of a project"),
        (archive_of(GOOD, (".polynya/x.yml", b"")), "is not a file of a project"),
        (archive_of(GOOD, ("bindings/prod.yml", b"")), "is not a file of a project"),
        (archive_of(GOOD, (link("tasks/a.yml", "/etc/passwd"), b"")), "is not a plain file"),
        (archive_of(GOOD, (link("tasks/a.yml", "polynya.yml", tarfile.LNKTYPE), b"")), "plain"),
        (archive_of(GOOD, (link("tasks/a.yml", "", tarfile.FIFOTYPE), b"")), "not a plain file"),
        (archive_of(GOOD, (link("tasks", "", tarfile.DIRTYPE), b"")), "is not a plain file"),
        (archive_of(GOOD, ("tasks/a.yml", b""), ("tasks/A.yml", b"")), "occurs twice"),
        (archive_of(GOOD, ("tasks/a.yml", b" " * 1_000_001)), "is larger than"),
        (archive_of(("tasks/a.yml", b"")), "exactly one polynya.yml"),
        (archive_of(GOOD, *((f"tasks/t{n}.yml", b"") for n in range(2_001))), "more than 2000"),
        (gzip.compress(bytes(MAX_ARCHIVE_BYTES + 1), mtime=0), "more than"),
        (archive_of(GOOD)[:-20], "not compressed with gzip, or is damaged"),
        (gzip.compress(b"x" * 2_000, mtime=0), "not an archive"),
        (b"PK\x03\x04", "not compressed with gzip"),
        (b"", "not an archive"),
    ],
)
def test_a_hostile_archive_writes_nothing(tmp_path, data, said):
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "evil.tar.gz").write_bytes(data)

    with pytest.raises(ConfigError) as caught:
        unpack(tmp_path / "evil.tar.gz", inside / "project")

    assert caught.value.code == "POLYNYA-CFG-053"
    assert said in str(caught.value)
    assert list(inside.iterdir()) == []


def test_an_import_overwrites_nothing(project, tmp_path):
    export(project, tmp_path / "shop.tar.gz", AwsAccess())
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "mine.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "empty").mkdir()

    for place in ("new", "file"):
        with pytest.raises(ConfigError, match="not empty") as caught:
            unpack(tmp_path / "shop.tar.gz", tmp_path / place)
        assert caught.value.code == "POLYNYA-CFG-053"

    assert [path.name for path in (tmp_path / "new").iterdir()] == ["mine.txt"]
    assert len(unpack(tmp_path / "shop.tar.gz", tmp_path / "empty")) == 4
