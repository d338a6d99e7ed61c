"""What a stage costs a month when nothing runs, part by part, and what is paid on top of it."""

from __future__ import annotations

from pathlib import Path

from bench.strategies import FIXED_SIZE, ROOT_VOLUME_GIB, watching
from polynya_constructs.cluster.strategies import STRATEGIES, Strategy, StrategyName
from stacks.settings import prices
from stacks.settings.cluster import ClusterSettings
from stacks.settings.loader import load_deployment
from stacks.settings.network import (
    IDENTITY_ENDPOINT,
    SECRETS_ENDPOINT,
    SESSION_ENDPOINTS,
    STREAM_ENDPOINT,
)
from stacks.settings.stage import StageConfig

_AGENT_VOLUME_GIB = 20
_SERVER_VOLUME_GIB = 8
_JOB_VCPU, _JOB_GB = 4, 16
_TEN_MINUTES_A_MONTH = prices.HOURS_A_MONTH * 6
_IDLE_TASKS = 10
_CONFIGURATION = Path(__file__).resolve().parents[1] / "config"
_REASONS: dict[str, str] = {
    "autoscaling": "a node says when it is ready, and when it has drained",
    "glue": "every commit is a Glue call",
    "logs": "logs, and the metrics in them",
    STREAM_ENDPOINT: "nodes put their state there",
    SECRETS_ENDPOINT: "secrets are read there",
    IDENTITY_ENDPOINT: "the server asks there who signed a request",
    **dict.fromkeys(SESSION_ENDPOINTS, "people come to a node or the server by Session Manager"),
}


def _requests(*, lists: int = 0, reads: int = 0, writes: int = 0) -> float:
    """Dollars a month for so many requests to S3 in ten minutes."""
    dear = (lists + writes) * prices.S3_LIST_OR_WRITE_THOUSAND
    return (dear + reads * prices.S3_READ_THOUSAND) / 1000 * _TEN_MINUTES_A_MONTH


#: Counted at the in-memory store, 2026-11-28: one node that leads alone, and one more node, which
#: share 100 idle units; `docs/cluster.md`.
_FIRST_NODE = _requests(lists=325, reads=1684, writes=176)
_FURTHER_NODE = _requests(lists=128, reads=1408, writes=88)
#: A node reads the configuration every ten seconds.
_NODE_CONFIGURATION = _requests(lists=60, reads=60)
#: A node looks at each of its tasks every 30 seconds (`polynya.engine.listing`).
_TASK = _requests(lists=20)


#: In ten minutes: 20 looks at the configuration, and at ten tables; a lease is renewed 20 times.
_SERVER_DATASETS = 10
_SERVER = _requests(lists=20, reads=20 + 20 + 20 * _SERVER_DATASETS, writes=20)


def _server(*, own: bool, spot: bool = True) -> float:
    """Dollars a month for a server that nobody asks: an instance of its own or none, its watch."""
    watched = prices.METRIC_MONTH + prices.ALARM_MONTH + _SERVER
    if not own:
        return watched
    hour = prices.T4G_MICRO_HOUR * (1 - prices.SPOT_DISCOUNT if spot else 1)
    return hour * prices.HOURS_A_MONTH + _SERVER_VOLUME_GIB * prices.GP3_GIB_MONTH + watched


def _calls(seconds: float, *, gib: float = 0.25, every_minutes: int = 1) -> float:
    """Dollars a month for a function that runs so long, so often."""
    run = prices.LAMBDA_REQUEST + seconds * gib * prices.LAMBDA_ARM_GB_SECOND
    return run * 60 * prices.HOURS_A_MONTH / every_minutes


#: Assumed: how long a look takes, and how long the one in the network does with its connections.
_LOOK_SECONDS, _PROBE_SECONDS = 0.5, 2.0
_LOOK = _calls(_LOOK_SECONDS)
_PROBE = _calls(_LOOK_SECONDS + _PROBE_SECONDS) + _calls(_PROBE_SECONDS) - _LOOK


def parts() -> list[tuple[str, float, str]]:
    """Each part with its dollars a month, and what comes on top."""
    month = prices.HOURS_A_MONTH
    endpoint = prices.ENDPOINT_ZONE_HOUR * month
    agent = prices.T4G_SMALL_HOUR * month + _AGENT_VOLUME_GIB * prices.GP3_GIB_MONTH
    job = _JOB_VCPU * prices.EMR_VCPU_HOUR + _JOB_GB * prices.EMR_GB_HOUR
    requests = f"${prices.S3_READ_THOUSAND}"
    redshift = f"${8 * prices.REDSHIFT_UNIT_HOUR:.2f} an hour of queries at `base_capacity: 8`"
    return [
        ("an interface endpoint in a zone", endpoint, "$0.01 a GB"),
        ("`outbound: internet`", 0, f"${prices.PUBLIC_ADDRESS_HOUR} an hour of each node"),
        ("a key", prices.KEY_MONTH, "$0.03 for 10,000 requests"),
        ("the workload stream, a shard", prices.SHARD_HOUR * month, "$0.014 a million records"),
        ("an idle task on S3, each node that has it", _TASK, "more while files land"),
        ("requests of the first node of a cluster", _FIRST_NODE + _NODE_CONFIGURATION, ""),
        ("requests of each further node", _FURTHER_NODE + _NODE_CONFIGURATION, ""),
        (
            "`arrival_hints` of a cluster",
            _queue_that_is_read(),
            "about $1.40 a million objects that land, and $1 while objects land all the time",
        ),
        ("events that wake a cluster", 0, "about $1.40 a million objects that land"),
        ("a stream that wakes a cluster", _stream_that_wakes(), ""),
        (
            "looks at what waits for an empty cluster",
            _LOOK,
            f"${_PROBE:.2f} with brokers or databases, $0.04 for each secret",
        ),
        ("`athena`", 0, f"${prices.ATHENA_TB:.0f} a TB that is scanned"),
        ("`network_agent`", agent, "about $2.20 for each cluster: requests, a metric, an alarm"),
        (
            "`server`, an instance of its own",
            _server(own=True),
            f"${_server(own=True, spot=False):.2f} in all with `spot: false`",
        ),
        ("`server` on the instance of the network agent", _server(own=False), ""),
        (
            "`load_balancer` of a server",
            prices.LOAD_BALANCER_HOUR * month,
            f"${prices.LOAD_BALANCER_UNIT_HOUR} an hour of use",
        ),
        *[_cluster(strategy) for strategy in STRATEGIES.values()],
        ("`lake_formation`", 0, ""),
        ("`redshift`", prices.SECRET_MONTH, redshift),
        ("`emr_serverless`", 0, f"${job:.2f} an hour of {_JOB_VCPU} vCPU and {_JOB_GB} GB"),
        ("`firehose`", 0, f"${prices.FIREHOSE_GB} a GB, each record rounded up to 5 KB"),
        ("`quicksight`", 0, f"${prices.QUICKSIGHT_AUTHOR_MONTH:.0f} a month for each author"),
        ("`sagemaker`", 0, "what its notebooks cost"),
        ("`snowflake`, `databricks`", 0, f"{requests} a thousand reads; what the vendor bills"),
        ("`mirrors` with Redshift, or with secrets", endpoint, "in each zone, the same for each"),
    ]


def _queue_that_is_read() -> float:
    """What Lambda asks a queue while nothing comes: five pollers, a request of 20 s each."""
    return 5 * 3 * 60 * prices.HOURS_A_MONTH * prices.SQS_REQUEST


def _stream_that_wakes() -> float:
    """What the first stream adds to a cluster; another one has no metric of the group's size."""
    low_cost = STRATEGIES[StrategyName.LOW_COST]
    return watching(low_cost, streams=1) - watching(low_cost)


def _cluster(strategy: Strategy) -> tuple[str, float, str]:
    """A cluster at its minimum; that of the one that does not scale is the one simulated."""
    fixed = strategy.name is StrategyName.NO_SCALING
    nodes = FIXED_SIZE if fixed else strategy.minimum
    on_demand = min(strategy.on_demand_base, nodes)
    dollars = prices.node_hours(
        spot=(nodes - on_demand) * prices.HOURS_A_MONTH,
        on_demand=on_demand * prices.HOURS_A_MONTH,
        root_volume_gib=ROOT_VOLUME_GIB,
    )
    of = f"{nodes} node{'s' * (nodes != 1)}"
    return (
        f"cluster `{strategy.name}`, {of}",
        dollars + watching(strategy, nodes=nodes > 0),
        "more nodes",
    )


def idle(stage: StageConfig) -> list[tuple[str, float, str]]:
    """What a stage costs a month while nothing lands: each line with its dollars and its reason."""
    month = prices.HOURS_A_MONTH
    zones = stage.network.endpoint_zones or stage.network.zone_count
    hour = prices.ENDPOINT_ZONE_HOUR * zones * month
    lines = [
        (f"endpoint `{name}`, {zones} zone{'s' * (zones > 1)}", hour, _REASONS[name])
        for name in stage.endpoints
    ]
    lines.append(("key of the data", prices.KEY_MONTH, "encrypts buckets, stream and results"))
    if stage.stream.enabled:
        shards = stage.stream.shards * prices.SHARD_HOUR * month
        lines.append(("workload stream", shards, "nodes tell each other their state"))
    if stage.network_agent:
        agent = prices.T4G_SMALL_HOUR * month + _AGENT_VOLUME_GIB * prices.GP3_GIB_MONTH
        lines.append(("network agent", agent, "its instance and its disk"))
    if server := stage.server:
        dollars = _server(own=server.node == "own", spot=server.spot)
        lines.append(("server", dollars, "its instance, disk, alarm and requests"))
        if server.load_balancer:
            lines.append(("load balancer", prices.LOAD_BALANCER_HOUR * month, "before the server"))
    for cluster in stage.clusters:
        lines += _idle_cluster(cluster, streams=len(stage.consumption.held_back))
    return lines


def _idle_cluster(cluster: ClusterSettings, *, streams: int) -> list[tuple[str, float, str]]:
    capacity, strategy = cluster.capacity, STRATEGIES[cluster.strategy]
    on_demand = min(capacity.on_demand_base, capacity.minimum)
    nodes = prices.node_hours(
        spot=(capacity.minimum - on_demand) * prices.HOURS_A_MONTH,
        on_demand=on_demand * prices.HOURS_A_MONTH,
        root_volume_gib=cluster.root_volume_gib,
    )
    topic = prices.KEY_MONTH if cluster.notify else 0.0
    watched = topic + watching(
        strategy, nodes=capacity.minimum > 0, streams=streams, looks=cluster.looks_at_sources
    )
    why = "the nodes that always run" if capacity.minimum else "no node while nothing lands"
    lines = [
        (f"cluster `{cluster.name}`, nodes: {capacity.minimum}", nodes, why),
        (f"watching `{cluster.name}`", watched, "alarms by metric, fallback's metric, dashboard"),
    ]
    if capacity.minimum:
        requests = _idle_requests(capacity.minimum)
        of = f"requests of `{cluster.name}` to S3, {_IDLE_TASKS} tasks"
        lines.append((of, requests, "looks at what landed, coordination, configuration"))
    return lines


def _idle_requests(nodes: int) -> float:
    """What nodes that share idle tasks ask of S3; each of them has units of all tasks."""
    coordination = _FIRST_NODE + (nodes - 1) * _FURTHER_NODE
    return coordination + nodes * (_NODE_CONFIGURATION + _IDLE_TASKS * _TASK)


def main() -> None:
    """Print the tables of docs/deploy.md."""
    print(f"us-east-1, {prices.NODE}, prices of {prices.AS_OF}\n")
    print("| part | a month | on top |")
    print("|---|---|---|")
    for name, dollars, on_top in parts():
        shown = f"${dollars:.0f}" if dollars >= 1 or not dollars else f"${dollars:.2f}"
        print(f"| {name} | {shown} | {on_top or 'nothing'} |")
    for stage in load_deployment(_CONFIGURATION, environment={}).stages:
        lines = idle(stage)
        print(f"\n`{stage.name}`, while nothing lands:\n\n| line | a month | why |\n|---|---|---|")
        for name, dollars, why in lines:
            print(f"| {name} | ${dollars:.2f} | {why} |")
        print(f"| **`{stage.name}`** | **${sum(line[1] for line in lines):.2f}** | |")
