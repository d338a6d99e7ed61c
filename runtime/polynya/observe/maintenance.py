"""Events of maintenance: what each action did, and the health of tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from polynya.observe.events import ErrorEvent, Event, Level


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceDone(Event):
    """An action of maintenance was taken.

    `reason` says why it was taken, `ended` how it ended; `whole` is false if there is more to do.
    Gains are bytes in an hour that are no longer read, as expected and as measured; costs are bytes
    that could be read in the same time, as expected and as measured.
    """

    type: ClassVar[str] = "maintenance.done"
    verb: ClassVar[str] = "maintained"
    template: ClassVar[str] = "{ended}, in {seconds:.1f} s ({reason})"
    default_level: ClassVar[Level] = Level.DETAIL
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceFailed(ErrorEvent):
    """An action of maintenance failed; reported once while it lasts. The data is unchanged."""

    type: ClassVar[str] = "maintenance.failed"
    template: ClassVar[str] = "{action} failed: {cause}"
    action: str

    @override
    def figures(self) -> Mapping[str, Any]:
        return {"action": self.action, "error": str(self.error), "code": self.error.code}


@dataclass(frozen=True, slots=True, kw_only=True)
class TableHealth(Event):
    """The health of a table was measured.

    `health_percent` is 100 for the best layout; the figures after it are its parts.
    `removed_orphan_bytes` were removed by the last search for orphan files, None before it.
    `last_action` was taken at `last_action_at`, a time as ISO 8601. `next_action` comes next;
    `reason` says why it is not taken now.
    """

    type: ClassVar[str] = "table.health"
    verb: ClassVar[str] = "health"
    template: ClassVar[str] = (
        "{health_percent} of 100, {files:,} files of {average_mebibytes:,.1f} MiB, "
        "{deleted_share:.0%} deleted, {snapshots:,} snapshots{next_step}"
    )
    default_level: ClassVar[Level] = Level.DETAIL
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
    def average_mebibytes(self) -> float:
        """Size of a data file."""
        return self.average_bytes / 2**20

    @property
    def next_step(self) -> str:
        """`; ` with the next action and why it waits, or nothing."""
        return "" if self.next_action is None else f"; {self.next_action}: {self.reason}"


@dataclass(frozen=True, slots=True)
class HealthSummary:
    """The health of several tables as one. Sizes in bytes.

    `health_percent` and `deleted_share` (0 to 1) are those of the table in the worst state; other
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


def summarise(tables: Iterable[TableHealth]) -> HealthSummary | None:
    """The health of tables as one; None without any."""
    return combine(
        HealthSummary(
            health_percent=table.health_percent,
            files=table.files,
            size_bytes=table.files * table.average_bytes,
            deleted_share=table.deleted_share,
            rows_not_optimised=table.rows_not_optimised,
            metadata_bytes=table.metadata_bytes,
            snapshots=table.snapshots,
            removed_orphan_bytes=table.removed_orphan_bytes or 0,
        )
        for table in tables
    )


def combine(summaries: Iterable[HealthSummary]) -> HealthSummary | None:
    """Several summaries as one; None without any."""
    parts = list(summaries)
    if not parts:
        return None
    return HealthSummary(
        health_percent=min(part.health_percent for part in parts),
        files=sum(part.files for part in parts),
        size_bytes=sum(part.size_bytes for part in parts),
        deleted_share=max(part.deleted_share for part in parts),
        rows_not_optimised=sum(part.rows_not_optimised for part in parts),
        metadata_bytes=sum(part.metadata_bytes for part in parts),
        snapshots=sum(part.snapshots for part in parts),
        removed_orphan_bytes=sum(part.removed_orphan_bytes for part in parts),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyFailed(ErrorEvent):
    """Latencies cannot be written and wait; reported once while it lasts."""

    type: ClassVar[str] = "latency.failed"
    template: ClassVar[str] = "latencies are not written: {cause}"
