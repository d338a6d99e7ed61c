"""Commands with `--server URL` that ask the API and show its answer, without an operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, TypeAlias
from urllib.parse import quote, urlencode

from polynya.cli.context import CommandContext
from polynya.cli.exit_codes import ExitCode
from polynya.cli.format import age_in_words
from polynya.cli.visible import visible
from polynya.client import PolynyaClient
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.error_catalogue.server_operations import COMMAND_NOT_SERVED
from polynya.model.errors import OperationError

#: Shows what a server says; gets the values of the command line, returns the exit code.
Read: TypeAlias = Callable[[CommandContext, PolynyaClient, Mapping[str, Any]], int]
_PAGE: Final = 200


def _items(client: PolynyaClient, path: str, **asked: Any) -> Iterator[dict[str, Any]]:
    """All items of a list, page after page."""
    cursor: str | None = None
    while True:
        given = {"limit": _PAGE, **asked} | ({"cursor": cursor} if cursor else {})
        page = client.ask("GET", f"{path}?{urlencode(given)}")
        yield from page["items"]
        cursor = page["next"]
        if cursor is None:
            return


def _only(values: Mapping[str, Any], *known: str) -> None:
    """Refuse an option that the API does not have. Raises POLYNYA-SRV-051."""
    for name, value in values.items():
        if name not in known and value:
            raise COMMAND_NOT_SERVED(what=f"`{name.replace('_', '-')}`")


def _status(context: CommandContext, client: PolynyaClient, values: Mapping[str, Any]) -> int:
    _only(values, "datasets", "every_seconds")
    patterns = values.get("datasets", ())
    asked = [{"name": one} for one in patterns] or [{}]
    for item in (item for one in asked for item in _items(client, "/datasets", **one)):
        parts = "; ".join(str(part["says"]) for part in item["parts"])
        rows = "" if item["rows"] is None else f", {item['rows']:,} rows"
        old = item["freshness_seconds"]
        fresh = "" if old is None else f", newest event {age_in_words(old)} old"
        text = f"{item['name']}\n  {item['health']}{rows}{fresh}"
        context.output.result(
            "dataset.status", item, visible(text + (f"\n  {parts}" if parts else ""))
        )
    return ExitCode.OK


def _automations(context: CommandContext, client: PolynyaClient, values: Mapping[str, Any]) -> int:
    _only(values)
    for item in _items(client, "/automations"):
        last, following = item["last"], ", ".join(item["next"])
        ended = "" if last is None else f", last run {last['started']}: {last['state']}"
        text = f"{item['name']}: {item['state']}{ended}"
        context.output.result(
            "automation", item, visible(text + (f", next {following}" if following else ""))
        )
    return ExitCode.OK


def _automation(context: CommandContext, client: PolynyaClient, values: Mapping[str, Any]) -> int:
    item = client.ask("GET", _automation_path(values))
    lines = [f"{item['name']}: {item['state']}", f"  file     {item['file']}"]
    lines += [f"  next     {moment}" for moment in item["next"]]
    for key in ("trigger", "action"):
        for one in item["definition"][f"{key}s"]:
            given = ", ".join(f"{name}: {value}" for name, value in one.items() if value)
            lines.append(f"  {key:<8} {given}")
    context.output.result("automation", item, visible("\n".join(lines)))
    return ExitCode.OK


def _runs(context: CommandContext, client: PolynyaClient, values: Mapping[str, Any]) -> int:
    limit = values.get("limit", 20)
    if limit < 1:
        raise WRONG_USAGE("`--limit` is at least 1")
    for run in islice(_items(client, f"{_automation_path(values)}/runs"), limit):
        why = f": {run['code']} {run['message']}" if run["message"] else ""
        lines = [f"{run['started']}  {run['state']}, {run['why']}{why}"]
        steps = run["steps"] if values.get("steps") else ()
        lines += [f"  {step['state']:<10} {step['action']}" for step in steps]
        context.output.result("automation.run", run, visible("\n".join(lines)))
    return ExitCode.OK


def _paused(word: str) -> Read:
    def change(context: CommandContext, client: PolynyaClient, values: Mapping[str, Any]) -> int:
        item = client.ask("POST", f"{_automation_path(values)}/{word}")
        context.output.result(f"automation.{word}d", item, f"{item['name']}: {word}d")
        return ExitCode.OK

    return change


def _automation_path(values: Mapping[str, Any]) -> str:
    return f"/automations/{quote(str(values['name']), safe='')}"


def _notifications(
    context: CommandContext, client: PolynyaClient, values: Mapping[str, Any]
) -> int:
    _only(values)
    for rule in _items(client, "/notifications/rules"):
        causes = ", ".join(rule["rule_settings"]["causes"]) or "all causes"
        text = f"{rule['route']}: {causes}, from {rule['rule_settings']['severity']} on"
        context.output.result("notification.route", rule, visible(text))
    for one in _items(client, "/notifications/open"):
        who = ", ".join(told["route"] for told in one["told"]) or "nobody yet"
        text = f"{one['severity']}: {one['name']}: {one['title']}, since {one['since']}"
        context.output.result("notification.open", one, visible(f"{text}; told: {who}"))
    return ExitCode.OK


def _tested(context: CommandContext, client: PolynyaClient, values: Mapping[str, Any]) -> int:
    code = ExitCode.OK
    for one in client.ask_list("POST", "/notifications/test", {"name": values["name"]}):
        if (told := one["error"]) is None:
            text = visible(f"{one['channel']}: sent by {one['type']}")
            context.output.result("notification.tested", one, text)
            continue
        code = ExitCode.FAILED
        texts = {part: told.get(part) for part in ("where", "state", "fix", "why")}
        context.output.error(OperationError(str(told["code"]), str(told["message"]), **texts))
    return code


#: By the words of the command.
READS: Final[Mapping[str, Read]] = {
    "status": _status,
    "automation list": _automations,
    "automation show": _automation,
    "automation runs": _runs,
    "automation pause": _paused("pause"),
    "automation resume": _paused("resume"),
    "notification list": _notifications,
    "notification test": _tested,
}
