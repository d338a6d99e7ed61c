"""Pages and fragments as HTML. Every value is escaped, and its control characters are shown."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final
from urllib.parse import quote, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from polynya.server.access.actions import Action
from polynya.server.access.door import caller
from polynya.server.access.roles import decide
from polynya.server.console.assets import address, icon
from polynya.server.console.navigation import ENTRIES
from polynya.server.health import HealthWord
from polynya.server.operations.manager import refusal
from polynya.server.operations.verbs import VERBS
from polynya.server.overview import Overview
from polynya.server.state import ServerState

#: Characters that may stand as they are although they cannot be printed.
_KEPT: Final = frozenset("\n\t")
_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400
_UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB")
_THOUSAND: Final = 1000
#: Below so many seconds a time is written with one decimal.
_FEW: Final = 10
#: What stands for a value that is not there.
_NOTHING: Final = "\N{EN DASH}"


def visible(value: object) -> object:
    """A value as a page shows it: what could reorder or hide text is written as an escape."""
    if value is None:
        return ""
    if isinstance(value, Markup) or hasattr(value, "__html__"):
        return value
    text = str(value)
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or one in _KEPT else one.encode("unicode_escape").decode()
        for one in text
    )


def coded(text: str | None) -> Markup:
    """A text whose parts between backticks are names or commands, as errors and fixes have them."""
    parts = str(text or "").split("`")
    if len(parts) % 2 == 0:
        # An odd backtick is none of a pair.
        return escape(visible(text))
    made = (
        Markup("<code>{}</code>").format(visible(part)) if place % 2 else escape(visible(part))
        for place, part in enumerate(parts)
    )
    return Markup("").join(made)


def duration(seconds: float | None) -> str:
    """A time in its largest unit and what is left in the next; a dash for None.

    Such as `3 h 12 min`, or `3 h`.
    """
    if seconds is None:
        return _NOTHING
    if seconds < _MINUTE:
        return f"{seconds:.1f} s" if seconds < _FEW else f"{seconds:.0f} s"
    whole = int(seconds)
    for size, unit, part, smaller in (
        (_DAY, "d", _HOUR, "h"),
        (_HOUR, "h", _MINUTE, "min"),
        (_MINUTE, "min", 1, "s"),
    ):
        if whole >= size:
            left = whole % size // part
            return f"{whole // size} {unit}" + (f" {left} {smaller}" if left else "")
    raise AssertionError("less than a minute was written before")


def moment(value: datetime | str | None) -> Markup:
    """A moment in UTC to the second, as an element that tools can read; a dash for None."""
    if value is None:
        return Markup("{}").format(_NOTHING)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return Markup("{}").format(visible(value) or _NOTHING)
    if value.tzinfo is not None:
        value = value.astimezone(UTC)
    zone = "" if value.tzinfo is None else "Z"
    text = f"{value:%Y-%m-%d %H:%M:%S}{zone}"
    return Markup('<time datetime="{}">{}</time>').format(value.isoformat(), text)


def instant(seconds: float) -> Markup:
    """A moment that is given as seconds since 1970."""
    return moment(datetime.fromtimestamp(seconds, UTC))


def number(value: float | None) -> str:
    """A number with separators of thousands; a dash for None."""
    if value is None:
        return _NOTHING
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def dollars(value: float | None) -> str:
    """US dollars with four decimals below one, as prices by the hour have; a dash for None."""
    if value is None:
        return _NOTHING
    return f"${value:,.2f}" if value >= 1 else f"${value:.4f}"


def size(value: float | None) -> str:
    """Bytes in the largest unit that they fill; a dash for None."""
    if value is None:
        return _NOTHING
    left, unit = float(value), 0
    while left >= _THOUSAND and unit < len(_UNITS) - 1:
        left, unit = left / _THOUSAND, unit + 1
    return f"{left:,.0f} {_UNITS[unit]}" if unit == 0 else f"{left:,.1f} {_UNITS[unit]}"


def pretty(value: Any) -> str:
    """A value of JSON as text over several lines."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("polynya.server.console", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "coded": coded,
        "dollars": dollars,
        "duration": duration,
        "instant": instant,
        "moment": moment,
        "number": number,
        "query": lambda parameters: urlencode(parameters, doseq=True, errors="replace"),
        "pretty": pretty,
        "shell": lambda text: shlex.quote(str(text)),
        "size": size,
        # As of Jinja, but for text that UTF-8 does not have, which files may hold.
        "urlencode": lambda text: quote(str(text), safe="/", errors="replace"),
    }
    made.globals |= {
        "asset": address,
        "icon": icon,
        "Action": Action,
        "refused": refused,
        "late_since": late_since,
        "unknown_tables": unknown_tables,
    }
    # Fragments are rendered without their page, whose imports they would miss.
    made.globals["ui"] = made.get_template("ui.html").module
    return made


def may(request: Request, action: Action) -> bool:
    """Whether the person of a request may do this, for what a page offers; routes ask the door."""
    person, document = caller(request)
    return decide(person, action, document).allowed


#: The request that a page is made for: macros see no context of their page.
_SHOWN_TO: ContextVar[Request] = ContextVar("_SHOWN_TO")


def refused(verb: str) -> str | None:
    """Why the server leaves an action to other machines, for its button; None if it starts it."""
    state = ServerState.of(_SHOWN_TO.get())
    error = refusal(VERBS[verb], requests_only=state.requests_only)
    return None if error is None else f"{error.message} ({error.code})"


def late_since() -> datetime | None:
    """Since when the server has not looked at tables although it is time; None if it has."""
    return ServerState.of(_SHOWN_TO.get()).overview.late_since()


def unknown_tables() -> tuple[int, str] | None:
    """How many tables could not be read by the newest look, and since when; None if all could."""
    overview = ServerState.of(_SHOWN_TO.get()).overview.known()
    return None if overview is None else overview.once("unknown tables", lambda: _unknown(overview))


def _unknown(overview: Overview) -> tuple[int, str] | None:
    since = [
        one.parts[0].since
        for one in overview.datasets.values()
        if one.health is HealthWord.UNKNOWN and one.parts and one.parts[0].since
    ]
    return (len(since), min(since)) if since else None


def same_page(request: Request) -> Callable[..., str]:
    """Makes the address of a page with some of its parameters changed; None removes one."""

    def changed(**parameters: object) -> str:
        kept: dict[str, object] = dict(request.query_params)
        for name, value in parameters.items():
            if value is None:
                kept.pop(name, None)
            else:
                kept[name] = value
        query = urlencode(kept, errors="replace")
        return request.url.path + (f"?{query}" if query else "")

    return changed


def is_fragment(request: Request) -> bool:
    """Whether a page asks for a part of itself, and not the browser for a whole page."""
    return "hx-request" in request.headers and "hx-history-restore-request" not in request.headers


def render(
    request: Request,
    template: str,
    *,
    fragment: str | None = None,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **facts: Any,
) -> HTMLResponse:
    """A page of the console; only its block `fragment` where a page asks for a part of itself.

    Templates see, besides the facts: `request`, `person` (a name), `may(action)`, `entries` of the
    navigation that the person may open, and `here(**changes)`, the address of the same page.
    """
    person, _ = caller(request)
    _SHOWN_TO.set(request)
    context = {
        "request": request,
        "person": person,
        "may": lambda action: may(request, action),
        "entries": [one for one in ENTRIES if may(request, one.action)],
        "here": same_page(request),
        "path": request.url.path,
        **facts,
    }
    found = _environment().get_template(template)
    if fragment is not None and is_fragment(request):
        text = "".join(found.blocks[fragment](found.new_context(context)))
    else:
        text = found.render(context)
    return HTMLResponse(text, status, headers)


def problem_page(
    scope: Mapping[str, Any],
    problem: Mapping[str, Any],
    status: int,
    headers: Mapping[str, str] | None,
) -> HTMLResponse:
    """The page that tells of an error, or the fragment in place of the one that was asked for.

    `problem` has the members of the problem document of the API.
    """
    asked = Request({"type": "http", **scope})
    template = _environment().get_template("problem.html")
    context = {"problem": problem, "path": asked.url.path, "status": status}
    if is_fragment(asked):
        text = "".join(template.blocks["problem"](template.new_context(context)))
    else:
        text = template.render(context)
    return HTMLResponse(text, status, headers)
