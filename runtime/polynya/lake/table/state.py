"""The state of an internal table: what was copied, what was applied, and who owns it.

The state is stored as rows of the table, and they are the fence: every commit removes the state
file that it was based on and adds its own (semantics section 11). Position and totals are stored
there and not in snapshot summaries, because snapshots expire.

`CopyState` consists of named parts, but its JSON has all fields on one level. Times are ISO 8601 in
UTC.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field, fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from polynya.formats.batch import FileProgress
from polynya.formats.eras import Era
from polynya.formats.files import FilesProgress, read, written
from polynya.lake.fold.fold import TruncateEvent
from polynya.lake.iceberg.files import DataFile
from polynya.model.config.dataset import ReloadMode, ResolvedDataset
from polynya.model.config.schedule import AT_ONCE
from polynya.model.error_catalogue.lake import TWO_STATES
from polynya.model.headers import (
    APPLY_CHANGE_IDENTIFIER,
    COPY_CHANGE_IDENTIFIER,
    PARTITION,
    STATE,
    Partition,
)
from polynya.model.positions import DirectPosition, LandedUntil, Reached

if TYPE_CHECKING:
    from polynya.lake.iceberg.table import IcebergTable

#: Changed rows are read in two states, and then computed: of a share of the inputs that may take so
#: many times what this share of the whole query takes.
_TIMES_READ: Final = 3


@dataclass(frozen=True, slots=True)
class TableOwnership:
    """Who wrote the state, under which epoch, in which commit."""

    epoch: int = 0
    owner: str = ""
    commit: str = ""


@dataclass(frozen=True, slots=True)
class Retaining:
    """What the partition `retained` holds, of a dataset that keeps its applied events.

    Versions that entered the table up to `since` are the base: their events are not kept. None:
    every event since the table exists is kept. `latest` is when the newest kept events were
    applied, `oldest` the oldest; each is later than the one before, whatever the clock says.
    `rows` are in the partition. Times are engine time, ISO 8601 in UTC.
    """

    since: str | None = None
    latest: str | None = None
    oldest: str | None = None
    rows: int = 0


@dataclass(frozen=True, slots=True)
class ApplyState:
    """How far Changes were folded, and what later events need to know of the past.

    `truncates` lists every truncate; its JSON is [change identifier, tail, epoch microseconds].
    `horizon` is the highest sequence of a tombstone that retention removed: older events go to
    quarantine. `oldest_tombstone` is when the oldest tombstone that is still kept was written.
    `retaining` tells of the applied events that are kept, None when none are. `from_changes`
    counts the rows that were ever taken out of the partition Changes. `totals` add up the figures
    of all applies; `counted_since` is when they began to count inserts, updates, deletes and
    truncates, None where they always did.
    """

    ownership: TableOwnership = field(default_factory=TableOwnership)
    truncates: list[TruncateEvent] = field(default_factory=list)
    horizon: str | None = None
    oldest_tombstone: str | None = None
    retaining: Retaining | None = None
    applied_to: str | None = None
    applied_at: str | None = None
    reason: str | None = None
    applies: int = 0
    seconds: float | None = None
    totals: dict[str, int] = field(default_factory=dict)
    from_changes: int = 0
    counted_since: str | None = None

    def counted_from(self, now: datetime) -> str | None:
        """Since when inserts, updates and deletes are counted, if an apply at `now` counts them."""
        if self.applies and "inserts" not in self.totals:
            return now.isoformat()
        return self.counted_since

    def to_json(self) -> str:
        """The state as a table holds it."""
        truncates = [list(astuple(truncate)) for truncate in self.truncates]
        return _json({**_fields(self), "truncates": truncates})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a state; fields of newer versions are ignored, missing ones get their default."""
        names = {f.name for f in fields(cls)}
        values: dict[str, Any] = {k: v for k, v in json.loads(text).items() if k in names}
        values["ownership"] = TableOwnership(**values.get("ownership", {}))
        if values.get("retaining") is not None:
            values["retaining"] = Retaining(**values["retaining"])
        values["truncates"] = [TruncateEvent(*truncate) for truncate in values.get("truncates", ())]
        return cls(**values)


def _fields(part: Any) -> dict[str, Any]:
    """The fields of a dataclass by name. `asdict` would copy all that is in them."""
    return {field.name: getattr(part, field.name) for field in fields(part)}


def _json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False, default=_fields)


#: How many changes of its source's shape a table remembers: every commit writes them.
MOST_SHAPE_CHANGES: Final = 100

_Part = TypeVar("_Part")


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """How far the source was read, and how fresh the table is.

    `files` has every landed file that was read; those that left the landing zone are forgotten.
    `copied_to` is the highest change identifier. `pending_since` is when the oldest change that may
    still be pending was copied. `load_started` is the start of the first full load, `last_extract`
    the full extract applied last. `behind` says that a shared capture was read on without this
    dataset. `stream` is how far a stream was read that never landed: then there are no files.
    `landed` is how far landed batches of a stream were copied, and how many were gone before that.
    `eras` are those of the source's log.
    """

    files: dict[str, FileProgress] = field(default_factory=dict)
    copied_to: str | None = None
    copied_at: str | None = None
    pending_since: str | None = None
    newest_event: str | None = None
    load_started: str | None = None
    last_extract: str | None = None
    behind: bool = False
    stream: DirectPosition | None = None
    landed: Reached | None = None
    eras: list[Era] = field(default_factory=list)

    @property
    def load_started_at(self) -> datetime | None:
        """When the first full load began, None when there was none."""
        return None if self.load_started is None else datetime.fromisoformat(self.load_started)


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """The columns of the source that were met.

    `schema` maps each to its type, `void` while only NULLs were seen. `declared` are those of the
    source's newest schema, empty where it declares none. `unsent` are columns that some event did
    not carry; for `unsent_texts` see `lake/fold/sql.py`. `named` are those that settings named when
    records were copied, None in tables of older versions. `former` has the types of rewritten
    columns before that, the oldest first. Where columns are mapped `schema` and `keys` are those of
    the table, and `source` has the columns of the source; None where nothing is mapped.
    `key_names` has the names that keys of events have had.
    """

    schema: dict[str, str] = field(default_factory=dict)
    keys: list[str] = field(default_factory=list)
    unsent: list[str] = field(default_factory=list)
    has_old_keys: bool = False
    declared: list[str] = field(default_factory=list)
    unsent_texts: dict[str, list[str]] = field(default_factory=dict)
    named: list[str] | None = None
    former: dict[str, list[str]] = field(default_factory=dict)
    source: dict[str, str] | None = None
    key_names: list[list[str]] = field(default_factory=list)

    @property
    def of_source(self) -> dict[str, str]:
        """The columns of the source with their types."""
        return self.schema if self.source is None else self.source


@dataclass(frozen=True, slots=True)
class Books:
    """What became of the records since the table exists, in counts of records.

    `totals`: rows_in = rows_out + rows_filtered + rows_quarantined. `counters` say why records were
    filtered. `unparsed` of those in quarantine could not be parsed. `to_changes` counts the rows
    that were ever written to the partition Changes, None where a version wrote that did not count
    them. `inserted` counts rows that copies put into Current without an apply: loaded and appended
    ones. `inserted_since` is when that count began, None where it counts all.
    """

    totals: dict[str, int] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    to_changes: int | None = None
    unparsed: int = 0
    inserted: int | None = None
    inserted_since: str | None = None


@dataclass(frozen=True, slots=True)
class Suspension:
    """Why a dataset is not copied until an operator decides; nothing of it is lost meanwhile.

    `cause` is what was met (a kind of schema change, `bad_record`, `asked`), `reason` says it to
    people, `where` is the object or file. `since` is ISO 8601 in UTC.
    """

    cause: str
    reason: str
    where: str
    since: str


@dataclass(frozen=True, slots=True)
class Decisions:
    """What waits for a decision, and what was decided.

    `suspended` says why the dataset is not copied; `accepted` maps a cause of suspension to the
    policy that the next batch may use for it.
    """

    suspended: Suspension | None = None
    accepted: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DecidedChange:
    """A change of the shape of a source, and what was decided of it.

    `at` is when, ISO 8601 in UTC; `change` its kind, `says` what changed, in words. `policy` is as
    files call it, and `accepted` tells that an operator gave it for this change.
    """

    at: str
    change: str
    says: str
    policy: str
    accepted: bool = False

    def repeats(self, before: DecidedChange) -> bool:
        """Whether it is the same again: an ignored change comes with every batch."""
        return self == before or (self.policy == "ignore" and replace(self, at=before.at) == before)


@dataclass(frozen=True, slots=True)
class Membership:
    """The task that fills the table, and what its source tables are called.

    `called` is the name that the table's source has since it was renamed. The other two belong to
    the position of a whole task: `members` are the source tables met so far; `settled` says that
    its first run has ended, so that source tables which appear later are new ones; `refused` are
    those whose events could not be copied, so that the shared files were read on without them.
    """

    task: str | None = None
    members: list[str] = field(default_factory=list)
    settled: bool = False
    called: str | None = None
    refused: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ScheduledLoad:
    """How much has been gathered of a load that a capture lands on a schedule.

    `load` is its number, `chunks` of it have been gathered; `is_complete`: it has no more.
    """

    load: int
    chunks: int = 0
    is_complete: bool = False


@dataclass(frozen=True, slots=True)
class Reloading:
    """A reload that has begun: its rows gather in the partition `reload` (semantics section 8).

    Its place in the order of events is right after `place`, the change identifier that had been
    copied when it began; `number` counts the reloads of the dataset. `files` is how far each file
    was read; `rows` have been loaded, `quarantined` records not. `started` is ISO 8601 in UTC.
    `extract` is the full extract that is loaded, None when a user asked for the reload.
    Then `glob` names its files, None for those that the settings or the source say. `stream` is how
    far a stream was read at its source; `until` is where that ends, None for one that never landed.
    `scheduled` says that the load lands among the batches of a capture, and how far it was read:
    these batches are in the position of the table, and not in `files`.
    `due` says up to which moment this load makes up for the dataset's schedule, ISO 8601; None when
    none has begun it.
    """

    mode: ReloadMode
    number: int
    started: str
    place: str
    files: dict[str, FileProgress] = field(default_factory=dict)
    rows: int = 0
    quarantined: int = 0
    extract: str | None = None
    glob: str | None = None
    stream: DirectPosition | None = None
    until: LandedUntil | None = None
    scheduled: ScheduledLoad | None = None
    due: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether it holds rows and all of them could be read, so far."""
        return self.rows > 0 and not self.quarantined

    @property
    def starts_by_itself(self) -> bool:
        """Whether a run has begun it, and not a user."""
        return self.extract is not None or self.scheduled is not None

    @property
    def tail(self) -> str:
        """Sequence tail of its events: behind every tail of a source, which are hexadecimal."""
        return f"~{self.number:06d}"

    @property
    def sequence(self) -> str:
        """Sequence of its events."""
        return self.place + self.tail

    @property
    def started_at(self) -> datetime:
        """When it began."""
        return datetime.fromisoformat(self.started)


@dataclass(frozen=True, slots=True)
class ReloadRecord:
    """The last reload that ended of those that a dataset's schedule has begun.

    Every moment of the schedule up to `due` is done; `ended` is when. Both are ISO 8601 in UTC.
    `rows` were loaded, `quarantined` records not.
    """

    due: str
    ended: str
    rows: int = 0
    quarantined: int = 0


@dataclass(frozen=True, slots=True)
class DerivationCosts:
    """Seconds that the last steps of a derived table took; None before the first one.

    `whole` computed the whole query; `keyed` the rows with affected keys, while `share` of the rows
    of the inputs had changed.
    """

    whole: float | None = None
    keyed: float | None = None
    share: float = 0.0

    def why_whole(self, share: float) -> str | None:
        """Why the whole query is computed sooner, while `share` of the rows of the inputs changed.

        None where it is not, or where that is not known.
        """
        if self.whole is None or self.keyed is None:
            return None
        expected = self.keyed + max(0.0, share - self.share) * _TIMES_READ * self.whole
        if expected <= self.whole:
            return None
        return f"it took {self.whole:.1f} s, and its affected keys would take {expected:.1f} s"


@dataclass(frozen=True, slots=True)
class Derivation:
    """What a derived table was made of by its last step.

    `query` is the SHA-256 of its text in hex. `inputs` has the snapshot of each internal table that
    it read, by `schema.table`; `until` is when the step began, ISO 8601 in UTC.
    """

    query: str
    inputs: dict[str, int] = field(default_factory=dict)
    until: str | None = None
    costs: DerivationCosts = field(default_factory=DerivationCosts)


@dataclass(frozen=True, slots=True)
class ExpectationFailures:
    """How often results were committed that fail an expectation of their table.

    `steps` counts them. `says` is what the last one failed by, `at` when it was derived, ISO 8601
    in UTC.
    """

    steps: int
    says: str
    at: str


@dataclass(frozen=True, slots=True)
class CopyState:
    """Source position and accounting of a dataset.

    `reloading` is a reload that has not ended, `reloads` counts those that have begun. `settings`
    are those that the rows were written with (`model.recorded`), empty in tables of older versions.
    `expired` has the `column` by which rows have left, and the time `before` which, ISO 8601.
    `soft_deletes`: deletes were soft at a time, so that Current may hold deleted records.
    `reloaded` is the last reload that a schedule has begun; None: there was none.
    `shape_changes` are the newest changes of the shape of the source, the oldest of them first, and
    `earlier_shape_changes` counts those before. `derivation` is that of a derived table; None: its
    first step has not ended, or its rows come from elsewhere. `failures` has its expectations that
    some result has failed, by their names.
    """

    ownership: TableOwnership = field(default_factory=TableOwnership)
    position: SourcePosition = field(default_factory=SourcePosition)
    columns: SourceColumns = field(default_factory=SourceColumns)
    books: Books = field(default_factory=Books)
    decisions: Decisions = field(default_factory=Decisions)
    membership: Membership = field(default_factory=Membership)
    reloading: Reloading | None = None
    reloads: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    soft_deletes: bool = False
    expired: dict[str, str] = field(default_factory=dict)
    reloaded: ReloadRecord | None = None
    shape_changes: list[DecidedChange] = field(default_factory=list)
    earlier_shape_changes: int = 0
    derivation: Derivation | None = None
    failures: dict[str, ExpectationFailures] = field(default_factory=dict)

    def with_verdicts(self, verdicts: Mapping[str, str | None], at: datetime) -> Self:
        """The state after a result was judged: by what it fails each expectation, None: it passes.

        Expectations that no longer exist are forgotten.
        """
        failures = {name: one for name, one in self.failures.items() if name in verdicts}
        for name, says in verdicts.items():
            if says is not None:
                steps = failures[name].steps if name in failures else 0
                failures[name] = ExpectationFailures(steps + 1, says, at.isoformat())
        return replace(self, failures=failures)

    def reload_due(self, dataset: ResolvedDataset) -> datetime | None:
        """When the schedule of its dataset asks for a reload, in UTC; in the past: now.

        None: none is scheduled, or the first load comes first.
        """
        reload = dataset.landing.reload
        if reload is None:
            return None
        if self.reloaded is not None:
            return reload.schedule.next_after(datetime.fromisoformat(self.reloaded.due))
        first = self.position.load_started_at
        if first is not None:
            return reload.schedule.next_after(first)
        # Files that only a reload reads are the first load.
        return None if dataset.landing.initial_load is not None else AT_ONCE

    def with_shape_changes(self, changes: Iterable[DecidedChange]) -> Self:
        """The state after further changes; those that only come again are left out."""
        kept = list(self.shape_changes)
        for change in changes:
            if not any(change.repeats(before) for before in kept):
                kept.append(change)
        left = max(0, len(kept) - MOST_SHAPE_CHANGES)
        earlier = self.earlier_shape_changes + left
        return replace(self, shape_changes=kept[left:], earlier_shape_changes=earlier)

    @property
    def holds_deletes(self) -> bool:
        """Whether Current may hold records that are deleted."""
        return self.soft_deletes or self.settings.get("delete_mode") == "soft"

    def with_settings(self, settings: dict[str, Any]) -> Self:
        """The state of a table that is written with these settings from now on."""
        return replace(self, settings=settings, soft_deletes=self.holds_deletes)

    def with_members(self, members: Iterable[str], refused: Iterable[str] | None = None) -> Self:
        """The state of a whole task that knows these source tables; None: as many are refused."""
        membership = replace(self.membership, members=sorted(set(members)))
        if refused is not None:
            membership = replace(membership, refused=sorted(set(refused)))
        return replace(self, membership=membership)

    def with_behind(self, *, behind: bool) -> Self:
        """The state of a dataset without which a shared capture was read on, or not any more."""
        return replace(self, position=replace(self.position, behind=behind))

    def pending_since(self, apply: ApplyState) -> datetime | None:
        """When the oldest change that may still be pending was copied, None before the first.

        An apply takes in all that was pending when it began.
        """
        pending_since = self.position.pending_since
        if pending_since is None or apply.applied_at is None:
            return None if pending_since is None else datetime.fromisoformat(pending_since)
        return max(map(datetime.fromisoformat, (pending_since, apply.applied_at)))

    def to_json(self) -> str:
        """The fields of all parts side by side, as every version has written them."""
        values = _fields(self)
        for part in _PARTS:
            values |= _fields(values.pop(part))
        if self.reloading is not None:
            values["reloading"] = _fields(self.reloading)
            values["reloading"]["files"] = written(self.reloading.files)
            if begun := FilesProgress.of(self.reloading.files).begun():
                values["reloading"]["begun"] = begun
        del values["files"]
        files = FilesProgress.of(self.position.files)
        if begun := files.begun():
            values["begun"] = begun
        text = _json(values).removesuffix("}")
        return f'{text}, "files": {files.to_json()}}}'

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a state; fields of newer versions are ignored, missing ones get their default."""
        values = json.loads(text)
        values["files"] = FilesProgress(read(values.get("files", {}), values.get("begun", {})))
        values["eras"] = [
            _part(Era, {**era, "names": tuple(era["names"])}) for era in values.get("eras", ())
        ]
        values["shape_changes"] = [
            _part(DecidedChange, change) for change in values.get("shape_changes", ())
        ]
        if values.get("derivation") is not None:
            costs = _part(DerivationCosts, values["derivation"].get("costs", {}))
            values["derivation"]["costs"] = costs
        values["failures"] = {
            name: _part(ExpectationFailures, one)
            for name, one in values.get("failures", {}).items()
        }
        for name, kind in (
            ("ownership", TableOwnership),
            ("suspended", Suspension),
            ("stream", DirectPosition),
            ("landed", Reached),
            ("reloaded", ReloadRecord),
            ("derivation", Derivation),
        ):
            if values.get(name) is not None:
                values[name] = _part(kind, values[name])
        if values.get("reloading") is not None:
            reloading = values["reloading"]
            files = read(reloading.get("files", {}), reloading.get("begun", {}))
            stream = reloading.get("stream")
            stream = None if stream is None else _part(DirectPosition, stream)
            until = reloading.get("until")
            until = None if until is None else _part(LandedUntil, until)
            scheduled = reloading.get("scheduled")
            scheduled = None if scheduled is None else _part(ScheduledLoad, scheduled)
            parts = {"files": files, "stream": stream, "until": until, "scheduled": scheduled}
            values["reloading"] = _part(Reloading, {**reloading, **parts})
        values |= {name: _part(kind, values) for name, kind in _PARTS.items()}
        return _part(cls, values)


_PARTS: Final[Mapping[str, type]] = {
    "position": SourcePosition,
    "columns": SourceColumns,
    "books": Books,
    "decisions": Decisions,
    "membership": Membership,
}


def _part(kind: type[_Part], values: Mapping[str, Any]) -> _Part:
    """A dataclass out of those of the values that it knows."""
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    return kind(**{name: value for name, value in values.items() if name in names})


@dataclass(frozen=True, slots=True)
class TableState:
    """Both states of a table in one snapshot, and their files (None: not written yet)."""

    snapshot: int | None
    copy: CopyState
    apply: ApplyState
    copy_file: DataFile | None = None
    apply_file: DataFile | None = None

    @property
    def epoch(self) -> int:
        """Highest epoch that ever owned the table."""
        return self.ownership.epoch

    @property
    def ownership(self) -> TableOwnership:
        """Of the newest owner."""
        return max(self.copy.ownership, self.apply.ownership, key=lambda ownership: ownership.epoch)

    @property
    def is_joined(self) -> bool:
        """Whether one file holds both: another engine's compaction has joined them."""
        return self.copy_file is not None and self.copy_file == self.apply_file

    def new_files(self, before: TableState) -> list[DataFile]:
        """Files of states that `before` does not have."""
        known_paths = (before.copy_file, before.apply_file)
        mine = dict.fromkeys((self.copy_file, self.apply_file))
        return [file for file in mine if file is not None and file not in known_paths]


def read_state(table: IcebergTable) -> TableState:
    """State rows of the current snapshot."""
    snapshot = table.snapshot_id()
    copy, apply = CopyState(), ApplyState()
    copy_file = apply_file = None
    files = table.files(Partition.ASSET_STATE, snapshot)
    for file, (kind, text) in ((one, row) for one in files for row in _read_rows(table, one)):
        if kind == "copy":
            if copy_file is not None:
                raise TWO_STATES(where=table.name, table=table.name)
            copy, copy_file = CopyState.from_json(text), file
        else:
            if apply_file is not None:
                raise TWO_STATES(where=table.name, table=table.name)
            apply, apply_file = ApplyState.from_json(text), file
    return TableState(snapshot, copy, apply, copy_file, apply_file)


def stage_states(
    table: IcebergTable,
    before: TableState,
    ownership: TableOwnership,
    *,
    copy: CopyState | None,
    apply: ApplyState | None,
) -> TableState:
    """Stage the files of the states that change, in the name of their owner.

    Returns the states after the commit, still with the snapshot of `before`. States that another
    engine has joined get files of their own again.
    """
    if before.is_joined:
        copy, apply = copy or before.copy, apply or before.apply
    after = before
    if copy is not None:
        copy = replace(copy, ownership=ownership)
        file = _write(table, COPY_CHANGE_IDENTIFIER, copy.position.copied_to, copy.to_json())
        after = replace(after, copy=copy, copy_file=file)
    if apply is not None:
        apply = replace(apply, ownership=ownership)
        file = _write(table, APPLY_CHANGE_IDENTIFIER, apply.applied_to, apply.to_json())
        after = replace(after, apply=apply, apply_file=file)
    return after


def _write(table: IcebergTable, column: str, identifier: str | None, text: str) -> DataFile:
    # Start-up time: most commands only read states.
    from polynya.lake.iceberg.writing import write_rows

    # An empty identifier and not NULL: which of the two columns is set tells the kind of the state.
    partition = str(Partition.ASSET_STATE)
    row = pa.table({PARTITION: [partition], column: [identifier or ""], STATE: [text]})
    (file,) = write_rows(table, row)
    return file


def _read_rows(table: IcebergTable, file: DataFile) -> list[tuple[str, str]]:
    """Kind and text of each state in a file; one of ours holds one."""
    stream = table.java.io().newInputFile(file.path).newStream()
    try:
        content = bytes(stream.readAllBytes())
    finally:
        stream.close()
    # Not `pq.read_table`: threads that it leaves may abort a process that exits right after.
    rows = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False).to_pylist()
    return [
        ("copy" if row.get(COPY_CHANGE_IDENTIFIER) is not None else "apply", str(row[STATE]))
        for row in rows
    ]
