"""`/metrics`: the tables of the project and this process, in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fastapi import Request, Response

from polynya.observe.table_metrics import families
from polynya.server.access.actions import Action
from polynya.server.access.door import allowed, api_router
from polynya.server.state import ServerState
from polynya.server.table_figures import figures_of

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric

router = api_router("metrics")


class _Tables:
    """Collects the figures of tables for a registry of prometheus-client."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the newest figures."""
        yield from families(figures_of(self._state), self._state.clock.monotonic())

    def describe(self) -> list[Metric]:
        """Nothing: to register it measures no table."""
        return []


def _registry(request: Request) -> CollectorRegistry:
    """The registry of the server, made by its first scrape."""
    from prometheus_client import CollectorRegistry, ProcessCollector

    found: CollectorRegistry | None = getattr(request.app.state, "metrics", None)
    if found is None:
        state = ServerState.of(request)
        found = request.app.state.metrics = CollectorRegistry()
        found.register(_Tables(state))
        ProcessCollector(registry=found)
    return found


@router.get(
    "/metrics",
    dependencies=[allowed(Action.VIEW_METRICS)],
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}, "description": "Prometheus' text format"}},
)
def metrics(request: Request) -> Response:
    """Figures of each table, open conditions, failing channels, and of the server's process.

    They are as old as `polynya_figures_age_seconds` says.
    """
    from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

    return Response(generate_latest(_registry(request)), media_type=CONTENT_TYPE_PLAIN_0_0_4)
