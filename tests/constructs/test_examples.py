"""The example of every construct is synthesized, in one stack with what examples stand on."""

from __future__ import annotations

import doctest
import json
from pathlib import Path
from typing import Any

import pytest

import polynya_constructs

pytestmark = pytest.mark.synth

ROOT = Path(__file__).resolve().parents[2]


def constructs() -> dict[str, type]:
    """Every public construct by its name."""
    from constructs import Construct

    public = {name: getattr(polynya_constructs, name) for name in polynya_constructs.__all__}
    return {
        name: each
        for name, each in public.items()
        if isinstance(each, type) and issubclass(each, Construct)
    }


def example(of: type) -> str:
    """The code of the example in a docstring."""
    lines = doctest.DocTestParser().get_examples(of.__doc__ or "")
    return "".join(line.source for line in lines)


def given(stack: Any, packages: Path) -> dict[str, Any]:
    """What the examples take for granted."""
    from aws_cdk import aws_ec2 as ec2
    from aws_cdk import aws_kms as kms
    from aws_cdk import aws_s3 as s3

    from polynya_constructs import (
        STRATEGIES,
        AccessLogBucket,
        AthenaWorkGroup,
        Capacity,
        Cluster,
        FiguresWithoutNodes,
        Lakehouse,
        PrivateVpc,
        Scaling,
        SpotFallback,
        StrategyName,
    )

    zones = ["eu-west-1a", "eu-west-1b", "eu-west-1c"]
    vpc = PrivateVpc(stack, "GivenVpc", cidr="10.9.0.0/16", availability_zones=zones).vpc
    key, results = kms.Key(stack, "GivenKey"), s3.Bucket(stack, "GivenResults")
    buckets = [s3.Bucket(stack, f"Given{name}") for name in ("Land", "Config", "Ware")]
    landing, configuration, warehouse = buckets
    boot, latency = ec2.UserData.for_linux(), STRATEGIES[StrategyName.LOW_LATENCY]
    cluster = Cluster(
        stack, "GivenCluster", name="given", vpc=vpc, strategy=latency,
        capacity=Capacity.of(latency, maximum=2), user_data=boot,
    )  # fmt: skip
    return {
        "stack": stack, "vpc": vpc, "zones": zones, "key": key, "results": results, "boot": boot,
        "landing": landing, "warehouse": warehouse, "project": ROOT, "packages": packages,
        "access_logs": AccessLogBucket(stack, "GivenLogs"), "cluster": cluster,
        "scaling": Scaling(
            stack, "GivenScaling", group=cluster.group, cluster="given", strategy=latency
        ),
        "fallback": SpotFallback(stack, "GivenFallback", cluster=cluster),
        "figures": FiguresWithoutNodes(stack, "GivenFigures", cluster=cluster),
        "lakehouse": Lakehouse(
            landing=landing, configuration=configuration, warehouse=warehouse, stream=None,
            key=key, databases=("shop",),
        ),
        "workgroup": AthenaWorkGroup(
            stack, "GivenAthena", name="given", results=results, encryption_key=key
        ),
    }  # fmt: skip


def test_every_construct_has_an_example_that_synthesizes(tmp_path: Path) -> None:
    import aws_cdk as cdk

    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    app = cdk.App(outdir=str(tmp_path / "out"), context=context)
    names = {name: getattr(polynya_constructs, name) for name in polynya_constructs.__all__}
    found = constructs()
    assert len(found) > 20
    for name, construct in found.items():
        code = example(construct)
        assert f"{name}(" in code, f"{name} has no example"
    stack = cdk.Stack(app, "Examples", env=cdk.Environment(region="eu-west-1"))
    scope = names | given(stack, tmp_path)
    for construct in found.values():
        exec(example(construct), dict(scope))
    app.synth()


def test_an_example_that_is_wrong_is_seen(tmp_path: Path) -> None:
    import aws_cdk as cdk

    stack = cdk.Stack(cdk.App(outdir=str(tmp_path)), "Examples")
    wrong = example(constructs()["WorkloadStream"]).replace("encryption_key=key", "shards=0")

    with pytest.raises(TypeError):
        exec(wrong, {"stack": stack, "WorkloadStream": constructs()["WorkloadStream"]})
