"""The function that wakes an empty group: it looks at the group, whatever event it gets."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from polynya_constructs.functions.wake import handler
from polynya_constructs.functions.wake.handler import Arrived, arrived, look, wake
from polynya_constructs.functions.wake.own_landing import OwnLandingReader, parsed


class Groups:
    """Auto Scaling with at most one group, as far as the function asks."""

    def __init__(self, **group: Any) -> None:
        self.group = group and {"AutoScalingGroupName": "shop", "Instances": [], **group}

    def describe_auto_scaling_groups(self, AutoScalingGroupNames: list[str]) -> dict[str, Any]:
        return {"AutoScalingGroups": [self.group] if self.group else []}

    def set_desired_capacity(self, **asked: Any) -> None:
        assert asked["HonorCooldown"] is False
        self.group["DesiredCapacity"] = asked["DesiredCapacity"]


@pytest.mark.parametrize(
    ("desired", "maximum", "said", "then"),
    [(0, 4, "woken", 1), (3, 4, "kept: the group has nodes", 3), (0, 0, "kept: a schedule", 0)],
)
def test_only_an_empty_group_is_woken(desired: int, maximum: int, said: str, then: int) -> None:
    groups = Groups(DesiredCapacity=desired, MaxSize=maximum)

    assert wake(groups, look(groups, "shop")).startswith(said)
    assert groups.group["DesiredCapacity"] == then


def test_a_second_event_changes_nothing() -> None:
    groups = Groups(DesiredCapacity=0, MaxSize=4)

    assert [wake(groups, look(groups, "shop"))[:5] for _ in range(3)] == ["woken", "kept:", "kept:"]
    assert groups.group["DesiredCapacity"] == 1


def test_a_group_that_is_gone_is_an_error() -> None:
    with pytest.raises(LookupError, match="belongs to a deleted one"):
        look(Groups(), "shop")


def landed(bucket: str, size: int, key: str = "orders/a.json") -> dict[str, Any]:
    """The event of S3."""
    return {"detail": {"bucket": {"name": bucket}, "object": {"key": key, "size": size}}}


@pytest.mark.parametrize(
    ("event", "came"),
    [
        (landed("landing", 700), Arrived(objects=1, size=700)),
        (landed("landing", 700, "web/a.json"), Arrived()),
        # As S3 encodes keys in some of its notifications.
        (landed("landing", 700, "my%20orders/a.json"), Arrived(objects=1, size=700)),
        (landed("landing", 700, "my+orders/a.json"), Arrived(objects=1, size=700)),
        (landed("configuration", 700), Arrived(edits=1)),
        ({"source": "aws.cloudwatch", "alarmData": {}}, Arrived(others=1)),
        ({"detail": None}, Arrived(others=1)),
    ],
    ids=["own", "of others", "encoded", "with a plus", "a task", "an alarm", "nothing"],
)
def test_only_data_of_the_cluster_is_counted(event: dict[str, Any], came: Arrived) -> None:
    own = parsed(document("orders/", "my orders/"), "landing")

    assert arrived([event], "landing", own) == came


def test_of_a_cluster_whose_task_reads_the_whole_bucket_everything_is() -> None:
    own = parsed(document(""), "landing")

    assert arrived([landed("landing", 1, "x")], "landing", own).objects == 1


def document(*prefixes: str, **more: Any) -> bytes:
    """What a leader writes."""
    return json.dumps({"v": 1, "bucket": "landing", "prefixes": prefixes, **more}).encode()


class Aws:
    """The group of a cluster, what its leader wrote, and how often both were asked."""

    def __init__(self, groups: Groups, written: bytes | None) -> None:
        self.groups, self.written = groups, written
        self.looks = self.reads = 0
        self.asked: dict[str, Any] = {}

    def client(self, _service: str, config: object = None) -> Aws:
        return self

    def describe_auto_scaling_groups(self, AutoScalingGroupNames: list[str]) -> dict[str, Any]:
        self.looks += 1
        return self.groups.describe_auto_scaling_groups(AutoScalingGroupNames)

    def set_desired_capacity(self, **asked: Any) -> None:
        self.groups.set_desired_capacity(**asked)

    def get_object(self, **asked: Any) -> dict[str, Any]:
        self.reads, self.asked = self.reads + 1, asked
        if self.written is None:
            raise PermissionError("AccessDenied: not authorized to perform s3:ListBucket")
        return {"Body": io.BytesIO(self.written)}


@pytest.fixture
def function(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., list[dict[str, Any]]]]:
    """Runs the function of a new process for batches of events; returns what it logged."""

    def forget() -> None:
        for each in (handler._autoscaling, handler._s3, handler._own_landing):
            each.cache_clear()

    def runs(aws: Aws, *batches: list[dict[str, Any]]) -> list[dict[str, Any]]:
        forget()
        monkeypatch.setattr("boto3.client", aws.client)
        for batch in batches:
            messages = [{"body": json.dumps(event)} for event in batch]
            handler.handle({"Records": messages}, None)
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    monkeypatch.setenv("GROUP_NAME", "shop")
    monkeypatch.setenv("LANDING_BUCKET", "landing")
    monkeypatch.setenv("CONFIGURATION_BUCKET", "configuration")
    monkeypatch.setenv("OWN_LANDING_KEY", "coordination/shop/landing")
    yield runs
    forget()


@pytest.mark.parametrize(
    ("state", "waits"), [("InService", False), ("Pending:Wait", True), (None, True)]
)
def test_what_lands_is_counted_in_bytes_while_no_node_serves(
    state: str | None, waits: bool, function: Callable[..., list[dict[str, Any]]]
) -> None:
    nodes = [{"LifecycleState": state}] if state else []
    aws = Aws(Groups(DesiredCapacity=len(nodes), MaxSize=4, Instances=nodes), document("orders/"))

    (line,) = function(aws, [landed("landing", 700), landed("landing", 9, "web/a")])

    (directive,) = line["_aws"]["CloudWatchMetrics"]
    assert [one["Name"] for one in directive["Metrics"]] == [
        "LandedObjects", *["LandedBytes"] * waits,
    ]  # fmt: skip
    assert (line["Cluster"], line["LandedObjects"]) == ("shop", 1)
    assert line.get("LandedBytes") == (700 if waits else None)
    assert aws.asked == {"Bucket": "configuration", "Key": "coordination/shop/landing"}


# Lambda hands on at most 6 MB; an event has 1,500 bytes with what SQS adds.
MOST = min(6_000_000 // 1_500, 10_000)


def first_load(folder: str) -> list[list[dict[str, Any]]]:
    """100,000 objects, in batches as Lambda hands them on."""
    objects = [landed("landing", 700, f"{folder}/{number}.json") for number in range(100_000)]
    return [objects[start : start + MOST] for start in range(0, len(objects), MOST)]


def test_a_hundred_thousand_objects_are_some_looks_at_the_group(
    function: Callable[..., list[dict[str, Any]]],
) -> None:
    """A first load: what Auto Scaling is asked it cannot answer to the nodes that boot."""
    aws = Aws(Groups(DesiredCapacity=0, MaxSize=4), document("orders/"))

    lines = function(aws, *first_load("orders"))

    assert sum(one["LandedBytes"] for one in lines) == 100_000 * 700
    assert sum(one["LandedObjects"] for one in lines) == 100_000
    assert (aws.looks <= 25, aws.reads) == (True, 1)
    assert aws.groups.group["DesiredCapacity"] == 1


def test_of_three_clusters_only_that_one_wakes_whose_objects_land(
    function: Callable[..., list[dict[str, Any]]],
) -> None:
    folders = ("orders", "web", "stock")
    clusters = {
        folder: Aws(Groups(DesiredCapacity=0, MaxSize=4), document(f"{folder}/"))
        for folder in folders
    }
    batches = first_load("orders")

    lines = [function(aws, *batches) for aws in clusters.values()]

    woken = [aws.groups.group["DesiredCapacity"] for aws in clusters.values()]
    assert woken == [1, 0, 0]
    # The functions of the others count nothing, and do not ask Auto Scaling.
    assert [len(one) > 0 for one in lines] == [True, False, False]
    assert [aws.looks > 0 for aws in clusters.values()] == [True, False, False]


@pytest.mark.parametrize(
    ("written", "because"),
    [
        (None, "cannot be read: AccessDenied"),
        (b"{", "damaged"),
        (b'{"v": 1, "bucket": "landing"}', "damaged: KeyError('prefixes')"),
        (b'{"v": 1, "bucket": "landing", "prefixes": null}', "damaged"),
        (document("orders/", v=2), "the newer format 2"),
        (document("orders/", bucket="their-landing"), "about another bucket, their-landing"),
    ],
    ids=["missing", "cut off", "incomplete", "nothing", "newer", "another bucket"],
)
def test_without_a_document_everything_that_lands_counts(
    written: bytes | None, because: str, function: Callable[..., list[dict[str, Any]]]
) -> None:
    aws = Aws(Groups(DesiredCapacity=0, MaxSize=4), written)

    (line,) = function(aws, [landed("landing", 700, "web/a.json")])

    assert aws.groups.group["DesiredCapacity"] == 1
    assert (line["LandedObjects"], line["counted"]) == (1, "everything that lands")
    assert because in line["because"]


def test_an_edit_of_tasks_wakes_a_cluster_whatever_its_leader_wrote(
    function: Callable[..., list[dict[str, Any]]],
) -> None:
    """The new leader then writes the prefixes of the new task."""
    aws = Aws(Groups(DesiredCapacity=0, MaxSize=4), document())

    function(aws, [landed("configuration", 700, "project/tasks/new.yml")])

    assert aws.groups.group["DesiredCapacity"] == 1


@pytest.mark.parametrize(("state", "counted"), [("InService", {}), (None, {"LandedBytes": 2})])
def test_an_edit_while_the_group_may_have_no_node_is_work_for_later(
    state: str | None, counted: dict[str, int], function: Callable[..., list[dict[str, Any]]]
) -> None:
    """Else what lands for a new task would not wake the group after the schedule, or a stop."""
    nodes = [{"LifecycleState": state}] if state else []
    aws = Aws(Groups(DesiredCapacity=0, MaxSize=0, Instances=nodes), document())

    lines = function(aws, [landed("configuration", 700, f"project/{name}") for name in "ab"])

    assert aws.groups.group["DesiredCapacity"] == 0
    names = ("LandedBytes", "LandedObjects")
    assert [{name: one[name] for name in names if name in one} for one in lines] == (
        [counted] if counted else []
    )


def test_what_a_leader_writes_is_known_within_a_minute() -> None:
    now = 100.0
    aws = Aws(Groups(), document("orders/"))
    reader = OwnLandingReader(("configuration", "key"), "landing", lambda: now)

    def known() -> bool:
        return reader(lambda: aws).has("web/a")

    assert not known()
    aws.written = document("orders/", "web/")
    now += 59.0
    assert not known()
    now += 1.0
    assert known()
    assert aws.reads == 2
