"""The page of each error code, for `polynya explain` and the documentation.

Codes are stable: a code is never used for another error. A new code gets its page in the module of
its family in `pages/`; tests find codes without a page, and codes with two.
"""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages import (
    bucket,
    configuration,
    engines,
    expiry,
    gossip,
    landings,
    machine,
    maintenance,
    network,
    operation,
    sharing,
    stage,
    streams,
    views,
)
from polynya.model.errors.pages.gateway import (
    capturing,
    comparing,
    generic,
    mariadb,
    masking,
    postgresql,
)
from polynya.model.errors.pages.gateway import settings as capture_settings
from polynya.model.errors.pages.page import ErrorPage

FAMILIES: Final = (
    bucket,
    capture_settings,
    capturing,
    comparing,
    configuration,
    engines,
    expiry,
    generic,
    gossip,
    landings,
    machine,
    maintenance,
    mariadb,
    masking,
    network,
    operation,
    postgresql,
    sharing,
    stage,
    streams,
    views,
)

ERROR_PAGES: Final[dict[str, ErrorPage]] = {
    page.code: page for family in FAMILIES for page in family.PAGES
}
