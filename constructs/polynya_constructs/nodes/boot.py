"""What an instance runs at its first start so that it becomes a node."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kinesis as kinesis
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3

from polynya_constructs.coordination import COORDINATION_PREFIX
from polynya_constructs.packaging.package import PYTHON
from polynya_constructs.runtime_package import RuntimePackage

_SCRIPT: Final = Path(__file__).with_name("boot.sh")


def node_boot(
    *,
    package: RuntimePackage,
    configuration: s3.IBucket,
    project: str,
    stream: kinesis.IStream | None,
    log_group: logs.ILogGroup,
    target: str | None = None,
    tasks_of: str | None = None,
    only_named: bool = False,
    ready_within: cdk.Duration | None = None,
    job_code: Sequence[str] = (),
    emr_jobs: Sequence[str] = (),
    glue_job: str | None = None,
) -> ec2.UserData:
    """Return user data that fetches and verifies the runtime and starts its agent under systemd.

    It runs on Amazon Linux 2023 without internet access; who and where the node is, it learns from
    the instance's metadata and tags. It shares the tasks with the other nodes of its cluster, by
    objects below the coordination prefix of the configuration bucket. The launch hook is completed
    when the agent is ready, and abandoned when anything fails, with the reason in the log group.

    Args:
        package: what is fetched; let the role of the nodes read it.
        configuration: the bucket of the tasks, in which nodes agree on who does what.
        project: prefix of the tasks in it.
        stream: where the agent tells its state; None: nowhere.
        log_group: where it logs; let the role write to it.
        target: target of the project; default: its only one.
        tasks_of: name by which tasks name the cluster; default: that of its group.
        only_named: other clusters have tasks of the project, too.
        ready_within: how long the agent may take for its first reading of the configuration;
            default 6 minutes. The launch hook has to wait longer, the boot before it included.
        job_code: objects in S3, or prefixes that end with a slash, of which tasks may name the
            script and the environment of jobs that the nodes submit to EMR Serverless.
        emr_jobs: application, role, script and archive of tasks that name none (`JobServices`).
        glue_job: the Glue job of tasks that name none.
    """
    agreed = COORDINATION_PREFIX.rstrip("/")
    options = ["--coordination", f"s3://{configuration.bucket_name}/{agreed}"]
    options += ["--stream", stream.stream_name] if stream else []
    options += ["--target", target] if target else []
    options += ["--tasks-of", tasks_of] if tasks_of else []
    options += ["--only-named"] if only_named else []
    return _boot(
        package,
        log_group,
        ready_within,
        {
            "CONFIG": f"s3://{configuration.bucket_name}/{project}",
            "AGENT_OPTIONS": " ".join(options),
            "JOB_CODE": " ".join(dict.fromkeys(job_code)),
            "EMR_JOBS": " ".join(emr_jobs),
            "GLUE_JOB": glue_job or "",
            "UNITS": "polynya-agent polynya-drain polynya-health",
            "PACKAGES": _JAVA,
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedProject:
    """What a server on an instance serves.

    Attributes:
        configuration: the bucket of the project.
        project: its prefix in the bucket.
        target: its target; None: its only or default one.
        cluster: name of the group of the cluster that gets its requests; None: of no cluster.
        port: on which it listens.
        balanced: whether a load balancer is before it: it listens with TLS, off loopback.
        tables: whether its operations work on tables, which needs Java.
    """

    configuration: s3.IBucket
    project: str
    target: str | None = None
    cluster: str | None = None
    port: int = 8181
    balanced: bool = False
    tables: bool = False

    @property
    def place(self) -> str:
        """The place of the configuration, as targets name it in `config`."""
        return f"s3://{self.configuration.bucket_name}/{self.project}"

    @property
    def url(self) -> str:
        """Where the instance itself reaches it."""
        return f"{'https' if self.balanced else 'http'}://127.0.0.1:{self.port}"

    def variables(self, name: str) -> dict[str, str]:
        """What the boot gets; `name` is that of the server in its metric."""
        options = ["--port", str(self.port), "--keep-operations", "--look-seconds", "30"]
        options += ["--target", self.target] if self.target else []
        options += [] if self.tables else ["--requests-only"]
        if self.balanced:
            options += ["--host", "0.0.0.0", "--keep-alive", str(KEEP_ALIVE_SECONDS)]  # noqa: S104
            options += ["--tls-certificate", _CERTIFICATE, "--tls-key", _KEY]
        agreed = f"s3://{self.configuration.bucket_name}/{COORDINATION_PREFIX.rstrip('/')}"
        return {
            "SERVER": name,
            "SERVER_CONFIG": self.place,
            "SERVER_OPTIONS": " ".join(options),
            "SERVER_URL": self.url,
            "SERVER_COORDINATION": agreed if self.cluster else "",
            "SERVER_CLUSTER": self.cluster or "",
        }


#: A load balancer closes connections earlier, so that it never sends a request on one that the
#: server has just closed (Application Load Balancers, "HTTP 502: Bad gateway").
KEEP_ALIVE_SECONDS: Final = 310
_CERTIFICATE: Final = "/etc/polynya/server.pem"
_KEY: Final = "/etc/polynya/server-key.pem"
_SERVER_UNITS: Final = "polynya-server polynya-probe"
_JAVA: Final = "java-17-amazon-corretto-headless"


def server_boot(
    *, package: RuntimePackage, served: ServedProject, name: str, log_group: logs.ILogGroup
) -> ec2.UserData:
    """Return user data that fetches and verifies the runtime and starts `polynya serve`.

    As `node_boot`, with Java only where operations work on tables. systemd restarts the server
    whenever it ends: also while nothing was pushed yet.

    Args:
        package: what is fetched; let the role of the instance read it.
        served: what is served.
        name: of the server in its metric.
        log_group: where it logs; let the role write to it.
    """
    variables = {"CONFIG": served.place, "AGENT_OPTIONS": "", "UNITS": _SERVER_UNITS}
    variables |= {"PACKAGES": _packages(served), **served.variables(name)}
    return _boot(package, log_group, None, variables)


def _packages(served: ServedProject) -> str:
    return " ".join(
        [*(["openssl"] if served.balanced else []), *([_JAVA] if served.tables else [])]
    )


def network_agent_boot(
    *,
    package: RuntimePackage,
    configuration: s3.IBucket,
    clusters: Sequence[str],
    log_group: logs.ILogGroup,
    served: ServedProject | None = None,
    name: str = "",
) -> ec2.UserData:
    """Return user data that fetches and verifies the runtime and starts the network agent.

    As `node_boot`, without Java: it runs no task.

    Args:
        package: what is fetched; let the role of the instance read it.
        configuration: the bucket in which commands lie, below the coordination prefix.
        clusters: those that it serves, by the names of their groups.
        log_group: where it logs; let the role write to it.
        served: what a server beside it serves; default: none is started.
        name: of that server in its metric.
    """
    place = f"s3://{configuration.bucket_name}/{COORDINATION_PREFIX.rstrip('/')}"
    options = ["--coordination", place]
    options += [word for name in clusters for word in ("--cluster", name)]
    variables = {"CONFIG": place, "AGENT_OPTIONS": " ".join(options)}
    variables |= {"UNITS": "polynya-network-agent", "PACKAGES": ""}
    if served is not None:
        variables["UNITS"] += f" {_SERVER_UNITS}"
        variables |= {"PACKAGES": _packages(served), **served.variables(name)}
    return _boot(package, log_group, None, variables)


def boot_variables(user_data: str) -> dict[str, str]:
    """What `node_boot` put before the script, by name; empty for a script of the user's.

    Args:
        user_data: the text that an instance gets.
    """
    head, _, script = user_data.partition("\n\n")
    if not script.startswith(_SCRIPT.read_text(encoding="utf-8").partition("\n")[0]):
        return {}
    lines = (line.partition("=") for line in head.splitlines()[1:])
    return {name: "".join(shlex.split(value)) for name, _, value in lines}


def _boot(
    package: RuntimePackage,
    log_group: logs.ILogGroup,
    ready_within: cdk.Duration | None,
    own: Mapping[str, str],
) -> ec2.UserData:
    variables = {
        "PYTHON": PYTHON,
        "CODE_URL": package.code.url,
        "CODE_SHA256": package.code.sha256,
        "DEPENDENCIES_URL": package.dependencies.url,
        "DEPENDENCIES_SHA256": package.dependencies.sha256,
        **own,
        "LOG_GROUP": log_group.log_group_name,
        "READY_SECONDS": str((ready_within or cdk.Duration.minutes(6)).to_seconds()),
    }
    # A value that is known only to CloudFormation is a name of AWS: nothing in it ends a quote.
    lines = [f"{name}={shlex.quote(value)}" for name, value in variables.items()]
    script = _SCRIPT.read_text(encoding="utf-8")
    return ec2.UserData.custom("\n".join(["#!/bin/bash", *lines, "", script]))
