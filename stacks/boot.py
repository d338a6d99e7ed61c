"""What an instance runs at its first start: Polynya's own boot, or a script of the user's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from polynya_constructs.cluster.instance_types import Architecture, architecture_of
from polynya_constructs.nodes.access import Lakehouse
from polynya_constructs.nodes.boot import ServedProject, node_boot
from polynya_constructs.nodes.boot import network_agent_boot as boot_of_network_agent
from polynya_constructs.nodes.boot import server_boot as boot_of_server
from polynya_constructs.nodes.job_services import JobServices
from polynya_constructs.runtime_package import JobPackage, RuntimePackage
from stacks.package import PACKAGES
from stacks.settings.cluster import ClusterSettings, NetworkAgentSettings
from stacks.settings.cluster_checks import PROJECT

_PACKAGES_CONTEXT: Final = "polynya:packages"
"""Context value: the folder of built packages, if it is not the one of `make package`."""


@dataclass(frozen=True, slots=True)
class Boot:
    """User data, and the package that it fetches; a script of the user's fetches what it likes."""

    user_data: ec2.UserData
    package: RuntimePackage | None = None

    def grant(self, role: iam.Role) -> None:
        """Let the role of the nodes fetch the package."""
        if self.package:
            self.package.grant_read(role)


def cluster_boot(
    scope: Construct,
    *,
    settings: ClusterSettings,
    lakehouse: Lakehouse,
    log_group: logs.ILogGroup,
    only_named: bool = False,
    jobs: JobServices | None = None,
) -> Boot:
    """Return the boot of a cluster's nodes; their package is made below `scope`.

    `only_named`: another cluster of the stage has the same project. `jobs` are the services that
    the stage made for the work of its tasks.
    """
    if settings.boot:
        return Boot(boot_script(settings.boot))
    package = _package(scope, settings.architecture)
    user_data = node_boot(
        package=package,
        configuration=lakehouse.configuration,
        project=settings.project,
        target=settings.target,
        tasks_of=settings.name,
        only_named=only_named,
        stream=lakehouse.stream,
        log_group=log_group,
        job_code=[place for one in settings.emr_serverless for place in one.code],
        emr_jobs=() if jobs is None else jobs.emr_words,
        glue_job=None if jobs is None else jobs.glue_job,
    )
    return Boot(user_data, package)


def network_agent_boot(
    scope: Construct,
    *,
    settings: NetworkAgentSettings,
    configuration: s3.IBucket,
    clusters: Sequence[str],
    log_group: logs.ILogGroup,
    served: ServedProject | None = None,
    name: str = "",
) -> Boot:
    """Return the boot of the network agent; its package is made below `scope`.

    `served` is what a server of that name beside it serves.
    """
    if settings.boot:
        return Boot(boot_script(settings.boot))
    package = _package(scope, architecture_of(settings.instance_type))
    user_data = boot_of_network_agent(
        package=package,
        configuration=configuration,
        clusters=clusters,
        log_group=log_group,
        served=served,
        name=name,
    )
    return Boot(user_data, package)


def server_boot(
    scope: Construct,
    *,
    architecture: Architecture,
    served: ServedProject,
    name: str,
    log_group: logs.ILogGroup,
) -> Boot:
    """Return the boot of a server on an instance of its own; its package is below `scope`."""
    package = _package(scope, architecture)
    user_data = boot_of_server(package=package, served=served, name=name, log_group=log_group)
    return Boot(user_data, package)


def job_package(scope: Construct, id_: str, architecture: Architecture) -> JobPackage:
    """Return what jobs of EMR Serverless and Glue fetch."""
    folder = Path(scope.node.try_get_context(_PACKAGES_CONTEXT) or PACKAGES)
    return JobPackage(scope, id_, architecture=architecture, project=PROJECT, folder=folder)


def _package(scope: Construct, architecture: Architecture) -> RuntimePackage:
    return RuntimePackage(
        scope,
        "Runtime",
        architecture=architecture,
        project=PROJECT,
        folder=Path(scope.node.try_get_context(_PACKAGES_CONTEXT) or PACKAGES),
    )


def boot_script(path: str) -> ec2.UserData:
    """Return the script at a path below the project's folder, as it stands, as user data."""
    return ec2.UserData.custom((PROJECT / path).read_text(encoding="utf-8"))
