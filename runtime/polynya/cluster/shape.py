"""The shape of several tables as one, for the reports and metrics of who works on them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from polynya.observe.upkeep import TableHealth


@dataclass(frozen=True, slots=True)
class Shape:
    """See the module. Sizes in bytes.

    `health_percent` and `deleted_share` (0 to 1) are those of the table in the worst shape; other
    figures are sums. `size_bytes` is that of the data files.
    """

    health_percent: int
    files: int
    size_bytes: int
    deleted_share: float
    rows_not_optimised: int
    metadata_bytes: int
    snapshots: int
    removed_orphan_bytes: int

    @property
    def average_bytes(self) -> int:
        """Size of a data file."""
        return self.size_bytes // max(1, self.files)


def shape_of(looks: Iterable[TableHealth]) -> Shape | None:
    """The shape of tables as they were looked at last; None before a look."""
    return joined(
        Shape(
            health_percent=one.health_percent,
            files=one.files,
            size_bytes=one.files * one.average_bytes,
            deleted_share=one.deleted_share,
            rows_not_optimised=one.rows_not_optimised,
            metadata_bytes=one.metadata_bytes,
            snapshots=one.snapshots,
            removed_orphan_bytes=one.removed_orphan_bytes or 0,
        )
        for one in looks
    )


def joined(shapes: Iterable[Shape]) -> Shape | None:
    """Several shapes as one; None without any."""
    every = list(shapes)
    if not every:
        return None
    return Shape(
        health_percent=min(one.health_percent for one in every),
        files=sum(one.files for one in every),
        size_bytes=sum(one.size_bytes for one in every),
        deleted_share=max(one.deleted_share for one in every),
        rows_not_optimised=sum(one.rows_not_optimised for one in every),
        metadata_bytes=sum(one.metadata_bytes for one in every),
        snapshots=sum(one.snapshots for one in every),
        removed_orphan_bytes=sum(one.removed_orphan_bytes for one in every),
    )
