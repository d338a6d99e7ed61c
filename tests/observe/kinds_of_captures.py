"""Every event of captures: how it is made, what it says to people and to programs."""

from __future__ import annotations

from typing import Any

from polynya.model.errors import DependencyError
from polynya.observe import capture
from polynya.observe.events import Event, Level

REFUSED = DependencyError("POLYNYA-GTW-068", "the database is not there", where="db:5432")
_ERROR = {
    "code": "POLYNYA-GTW-068",
    "message": "the database is not there",
    "where": "db:5432",
    "retryable": True,
}

OF_CAPTURES: list[tuple[Event, Level, str, dict[str, Any]]] = [
    (
        capture.CaptureTable(subject="shop_db/public.orders", state="loading", rows=1200),
        Level.DETAIL,
        "table    shop_db/public.orders: loading, 1,200 rows loaded",
        {"subject": "shop_db/public.orders", "state": "loading", "rows": 1200},
    ),
    (
        capture.CaptureLoaded(
            subject="shop_db/public.orders", rows=100_000, bytes=3 * 2**20, seconds=4.0
        ),
        Level.NOTE,
        "loaded   shop_db/public.orders: 100,000 rows, 3.0 MiB in 4.0 s (25,000/s)",
        {
            "subject": "shop_db/public.orders",
            "rows": 100_000,
            "bytes": 3 * 2**20,
            "seconds": 4.0,
        },
    ),
    (
        capture.CaptureStreaming(subject="shop_db"),
        Level.NOTE,
        "stream   shop_db: connected, changes land from now on",
        {"subject": "shop_db"},
    ),
    (
        capture.CaptureLanded(
            subject="shop_db", number=7, events=1, bytes=2**21, object_bytes=2**19, seconds=0.5
        ),
        Level.NOTE,
        "landed   shop_db: 1 event, 2.0 MiB (512 KiB compressed)",
        {
            "subject": "shop_db",
            "number": 7,
            "events": 1,
            "bytes": 2**21,
            "object_bytes": 2**19,
            "seconds": 0.5,
        },
    ),
    (
        capture.CaptureLag(subject="shop_db", bytes=None, seconds=3.0, notes=("look",)),
        Level.CAUTION,
        "behind   shop_db: 3 s; look",
        {"subject": "shop_db", "bytes": None, "seconds": 3.0, "notes": ["look"], "warned": False},
    ),
    (
        capture.CaptureTableFailed(subject="shop_db/public.odd", error=REFUSED),
        Level.WARNING,
        "shop_db/public.odd: will be retried: db:5432: the database is not there (POLYNYA-GTW-068)",
        {"subject": "shop_db/public.odd", **_ERROR, "suspended": False, "refused": False},
    ),
    (
        capture.CaptureRetry(subject="shop_db", error=REFUSED, number=2, pause_seconds=10.0),
        Level.WARNING,
        (
            "shop_db: the capture is interrupted, it restarts in 10 s: db:5432: the database "
            "is not there (POLYNYA-GTW-068)"
        ),
        {"subject": "shop_db", **_ERROR, "number": 2, "pause_seconds": 10.0},
    ),
    (
        capture.CaptureExpired(subject="shop_db", files=1200),
        Level.DETAIL,
        "expired  shop_db: 1,200 landed batches",
        {"subject": "shop_db", "files": 1200},
    ),
    (
        capture.CaptureHeld(subject="shop_db", held=True),
        Level.CAUTION,
        "stopped  shop_db: on request; `polynya landing resume shop_db` resumes it",
        {"subject": "shop_db", "held": True},
    ),
    (
        capture.CaptureWindow(subject="shop_db", open=False, until="2026-01-01T20:00:00+00:00"),
        Level.NOTE,
        (
            "window   shop_db: the task may not read, until 2026-01-01T20:00:00+00:00; the "
            "database keeps its log meanwhile"
        ),
        {"subject": "shop_db", "open": False, "until": "2026-01-01T20:00:00+00:00"},
    ),
    (
        capture.CaptureNote(subject="shop_db/public.orders", note="`changed` has no index"),
        Level.CAUTION,
        "note     shop_db/public.orders: `changed` has no index",
        {"subject": "shop_db/public.orders", "note": "`changed` has no index"},
    ),
]
