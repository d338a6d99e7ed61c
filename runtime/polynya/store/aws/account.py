"""Questions about an AWS account: what it may run at once, and who decides who reads tables."""

from __future__ import annotations

from typing import Any, Final

from polynya.model.config.aws import AwsAccess
from polynya.store.aws.clients import AWS_ERRORS, client, code_of, explained, is_transient
from polynya.store.retry import Retry

#: Virtual processors of standard instance types (Service Quotas, Amazon EC2).
SPOT_QUOTA: Final = "L-34B43A08"
ON_DEMAND_QUOTA: Final = "L-1216C47A"

_EVERYONE: Final = "IAM_ALLOWED_PRINCIPALS"


def vcpu_quota(access: AwsAccess, code: str, retry: Retry) -> int:
    """How many virtual processors may run at once, by the code of the quota.

    Raises DependencyError.
    """
    quotas = client("service-quotas", access)
    of = {"ServiceCode": "ec2", "QuotaCode": code}

    def ask() -> dict[str, Any]:
        try:
            found: dict[str, Any] = quotas.get_service_quota(**of)
        except AWS_ERRORS as error:
            # A quota that nobody ever had changed is known by its default only.
            if code_of(error) != "NoSuchResourceException":
                raise
            found = quotas.get_aws_default_service_quota(**of)
        return found

    try:
        return int(retry.run(ask, is_transient)["Quota"]["Value"])
    except AWS_ERRORS as error:
        grant = "servicequotas:GetServiceQuota and servicequotas:GetAWSDefaultServiceQuota"
        raise explained(
            error, action="read the quota", resource=f"EC2 {code}", grant=grant
        ) from error


def new_tables_open_to_iam(access: AwsAccess, retry: Retry) -> bool:
    """Whether IAM alone decides who reads a new table, as in a new account.

    Raises DependencyError.
    """
    lake = client("lakeformation", access)
    try:
        answer = retry.run(lake.get_data_lake_settings, is_transient)
    except AWS_ERRORS as error:
        raise explained(
            error,
            action="read the settings of Lake Formation",
            resource="AWS Lake Formation",
            grant="lakeformation:GetDataLakeSettings",
        ) from error
    return any(
        default["Principal"]["DataLakePrincipalIdentifier"] == _EVERYONE
        for default in answer["DataLakeSettings"].get("CreateTableDefaultPermissions", [])
    )
