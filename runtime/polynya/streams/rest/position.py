"""The position in a resource of an API: which read is under way, and its next page.

The place of a page is a JSON object: `{}` the first one, `{"page": 3}`, `{"offset": 200}`,
`{"cursor": "…"}` or `{"url": "…"}`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, TypeAlias

from polynya.streams.rest.incremental import Value, from_stored, stored
from polynya.streams.source import Position, PositionSummary

_TIMES: Final = frozenset({"began", "full_at", "again_at"})
_VALUES: Final = frozenset({"newest", "met"})


Place: TypeAlias = Mapping[str, int | str]
#: The place of the first page.
FIRST: Final[Place] = {}


def mark_of(place: Place) -> str:
    """The same for two equal places."""
    return sha256(json.dumps(place, sort_keys=True).encode()).hexdigest()[:24]


@dataclass(frozen=True, slots=True)
class PageContent:
    """The records of an answer, and the page after it; None: it was the last one."""

    records: Sequence[bytes]
    following: Place | None

    @property
    def digest(self) -> str:
        """The same for two pages with the same records."""
        text = sha256()
        for record in self.records:
            text.update(len(record).to_bytes(8, "big") + record)
        return text.hexdigest()[:24]


@dataclass(frozen=True, slots=True)
class Loop:
    """Finds that places repeat, and remembers only one of them.

    The mark moves after 1, 2, 4, … steps (R. Brent, An Improved Monte Carlo Factorization
    Algorithm, 1980, section 2).
    """

    mark: str = ""
    steps: int = 0
    power: int = 1

    def after(self, mark: str) -> Loop | None:
        """The state after one more place, None where it is one that was there before."""
        if mark == self.mark:
            return None
        if self.steps + 1 < self.power:
            return replace(self, steps=self.steps + 1)
        return Loop(mark, 0, self.power * 2)


@dataclass(frozen=True, slots=True)
class ApiPosition:
    """How far a resource was read.

    Attributes:
        resource: its name.
        read: number of the read that goes on, or of the last one; 0: nothing was read.
        began: when that read began.
        place: of the page that comes next; None: the read is over.
        pages: how many pages of the read were landed; they are numbered from 0.
        first: the number of the first page since the read, or its parent's record, began.
        since: the value that the read asks for, as it is sent.
        newest: the highest value of all reads that ended.
        met: the highest value of this read so far.
        full_at: when the last read of all records began.
        again_at: when a read began again, because the API no longer knew its place.
        batch, row: of a resource with a parent: the landed batch that is read or was read last, and
            the record in it, from 0.
        loop: finds pages that repeat.
        problem: why the last read was ended before its last page.
    """

    resource: str
    read: int = 0
    began: datetime | None = None
    place: Place | None = None
    pages: int = 0
    first: int = 0
    since: str | None = None
    newest: Value | None = None
    met: Value | None = None
    full_at: datetime | None = None
    again_at: datetime | None = None
    batch: int = 0
    row: int = 0
    loop: Loop = Loop()
    problem: str | None = None

    def after(self, page: PageContent, *, by_content: bool, most: int) -> ApiPosition:
        """The position after a page.

        Args:
            page: what it held.
            by_content: the place of a page always changes, so equal records tell that pages repeat.
            most: number of pages after which the read is ended.
        """
        following = replace(self, pages=self.pages + 1, place=page.following)
        if page.following is None:
            return following
        if following.pages - self.first >= most:
            return following.ended(f"more than {most:,} pages")
        mark = page.digest if by_content else mark_of(page.following)
        if by_content:
            # Only the page before counts: other pages may well be alike.
            repeated, loop = mark == self.loop.mark, Loop(mark)
        else:
            found = self.loop.after(mark)
            repeated, loop = found is None, found or self.loop
        if repeated:
            what = (
                "a page has the records of the one before"
                if by_content
                else ("the next page is one that was read before")
            )
            return following.ended(f"{what}, after {following.pages - self.first:,} pages")
        return replace(following, loop=loop)

    def ended(self, problem: str) -> ApiPosition:
        """The position of a read that ends here."""
        return replace(self, place=None, problem=problem)

    def from_first_page(self) -> ApiPosition:
        """The position at the first page, which gets the next number."""
        return replace(self, place=FIRST, first=self.pages, loop=Loop())

    def to_json(self) -> dict[str, Any]:
        """As a footer holds it; what is not set is left out."""
        said: dict[str, Any] = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in _TIMES:
                value = None if value is None else value.isoformat()
            elif field.name in _VALUES:
                value = stored(value)
            elif field.name == "loop":
                value = None if value == Loop() else [value.mark, value.steps, value.power]
            elif field.name == "place":
                value = None if value is None else dict(value)
            if value is not None:
                said[field.name] = value
        return said

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> ApiPosition:
        """The position that a footer holds. Raises ValueError, KeyError or TypeError."""
        values: dict[str, Any] = {"resource": str(said["resource"])}
        for field in fields(cls):
            value = said.get(field.name)
            if value is None or field.name == "resource":
                continue
            if field.name in _TIMES:
                values[field.name] = datetime.fromisoformat(value)
            elif field.name in _VALUES:
                values[field.name] = from_stored(value)
            elif field.name == "loop":
                mark, steps, power = value
                values[field.name] = Loop(str(mark), int(steps), int(power))
            elif field.name == "place":
                values[field.name] = {str(key): _place_part(part) for key, part in value.items()}
            elif field.name in {"since", "problem"}:
                values[field.name] = str(value)
            else:
                values[field.name] = int(value)
        return cls(**values)


def _place_part(value: object) -> int | str:
    if not isinstance(value, int | str):
        raise TypeError("a place holds numbers and texts")
    return value


def described(position: Position) -> PositionSummary:
    """What a position says of itself; an empty one where it cannot be read."""
    try:
        said = ApiPosition.from_json(position)
    except (ValueError, KeyError, TypeError, AttributeError):
        return PositionSummary()
    if not said.read:
        return PositionSummary(behind=0)
    text = f"read {said.read}"
    if said.place is not None:
        text += f", page {said.pages}"
    if said.since is not None:
        text += f", from {said.since}"
    if said.problem is not None:
        text += f", ended early: {said.problem}"
    behind = 0 if said.place is None else 1
    return PositionSummary({said.resource: text}, behind, said.began)
