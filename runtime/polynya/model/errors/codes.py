"""The page of each error code, for `polynya explain` and the documentation.

Codes are stable: a code is never used for another error. A new code gets its page in the module of
its family in `error_pages/`; a test finds codes without a page.
"""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages import bucket, configuration, machine, operation, stage, views
from polynya.model.errors.pages.page import ErrorPage

_FAMILIES: Final = (bucket, configuration, machine, operation, stage, views)

ERROR_PAGES: Final[dict[str, ErrorPage]] = {
    page.code: page for family in _FAMILIES for page in family.PAGES
}
