"""Events of what is served: API and console of a project, and its catalog for other engines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from polynya.observe.events import ErrorEvent, Event, Level


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogServed(Event):
    """The catalog of a project is answered at `url` from now on. The subject is the project."""

    type: ClassVar[str] = "catalog.served"
    verb: ClassVar[str] = "serving"
    template: ClassVar[str] = "the catalog of target {target} at {url}; Ctrl-C ends it"
    url: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServed(Event):
    """The API of a project is answered at `url` from now on. The subject is the project."""

    type: ClassVar[str] = "api.served"
    verb: ClassVar[str] = "serving"
    template: ClassVar[str] = "the API of target {target} at {url}; Ctrl-C ends it"
    url: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleOpened(Event):
    """The console of a project is at `url` from now on. The subject is the project."""

    type: ClassVar[str] = "console.opened"
    verb: ClassVar[str] = "console"
    template: ClassVar[str] = "of target {target} at {url}"
    url: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogAnswered(Event):
    """A request was answered. The subject is its path, `status` that of HTTP."""

    type: ClassVar[str] = "catalog.answered"
    verb: ClassVar[str] = "answered"
    template: ClassVar[str] = "{method} {status} in {seconds:.3f} s"
    default_level: ClassVar[Level] = Level.DETAIL
    method: str
    status: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogFailed(ErrorEvent):
    """A table or view could not be answered; said once until it can be. Others are answered."""

    type: ClassVar[str] = "catalog.failed"
    template: ClassVar[str] = "not answered: {cause}"
