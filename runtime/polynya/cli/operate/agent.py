"""`polynya agent`: keep the tasks of a configuration running, on one node."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from polynya.cli.context import Context, verb_app
from polynya.cli.exit_codes import ExitCode
from polynya.cli.json_values import to_json
from polynya.cli.operate.agent_status import status, work_folder
from polynya.cli.options import usage_error
from polynya.cli.output import JsonOutput
from polynya.cli.service import metrics_sink, voice
from polynya.cli.signals.held import release, stopped_by_signals
from polynya.store.clock import SystemClock

if TYPE_CHECKING:
    from polynya.cluster.messages import Inbox

#: A second signal within so many seconds is the first one again: `timeout` sends it to the process
#: and to its group.
SECOND_SIGNAL_SECONDS: Final = 0.5

app = verb_app(
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
        context: given by `main`.
    """
    # Start-up time: pyspark.
    from queue import SimpleQueue

    from polynya.cluster.agent import Pace
    from polynya.cluster.ending import Ended
    from polynya.cluster.messages import DrainAsked
    from polynya.cluster.spot.imds import imds_at
    from polynya.cluster.start import Settings, make_agent

    if poll_seconds <= 0 or drain_seconds < 0:
        raise usage_error("`--poll-seconds` is more than 0, `--drain-seconds` not less")
    environment = dict(os.environ)
    output = JsonOutput(context.options)
    place = config or str(context.options.project)
    inbox: Inbox = SimpleQueue()
    signals = _Signals(lambda name: inbox.put(DrainAsked(name)))
    settings = Settings(
        config=place,
        work=work or work_folder(place),
        node_id=node_id or environment.get("POLYNYA_NODE_ID") or socket.gethostname(),
        target=context.options.target,
        cluster=cluster or environment.get("POLYNYA_CLUSTER") or None,
        stream=stream,
        metrics=metrics_sink(metrics, metrics_file),
        encode=to_json,
        pace=Pace(poll=poll_seconds, drain=drain_seconds),
        coordination=coordination or environment.get("POLYNYA_COORDINATION") or None,
        imds=imds_at(imds),
        tasks_of=tasks_of,
        only_named=only_named,
    )
    ended = make_agent(settings, voice(output), inbox).run()
    sys.stdout.flush()
    if ended is Ended.RESTART:
        # The same process, as its service manager knows it; locks and pipes close by themselves.
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)  # noqa: S606
    code = ExitCode.INTERRUPTED if signals.interrupted else ExitCode.OK
    if ended is Ended.CUT_OFF:
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
