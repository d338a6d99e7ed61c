"""A group of routes of the API: asks a server, and reads its answers as models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter

if TYPE_CHECKING:
    from polynya.client import Body, PolynyaClient

Item = TypeVar("Item")


class RouteGroup:
    """What the groups of `client_routes` and `client_actions` have in common."""

    def __init__(self, client: PolynyaClient) -> None:
        self._client = client

    def _all(self, item: type[Item], path: str, /, **query: Any) -> Iterator[Item]:
        read = TypeAdapter(item).validate_python
        return map(read, self._client.listed(path, **query))

    def _get(self, kind: type[Item], path: str, /, **query: Any) -> Item:
        return self._ask(kind, "GET", path, **query)

    def _ask(
        self,
        kind: type[Item],
        method: str,
        path: str,
        body: Body = None,
        headers: Mapping[str, str | None] | None = None,
        /,
        **query: Any,
    ) -> Item:
        answer = self._client.call(method, path, body, headers, **query)
        return TypeAdapter(kind).validate_python(answer)
