"""What a stage costs a month when nothing runs, part by part, and what is paid on top of it."""

from __future__ import annotations

from bench.simulated import prices
from bench.strategies import FIXED_SIZE, ROOT_VOLUME_GIB, watching
from polynya_constructs.cluster.strategies import STRATEGIES, Strategy, StrategyName
from stacks.settings.network import NEEDED_ENDPOINTS

_AGENT_VOLUME_GIB = 20
_JOB_VCPU, _JOB_GB = 4, 16


def parts() -> list[tuple[str, float, str]]:
    """Each part with its dollars a month, and what comes on top."""
    month = prices.HOURS_A_MONTH
    endpoints = len(NEEDED_ENDPOINTS) * prices.ENDPOINT_ZONE_HOUR * month
    agent = prices.T4G_SMALL_HOUR * month + _AGENT_VOLUME_GIB * prices.GP3_GIB_MONTH
    job = _JOB_VCPU * prices.EMR_VCPU_HOUR + _JOB_GB * prices.EMR_GB_HOUR
    redshift = f"${8 * prices.REDSHIFT_UNIT_HOUR:.2f} an hour of queries at `base_capacity: 8`"
    zones = [
        (f"endpoints in {count} zone{'s' * (count > 1)}", endpoints * count, "$0.01 a GB")
        for count in (1, 2, 3)
    ]
    return [
        *zones,
        ("storage: a key, a shard", prices.KEY_MONTH + prices.SHARD_HOUR * month, "data by GB"),
        ("`athena`", 0, f"${prices.ATHENA_TB:.0f} a TB that is scanned"),
        ("`network_agent`", agent, ""),
        *[_cluster(strategy) for strategy in STRATEGIES.values()],
        ("`lake_formation`", 0, ""),
        ("`redshift`", prices.SECRET_MONTH, redshift),
        ("`emr_serverless`", 0, f"${job:.2f} an hour of {_JOB_VCPU} vCPU and {_JOB_GB} GB"),
        ("`firehose`", 0, f"${prices.FIREHOSE_GB} a GB, each record rounded up to 5 KB"),
        ("`quicksight`", 0, f"${prices.QUICKSIGHT_AUTHOR_MONTH:.0f} a month for each author"),
        ("`sagemaker`", 0, "what its notebooks cost"),
    ]


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
    return f"cluster `{strategy.name}`, {of}", dollars + watching(strategy), "more nodes"


def main() -> None:
    """Print the table of docs/deploy.md."""
    print(f"us-east-1, {prices.NODE}, prices of {prices.AS_OF}\n")
    print("| part | a month | on top |")
    print("|---|---|---|")
    for name, dollars, on_top in parts():
        shown = f"${dollars:.0f}" if dollars >= 1 or not dollars else f"${dollars:.2f}"
        print(f"| {name} | {shown} | {on_top or 'nothing'} |")
