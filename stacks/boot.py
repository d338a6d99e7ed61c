"""What an instance runs at its first start."""

from __future__ import annotations

from aws_cdk import aws_ec2 as ec2

from stacks.settings.cluster_checks import PROJECT


def boot_script(path: str) -> ec2.UserData:
    """Return the script at a path below the project's folder, as it stands, as user data."""
    return ec2.UserData.custom((PROJECT / path).read_text(encoding="utf-8"))
