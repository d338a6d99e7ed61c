"""How people query the lakehouse: an Athena workgroup with a bound on what a query may scan."""

from __future__ import annotations

from aws_cdk import aws_athena as athena
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

_LEAST_BYTES = 10_000_000
"""Athena takes no lower limit, and bills no less for a query."""


class AthenaWorkGroup(Construct):
    """A workgroup whose settings clients cannot change: where results go, their key, a limit.

    `workgroup` is the workgroup; `name`, `results` and `encryption_key` are what was given.

    Example:
        >>> AthenaWorkGroup(stack, "Athena", name="shop", results=results, encryption_key=key)
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        name: str,
        results: s3.IBucket,
        encryption_key: kms.IKey,
        scan_limit_bytes: int = 100_000_000_000,
    ) -> None:
        """Create the workgroup.

        Args:
            scope: the parent.
            id_: unique below the parent.
            name: unique in the account and region.
            results: the bucket of the results.
            encryption_key: encrypts them.
            scan_limit_bytes: a query that scans more is ended; default 100 GB, about half a dollar.

        Raises:
            ValueError: for a limit below 10 MB.
        """
        super().__init__(scope, id_)
        if scan_limit_bytes < _LEAST_BYTES:
            raise ValueError(f"scan_limit_bytes is {scan_limit_bytes}; Athena wants {_LEAST_BYTES}")
        self.name, self.results, self.encryption_key = name, results, encryption_key
        self.workgroup = athena.CfnWorkGroup(
            self,
            "WorkGroup",
            name=name,
            description="Polynya: queries of the lakehouse",
            recursive_delete_option=True,  # its history of queries; results lie in the bucket
            work_group_configuration=athena.CfnWorkGroup.WorkGroupConfigurationProperty(
                enforce_work_group_configuration=True,
                publish_cloud_watch_metrics_enabled=True,
                bytes_scanned_cutoff_per_query=scan_limit_bytes,
                engine_version=athena.CfnWorkGroup.EngineVersionProperty(
                    selected_engine_version="Athena engine version 3"
                ),
                result_configuration=athena.CfnWorkGroup.ResultConfigurationProperty(
                    output_location=f"s3://{results.bucket_name}/",
                    encryption_configuration=athena.CfnWorkGroup.EncryptionConfigurationProperty(
                        encryption_option="SSE_KMS", kms_key=encryption_key.key_arn
                    ),
                ),
            ),
        )
