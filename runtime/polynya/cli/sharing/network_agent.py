"""`polynya network-agent`: carry out what people ask of the groups of clusters."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path
from typing import Literal

from polynya.cli.context import Context
from polynya.cli.exit_codes import ExitCode
from polynya.cli.options import usage_error
from polynya.cli.output import JsonOutput
from polynya.cli.service import metrics_sink, voice
from polynya.cli.sharing.place import store_of
from polynya.cli.stopping import Stopping
from polynya.model.config.aws import AwsAccess
from polynya.store.clock import SystemClock


def network_agent(
    *,
    cluster: tuple[str, ...] = (),
    coordination: str | None = None,
    name: str | None = None,
    metrics: Literal["emf"] | None = None,
    metrics_file: Path | None = None,
    poll_seconds: float = 10.0,
    context: Context,
) -> int:
    """Carry out `polynya cluster stop`, `start`, `roll` and `scale` on EC2 Auto Scaling groups.

    It runs on the small instance of the gateway stack. All its connections are outbound, and it
    reads no data. Writes one JSON object per line. SIGTERM ends it, with code 0.

    For example: `polynya network-agent --cluster shop --coordination s3://acme/coordination`.

    Args:
        cluster: a cluster that it serves; its group has the same name. May be repeated.
        coordination: folder or `s3://BUCKET/PREFIX` as the agents have it; default
            `POLYNYA_COORDINATION`.
        name: its own name; default `POLYNYA_NODE_ID`, else the host's name.
        metrics: `emf` writes whether it is connected in CloudWatch's embedded metric format once a
            minute.
        metrics_file: file for them; default standard output.
        poll_seconds: time between two looks for commands.
        context: given by `main`.
    """
    # Start-up time: pydantic models of all documents, and the AWS SDK.
    from polynya.cluster.network.start import Settings, make_network_agent
    from polynya.cluster.systemd import notifier
    from polynya.store.aws.auto_scaling import AutoScalingGroups

    if not cluster:
        raise usage_error("no cluster is named", "add `--cluster NAME`, as often as need be")
    if poll_seconds <= 0:
        raise usage_error("`--poll-seconds` is more than 0")
    output, stop = JsonOutput(context.options), threading.Event()
    settings = Settings(
        name=name or os.environ.get("POLYNYA_NODE_ID") or socket.gethostname(),
        clusters=cluster,
        poll_seconds=poll_seconds,
        metrics=metrics_sink(metrics, metrics_file),
    )
    agent = make_network_agent(
        settings,
        store_of(context, coordination)[0],
        AutoScalingGroups(AwsAccess()),
        clock=SystemClock(),
        notify=notifier(),
        tell=voice(output),
    )
    stopping = Stopping.on_signals(stop, output)
    agent.run(stop)
    return ExitCode.INTERRUPTED if stopping.interrupted else ExitCode.OK
