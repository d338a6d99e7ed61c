"""`polynya notification`: who is told what, what is open, and a message to try a channel."""

from __future__ import annotations

from collections.abc import Sequence

from polynya.cli.context import Context, command_group
from polynya.cli.exit_codes import ExitCode
from polynya.cli.format import age_in_words
from polynya.cli.visible import visible
from polynya.model.config.fields import format_duration
from polynya.model.config.notification import NotificationRule
from polynya.model.documents.problems import suggest
from polynya.model.error_catalogue.notifications import NOTIFICATION_UNKNOWN
from polynya.model.errors import PolynyaError
from polynya.model.loader import LoadedProject
from polynya.model.names import shown
from polynya.notify.decide import Route, routes_of
from polynya.store.clock import SystemClock
from polynya.store.places import store_at

app = command_group("notification", "Notifications: rules, channels, what is open, a test.")


def named(project: LoadedProject, name: str) -> list[Route]:
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


@app.command(name="list")
def list_(*, context: Context) -> None:
    """List rules with their channels, and what is open now with who was told.

    Needs no Java. What is open is read where the project's processes keep it, below the warehouse.

    For example: `polynya notification list`.
    """
    # Start-up time: the AWS SDK, where the warehouse is on S3.
    from polynya.notify.memory import NotificationStore

    project, now = context.load(tolerant=True), SystemClock().now()
    for route in routes_of(project.notifications):
        data: dict[str, object] = {"route": route.id, "file": route.file, "rule": route.rule,
                "channel": route.channel, "causes": list(route.settings.causes) or None,
                "severity": route.settings.severity}  # fmt: skip
        causes = ", ".join(route.settings.causes) or "all causes"
        text = f"{route.id}: {causes}, from {route.settings.severity} on"
        context.output.result("notification.route", data, text)
    if not project.notifications:
        context.output.note("no file in `notifications/` has a rule")
        return
    target = project.target
    store = NotificationStore(lambda: store_at(target.warehouse, target.aws))
    for one in store.open_objects({task.name for task in project.works}):
        told = sorted({entry.route for entry in one.told})
        for condition in one.conditions:
            data = {
                "name": one.name, "task": one.task, "told": told,
                **condition.model_dump(mode="json", exclude={"fresh", "grace"}),
            }  # fmt: skip
            age = age_in_words((now - condition.since).total_seconds())
            who = ", ".join(told) or "nobody yet"
            text = f"{condition.severity}: {one.name}: {condition.title}, for {age}; told: {who}"
            context.output.result("notification.open", data, visible(text))


@app.command
def show(name: str, /, *, context: Context) -> None:
    """Show rules and their channels as they are in force, without secrets.

    For example: `polynya notification show oncall`.

    Args:
        name: a file of `notifications/`, or a rule or channel of it as `FILE.NAME`.
    """
    project = context.load(tolerant=True)
    files = {one.name: one.settings for one in project.notifications}
    for route in named(project, name):
        channel = files[route.file].channels[route.channel]
        settings = channel.model_dump(mode="json", by_alias=True, exclude_none=True)
        rule = route.settings.model_dump(mode="json", by_alias=True, exclude_none=True)
        data = {"route": route.id, "rule": rule, "channel": settings}
        lines = [route.id, *_lines(route.settings), f"  through {channel.type}: {_where(settings)}"]
        context.output.result("notification", data, visible("\n".join(lines)))


def _lines(rule: NotificationRule) -> list[str]:
    causes = ", ".join(rule.causes) or "all causes"
    parts = [
        f"  {causes}, from {rule.severity} on",
        f"  tasks: {', '.join(rule.tasks) or 'all'}; datasets: {', '.join(rule.datasets) or 'all'}",
        f"  at most every {format_duration(rule.at_most_every)}, "
        + (
            "once only"
            if rule.remind_every is None
            else f"again every {format_duration(rule.remind_every)}"
        )
        + (", and when it is over" if rule.resolved else ""),
    ]
    for window in rule.quiet:
        length = format_duration(window.duration)
        parts.append(f"  quiet: {window.rrule} for {length}, {window.time_zone}")
    return parts


def _where(channel: dict[str, object]) -> str:
    place = channel.get("to") or channel.get("topic") or channel.get("url") or ""
    return ", ".join(map(str, place)) if isinstance(place, list) else str(place)


@app.command
def test(name: str, /, *, context: Context) -> int:
    """Send a test message through channels, at once, whatever their rules say.

    For example: `polynya notification test oncall.ops`.

    Args:
        name: a file of `notifications/`, or a rule or channel of it as `FILE.NAME`.
    """
    # Start-up time: HTTP and mail.
    from polynya.notify.channels import sender
    from polynya.notify.message import test_message

    project, now = context.load(tolerant=True), SystemClock().now()
    files = {one.name: one.settings for one in project.notifications}
    failed: list[PolynyaError] = []
    for route in _once_each(named(project, name)):
        place = f"{route.file}.{route.channel}"
        channel = files[route.file].channels[route.channel]
        message = test_message(
            route, project=project.project.name, target=project.target.name, now=now
        )
        try:
            sender(place, channel, project.target.aws)(message, now)
        except PolynyaError as error:
            failed.append(error)
            context.output.error(error)
            continue
        data = {"channel": place, "type": channel.type}
        context.output.result("notification.tested", data, f"{place}: sent by {channel.type}")
    return max((error.exit_code for error in failed), default=ExitCode.OK)


def _once_each(routes: Sequence[Route]) -> list[Route]:
    """One route for each channel: several rules may use it."""
    return list({(one.file, one.channel): one for one in routes}.values())
