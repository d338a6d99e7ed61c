"""Events of the engine: what happens to datasets, their files and their views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from polynya.model.config.evolution import policy_in_words
from polynya.model.errors import ConflictError, PolynyaError, SuspendedError
from polynya.observe.events import Event, Level, counted, line, one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCopied(Event):
    """A batch was committed. rows_in = rows_out + rows_filtered + rows_quarantined.

    `seconds` is the time from its first byte to its commit. Datasets that share their files share
    the time in which these are read.
    """

    type: ClassVar[str] = "batch.copied"
    rows_in: int
    rows_out: int
    rows_filtered: int
    rows_quarantined: int
    files: int
    seconds: float

    @property
    def level(self) -> Level:
        """A batch without records is only a position, such as that of a whole task."""
        if self.rows_quarantined:
            return Level.CAUTION
        return Level.NOTE if self.rows_in else Level.DETAIL

    @override
    def text(self) -> str:
        quarantined = f", {self.rows_quarantined} quarantined" if self.rows_quarantined else ""
        rate = self.rows_in / self.seconds if self.seconds else 0
        return line(
            "copied",
            self.subject,
            f"{self.rows_out:,} of {self.rows_in:,} records{quarantined} "
            f"in {self.seconds:.1f} s ({rate:,.0f}/s)",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadProgress(Event):
    """Tasks read a part of a large full load, and it was committed. `reason`: why tasks did."""

    type: ClassVar[str] = "load.progress"
    reason: str
    rows: int
    seconds: float
    read_bytes: int
    left_bytes: int

    @property
    def level(self) -> Level:
        """A load in one commit has no progress."""
        return Level.NOTE if self.left_bytes else Level.DETAIL

    @property
    def left_seconds(self) -> float:
        """Time that the rest takes at this speed."""
        return self.seconds * self.left_bytes / self.read_bytes if self.read_bytes else 0.0

    def figures(self) -> Mapping[str, Any]:
        """With the time that is left."""
        return {
            "reason": self.reason,
            "rows": self.rows,
            "seconds": self.seconds,
            "read_bytes": self.read_bytes,
            "left_bytes": self.left_bytes,
            "left_seconds": round(self.left_seconds),
        }

    @override
    def text(self) -> str:
        rate = self.rows / self.seconds if self.seconds else 0
        return line(
            "loading",
            self.subject,
            f"{self.left_bytes / 2**20:,.0f} MiB left, about {self.left_seconds:,.0f} s "
            f"at {rate:,.0f} records/s",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadInBatches(Event):
    """A large full load, or a part of it, is read in batches, and why."""

    type: ClassVar[str] = "load.in_batches"
    reason: str

    @property
    def level(self) -> Level:
        """It is slower, and as right."""
        return Level.DETAIL

    @override
    def text(self) -> str:
        return line("loading", self.subject, f"in batches: {self.reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetApplied(Event):
    """Pending changes were applied. `rows` counts what was written and removed, by name."""

    type: ClassVar[str] = "dataset.applied"
    reason: str
    seconds: float
    rows: Mapping[str, int]

    def figures(self) -> Mapping[str, Any]:
        """The figures stand next to the reason."""
        return {"reason": self.reason, "seconds": self.seconds, **self.rows}

    @override
    def text(self) -> str:
        written = self.rows.get("current", 0) + self.rows.get("prior", 0)
        return line(
            "applied",
            self.subject,
            f"{counted(self.rows.get('events', 0), 'change')}, {counted(written, 'row')} written, "
            f"{self.rows.get('removed', 0):,} removed in {self.seconds:.1f} s ({self.reason})",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplySkipped(Event):
    """Pending changes wait, and why; reported when the reason changes."""

    type: ClassVar[str] = "apply.skipped"
    reason: str

    @property
    def level(self) -> Level:
        """Queries see pending changes: nobody has to know."""
        return Level.DETAIL

    @override
    def text(self) -> str:
        return line("waiting", self.subject, self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChanged(Event):
    """The source changed, and a policy decided. `change` is the kind, `says` a sentence."""

    type: ClassVar[str] = "schema.changed"
    change: str
    policy: str
    says: str

    @override
    def text(self) -> str:
        return line("changed", self.subject, f"{self.says} ({policy_in_words(self.policy)})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsRewritten(Event):
    """Columns got types that took writing every row again.

    `columns` has the old and the new type of each, in words; `size_bytes` are of the new files.
    """

    type: ClassVar[str] = "columns.rewritten"
    columns: Mapping[str, str]
    rows: int
    size_bytes: int
    seconds: float

    @override
    def text(self) -> str:
        types = ", ".join(f"{name} {kinds}" for name, kinds in self.columns.items())
        return line(
            "rewrote", self.subject, f"{types}, {counted(self.rows, 'row')} in {self.seconds:.1f} s"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChanged(Event):
    """A landed file changed after it was copied; its new content is not read.

    If the size is the one that was copied, the file was replaced, or the same bytes were written.
    """

    type: ClassVar[str] = "file.changed"
    file: str
    size_bytes: int
    copied_bytes: int

    @property
    def level(self) -> Level:
        """Records may be missing."""
        return Level.WARNING

    @override
    def text(self) -> str:
        replaced = self.size_bytes == self.copied_bytes
        what = "was replaced by one of equal size" if replaced else "changed"
        return (
            f"{self.subject}: {self.file} {what} after it was copied; the new content is not read"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWaiting(Event):
    """A landed file cannot be read before another one has landed; reported once."""

    type: ClassVar[str] = "file.waiting"
    file: str
    waits_for: str

    @override
    def text(self) -> str:
        return line("waiting", self.subject, f"{self.file}: {self.waits_for} has not landed")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadLoaded(Event):
    """A batch of a full load was gathered outside Current."""

    type: ClassVar[str] = "reload.loaded"
    rows_in: int
    rows_loaded: int
    rows_quarantined: int
    files_left: int

    @override
    def text(self) -> str:
        return line(
            "loaded", self.subject, f"{self.rows_loaded:,} rows, {self.files_left} files left"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadWaiting(Event):
    """A reload is under way and a run leaves its files to it; reported once."""

    type: ClassVar[str] = "reload.waiting"
    files: int

    @override
    def text(self) -> str:
        # A stream that never landed has no files.
        left = f"{self.files} files of its load are left" if self.files else "its stream is left"
        text = f"a reload is under way: {left} to `polynya reload`"
        return line("waiting", self.subject, text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractApplied(Event):
    """A full extract was compared and moved. `time`: when it was made; `complete`: all of it."""

    type: ClassVar[str] = "extract.applied"
    extract: str | None
    time: str
    rows_loaded: int
    rows_quarantined: int
    complete: bool

    @override
    def text(self) -> str:
        note = "" if self.complete else ", incomplete"
        return line("extract", self.subject, f"{self.extract}, {self.rows_loaded:,} rows{note}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractWaiting(Event):
    """A full extract cannot be read yet; reported once."""

    type: ClassVar[str] = "extract.waiting"
    extract: str
    reason: str

    @override
    def text(self) -> str:
        return line("waiting", self.subject, f"{self.extract}: {self.reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractRestarted(Event):
    """What was gathered of an extract was thrown away; the next run begins with it again."""

    type: ClassVar[str] = "extract.restarted"
    extract: str
    reason: str

    @override
    def text(self) -> str:
        return line("restarted", self.subject, f"{self.extract}: {self.reason}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnUnknown(Event):
    """A setting names a column that no record has yet; `meant` is one of a similar name."""

    type: ClassVar[str] = "column.unknown"
    setting: str
    column: str
    meant: str | None = None

    @property
    def level(self) -> Level:
        """It may be a typing error."""
        return Level.WARNING

    @override
    def text(self) -> str:
        guess = "" if self.meant is None else f"; did you mean `{self.meant}`?"
        return f"{self.subject}: `{self.setting}` names `{self.column}`, which no record has{guess}"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitFailed(Event):
    """A dataset, or a task that finds its datasets, failed; said once while it lasts.

    `goes_on`: the run tries it again; otherwise it is done with it.
    """

    type: ClassVar[str] = "unit.failed"
    error: PolynyaError
    goes_on: bool = True

    @property
    def level(self) -> Level:
        """Somebody has to act; what another process works on may come back by itself."""
        return Level.CAUTION if isinstance(self.error, ConflictError) else Level.FAILURE

    def figures(self) -> Mapping[str, Any]:
        """The error as its code and one text."""
        return {"code": self.error.code, "message": str(self.error)}

    @override
    def text(self) -> str:
        verb = "failed"
        if isinstance(self.error, SuspendedError):
            verb = "suspended"
        elif isinstance(self.error, ConflictError):
            verb = "waiting"
        return line(verb, self.subject, one_line(self.error))


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRecovered(Event):
    """What failed, or had to wait, works again."""

    type: ClassVar[str] = "unit.recovered"

    @override
    def text(self) -> str:
        return line("recovered", self.subject, "works again")


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewsPublished(Event):
    """Views for other engines were made or changed."""

    type: ClassVar[str] = "views.published"
    views: tuple[str, ...]

    @property
    def level(self) -> Level:
        """They are there when they are needed."""
        return Level.DETAIL

    @override
    def text(self) -> str:
        return f"views    {', '.join(self.views)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewsFailed(Event):
    """Views for other engines could not be published; reported once while it lasts."""

    type: ClassVar[str] = "views.failed"
    error: PolynyaError

    @property
    def level(self) -> Level:
        """Readers may miss them."""
        return Level.WARNING

    def figures(self) -> Mapping[str, Any]:
        """The error as one text and its code."""
        return {"error": str(self.error), "code": self.error.code}

    @override
    def text(self) -> str:
        return f"{self.subject}: other engines may miss its views: {one_line(self.error)}"
