"""What must hold in every template of the project, found in the template itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from ipaddress import IPv4Network
from typing import Any

from tests.stacks.synthesis import Assembly

Template = dict[str, Any]
WAYS_OUT = {
    "AWS::EC2::NatGateway",
    "AWS::EC2::InternetGateway",
    "AWS::EC2::EIP",
    "AWS::EC2::EgressOnlyInternetGateway",
}
STATEFUL = {
    "AWS::S3::Bucket",
    "AWS::KMS::Key",
    "AWS::Kinesis::Stream",
    "AWS::Glue::Database",
    "AWS::Logs::LogGroup",
    "AWS::RedshiftServerless::Namespace",
}


def violations(template: Template) -> list[str]:
    """Every broken rule as `LogicalId: what is wrong`."""
    return [
        f"{name}: {problem}"
        for rule in (private, encrypted, kept, closed_buckets, trusts, launches, matches)
        for name, problem in rule(template)
    ]


def resources(template: Template, kind: str) -> dict[str, Any]:
    """Properties of the resources of a type, by logical id."""
    found = {k: r for k, r in template.get("Resources", {}).items() if r["Type"] == kind}
    return {name: resource.get("Properties", {}) for name, resource in found.items()}


def kinds(assembly: Assembly, path: str) -> Counter[str]:
    """How many resources of each type a stack has."""
    return Counter(r["Type"] for r in assembly.templates[path].get("Resources", {}).values())


def private(template: Template) -> Iterator[tuple[str, str]]:
    """No way to the internet and back; the only ways in are TLS from private networks, and from a
    load balancer of the template to its instance.
    """
    for name, resource in template.get("Resources", {}).items():
        if resource["Type"] in WAYS_OUT:
            yield name, f"{resource['Type']} leads out of the VPC"
    rules = [
        (name, rule)
        for name, group in resources(template, "AWS::EC2::SecurityGroup").items()
        for rule in group.get("SecurityGroupIngress", [])
    ]
    rules += resources(template, "AWS::EC2::SecurityGroupIngress").items()
    balanced = {
        group["Fn::GetAtt"][0]
        for balancer in resources(template, "AWS::ElasticLoadBalancingV2::LoadBalancer").values()
        for group in balancer["SecurityGroups"]
    }
    for name, rule in rules:
        source = rule.get("SourceSecurityGroupId", {})
        one_port = rule.get("FromPort") == rule.get("ToPort") and rule.get("IpProtocol") == "tcp"
        if isinstance(source, dict) and source.get("Fn::GetAtt", [""])[0] in balanced and one_port:
            continue
        cidr = rule.get("CidrIp")
        ports = (rule.get("FromPort"), rule.get("ToPort"))
        if not isinstance(cidr, str) or not IPv4Network(cidr).is_private or ports != (443, 443):
            yield name, f"inbound rule {ports} from {cidr or rule.get('CidrIpv6')}"
    for name, subnet in resources(template, "AWS::EC2::Subnet").items():
        if subnet.get("MapPublicIpOnLaunch"):
            yield name, "gives its members public addresses"


#: Roles of these are handed to an instance or a function of the same account by `iam:PassRole`,
#: which works inside of one account only; AWS documents no `aws:SourceAccount` in their trust.
PASSED_IN_THE_ACCOUNT = {"ec2.amazonaws.com", "lambda.amazonaws.com"}
#: Roles that the CDK's library of pipelines makes, without a setting for their trust.
MADE_BY_PIPELINES = {
    "codebuild.amazonaws.com",
    "codepipeline.amazonaws.com",
    "events.amazonaws.com",
}
OF_ONE_ACCOUNT = {"aws:SourceAccount", "aws:SourceArn"}


def trusts(template: Template) -> Iterator[tuple[str, str]]:
    """A service takes a role for this account only, and not for who else names the role to it."""
    for name, role in resources(template, "AWS::IAM::Role").items():
        for statement in role["AssumeRolePolicyDocument"]["Statement"]:
            principal = statement.get("Principal", {})
            named = principal.get("Service", []) if isinstance(principal, dict) else []
            services = {str(one) for one in (named if isinstance(named, list) else [named])}
            conditions = statement.get("Condition", {}).values()
            held = any(OF_ONE_ACCOUNT & one.keys() for one in conditions)
            if services - PASSED_IN_THE_ACCOUNT - MADE_BY_PIPELINES and not held:
                yield name, f"trusts {', '.join(sorted(services))} on behalf of any account"


def launches(template: Template) -> Iterator[tuple[str, str]]:
    """Who may launch instances takes all that a launch template says from that template."""
    for kind in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy"):
        for name, policy in resources(template, kind).items():
            for statement in policy["PolicyDocument"]["Statement"]:
                action = statement["Action"]
                launched = "ec2:RunInstances" in ([action] if isinstance(action, str) else action)
                bool_ = statement.get("Condition", {}).get("Bool", {})
                if launched and bool_.get("ec2:IsLaunchTemplateResource") != "true":
                    yield name, "launches instances with more than a launch template says"


def matches(template: Template) -> Iterator[tuple[str, str]]:
    """EventBridge takes `$or` for a field of the event unless it has two objects at least."""

    def is_field(pattern: Any) -> bool:
        if not isinstance(pattern, dict):
            return False
        either = pattern.get("$or")
        if either is not None and (len(either) < 2 or not all(isinstance(x, dict) for x in either)):
            return True
        return any(map(is_field, pattern.values()))

    for name, rule in resources(template, "AWS::Events::Rule").items():
        if is_field(rule.get("EventPattern")):
            yield name, "has an `$or` that EventBridge takes for a field"


def encrypted(template: Template) -> Iterator[tuple[str, str]]:
    """Our key encrypts all data; only the bucket of access logs cannot have one."""
    log_buckets = {
        properties["LoggingConfiguration"]["DestinationBucketName"]["Ref"]
        for properties in resources(template, "AWS::S3::Bucket").values()
        if "LoggingConfiguration" in properties
    }
    for name, bucket in resources(template, "AWS::S3::Bucket").items():
        rules = bucket.get("BucketEncryption", {}).get("ServerSideEncryptionConfiguration", [{}])
        algorithm = rules[0].get("ServerSideEncryptionByDefault", {}).get("SSEAlgorithm")
        if algorithm != ("AES256" if name in log_buckets else "aws:kms"):
            yield name, f"is encrypted with {algorithm}"
    for name, stream in resources(template, "AWS::Kinesis::Stream").items():
        if stream.get("StreamEncryption", {}).get("EncryptionType") != "KMS":
            yield name, "is not encrypted"
    for name, key in resources(template, "AWS::KMS::Key").items():
        if not key.get("EnableKeyRotation"):
            yield name, "does not rotate"


def kept(template: Template) -> Iterator[tuple[str, str]]:
    """Whatever holds data stays when its stack goes or replaces it."""
    for name, resource in template.get("Resources", {}).items():
        policies = (resource.get("DeletionPolicy"), resource.get("UpdateReplacePolicy"))
        # Kept, but not what a first creation that failed would leave in the way of the next one.
        right = [("RetainExceptOnCreate", "Retain")]
        if resource["Type"] == "AWS::Logs::LogGroup":
            right.append(("Retain", "Retain"))  # the CDK's own
        if resource["Type"] in STATEFUL - {"AWS::KMS::Key"} and policies not in right:
            yield name, "is not kept"
        # That of notifications encrypts nothing that is left when its topic goes.
        messages = name.startswith(("NotificationsKey", "ServerNotificationsKey"))
        if resource["Type"] == "AWS::KMS::Key" and policies not in right and not messages:
            yield name, "is not kept"


def closed_buckets(template: Template) -> Iterator[tuple[str, str]]:
    """Buckets are private, versioned, reached by TLS only, and clean up after themselves."""
    tls_only = {
        policy["Bucket"]["Ref"]
        for policy in resources(template, "AWS::S3::BucketPolicy").values()
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny"
        and statement.get("Condition") == {"Bool": {"aws:SecureTransport": "false"}}
    }
    for name, bucket in resources(template, "AWS::S3::Bucket").items():
        checks: list[tuple[str, Callable[[], bool]]] = [
            ("can be public", lambda b=bucket: set(
                b.get("PublicAccessBlockConfiguration", {"": False}).values()) == {True}),
            ("keeps no versions", lambda b=bucket: b.get("VersioningConfiguration", {}).get(
                "Status") == "Enabled"),
            ("answers without TLS", lambda n=name: n in tls_only),
            ("has no lifecycle", lambda b=bucket: "LifecycleConfiguration" in b),
        ]  # fmt: skip
        yield from ((name, problem) for problem, holds in checks if not holds())
