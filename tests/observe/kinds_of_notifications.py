"""Every event of notifications: how it is made, what it says to people and to programs."""

from __future__ import annotations

from typing import Any

from polynya.model.errors import DependencyError
from polynya.observe import maintenance, notifications, otlp
from polynya.observe.events import Event, Level

ROUTE = "oncall.urgent.mail"
REFUSED = DependencyError("POLYNYA-NTF-004", "a message was not sent", why="the server answered 5")
_ERROR = {
    "code": "POLYNYA-NTF-004", "message": "a message was not sent",
    "why": "the server answered 5", "retryable": True,
}  # fmt: skip

_SAID = "a message was not sent: the server answered 5 (POLYNYA-NTF-004)"

OF_NOTIFICATIONS: list[tuple[Event, Level, str, dict[str, Any]]] = [
    (
        notifications.NotificationSent(subject=ROUTE, notices={"opened": 2, "resolved": 3}),
        Level.DETAIL,
        "notified oncall.urgent.mail: 2 opened, 3 resolved",
        {"subject": ROUTE, "notices": {"opened": 2, "resolved": 3}},
    ),
    (
        notifications.NotificationFailed(subject=ROUTE, error=REFUSED),
        Level.WARNING,
        f"{ROUTE}: {_SAID}",
        {"subject": ROUTE, **_ERROR},
    ),
    (
        notifications.NotificationGivenUp(subject=ROUTE, names=("shop.a", "shop.b")),
        Level.WARNING,
        f"{ROUTE}: a message is given up: shop.a, shop.b",
        {"subject": ROUTE, "names": ["shop.a", "shop.b"]},
    ),
    (
        notifications.NotificationMemoryFailed(subject="n1", error=REFUSED),
        Level.WARNING,
        f"n1: what was told cannot be kept: {_SAID}",
        {"subject": "n1", **_ERROR},
    ),
    (
        otlp.SpansNotExported(subject="spans", error=REFUSED),
        Level.WARNING,
        f"spans: {_SAID}",
        {"subject": "spans", **_ERROR},
    ),
    (
        maintenance.LatencyFailed(subject="shop", error=REFUSED),
        Level.WARNING,
        f"shop: latencies are not written: {_SAID}",
        {"subject": "shop", **_ERROR},
    ),
]
