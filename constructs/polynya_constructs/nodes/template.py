"""What every instance of Polynya is: its launch template, its role, its way out of the network."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from polynya_constructs.cluster.instance_types import Architecture
from polynya_constructs.grants import allow

# What Session Manager's agent on the instance calls. AmazonSSMManagedInstanceCore has more: it may
# read every parameter of the account (Systems Manager User Guide, "Create a custom IAM role").
_SESSION_MANAGER = (
    "ssm:UpdateInstanceInformation",
    "ssmmessages:CreateControlChannel",
    "ssmmessages:CreateDataChannel",
    "ssmmessages:OpenControlChannel",
    "ssmmessages:OpenDataChannel",
)


class NodeTemplate(Construct):
    """A launch template of private instances that answer to nobody.

    Metadata only with a token and from the instance itself (IMDSv2, one hop), an encrypted root
    volume, no inbound rule, outbound only TLS, no key pair: the only way in is Session Manager,
    where it is allowed.
    `template`, `role` and `security_group` are what was made; grants are made on the role.

    Example:
        >>> NodeTemplate(
        ...     stack, "Node", vpc=vpc, architecture=Architecture.ARM64, user_data=boot, name="shop"
        ... )
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        vpc: ec2.IVpc,
        architecture: Architecture,
        user_data: ec2.UserData,
        name: str,
        instance_type: str | None = None,
        machine_image: ec2.IMachineImage | None = None,
        root_volume_gib: int = 50,
        session_manager: bool = False,
        detailed_monitoring: bool = False,
    ) -> None:
        """Create the template.

        Args:
            scope: the parent.
            id_: unique below the parent.
            vpc: where its security group lives.
            architecture: of the default machine image.
            user_data: what runs at boot.
            name: of the instances, as people see them.
            instance_type: default: whoever uses the template says.
            machine_image: default: the newest Amazon Linux 2023, looked up at each deploy, so that
                a deploy may replace nodes. Pin one where that is not wanted.
            root_volume_gib: of the gp3 root volume; Spark's shuffle files lie on it. Default 50.
            session_manager: whether people come in by Session Manager; default: nobody does.
            detailed_monitoring: whether EC2 publishes its metrics each minute, which is paid.

        Raises:
            ValueError: when the volume is too small for the image.
        """
        super().__init__(scope, id_)
        if root_volume_gib < 8:
            raise ValueError(f"root_volume_gib is {root_volume_gib}; Amazon Linux needs 8")
        self.role = iam.Role(
            self, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"), description=name
        )
        if session_manager:
            allow(
                self.role,
                "SessionManager",
                actions=_SESSION_MANAGER,
                resources=["*"],
                wildcard="the messages have no resource; an instance has no ARN before its launch",
            )
        self.security_group = ec2.SecurityGroup(
            self, "SecurityGroup", vpc=vpc, description=name, allow_all_outbound=False
        )
        self.security_group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443))
        self.template = ec2.LaunchTemplate(
            self,
            "Template",
            machine_image=machine_image or _amazon_linux(architecture),
            instance_type=ec2.InstanceType(instance_type) if instance_type else None,
            role=self.role,
            security_group=self.security_group,
            user_data=user_data,
            http_tokens=ec2.LaunchTemplateHttpTokens.REQUIRED,
            http_put_response_hop_limit=1,
            # A node that gives up switches itself off; a stopped one would go on costing its disk.
            instance_initiated_shutdown_behavior=ec2.InstanceInitiatedShutdownBehavior.TERMINATE,
            instance_metadata_tags=True,  # the agent reads stage and cluster without an API call
            # Seven metrics of each node at $0.30, which only a forecast of their load needs.
            detailed_monitoring=detailed_monitoring,
            block_devices=[
                ec2.BlockDevice(
                    device_name="/dev/xvda",
                    volume=ec2.BlockDeviceVolume.ebs(
                        root_volume_gib,
                        encrypted=True,
                        volume_type=ec2.EbsDeviceVolumeType.GP3,
                        delete_on_termination=True,
                    ),
                )
            ],
        )
        cdk.Tags.of(self.template).add("Name", name)


def _amazon_linux(architecture: Architecture) -> ec2.IMachineImage:
    return ec2.MachineImage.latest_amazon_linux2023(
        cpu_type=ec2.AmazonLinuxCpuType.ARM_64
        if architecture is Architecture.ARM64
        else ec2.AmazonLinuxCpuType.X86_64
    )


def acknowledge_group_findings(group: autoscaling.AutoScalingGroup) -> None:
    """Say why two findings about a group that is made of a `NodeTemplate` are none."""
    cdk.Validations.of(group).acknowledge(
        cdk.Acknowledgment(
            id="AwsSolutions-AS3",
            reason="every launch and end is an EventBridge event already, for whoever wants them",
        ),
        cdk.Acknowledgment(
            id="AwsSolutions-EC26",
            reason="the rule cannot read a launch template; its only volume is encrypted",
        ),
    )
