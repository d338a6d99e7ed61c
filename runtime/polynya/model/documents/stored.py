"""JSON that one version stores and another one reads, such as footers and positions.

Dataclasses describe it. Keys that a version does not know are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Annotated, TypeAlias, TypeVar

from pydantic import FailFast, PlainSerializer, TypeAdapter, ValidationError

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

#: A time in ISO 8601, with its offset as `+00:00`.
Moment: TypeAlias = Annotated[datetime, PlainSerializer(datetime.isoformat, when_used="json")]
#: Reading ends at the first error, however many entries there are.
Entries: TypeAlias = Annotated[Mapping[K, V], FailFast()]
Items: TypeAlias = Annotated[tuple[V, ...], FailFast()]


def from_stored(
    adapter: TypeAdapter[T], values: Mapping[str, object], required: Iterable[str] = ()
) -> T:
    """Read what `adapter` describes. Raises ValueError with the first error alone.

    `required` are fields that every version wrote although they have a default.
    """
    for name in required:
        if name not in values:
            raise ValueError(f"{name}: missing")
    try:
        return adapter.validate_python(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        path = ".".join(map(str, first["loc"])) or "value"
        raise ValueError(f"{path}: {first['msg']}") from None
