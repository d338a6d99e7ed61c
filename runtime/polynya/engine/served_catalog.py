"""What a catalog that is served says of its tables and views, as of the moment of the question.

Names and places of metadata come from the project's catalog with every question, so that an answer
shows the newest commit. Only what never changes is kept: the content of a metadata file.
"""

from __future__ import annotations

import gzip
import json
import logging
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from uuid import NAMESPACE_URL, uuid5

from pyiceberg.exceptions import (
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
)
from pyiceberg.io import load_file_io

from polynya.engine.errors import as_polynya
from polynya.engine.inventory import inventory
from polynya.engine.project_views import ProjectViews, query_of_view
from polynya.engine.translated_views import query_views_of, texts_of
from polynya.lake.fold.live_views import definitions, spark_views
from polynya.lake.read.inspect import shape
from polynya.lake.spark.catalog import CATALOG, holds_views, python_catalog
from polynya.lake.warehouse.catalogs import catalog_file
from polynya.lake.warehouse.check import entries_of, lies_in, namespaces_of
from polynya.lake.warehouse.rest_access import s3_for_python
from polynya.model.config.dataset import ResolvedDataset
from polynya.model.error_catalogue.warehouse import (
    METADATA_FILE_MISSING_FIX,
    METADATA_FILE_UNREADABLE,
    TABLE_FILE_MISSING,
    TABLES_IN_OTHER_WAREHOUSE,
)
from polynya.model.loader import LoadedProject
from polynya.model.names import Dialect, quote_path
from polynya.model.promotion import storage_type
from polynya.model.types import Array, DataType, Decimal, MapType, Primitive, Struct
from polynya.query.dialects import representations
from polynya.query.live_rows import Live
from polynya.query.translate import NotEmbeddedError

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

log = logging.getLogger(__name__)

Kind: TypeAlias = Literal["table", "view"]
#: The levels of a namespace.
Namespace: TypeAlias = tuple[str, ...]
#: Snapshots that a loaded table shows: all, or those that a branch or tag refers to.
Snapshots: TypeAlias = Literal["all", "refs"]
#: Bytes of metadata that stay in memory. With 1,000 snapshots a table has some 1 MB of it.
_KEPT_BYTES: Final = 64 * 1024 * 1024
#: A longer metadata file is refused, also when it is unpacked.
_MAX_METADATA_BYTES: Final = 128 * 1024 * 1024
_GZIP: Final = b"\x1f\x8b"


class NotInCatalogError(Exception):
    """The catalog has no such namespace, table or view."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A table or a view: where its metadata is, and the metadata as JSON.

    `version` changes with each answer that differs.
    """

    location: str
    metadata: bytes
    version: str


class ServedCatalog:
    """The catalog of a project, for any number of threads.

    All raise a PolynyaError when the catalog cannot be read, and those that are given a name
    NotInCatalogError.
    """

    def __init__(self, project: LoadedProject) -> None:
        self._project = project
        self._kept = _Kept()
        self._lock = threading.Lock()
        self._opened: Catalog | None = None

    @property
    def properties(self) -> dict[str, str]:
        """What clients need to read the files, without secrets."""
        return {
            name: value
            for name, value in s3_for_python(self._project.target).items()
            if name in {"client.region", "s3.endpoint"}
        }

    def namespaces(self) -> dict[Namespace, dict[str, str]]:
        """All namespaces with their properties, also those above others."""
        if self._is_listed:
            target = self._project.target
            found = {
                _levels(name): properties
                for name, properties in namespaces_of(target, CATALOG).items()
            }
            for entry in entries_of(target, CATALOG):
                found.setdefault(_levels(entry.namespace), {})
        else:
            found = self._remote_namespaces()
        for namespace in list(found):
            for length in range(1, len(namespace)):
                found.setdefault(namespace[:length], {})
        return found

    def names(self, namespace: Namespace, kind: Kind) -> list[str]:
        """Names of the tables or views of a namespace, in order."""
        if self._is_listed:
            entries = entries_of(self._project.target, CATALOG)
            joined, is_view = ".".join(namespace), kind == "view"
            names = [
                entry.name
                for entry in entries
                if entry.namespace == joined and entry.is_view == is_view
            ]
        else:
            names = self._remote_names(namespace, kind)
        if not names and namespace not in self.namespaces():
            raise NotInCatalogError
        return sorted(names)

    def table(self, namespace: Namespace, name: str, snapshots: Snapshots = "all") -> Loaded:
        """A table as of its newest commit."""
        place = self._place(namespace, name, "table")
        location = place.location
        version = f"{location} {snapshots}"
        metadata = self._kept.get(version)
        if metadata is None:
            raw = place.metadata or self._read(location, "table-uuid")
            if snapshots == "refs":
                raw = _with_referred_snapshots(raw)
            metadata = self._kept.put(version, raw)
        return Loaded(location, metadata, version)

    def view(self, namespace: Namespace, name: str) -> Loaded:
        """A view with its text for each engine.

        Those of Polynya that the catalog has as today's settings want them have all dialects.
        Others are as whoever made them wrote them.
        """
        place = self._place(namespace, name, "view")
        location = place.location
        made = f"view {location}"
        metadata = self._kept.get(made)
        if metadata is not None:
            return Loaded(location, metadata, made)
        if location == "":
            live = self._live(namespace, name)
            if live is None:
                raise NotInCatalogError
            # The catalog cannot hold views: its table's commit tells when this one changes.
            location = live.table.metadata_location
            version = f"view {location} {name}"
            return Loaded(location, _json(_made_view(live, self._texts(live))), version)
        stored = place.metadata or self._read(location, "view-uuid")
        try:
            live = self._live(namespace, name)
            texts = self._query_texts(namespace, name) if live is None else self._texts(live)
        except Exception as error:  # noqa: BLE001 - of its own table, or of that of another task
            log.warning("%s is served as it is stored: %s", _about(namespace, name), error)
            texts = None
        if texts is None:
            return Loaded(location, stored, location)
        # The file names one definition, and all texts are made from that.
        written = _with_representations(json.loads(stored), texts)
        return Loaded(location, self._kept.put(made, _json(written)), made)

    def has(self, namespace: Namespace, name: str, kind: Kind) -> bool:
        """Whether the catalog has a table or view of this name."""
        try:
            if self._place(namespace, name, kind).location == "":
                return self._live(namespace, name) is not None
        except NotInCatalogError:
            return False
        return True

    @property
    def _is_listed(self) -> bool:
        """Whether one question tells all names: of a file or a database."""
        target = self._project.target
        return catalog_file(target) is not None or target.database is not None

    def _place(self, namespace: Namespace, name: str, kind: Kind) -> _Place:
        if not self._is_listed:
            return self._remote_place(namespace, name, kind)
        joined = ".".join(namespace)
        for entry in entries_of(self._project.target, CATALOG):
            if (entry.namespace, entry.name, entry.is_view) == (joined, name, kind == "view"):
                self._refuse_elsewhere(entry.metadata, f"{joined}.{name}")
                return _Place(entry.metadata)
        raise NotInCatalogError

    def _refuse_elsewhere(self, location: str, name: str) -> None:
        """Refuse a table of another warehouse, which a copied catalog names."""
        file, warehouse = catalog_file(self._project.target), self._project.target.warehouse
        if file is None or not isinstance(warehouse, Path) or not file.is_relative_to(warehouse):
            return
        if not lies_in(location, warehouse):
            raise TABLES_IN_OTHER_WAREHOUSE(
                where=location, why=f"the warehouse of the target is {warehouse}", tables=name
            )

    def _read(self, location: str, mark: str) -> bytes:
        """The content of a metadata file, which is JSON and has the key `mark`."""
        try:
            properties = s3_for_python(self._project.target)
            source = load_file_io(properties, location).new_input(location)
            if len(source) > _MAX_METADATA_BYTES:
                raise METADATA_FILE_UNREADABLE(where=location, reason="it is too long")
            with source.open() as file:
                data = _unpacked(bytes(file.read()), location)
        except FileNotFoundError as error:
            raise TABLE_FILE_MISSING(
                "the metadata file of a table or view is missing",
                where=location,
                state="other tables are not affected",
                fix=METADATA_FILE_MISSING_FIX,
            ) from error
        except OSError as error:
            raise as_polynya(error) from error
        try:
            document = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise METADATA_FILE_UNREADABLE(where=location, reason="it is not JSON") from error
        if not isinstance(document, dict) or mark not in document or "location" not in document:
            raise METADATA_FILE_UNREADABLE(
                where=location, reason=f"it is not that of a {mark.removesuffix('-uuid')}"
            )
        return data

    def _live(self, namespace: Namespace, name: str) -> Live | None:
        """The view of the project; None for one of somebody else, or of other settings."""
        full = f"{'.'.join(namespace)}.{name}"
        try:
            live = ProjectViews(self._project).find(full)
        except NotEmbeddedError:
            return None
        return live if live.name == full else None

    def _texts(self, live: Live) -> list[dict[str, str]]:
        """A view for each engine."""
        relations = live.dataset.relations
        table = (relations.internal_schema, relations.internal_table)
        if self._project.target.on_glue:
            # Glue has no upper case.
            table = (table[0].lower(), table[1].lower())
        spark = spark_views(live.dataset, live.shape, quote_path(*table))[live.view]
        others = representations(live.dataset, live.shape, for_trino=CATALOG)[live.view]
        return _representations({Dialect.SPARK: spark, **others})

    def _query_texts(self, namespace: Namespace, name: str) -> list[dict[str, str]] | None:
        """A view of a query for each engine; None for a view of somebody else."""
        full, views = f"{'.'.join(namespace)}.{name}", ProjectViews(self._project)
        for task, view in query_views_of(self._project):
            if task.view_of(view) == full:
                query = query_of_view(views, task, view)
                others = texts_of(query, lambda one: views.any(one).columns, for_trino=CATALOG)
                return _representations({Dialect.SPARK: query.sql(None), **others})
        return None

    # Catalogs that are asked name by name

    @property
    def _remote(self) -> Catalog:
        with self._lock:
            if self._opened is None:
                self._opened = python_catalog(self._project.target)
            return self._opened

    def _datasets(self, namespace: Namespace | None = None) -> Iterator[Live]:
        """The datasets that have a table, as they are in the newest commits."""

        def is_in(dataset: ResolvedDataset) -> bool:
            return namespace is None or (dataset.relations.schema,) == namespace

        for entry in inventory(self._project, self._remote, is_in):
            if entry.table is not None and not entry.is_ledger:
                yield Live("", entry.dataset, shape(entry.table, entry.dataset), entry.table)

    def _remote_namespaces(self) -> dict[Namespace, dict[str, str]]:
        """Those of the project: a catalog of an account has more."""
        found: dict[Namespace, dict[str, str]] = {}
        for task in self._project.tasks:
            internal = task.internal_schema or f"{task.schema_}_internal"
            found[task.schema_,] = {}
            found[internal.lower() if self._project.target.on_glue else internal,] = {}
        return found

    def _remote_names(self, namespace: Namespace, kind: Kind) -> list[str]:
        if namespace not in self._remote_namespaces():
            return []
        if kind == "view" and not holds_views(self._project.target):
            return [name for live in self._datasets(namespace) for name in _views(live)]
        try:
            if kind == "table":
                return [name[-1] for name in self._remote.list_tables(namespace)]
            return [name[-1] for name in self._remote.list_views(namespace)]
        except NoSuchNamespaceError:
            return []

    def _remote_place(self, namespace: Namespace, name: str, kind: Kind) -> _Place:
        if namespace not in self._remote_namespaces():
            raise NotInCatalogError
        if kind == "view" and not holds_views(self._project.target):
            return _Place("")
        try:
            if kind == "table":
                table = self._remote.load_table((*namespace, name))
                # Read already, with credentials that the catalog may have given.
                metadata = table.metadata.model_dump_json().encode()
                return _Place(str(table.metadata_location), metadata)
            view = self._remote.load_view((*namespace, name)).metadata
        except (NoSuchTableError, NoSuchViewError, NoSuchNamespaceError):
            raise NotInCatalogError from None
        except ValueError as error:
            where = _about(namespace, name)
            raise METADATA_FILE_UNREADABLE(where=where, reason="it is damaged") from error
        # PyIceberg does not tell where the file is; a version is never changed.
        name = f"{view.view_uuid}-{view.current_version_id}.metadata.json"
        place = f"{view.location}/metadata/{name}"
        return _Place(place, view.model_dump_json().encode())


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the metadata file is; "" for a view of a catalog that cannot hold views.

    `metadata` is its content where the catalog came with it.
    """

    location: str
    metadata: bytes | None = None


class _Kept:
    """Contents of metadata files by name, the least used ones forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0

    def get(self, name: str) -> bytes | None:
        with self._lock:
            if name in self._values:
                self._values.move_to_end(name)
            return self._values.get(name)

    def put(self, name: str, value: bytes) -> bytes:
        with self._lock:
            self._bytes += len(value) - len(self._values.pop(name, b""))
            self._values[name] = value
            while self._bytes > _KEPT_BYTES:
                self._bytes -= len(self._values.popitem(last=False)[1])
        return value


def _about(namespace: Namespace, name: str) -> str:
    return ".".join([*namespace, name])


def _levels(namespace: str) -> Namespace:
    # A JDBC catalog joins the levels.
    return tuple(namespace.split("."))


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _unpacked(data: bytes, location: str) -> bytes:
    if not data.startswith(_GZIP):
        return data
    packed = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        unpacked = packed.decompress(data, _MAX_METADATA_BYTES)
    except (zlib.error, gzip.BadGzipFile) as error:
        raise METADATA_FILE_UNREADABLE(where=location, reason="it is not gzip") from error
    if not packed.eof:
        raise METADATA_FILE_UNREADABLE(where=location, reason="it is too long or cut off")
    return unpacked


def _with_referred_snapshots(raw: bytes) -> bytes:
    """Table metadata without the snapshots that no branch or tag refers to."""
    document = json.loads(raw)
    kept = {ref["snapshot-id"] for ref in document.get("refs", {}).values()}
    kept.add(document.get("current-snapshot-id"))
    snapshots = document.get("snapshots", ())
    document["snapshots"] = [one for one in snapshots if one["snapshot-id"] in kept]
    return _json(document)


def _views(live: Live) -> list[str]:
    """Names of the views of a dataset; none before it has columns."""
    return list(definitions(live.dataset, live.shape, "t")) if live.shape.data else []


def _representations(texts: Mapping[Dialect, str]) -> list[dict[str, str]]:
    return [{"type": "sql", "sql": sql, "dialect": dialect} for dialect, sql in texts.items()]


def _with_representations(
    document: dict[str, Any], texts: Sequence[Mapping[str, str]]
) -> dict[str, Any]:
    """The stored metadata of a view, with these texts in its current version."""
    current = document["current-version-id"]
    for version in document["versions"]:
        if version["version-id"] == current:
            version["representations"] = list(texts)
            # The catalog may have any name where Spark attaches it.
            version.pop("default-catalog", None)
    return document


def _made_view(live: Live, texts: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Metadata of a view that its catalog cannot hold."""
    relations, metadata = live.dataset.relations, live.table.metadata
    return {
        "view-uuid": str(uuid5(NAMESPACE_URL, f"{metadata.table_uuid}/{live.view}")),
        "format-version": 1,
        "location": f"{metadata.location}/{live.view}",
        "current-version-id": 1,
        "versions": [
            {
                "version-id": 1,
                "timestamp-ms": metadata.last_updated_ms,
                "schema-id": 0,
                "summary": {"engine-name": "polynya"},
                "default-namespace": [relations.schema],
                "representations": list(texts),
            }
        ],
        "version-log": [{"version-id": 1, "timestamp-ms": metadata.last_updated_ms}],
        "schemas": [_schema(live.columns or {})],
        "properties": {},
    }


_ICEBERG: Final = {"bigint": "long", "timestamp": "timestamptz", "timestamp_ntz": "timestamp"}


def _schema(columns: Mapping[str, DataType]) -> dict[str, Any]:
    """A schema of Iceberg with new ids."""
    ids = iter(range(1, 1_000_000))
    fields = _fields(list(columns.items()), ids)
    return {"type": "struct", "schema-id": 0, "fields": fields}


def _fields(fields: Sequence[tuple[str, DataType]], ids: Iterator[int]) -> list[dict[str, Any]]:
    return [
        {"id": next(ids), "name": name, "required": False, "type": _type(kind, ids)}
        for name, kind in fields
    ]


def _type(datatype: DataType, ids: Iterator[int]) -> Any:
    match storage_type(datatype):
        case Primitive(name):
            return _ICEBERG.get(name, name)
        case Decimal(precision, scale):
            return f"decimal({precision}, {scale})"
        case Array(element):
            own = {"type": "list", "element-id": next(ids), "element-required": False}
            return {**own, "element": _type(element, ids)}
        case MapType(key, value):
            own = {"type": "map", "key-id": next(ids), "value-id": next(ids)}
            types = {"key": _type(key, ids), "value": _type(value, ids)}
            return {**own, **types, "value-required": False}
        case Struct(fields):
            return {"type": "struct", "fields": _fields(fields, ids)}
        case other:
            raise AssertionError(f"no table stores {other}")
