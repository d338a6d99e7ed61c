"""Commands with `--server URL` that ask the API and show its answer, without an operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import quote

from polynya.cli.context import CommandContext
from polynya.cli.exit_codes import ExitCode
from polynya.cli.format import age_in_words
from polynya.cli.visible import visible
from polynya.client import PolynyaClient
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.error_catalogue.server_operations import COMMAND_NOT_SERVED, SERVER_UNREACHABLE
from polynya.model.errors import OperationError

if TYPE_CHECKING:
    from polynya.lake.read.query import Statement

#: Shows what a server says; gets the values of the command line, returns the exit code.
Read: TypeAlias = Callable[[CommandContext, PolynyaClient, Mapping[str, Any]], int]
#: Most rows of an answer of `/queries`, as the server has it.
_MOST_ROWS: Final = 1_000_000
#: Rejected records that a terminal shows, unless `--limit` says otherwise.
_MOST_RECORDS: Final = 20


def _only(values: Mapping[str, Any], *known: str) -> None:
    """Refuse an option that the API does not have. Raises POLYNYA-SRV-051."""
    for name, value in values.items():
        if name not in known and value:
            raise COMMAND_NOT_SERVED(what=f"`{name.replace('_', '-')}`")


def _status(context: CommandContext, client: PolynyaClient, values: Mapping[str, Any]) -> int:
    _only(values, "datasets", "every_seconds")
    patterns = values.get("datasets", ())
    asked = [{"name": one} for one in patterns] or [{}]
    for item in (item for one in asked for item in client.listed("/datasets", **one)):
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
    for item in client.listed("/automations"):
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
    for run in islice(client.listed(f"{_automation_path(values)}/runs"), limit):
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
    for rule in client.listed("/notifications/rules"):
        causes = ", ".join(rule["rule_settings"]["causes"]) or "all causes"
        text = f"{rule['route']}: {causes}, from {rule['rule_settings']['severity']} on"
        context.output.result("notification.route", rule, visible(text))
    for one in client.listed("/notifications/open"):
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


def _query(context: CommandContext, client: PolynyaClient, values: Mapping[str, Any]) -> int:
    # Start-up time: pyarrow.
    import pyarrow as pa

    from polynya.cli.query import asked_rows, write_rows
    from polynya.lake.read.values import Answer

    _only(values, "sql", "file", "output", "limit")
    asked = asked_rows(context, **values)

    def answer(statement: Statement, most: int | None) -> Answer:
        rows, has_more = client.query(statement.text, limit=min(most or _MOST_ROWS, _MOST_ROWS))
        if has_more and (most is None or most > _MOST_ROWS):
            context.output.warning(f"a server answers {_MOST_ROWS:,} rows at most: there are more")
        try:
            reader = pa.ipc.open_stream(rows)
        except pa.ArrowInvalid as error:
            raise SERVER_UNREACHABLE(url=client.url, why="its answer is not of the API") from error
        return Answer(reader.schema, iter(reader))

    write_rows(context, asked, answer)
    return ExitCode.OK


def _quarantined(context: CommandContext, client: PolynyaClient, values: Mapping[str, Any]) -> int:
    # Start-up time: the model of tasks.
    from polynya.cli.quarantine import as_entry

    _only(values, "dataset", "rule", "limit")
    limit = values.get("limit")
    if limit is not None and limit < 0:
        raise WRONG_USAGE("`--limit` is not less than 0")
    most = _MOST_RECORDS if limit is None and not context.output.is_json else limit
    names = [values["dataset"]] if values.get("dataset") else _with_rejected(client)
    asked = {"rule": values["rule"]} if values.get("rule") else {}
    paths = (f"/datasets/{quote(name, safe='')}/quarantine" for name in names)
    found = (item for path in paths for item in client.listed(path, **asked))
    for item in islice(found, most):
        row = {name: value for name, value in item.items() if name != "raw"}
        context.output.result("quarantined", row, visible(as_entry(row)))
    if most is not None and next(found, None) is not None:
        context.output.note("there are more; `--limit` and `--rule` choose")
    return ExitCode.OK


def _with_rejected(client: PolynyaClient) -> Iterator[str]:
    """The datasets with rejected records, those with most of them first."""
    sorted_ = client.listed("/datasets", sort="quarantined", fields="name,quarantined")
    return (one["name"] for one in takewhile(lambda one: one["quarantined"], sorted_))


def _clusters(context: CommandContext, client: PolynyaClient, values: Mapping[str, Any]) -> int:
    _only(values)
    code = ExitCode.OK
    for item in client.listed("/clusters"):
        since = f" since {item['since']}" if item["since"] else ""
        lines = [f"{item['name']}: {item['status']}{since}", f"  because        {item['reason']}"]
        for name in ("nodes", "units"):
            counts = ", ".join(f"{count} {word}" for word, count in sorted(item[name].items()))
            lines.append(f"  {name:<14} {counts or 'none'}")
        lines += [f"  leader         {item['leader']}"] if item["leader"] else []
        lines += [f"  frozen         {item['frozen']}"] if item["frozen"] else []
        lines += [f"  asked          {text}" for text in item["requests"]]
        lines += [f"  trouble        {text}" for text in item["troubles"]]
        context.output.result("cluster.status", item, visible("\n".join(lines)))
        if item["status"] != "Running" or item["troubles"]:
            code = ExitCode.FAILED
    return code


def _nodes(context: CommandContext, client: PolynyaClient, values: Mapping[str, Any]) -> int:
    _only(values, "gone")
    asked = {"gone": "true"} if values.get("gone") else {}
    for cluster in client.listed("/clusters"):
        path = f"/clusters/{quote(cluster['name'], safe='')}/nodes"
        for item in client.listed(path, **asked):
            why = f": {item['reason']}" if item["reason"] else ""
            leads = ", leads" if item["leads"] else ""
            text = f"{item['node']}: {item['state']}{why}, {item['units']} units{leads}, "
            text += f"{item['market']}, since {item['since']}"
            context.output.result("cluster.node", item, visible(text))
    return ExitCode.OK


#: By the words of the command.
READS: Final[Mapping[str, Read]] = {
    "status": _status,
    "query": _query,
    "quarantine list": _quarantined,
    "cluster status": _clusters,
    "cluster nodes": _nodes,
    "automation list": _automations,
    "automation show": _automation,
    "automation runs": _runs,
    "automation pause": _paused("pause"),
    "automation resume": _paused("resume"),
    "notification list": _notifications,
    "notification test": _tested,
}
