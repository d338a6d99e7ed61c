"""One machine image by its id, whatever the region of the stack."""

from __future__ import annotations

import jsii
from aws_cdk import aws_ec2 as ec2
from constructs import Construct


@jsii.implements(ec2.IMachineImage)
class PinnedImage:
    """An image that a deploy never changes by itself.

    `ec2.MachineImage.generic_linux` wants to know the region at synthesis; an id is of one anyway.
    """

    def __init__(self, image_id: str) -> None:
        """Take the id of an Amazon Linux 2023 image, `ami-…`."""
        self._image_id = image_id

    @jsii.member(jsii_name="getImage")
    def get_image(self, _scope: Construct) -> ec2.MachineImageConfig:
        """Return the image as launch templates take it."""
        return ec2.MachineImageConfig(
            image_id=self._image_id,
            os_type=ec2.OperatingSystemType.LINUX,
            user_data=ec2.UserData.for_linux(),
        )
