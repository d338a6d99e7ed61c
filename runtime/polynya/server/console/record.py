"""The page of one record: everything that happened to it, by the clocks of source and engine."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from polynya.model.errors import PolynyaError
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed
from polynya.server.console.html import render
from polynya.server.console.page import SlowPage, is_answer, page_router
from polynya.server.pages import Cursor
from polynya.server.problems import status_of
from polynya.server.routes import records as records_api
from polynya.server.routes.records import RecordEntryShown
from polynya.server.state import ServerState

router = page_router(SlowPage)

#: Entries of a page.
_ENTRIES: Final = 50
_MOST_NAMES: Final = 500
#: Characters of a value that a change shows; all of it stands below the change.
_LONGEST: Final = 60
#: Values that an insert names.
_FIRST_VALUES: Final = 6
_TITLES: Final = {
    "load": "Loaded",
    "insert": "Inserted",
    "update": "Updated",
    "delete": "Deleted",
    "truncate": "Truncated with its table",
    "correction": "Corrected",
}
#: Fields of a form that has one for each key column: `key.id=7` is `key=id=7`.
_KEY_FIELD: Final = "key."


@dataclass(frozen=True, slots=True)
class ClockTime:
    """A moment as two lines: the time of day with milliseconds, and the date. In UTC."""

    iso: str
    time: str
    date: str

    @classmethod
    def of(cls, iso: str | None) -> ClockTime | None:
        """The moment of a text of the API; None for None."""
        if iso is None:
            return None
        found = datetime.fromisoformat(iso)
        return cls(iso, f"{found:%H:%M:%S}.{found.microsecond // 1000:03d}", f"{found:%Y-%m-%d}")


@dataclass(frozen=True, slots=True)
class RecordMoment:
    """One entry as the timeline draws it.

    Attributes:
        entry: the entry of the API.
        title: what happened, in a word or two.
        source: when it happened, by the clock of the source.
        arrived: when the engine knew it; `delay` is so many seconds later.
        seen_from, seen_to: when queries saw the record so; without `seen_from` they never did.
        changes: columns with their values before and after; None where that is not known or NULL.
        values: all values, as text.
    """

    entry: RecordEntryShown
    title: str
    source: ClockTime | None
    arrived: ClockTime | None
    delay: float | None
    seen_from: ClockTime | None
    seen_to: ClockTime | None
    changes: tuple[tuple[str, str | None, str | None], ...]
    values: Mapping[str, str | None]


@router.get("/record", dependencies=[allowed(Action.QUERY_DATA)])
def record(
    request: Request,
    *,
    dataset: Annotated[str, Query(max_length=500)] = "",
    key: Annotated[list[str] | None, Query(max_length=50)] = None,
    cursor: Cursor = None,
) -> HTMLResponse:
    """The history of one record."""
    given = given_keys(request, key)
    facts: dict[str, Any] = {"history": None, "moments": [], "error": None}
    status = 200
    if dataset and given:
        try:
            found = records_api.record(request, dataset, given, limit=_ENTRIES, cursor=cursor)
            facts |= {"history": found, "moments": moments(found.items)}
        except PolynyaError as error:
            if not is_answer(error):
                raise
            facts["error"], status = error.as_dict(), status_of(error)
    current = facts["history"] and facts["history"].current
    return render(
        request,
        "record.html",
        fragment="history",
        status=status,
        **asked(request, dataset, given),
        **facts,
        cursor=cursor,
        current=current and {name: as_text(value) for name, value in current.items()},
        command=shlex.join(["polynya", "history", dataset, *given]),
        why_address=address("why", dataset, given),
    )


def given_keys(request: Request, key: Sequence[str] | None) -> list[str]:
    """The key as `COLUMN=VALUE`, from `key` or from a field for each column of it."""
    fields = [
        f"{name.removeprefix(_KEY_FIELD)}={value}"
        for name, value in request.query_params.multi_items()
        if name.startswith(_KEY_FIELD) and value
    ]
    return [one for one in (*(key or ()), *fields) if one]


def asked(request: Request, dataset: str, given: Sequence[str]) -> dict[str, Any]:
    """What the form of a dataset and a key shows: names to choose from, and a field a key."""
    known = ServerState.of(request).overview.newest().datasets
    facts = known.get(dataset)
    values = dict(one.partition("=")[::2] for one in given)
    columns = (facts.keys if facts is not None else ()) or tuple(values)
    return {
        "dataset": dataset,
        "known": facts is not None,
        "keys": [(name, f"{_KEY_FIELD}{name}", values.get(name, "")) for name in columns],
        "names": sorted(known)[:_MOST_NAMES],
    }


def address(page: str, dataset: str, given: Iterable[str]) -> str:
    """The address of a page about one record."""
    return f"/console/{page}?{urlencode([('dataset', dataset), *(('key', one) for one in given)])}"


def moments(entries: Sequence[RecordEntryShown]) -> list[RecordMoment]:
    """The entries of a page as its timeline draws them."""
    found = []
    before: RecordEntryShown | None = None
    for one in entries:
        found.append(_moment(one, before))
        before = one
    return found


def title_of(kind: str) -> str:
    """What happened, in a word or two."""
    return _TITLES.get(kind, kind)


def as_text(value: Any) -> str | None:
    """A value as text; None for NULL."""
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _moment(one: RecordEntryShown, before: RecordEntryShown | None) -> RecordMoment:
    arrived = one.copied_at or one.applied_at
    return RecordMoment(
        one,
        title_of(one.kind),
        ClockTime.of(one.source_time),
        ClockTime.of(arrived),
        _seconds(one.source_time, arrived),
        ClockTime.of(one.visible_from),
        ClockTime.of(one.visible_to),
        tuple(_changes(one, before)),
        {} if one.gone else {name: as_text(value) for name, value in one.values.items()},
    )


def _changes(
    one: RecordEntryShown, before: RecordEntryShown | None
) -> Iterable[tuple[str, str | None, str | None]]:
    if one.gone:
        return
    if not one.changed and (before is None or before.gone):
        filled = [name for name, value in one.values.items() if value is not None]
        for name in filled[:_FIRST_VALUES]:
            yield name, None, _short(as_text(one.values[name]))
        return
    for name in one.changed:
        old = None if before is None else _short(as_text(before.values.get(name)))
        yield name, old, _short(as_text(one.values.get(name)))


def _short(text: str | None) -> str | None:
    return f"{text[:_LONGEST]}…" if text is not None and len(text) > _LONGEST else text


def _seconds(first: str | None, last: str | None) -> float | None:
    if first is None or last is None:
        return None
    begun, ended = datetime.fromisoformat(first), datetime.fromisoformat(last)
    # A source may write times without a zone, which no clock of the engine compares with.
    if (begun.tzinfo is None) != (ended.tzinfo is None):
        return None
    return (ended - begun).total_seconds()
