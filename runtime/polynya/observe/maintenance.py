"""Events of maintenance: what each action did, and what was expected of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from polynya.model.errors import PolynyaError
from polynya.observe.events import Event, Level, line, one_line

_MEBIBYTE = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceDone(Event):
    """An action of maintenance was taken.

    `reason` says why it was taken, `ended` how it ended; `whole` is false when there is more to do.
    Gains are bytes in an hour that are no longer read, as expected and as measured;
    costs are bytes that could be read in the same time, as expected and as measured.
    """

    type: ClassVar[str] = "maintenance.done"
    action: str
    reason: str
    ended: str
    whole: bool
    expected_gain_bytes: int
    gain_bytes: int
    expected_cost_bytes: int
    cost_bytes: int
    read_bytes: int
    written_bytes: int
    freed_bytes: int
    files_removed: int
    files_added: int
    seconds: float

    @property
    def level(self) -> Level:
        """Results are the same before and after."""
        return Level.DETAIL

    @override
    def text(self) -> str:
        return line(
            "tidied", self.subject, f"{self.ended}, in {self.seconds:.1f} s ({self.reason})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceFailed(Event):
    """An action of maintenance failed; reported once while it lasts. The data is unchanged."""

    type: ClassVar[str] = "maintenance.failed"
    action: str
    error: PolynyaError

    @property
    def level(self) -> Level:
        """Tables get slower in the long run."""
        return Level.WARNING

    def figures(self) -> Mapping[str, Any]:
        """The error as one text and its code."""
        return {"action": self.action, "error": str(self.error), "code": self.error.code}

    @override
    def text(self) -> str:
        return f"{self.subject}: {self.action} failed: {one_line(self.error)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHealth(Event):
    """The shape of a table was looked at.

    `health_percent` is 100 in the best shape, the figures after it are what makes it.
    `removed_orphan_bytes` is what the last look for orphans found, None before it. `last_action`
    was taken at `last_action_at`, a time as ISO 8601. `next_action` comes next, `reason` says why
    not now.
    """

    type: ClassVar[str] = "table.health"
    health_percent: int
    files: int
    average_bytes: int
    delete_files: int
    deleted_share: float
    manifests: int
    metadata_bytes: int
    snapshots: int
    rows_not_optimised: int
    removed_orphan_bytes: int | None = None
    last_action: str | None = None
    last_action_at: str | None = None
    next_action: str | None = None
    reason: str | None = None

    @property
    def level(self) -> Level:
        """For readers who investigate."""
        return Level.DETAIL

    @override
    def text(self) -> str:
        comes = "" if self.next_action is None else f"; {self.next_action}: {self.reason}"
        return line(
            "health",
            self.subject,
            f"{self.health_percent} of 100, {self.files:,} files of "
            f"{self.average_bytes / _MEBIBYTE:,.1f} MiB, {self.deleted_share:.0%} deleted, "
            f"{self.snapshots:,} snapshots{comes}",
        )


@dataclass(frozen=True, slots=True)
class Shape:
    """The shape of several tables as one, as they were looked at last. Sizes in bytes.

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
