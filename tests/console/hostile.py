"""Values that try to be markup, scripts, controls or reversed text, in every field of a model."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from enum import Enum
from html.parser import HTMLParser
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

#: Markup, scripts, ends of elements and attributes, templates, controls, and bidi overrides.
HOSTILE = (
    "</td></pre></script><script>alert(1)</script><img src=x onerror=alert(2)>"
    "\"'><a href=javascript:alert(3)>{{7*7}}{% raw %}&lt;"
    "\u202egnp.exe\u2066\x00\x1b[2J\x07\u2028\ud800"
)
TAME = "quiet"
#: What must be seen of it: nothing hides, and nothing is turned around.
SEEN = (
    "<script>alert(1)</script>",
    "{{7*7}}",
    "\\u202egnp.exe\\u2066\\x00\\x1b[2J\\x07\\u2028\\ud800",
)


def filled(model: Any, text: str, **given: Any) -> Any:
    """An instance of a model with this text in every field that takes one."""
    if isinstance(model, type) and issubclass(model, BaseModel):
        values = {
            name: given.get(name, _value(info.annotation, text))
            for name, info in model.model_fields.items()
        }
        return model.model_construct(**values)
    hints = get_type_hints(model)
    return model(
        **{
            one.name: given.get(one.name, _value(hints[one.name], text))
            for one in dataclasses.fields(model)
        }
    )


def _value(kind: Any, text: str) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _value(inner[0], text)
    if origin in {Union, types.UnionType}:
        return _value(next(one for one in inner if one is not types.NoneType), text)
    if origin is Literal:
        return inner[0]
    if origin in {list, tuple}:
        return [_value(inner[0], text)]
    if origin in {dict, Mapping}:
        return {text if inner[0] is str else _value(inner[0], text): _value(inner[1], text)}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(iter(kind))
    if isinstance(kind, type) and (issubclass(kind, BaseModel) or dataclasses.is_dataclass(kind)):
        return filled(kind, text)
    if kind in {int, float}:
        return 3
    if kind is bool:
        return True
    return text


class Elements(HTMLParser):
    """The elements of a page with the names of their attributes, its addresses, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.addresses: list[str] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        for name, value in attrs:
            if name in {"href", "src", "action", "hx-get", "hx-post"}:
                self.addresses.append(value or "")
            self.words.append(value or "")

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return "\n".join(self.words)


def hidden(text: str) -> list[str]:
    """The characters of a text that a reader cannot see, or that turn others around."""
    return sorted({one for one in text if not one.isprintable() and one not in "\n\t"})
