"""`polynya agent status`: what an agent wrote into its work folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.options import usage_error
from polynya.model.errors import OperationError
from polynya.store.clock import SystemClock

DEFAULT_WORK: Final = Path(".polynya") / "agent"
#: A state file that is older, in seconds, is that of an agent which does not run.
STALE_SECONDS: Final = 60.0


def status(*, config: str | None = None, work: Path | None = None, context: Context) -> int:
    """Show the status of a node's agent. Exit code 1 when something needs attention.

    For example: `polynya agent status --work /var/lib/polynya`.

    Args:
        config: the agent's `--config`; default the project folder.
        work: the agent's `--work`.
        context: given by `main`.
    """
    # Start-up time: pyarrow.
    from polynya.cluster.outlets import STATE_FILE
    from polynya.cluster.report import is_healthy

    folder = work or work_folder(config or str(context.options.project))
    try:
        report = json.loads((folder / STATE_FILE).read_bytes())
    except (OSError, ValueError):
        raise OperationError(
            "POLYNYA-AGT-003",
            "no agent has worked in this folder",
            where=str(folder),
            state="nothing was read",
            fix="name the folder that the agent was started with: `--work DIR`",
        ) from None
    age = (SystemClock().now() - datetime.fromisoformat(report["at"])).total_seconds()
    alive = report["state"] != "stopped" and age < STALE_SECONDS
    data = {**report, "age_seconds": round(age, 1), "alive": alive}
    context.output.result("agent.status", data, _block(report, age, alive=alive))
    return ExitCode.OK if alive and is_healthy(report) else ExitCode.FAILED


def work_folder(config: str) -> Path:
    """The work folder of an agent that was not given one; a bucket has none."""
    if "://" in config:
        raise usage_error("name the folder that the agent works in: `--work DIR`")
    return Path(config) / DEFAULT_WORK


def _block(report: Mapping[str, Any], age: float, *, alive: bool) -> str:
    """A report as people read it."""
    configuration, backlog = report["configuration"], report["backlog"]
    state = report["state"] if alive else f"not running (last seen {age:,.0f} s ago)"
    edited = f", edited by hand: {', '.join(configuration['edited'])}"
    identity = str(configuration["revision"] or configuration["identity"] or "none yet")[:12]
    waiting = (
        f"{backlog['files']:,} files, {backlog['bytes']:,} bytes, "
        f"about {backlog['seconds']:,.0f} s of work, oldest {backlog['oldest_seconds']:,.0f} s"
    )
    lines = [
        f"{report['node']}: {state}",
        f"  configuration  {identity}{edited if configuration['edited'] else ''}",
        f"  waiting        {waiting}",
    ]
    lines += _sharing(report.get("sharing"))
    problems = [*configuration["errors"]]
    if configuration["unread"]:
        problems.append(configuration["unread"])
    lines += [
        f"  broken         {one.get('where', '')}: {one['message']} ({one['code']})"
        for one in problems
    ]
    lines += [
        f"  not used       {one.get('where', '')}: {one['message']}"
        for one in configuration["unused"]
    ]
    others = configuration.get("elsewhere") or {}
    lines += [f"  not here       {task}: {why}" for task, why in others.items()]
    for task in report["tasks"].values():
        for name, job in task["jobs"].items():
            step = f", last {job['last_step']['type']}" if job["last_step"] else ""
            lines.append(
                f"  {job['state']:<13}  {name}: {job['records']:,} records, "
                f"lag {job['lag_seconds']:,.0f} s{step}"
            )
            if job["state"] != "running" or task["held"]:
                lines.append(f"                 {job['reason']}")
    return "\n".join(lines)


def _sharing(sharing: Mapping[str, Any] | None) -> list[str]:
    """This node's part in its cluster as people read it; nothing where nodes share nothing."""
    if sharing is None:
        return []
    nodes, leader = sharing["nodes"], sharing["leader"] or "nobody"
    leads = "this node" if sharing["leading"] else leader
    state = sharing["state"] or "not yet a member"
    lines = [f"  sharing        {state}, {sharing['units']} units, {nodes} nodes, led by {leads}"]
    if sharing["frozen"]:
        lines.append(f"  frozen         {_frozen(sharing['frozen'])}")
    lines += [f"  trouble        {text}" for text in sharing["troubles"]]
    if sharing["stream_trouble"]:
        lines.append(f"  stream         {sharing['stream_trouble']}")
    return lines


def _frozen(freeze: Mapping[str, Any]) -> str:
    """Who let nothing move, since when and why; an agent of an older version does not say when."""
    when = datetime.fromisoformat(freeze["since"]) if "since" in freeze else None
    since = f" since {when:%Y-%m-%d %H:%M:%S} UTC" if when is not None else ""
    why = f": {freeze['reason']}" if freeze["reason"] else ""
    return f"by {freeze['by']}{since}{why}"
