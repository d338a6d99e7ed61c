"""The Lambda function that looks at Kafka and at databases, from the network of the nodes.

It is called by `sources` with what to look at, up to where that is read, and how to log in. It asks
for ends of logs, and changes nothing. It needs the clients `kafka` (kafka-python), `pg8000` and
`pymysql`, all of them pure Python, which are packed beside it.
"""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict
from typing import Any, TypeAlias

from .decision import Finding

_CONNECT_SECONDS = 5
_ANSWER_SECONDS = 10
_ALL_SECONDS = 30.0
"""For all sources together, side by side, of the 40 seconds of the function."""
_SIDE_BY_SIDE = 16

_GIB = 1 << 30
MOST_LOG_BYTES = _GIB
"""So much more of its log may a PostgreSQL keep for a capture that sleeps; then it is woken, so
that its slot moves on."""
MOST_SECONDS_BEHIND = 6 * 3600.0
"""So long a place in a binlog may be left behind: servers delete old files, often after a day."""

_MOST_CHANGES = 20_000
_EVENTS_AT_ONCE = 5_000

Source: TypeAlias = Mapping[str, Any]


def handle(event: Mapping[str, Any], _context: object) -> dict[str, Any]:
    """Entry of the Lambda function: `sources` in, `findings` out."""
    return {"findings": [asdict(finding) for finding in look_at(event["sources"])]}


def look_at(sources: Sequence[Source], seconds: float = _ALL_SECONDS) -> list[Finding]:
    """What waits at each source; one that does not answer in time, or fails, hides no other one."""
    pool = ThreadPoolExecutor(_SIDE_BY_SIDE)
    begun = [(source, pool.submit(_look, source)) for source in sources]
    wait([future for _, future in begun], timeout=seconds)
    pool.shutdown(wait=False, cancel_futures=True)
    return [
        future.result()
        if future.done()
        else Finding(source["task"], waits=None, why=f"no answer in {seconds:.0f} seconds")
        for source, future in begun
    ]


def _look(source: Source) -> Finding:
    try:
        return _LOOKS[source["kind"]](source)
    except Exception as error:  # noqa: BLE001 - it says why this source cannot be seen
        why = f"{type(error).__name__}: {error}"
        if password := source["place"].get("password"):
            why = why.replace(password, "***")
        return Finding(source["task"], waits=None, why=why[:400])


def _context(place: Source, *, verify: bool = True, checks_host: bool = True) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=place.get("authorities") or None)
    context.check_hostname = verify and checks_host
    if not verify:
        context.verify_mode = ssl.CERT_NONE
    return context


def kafka(source: Source) -> Finding:
    """Whether the ends of the partitions of a landing are other ones than it has read."""
    # Start-up time: most looks are at one kind of source.
    from kafka import KafkaConsumer, TopicPartition

    place, position = source["place"], source["position"]
    settings: dict[str, Any] = {
        "bootstrap_servers": place["brokers"].split(","),
        "security_protocol": place["protocol"],
        "isolation_level": "read_committed" if place["committed"] else "read_uncommitted",
        "group_id": None,
        "enable_auto_commit": False,
        "request_timeout_ms": _ANSWER_SECONDS * 1000,
        "bootstrap_timeout_ms": _ANSWER_SECONDS * 1000,
        "client_id": "polynya-wake",
    }
    if "SSL" in place["protocol"]:
        settings["ssl_context"] = _context(place, checks_host=place["checks_host"])
    if place["mechanism"]:
        settings["sasl_mechanism"] = place["mechanism"]
    if "user" in place:
        settings["sasl_plain_username"] = place["user"]
        settings["sasl_plain_password"] = place["password"]
    consumer = KafkaConsumer(**settings)
    try:
        topics = [name for name in consumer.topics() if _any_takes(place["topics"], name, "%")]
        partitions = [
            TopicPartition(name, number)
            for name in topics
            for number in consumer.partitions_for_topic(name) or ()
        ]
        offsets = consumer.end_offsets(partitions) if partitions else {}
    finally:
        consumer.close()
    ends: dict[str, dict[str, int]] = {}
    for partition, end in offsets.items():
        ends.setdefault(partition.topic, {})[str(partition.partition)] = end
    return kafka_finding(source["task"], ends, position, takes_new=place["takes_new"])


def kafka_finding(
    task: str,
    ends: Mapping[str, Mapping[str, int]],
    position: Mapping[str, Mapping[str, int]] | None,
    *,
    takes_new: bool,
) -> Finding:
    """What the ends of topics mean for a landing that has read up to a position. Pure.

    Topics that came later, and that it leaves out, do not count.
    """
    if position is None:
        why = "it is not known up to where it is read"
        return Finding(task, waits=bool(ends), why=why, evidence=f"unknown {sorted(ends)}")
    waiting = {
        f"{topic}/{number}": end
        for topic, partitions in ends.items()
        if takes_new or topic in position
        for number, end in partitions.items()
        # If the end lies before the position, the topic was deleted and created again.
        if end != position.get(topic, {}).get(number, 0)
    }
    if not waiting:
        return Finding(task, waits=False, why="all was read")
    first = min(waiting)
    why = f"{len(waiting)} partitions end elsewhere than they are read, such as {first}"
    return Finding(task, waits=True, why=why, evidence=str(sorted(waiting.items())))


_SLOT = """\
SELECT active_pid, wal_status, pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::float8
FROM pg_replication_slots WHERE slot_name = :slot
"""
# By the first byte of a message: a change of a row, a truncation, a commit. A peek leaves the slot
# as it is.
_TRANSACTIONS = """\
SELECT xid::text, (max(lsn) FILTER (WHERE kind IN ('I', 'U', 'D', 'T')))::text,
       (max(lsn) FILTER (WHERE kind = 'C'))::text, count(*)
FROM (SELECT lsn, xid, chr(get_byte(data, 0)) AS kind
      FROM pg_logical_slot_peek_binary_changes(CAST(:slot AS name), NULL, CAST(:most AS integer),
        VARIADIC ARRAY['proto_version', '1', 'publication_names', CAST(:publication AS text)]))
     AS messages
GROUP BY xid
"""


def postgresql(source: Source) -> Finding:
    """Whether the log has changes for a slot that its capture has not landed."""
    # Start-up time, as above.
    import pg8000.native

    task, place, position = source["task"], source["place"], source["position"]
    encrypted = None
    if place["tls"] != "disable":
        encrypted = _context(place, verify=place["tls"] == "verify")
    connection = pg8000.native.Connection(
        place["user"], host=place["host"], port=place["port"], database=place["database"],
        password=place["password"], ssl_context=encrypted, timeout=_ANSWER_SECONDS,
        application_name="polynya-wake",
    )  # fmt: skip
    try:
        connection.run(f"SET statement_timeout = {(_ANSWER_SECONDS - 2) * 1000}")
        slots = connection.run(_SLOT, slot=place["slot"])
        if position is None:
            why = "it is not known up to where it is read"
            return Finding(task, waits=True, why=why, evidence="unknown")
        if not slots or slots[0][1] == "lost":
            state = "lost" if slots else "not there"
            return Finding(task, waits=None, why=f"the slot {place['slot']} is {state}")
        reader, _, kept = slots[0]
        if reader is not None:
            return Finding(task, waits=False, why=f"process {reader} reads the slot")
        grown = (kept or 0.0) - (position.get("log_bytes") or 0)
        if grown > MOST_LOG_BYTES:
            why = f"the server keeps {grown / _GIB:.1f} GiB more of its log for the slot"
            return Finding(task, waits=True, why=why, evidence=f"log {grown // MOST_LOG_BYTES:.0f}")
        name = '"' + place["publication"].replace('"', '""') + '"'
        rows = connection.run(
            _TRANSACTIONS, slot=place["slot"], most=_MOST_CHANGES, publication=name
        )
    finally:
        connection.close()
    return postgresql_finding(task, rows, position)


def postgresql_finding(task: str, rows: Iterable[Sequence[Any]], position: Source) -> Finding:
    """What the transactions in front of a slot mean for a capture that has landed up to a position.

    A slot may be behind what has landed. Transactions come in the order of their commits, so what
    is behind the last landed commit waits; of the next transaction a part, or all, may have landed.

    Args:
        task: the capture.
        rows: of each transaction its number, the place of its last change, that of its commit, and
            how many messages it has; None where there is none.
        position: `lsn_commit` or `lsn`, and perhaps `passed`: a transaction and a place.
    """
    landed = int(position.get("lsn_commit") or position.get("lsn") or 0)
    transaction, place = position.get("passed") or (None, 0)
    messages, waiting = 0, []
    for number, change, commit, count in rows:
        messages += count
        if change is None or commit is None or _lsn(commit) <= landed:
            continue
        if number != transaction or _lsn(change) > place:
            waiting.append(_lsn(commit))
    if waiting:
        why = f"{len(waiting)} transactions or more have changes"
        return Finding(task, waits=True, why=why, evidence=f"commit {max(waiting)}")
    if messages >= _MOST_CHANGES:
        why = f"the slot is {messages:,} messages behind, and there may be more"
        return Finding(task, waits=True, why=why, evidence=f"messages {messages}")
    return Finding(task, waits=False, why="nothing that is captured has changed")


def _lsn(text: str) -> int:
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


_TABLE = re.compile(r"\((.+)\)$")
_NO_CHANGE = re.compile(
    r"(?:use `(?:[^`]|``)*`; )?(?:BEGIN|COMMIT|ROLLBACK|SAVEPOINT|XA)\b", re.IGNORECASE
)
_HIDDEN = frozenset({"Transaction_payload"})
"""Of MySQL with `binlog_transaction_compression`: what is in it, only a reader of rows sees."""

_scanned: dict[tuple[str, str, int], tuple[str, int]] = {}
"""How far the events behind a position were looked at: a process looks at each of them once."""


def mysql(source: Source) -> Finding:
    """Whether the binlog has changes of captured tables, or statements, behind a position."""
    # Start-up time, as above.
    import pymysql

    task, place, position = source["task"], source["place"], source["position"]
    verify = place["tls"] == "verify"
    encrypted = (
        {"ssl_disabled": True}
        if place["tls"] == "disable"
        else {"ssl": _context(place, verify=verify)}
    )
    connection = pymysql.connect(
        host=place["host"], port=place["port"], user=place["user"], password=place["password"],
        connect_timeout=_CONNECT_SECONDS, read_timeout=_ANSWER_SECONDS, program_name="polynya-wake",
        local_infile=False, **encrypted,
    )  # fmt: skip
    try:

        def rows(statement: str) -> Sequence[Sequence[Any]]:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return tuple(cursor.fetchall())

        logs = [(str(row[0]), int(row[1])) for row in rows("SHOW BINARY LOGS")]
        if position is None:
            why = "it is not known up to where it is read"
            return Finding(task, waits=True, why=why, evidence="unknown")
        return mysql_finding(source, logs, rows)
    finally:
        connection.close()


def mysql_finding(
    source: Source,
    logs: Sequence[tuple[str, int]],
    rows: Callable[[str], Sequence[Sequence[Any]]],
    seconds: float = _ANSWER_SECONDS,
) -> Finding:
    """What the binlog means for a capture that has landed up to a position.

    Args:
        source: with `position`: `file` and `pos`, `age_seconds` of it, and the patterns of tables.
        logs: the files of the server with their sizes.
        rows: runs a statement.
        seconds: after which the rest is left to the next look.
    """
    task, place, position = source["task"], source["place"], source["position"]
    file, at = str(position["file"]), int(position["pos"])
    names = [name for name, _ in logs]
    if file not in names:
        return Finding(task, waits=True, why=f"{file} is not on the server", evidence=f"no {file}")
    if (file, at) == (logs[-1][0], logs[-1][1]):
        return Finding(task, waits=False, why="all was read")
    age = source.get("age_seconds")
    if age is None or age > MOST_SECONDS_BEHIND:
        why = f"the binlog has moved, and what is read is older than {MOST_SECONDS_BEHIND:.0f} s"
        return Finding(task, waits=True, why=why, evidence=f"old {file} {at}")
    key = (task, file, at)
    reached, start = _scanned.get(key, (file, at))
    until = time.monotonic() + seconds
    for name in names[names.index(reached) if reached in names else names.index(file) :]:
        while True:
            quoted = name.replace("'", "''").replace("\\", "\\\\")
            statement = f"SHOW BINLOG EVENTS IN '{quoted}' FROM {start} LIMIT {_EVENTS_AT_ONCE}"
            events = rows(statement)
            for event in events:
                if changed := _changes(event, place):
                    return Finding(task, waits=True, why=changed, evidence=f"{name} {event[1]}")
            if events:
                start = int(events[-1][4])
                _scanned[key] = name, start
            if time.monotonic() > until:
                return Finding(task, waits=False, why="nothing yet; the next look goes on")
            if len(events) < _EVENTS_AT_ONCE:
                break
        start = 4  # the first event of a file is behind its magic number
    return Finding(task, waits=False, why="nothing that is captured has changed")


def _changes(event: Sequence[Any], place: Source) -> str | None:
    """What of an event of a binlog concerns a capture; None: nothing does."""
    kind, info = str(event[2]), str(event[5] or "")
    if kind in _HIDDEN:
        return "there are compressed transactions"
    if kind == "Table_map" and (table := _TABLE.search(info)):
        taken = _any_takes(place["include"], table[1], "%*")
        if taken and not _any_takes(place["exclude"], table[1], "%*"):
            return f"{table[1]} has changed"
    if kind == "Query" and not _NO_CHANGE.match(info):
        return "there are statements that define tables"
    return None


def _any_takes(patterns: Iterable[str], name: str, wildcards: str) -> bool:
    """Whether a pattern takes a name; each of the wildcards stands for any text."""
    splits = (re.split(f"[{re.escape(wildcards)}]", pattern) for pattern in patterns)
    return any(
        re.fullmatch(".*".join(map(re.escape, parts)), name, re.DOTALL) is not None
        for parts in splits
    )


_LOOKS: Mapping[str, Callable[[Source], Finding]] = {
    "kafka": kafka,
    "postgresql": postgresql,
    "mysql": mysql,
}
