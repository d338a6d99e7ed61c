"""The public face of the construct library, and that it starts no Node.js unasked."""

from __future__ import annotations

import pytest

import polynya_constructs
from tests.repo.public import loads, promised, undocumented


def test_the_public_names_are_these():
    assert polynya_constructs.__all__ == [
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


def test_every_public_name_is_promised_to_type_checkers():
    assert promised(polynya_constructs) == {*polynya_constructs.__all__}
    assert {*polynya_constructs.__all__} <= {*dir(polynya_constructs)}


@pytest.mark.synth
def test_every_public_name_is_there_and_documented():
    assert undocumented(polynya_constructs) == []


def test_importing_the_library_starts_no_node():
    assert loads("import polynya_constructs", ("aws_cdk", "constructs", "jsii")) == []
