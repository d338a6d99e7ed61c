"""The folders that registered tables name: of Parquet files, or of a Delta table. Needs no JVM."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from polynya.lake.read.delta_folder import DeltaFolder
from polynya.lake.read.parquet_folder import ParquetFolder
from polynya.model.config.aws import AwsAccess
from polynya.model.config.registered import RegisteredDataset
from polynya.model.names import parse_location
from polynya.store.places import source_at

TableFolder: TypeAlias = ParquetFolder | DeltaFolder


def folder_of(dataset: RegisteredDataset, access: AwsAccess) -> TableFolder | None:
    """The folder of a registered table; None for one of the catalog."""
    if dataset.table.folder is None:
        return None
    place = parse_location(dataset.table.folder, Path.cwd(), dataset.relations.current)
    store = source_at(place, access)
    form = ParquetFolder if dataset.table.delta is None else DeltaFolder
    return form(store, dataset)
