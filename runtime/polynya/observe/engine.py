"""Events of the engine: what happens to datasets, their files and their views."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from typing_extensions import override

from polynya.model.config.evolution import policy_in_words
from polynya.model.errors import ConflictError, SuspendedError
from polynya.observe.events import ErrorEvent, Event, Level, counted, line


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCopied(Event):
    """A batch was committed. rows_in = rows_out + rows_filtered + rows_quarantined.

    `seconds` is the time from its first byte to its commit. Datasets that share their files share
    the time of reading them. `waited_seconds` is how long its oldest file had been known at the
    commit, `event_age_seconds` the age of its newest event by the source's clock; None where that
    is not known.
    """

    type: ClassVar[str] = "batch.copied"
    verb: ClassVar[str] = "copied"
    template: ClassVar[str] = (
        "{rows_out:,} of {rows_in:,} records{quarantined} in {seconds:.1f} s ({rate:,.0f}/s)"
    )
    rows_in: int
    rows_out: int
    rows_filtered: int
    rows_quarantined: int
    files: int
    seconds: float
    waited_seconds: float | None = None
    event_age_seconds: float | None = None

    @property
    @override
    def level(self) -> Level:
        # A batch without records is only a position, such as that of a whole task.
        if self.rows_quarantined:
            return Level.CAUTION
        return Level.NOTE if self.rows_in else Level.DETAIL

    @property
    def quarantined(self) -> str:
        """`, 10 quarantined`, or nothing."""
        return f", {self.rows_quarantined} quarantined" if self.rows_quarantined else ""

    @property
    def rate(self) -> float:
        """Records in a second."""
        return self.rows_in / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadProgress(Event):
    """Spark tasks read a part of a large load or copy, and it was committed; `reason` is why."""

    type: ClassVar[str] = "load.progress"
    verb: ClassVar[str] = "loading"
    template: ClassVar[str] = (
        "{left_mebibytes:,.0f} MiB left, about {left_seconds:,.0f} s at {rate:,.0f} records/s"
    )
    reason: str
    rows: int
    seconds: float
    read_bytes: int
    left_bytes: int

    @property
    @override
    def level(self) -> Level:
        # A load in one commit has no progress.
        return Level.NOTE if self.left_bytes else Level.DETAIL

    @property
    def left_mebibytes(self) -> float:
        """Size of the rest."""
        return self.left_bytes / 2**20

    @property
    def left_seconds(self) -> float:
        """Time that the rest takes at this speed."""
        return self.seconds * self.left_bytes / self.read_bytes if self.read_bytes else 0.0

    @property
    def rate(self) -> float:
        """Records in a second."""
        return self.rows / self.seconds if self.seconds else 0.0

    @override
    def figures(self) -> Mapping[str, Any]:
        return {
            "reason": self.reason,
            "rows": self.rows,
            "seconds": self.seconds,
            "read_bytes": self.read_bytes,
            "left_bytes": self.left_bytes,
            "left_seconds": round(self.left_seconds),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadInBatches(Event):
    """A large load or copy, or a part of it, is read in batches, which is slower: `reason`."""

    type: ClassVar[str] = "load.in_batches"
    verb: ClassVar[str] = "loading"
    template: ClassVar[str] = "in batches: {reason}"
    default_level: ClassVar[Level] = Level.DETAIL
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetApplied(Event):
    """Pending changes were applied. `rows` counts written and removed rows, by name."""

    type: ClassVar[str] = "dataset.applied"
    reason: str
    seconds: float
    rows: Mapping[str, int]

    @override
    def figures(self) -> Mapping[str, Any]:
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
    """Pending changes wait; reported when the reason changes. Live queries see them anyway."""

    type: ClassVar[str] = "apply.skipped"
    verb: ClassVar[str] = "waiting"
    template: ClassVar[str] = "{reason}"
    default_level: ClassVar[Level] = Level.DETAIL
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChanged(Event):
    """The source changed, and a policy decided. `change` is its type, `says` a sentence."""

    type: ClassVar[str] = "schema.changed"
    verb: ClassVar[str] = "changed"
    template: ClassVar[str] = "{says} ({decision})"
    change: str
    policy: str
    says: str

    @property
    def decision(self) -> str:
        """The policy in words."""
        return policy_in_words(self.policy)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsRewritten(Event):
    """Columns got types that required rewriting every row.

    `columns` has the old and the new type of each, in words; `size_bytes` are of the new files.
    """

    type: ClassVar[str] = "columns.rewritten"
    columns: Mapping[str, str]
    rows: int
    size_bytes: int
    seconds: float

    @override
    def text(self) -> str:
        types = ", ".join(f"{name} {change}" for name, change in self.columns.items())
        return line(
            "rewrote", self.subject, f"{types}, {counted(self.rows, 'row')} in {self.seconds:.1f} s"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChanged(Event):
    """A landed file changed after it was copied; its new content is not read.

    If its size is unchanged, the file was replaced, or rewritten with the same bytes.
    """

    type: ClassVar[str] = "file.changed"
    template: ClassVar[str] = "{file} {change} after it was copied; the new content is not read"
    default_level: ClassVar[Level] = Level.WARNING
    file: str
    size_bytes: int
    copied_bytes: int

    @property
    def change(self) -> str:
        """What happened to the file."""
        same_size = self.size_bytes == self.copied_bytes
        return "was replaced by a file of the same size" if same_size else "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsDerived(Event):
    """A derived table shows what its query returns. `changes` are the rows that its apply wrote.

    `rows` were computed; `how` says why all of them, or by how many values of which columns.
    `rows_quarantined` others fail an expectation that puts them aside.
    """

    type: ClassVar[str] = "rows.derived"
    verb: ClassVar[str] = "derived"
    template: ClassVar[str] = "{rows:,} rows in {seconds:.1f} s, {differences}{aside} ({how})"
    rows: int
    changes: dict[str, int]
    seconds: float
    how: str
    rows_quarantined: int = 0

    @property
    def aside(self) -> str:
        """`, 3 quarantined`, or nothing."""
        return f", {self.rows_quarantined:,} quarantined" if self.rows_quarantined else ""

    @property
    def differences(self) -> str:
        """`2 inserts, 1 update`, or that nothing changed."""
        kinds = ("insert", "update", "delete")
        done = {kind: self.changes.get(f"{kind}s", 0) for kind in kinds}
        found = [counted(done[kind], kind) for kind in kinds if done[kind]]
        return ", ".join(found) or "none of them changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectationFailed(Event):
    """A result fails an expectation and was committed: `reason`.

    With `on_failure: quarantine` it was committed without the rows that fail.
    """

    type: ClassVar[str] = "expectation.failed"
    template: ClassVar[str] = "{expectation} fails: {reason}"
    default_level: ClassVar[Level] = Level.WARNING
    expectation: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedTableWaits(Event):
    """A derived table waits for a table that its query reads and that has no rows yet."""

    type: ClassVar[str] = "derived.waiting"
    verb: ClassVar[str] = "waiting"
    template: ClassVar[str] = "{table} has no columns yet"
    table: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWaiting(Event):
    """A landed file cannot be read before another one has landed; reported once."""

    type: ClassVar[str] = "file.waiting"
    verb: ClassVar[str] = "waiting"
    template: ClassVar[str] = "{file}: {waits_for} has not landed"
    file: str
    waits_for: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadLoaded(Event):
    """A batch of a full load was written next to Current."""

    type: ClassVar[str] = "reload.loaded"
    verb: ClassVar[str] = "loaded"
    template: ClassVar[str] = "{rows_loaded:,} rows, {files_left} files left"
    rows_in: int
    rows_loaded: int
    rows_quarantined: int
    files_left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReloadWaiting(Event):
    """A reload is in progress and a run leaves its files to it; reported once."""

    type: ClassVar[str] = "reload.waiting"
    verb: ClassVar[str] = "waiting"
    template: ClassVar[str] = "a reload is in progress: `polynya reload` has to read {rest}"
    files: int

    @property
    def rest(self) -> str:
        """What is left of the load. A stream that never landed has no files."""
        return f"{counted(self.files, 'more file')} of its load" if self.files else "its stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadCompared(Event):
    """A scheduled load was compared with its table. `time`: that of its rows.

    If records of it went to quarantine, no row was deleted.
    """

    type: ClassVar[str] = "load.compared"
    verb: ClassVar[str] = "compared"
    template: ClassVar[str] = "a load of {rows_loaded:,} rows{incomplete}"
    time: str
    rows_loaded: int
    rows_quarantined: int

    @property
    def incomplete(self) -> str:
        """`, incomplete`, or nothing."""
        return ", incomplete" if self.rows_quarantined else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadDiscarded(Event):
    """`rows` of a scheduled load that is not complete were discarded; the table stays as it was."""

    type: ClassVar[str] = "load.discarded"
    verb: ClassVar[str] = "discarded"
    template: ClassVar[str] = "{rows:,} rows of a load: {reason}"
    default_level: ClassVar[Level] = Level.WARNING
    rows: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractApplied(Event):
    """A full extract was compared and written. `time`: when it was made; `complete`: all of it."""

    type: ClassVar[str] = "extract.applied"
    verb: ClassVar[str] = "extract"
    template: ClassVar[str] = "{extract}, {rows_loaded:,} rows{incomplete}"
    extract: str | None
    time: str
    rows_loaded: int
    rows_quarantined: int
    complete: bool

    @property
    def incomplete(self) -> str:
        """`, incomplete`, or nothing."""
        return "" if self.complete else ", incomplete"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractWaiting(Event):
    """A full extract cannot be read yet; reported once."""

    type: ClassVar[str] = "extract.waiting"
    verb: ClassVar[str] = "waiting"
    template: ClassVar[str] = "{extract}: {reason}"
    extract: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractRestarted(Event):
    """The rows loaded of an extract were discarded; the next run starts it from scratch."""

    type: ClassVar[str] = "extract.restarted"
    verb: ClassVar[str] = "restarted"
    template: ClassVar[str] = "{extract}: {reason}"
    extract: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnUnknown(Event):
    """A setting names a column that no record has yet; `meant` is one of a similar name."""

    type: ClassVar[str] = "column.unknown"
    template: ClassVar[str] = "`{setting}` names `{column}`, which no record has{suggestion}"
    default_level: ClassVar[Level] = Level.WARNING
    setting: str
    column: str
    meant: str | None = None

    @property
    def suggestion(self) -> str:
        """`; did you mean …?`, or nothing."""
        return "" if self.meant is None else f"; did you mean `{self.meant}`?"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitFailed(ErrorEvent):
    """A dataset, or a task that discovers its datasets, failed; reported once while it lasts.

    `goes_on`: the run tries it again; otherwise it is done with it.
    """

    type: ClassVar[str] = "unit.failed"
    goes_on: bool = True

    @property
    @override
    def level(self) -> Level:
        # Work that another process holds may return by itself.
        return Level.CAUTION if isinstance(self.error, ConflictError) else Level.FAILURE

    @override
    def figures(self) -> Mapping[str, Any]:
        return {"code": self.error.code, "message": str(self.error)}

    @override
    def text(self) -> str:
        verb = "failed"
        if isinstance(self.error, SuspendedError):
            verb = "suspended"
        elif isinstance(self.error, ConflictError):
            verb = "waiting"
        return line(verb, self.subject, self.cause)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRecovered(Event):
    """A unit that failed, or had to wait, works again."""

    type: ClassVar[str] = "unit.recovered"
    verb: ClassVar[str] = "recovered"
    template: ClassVar[str] = "works again"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewsPublished(Event):
    """Views for other engines were created or changed."""

    type: ClassVar[str] = "views.published"
    default_level: ClassVar[Level] = Level.DETAIL
    views: tuple[str, ...]

    @override
    def text(self) -> str:
        return f"views    {', '.join(self.views)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewsFailed(ErrorEvent):
    """Views for other engines could not be published; reported once while it lasts."""

    type: ClassVar[str] = "views.failed"
    template: ClassVar[str] = "other engines may miss its views: {cause}"

    @override
    def figures(self) -> Mapping[str, Any]:
        return {"error": str(self.error), "code": self.error.code}
