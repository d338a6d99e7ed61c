"""A real PostgreSQL that is stopped: its capture says so, and works again when it is back."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from polynya.engine.backlog import CaptureFigures
from polynya.engine.tasks.capture import supervisor_of
from polynya.engine.tasks.capture_supervisor import CaptureSupervisor
from polynya.model.config.connected import ConnectedCapture
from polynya.model.config.target import ResolvedTarget
from polynya.store.clock import SystemClock
from polynya.store.object_store import LocalObjectStore
from tests.capture.worker.shop import TABLES, a_shop

pytestmark = pytest.mark.slow

_PATIENCE = 120.0


def until(supervisor: CaptureSupervisor, holds: Callable[[CaptureFigures], bool]) -> CaptureFigures:
    """Take steps until the figures of the capture are as expected."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        supervisor.step(once=False, patience=0.1)
        if holds(figures := supervisor.figures()):
            return figures
    raise AssertionError(supervisor.figures())


def test_a_database_that_stops_is_seen_in_the_figures_of_its_capture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_shop(rows=100) as server:
        server.run("ALTER SYSTEM SET max_slot_wal_keep_size = '1GB'", "SELECT pg_reload_conf()")
        monkeypatch.setenv("SHOP_PASSWORD", server.password)
        task = ConnectedCapture.model_validate(
            {
                "apiVersion": "polynya/v1", "kind": "landing", "name": "shop_db",
                "connection": "shop", "tables": {"include": ["public.%"]},
                "write": {"roll": {"size": "1MB", "age": "1s"}},
                "errors": {"environment": {"from": "1s", "to": "2s"}},
                "database": {
                    "type": "postgresql", "host": server.host, "port": server.port,
                    "database": server.database, "user": server.user,
                    "password": {"env": "SHOP_PASSWORD"}, "tls": {"mode": "disable"},
                },
            }
        )  # fmt: skip
        landing = tmp_path / "landing"
        target = ResolvedTarget("local", landing, tmp_path / "tables", "jdbc", "")
        supervisor = supervisor_of(
            task, target, LocalObjectStore(landing), clock=SystemClock(), sink=lambda _: None
        )
        try:
            works = until(supervisor, lambda now: now.log_limit_bytes is not None)
            server.stop()
            until(supervisor, lambda now: now.retries >= 2)
            down = until(supervisor, lambda now: now.lag_seconds >= 8.0)
            server.start()
            server.run("INSERT INTO a VALUES (-1, 'after the outage')")
            back = until(supervisor, lambda now: now.retries == 0 and now.events > down.events)
            calm = until(supervisor, lambda now: now.lag_seconds < 5.0)
        finally:
            supervisor.close()

    assert works.events == 100 * len(TABLES)
    assert works.tables == {"running": len(TABLES)}
    assert works.log_limit_bytes is not None
    assert works.log_bytes is not None
    assert 0 < works.log_bytes < works.log_limit_bytes <= 2 * 2**30
    assert (works.retries, down.events) == (0, works.events)
    assert back.events == works.events + 1
    assert calm.retries == 0
