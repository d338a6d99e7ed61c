"""What a worker can do with a table of any format."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame


class Table(Protocol):
    """A table of a contender. `op` of an event is the operation and not a column."""

    def load(self, folder: Path) -> None:
        """Make the table of the Parquet files of a folder."""
        ...

    def take(self, file: Path) -> None:
        """Take in one Parquet file of events, until its rows are visible and applied."""
        ...

    def rows(self) -> DataFrame:
        """The live rows, as a consumer reads them."""
        ...

    def files(self) -> int:
        """How many files with rows or deletes a full read needs."""
        ...
