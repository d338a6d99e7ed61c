"""A verification step by step, without a deployment: failures, tear-down, waiting, costs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import ANY, Stubber

from stacks.settings.stage import StageConfig
from stacks.verify import athena, faults
from stacks.verify.leftovers import left_over
from stacks.verify.report import dollars, passed, report
from stacks.verify.run import Action, Ending, Result, StepError, run, until
from stacks.verify.steps import STEPS, Fidelity, plan
from stacks.verify.teardown import TearDown
from stacks.verify.throwaway import expected_rows, throwaway_stage
from stacks.verify.trial import Trial
from tests.aws import aws_clients

INSTANCE = "arn:aws:ec2:eu-central-1:123456789012:instance/i-0a1b2c3d"
REAL = plan(lambda _step: (Fidelity.REAL, ""))


class Clock:
    """A clock that only waiting moves."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


def stage(**settings: Any) -> StageConfig:
    head = {"apiVersion": "polynya/v1", "kind": "stage", "name": "dev"}
    return StageConfig.model_validate({**head, **settings})


def endings(**faulty: Action) -> dict[str, Result]:
    """The results by step, where the actions given replace ones that pass."""
    actions = {step.name: faulty.get(step.name, lambda: "fine") for step in STEPS}
    return {result.planned.step.name: result for result in run(REAL, actions, Clock())}


def fails(error: BaseException) -> Action:
    def action() -> str:
        raise error

    return action


@pytest.mark.parametrize("broken", ["deploy", "push", "live", "interrupt", "resume"])
def test_whatever_fails_the_stage_is_removed(broken: str) -> None:
    ended = endings(**{broken: fails(StepError("no such luck"))})

    assert (ended[broken].ending, ended[broken].said) == (Ending.FAILED, "no such luck")
    after = [step.name for step in STEPS[[s.name for s in STEPS].index(broken) + 1 :]]
    trials = [name for name in after if name not in {"unfault", "empty", "destroy", "left"}]
    assert all(ended[name].ending is Ending.SKIPPED for name in trials)
    for name in ("empty", "destroy", "left"):
        assert ended[name].ending is Ending.PASSED
    assert not passed(list(ended.values()))


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("throttled")])
def test_an_interruption_by_hand_or_a_fault_of_ours_leaves_nothing_either(
    error: BaseException,
) -> None:
    ended = endings(live=fails(error))

    assert ended["live"].ending is Ending.FAILED
    assert ended["destroy"].ending is Ending.PASSED


def test_a_tear_down_that_fails_does_not_keep_the_next_one_from_running() -> None:
    ended = endings(wake=fails(StepError("x")), empty=fails(StepError("SlowDown")))

    assert [ended[name].ending for name in ("empty", "destroy", "left")] == [
        Ending.FAILED, Ending.PASSED, Ending.PASSED,
    ]  # fmt: skip


def test_what_this_run_did_not_create_is_not_destroyed() -> None:
    """The stacks of another run are there: a tear-down would be that of the other one."""
    ended = endings(account=fails(StepError("polynya-verify-storage is there already")))

    assert all(
        ended[step.name].ending is Ending.SKIPPED for step in STEPS if step.name != "account"
    )
    assert ended["destroy"].said == "there was no deploy to undo"
    assert "Nothing was created." in report(list(ended.values()), stage(), [])


def test_the_experiment_is_removed_only_if_there_was_one() -> None:
    assert endings(live=fails(StepError("x")))["unfault"].ending is Ending.SKIPPED
    assert endings(interrupt=fails(StepError("x")))["unfault"].ending is Ending.PASSED


def test_waiting_ends() -> None:
    clock, looks = Clock(), iter([None, None, 7])

    assert until(clock, "seven", 60, lambda: next(looks)) == 7
    assert clock.time == 20
    with pytest.raises(StepError, match="a node: not within 20 minutes"):
        until(clock, "a node", 1200, lambda: None)
    assert clock.time == 1220


def test_the_report_says_what_was_real_what_it_took_and_what_it_cost() -> None:
    clock = Clock()

    def takes(seconds: float) -> Action:
        def action() -> str:
            clock.sleep(seconds)
            return "a | b"

        return action

    results = run(REAL, {step.name: takes(225) for step in STEPS}, clock)
    text = report(results, stage(), ["arn:aws:kms:…: deleted by AWS on 2026-12-22"])

    assert "passed: 16 of 16 steps passed, 16 of them real" in text
    assert "| live | passed | real | 225 | a \\| b | the views have" in text
    assert "| **0.8 hours** |" in text
    assert "- arn:aws:kms:…: deleted by AWS on 2026-12-22" in text


def test_the_cost_is_that_of_the_parts() -> None:
    lines = dict(dollars(stage(network={"endpoint_zones": 1}), 2.0))

    assert lines["interface endpoints: 4"] == pytest.approx(4 * 0.01 * 2)
    assert lines["workload stream"] == pytest.approx(0.03)
    assert sum(lines.values()) < 1


def test_the_throw_away_stage_is_like_the_other_and_takes_nothing_of_it() -> None:
    like = stage(
        region="eu-west-1",
        network={"cidr": "10.7.0.0/16", "endpoint_zones": 1},
        stream={"existing_arn": "arn:aws:kinesis:eu-west-1:123456789012:stream/theirs"},
        storage={"landing": {"existing": {"name": "their-landing"}}},
        catalog={"databases": ["shop"]},
        clusters=[{"name": "big", "architecture": "x86_64", "strategy": "no_scaling"}],
        consumption={"sagemaker": {}},
    )

    made = StageConfig.model_validate(throwaway_stage(like))

    assert (made.name, made.region, made.network) == ("verify", "eu-west-1", like.network)
    assert made.remove_data
    assert made.stream.existing_arn is made.storage.landing.existing is None
    assert made.catalog.databases == ("verify_bank", "verify_shop")
    assert not made.consumption.any
    (cluster,) = made.clusters
    assert (cluster.capacity.minimum, cluster.maximum, cluster.architecture) == (0, 1, "x86_64")


class World:
    """Two nodes, one after the other, and views that fill up as time goes by."""

    account, region, endpoint = None, "eu-central-1", None

    def __init__(self, clock: Clock) -> None:
        self.clock, self.instances = clock, ["i-1"]
        self.started = clock.time

    def rows(self, view: str) -> int | None:
        wanted = {**expected_rows(), "verify_shop.users": 4, "verify_shop.logins": 9}
        return wanted[view] if self.clock.time - self.started >= 60 else None

    def interrupt(self, instance: str) -> None:
        self.instances = [f"{instance}-next"]

    def client(self, service: str) -> Any:
        assert service == "autoscaling"
        return self

    def describe_auto_scaling_groups(self, **_names: Any) -> dict[str, Any]:
        nodes = [{"InstanceId": i, "LifecycleState": "InService"} for i in self.instances]
        return {"AutoScalingGroups": [{"Instances": nodes}]}


def test_live_tables_and_another_node_are_waited_for(tmp_path: Path) -> None:
    clock = Clock()
    actions = Trial(World(clock), clock, tmp_path)  # type: ignore[arg-type]

    assert actions.wake() == "i-1 is in service"
    assert actions.live() == "verify_bank.accounts: 561, verify_bank.lines: 112"
    assert clock.time == 60
    assert actions.interrupt() == "i-1 is gone"
    assert actions.replace() == "i-1-next in place of i-1"


def test_views_that_stay_wrong_fail_with_what_they_have(tmp_path: Path) -> None:
    clock = Clock()
    world = World(clock)
    world.rows = lambda _view: 560  # type: ignore[method-assign]
    actions = Trial(world, clock, tmp_path)  # type: ignore[arg-type]

    with pytest.raises(StepError, match=r"561 rows of .*not within 20 minutes; .*found 560"):
        actions.live()


class Refilled:
    """A world whose buckets are written to until the nodes are gone."""

    account, region, endpoint = "123456789012", "eu-central-1", None

    def __init__(self, client: Callable[[str], Any], times: int) -> None:
        self.client, self.left = client, times

    def down(self) -> None:
        if self.left:
            self.left -= 1
            raise StepError("`cdk destroy` failed")
        self.client("cloudformation").delete_stack(StackName="polynya-verify-storage")


@pytest.mark.parametrize(("times", "removed"), [(0, True), (2, True), (3, False)])
def test_a_bucket_that_was_written_to_is_emptied_once_more(times: int, removed: bool) -> None:
    bucket = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "landing"}}
    with aws_clients() as client:
        client("cloudformation").create_stack(
            StackName="polynya-verify-storage",
            TemplateBody=json.dumps({"Resources": {"Landing": bucket}}),
        )
        client("s3").put_object(Bucket="landing", Key="late", Body=b"x")
        log = "/aws/lambda/polynya-verify-network-CustomVpcRestrict-1"
        client("logs").create_log_group(logGroupName=log)
        actions = TearDown(Refilled(client, times))  # type: ignore[arg-type]

        if not removed:
            with pytest.raises(StepError, match="still there: polynya-verify-storage"):
                actions.destroy()
            return
        if times == 0:
            actions.empty()
        assert actions.destroy() == "no stack is left; 1 logs of functions deleted"
        assert client("logs").describe_log_groups()["logGroups"] == []
        assert left_over(client) == ()


def test_it_starts_in_the_right_account_and_beside_nothing_of_another_run(tmp_path: Path) -> None:
    with aws_clients() as client:
        world = Refilled(client, 0)
        actions = Trial(world, Clock(), tmp_path)  # type: ignore[arg-type]
        assert actions.account() == "account 123456789012, eu-central-1"
        client("cloudformation").create_stack(
            StackName="polynya-verify-storage",
            TemplateBody=json.dumps({"Resources": {"T": {"Type": "AWS::SNS::Topic"}}}),
        )
        with pytest.raises(StepError, match="polynya-verify-storage is there already"):
            actions.account()
        world.account = "999999999999"
        with pytest.raises(StepError, match="the credentials are of 123456789012"):
            actions.account()
        world.region = ""
        with pytest.raises(StepError, match="no region is known"):
            actions.account()


def test_every_step_has_its_action(tmp_path: Path) -> None:
    world = World(Clock())
    trial, teardown = Trial(world, Clock(), tmp_path), TearDown(world)  # type: ignore[arg-type]

    assert {*trial.by_name(), *teardown.by_name()} == {step.name for step in STEPS}
    assert all(step.why for step in STEPS)


def stubbed(service: str, *answers: tuple[str, dict[str, Any], dict[str, Any]]) -> Any:
    """A client that answers these calls in this order; botocore checks both by its model."""
    client = boto3.client(service, region_name="eu-central-1", aws_access_key_id="x",
                          aws_secret_access_key="x")  # fmt: skip
    stubber = Stubber(client)
    for call, answer, expected in answers:
        stubber.add_response(call, answer, expected)
    stubber.activate()
    return client


def test_spot_takes_exactly_this_node_back_by_the_documented_action() -> None:
    asked = {**faults.template_of("arn:aws:iam::1:role/r", INSTANCE), "clientToken": ANY}
    role = f"arn:aws:iam::123456789012:role/{faults.ROLE}"
    states = ["initiating", "completed"]
    fis = stubbed(
        "fis",
        ("create_experiment_template", {"experimentTemplate": {"id": "t"}},
         {**asked, "roleArn": role}),
        ("start_experiment", {"experiment": {"id": "e"}},
         {"clientToken": ANY, "experimentTemplateId": "t", "tags": ANY}),
        *(("get_experiment", {"experiment": {"state": {"status": s}}}, {"id": "e"})
          for s in states),
        ("list_experiment_templates",
         {"experimentTemplates": [{"id": "t", "tags": asked["tags"]}, {"id": "theirs"}]}, {}),
        ("delete_experiment_template", {}, {"id": "t"}),
    )  # fmt: skip
    with aws_clients() as client:
        iam = client("iam")
        clients: Callable[[str], Any] = {"fis": fis, "iam": iam}.__getitem__

        assert faults.interrupt(clients, Clock(), INSTANCE) == "e"
        rights = iam.get_role_policy(RoleName=faults.ROLE, PolicyName=faults.ROLE)
        sends = rights["PolicyDocument"]["Statement"][1]
        assert (sends["Action"], sends["Resource"]) == (
            "ec2:SendSpotInstanceInterruptions", INSTANCE,
        )  # fmt: skip
        assert asked["actions"]["interrupt"]["actionId"] == faults.ACTION
        faults.forget(clients)
        assert iam.list_roles()["Roles"] == []
        # A second time there is nothing to remove.
        nothing = stubbed("fis", ("list_experiment_templates", {"experimentTemplates": []}, {}))
        faults.forget({"fis": nothing, "iam": iam}.__getitem__)


def test_an_experiment_that_fails_says_why() -> None:
    failed = {"status": "failed", "reason": "no capacity"}
    fis = stubbed(
        "fis",
        ("create_experiment_template", {"experimentTemplate": {"id": "t"}},
         {**faults.template_of("", INSTANCE), "roleArn": ANY, "clientToken": ANY}),
        ("start_experiment", {"experiment": {"id": "e"}},
         {"clientToken": ANY, "experimentTemplateId": "t", "tags": ANY}),
        ("get_experiment", {"experiment": {"state": failed}}, {"id": "e"}),
    )  # fmt: skip
    with aws_clients() as client, pytest.raises(StepError, match="experiment e failed: no capa"):
        faults.interrupt({"fis": fis, "iam": client("iam")}.__getitem__, Clock(), INSTANCE)


def queried(*ended: dict[str, str], rows: str = "561") -> int | None:
    answers = [
        ("start_query_execution", {"QueryExecutionId": "q"},
         {"QueryString": "SELECT count(*) FROM verify_bank.accounts",
          "WorkGroup": "polynya-verify"}),
        *(("get_query_execution", {"QueryExecution": {"Status": each}}, {"QueryExecutionId": "q"})
          for each in ended),
    ]  # fmt: skip
    if ended[-1]["State"] == "SUCCEEDED":
        cells = [{"Data": [{"VarCharValue": value}]} for value in ("_col0", rows)]
        answers.append(
            ("get_query_results", {"ResultSet": {"Rows": cells}}, {"QueryExecutionId": "q"})
        )
    client = stubbed("athena", *answers)
    return athena.rows(lambda _service: client, Clock(), "verify_bank.accounts")


def test_athena_is_asked_and_a_view_that_is_not_there_yet_is_no_failure() -> None:
    assert queried({"State": "RUNNING"}, {"State": "SUCCEEDED"}) == 561
    missing = "TABLE_NOT_FOUND: line 1:22: Table 'awsdatacatalog.verify_bank.accounts'"
    assert queried({"State": "FAILED", "StateChangeReason": missing}) is None
    with pytest.raises(StepError, match="Athena says Access Denied"):
        queried({"State": "FAILED", "StateChangeReason": "Access Denied"})


def test_a_key_that_waits_for_its_deletion_is_listed_with_its_day() -> None:
    tags = [{"TagKey": "polynya:stage", "TagValue": "verify"}]
    with aws_clients() as client:
        key = client("kms").create_key(Tags=tags)["KeyMetadata"]["KeyId"]
        assert [line.split("/")[0] for line in left_over(client)] == [
            "arn:aws:kms:eu-central-1:123456789012:key"
        ]
        client("kms").schedule_key_deletion(KeyId=key)
        (line,) = left_over(client)
        assert "free of charge, deleted by AWS on 20" in line
