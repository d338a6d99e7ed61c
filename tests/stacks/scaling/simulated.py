"""A cluster in a simulated time: its group is one of moto, its code that of nodes and functions.

Real are the template with its alarms and policies, the two functions, and what makes figures of a
node's report. Simulated are time, CloudWatch, and the work: so many seconds of it in a minute.
"""

from __future__ import annotations

import copy
import io
import json
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from unittest.mock import patch

from polynya.cluster.report import MetricsOutlet
from polynya.observe.metrics import Minute as MetricGroup
from polynya.observe.metrics import emf_records
from polynya_constructs.functions.figures import handler as figures
from polynya_constructs.functions.wake import handler as wake
from polynya_constructs.functions.wake import sources as looks
from polynya_constructs.functions.wake.decision import Finding
from polynya_constructs.functions.wake.own_landing import OwnLanding
from polynya_constructs.functions.wake.probe import kafka_finding
from tests.aws import REGION
from tests.stacks.house_rules import Template, resources
from tests.stacks.scaling.cloudwatch import BEGIN, Metrics
from tests.stacks.scaling.policies import Policies

BOOT_MINUTES: Final = 3
BYTES_PER_SECOND: Final = 2e6
_IDLE: Final = {
    "records": 0, "failures": 0, "fenced_total": 0, "maintenance_bytes": 0,
    "health_percent": None, "shape": None, "lag_seconds": 0.0, "streams": {}, "captures": {},
    "mirrors": {}, "state": "running", "held": False, "quarantined": 0,
}  # fmt: skip
LANDING: Final = "landing"
ALL: Final = OwnLanding(None, "no document is there yet")
_RETENTION: Final = 15
"""Minutes for which the queue of events keeps them."""


class Group:
    """A group of moto with the bounds of the template's; also its client, for the functions."""

    def __init__(self, client: Callable[[str], Any], template: Template, boot: int) -> None:
        (asked,) = resources(template, "AWS::AutoScaling::AutoScalingGroup").values()
        self.name: str = asked["AutoScalingGroupName"]
        self._client, self.launched, self.minute = client("autoscaling"), dict[str, int](), 0
        self._boot = boot
        self.asked: list[int] = []
        self.ended_while_booting = 0
        self._known: dict[str, Any] | None = None
        self._client.create_launch_configuration(
            LaunchConfigurationName=self.name,
            ImageId="ami-12c6146b",
            InstanceType="m7g.xlarge",
        )
        self._client.create_auto_scaling_group(
            AutoScalingGroupName=self.name,
            LaunchConfigurationName=self.name,
            MinSize=int(asked["MinSize"]),
            MaxSize=int(asked["MaxSize"]),
            AvailabilityZones=[f"{REGION}a"],
        )
        self.now(-boot)

    def remove(self) -> None:
        """Delete it, so that there can be another one of its name."""
        self._client.delete_auto_scaling_group(AutoScalingGroupName=self.name, ForceDelete=True)
        self._client.delete_launch_configuration(LaunchConfigurationName=self.name)

    def now(self, minute: int) -> None:
        """Take note of who came and who went until this minute."""
        self.minute = minute
        ids = {one["InstanceId"] for one in self._described()["Instances"]}
        gone = [start for one, start in self.launched.items() if one not in ids]
        self.ended_while_booting += sum(minute - start < self._boot for start in gone)
        self.launched = {one: self.launched.get(one, minute) for one in sorted(ids)}

    @property
    def bounds(self) -> tuple[int, int]:
        group = self._described()
        return group["MinSize"], group["MaxSize"]

    @property
    def serving(self) -> list[str]:
        return [one for one, start in self.launched.items() if self.minute - start >= self._boot]

    def warm(self, seconds: float) -> int:
        """How many nodes have been in service for so many seconds, or longer."""
        ready = self.minute - self._boot - seconds / 60
        return sum(start <= ready for start in self.launched.values())

    def describe_auto_scaling_groups(self, AutoScalingGroupNames: list[str]) -> dict[str, Any]:
        """With nodes that boot for some minutes, as the launch hook keeps them."""
        assert AutoScalingGroupNames == [self.name]
        group = self._described()
        for one in group["Instances"]:
            if one["InstanceId"] not in self.serving:
                one["LifecycleState"] = "Pending:Wait"
        return {"AutoScalingGroups": [group]}

    def set_desired_capacity(self, **asked: Any) -> None:
        self.asked.append(asked["DesiredCapacity"])
        self._client.set_desired_capacity(**asked)
        self._known = None

    def create_or_update_tags(self, **asked: Any) -> None:
        self._client.create_or_update_tags(**asked)
        self._known = None

    def _described(self) -> dict[str, Any]:
        """The group as it is; it is asked again when it was changed, for nobody else changes it."""
        if self._known is None:
            names = [self.name]
            answer = self._client.describe_auto_scaling_groups(AutoScalingGroupNames=names)
            self._known = answer["AutoScalingGroups"][0]
        return copy.deepcopy(self._known)


class _Topic:
    """A topic with one partition and a schedule; also the client that asks in the network."""

    def __init__(
        self, records: Callable[[int], int], due: int | None, silent: Callable[[int], bool]
    ) -> None:
        self._records, self._due, self._silent = records, due, silent
        self._minute, self._end, self._read_to = 0, 0, 0

    def grow(self, minute: int) -> None:
        """Take the records of a minute."""
        self._minute = minute
        self._end += self._records(minute)

    def take(self, minute: int) -> tuple[float, dict[str, Any]]:
        """Seconds of work for a node, and what to look at from now on."""
        work = 10.0 * (self._end - self._read_to)
        if self._due is not None and self._due <= minute:
            work, self._due = work + 10.0, None
        return work, self.read(self._end)

    def read(self, end: int) -> dict[str, Any]:
        """What to look at where the topic is read up to `end`."""
        self._read_to = end
        due = {} if self._due is None else {"load": BEGIN + timedelta(minutes=self._due)}
        source = {
            "task": "clicks", "kind": "kafka", "unwatched": None, "read_at": None,
            "place": {}, "position": {"clicks": {"0": end}},
        }  # fmt: skip
        return {"sources": [source], "due": due}

    def invoke(self, FunctionName: str, Payload: bytes) -> dict[str, Any]:
        """As the function in the network answers."""
        assert FunctionName == "probe"
        (source,) = json.loads(Payload)["sources"]
        ends = {"clicks": {"0": self._end}}
        found = kafka_finding(source["task"], ends, source["position"], takes_new=True)
        if self._silent(self._minute):
            found = Finding(source["task"], waits=None, why="no answer")
        answer = json.dumps({"findings": [asdict(found)]}).encode()
        return {"Payload": io.BytesIO(answer)}


def _minutes_between_looks(template: Template) -> int:
    """As the rule of the function has it; 0: there is none."""
    for rule in resources(template, "AWS::Events::Rule").values():
        described = rule.get("Description", "")
        if "looks at the sources" in described and rule["State"] == "ENABLED":
            return int(rule["ScheduleExpression"].split("(")[1].split()[0])
    return 0


@dataclass(slots=True)
class _Work:
    """Work in order of arrival: pairs of the minute and the seconds."""

    waiting: deque[tuple[int, float]] = field(default_factory=deque)

    def do_first(self, most: float) -> float:
        """Do the work that came first, or `most` seconds of it; returns how many it took."""
        minute, first = self.waiting.popleft()
        if first > most:
            self.waiting.appendleft((minute, first - most))
        return min(first, most)

    @property
    def seconds(self) -> float:
        return sum(seconds for _, seconds in self.waiting)

    def age(self, minute: int) -> float:
        return (minute - self.waiting[0][0]) * 60.0 if self.waiting else 0.0


@dataclass(frozen=True, slots=True)
class Minute:
    """How a minute ended: nodes that serve and that are wanted, and what waits."""

    serving: int
    size: int
    backlog: float
    age: float


class SimulatedCluster:
    """`curve` is the work that lands in each minute, in seconds of one node.

    `away` tells in which minutes a service works for the first node, `fails` in which ones the
    function that wakes the group does. `lands` are the objects of a minute in the landing bucket by
    their folder, those of other clusters too; by default one of its own where there is work, in the
    folder `own`, its `folder`. `own` is what the function knows of them.

    `records` are those that come to a topic in each minute, which a node lands in its next minute,
    each as ten seconds of work. `due` is the minute of a schedule, which a node that serves then or
    later takes. `silent` tells in which minutes the brokers do not answer. Before the first node
    has served, nothing is known of what to look at, unless `reads_from` is a position.
    """

    def __init__(
        self,
        client: Callable[[str], Any],
        template: Template,
        curve: Callable[[int], float],
        *,
        boot: int = BOOT_MINUTES,
        agents_late: int = 0,
        away: Callable[[int], bool] = lambda _: False,
        fails: Callable[[int], bool] = lambda _: False,
        lands: Callable[[int], Mapping[str, int]] | None = None,
        folder: str = "own",
        own: OwnLanding = ALL,
        removes_while_booting: bool = False,
        records: Callable[[int], int] = lambda _: 0,
        due: int | None = None,
        silent: Callable[[int], bool] = lambda _: False,
        reads_from: int | None = 0,
    ) -> None:
        self._topic = _Topic(records, due, silent)
        self._watched = None if reads_from is None else self._topic.read(reads_from)
        self._looks_every = _minutes_between_looks(template)
        self._away, self._fails, self._folder, self._own = away, fails, folder, own
        self._lands = lands or (lambda minute: {folder: 1} if curve(minute) else {})
        self.group = Group(client, template, boot)
        self.metrics = Metrics(agents_late=agents_late)
        self._curve = curve
        self._policies = Policies(
            _resolved(template), self.metrics, removes_while_booting=removes_while_booting
        )
        self._queues = list(resources(template, "AWS::SQS::Queue"))
        self._template = template
        self._events: deque[tuple[int, list[dict[str, Any]]]] = deque()
        self._units = [_Work() for _ in range(12)]
        self._outlets: dict[str, MetricsOutlet] = {}
        self._busy: dict[str, float] = {}

    def run(self, minutes: int) -> list[Minute]:
        """Let so many minutes pass."""
        return [self._pass(minute) for minute in range(minutes)]

    def _pass(self, minute: int) -> Minute:
        now = BEGIN + timedelta(minutes=minute)
        self.group.now(minute)
        self._land(self._curve(minute), minute)
        self._topic.grow(minute)
        if self.group.serving:
            self._read(minute)
        if self._queues:
            self._wake(minute, now)
        if self._looks_every and minute % self._looks_every == 0:
            self._look(minute, now)
        serving = self.group.serving
        for number, node in enumerate(serving):
            self._publish(node, self._units[number :: len(serving)], minute, now)
        if not serving:
            group = figures.find(self.group, self.group.name)
            found = figures.look(group, self.metrics, self.group.name, now)
            if found is not None:
                self.metrics.take(figures.record(self.group.name, found, now))
                figures.wake(self.group, group, found)
                self.group.now(minute)
        self._scale(minute)
        backlog = sum(unit.seconds for unit in self._units)
        age = max(unit.age(minute) for unit in self._units)
        return Minute(len(serving), len(self.group.launched), backlog, age)

    def _land(self, work: float, minute: int, lands: Mapping[str, int] | None = None) -> None:
        if work:
            for unit in self._units:
                unit.waiting.append((minute, work / len(self._units)))
        for folder, number in (self._lands(minute) if lands is None else lands).items():
            size = int(work * BYTES_PER_SECOND / number) if folder == self._folder else 1000
            events = [_event(f"{folder}/{minute}-{one}.json", size) for one in range(number)]
            self._events.append((minute, events))

    def _wake(self, minute: int, now: datetime) -> None:
        """The queue hands its events to the function, or keeps them while that fails."""
        fails = self._fails(minute)
        while self._events and minute - self._events[0][0] > _RETENTION:
            self._events.popleft()
        if self._events:
            age = (minute - self._events[0][0]) * 60.0 if fails else 20.0
            name = {"QueueName": self._queues[0]}
            self.metrics.put("AWS/SQS", "ApproximateAgeOfOldestMessage", name, minute, age)
        while self._events and not fails:
            _, events = self._events.popleft()
            came = wake.arrived(events, LANDING, self._own)
            with redirect_stdout(io.StringIO()) as log:
                wake.act(came, self.group.name, self._own, lambda: self.group, now)
            for line in log.getvalue().splitlines():
                self.metrics.take(json.loads(line))
            self.group.now(minute)

    def _read(self, minute: int) -> None:
        """A node lands what waits in the topic, and takes the schedule that is due."""
        work, self._watched = self._topic.take(minute)
        if work:
            self._land(work, minute, {self._folder: 1})

    def _look(self, minute: int, now: datetime) -> None:
        """The function looks at the sources, as a clock starts it."""
        counts = {"FunctionName": next(iter(self._functions("wake.sources.handle")))}
        self.metrics.put("AWS/Lambda", "Invocations", counts, minute, 1)
        self.metrics.put("AWS/Lambda", "Errors", counts, minute, 0)
        group = wake.look(self.group, self.group.name)
        if group["DesiredCapacity"] > 0 or group["MaxSize"] < 1:
            return
        watched = self._watched or {"unreadable": "there is no object"}
        clients = {"autoscaling": self.group, "lambda": self._topic}
        with (
            patch.dict("os.environ", PROBE_FUNCTION="probe"),
            redirect_stdout(io.StringIO()) as log,
        ):
            looks.act(group, watched, lambda name: clients[name], now)  # type: ignore[arg-type]
        for line in log.getvalue().splitlines():
            self.metrics.take(json.loads(line))
        self.group.now(minute)

    def _publish(self, node: str, units: list[_Work], minute: int, now: datetime) -> None:
        """A node works for a minute, and publishes what waits for it then."""
        share, threads = 60.0, 4
        while share > 1e-9 and (late := max(units, key=lambda unit: unit.age(minute))).waiting:
            share -= late.do_first(share)
        self._busy[node] = self._busy.get(node, 0.0) + threads * (60.0 - share)
        seconds = sum(unit.seconds for unit in units)
        waiting = {
            "seconds": seconds,
            "bytes": seconds * BYTES_PER_SECOND,
            "oldest_seconds": max((unit.age(minute) for unit in units), default=0.0),
            "elsewhere": False,
            "keeps_node": node == self.group.serving[0] and self._away(minute),
        }
        outlet = self._outlets.setdefault(node, MetricsOutlet(self._take))
        engine = {"threads": threads, "busy_seconds": self._busy[node]}
        said = outlet.put(_report(self.group.name, node, waiting, engine, now))
        assert said is None

    def _functions(self, handler: str) -> list[str]:
        """Names in the template of the functions with a handler."""
        found = resources(self._template, "AWS::Lambda::Function").items()
        return [name for name, function in found if function["Handler"] == handler]

    def _take(self, figures: MetricGroup) -> None:
        for line in emf_records(figures):
            self.metrics.take(line)

    def _scale(self, minute: int) -> None:
        name = {"AutoScalingGroupName": self.group.name}
        size, serving = len(self.group.launched), len(self.group.serving)
        in_group = {"GroupInServiceInstances": serving, "GroupDesiredCapacity": size}
        for metric, value in in_group.items():
            self.metrics.put("AWS/AutoScaling", metric, name, minute, value)
        least, most = self.group.bounds
        wanted = min(max(self._policies.wanted(self.group, minute), least), most)
        if wanted != size:
            self.group.set_desired_capacity(**name, DesiredCapacity=wanted)
            self.group.now(minute)


def _event(key: str, size: int) -> dict[str, Any]:
    """What S3 tells of an object."""
    return {"detail": {"bucket": {"name": LANDING}, "object": {"key": key, "size": size}}}


def _report(
    cluster: str,
    node: str,
    waiting: Mapping[str, float],
    engine: Mapping[str, float],
    now: datetime,
) -> dict[str, Any]:
    return {
        "at": now,
        "node": node,
        "cluster": cluster,
        "state": "running",
        "backlog": waiting,
        "engine": engine,
        "sharing": None,
        "tasks": {"work": {"state": "running", "jobs": {"all": {**_IDLE, "backlog": waiting}}}},
    }


def _resolved(template: Template) -> Template:
    """The template, with names where dimensions refer to something of it."""
    things = template["Resources"]

    def resolved(value: Any, key: str = "") -> Any:
        if isinstance(value, list):
            return [resolved(each, key) for each in value]
        if not isinstance(value, dict):
            return value
        if key == "Value" and set(value) == {"Fn::GetAtt"}:
            return value["Fn::GetAtt"][0]
        if key == "Value" and set(value) == {"Ref"}:
            properties = things[value["Ref"]].get("Properties", {})
            return properties.get("AutoScalingGroupName", value["Ref"])
        return {name: resolved(part, name) for name, part in value.items()}

    found: Template = resolved(template)
    return found
