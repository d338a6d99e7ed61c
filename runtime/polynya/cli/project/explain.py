"""`polynya explain CODE`: the page of an error code, offline."""

from __future__ import annotations

from polynya.cli.context import Context
from polynya.cli.options import usage_error
from polynya.model.documents.problems import suggest
from polynya.model.errors.codes import ERROR_PAGES
from polynya.model.errors.pages.page import ErrorPage


def explain(code: str | None = None, *, context: Context) -> None:
    """Explain an error code; without one, list all.

    For example: `polynya explain CFG-007`.

    Args:
        code: a code such as POLYNYA-CFG-007; its last two parts are enough.
        context: given by `main`.
    """
    pages = list(ERROR_PAGES.values()) if code is None else [_page(code)]
    for page in pages:
        text = f"{page.code}  {page.title}" if code is None else _full(page)
        data = {"code": page.code, "title": page.title, "text": page.text}
        context.output.result("explanation", data, text)


def _full(page: ErrorPage) -> str:
    return f"{page.code}: {page.title}\n\n{page.text}"


def _page(code: str) -> ErrorPage:
    wanted = code.strip().strip("[]").upper()
    full = f"POLYNYA-{wanted.removeprefix('POLYNYA-')}"
    if full in ERROR_PAGES:
        return ERROR_PAGES[full]
    hint = suggest(full, list(ERROR_PAGES)) or ""
    fix = hint.partition(" allowed here:")[0] if hint.startswith("did") else None
    raise usage_error(
        f"there is no error code `{wanted[:60]}`", fix or "`polynya explain` lists all"
    )
