"""Routes by the names that people give, and a message that tries their channels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from polynya.model.documents.problems import suggest
from polynya.model.error_catalogue.notifications import NOTIFICATION_UNKNOWN
from polynya.model.errors import PolynyaError
from polynya.model.loader import LoadedProject
from polynya.model.names import shown
from polynya.notify.decide import Route, routes_of


@dataclass(frozen=True, slots=True)
class ChannelTrial:
    """A test message through one channel, `FILE.CHANNEL`: the error, if it was not sent."""

    channel: str
    type: str
    error: PolynyaError | None


def routes_named(project: LoadedProject, name: str) -> list[Route]:
    """The routes of a file, or of a rule or channel as `FILE.NAME`; raises ConfigError."""
    routes = routes_of(project.notifications)
    chosen = [
        one
        for one in routes
        if name in (one.file, f"{one.file}.{one.rule}", f"{one.file}.{one.channel}", one.id)
    ]
    if not chosen:
        known = [part for one in routes for part in (one.file, f"{one.file}.{one.channel}")]
        fix = suggest(name, sorted(set(known))) or "add a file to `notifications/`"
        raise NOTIFICATION_UNKNOWN(name=shown(name), fix=fix)
    return chosen


def try_channels(project: LoadedProject, name: str, now: datetime) -> Iterator[ChannelTrial]:
    """Send a test through each channel of the routes of a name, at once; raises ConfigError."""
    # Start-up time: HTTP and mail.
    from polynya.notify.channels import sender
    from polynya.notify.message import test_message

    files = {one.name: one.settings for one in project.notifications}
    # Several rules may use one channel.
    routes = {(one.file, one.channel): one for one in routes_named(project, name)}
    for route in routes.values():
        place = f"{route.file}.{route.channel}"
        channel = files[route.file].channels[route.channel]
        message = test_message(
            route, project=project.project.name, target=project.target.name, now=now
        )
        error = None
        try:
            sender(place, channel, project.target.aws)(message, now)
        except PolynyaError as failed:
            error = failed
        yield ChannelTrial(place, channel.type, error)
