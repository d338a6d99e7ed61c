"""Lists of the API: filtered, sorted and cut into pages on the server."""

from __future__ import annotations

import base64
import binascii
import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Query, Response
from pydantic import BaseModel

from polynya.model.error_catalogue.server import REQUEST_INVALID
from polynya.model.names import shown

Item = TypeVar("Item")
Shown = TypeVar("Shown", bound=BaseModel)

#: Parameters of each list: so many items, after those that a cursor stands for.
Limit = Annotated[int, Query(ge=1, le=500, description="most items of a page")]
Cursor = Annotated[
    str | None, Query(max_length=2000, description="`next` of the page before this one")
]


#: Parameter of wide resources: the names of the fields that are answered.
Fields = Annotated[
    str | None,
    Query(max_length=1000, description="names of fields, with commas: only these are answered"),
]


class ListPage(BaseModel, Generic[Item]):
    """Some items of a list: `next` is the cursor of the page after this one, if there is one."""

    items: list[Item]
    total: int
    next: str | None = None


def only(found: Shown | ListPage[Shown], fields: str | None, model: type[Shown]) -> Response:
    """A resource of a model, or a page of them, with some of its fields; None: with all.

    Raises ConfigError for a name that is none of the model's fields.
    """
    if fields is None:
        return Response(found.model_dump_json(), media_type="application/json")
    names = {one.strip() for one in fields.split(",")}
    if unknown := sorted(names - model.model_fields.keys()):
        known = ", ".join(model.model_fields)
        raise REQUEST_INVALID(reason=f"`fields`: {shown(unknown[0])} is none of {known}")
    if isinstance(found, ListPage):
        include: Any = {"items": {"__all__": names}, "total": True, "next": True}
    else:
        include = names
    return Response(found.model_dump_json(include=include), media_type="application/json")


def page(
    items: Sequence[Item], place: Callable[[Item], tuple[Any, str]], limit: int, cursor: str | None
) -> ListPage[Item]:
    """The page of a sorted list that begins after a cursor.

    `place` has what the list is sorted by, and the name of the item: both stand in the cursor, so
    that items which come and go meanwhile move no others across pages.

    Raises ConfigError for a cursor that is not of this list.
    """
    first = 0 if cursor is None else _after(items, place, cursor)
    part = list(items[first : first + limit])
    following = _cursor(place(part[-1])) if len(items) > first + limit else None
    return ListPage(items=part, total=len(items), next=following)


def _after(items: Sequence[Item], place: Callable[[Item], tuple[Any, str]], cursor: str) -> int:
    """How many items come before a cursor."""
    try:
        value, name = json.loads(base64.urlsafe_b64decode(cursor.encode("ascii")))
        # A name that is none must not compare as one, also where the first values differ.
        after = (value, name + "")
        return bisect_right(items, after, key=place)
    except (ValueError, TypeError, binascii.Error, RecursionError) as error:
        raise REQUEST_INVALID(reason="`cursor` is not of this list") from error


def _cursor(place: tuple[Any, str]) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode("ascii")
