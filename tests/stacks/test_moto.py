"""The templates load into a stand-in for AWS, which then has what the runtime needs."""

from __future__ import annotations

from typing import Any

import pytest

from tests.aws import aws_clients
from tests.stacks.deploy_to_moto import NotLoadedError, deploy
from tests.stacks.synthesis import Assembly

pytestmark = [pytest.mark.synth, pytest.mark.filterwarnings("ignore:Tried to parse")]


def test_a_stage_loads_and_has_what_the_runtime_needs(assembly: Assembly) -> None:
    with aws_clients() as client:
        network = deploy(client, "network", assembly.templates["dev/Network"])
        storage = deploy(client, "storage", assembly.templates["dev/Storage"])

        ec2 = client("ec2")
        in_vpc = [{"Name": "vpc-id", "Values": [network["VpcId"]]}]
        subnets = ec2.describe_subnets(Filters=in_vpc)["Subnets"]
        assert {s["SubnetId"] for s in subnets} == set(network["PrivateSubnetIds"].split(","))
        assert len({s["AvailabilityZone"] for s in subnets}) == 2
        assert [s["CidrBlock"] for s in subnets] == ["10.40.0.0/20", "10.40.16.0/20"]
        endpoints = ec2.describe_vpc_endpoints(Filters=in_vpc)["VpcEndpoints"]
        kinds = sorted(e["VpcEndpointType"] for e in endpoints)
        assert kinds == ["Gateway", *["Interface"] * 8]

        s3 = client("s3")
        for name in ("LandingBucketName", "ConfigurationBucketName", "WarehouseBucketName"):
            encryption = s3.get_bucket_encryption(Bucket=storage[name])
            (rule,) = encryption["ServerSideEncryptionConfiguration"]["Rules"]
            by_default = rule["ApplyServerSideEncryptionByDefault"]
            assert by_default["KMSMasterKeyID"] == storage["DataKeyArn"]
        stream = client("kinesis").describe_stream_summary(
            StreamName=storage["WorkloadStreamName"]
        )["StreamDescriptionSummary"]
        assert stream["OpenShardCount"] == 1
        assert client("glue").get_database(Name="shop")["Database"]["Name"] == "shop"


def test_a_type_that_moto_skips_in_silence_is_an_error() -> None:
    template: dict[str, Any] = {
        "Resources": {"Group": {"Type": "AWS::Athena::WorkGroup", "Properties": {"Name": "w"}}}
    }

    with (
        aws_clients() as client,
        pytest.raises(NotLoadedError, match=r"Group \(AWS::Athena::WorkGroup\)"),
    ):
        deploy(client, "planted", template)
