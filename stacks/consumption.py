"""How the lakehouse is queried."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from polynya_constructs.consumption import AthenaWorkGroup


class ConsumptionStack(cdk.Stack):
    """An Athena workgroup; `workgroup` is it."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        name: str,
        key: kms.IKey,
        access_logs: s3.IBucket | None = None,
        **options: Any,
    ) -> None:
        """Create the stack; `options` are those of `cdk.Stack`."""
        super().__init__(scope, id_, **options)
        athena = AthenaWorkGroup(
            self, "Athena", name=name, encryption_key=key, access_logs=access_logs
        )
        self.workgroup = athena.workgroup
        cdk.CfnOutput(self, "AthenaWorkGroup", value=name)
