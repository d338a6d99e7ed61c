"""A warehouse that was removed while a run worked in it is told as such, and nothing else is."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from polynya.lake.spark.catalog import CATALOG
from polynya.lake.warehouse.catalogs import CatalogEntry, catalog_file, new_catalog
from polynya.lake.warehouse.check import cause_of
from polynya.model.config.target import ResolvedTarget
from polynya.model.errors import ConfigError, DependencyError, InternalError, PolynyaError
from tests.lake.warehouse.tables import target_in

FAILED = InternalError("POLYNYA-BUG-001", "polynya itself failed: SQLException: no such table")


@pytest.fixture
def target(tmp_path: Path) -> ResolvedTarget:
    (tmp_path / "warehouse").mkdir()
    found = target_in(tmp_path)
    file = catalog_file(found)
    assert file is not None
    new_catalog(file, CATALOG, [CatalogEntry("s", "t", str(tmp_path / "1.json"))])
    return found


def code(failure: PolynyaError, target: ResolvedTarget) -> str:
    return cause_of(failure, target, CATALOG).code


def test_a_removed_warehouse_explains_what_followed(target: ResolvedTarget) -> None:
    assert code(FAILED, target) == FAILED.code

    shutil.rmtree(str(target.warehouse))

    found = cause_of(FAILED, target, CATALOG)
    assert (found.code, found.exit_code) == ("POLYNYA-DEP-017", 4)
    assert found.why == FAILED.message
    assert code(ConfigError("POLYNYA-CFG-030", "a name"), target) == "POLYNYA-CFG-030"
    elsewhere = replace(target, catalog_uri="jdbc:postgresql://db/lake")
    assert code(FAILED, elsewhere) == FAILED.code


def test_an_emptied_or_a_damaged_catalog_does_too(target: ResolvedTarget) -> None:
    file = catalog_file(target)
    assert file is not None
    lost = DependencyError("POLYNYA-LAKE-005", "the commit failed")

    file.write_bytes(b"")
    assert code(lost, target) == "POLYNYA-DEP-017"
    file.write_bytes(b"no database at all")
    assert code(lost, target) == "POLYNYA-LAKE-040"
