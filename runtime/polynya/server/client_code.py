"""Writes the client's typed methods, one for each route of the API, as two modules of `polynya`.

`python -m polynya.server.client_code` rewrites them after a route has changed; a test compares
them. It formats what it writes with ruff, which `make dev` installs.
"""

from __future__ import annotations

import enum
import inspect
import re
import subprocess
import sys
import types
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from fastapi import APIRouter
from fastapi._compat import ModelField
from fastapi.routing import APIRoute
from pydantic import AwareDatetime
from pydantic_core import PydanticUndefined

from polynya.server.app import ROUTERS
from polynya.server.pages import ListPage

FOLDER: Final = Path(__file__).parents[1]
#: The groups of a module of their own: all in one would be too long to read.
_ACTING: Final = frozenset({"actions", "automations", "notifications", "operations", "plans"})
_PREFIX: Final = "/api/v1"
#: Parameters that a method has no use for: it reads all pages, and answers are whole models.
_PAGE: Final = frozenset({"limit", "cursor"})
_LEFT_OUT: Final = frozenset({"fields"})
#: For people with a browser, and a stream of events, which `PolynyaClient.events` follows.
_NOT_FOR_PROGRAMS: Final = frozenset(
    {"/login", "/login/callback", "/logout", "/operations/{name}/events"}
)
_WRITTEN: Final = (
    "`python -m polynya.server.client_code` writes this module from the routes of the server: do\n"
    "not edit it."
)
_ACTIONS_HEAD: Final = f'''"""Routes of the API that act, and plans, automations and notifications.

{_WRITTEN} `polynya.client_routes` has the other groups, and how all are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal
from urllib.parse import quote

from polynya.client_group import RouteGroup
{{imports}}
'''
_ROUTES_HEAD: Final = f'''"""The routes of the API as methods with types, in groups.

{_WRITTEN} Use it as `PolynyaClient(URL).routes`:

    for dataset in client.routes.datasets.datasets(health=HealthWord.SUSPENDED):
        print(dataset.name)

Each method raises PolynyaError with the code that the server answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from polynya.client_group import RouteGroup
{{imports}}
if TYPE_CHECKING:
    from polynya.client import PolynyaClient
'''


def codes() -> dict[Path, str]:
    """The text of each module."""
    groups = defaultdict(list)
    for route in _routes(ROUTERS):
        groups[str(route.tags[0])].append(route)
    acting, routes = _Module(), _Module()
    actions = [acting.group(tag, groups[tag]) for tag in groups if tag in _ACTING]
    others = [routes.group(tag, groups[tag]) for tag in groups if tag not in _ACTING]
    names = [_class_name(tag) for tag in groups if tag in _ACTING]
    entry = [
        "class ServerRoutes:",
        '    """All groups of routes of a server."""',
        "",
        "    def __init__(self, client: PolynyaClient) -> None:",
        *(f"        self.{tag} = {_class_name(tag)}(client)" for tag in groups),
        "",
    ]
    imports = f"from polynya.client_actions import {', '.join(names)}\n{routes.imports()}"
    return {
        path: _formatted(path, text)
        for path, text in {
            FOLDER / "client_actions.py": "\n".join(
                [_ACTIONS_HEAD.replace("{imports}", acting.imports()), *actions]
            ),
            FOLDER / "client_routes.py": "\n".join(
                [_ROUTES_HEAD.replace("{imports}", imports), *others, *entry]
            ),
        }.items()
    }


def _routes(routers: tuple[APIRouter, ...]) -> Iterator[APIRoute]:
    for router in routers:
        for route in router.routes:
            if isinstance(route, APIRoute) and _path(route) not in _NOT_FOR_PROGRAMS:
                yield route


class _Module:
    """Writes methods, and remembers what they import."""

    def __init__(self) -> None:
        self._names: dict[str, set[str]] = defaultdict(set)

    def imports(self) -> str:
        """Where the models of the written methods come from; ruff sorts them."""
        named = self._names.items()
        return "\n".join(f"from {name} import {', '.join(sorted(of))}" for name, of in named)

    def group(self, tag: str, routes: list[APIRoute]) -> str:
        """The class of a group."""
        head = f'class {_class_name(tag)}(RouteGroup):\n    """Routes of `{tag}`."""\n'
        return "\n".join([head, *(self._method(route) for route in routes)])

    def _method(self, route: APIRoute) -> str:
        dependant, verb = route.dependant, min(route.methods or {"GET"})
        item = _item(route.response_model)
        leave = _LEFT_OUT if item is None else _LEFT_OUT | _PAGE
        query = [one for one in dependant.query_params if one.alias not in leave]
        path = [f"{one.name}: {self._type(_annotation(one))}" for one in dependant.path_params]
        keywords = [self._keyword(one) for one in (*query, *dependant.header_params)]
        sent = ""
        if route.body_field is not None:
            path.append(f"asked: {self._type(route.body_field.field_info.annotation)}")
            sent = ", asked"
        elif route.openapi_extra is not None and "requestBody" in route.openapi_extra:
            path.append("content: str")
            sent = ", content"
        if dependant.header_params:
            named = ", ".join(f'"{one.alias}": {one.name}' for one in dependant.header_params)
            sent = f"{sent or ', None'}, {{{named}}}"
        signature = ", ".join(["self", *path, *(["*", *keywords] if keywords else [])])
        address = _address(route)
        asked = "".join(f", {one.alias}={one.name}" for one in query)
        kind = self._type(item) if item is not None else self._answer(route)
        answer = f"Iterator[{kind}]" if item is not None else kind
        if item is not None:
            call = f"self._all({kind}, {address}{asked})"
        elif verb == "GET":
            call = f"self._get({kind}, {address}{asked})"
        elif kind == "None":
            call = f'self._client.call("{verb}", {address}{sent}{asked})'
        else:
            call = f'self._ask({kind}, "{verb}", {address}{sent}{asked})'
        name = re.sub(r"\W", "_", route.name)
        return "\n".join(
            [
                f"    def {name}({signature}) -> {answer}:",
                f'        """{_about(route)}"""',
                f"        {call}" if kind == "None" else f"        return {call}",
                "",
            ]
        )

    def _answer(self, route: APIRoute) -> str:
        """The type of an answer."""
        if route.response_model is not None:
            return self._type(route.response_model)
        is_text = "text/plain" in (route.responses.get(200) or {}).get("content", {})
        return "str" if is_text else "None"

    def _keyword(self, one: ModelField) -> str:
        annotation = _annotation(one)
        default = one.field_info.default
        if default is PydanticUndefined and one.field_info.default_factory is None:
            return f"{one.name}: {self._type(annotation)}"
        if isinstance(default, enum.Enum):
            text = f"{self._type(type(default))}.{default.name}"
        elif isinstance(default, str | int | float | bool | None):
            text = repr(default)
        else:
            # Left out, so that the server takes its own.
            return f"{one.name}: {self._type(annotation)} | None = None"
        return f"{one.name}: {self._type(annotation)} = {text}"

    def _type(self, annotation: Any) -> str:
        """The text of an annotation; its classes are imported."""
        origin, arguments = get_origin(annotation), get_args(annotation)
        if annotation is AwareDatetime:
            return "datetime"
        if origin is Annotated:
            return self._type(arguments[0])
        if origin is Literal:
            return f"Literal[{', '.join(map(repr, arguments))}]"
        if origin in (Union, types.UnionType):
            return " | ".join(self._type(one) for one in arguments)
        if origin is not None:
            return f"{origin.__name__}[{', '.join(self._type(one) for one in arguments)}]"
        if annotation in (None, type(None)):
            return "None"
        if annotation is Any:
            return "Any"
        if annotation.__module__ != "builtins" and annotation.__name__ != "datetime":
            self._names[annotation.__module__].add(annotation.__name__)
        return str(annotation.__name__)


def _annotation(one: ModelField) -> Any:
    return one.field_info.annotation


def _item(model: Any) -> Any | None:
    """The item of a list that has nothing but its items; None for any other answer."""
    metadata = getattr(model, "__pydantic_generic_metadata__", {})
    return metadata["args"][0] if metadata.get("origin") is ListPage else None


def _path(route: APIRoute) -> str:
    return route.path_format.removeprefix(_PREFIX)


def _address(route: APIRoute) -> str:
    """The path with its parameters quoted, as an expression."""
    path = _path(route)
    for name in re.findall(r"{(\w+)}", path):
        safe = "/" if f"{{{name}:path}}" in route.path else ""
        quoted = f"quote({name}, '{safe}')" if _is_text(route, name) else name
        path = path.replace(f"{{{name}}}", f"{{{quoted}}}")
    return f'f"{path}"' if "{" in path else f'"{path}"'


def _is_text(route: APIRoute, name: str) -> bool:
    return any(one.name == name and _annotation(one) is str for one in route.dependant.path_params)


def _about(route: APIRoute) -> str:
    """What the API says about a route, in one line."""
    told = route.summary or inspect.cleandoc(route.endpoint.__doc__ or "")
    return " ".join(told.split("\n\n")[0].split())


def _class_name(tag: str) -> str:
    return f"{tag.capitalize()}Routes"


def _formatted(path: Path, text: str) -> str:
    for command in (("check", "--quiet", "--fix", "--select=I,F401"), ("format",)):
        ran = subprocess.run(
            [sys.executable, "-m", "ruff", *command, f"--stdin-filename={path}", "-"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
        )
        text = ran.stdout
    return text


if __name__ == "__main__":
    for path, text in codes().items():
        path.write_text(text, encoding="utf-8")
