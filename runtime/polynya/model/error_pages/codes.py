"""The page of each error code, for `polynya explain` and the documentation.

Codes are stable: a code is never reused for another error. A new code gets its page in the module
of its family in this package; tests find codes without a page, and codes with two.
"""

from __future__ import annotations

from typing import Final

from polynya.model.error_pages import capture, cluster, configuration, operation, streams
from polynya.model.error_pages import capture as capture_settings
from polynya.model.error_pages.page import ErrorPage

FAMILIES: Final = (
    cluster.BUCKET_PAGES,
    capture_settings.CAPTURE_SETTINGS_PAGES,
    capture.CAPTURE_PAGES,
    capture.COMPARE_PAGES,
    configuration.CONFIGURATION_PAGES,
    cluster.ENGINE_PAGES,
    operation.EXPIRY_PAGES,
    capture.GENERIC_PAGES,
    cluster.GOSSIP_PAGES,
    streams.LANDING_PAGES,
    operation.MACHINE_PAGES,
    operation.MAINTENANCE_PAGES,
    capture.MARIADB_PAGES,
    capture.MASKING_PAGES,
    cluster.NETWORK_PAGES,
    operation.OPERATION_PAGES,
    capture.POSTGRESQL_PAGES,
    cluster.CLUSTER_PAGES,
    cluster.STAGE_PAGES,
    streams.STREAM_PAGES,
    operation.VIEW_PAGES,
)

ERROR_PAGES: Final[dict[str, ErrorPage]] = {
    page.code: page for family in FAMILIES for page in family
}
