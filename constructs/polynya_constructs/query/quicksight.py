"""QuickSight on the Athena workgroup: a data source, and the role by which it queries."""

from __future__ import annotations

import re
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_quicksight as quicksight
from constructs import Construct

from polynya_constructs.grants import for_this_account
from polynya_constructs.nodes.access import Lakehouse
from polynya_constructs.patterns import QUICKSIGHT_PRINCIPAL
from polynya_constructs.query.athena import AthenaWorkGroup
from polynya_constructs.query.query_access import grant_queries

# What QuickSight calls ownership of a data source (QuickSight API Reference, "Permissions").
_OWNERSHIP: Final = (
    "quicksight:DeleteDataSource",
    "quicksight:DescribeDataSource",
    "quicksight:DescribeDataSourcePermissions",
    "quicksight:PassDataSource",
    "quicksight:UpdateDataSource",
    "quicksight:UpdateDataSourcePermissions",
)


class QuickSightSource(Construct):
    """A data source that its owner makes datasets and dashboards of.

    The account has to be subscribed to QuickSight before: CloudFormation cannot do it. `source`
    and `role` are what was made.

    Example:
        >>> owner = "arn:aws:quicksight:eu-west-1:123456789012:user/default/ana"
        >>> QuickSightSource(
        ...     stack,
        ...     "QuickSight",
        ...     name="shop",
        ...     owner=owner,
        ...     workgroup=workgroup,
        ...     lakehouse=lakehouse,
        ... )
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        name: str,
        owner: str,
        workgroup: AthenaWorkGroup,
        lakehouse: Lakehouse,
    ) -> None:
        """Create them.

        Args:
            scope: the parent.
            id_: unique below the parent.
            name: of the data source.
            owner: ARN of a QuickSight user or group; nobody else sees it at first.
            workgroup: in which it queries.
            lakehouse: whose tables it reads.

        Raises:
            ValueError: when `owner` is not an ARN of a QuickSight user or group.
        """
        super().__init__(scope, id_)
        if not re.fullmatch(QUICKSIGHT_PRINCIPAL, owner):
            raise ValueError(f"owner is {owner!r}; write the ARN of a QuickSight user or group")
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=for_this_account(self, "quicksight.amazonaws.com"),
            description=f"Polynya: QuickSight data source {name}",
        )
        grant_queries(self.role, workgroup, lakehouse)
        of = quicksight.CfnDataSource
        self.source = of(
            self,
            "Source",
            aws_account_id=cdk.Stack.of(self).account,
            data_source_id=name,
            name=name,
            type="ATHENA",
            data_source_parameters=of.DataSourceParametersProperty(
                athena_parameters=of.AthenaParametersProperty(
                    work_group=workgroup.name, role_arn=self.role.role_arn
                )
            ),
            permissions=[of.ResourcePermissionProperty(principal=owner, actions=list(_OWNERSHIP))],
        )
        # QuickSight tries the connection when the source is made.
        self.source.node.add_dependency(self.role, workgroup.workgroup)
