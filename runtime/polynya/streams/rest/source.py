"""A REST API as a source of landed batches: one landed table for each resource.

Pages are landed whole, together with the place of the page after them. So a page lands exactly
once, as the server gave it when it was asked. What the server moves between its pages meanwhile
may come twice, or only with the next read: the keys of a table make one record of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
from typing_extensions import override

from polynya.formats.errors import UnreadableFileError
from polynya.formats.landed import SCHEMAS, VALUE, Lost
from polynya.model.config.http_source import (
    ConnectedHttpSource,
    Offsets,
    PageNumbers,
    Resource,
)
from polynya.model.config.stream_landing import StreamingLanding, landed_table
from polynya.model.error_catalogue.http_sources import (
    API_ANSWER_UNUSABLE,
    API_PAGES_REPEAT,
    HTTP_POSITION_INVALID,
    INCREMENTAL_FIELD_MISSING,
)
from polynya.model.error_catalogue.streams import RELOAD_FILES_MAY_DIFFER
from polynya.model.errors import PolynyaError
from polynya.model.headers import StreamSource
from polynya.model.names import shown
from polynya.store.clock import Clock
from polynya.store.http_client import HttpAnswer
from polynya.store.object_store import ObjectStore
from polynya.streams.rest.addresses import place_of, refuse_secret
from polynya.streams.rest.api import STEP_PATIENCE_SECONDS, Api
from polynya.streams.rest.incremental import begin_at, capped, highest, kind_of, later
from polynya.streams.rest.pages import Asked, page_of, request_address
from polynya.streams.rest.parents import ParentBatch, ParentRecord, ParentRecords
from polynya.streams.rest.position import FIRST, ApiPosition, PageContent
from polynya.streams.source import (
    Again,
    AvailableStreams,
    InOrder,
    LandingLimits,
    MessageSource,
    Next,
    Position,
    ReadMessages,
    Ready,
    Stream,
    by_table,
)

#: A batch is landed after this time, although it has room for more pages.
BATCH_SECONDS: Final = 30.0
#: A batch tells of so many losses at most: its footer holds them.
_MOST_LOST: Final = 1000
#: What a server answers when it does not know the place of a page any more.
_PLACE_UNKNOWN: Final = frozenset({400, 404, 410})


@dataclass(slots=True)
class _Batch:
    """The pages of a batch that is being read."""

    resource: str
    columns: dict[str, list[Any]] = field(
        default_factory=lambda: {name: [] for name in SCHEMAS["http"].names}
    )
    size_bytes: int = 0
    lost: list[Lost] = field(default_factory=list)
    lost_records: int = 0

    @property
    def records(self) -> int:
        return len(self.columns[VALUE])

    def add(
        self, page: PageContent, position: ApiPosition, parent: str | None, at: datetime
    ) -> None:
        for number, record in enumerate(page.records):
            row = {
                "hdr__http_resource": self.resource,
                "hdr__http_parent": parent,
                "hdr__http_read": position.read,
                "hdr__http_page": position.pages,
                "hdr__http_record": number,
                "hdr__http_timestamp": at,
                VALUE: record,
            }
            for name, values in self.columns.items():
                values.append(row[name])
        self.size_bytes += sum(map(len, page.records))

    def table(self) -> pa.Table:
        return pa.table(self.columns, SCHEMAS["http"])


@dataclass(frozen=True, slots=True)
class _Page:
    """A page that was read from a position, and the position after it."""

    begin: ApiPosition
    content: PageContent
    end: ApiPosition
    parent: str | None = None
    lost: tuple[Lost, ...] = ()


class ApiSource(MessageSource):
    """See `MessageSource`. A stream is a resource."""

    kind: StreamSource = "http"

    def __init__(
        self,
        api: Api,
        clock: Clock,
        task: StreamingLanding,
        source: ConnectedHttpSource,
        landing: ObjectStore,
    ) -> None:
        self._api, self._clock, self._task, self._source = api, clock, task, source
        self._landing = landing

    @override
    def find(self) -> AvailableStreams:
        tables, errors = by_table(
            self._task.into, self._source.resources, f"task {self._task.name}"
        )
        return AvailableStreams(tables, errors[0] if errors else None)

    @override
    def is_asked_for(self, stream: str) -> bool:
        return stream in self._source.resources

    @override
    def known(self, position: Position) -> frozenset[str]:
        return frozenset({str(position.get("resource", ""))})

    @override
    def reread_from(self, began: Position) -> Position:
        return began

    @override
    def again(self, table: str, began: Position, until: Position) -> Again:
        """An API gives what it has now, not what it had."""
        del began, until
        raise RELOAD_FILES_MAY_DIFFER(
            f"the records of {shown(table)} cannot be read again as they were landed",
            where=f"task {self._task.name}",
            why="an API gives the records that it has now",
            table=shown(table),
        )

    @override
    def order_of(self, streams: tuple[str, ...]) -> InOrder:
        """A resource is read page by page, one read after the other."""
        del streams
        return lambda *_: True

    @override
    def stream(self, table: str) -> ApiStream:
        name = next(
            (
                name
                for name in self._source.resources
                if table in {self._task.into.table, landed_table(name)}
            ),
            table,
        )
        resource = self._source.resources[name]
        parents = (
            None
            if resource.parent is None
            else ParentRecords(
                self._landing, self._task.place, landed_table(resource.parent), resource
            )
        )
        return ApiStream(self._api, self._clock, self._source, name, parents)


class ApiStream(Stream):
    """See `Stream`. Only reading tells what there is, so `next` reads, and keeps it for `read`."""

    def __init__(
        self,
        api: Api,
        clock: Clock,
        source: ConnectedHttpSource,
        name: str,
        parents: ParentRecords | None,
    ) -> None:
        self._api, self._clock, self._name = api, clock, name
        self._resource: Resource = source.resources[name]
        self._period = source.period(name)
        self._parents = parents
        self._where = f"resource {name}"
        self._ready: Ready | None = None
        self._kept: _Page | None = None
        self._failed: tuple[ApiPosition, PolynyaError] | None = None
        #: When the last read began, landed or not.
        self._looked: datetime | None = None
        #: The number of the read that this process began last.
        self._own_read: int | None = None
        self._once_over = False

    @override
    def next(
        self,
        streams: tuple[str, ...],
        position: Position | None,
        limits: LandingLimits,
        *,
        once: bool,
    ) -> Next:
        """With `once` each resource is read once, after a read that was interrupted.

        Raises DependencyError POLYNYA-STR-100 to -110.
        """
        del streams
        if self._ready is not None and self._ready.position == position:
            return self._ready.next
        if position is None:
            return Next(ApiPosition(self._name).to_json(), 0, moves=True, behind=0)
        before = self._position(position)
        begin, batch = before, _Batch(self._name)
        if before.place is None:
            found = self._begun(before, once=once)
            if found is None:
                return self._over(before, position)
            begin, parents = found
            if parents is not None:
                batch.lost, batch.lost_records = [*parents.lost], parents.lost_records
        end = self._read(begin, batch, limits, once=once)
        if before.place is None:
            # A read that failed is tried again without waiting for its time.
            self._looked, self._own_read = begin.began, begin.read
        if end.place is None and end.read == self._own_read:
            self._once_over = True
        if self._is_same(before, end, batch):
            return self._over(end, position)
        return self._following(position, end, batch)

    @override
    def read(self, wanted: Next, limits: LandingLimits) -> ReadMessages:
        """What was read already."""
        del limits
        self._ready = None
        found: ReadMessages = wanted.reads
        return found

    def _following(self, position: Position, end: ApiPosition, batch: _Batch) -> Next:
        behind = int(end.place is not None)
        taken = ReadMessages(batch.table(), end.to_json(), batch.size_bytes, behind)
        following = Next(
            end=taken.end,
            records=batch.records,
            moves=True,
            behind=behind,
            lost=tuple(batch.lost),
            # How many records an entry stands for nobody can say: at least one.
            lost_records=batch.lost_records,
            reads=taken,
        )
        self._ready = Ready(position, following)
        return following

    def _over(self, position: ApiPosition, landed: Position) -> Next:
        """Nothing for now. Raises DependencyError POLYNYA-STR-106 where the last read was ended."""
        if position.problem is not None:
            raise API_PAGES_REPEAT(where=self._where, reason=position.problem)
        return Next(landed, 0, moves=False, behind=0)

    def _position(self, position: Mapping[str, Any]) -> ApiPosition:
        try:
            return ApiPosition.from_json(position)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise HTTP_POSITION_INVALID(where=self._where, error=error) from error

    def _begun(
        self, position: ApiPosition, *, once: bool
    ) -> tuple[ApiPosition, ParentBatch | None] | None:
        """The position at the begin of the next read, and the batch of the parent that it is for.

        None when it is not due.
        """
        now = self._clock.now()
        if self._parents is not None:
            batch = self._parents.after(position.batch)
            if batch is None:
                return None
            begun = self._new_read(position, now)
            place = FIRST if batch.records else None
            return replace(begun, batch=batch.number, row=0, place=place), batch
        last = max((one for one in (self._looked, position.began) if one), default=None)
        if self._once_over if once else last is not None and now < last + self._period:
            return None
        begun = self._new_read(position, now)
        settings = self._resource.incremental
        if settings is None:
            return begun, None
        every, last_full = settings.full_every, position.full_at
        is_full = (
            position.newest is None
            or last_full is None
            or (every is not None and now >= last_full + every)
        )
        since = begin_at(settings, None if is_full else position.newest)
        return replace(begun, since=since, full_at=now if is_full else last_full), None

    def _new_read(self, position: ApiPosition, now: datetime) -> ApiPosition:
        return replace(
            position.from_first_page(),
            read=position.read + 1,
            began=now,
            pages=0,
            first=0,
            since=None,
            met=None,
            again_at=None,
            problem=None,
        )

    def _read(
        self, position: ApiPosition, batch: _Batch, limits: LandingLimits, *, once: bool
    ) -> ApiPosition:
        """Read pages until the batch is full or the read is over; the position after them."""
        begun = self._clock.monotonic()
        while position.place is not None:
            try:
                page = self._page(position, once=once)
            except PolynyaError as error:
                if batch.records:
                    # What was read lands, and the next step tells why there is no more.
                    self._failed = position, error
                    break
                raise
            count = batch.records + len(page.content.records)
            size = batch.size_bytes + sum(map(len, page.content.records))
            if batch.records and (count > limits.max_records or size > limits.max_bytes):
                self._kept = page
                break
            batch.add(page.content, page.begin, page.parent, self._clock.now())
            batch.lost += page.lost
            batch.lost_records += len(page.lost)
            position = page.end
            if batch.records >= limits.max_records or batch.size_bytes >= limits.max_bytes:
                break
            if len(batch.lost) >= _MOST_LOST:
                break
            if self._clock.monotonic() >= begun + BATCH_SECONDS:
                break
        return self._ended(position) if position.place is None else position

    def _ended(self, position: ApiPosition) -> ApiPosition:
        """The position after a read: its highest value counts, unless it was ended early."""
        if position.problem is not None or position.began is None:
            # A read of all records that was ended early was none.
            full_at = None if position.full_at == position.began else position.full_at
            return replace(position, met=None, full_at=full_at)
        newest = later(position.newest, capped(position.met, position.began))
        return replace(position, newest=newest, met=None)

    def _is_same(self, before: ApiPosition, end: ApiPosition, batch: _Batch) -> bool:
        """Whether a read found nothing that has to be written down."""
        if batch.records or batch.lost or end.place is not None or before.place is not None:
            return False
        said = {"newest": before.newest, "full_at": before.full_at, "batch": before.batch}
        now = {"newest": end.newest, "full_at": end.full_at, "batch": end.batch}
        return bool(before.read) and said == now and end.problem is None

    def _page(self, position: ApiPosition, *, once: bool) -> _Page:
        """The page at a position."""
        failed, self._failed = self._failed, None
        if failed is not None and failed[0] == position:
            raise failed[1]
        kept, self._kept = self._kept, None
        if kept is not None and kept.begin == position:
            return kept
        assert position.place is not None, "the read goes on"
        parent = self._parent(position)
        if self._parents is not None and parent is None:
            end = replace(position, place=None)
            return self._lost(position, end, "the batch was removed before it was read")
        path = self._resource.path if parent is None else parent.path
        url = request_address(
            self._api.connection, self._resource, path, position.place, position.since
        )
        try:
            found = self._asked(url, position, once=once)
        except PolynyaError as error:
            if parent is None or error.code != API_ANSWER_UNUSABLE.code:
                raise
            return self._without(position, parent, error.message)
        if isinstance(found, HttpAnswer):
            return self._after_refusal(position, url, found, parent)
        if found.following is not None:
            refuse_secret(" ".join(map(str, found.following.values())), self._api.secrets)
        by_content = isinstance(self._resource.pagination, PageNumbers | Offsets)
        end = position.after(found, by_content=by_content, most=self._resource.max_pages)
        if parent is None:
            return _Page(position, found, self._met(end, found, url))
        lost: tuple[Lost, ...] = ()
        if end.problem is not None:
            # The others below the parent are read nevertheless.
            lost = (_gone(self._name, parent, end.problem),)
            end = replace(end, problem=None)
        if end.place is None:
            end = self._next_parent(end)
        return _Page(position, found, end, parent.fields, lost)

    def _asked(self, url: str, position: ApiPosition, *, once: bool) -> PageContent | HttpAnswer:
        """The page at an address, or the answer 3xx or 4xx.

        Raises DependencyError; for an answer that cannot be read after the attempts that are set.
        """
        assert position.place is not None, "the read goes on"
        retries = self._api.connection.retries
        patience = retries.longest_wait.total_seconds() if once else STEP_PATIENCE_SECONDS
        attempt = 1
        while True:
            answer = self._api.get(url, patience=patience)
            if not 200 <= answer.status < 300:
                return answer
            try:
                asked = Asked(position.place, url, answer)
                return page_of(self._api.connection, self._resource, asked)
            except UnreadableFileError as error:
                # It may have been cut off, or be what a proxy shows while a server restarts.
                if attempt >= retries.attempts:
                    raise API_ANSWER_UNUSABLE(where=place_of(url), reason=error) from None
            self._api.pause(attempt)
            attempt += 1

    def _without(self, position: ApiPosition, parent: ParentRecord, why: str) -> _Page:
        """The page of a record of the parent whose resource cannot be read."""
        end = self._next_parent(replace(position, pages=position.pages + 1, place=None))
        nothing = PageContent((), None)
        return _Page(position, nothing, end, lost=(_gone(self._name, parent, why),))

    def _lost(self, position: ApiPosition, end: ApiPosition, why: str) -> _Page:
        place = f"{self._name} of batch {position.batch} of its parent"
        lost = Lost(place, str(position.row), "", why)
        return _Page(position, PageContent((), None), end, lost=(lost,))

    def _next_parent(self, position: ApiPosition) -> ApiPosition:
        """The position at the next record of the parent, if the batch has one."""
        if self._parents is None:
            return position
        batch = self._parents.batch(position.batch)
        row = position.row + 1
        if batch is None or row >= len(batch.records):
            return replace(position, row=row)
        return replace(position.from_first_page(), row=row)

    def _parent(self, position: ApiPosition) -> ParentRecord | None:
        """The record of the parent that a position is at, None where it is gone or has none."""
        if self._parents is None:
            return None
        batch = self._parents.batch(position.batch)
        if batch is None or position.row >= len(batch.records):
            return None
        return batch.records[position.row]

    def _met(self, end: ApiPosition, content: PageContent, url: str) -> ApiPosition:
        """The position with the highest value of a page."""
        settings = self._resource.incremental
        if settings is None or not content.records:
            return end
        found = highest(settings, content.records)
        if found is None:
            raise INCREMENTAL_FIELD_MISSING(
                where=place_of(url),
                count=len(content.records),
                kind=kind_of(settings),
                path=settings.field,
            )
        return replace(end, met=later(end.met, found))

    def _after_refusal(
        self, position: ApiPosition, url: str, answer: HttpAnswer, parent: ParentRecord | None
    ) -> _Page:
        """What follows an answer 3xx or 4xx, where the read can continue. Raises its error else."""
        is_first = position.pages == position.first
        if parent is not None and is_first and answer.status in {404, 410}:
            return self._without(position, parent, f"the API answers {answer.status}")
        nothing = PageContent((), None)
        is_counted = isinstance(self._resource.pagination, PageNumbers | Offsets)
        if answer.status == 404 and not is_first and is_counted:
            # Many servers answer so behind their last page.
            end = replace(position, pages=position.pages + 1, place=None)
            return _Page(position, nothing, end if parent is None else self._next_parent(end))
        now, last = self._clock.now(), position.again_at
        is_time = last is None or now >= last + self._period
        if answer.status in _PLACE_UNKNOWN and not is_first and is_time:
            begun = replace(position.from_first_page(), again_at=now)
            return _Page(position, nothing, begun)
        raise self._api.refusal(url, answer)


def _gone(name: str, parent: ParentRecord, why: str) -> Lost:
    return Lost(f"{name} of {parent.fields}", "", "", why)
