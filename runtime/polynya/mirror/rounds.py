"""One round of a mirror: what is here and there, what to change, and carrying that out.

Each statement may be the last one before a kill: the next round asks the target again and goes on
from there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from polynya.lake.warehouse.readers import Readers
from polynya.mirror.plan import (
    MirroredDataset,
    MirrorOrigin,
    MirrorPlan,
    MirrorStatement,
    TargetObject,
    plan,
)
from polynya.mirror.state import (
    MirroredTable,
    MirrorState,
    RefreshDecision,
    SourceCommit,
    decide,
    hold,
    load_state,
    save_state,
    staleness,
)
from polynya.mirror.statements import MirrorSession
from polynya.mirror.targets import statements_of
from polynya.model.config.mirror import ConnectedMirror
from polynya.model.errors import DependencyError, PolynyaError
from polynya.observe.events import EventSink
from polynya.observe.mirror import MirrorBehind, MirrorChanged, MirrorRefreshed
from polynya.store.clock import Clock
from polynya.store.object_store import ObjectStore

#: How often the target is asked for its objects although nothing changed here.
_LOOK_EVERY: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class MirrorSource:
    """A dataset with its newest commit."""

    shown: MirroredDataset
    commit: SourceCommit

    @property
    def name(self) -> str:
        """`schema.view`."""
        return self.shown.name


@dataclass(frozen=True, slots=True)
class RoundResult:
    """How a round ended: until when nothing is due, and the first error of a dataset."""

    wait: timedelta | None = None
    error: PolynyaError | None = None
    refreshed: int = 0
    statements: int = 0


class MirrorRounds:
    """The rounds of one mirror.

    Args:
        task: the mirror.
        origin: what marks its objects.
        connect: opens a session with the target.
        store: the warehouse, for the state.
        readers: the readers of the warehouse, among which the target is one.
        clock: tells the time.
        random: numbers from 0 to 1.
        snapshot_of: snapshot and time of a commit by the place of its metadata file.
        sink: receives what happened.
    """

    def __init__(
        self,
        task: ConnectedMirror,
        origin: MirrorOrigin,
        *,
        connect: Callable[[], MirrorSession],
        store: ObjectStore,
        readers: Readers,
        clock: Clock,
        random: Callable[[], float],
        snapshot_of: Callable[[str], SourceCommit | None],
        sink: EventSink,
    ) -> None:
        self._task, self._origin, self._connect = task, origin, connect
        self._store, self._readers, self._clock, self._random = store, readers, clock, random
        self._snapshot_of, self._sink = snapshot_of, sink
        self._target = statements_of(task)
        self._told: dict[str, str] = {}
        #: As the last round left it.
        self.state = MirrorState()

    def step(self, sources: Sequence[MirrorSource], *, complete: bool) -> RoundResult:
        """Bring the target up to date, as far as that is due.

        `complete`: the sources are all there are. Otherwise nothing is dropped.
        Raises DependencyError: the store of the state does not answer, or the target.
        """
        now = self._clock.now()
        state = self._seen(load_state(self._store, self._task.name), sources, now, drop=complete)
        decisions = {one.name: self._decision(state, one, now) for one in sources}
        shapes = self._shapes(sources, complete=complete)
        looked = None if state.looked_at is None else datetime.fromisoformat(state.looked_at)
        looks = looked is None or now - looked >= _LOOK_EVERY or shapes != state.shapes
        due = [one for one in sources if decisions[one.name].due]
        if not due and not looks:
            self._keep(state, now)
            self._tell_stale(state, now)
            return RoundResult(_wait(decisions.values()))
        state = replace(state, shapes=shapes, looked_at=now.isoformat())
        try:
            with closing(self._connect()) as session:
                state, result = self._worked(session, state, sources, due, now, complete=complete)
        except PolynyaError as error:
            state = _failed(state, [one.name for one in sources], error, now)
            self._keep(state, now)
            self._tell_stale(state, now)
            raise
        self._keep(state, now)
        self._tell_stale(state, now)
        return result

    def planned(self, sources: Sequence[MirrorSource], *, complete: bool) -> MirrorPlan:
        """The statements of the next round that changes objects. Changes nothing."""
        with closing(self._connect()) as session:
            return self._plan(session, sources, complete=complete)

    def _decision(self, state: MirrorState, source: MirrorSource, now: datetime) -> RefreshDecision:
        there = state.tables[source.name]
        if self._target.finds_commits and there.error is None:
            return RefreshDecision(due=False, reason="the target reads the newest commit by itself")
        return decide(self._task.refresh, source.commit, there, now, self._random())

    def _plan(
        self, session: MirrorSession, sources: Sequence[MirrorSource], *, complete: bool
    ) -> MirrorPlan:
        there = [
            TargetObject(name, "VIEW" if kind == "VIEW" else "TABLE", comment)
            for name, kind, comment in session.objects()
        ]
        shown = [one.shown for one in sources]
        return plan(self._task, self._origin, shown, there, complete=complete)

    def _worked(
        self,
        session: MirrorSession,
        state: MirrorState,
        sources: Sequence[MirrorSource],
        due: Sequence[MirrorSource],
        now: datetime,
        *,
        complete: bool,
    ) -> tuple[MirrorState, RoundResult]:
        """Carry everything out; what one dataset meets stops only this one."""
        made = self._plan(session, sources, complete=complete)
        failed: dict[str, PolynyaError] = dict(made.refused)
        done = self._carried_out(session, made, failed)
        fresh = {one.dataset for one in done if one.kind == "TABLE" and one.action != "drop"}
        refreshed = 0
        names = {one.name for one in due} | fresh
        for one in sources:
            if one.name in failed:
                state = _failed(state, [one.name], failed[one.name], now)
            elif one.name in names:
                try:
                    state = self._refreshed(session, state, one, now, asked=one.name not in fresh)
                    refreshed += 1
                except DependencyError:
                    raise
                except PolynyaError as refusal:
                    failed[one.name] = refusal
                    state = _failed(state, [one.name], refusal, now)
            elif self._target.finds_commits:
                state = _with(state, one.name, MirroredTable())
        first = next(iter(failed.values()), None)
        return state, RoundResult(error=first, refreshed=refreshed, statements=len(done))

    def _carried_out(
        self, session: MirrorSession, made: MirrorPlan, failed: dict[str, PolynyaError]
    ) -> list[MirrorStatement]:
        """Carry out what is planned; `failed` gets the first error of each dataset."""
        done = []
        for statement in made.statements:
            if statement.dataset in failed:
                continue
            try:
                for sql in statement.texts:
                    session.execute(sql)
            except DependencyError:
                raise
            except PolynyaError as error:
                failed[statement.dataset] = error
                continue
            done.append(statement)
            self._tell(statement)
        return done

    def _refreshed(
        self,
        session: MirrorSession,
        state: MirrorState,
        source: MirrorSource,
        now: datetime,
        *,
        asked: bool,
    ) -> MirrorState:
        """Refresh a table, unless it was just made, and note which commit it shows then."""
        relations = source.shown.dataset.relations
        refresh, table_there = self._target.refresh(relations), self._target.table(relations)
        if self._target.finds_commits:
            return _with(state, source.name, MirroredTable())
        if asked and refresh is not None and not self._task.refresh.automatic:
            session.execute(refresh)
        place = None if table_there is None else session.metadata_of(table_there[0])
        shows = source.commit
        if place is not None and not _same(place, shows.metadata):
            # The catalog may have named a newer commit by then, or the target none of the last.
            found = self._snapshot_of(place)
            shows = source.commit if found is None else found
        before = state.tables[source.name]
        newest = shows.committed_at >= source.commit.committed_at
        table = MirroredTable(
            metadata=source.commit.metadata if newest else shows.metadata,
            snapshot=shows.snapshot,
            committed_at=shows.committed_at.isoformat(),
            applied_at=source.commit.applied_at if newest else before.applied_at,
            refreshed_at=now.isoformat(),
            behind_since=None if newest else before.behind_since,
        )
        self._sink(
            MirrorRefreshed(
                subject=source.name, task=self._task.name, snapshot=shows.snapshot,
                behind_seconds=round(staleness(table, now).total_seconds(), 3),
            )
        )  # fmt: skip
        return _with(state, source.name, table)

    def _seen(
        self, state: MirrorState, sources: Sequence[MirrorSource], now: datetime, *, drop: bool
    ) -> MirrorState:
        """The state with what is here now."""
        tables = {} if drop else dict(state.tables)
        for one in sources:
            table = state.tables.get(one.name, MirroredTable())
            if table.metadata == one.commit.metadata or self._target.finds_commits:
                table = replace(table, behind_since=None)
            elif table.behind_since is None:
                table = replace(table, behind_since=min(one.commit.committed_at, now).isoformat())
            tables[one.name] = table
        return replace(state, tables=tables)

    def _shapes(self, sources: Sequence[MirrorSource], *, complete: bool) -> str:
        """The digest of everything that the objects of the mirror are made from."""
        task = self._task
        rules = (task.target, task.views, task.schema_evolution, task.refresh, complete)
        texts = [repr(rules)]
        for one in sources:
            # Sets have another order in each process.
            shape = replace(one.shown.shape, hidden=frozenset(), bridged=frozenset())
            sets = sorted(one.shown.shape.hidden), sorted(one.shown.shape.bridged)
            texts.append(f"{one.name} {shape!r} {sets}")
        return hashlib.sha256("\n".join(texts).encode()).hexdigest()

    def _keep(self, state: MirrorState, now: datetime) -> None:
        self.state = state
        save_state(self._store, self._task.name, state)
        hold(self._readers, self._task.name, state, self._task.refresh, now)

    def _tell(self, done: MirrorStatement) -> None:
        self._sink(
            MirrorChanged(
                subject=done.dataset, task=self._task.name, action=done.action,
                object=f"{done.kind.lower()} {done.name}", reason=done.reason,
            )
        )  # fmt: skip

    def _tell_stale(self, state: MirrorState, now: datetime) -> None:
        """Report each table that is too far behind, once for each time that it is."""
        for name, table in state.tables.items():
            behind = staleness(table, now)
            if behind < self._task.refresh.stale_after:
                self._told.pop(name, None)
            elif self._told.get(name) != table.behind_since:
                self._told[name] = str(table.behind_since)
                self._sink(
                    MirrorBehind(
                        subject=name, task=self._task.name,
                        behind_seconds=round(behind.total_seconds(), 3),
                        error=table.error or "it was not refreshed",
                    )
                )  # fmt: skip


def _with(state: MirrorState, name: str, table: MirroredTable) -> MirrorState:
    return replace(state, tables={**state.tables, name: table})


def _failed(
    state: MirrorState, names: Sequence[str], error: PolynyaError, now: datetime
) -> MirrorState:
    for name in names:
        before = state.tables.get(name, MirroredTable())
        table = replace(
            before,
            failures=before.failures + 1,
            tried_at=now.isoformat(),
            error=error.why or error.message,
            code=error.code,
        )
        state = _with(state, name, table)
    return state


def _wait(decisions: Iterable[RefreshDecision]) -> timedelta | None:
    return min((one.wait for one in decisions if one.wait is not None), default=None)


def _same(one: str, other: str) -> bool:
    """Whether two places are one: targets write `s3://` where Hadoop writes `s3a://`."""
    return _plain(one) == _plain(other)


def _plain(place: str) -> str:
    for scheme in ("s3a://", "s3n://", "s3://", "file://", "file:"):
        if place.startswith(scheme):
            return place.removeprefix(scheme)
    return place


@dataclass(frozen=True, slots=True)
class MirrorRow:
    """A dataset in `polynya mirror status`. Snapshots are those here and in the target."""

    dataset: str
    snapshot_here: int | None
    snapshot_there: int | None
    refreshed_at: str | None
    behind_seconds: float
    failures: int
    code: str | None
    error: str | None


def described(
    state: MirrorState,
    sources: Mapping[str, SourceCommit],
    now: datetime,
    *,
    finds_commits: bool = False,
) -> list[MirrorRow]:
    """How far each dataset is. `finds_commits`: the target reads the newest commit by itself."""
    rows = []
    for name in sorted({*state.tables, *sources}):
        there, here = state.tables.get(name, MirroredTable()), sources.get(name)
        behind = timedelta()
        if here is not None and there.metadata != here.metadata and not finds_commits:
            since = there.behind_since
            behind = now - (here.committed_at if since is None else datetime.fromisoformat(since))
        rows.append(
            MirrorRow(
                dataset=name,
                snapshot_here=None if here is None else here.snapshot,
                snapshot_there=there.snapshot,
                refreshed_at=there.refreshed_at,
                behind_seconds=round(max(behind, timedelta()).total_seconds(), 3),
                failures=there.failures,
                code=there.code,
                error=there.error,
            )
        )
    return rows
