"""SageMaker on the lakehouse: the execution role that notebooks query with."""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from constructs import Construct

from polynya_constructs.grants import for_this_account
from polynya_constructs.nodes.access import Lakehouse
from polynya_constructs.query.athena import AthenaWorkGroup
from polynya_constructs.query.query_access import grant_queries


class NotebookRole(Construct):
    """A role for notebooks, jobs and Studio users of SageMaker that may query the tables.

    No Studio domain is made: a domain is one for many purposes, holds its users' homes on a file
    system that is paid and backed up as such, and in a VPC without internet needs four more
    endpoints. Name this role in the domain, user profile or notebook that there is. `role` is it.

    Example:
        >>> NotebookRole(stack, "Notebooks", workgroup=workgroup, lakehouse=lakehouse)
    """

    def __init__(
        self, scope: Construct, id_: str, *, workgroup: AthenaWorkGroup, lakehouse: Lakehouse
    ) -> None:
        """Create the role."""
        super().__init__(scope, id_)
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=for_this_account(self, "sagemaker.amazonaws.com"),
            description="Polynya: SageMaker notebooks on the lakehouse",
        )
        grant_queries(self.role, workgroup, lakehouse)
