"""The storage stack by intent: nothing public, everything encrypted, nothing lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [
    pytest.mark.synth,
    pytest.mark.skipif(shutil.which("node") is None, reason="the CDK library needs Node.js"),
]


def test_the_stack_keeps_the_rules_of_the_house() -> None:
    """One test, one synth: starting the CDK library costs some seconds."""
    import aws_cdk as cdk
    from aws_cdk.assertions import Match, Template

    from app import build_app

    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    application = build_app(cdk.App(context=context))
    stack = application.node.find_child("PolynyaStorage")
    template = Template.from_stack(stack)

    assert stack.termination_protection
    buckets = template.find_resources("AWS::S3::Bucket")
    # A changed logical id replaces a bucket: this list changes only on purpose.
    assert sorted(buckets) == [
        "ConfigurationBucket4C9EE6EF", "LandingBucket6D60388F", "WarehouseBucket56A35794",
    ]  # fmt: skip
    for bucket in buckets.values():
        assert bucket["DeletionPolicy"] == "Retain"
        assert bucket["UpdateReplacePolicy"] == "Retain"
        properties = bucket["Properties"]
        assert set(properties["PublicAccessBlockConfiguration"].values()) == {True}
        assert properties["VersioningConfiguration"] == {"Status": "Enabled"}
        (rule,) = properties["BucketEncryption"]["ServerSideEncryptionConfiguration"]
        assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
    template.resource_count_is("AWS::S3::BucketPolicy", 3)
    template.all_resources_properties(
        "AWS::S3::BucketPolicy",
        {
            "PolicyDocument": {
                "Statement": Match.array_with(
                    [
                        Match.object_like(
                            {
                                "Effect": "Deny",
                                "Action": "s3:*",
                                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
                            }
                        )
                    ]
                )
            }
        },
    )
    template.has_resource_properties("AWS::KMS::Key", {"EnableKeyRotation": True})
