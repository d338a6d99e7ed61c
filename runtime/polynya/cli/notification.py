"""`polynya notification`: who is told what, what is open, and a message to try a channel."""

from __future__ import annotations

from polynya.cli.context import Context, command_group
from polynya.cli.exit_codes import ExitCode
from polynya.cli.format import age_in_words
from polynya.cli.visible import visible
from polynya.model.config.fields import format_duration
from polynya.model.config.notification import NotificationRule
from polynya.model.errors import PolynyaError
from polynya.notify.decide import routes_of
from polynya.notify.trial import routes_named, try_channels
from polynya.store.clock import SystemClock
from polynya.store.places import store_at

app = command_group("notification", "Notifications: rules, channels, what is open, a test.")


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
    for route in routes_named(project, name):
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
    project, now = context.load(tolerant=True), SystemClock().now()
    failed: list[PolynyaError] = []
    for trial in try_channels(project, name, now):
        if trial.error is not None:
            failed.append(trial.error)
            context.output.error(trial.error)
            continue
        data = {"channel": trial.channel, "type": trial.type}
        text = f"{trial.channel}: sent by {trial.type}"
        context.output.result("notification.tested", data, text)
    return max((error.exit_code for error in failed), default=ExitCode.OK)
