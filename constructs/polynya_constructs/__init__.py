"""Reusable AWS CDK constructs of Polynya; the stacks in `stacks/` only wire them together.

The names of `__all__` are public; everything else may move.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from polynya_constructs.buckets import AccessLogBucket as AccessLogBucket
    from polynya_constructs.buckets import DataBucket as DataBucket
    from polynya_constructs.catalog import LakehouseCatalog as LakehouseCatalog
    from polynya_constructs.cluster.arrival_hints import ArrivalHints as ArrivalHints
    from polynya_constructs.cluster.capacity import Capacity as Capacity
    from polynya_constructs.cluster.capacity import CapacityError as CapacityError
    from polynya_constructs.cluster.capacity import SpotAllocation as SpotAllocation
    from polynya_constructs.cluster.cluster import Cluster as Cluster
    from polynya_constructs.cluster.figures import FiguresWithoutNodes as FiguresWithoutNodes
    from polynya_constructs.cluster.instance_types import Architecture as Architecture
    from polynya_constructs.cluster.observability import (
        ClusterObservability as ClusterObservability,
    )
    from polynya_constructs.cluster.scaling import Scaling as Scaling
    from polynya_constructs.cluster.schedule import Predictive as Predictive
    from polynya_constructs.cluster.schedule import ScheduledBounds as ScheduledBounds
    from polynya_constructs.cluster.source_watch import SourceWatch as SourceWatch
    from polynya_constructs.cluster.spot_fallback import SpotFallback as SpotFallback
    from polynya_constructs.cluster.strategies import STRATEGIES as STRATEGIES
    from polynya_constructs.cluster.strategies import Strategy as Strategy
    from polynya_constructs.cluster.strategies import StrategyName as StrategyName
    from polynya_constructs.cluster.wake import Wake as Wake
    from polynya_constructs.coordination import (
        enforce_conditional_writes as enforce_conditional_writes,
    )
    from polynya_constructs.firehose_landing import FirehoseLanding as FirehoseLanding
    from polynya_constructs.network import PrivateVpc as PrivateVpc
    from polynya_constructs.network import VpcEndpoints as VpcEndpoints
    from polynya_constructs.network_agent import NetworkAgent as NetworkAgent
    from polynya_constructs.nodes.access import Lakehouse as Lakehouse
    from polynya_constructs.nodes.boot import node_boot as node_boot
    from polynya_constructs.nodes.machine_image import PinnedImage as PinnedImage
    from polynya_constructs.nodes.template import NodeTemplate as NodeTemplate
    from polynya_constructs.notifications import Notifications as Notifications
    from polynya_constructs.query.athena import AthenaWorkGroup as AthenaWorkGroup
    from polynya_constructs.query.databricks import DatabricksAccess as DatabricksAccess
    from polynya_constructs.query.emr_serverless import EmrServerlessSpark as EmrServerlessSpark
    from polynya_constructs.query.lake_formation import (
        LakeFormationGovernance as LakeFormationGovernance,
    )
    from polynya_constructs.query.lake_formation import LakeGrant as LakeGrant
    from polynya_constructs.query.notebook_role import NotebookRole as NotebookRole
    from polynya_constructs.query.outside_reader import OutsideTrust as OutsideTrust
    from polynya_constructs.query.query_access import QueryAccess as QueryAccess
    from polynya_constructs.query.quicksight import QuickSightSource as QuickSightSource
    from polynya_constructs.query.redshift import RedshiftServerless as RedshiftServerless
    from polynya_constructs.query.snowflake import SnowflakeAccess as SnowflakeAccess
    from polynya_constructs.runtime_package import RuntimePackage as RuntimePackage
    from polynya_constructs.server import ServerBalancer as ServerBalancer
    from polynya_constructs.server import ServerNode as ServerNode
    from polynya_constructs.workload_stream import WorkloadStream as WorkloadStream

__all__ = [
    "STRATEGIES",
    "AccessLogBucket",
    "Architecture",
    "ArrivalHints",
    "AthenaWorkGroup",
    "Capacity",
    "CapacityError",
    "Cluster",
    "ClusterObservability",
    "DataBucket",
    "DatabricksAccess",
    "EmrServerlessSpark",
    "FiguresWithoutNodes",
    "FirehoseLanding",
    "LakeFormationGovernance",
    "LakeGrant",
    "Lakehouse",
    "LakehouseCatalog",
    "NetworkAgent",
    "NodeTemplate",
    "NotebookRole",
    "Notifications",
    "OutsideTrust",
    "PinnedImage",
    "Predictive",
    "PrivateVpc",
    "QueryAccess",
    "QuickSightSource",
    "RedshiftServerless",
    "RuntimePackage",
    "Scaling",
    "ScheduledBounds",
    "ServerBalancer",
    "ServerNode",
    "SnowflakeAccess",
    "SourceWatch",
    "SpotAllocation",
    "SpotFallback",
    "Strategy",
    "StrategyName",
    "VpcEndpoints",
    "Wake",
    "WorkloadStream",
    "enforce_conditional_writes",
    "node_boot",
]

_HOMES: Final = {
    "polynya_constructs.buckets": (
        "AccessLogBucket",
        "DataBucket",
    ),
    "polynya_constructs.catalog": ("LakehouseCatalog",),
    "polynya_constructs.cluster.arrival_hints": ("ArrivalHints",),
    "polynya_constructs.cluster.capacity": (
        "Capacity",
        "CapacityError",
        "SpotAllocation",
    ),
    "polynya_constructs.cluster.cluster": ("Cluster",),
    "polynya_constructs.cluster.figures": ("FiguresWithoutNodes",),
    "polynya_constructs.cluster.instance_types": ("Architecture",),
    "polynya_constructs.cluster.observability": ("ClusterObservability",),
    "polynya_constructs.cluster.scaling": ("Scaling",),
    "polynya_constructs.cluster.schedule": (
        "Predictive",
        "ScheduledBounds",
    ),
    "polynya_constructs.cluster.source_watch": ("SourceWatch",),
    "polynya_constructs.cluster.spot_fallback": ("SpotFallback",),
    "polynya_constructs.cluster.strategies": (
        "STRATEGIES",
        "Strategy",
        "StrategyName",
    ),
    "polynya_constructs.cluster.wake": ("Wake",),
    "polynya_constructs.coordination": ("enforce_conditional_writes",),
    "polynya_constructs.firehose_landing": ("FirehoseLanding",),
    "polynya_constructs.network": (
        "PrivateVpc",
        "VpcEndpoints",
    ),
    "polynya_constructs.network_agent": ("NetworkAgent",),
    "polynya_constructs.nodes.access": ("Lakehouse",),
    "polynya_constructs.nodes.boot": ("node_boot",),
    "polynya_constructs.nodes.machine_image": ("PinnedImage",),
    "polynya_constructs.nodes.template": ("NodeTemplate",),
    "polynya_constructs.notifications": ("Notifications",),
    "polynya_constructs.query.athena": ("AthenaWorkGroup",),
    "polynya_constructs.query.databricks": ("DatabricksAccess",),
    "polynya_constructs.query.emr_serverless": ("EmrServerlessSpark",),
    "polynya_constructs.query.lake_formation": (
        "LakeFormationGovernance",
        "LakeGrant",
    ),
    "polynya_constructs.query.notebook_role": ("NotebookRole",),
    "polynya_constructs.query.outside_reader": ("OutsideTrust",),
    "polynya_constructs.query.query_access": ("QueryAccess",),
    "polynya_constructs.query.quicksight": ("QuickSightSource",),
    "polynya_constructs.query.redshift": ("RedshiftServerless",),
    "polynya_constructs.query.snowflake": ("SnowflakeAccess",),
    "polynya_constructs.runtime_package": ("RuntimePackage",),
    "polynya_constructs.server": (
        "ServerBalancer",
        "ServerNode",
    ),
    "polynya_constructs.workload_stream": ("WorkloadStream",),
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first asked for: the CDK starts a Node.js process."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
