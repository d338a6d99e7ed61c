"""The server in the templates: its instance, how people reach it, its alarm, what is left of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from polynya.server.access.guard import HEALTH
from polynya.store.aws import server_instance
from polynya_constructs import server
from polynya_constructs.nodes.boot import boot_variables
from tests.stacks.house_rules import kinds, resources
from tests.stacks.synthesis import Assembly
from tests.stacks.test_boot import user_data

pytestmark = pytest.mark.synth

OWN, ON_AGENT = "clustered/Server", "borrowed/Gateway"


def tags(assembly: Assembly, path: str) -> dict[str, Any]:
    """Tags of the instances of a stack's only launch template."""
    (template,) = resources(assembly.templates[path], "AWS::EC2::LaunchTemplate").values()
    (found,) = [
        each["Tags"]
        for each in template["LaunchTemplateData"]["TagSpecifications"]
        if each["ResourceType"] == "instance"
    ]
    return {tag["Key"]: tag["Value"] for tag in found}


def test_the_console_finds_the_instance_by_the_tags_of_the_template(assembly: Assembly) -> None:
    assert (server.SERVER_TAG, server.PORT_TAG, server.ACCESS_TAG) == (
        server_instance.SERVER_TAG, server_instance.PORT_TAG, server_instance.ACCESS_TAG,
    )  # fmt: skip
    for path, access in ((OWN, "load_balancer"), (ON_AGENT, "ssm")):
        found = tags(assembly, path)
        assert json.dumps(found[server.SERVER_TAG]).endswith('"/project"]]}')
        assert (found[server.PORT_TAG], found[server.ACCESS_TAG]) == ("8181", access)
    assert server.SERVER_TAG not in tags(assembly, "clustered/Gateway")


def test_a_server_starts_with_what_its_stage_file_says(assembly: Assembly) -> None:
    own = boot_variables(user_data(assembly, OWN))
    agent = boot_variables(user_data(assembly, ON_AGENT))

    assert own["UNITS"] == "polynya-server polynya-probe"
    assert own["SERVER_OPTIONS"] == (
        "--port 8181 --keep-operations --look-seconds 30 --target prod --requests-only "
        "--host 0.0.0.0 --keep-alive 310 --tls-certificate /etc/polynya/server.pem "
        "--tls-key /etc/polynya/server-key.pem"
    )
    assert own["SERVER_CLUSTER"] == "polynya-clustered-cheap"
    assert own["SERVER_URL"] == "https://127.0.0.1:8181"
    assert own["PACKAGES"] == "openssl"
    assert agent["UNITS"] == "polynya-network-agent polynya-server polynya-probe"
    assert agent["SERVER_OPTIONS"] == "--port 8181 --keep-operations --look-seconds 30"
    java = "java-17-amazon-corretto-headless"
    assert (agent["SERVER_CLUSTER"], agent["PACKAGES"]) == ("polynya-borrowed-quick", java)
    assert agent["SERVER_COORDINATION"].endswith("/coordination")


def test_only_the_load_balancer_reaches_the_instance_and_only_named_networks_reach_it(
    assembly: Assembly,
) -> None:
    template = assembly.templates[OWN]
    (balancer,) = resources(template, "AWS::ElasticLoadBalancingV2::LoadBalancer").values()
    (target,) = resources(template, "AWS::ElasticLoadBalancingV2::TargetGroup").values()
    (listener,) = resources(template, "AWS::ElasticLoadBalancingV2::Listener").values()
    groups = resources(template, "AWS::EC2::SecurityGroup")
    (into_instance,) = resources(template, "AWS::EC2::SecurityGroupIngress").values()

    attributes = {one["Key"]: one["Value"] for one in balancer["LoadBalancerAttributes"]}
    assert balancer["Scheme"] == "internal"
    # Longer than the silence of a stream, and shorter than the server keeps a connection.
    assert 15 < int(attributes["idle_timeout.timeout_seconds"]) < 310
    assert attributes["deletion_protection.enabled"] == "false"
    assert attributes["routing.http.drop_invalid_header_fields.enabled"] == "true"
    assert (target["Protocol"], target["HealthCheckProtocol"]) == ("HTTPS", "HTTPS")
    assert (target["HealthCheckPath"], target["Matcher"]["HttpCode"]) == (HEALTH, "200")
    assert (listener["Protocol"], listener["Port"]) == ("HTTPS", 443)
    assert "TLS13" in listener["SslPolicy"]
    let_in = [
        rule["CidrIp"] for each in groups.values() for rule in each.get("SecurityGroupIngress", [])
    ]
    assert let_in == ["10.0.0.0/8", "192.168.4.0/22"]
    of_balancer = balancer["SecurityGroups"][0]["Fn::GetAtt"][0]
    assert into_instance["SourceSecurityGroupId"]["Fn::GetAtt"][0] == of_balancer
    assert (into_instance["FromPort"], into_instance["ToPort"]) == (8181, 8181)


def test_without_a_load_balancer_nothing_lets_anybody_in(assembly: Assembly) -> None:
    found = kinds(assembly, ON_AGENT)

    assert not found["AWS::EC2::SecurityGroupIngress"]
    assert not found["AWS::ElasticLoadBalancingV2::LoadBalancer"]
    groups = resources(assembly.templates[ON_AGENT], "AWS::EC2::SecurityGroup").values()
    assert not any(group.get("SecurityGroupIngress") for group in groups)


def test_only_a_server_for_tables_may_change_them(assembly: Assembly) -> None:
    def rights(path: str) -> dict[str, Any]:
        policies = resources(assembly.templates[path], "AWS::IAM::Policy").values()
        found = [one for each in policies for one in each["PolicyDocument"]["Statement"]]
        return {one["Sid"]: one["Action"] for one in found if "Sid" in one}

    own, agent = rights(OWN), rights(ON_AGENT)

    assert own["ReadTables"] == "s3:GetObject"
    assert "glue:UpdateTable" not in own["CatalogTables"]
    assert "KeepTables" not in own
    assert {"s3:PutObject", "s3:DeleteObject"} < set(agent["KeepTables"])
    assert "glue:UpdateTable" in agent["CatalogTables"]
    # Beside what the network agent may do.
    assert {"Groups", "KeepState", "AskCluster", "AskCaptures"} < set(agent)


def test_its_instance_is_one_small_spot_instance(assembly: Assembly) -> None:
    (group,) = resources(assembly.templates[OWN], "AWS::AutoScaling::AutoScalingGroup").values()
    policy = group["MixedInstancesPolicy"]

    assert (group["MinSize"], group["MaxSize"]) == ("1", "1")
    assert policy["LaunchTemplate"]["Overrides"] == [{"InstanceType": "t4g.micro"}]
    assert policy["InstancesDistribution"]["OnDemandPercentageAboveBaseCapacity"] == 0
    assert policy["InstancesDistribution"]["OnDemandBaseCapacity"] == 0


def test_an_alarm_is_on_when_it_does_not_answer_or_says_nothing(assembly: Assembly) -> None:
    for path, name, told in (
        (OWN, "polynya-clustered-server", True),
        (ON_AGENT, "polynya-borrowed-server", False),
    ):
        alarms = resources(assembly.templates[path], "AWS::CloudWatch::Alarm").values()
        (alarm,) = [one for one in alarms if one["MetricName"] == "ServerAnswers"]
        assert alarm["Dimensions"] == [{"Name": "Server", "Value": name}]
        assert (alarm["TreatMissingData"], alarm["Threshold"]) == ("breaching", 1)
        assert ("AlarmActions" in alarm) is told


def test_nothing_but_its_log_is_left_when_its_stack_goes(assembly: Assembly) -> None:
    template = assembly.templates[OWN]["Resources"]
    kept = {
        resource["Type"]
        for resource in template.values()
        if resource.get("DeletionPolicy", "Delete") != "Delete"
    }

    assert kept == {"AWS::Logs::LogGroup"}
    assert not assembly.protected[OWN]
