"""A project of which every part can fail: its places are folders here, and a test takes them away.

What is unreachable is the one store or catalog that reads them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from polynya.cluster.coordination import store as paths
from polynya.cluster.coordination.documents import NodeLease
from polynya.cluster.coordination.store import DocumentStore
from polynya.lake.read import committed
from polynya.server.console.navigation import ENTRIES
from polynya.store.object_store import LocalObjectStore
from tests.cli.conftest import CAPTURE, CONNECTION
from tests.console.shop import SALES, STORAGE, fill
from tests.projects import CLICKS, write_project

DATASET = "/console/datasets/shop.orders"
#: Those of its tabs that read the table.
TABS = ("quarantine", "rows", "latency", "snapshots", "files")
KEY = "dataset=shop.orders&key=id%3D7"
#: Each page of `test_every_page.py`, of this project.
PATHS = (
    *(entry.path for entry in ENTRIES),
    "/console/latest-operations",
    "/console/access/people",
    "/console/access/audit",
    "/console/actions/reload?task=shop",
    "/console/tasks/shop",
    "/console/tasks/shop/latency",
    "/console/tasks/shop/settings",
    "/console/tasks/shop/operations",
    DATASET,
    f"{DATASET}/schema",
    *(f"{DATASET}/{tab}" for tab in TABS),
    "/console/lineage?of=shop.orders",
    f"/console/record?{KEY}",
    f"/console/why?{KEY}",
    "/console/why?dataset=sales.totals&key=person%3Dx",
    "/console/documents/tasks/shop.yml",
    "/console/new-document",
    "/console/new-flow?from=shop",
    "/console/transforms/sales/sales.totals",
    "/console/captures/shop_db",
    "/console/clusters/shop",
    "/console/errors",
    "/console/errors/POLYNYA-SRV-001",
    "/console/runs",
)


class Outage:
    """What is down: the catalog, or stores below a folder. `hangs` waits instead of failing."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.catalog = self.hangs = False
        self.folders: set[Path] = set()
        self.over = threading.Event()
        for name in ("load_table", "list_tables", "list_namespaces"):
            patch.setattr(SqlCatalog, name, self._after(getattr(SqlCatalog, name), self._catalog))
        # Looks at tables list the catalog themselves.
        patch.setattr(committed, "entries_of", self._after(committed.entries_of, self._catalog))
        for name in ("list", "beginning", "read", "get", "open", "info", "size"):
            real = getattr(LocalObjectStore, name)
            patch.setattr(LocalObjectStore, name, self._after(real, self._store))

    def _after(self, real: Callable[..., Any], check: Callable[[Any], bool]) -> Callable[..., Any]:
        def call(this: Any, *given: Any, **named: Any) -> Any:
            if check(this):
                if self.hangs:
                    self.over.wait(60)
                raise OSError(113, "No route to host", "the place of a test")
            return real(this, *given, **named)

        return call

    def _catalog(self, _: Any) -> bool:
        return self.catalog

    def _store(self, store: LocalObjectStore) -> bool:
        return any(store.root.is_relative_to(one) for one in self.folders)


def make_fragile(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """A project with tables, a captured database, a stream, and a cluster with a silent node."""
    place = folder / "coordination"
    place.mkdir()
    patch.setenv("POLYNYA_COORDINATION", str(place))
    lease = NodeLease(
        node="n1",
        incarnation="n1.aa",
        state="ready",
        since=datetime.now(UTC) - timedelta(hours=1),
        renewed_at=datetime.now(UTC) - timedelta(minutes=5),
    )
    documents = DocumentStore(LocalObjectStore(place), "shop", Random(1))
    assert documents.write(paths.node_path("n1.aa"), lease, None)
    root = write_project(
        folder / "project", shop=STORAGE, sales=SALES, shop_db=CAPTURE, clicks=CLICKS
    )
    (root / "connections").mkdir()
    (root / "connections" / "shop.yml").write_text(CONNECTION)
    with (root / "polynya.yml").open("a") as file:
        file.write("latency: {}\ncluster: shop\n")
    fill(root)
    return root
