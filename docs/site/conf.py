"""Settings of the site; `python docs/site` builds it."""

from __future__ import annotations

import re
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from sphinx.util.typing import stringify_annotation

from polynya import __version__

project = "Polynya"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

# Anchors of headings are those of GitHub, at all levels.
myst_heading_anchors = 6
suppress_warnings = ["myst.header"]  # a page may skip a level, as tables of settings do

autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    "exclude-members": "model_config",
    "show-inheritance": True,
}
autodoc_typehints = "description"

html_theme = "furo"
html_title = f"Polynya {release}"
html_copy_source = False
html_show_sphinx = False


def in_sphinx_words(  # the signature is Sphinx's
    _app: Any, what: str, _name: str, documented: Any, _options: Any, lines: list[str]
) -> None:
    """Make code of Markdown's code, and add the fields of a settings model as users read them."""
    if what == "class" and issubclass(documented, BaseModel):
        lines.append("")
        for name, field in documented.model_fields.items():
            lines.append(f":param {name}: {field.description or ''}")
            lines.append(f":type {name}: {stringify_annotation(plain(field.annotation), 'smart')}")
    lines[:] = [re.sub(r"(?<![`:])`([^`]+)`(?!`)", r"``\1``", line) for line in lines]


def plain(annotation: Any) -> Any:
    """A type without the checks that its annotation carries."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return plain(arguments[0])
    if origin in (Union, UnionType):
        return Union[tuple(plain(one) for one in arguments)]  # noqa: UP007
    if origin is Literal or not arguments:
        return annotation
    return origin[tuple(plain(one) for one in arguments)]


def setup(app: Any) -> None:
    """Connect what the settings above cannot say."""
    app.connect("autodoc-process-docstring", in_sphinx_words)
