"""Whether this machine gets its AWS credentials from a role: on EC2, or in a container.

Credentials of a role come from a service of the machine, which may be slow or fail for a moment.
Elsewhere missing credentials stay missing until somebody configures them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

#: Files of the firmware that name the maker of the machine.
_VENDOR_FILES: Final = ("sys/class/dmi/id/sys_vendor", "sys/class/dmi/id/board_vendor")
#: Where the AWS SDK looks for the service of a container (AWS SDKs and Tools Reference Guide,
#: "Container credential provider").
_CONTAINER: Final = (
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)


def is_ec2(root: Path = Path("/")) -> bool:
    """Whether this is an EC2 instance; `root` is that of the file system that shows it."""
    for name in _VENDOR_FILES:
        try:
            if (root / name).read_text("utf-8").startswith("Amazon EC2"):
                return True
        except (OSError, UnicodeDecodeError):
            continue
    return False


def may_have_role(environment: Mapping[str, str] = os.environ, root: Path = Path("/")) -> bool:
    """Whether a service of this machine may have credentials, if not now then a moment later.

    An EC2 instance without a role counts: the SDK cannot tell it from a service that is silent.
    """
    if any(environment.get(name) for name in _CONTAINER):
        return True
    if environment.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
        return False
    return "AWS_EC2_METADATA_SERVICE_ENDPOINT" in environment or is_ec2(root)
