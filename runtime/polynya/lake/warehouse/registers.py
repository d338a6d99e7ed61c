"""Catalogs as registers: which metadata file each table and view has, changed without Spark."""

from __future__ import annotations

import gzip
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import pg8000.native
from pyiceberg.catalog.glue import GlueCatalog
from pyiceberg.catalog.rest import Capability
from pyiceberg.exceptions import (
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    TableAlreadyExistsError,
    ViewAlreadyExistsError,
)
from pyiceberg.io import load_file_io
from pyiceberg.view.metadata import ViewMetadata
from typing_extensions import override

from polynya.lake.warehouse.catalogs import (
    CATALOG_SCHEMA,
    CatalogEntry,
    catalog_file,
    change_entries,
    connected,
    entries,
    new_catalog,
    server_entries,
)
from polynya.lake.warehouse.rest_access import s3_for_python
from polynya.lake.warehouse.rest_catalog import RestCatalogClient, asked, open_rest_catalog
from polynya.model.config.target import ResolvedTarget
from polynya.model.errors import ConflictError

#: A table that a REST catalog does not give out under its name any more has this after it.
_MOVED: Final = "_moved_by_polynya"


class Register(ABC):
    """What one catalog has in some schemas."""

    @abstractmethod
    def entries(self, schemas: Collection[str]) -> list[CatalogEntry]:
        """Tables and views with their metadata files, in order."""

    @abstractmethod
    def put(self, entry: CatalogEntry, former: CatalogEntry | None) -> None:
        """Let a name mean a metadata file; `former` is what the catalog has under it.

        Of a view a copy: REST catalogs delete the metadata file of a view that they drop.
        """

    @abstractmethod
    def release(self, entry: CatalogEntry) -> bool:
        """Take an entry out, so that no process commits to it any more; its files stay.

        False, with the entry as it was, when it names another metadata file by now.
        """

    @property
    def keeps_views(self) -> bool:
        """Whether it can hold views."""
        return True


class SqliteRegister(Register):
    """A catalog in a file."""

    def __init__(self, file: Path, name: str) -> None:
        self._file, self._name = file, name

    @override
    def entries(self, schemas: Collection[str]) -> list[CatalogEntry]:
        return [one for one in entries(self._file, self._name) if one.namespace in schemas]

    @override
    def put(self, entry: CatalogEntry, former: CatalogEntry | None) -> None:
        entry = _own(entry, {})
        self._file.parent.mkdir(parents=True, exist_ok=True)
        if former is None:
            new_catalog(self._file, self._name, [entry])
        else:
            change_entries(self._file, self._name, {former: entry.metadata}, ("", ""))

    @override
    def release(self, entry: CatalogEntry) -> bool:
        try:
            change_entries(self._file, self._name, {entry: None}, ("", ""))
        except ConflictError:
            return False
        return True


class PostgresRegister(Register):
    """A catalog in a PostgreSQL database."""

    def __init__(self, target: ResolvedTarget, name: str) -> None:
        self._target, self._name = target, name

    @override
    def entries(self, schemas: Collection[str]) -> list[CatalogEntry]:
        found = server_entries(self._target, self._name)
        return [one for one in found if one.namespace in schemas]

    @override
    def put(self, entry: CatalogEntry, former: CatalogEntry | None) -> None:
        entry = _own(entry, s3_for_python(self._target))
        with self._transaction() as database:
            for statement in CATALOG_SCHEMA:
                database.run(statement)
            if former is not None:
                self._delete(database, former)
            database.run(
                "INSERT INTO iceberg_tables VALUES (:c, :s, :t, :m, NULL, :k)",
                **self._named(entry), k="VIEW" if entry.is_view else "TABLE",
            )  # fmt: skip
            database.run(
                "INSERT INTO iceberg_namespace_properties VALUES (:c, :s, 'exists', 'true') "
                "ON CONFLICT DO NOTHING",
                c=self._name, s=entry.namespace,
            )  # fmt: skip

    @override
    def release(self, entry: CatalogEntry) -> bool:
        with self._transaction() as database:
            return self._delete(database, entry)

    def _delete(self, database: pg8000.native.Connection, entry: CatalogEntry) -> bool:
        gone = database.run(
            "DELETE FROM iceberg_tables WHERE catalog_name = :c AND table_namespace = :s "
            "AND table_name = :t AND metadata_location = :m RETURNING 1",
            **self._named(entry),
        )
        return len(gone or ()) == 1

    def _named(self, entry: CatalogEntry) -> dict[str, str]:
        return {"c": self._name, "s": entry.namespace, "t": entry.name, "m": entry.metadata}

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        with connected(self._target) as database:
            database.run("BEGIN")
            yield database
            database.run("COMMIT")


class RestRegister(Register):
    """A catalog behind Iceberg's REST protocol."""

    def __init__(self, target: ResolvedTarget, name: str) -> None:
        assert target.rest is not None, "the catalog is behind REST"
        self._access = target.rest
        self._client: RestCatalogClient = open_rest_catalog(target, name)

    @property
    @override
    def keeps_views(self) -> bool:
        return self._client.holds_views

    @override
    def entries(self, schemas: Collection[str]) -> list[CatalogEntry]:
        with asked(self._access):
            return [one for schema in sorted(schemas) for one in self._in_schema(schema)]

    def _in_schema(self, schema: str) -> Iterator[CatalogEntry]:
        client = self._client
        with suppress(NoSuchNamespaceError):
            for *_, name in sorted(client.list_tables(schema)):
                with suppress(NoSuchTableError):
                    metadata = client.load_table((schema, name)).metadata_location
                    yield CatalogEntry(schema, name.removesuffix(_MOVED), metadata)
            for *_, name in sorted(client.list_views(schema)) if self.keeps_views else ():
                if (found := client.view_response(schema, name)) is not None:
                    yield CatalogEntry(schema, name, found["metadata-location"], is_view=True)

    @override
    def put(self, entry: CatalogEntry, former: CatalogEntry | None) -> None:
        client, named = self._client, (entry.namespace, entry.name)
        with asked(self._access):
            with suppress(NamespaceAlreadyExistsError):
                client.create_namespace(entry.namespace)
            if former is not None:
                self._drop(former)
            if not entry.is_view:
                with suppress(TableAlreadyExistsError):
                    client.register_table(named, entry.metadata)
            else:
                self._make_view(entry)

    def _make_view(self, entry: CatalogEntry) -> None:
        """Make a view again from the newest version in its metadata file."""
        stored = ViewMetadata.model_validate_json(_read(entry, self._client.properties))
        version = next(v for v in stored.versions if v.version_id == stored.current_version_id)
        schema = next(s for s in stored.schemas if s.schema_id == version.schema_id)
        with suppress(ViewAlreadyExistsError):
            self._client.create_view(
                (entry.namespace, entry.name), schema, version, properties=dict(stored.properties)
            )

    @override
    def release(self, entry: CatalogEntry) -> bool:
        with asked(self._access):
            if entry.is_view or not self._client.has(Capability.V1_RENAME_TABLE):
                if self._metadata(entry.namespace, entry.name, is_view=entry.is_view) not in (
                    None, entry.metadata,
                ):  # fmt: skip
                    return False
                self._drop(entry)
                return True
            return self._release_renamed(entry)

    def _release_renamed(self, entry: CatalogEntry) -> bool:
        """A name that is gone takes no commits: what came before it went is seen after that."""
        client, schema = self._client, entry.namespace
        aside = entry.name + _MOVED
        with suppress(NoSuchTableError):
            client.rename_table((schema, entry.name), (schema, aside))
        if self._metadata(schema, aside, is_view=False) not in (None, entry.metadata):
            client.rename_table((schema, aside), (schema, entry.name))
            return False
        with suppress(NoSuchTableError):
            client.drop_table((schema, aside))
        return True

    def _metadata(self, schema: str, name: str, *, is_view: bool) -> str | None:
        if is_view:
            found = self._client.view_response(schema, name)
            return None if found is None else str(found["metadata-location"])
        try:
            return str(self._client.load_table((schema, name)).metadata_location)
        except NoSuchTableError:
            return None

    def _drop(self, entry: CatalogEntry) -> None:
        named = (entry.namespace, entry.name)
        with suppress(NoSuchTableError, NoSuchViewError):
            if entry.is_view:
                self._client.drop_view(named)
            else:
                self._client.drop_table(named)


class GlueRegister(Register):
    """The Glue Data Catalog, which holds no Iceberg views."""

    def __init__(self, client: GlueCatalog) -> None:
        self._client = client

    @property
    @override
    def keeps_views(self) -> bool:
        return False

    @override
    def entries(self, schemas: Collection[str]) -> list[CatalogEntry]:
        return [one for schema in sorted(schemas) for one in self._in_schema(schema)]

    def _in_schema(self, schema: str) -> Iterator[CatalogEntry]:
        with suppress(NoSuchNamespaceError):
            for *_, name in sorted(self._client.list_tables(schema)):
                with suppress(NoSuchTableError):
                    metadata = self._client.load_table((schema, name)).metadata_location
                    yield CatalogEntry(schema, name, metadata)

    @override
    def put(self, entry: CatalogEntry, former: CatalogEntry | None) -> None:
        with suppress(NamespaceAlreadyExistsError):
            self._client.create_namespace(entry.namespace)
        if former is not None:
            self._client.drop_table((former.namespace, former.name))
        with suppress(TableAlreadyExistsError):
            self._client.register_table((entry.namespace, entry.name), entry.metadata)

    @override
    def release(self, entry: CatalogEntry) -> bool:
        named = (entry.namespace, entry.name)
        with suppress(NoSuchTableError):
            # Glue deletes without a condition: a commit between these two requests is lost.
            if self._client.load_table(named).metadata_location != entry.metadata:
                return False
            self._client.drop_table(named)
        return True


def _read(entry: CatalogEntry, properties: Mapping[str, str]) -> bytes:
    with load_file_io(dict(properties), entry.metadata).new_input(entry.metadata).open() as file:
        data = bytes(file.read())
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def _own(entry: CatalogEntry, properties: Mapping[str, str]) -> CatalogEntry:
    """A table as it is; a view with a metadata file of its own beside the former one."""
    if not entry.is_view:
        return entry
    place = f"{entry.metadata.rpartition('/')[0]}/00000-{uuid4()}.metadata.json"
    data = _read(entry, properties)
    with load_file_io(dict(properties), place).new_output(place).create() as file:
        file.write(data)
    return replace(entry, metadata=place)


def register_of(target: ResolvedTarget, name: str, glue: GlueCatalog | None) -> Register:
    """The catalog of a target; `glue` is PyIceberg's client of one on Glue.

    Raises DependencyError when a REST catalog cannot be asked.
    """
    if target.rest is not None:
        return RestRegister(target, name)
    if glue is not None:
        return GlueRegister(glue)
    file = catalog_file(target)
    return PostgresRegister(target, name) if file is None else SqliteRegister(file, name)
