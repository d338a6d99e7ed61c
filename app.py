"""The CDK app: `make synth` writes its CloudFormation templates.

So far it holds the storage only. Network, cluster and consumption stacks are not there yet.
"""

from __future__ import annotations

import aws_cdk as cdk

from stacks.storage import StorageStack


def build_app(app: cdk.App) -> cdk.App:
    """Add the stacks to `app`; they name no account and no region, so they synthesize anywhere."""
    StorageStack(app, "PolynyaStorage", description="Polynya: key and buckets")
    cdk.Tags.of(app).add("application", "polynya")
    return app


if __name__ == "__main__":
    build_app(cdk.App()).synth()
