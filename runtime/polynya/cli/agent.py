"""`polynya agent`: keep the tasks of a configuration running on one node; `agent status`."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from polynya.cli.context import Context, command_group, metrics_sink, voice
from polynya.cli.exit_codes import ExitCode
from polynya.cli.format import to_json
from polynya.cli.held_signals import release, stopped_by_signals
from polynya.cli.output import JsonOutput
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.model.error_catalogue.operation import NO_AGENT_IN_FOLDER
from polynya.store.clock import SystemClock

if TYPE_CHECKING:
    from polynya.cluster.messages import Inbox


DEFAULT_WORK: Final = Path(".polynya") / "agent"
#: A state file that is older, in seconds, is that of an agent which does not run.
STALE_SECONDS: Final = 60.0


def status(*, config: str | None = None, work: Path | None = None, context: Context) -> int:
    """Show the status of a node's agent. Exit code 1 when something needs attention.

    For example: `polynya agent status --work /var/lib/polynya`.

    Args:
        config: the agent's `--config`; default the project folder.
        work: the agent's `--work`.
    """
    # Start-up time: pyarrow.
    from polynya.cluster.control.reading import AGENT_STATE_FILE
    from polynya.cluster.report import is_healthy

    folder = work or work_folder(config or str(context.options.project))
    try:
        report = json.loads((folder / AGENT_STATE_FILE).read_bytes())
    except (OSError, ValueError):
        raise NO_AGENT_IN_FOLDER(where=str(folder)) from None
    age = (SystemClock().now() - datetime.fromisoformat(report["at"])).total_seconds()
    alive = report["state"] != "stopped" and age < STALE_SECONDS
    data = {**report, "age_seconds": round(age, 1), "alive": alive}
    context.output.result("agent.status", data, _block(report, age, alive=alive))
    return ExitCode.OK if alive and is_healthy(report) else ExitCode.FAILED


def work_folder(config: str) -> Path:
    """The work folder of an agent that was not given one; a bucket has none."""
    if "://" in config:
        raise WRONG_USAGE("name the folder that the agent works in: `--work DIR`")
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
        f"  broken         {problem.get('where', '')}: {problem['message']} ({problem['code']})"
        for problem in problems
    ]
    lines += [
        f"  not used       {problem.get('where', '')}: {problem['message']}"
        for problem in configuration["unused"]
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


#: A second signal within this many seconds is the first one again: `timeout` signals the process
#: and its group.
SECOND_SIGNAL_SECONDS: Final = 0.5

app = command_group(
    "agent",
    """Keep the tasks of a configuration running on one node, and pick up its changes.

    Writes one JSON object per line. SIGTERM ends it after the running steps, with code 0; a second
    SIGTERM ends it immediately.

    For example: `polynya agent --config s3://acme-config/shop --work /var/lib/polynya`.
    """,
)
app.command(status)


@app.default
@stopped_by_signals
def agent(
    *,
    config: str | None = None,
    work: Path | None = None,
    node_id: str | None = None,
    cluster: str | None = None,
    metrics: Literal["emf", "prometheus"] | None = None,
    metrics_file: Path | None = None,
    stream: str | None = None,
    coordination: str | None = None,
    imds: str = "auto",
    tasks_of: str | None = None,
    only_named: bool = False,
    poll_seconds: float = 10.0,
    drain_seconds: float = 90.0,
    context: Context,
) -> int:
    """Keep the tasks of a configuration running.

    Args:
        config: `s3://BUCKET/PREFIX` or a folder; default the project folder.
        work: the agent's own folder, for the last good configuration and its state; default
            `.polynya/agent` in the project folder.
        node_id: name of the node; default `POLYNYA_NODE_ID`, else the host's name.
        cluster: name of the cluster, also the dimension of its metrics; default `POLYNYA_CLUSTER`,
            else `cluster` of the project, else the project's name. The agent runs only the tasks of
            that cluster.
        metrics: `emf` writes metrics in CloudWatch's embedded metric format once a minute,
            `prometheus` a file for the textfile collector of Prometheus' node exporter.
        metrics_file: file for the metrics, required for `prometheus`; default for `emf`: standard
            output.
        stream: workload stream for heartbeats: a Kinesis data stream by name or ARN, or a folder or
            `s3://BUCKET/PREFIX` instead of one.
        coordination: folder or `s3://BUCKET/PREFIX` through which nodes share the work; default
            `POLYNYA_COORDINATION`, else this node does everything.
        imds: `auto` asks the instance metadata service for Spot notices on EC2, `off` never; or the
            URL of a stand-in on this machine.
        tasks_of: the cluster's name in task files; default the cluster's name.
        only_named: for a project that several clusters share: run none of its tasks while
            `polynya.yml` names no `cluster`.
        poll_seconds: interval between checks of the configuration.
        drain_seconds: maximum time for running steps after a stop signal.
    """
    # Start-up time: pyspark.
    from queue import SimpleQueue

    from polynya.cluster.agent import AgentEnd, AgentPace
    from polynya.cluster.messages import DrainRequested
    from polynya.cluster.spot import imds_at
    from polynya.cluster.start import AgentSettings, make_agent

    if poll_seconds <= 0 or drain_seconds < 0:
        raise WRONG_USAGE("`--poll-seconds` is more than 0, `--drain-seconds` not less")
    environment = dict(os.environ)
    output = JsonOutput(context.options)
    place = config or str(context.options.project)
    inbox: Inbox = SimpleQueue()
    signals = _Signals(lambda name: inbox.put(DrainRequested(name)))
    settings = AgentSettings(
        config=place,
        work=work or work_folder(place),
        node_id=node_id or environment.get("POLYNYA_NODE_ID") or socket.gethostname(),
        target=context.options.target,
        cluster=cluster or environment.get("POLYNYA_CLUSTER") or None,
        stream=stream,
        metrics=metrics_sink(metrics, metrics_file),
        encode=to_json,
        pace=AgentPace(poll=poll_seconds, drain=drain_seconds),
        coordination=coordination or environment.get("POLYNYA_COORDINATION") or None,
        imds=imds_at(imds),
        life_cycle=environment.get("POLYNYA_LIFECYCLE") or None,
        tasks_of=tasks_of,
        only_named=only_named,
    )
    ended = make_agent(settings, voice(output), inbox).run()
    sys.stdout.flush()
    if ended is AgentEnd.RESTART:
        # The same process, as its service manager knows it; locks and pipes close by themselves.
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)  # noqa: S606
    code = ExitCode.INTERRUPTED if signals.interrupted else ExitCode.OK
    if ended is AgentEnd.CUT_OFF:
        # Threads in the middle of a step would keep the process; what they had not committed is
        # not there.
        os._exit(code)
    return code


class _Signals:
    """The first signal asks the agent to drain, the second one ends the process."""

    def __init__(self, drain: Callable[[str], None]) -> None:
        self._drain = drain
        self._asked_at: float | None = None
        self.interrupted = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._take)
        release()

    def _take(self, number: int, _frame: object) -> None:
        now = SystemClock().monotonic()
        if self._asked_at is not None:
            if now - self._asked_at > SECOND_SIGNAL_SECONDS:
                os._exit(128 + number)
            return
        self._asked_at, self.interrupted = now, number == signal.SIGINT
        self._drain(signal.Signals(number).name)
