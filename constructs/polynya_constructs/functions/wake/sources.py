"""The Lambda function that looks at what waits outside of the buckets of an empty cluster.

It runs by the clock and does nothing while the group has nodes. The leader of the cluster has
written what to look at, and up to where it is read (Polynya's `cluster/control/watch_list.py`).
Schedules and Kinesis are looked at here. Kafka and databases are in a network, so another function
(`probe`) looks at them from there: it gets their passwords with the call, and has no rights to AWS
but those to log in at MSK.

A source that does not answer is logged and counted, starts no node, and hides no other one.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any, TypeAlias

import boto3
from botocore.config import Config

from .decision import Finding, Woken, decide, due_findings
from .handler import look, wake

VERSION = 1
"""The newest format of the document that is understood."""

WOKEN_TAG = "polynya:woken-for"
"""Tag of the group: what it was woken for last."""

_FRESH_SECONDS = 300.0
"""How long a secret is used before it is asked for again, as nodes do."""

_REFERENCE = re.compile(r"\$(\$?)\{secret:([^}#]+)(?:#([^}]+))?\}")
_MINUTES_A_DAY = 1440
_PROBED = frozenset({"kafka", "postgresql", "mysql"})

# Of 50 seconds in all; the other function takes 40 at most.
_IN_TIME = Config(connect_timeout=2, read_timeout=4, retries={"total_max_attempts": 2})
_PROBE_IN_TIME = Config(connect_timeout=2, read_timeout=43, retries={"total_max_attempts": 1})

Source: TypeAlias = Mapping[str, Any]


def handle(_event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Entry of the Lambda function."""
    now = datetime.now(UTC)
    client = _clients()
    group = look(client("autoscaling"), os.environ["GROUP_NAME"])
    if group["DesiredCapacity"] > 0:
        return {"action": "none: the group has nodes"}
    if group["MaxSize"] < 1:
        return {"action": "none: a schedule allows no node now"}
    return {"action": act(group, _watched().read(client), client, now)}


class Clients:
    """Clients of AWS by service and region. They live as long as the process."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, str | None], Any] = {}

    def __call__(self, service: str, region: str | None = None) -> Any:
        """The client of a service; None: of the function's own region."""
        if (service, region) not in self._made:
            config = _PROBE_IN_TIME if service == "lambda" else _IN_TIME
            self._made[service, region] = boto3.client(service, region_name=region, config=config)
        return self._made[service, region]


@cache
def _clients() -> Clients:
    return Clients()


@cache
def _watched() -> WatchListReader:
    return WatchListReader(os.environ["CONFIGURATION_BUCKET"], os.environ["SOURCES_KEY"])


@cache
def _secrets() -> Secrets:
    return Secrets()


def act(group: Mapping[str, Any], watched: Source, client: Clients, now: datetime) -> str:
    """Look, and wake the group if something waits; returns what was done and why.

    Raises:
        botocore.exceptions.ClientError: AWS refused; nothing was changed.
    """
    name = group["AutoScalingGroupName"]
    findings = list(found(watched, client, now))
    unseen = {finding.task: finding.why for finding in findings if finding.waits is None}
    if unseen:
        sys.stdout.write(json.dumps(record(name, unseen, now)) + "\n")
    decision = decide(findings, woken_before(group), now)
    if decision.woken is None:
        return decision.reason
    done = wake(client("autoscaling"), group)
    tag = {"ResourceId": name, "ResourceType": "auto-scaling-group", "Key": WOKEN_TAG}
    client("autoscaling").create_or_update_tags(
        Tags=[{**tag, "Value": decision.woken.text(), "PropagateAtLaunch": False}]
    )
    return f"{done}: {decision.reason}"


def found(watched: Source, client: Clients, now: datetime) -> Iterable[Finding]:
    """What waits; sources in the network are not asked when something else waits."""
    if "unreadable" in watched:
        why = f"what to look at is not known: {watched['unreadable']}"
        return [Finding("all tasks", waits=True, why=why, evidence="no list")]
    findings = due_findings(watched["due"], now)
    findings += [_unwatched(each) for each in watched["sources"] if each["unwatched"]]
    open_sources = [each for each in watched["sources"] if not each["unwatched"]]
    for each in open_sources:
        if each["kind"] == "kinesis":
            findings.append(_guarded(each, partial(kinesis, each, client, now)))
        elif each["kind"] not in _PROBED:
            why = f"this function does not know {each['kind']}: deploy its newest version"
            findings.append(Finding(each["task"], waits=None, why=why))
    if not any(finding.waits for finding in findings):
        findings += probed([one for one in open_sources if one["kind"] in _PROBED], client, now)
    return findings


def _unwatched(source: Source) -> Finding:
    return Finding(source["task"], waits=None, why=f"cannot be watched: {source['unwatched']}")


def _guarded(source: Source, ask: Callable[[], Finding]) -> Finding:
    try:
        return ask()
    except Exception as error:  # noqa: BLE001 - one source hides no other one
        return Finding(source["task"], waits=None, why=f"{type(error).__name__}: {error}"[:400])


def woken_before(group: Mapping[str, Any]) -> Woken | None:
    """What the group was woken for last; None: nothing is known."""
    tags = {tag["Key"]: tag.get("Value", "") for tag in group.get("Tags", ())}
    return Woken.of(tags.get(WOKEN_TAG, ""))


def record(cluster: str, unseen: Mapping[str, str], now: datetime) -> dict[str, Any]:
    """One log line that is also a metric (CloudWatch's embedded metric format)."""
    metrics = [{"Name": "SourcesUnseen", "Unit": "Count"}]
    directive = {"Namespace": "Polynya", "Dimensions": [["Cluster"]], "Metrics": metrics}
    return {
        "_aws": {"Timestamp": int(now.timestamp() * 1000), "CloudWatchMetrics": [directive]},
        "Cluster": cluster,
        "SourcesUnseen": len(unseen),
        "unseen": dict(unseen),
    }


class WatchListReader:
    """The document in a bucket. While it cannot be read, what was read last holds."""

    def __init__(self, bucket: str, key: str) -> None:
        self._place = {"Bucket": bucket, "Key": key}
        self._known: Source | None = None

    def read(self, client: Clients) -> Source:
        """`sources` and `due`, or `unreadable`: why nothing is known."""
        try:
            self._known = parsed(client("s3").get_object(**self._place)["Body"].read())
        except Exception as error:  # noqa: BLE001 - whatever it is, the cluster must not sleep on
            return self._known or {"unreadable": f"{type(error).__name__}: {error}"[:400]}
        return self._known


def parsed(document: bytes) -> Source:
    """What a document says. Raises ValueError, TypeError or LookupError for another one."""
    known = json.loads(document)
    if known["v"] > VERSION:
        raise ValueError(f"it has the newer format {known['v']}")
    sources = [
        {
            **each,
            "unwatched": each.get("unwatched"),
            "position": each.get("position"),
            "read_at": datetime.fromisoformat(each["read_at"]) if each.get("read_at") else None,
        }
        for each in known["sources"]
    ]
    due = {task: datetime.fromisoformat(moment) for task, moment in known["due"].items()}
    return {"sources": sources, "due": due}


def kinesis(source: Source, client: Clients, now: datetime) -> Finding:
    """Whether records have come to the streams of a landing since they were read.

    Kinesis counts them (`IncomingRecords`), so nothing is read and no right to read is needed. The
    count is there some minutes later; a record is never left out for that, because the time from
    which it is looked at stays.
    """
    task, place = source["task"], source["place"]
    region, position, read_at = place.get("region"), source["position"], source["read_at"]
    names = _streams(place["streams"], client, region)
    if position is None or read_at is None:
        why = "it is not known up to where it is read"
        return Finding(task, waits=bool(names), why=why, evidence="unknown")
    if source.get("more"):
        return Finding(task, waits=True, why="it had more when it was read last", evidence="more")
    new = [name for name in names if name not in position]
    if new and place.get("takes_new"):
        return Finding(task, waits=True, why=f"{new[0]} is a new stream", evidence=f"new {new}")
    counts = {name: _incoming(client, region, name, read_at, now) for name in position}
    waiting = {name: count for name, count in counts.items() if count}
    total = sum(waiting.values())
    why = f"{total:,.0f} records have come to {', '.join(waiting)}" if waiting else "no record"
    return Finding(task, waits=bool(waiting), why=why, evidence=str(waiting))


def _streams(patterns: Sequence[str], client: Clients, region: str | None) -> list[str]:
    """The streams that patterns take, of which only those with a wildcard are asked for."""
    if not any("%" in pattern for pattern in patterns):
        return list(patterns)
    pages = client("kinesis", region).get_paginator("list_streams").paginate()
    names = [name for page in pages for name in page["StreamNames"]]
    return [name for name in names if any(takes(pattern, name) for pattern in patterns)]


def takes(pattern: str, name: str) -> bool:
    """Whether a pattern with `%` for any text takes a name."""
    parts = (re.escape(part) for part in pattern.split("%"))
    return re.fullmatch(".*".join(parts), name, re.DOTALL) is not None


def _incoming(
    client: Clients, region: str | None, name: str, since: datetime, now: datetime
) -> float:
    """The records since a moment, counted from the beginning of its minute."""
    start = since.replace(second=0, microsecond=0)
    minutes = max(1, int((now - start) / timedelta(minutes=1)) + 1)
    # At most 1,440 values an answer; single minutes are kept for 15 days, five for 63.
    step = 60 if minutes <= _MINUTES_A_DAY else 300 * -(-minutes // (5 * _MINUTES_A_DAY))
    answer = client("cloudwatch", region).get_metric_statistics(
        Namespace="AWS/Kinesis",
        MetricName="IncomingRecords",
        Dimensions=[{"Name": "StreamName", "Value": name}],
        StartTime=start,
        EndTime=now + timedelta(minutes=1),
        Period=step,
        Statistics=["Sum"],
    )
    return sum(float(point["Sum"]) for point in answer["Datapoints"])


class Secrets:
    """Entries of Secrets Manager, as nodes read them."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._known: dict[str, tuple[float, str]] = {}

    def opened(self, place: Source, client: Clients) -> dict[str, Any]:
        """How a source is reached, with its secrets.

        Raises botocore.exceptions.ClientError, ValueError or LookupError.
        """
        texts = {name: place[name] for name in ("user", "password") if name in place}

        def value(match: re.Match[str]) -> str:
            escaped, name, field = match.groups()
            if escaped:
                return match[0][1:]
            text = self._entry(name, client)
            return text if field is None else str(json.loads(text)[field])

        return {**place, **{name: _REFERENCE.sub(value, text) for name, text in texts.items()}}

    def _entry(self, name: str, client: Clients) -> str:
        now = self._monotonic()
        asked, text = self._known.get(name, (None, ""))
        if asked is None or now >= asked + _FRESH_SECONDS:
            answer = client("secretsmanager").get_secret_value(SecretId=name)
            self._known[name] = asked, text = now, str(answer["SecretString"])
        return text


def probed(sources: Sequence[Source], client: Clients, now: datetime) -> list[Finding]:
    """What waits at sources in the network, as the other function found it."""
    findings: list[Finding] = []
    asked: list[dict[str, Any]] = []
    for source in sources:
        try:
            place = _secrets().opened(source["place"], client)
        except Exception as error:  # noqa: BLE001 - one source hides no other one
            # What a secret holds is in no message of these.
            why = f"a secret cannot be read: {type(error).__name__}"
            findings.append(Finding(source["task"], waits=None, why=why))
            continue
        read_at: datetime | None = source["read_at"]
        age = None if read_at is None else (now - read_at).total_seconds()
        asked.append({**source, "place": place, "read_at": None, "age_seconds": age})
    return [*findings, *_ask(asked, client)] if asked else findings


def _ask(asked: Sequence[Source], client: Clients) -> list[Finding]:
    probe = os.environ.get("PROBE_FUNCTION")
    if probe is None:
        why = "the stage names no brokers and no databases for this cluster"
        return [Finding(source["task"], waits=None, why=why) for source in asked]
    try:
        answer = client("lambda").invoke(
            FunctionName=probe, Payload=json.dumps({"sources": asked}).encode()
        )
        said = json.loads(answer["Payload"].read())
        failed = said.get("errorMessage", "") if answer.get("FunctionError") else None
    except Exception as error:  # noqa: BLE001 - schedules and streams are looked at in any case
        failed = str(error)
    if failed is not None:
        why = f"the function in the network fails: {failed}"[:400]
        return [Finding(source["task"], waits=None, why=why) for source in asked]
    return [Finding(**one) for one in said["findings"]]
