"""The instance in AWS that serves the API of a project, found by its tags."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from polynya.model.config.aws import AwsAccess
from polynya.store.aws.clients import AWS_ERRORS, client, explained, is_transient
from polynya.store.clock import Retry

#: Tag with the place of the configuration that the server follows, `s3://BUCKET/PREFIX`.
SERVER_TAG: Final = "polynya:server"
#: Tag with the port on which it listens.
PORT_TAG: Final = "polynya:server-port"
#: Tag with how people reach it: `ssm` or `load_balancer`.
ACCESS_TAG: Final = "polynya:server-access"


@dataclass(frozen=True, slots=True)
class ServerInstance:
    """A running instance with the server: on which port, and whether a load balancer is before it.

    `port` is 0 where the tag has none.
    """

    id: str
    port: int
    is_balanced: bool


def server_instance(place: str, access: AwsAccess) -> ServerInstance | None:
    """The newest running instance that serves the configuration of a place, None without one.

    Raises DependencyError.
    """
    ec2 = client("ec2", access)
    filters = [
        {"Name": f"tag:{SERVER_TAG}", "Values": [place]},
        {"Name": "instance-state-name", "Values": ["running"]},
    ]
    found: list[dict[str, Any]] = []
    token: dict[str, str] = {}
    try:
        while True:
            asked = {"Filters": filters, **token}
            ask = partial(ec2.describe_instances, **asked)
            answer = Retry(deadline=15.0).run(ask, is_transient)
            found += [one for each in answer["Reservations"] for one in each["Instances"]]
            if not answer.get("NextToken"):
                break
            token = {"NextToken": answer["NextToken"]}
    except AWS_ERRORS as error:
        raise explained(
            error,
            action="find the server",
            resource=f"instances with the tag {SERVER_TAG}={place}",
            grant="ec2:DescribeInstances",
        ) from error
    if not found:
        return None
    newest = max(found, key=lambda one: str(one.get("LaunchTime", "")))
    tags = {tag["Key"]: tag["Value"] for tag in newest.get("Tags", ())}
    port = tags.get(PORT_TAG, "")
    return ServerInstance(
        str(newest["InstanceId"]),
        int(port) if port.isdecimal() else 0,
        is_balanced=tags.get(ACCESS_TAG) == "load_balancer",
    )
