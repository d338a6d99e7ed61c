"""The files that pages load: one style sheet and one script, from the package itself."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

from fastapi import APIRouter, Request, Response
from markupsafe import Markup

from polynya.model.error_catalogue.server import NO_SUCH_RESOURCE
from polynya.model.names import shown
from polynya.server.access.actions import Action
from polynya.server.access.door import CONSOLE, allowed

_FOLDER: Final = files("polynya.server.console") / "assets"
#: What each asset is made of; a page loads each kind once.
_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "console.css": ("uPlot.min.css", "console.css", "explain.css"),
    "icon.svg": ("icon.svg",),
    "console.js": ("locale.js", "htmx.min.js", "uPlot.iife.min.js", "dagre.min.js", "console.js"),
}
_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
#: A changed file has another address.
_FOR_EVER: Final = "public, max-age=31536000, immutable"
_SYMBOL: Final = re.compile(r'<symbol id="([a-z0-9-]+)" viewBox="([0-9 ]+)">(.*)</symbol>')

router = APIRouter(prefix=CONSOLE, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Asset:
    """One file of the console: its bytes, those compressed, and the hash in its address."""

    content: bytes
    compressed: bytes
    version: str


@cache
def asset(name: str) -> Asset:
    """The asset of a name. Raises KeyError for an unknown one."""
    content = b"\n".join((_FOLDER / part).read_bytes() for part in _PARTS[name])
    version = hashlib.sha256(content).hexdigest()[:16]
    return Asset(content, gzip.compress(content, mtime=0), version)


def address(name: str) -> str:
    """The path under which pages load an asset."""
    return f"/console/assets/{name}?v={asset(name).version}"


@cache
def icon(name: str) -> Markup:
    """An icon of the sprite, for use beside a word that says the same. Raises KeyError."""
    box, paths = _icons()[name]
    return Markup(  # noqa: S704 - text of the package, not of a person
        f'<svg class="icon" viewBox="{box}" aria-hidden="true" focusable="false">{paths}</svg>'
    )


@cache
def _icons() -> Mapping[str, tuple[str, str]]:
    text = (_FOLDER / "icons.svg").read_text("utf-8")
    return {name: (box, paths) for name, box, paths in _SYMBOL.findall(text)}


@router.get("/assets/{name}", dependencies=[allowed(Action.LOG_IN)], response_class=Response)
def file(request: Request, name: str) -> Response:
    """A file of the console, open to everybody as the program itself is."""
    if name not in _PARTS:
        raise NO_SUCH_RESOURCE(what=f"file {shown(name)}")
    found = asset(name)
    headers = {"Cache-Control": _FOR_EVER, "Vary": "Accept-Encoding"}
    content = found.content
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"], content = "gzip", found.compressed
    return Response(content, headers=headers, media_type=_TYPES[name.rpartition(".")[2]])
