"""`polynya network-agent`: executes commands for the groups of machines of clusters."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path
from typing import Literal

from polynya.cli.cluster_location import coordination_store
from polynya.cli.context import Context, metrics_sink, voice
from polynya.cli.exit_codes import ExitCode
from polynya.cli.held_signals import stopped_by_signals
from polynya.cli.output import JsonOutput
from polynya.cli.stopping import Stopping
from polynya.model.config.aws import AwsAccess
from polynya.model.error_catalogue.configuration import WRONG_USAGE
from polynya.store.clock import SystemClock


@stopped_by_signals
def network_agent(
    *,
    cluster: tuple[str, ...] = (),
    coordination: str | None = None,
    name: str | None = None,
    metrics: Literal["emf"] | None = None,
    metrics_file: Path | None = None,
    poll_seconds: float = 10.0,
    updates: Path | None = None,
    deadline_seconds: float = 120.0,
    context: Context,
) -> int:
    """Execute `polynya cluster stop`, `start`, `roll` and `scale` on EC2 Auto Scaling groups.

    It runs on the small instance of the gateway stack. All its connections are outbound, and it
    reads no data. Writes one JSON object per line. SIGTERM ends it, with code 0.

    For example: `polynya network-agent --cluster shop --coordination s3://acme/coordination`.

    Args:
        cluster: a cluster that it serves; its group has the same name. May be repeated.
        coordination: folder or `s3://BUCKET/PREFIX` as the agents have it; default
            `POLYNYA_COORDINATION`.
        name: its own name; default `POLYNYA_NODE_ID`, else the host's name.
        metrics: `emf` writes once a minute, in CloudWatch's embedded metric format, whether it is
            connected.
        metrics_file: file for the metrics; default standard output.
        poll_seconds: interval between checks for commands.
        updates: the agent's own folder for updates; with it, the agent runs the version that
            `polynya cluster pin-agent` names as a child process.
        deadline_seconds: time within which a new version has to prove that it works.
    """
    # Start-up time: pydantic models of all documents, and the AWS SDK.
    from polynya.cluster.network.agent import NetworkAgentSettings, make_network_agent
    from polynya.cluster.network.decide import UpdateLimits
    from polynya.cluster.network.update import Keeper, KeeperPorts
    from polynya.cluster.network.update_process import UpdateHeartbeat, starter
    from polynya.cluster.systemd import notifier
    from polynya.store.aws.auto_scaling import AutoScalingGroups
    from polynya.store.aws.prices import Ec2Prices

    if not cluster:
        raise WRONG_USAGE("no cluster is named", fix="add `--cluster NAME`, as often as need be")
    if poll_seconds <= 0 or deadline_seconds <= 0:
        raise WRONG_USAGE("`--poll-seconds` and `--deadline-seconds` are more than 0")
    name = name or os.environ.get("POLYNYA_NODE_ID") or socket.gethostname()
    output, stop = JsonOutput(context.options), threading.Event()
    if updates is not None:
        arguments = ["network-agent", "--name", name, "--poll-seconds", str(poll_seconds)]
        arguments += [word for name in cluster for word in ("--cluster", name)]
        arguments += ["--coordination", coordination] if coordination is not None else []
        arguments += ["--metrics", metrics] if metrics is not None else []
        arguments += ["--metrics-file", str(metrics_file)] if metrics_file is not None else []
        store = coordination_store(context, coordination)[0]
        ports = KeeperPorts(store, starter(arguments), notifier(), voice(output))
        limits = UpdateLimits(heartbeat_seconds=deadline_seconds)
        keeper = Keeper(name, updates.resolve(), ports, clock=SystemClock(), limits=limits)
        stopping = Stopping.on_signals(stop, output)
        keeper.run(stop)
        return ExitCode.INTERRUPTED if stopping.interrupted else ExitCode.OK
    settings = NetworkAgentSettings(
        name=name,
        clusters=cluster,
        poll_seconds=poll_seconds,
        metrics=metrics_sink(metrics, metrics_file),
    )
    agent = make_network_agent(
        settings,
        coordination_store(context, coordination)[0],
        AutoScalingGroups(AwsAccess()),
        Ec2Prices(AwsAccess(), SystemClock()),
        clock=SystemClock(),
        notify=notifier(),
        tell=voice(output),
        heartbeat=UpdateHeartbeat.of(os.environ),
    )
    stopping = Stopping.on_signals(stop, output)
    agent.run(stop)
    return ExitCode.INTERRUPTED if stopping.interrupted else ExitCode.OK
