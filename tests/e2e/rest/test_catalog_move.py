"""Tables move between catalogs of all kinds and back: real servers, and a stand-in for Glue."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.glue import GlueCatalog

from polynya.cli.main import main
from polynya.lake.spark.catalog import python_catalog
from polynya.lake.warehouse.catalogs import CatalogEntry
from polynya.lake.warehouse.registers import Register, register_of
from polynya.model.loader import load_project
from tests.aws import aws_server
from tests.postgresql import environment, postgres_server
from tests.projects import USERS, write_project
from tests.rest_catalogs import CREDENTIAL_VARIABLE, is_commit, proxy, reference_server

pytestmark = pytest.mark.slow

_ROW = pa.table({"id": pa.array([1], pa.int64())})
_SCHEMAS = ("shop", "shop_internal")
_PROJECT = """\
apiVersion: polynya/v1
kind: project
name: shop
targets:
"""
_TARGET = """\
  {name}:
    landing: {landing}
    warehouse: {warehouse}
{aws}    catalog: {{{catalog}}}
"""


def project_of(
    folder: Path, warehouse: str, catalogs: dict[str, str], *, endpoint: str = ""
) -> Path:
    """A project with one target for each catalog."""
    aws = f'    aws: {{region: eu-central-1, endpoint: "{endpoint}"}}\n' if endpoint else ""
    text = _PROJECT + "".join(
        _TARGET.format(name=name, landing="./in", warehouse=warehouse, aws=aws, catalog=catalog)
        for name, catalog in catalogs.items()
    )
    return write_project(folder, project=text, users=USERS)


def postgres(uri: str) -> str:
    user, password = '"${env:POLYNYA_TEST_DB_USER}"', '"${env:POLYNYA_TEST_DB_PASSWORD}"'
    return f"uri: {uri}, user: {user}, password: {password}"


def rest(uri: str) -> str:
    login = f'"${{env:{CREDENTIAL_VARIABLE}}}"'
    return (
        f'type: rest, uri: "{uri}", credential: {login}, oauth2_server_uri: "{uri}/v1/oauth/tokens"'
    )


def registered(project: Path, name: str) -> Register:
    target = load_project(project, name).target
    glue = python_catalog(target) if target.on_glue else None
    assert glue is None or isinstance(glue, GlueCatalog)
    return register_of(target, "polynya", glue)


def held(project: Path, name: str) -> dict[str, str]:
    """Metadata files of tables, and the texts of views."""
    found = registered(project, name).entries(_SCHEMAS)
    return {one.full_name: _text(one) if one.is_view else one.metadata for one in found}


def _text(view: CatalogEntry) -> str:
    data = Path(view.metadata).read_bytes()
    document = json.loads(gzip.decompress(data) if ".gz." in view.metadata else data)
    versions = {one["version-id"]: one for one in document["versions"]}
    newest = versions[document["current-version-id"]]
    return f"{document['properties']['polynya.definition']} {newest['representations']}"


def moved(project: Path, start: str, end: str) -> int:
    return main(["catalog", "move", "--to", end, "--target", start, "-p", str(project)])


@pytest.fixture
def logins(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a PostgreSQL server; its login and that of REST are in the environment."""
    with postgres_server() as server:
        for name, value in {**environment(server), CREDENTIAL_VARIABLE: "me:secret"}.items():
            monkeypatch.setenv(name, value)
        yield server.uri


def made(catalog: Catalog, rows: int = 1) -> None:
    catalog.create_namespace_if_not_exists("shop_internal")
    table = catalog.create_table(("shop_internal", "users_internal"), _ROW.schema)
    for _ in range(rows):
        table.append(_ROW)


def rows(project: Path, name: str) -> int:
    table = python_catalog(load_project(project, name).target).load_table(
        ("shop_internal", "users_internal")
    )
    return table.scan().to_arrow().num_rows


def test_from_sqlite_to_postgresql_to_rest_and_back(logins: str, tmp_path: Path) -> None:
    warehouse = tmp_path / "warehouse"
    with reference_server(tmp_path / "server", str(warehouse)) as server, proxy(server.uri) as way:
        catalogs = {"local": "type: jdbc", "pg": postgres(logins), "rest": rest(way.uri)}
        project = project_of(tmp_path, str(warehouse), catalogs)
        # A table of the server's own making, and a view.
        made(python_catalog(load_project(project, "rest").target))
        view = _view(warehouse)
        registered(project, "rest").put(view, None)
        before = held(project, "rest")
        assert set(before) == {"shop.users", "shop_internal.users_internal"}

        for start, end in (("rest", "local"), ("local", "pg"), ("pg", "rest")):
            assert moved(project, start, end) == 0, (start, end)
            assert held(project, end) == before, (start, end)
            assert held(project, start) == {}, (start, end)
            assert rows(project, end) == 1

        assert not any(is_commit(one) for one in way.seen[len(way.seen) // 2 :])


def _view(warehouse: Path) -> CatalogEntry:
    place = warehouse / "shop/users/metadata/00000-a.metadata.json"
    place.parent.mkdir(parents=True)
    version = {
        "version-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": {},
        "default-namespace": ["shop"],
        "representations": [{"type": "sql", "sql": "SELECT 1 AS id", "dialect": "spark"}],
    }  # fmt: skip
    field = {"id": 1, "name": "id", "required": False, "type": "int"}
    place.write_text(
        json.dumps({
            "view-uuid": "fa6506c3-7681-40c8-86dc-e36561f83385", "format-version": 1,
            "location": str(warehouse / "shop/users"), "current-version-id": 1,
            "versions": [version], "properties": {"polynya.definition": "abc"},
            "version-log": [{"timestamp-ms": 1, "version-id": 1}],
            "schemas": [{"type": "struct", "schema-id": 0, "fields": [field]}],
        })
    )  # fmt: skip
    return CatalogEntry("shop", "users", str(place), is_view=True)


class Killed(BaseException):
    """The process ended here."""


@pytest.mark.parametrize("pair", [("rest", "pg"), ("pg", "rest")])
def test_a_move_that_was_killed_within_a_step_goes_on(
    logins: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pair: tuple[str, str]
) -> None:
    """It ends before each request that changes a catalog, or a file in the warehouse."""
    warehouse = tmp_path / "warehouse"
    with reference_server(tmp_path / "server", str(warehouse)) as server, proxy(server.uri) as way:
        catalogs = {"pg": postgres(logins), "rest": rest(way.uri)}
        project = project_of(tmp_path, str(warehouse), catalogs)
        made(python_catalog(load_project(project, "rest").target))
        if pair[0] == "pg":
            assert moved(project, "rest", "pg") == 0
        before = held(project, pair[0])

        for kill in range(12):
            ends = _killed_at(project, pair, kill, monkeypatch)
            if ends:
                break
            both = held(project, pair[0]) | held(project, pair[1])
            assert both == before, kill
            assert moved(project, *pair) == 0, kill
            assert (held(project, pair[1]), held(project, pair[0])) == (before, {}), kill
            assert moved(project, pair[1], pair[0]) == 0, kill
        assert kill >= 4


def _killed_at(
    project: Path, pair: tuple[str, str], kill: int, monkeypatch: pytest.MonkeyPatch
) -> bool:
    """Move, and end before the change with this number; true when there are fewer."""
    left = kill

    def dying(real: object) -> object:
        def call(*arguments: object, **given: object) -> object:
            nonlocal left
            if left == 0:
                raise Killed
            left -= 1
            return real(*arguments, **given)  # type: ignore[operator]

        return call

    from pyiceberg.catalog.rest import RestCatalog

    from polynya.lake.warehouse.registers import PostgresRegister
    from polynya.store.object_store import LocalObjectStore

    with monkeypatch.context() as patch:
        for owner, names in (
            (RestCatalog, ("register_table", "rename_table", "drop_table", "create_namespace")),
            (PostgresRegister, ("put", "release")),
            (LocalObjectStore, ("put",)),
        ):
            for name in names:
                patch.setattr(owner, name, dying(getattr(owner, name)))
        try:
            return moved(project, *pair) == 0
        except Killed:
            return False


def test_from_glue_to_rest_and_postgresql_and_back(logins: str, tmp_path: Path) -> None:
    place = "s3://acme-lake/tables"
    with aws_server("acme-lake") as endpoint:
        properties = {
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "s3.endpoint": endpoint, "s3.path-style-access": "true",
            "client.region": "eu-central-1", "http-client.type": "urlconnection",
        }  # fmt: skip
        with reference_server(tmp_path / "server", place, properties) as server:
            catalogs = {
                "glue": "type: glue", "pg": postgres(logins), "rest": rest(server.uri),
            }  # fmt: skip
            project = project_of(tmp_path, place, catalogs, endpoint=endpoint)
            made(python_catalog(load_project(project, "glue").target))
            before = held(project, "glue")

            for start, end in (("glue", "rest"), ("rest", "pg"), ("pg", "glue")):
                assert moved(project, start, end) == 0, (start, end)
                assert held(project, end) == before
                assert held(project, start) == {}
                assert rows(project, end) == 1
