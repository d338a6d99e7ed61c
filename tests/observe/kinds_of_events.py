"""Every event of the engine: how it is made, what it says to people and to programs."""

from __future__ import annotations

from typing import Any

from polynya.model.errors import DependencyError
from polynya.observe import engine, events, streams
from polynya.observe.events import Event, Level

OUTAGE = DependencyError("POLYNYA-DEP-005", "S3\nis slow", where="s3://lake", fix="wait")

LOST = (
    "lost     clicks/clicks: clicks/3 was deleted and created again: it is read from its "
    "beginning, and unread records of the old one are lost"
)

GONE = (
    "lost     web.users: clicks/users: landed batches 5 to 6 with 40 messages were removed "
    "before the table copied them"
)

KEPT = (
    "kept     clicks/clicks: landed batches from number 5 on are older than `keep`: web.users has "
    "not copied them"
)

ROOM = (
    "waiting  clicks/clicks: landing waits for the copies of web.users: 2,000 landed bytes that "
    "they lack reached 1,000"
)

OF_THE_ENGINE: list[tuple[Event, Level, str, dict[str, Any]]] = [
    (
        streams.StreamLanded(
            subject="clicks/clicks",
            number=17,
            records=3000,
            bytes=600_000,
            object_bytes=90_000,
            lost_records=0,
            behind=1200,
            unit="records",
            seconds=1.5,
        ),
        Level.NOTE,
        "landed   clicks/clicks: 3,000 records in 1.5 s (2,000/s), 1,200 records behind",
        {
            "subject": "clicks/clicks",
            "number": 17,
            "records": 3000,
            "bytes": 600_000,
            "object_bytes": 90_000,
            "lost_records": 0,
            "behind_records": 1200,
            "seconds": 1.5,
        },
    ),
    (
        streams.StreamLost(
            subject="clicks/clicks", at="clicks/3", begin="one", end="two", reason="recreated"
        ),
        Level.CAUTION,
        LOST,
        {
            "subject": "clicks/clicks",
            "at": "clicks/3",
            "from": "one",
            "to": "two",
            "reason": "recreated",
        },
    ),
    (
        streams.StreamLost(
            subject="web.users", at="clicks/users", begin="5", end="6", reason="landing", records=40
        ),
        Level.CAUTION,
        GONE,
        {
            "subject": "web.users",
            "at": "clicks/users",
            "from": "5",
            "to": "6",
            "reason": "landing",
            "records": 40,
        },
    ),
    (
        streams.StreamExpired(subject="clicks/clicks", files=3),
        Level.DETAIL,
        "expired  clicks/clicks: 3 landed batches",
        {"subject": "clicks/clicks", "files": 3, "unread_files": 0},
    ),
    (
        streams.StreamExpired(subject="clicks/clicks", files=3, unread_files=2),
        Level.CAUTION,
        "expired  clicks/clicks: 3 landed batches, 2 of them not copied by every table",
        {"subject": "clicks/clicks", "files": 3, "unread_files": 2},
    ),
    (
        streams.StreamWaiting(
            subject="clicks/clicks",
            uncopied_bytes=2000,
            reason="2,000 landed bytes that they lack reached 1,000",
            tables=("web.users",),
        ),
        Level.CAUTION,
        ROOM,
        {
            "subject": "clicks/clicks",
            "uncopied_bytes": 2000,
            "reason": "2,000 landed bytes that they lack reached 1,000",
            "tables": ["web.users"],
        },
    ),
    (
        events.CopyWaiting(subject="web.users", reason="40 pending rows are 20 times 2"),
        Level.NOTE,
        "waiting  web.users: copies wait for the apply: 40 pending rows are 20 times 2",
        {"subject": "web.users", "reason": "40 pending rows are 20 times 2"},
    ),
    (
        streams.StreamKept(subject="clicks/clicks", number=5, tables=("web.users",)),
        Level.CAUTION,
        KEPT,
        {"subject": "clicks/clicks", "number": 5, "tables": ["web.users"]},
    ),
    (
        streams.StreamIgnored(subject="clicks", stream="clicks-eu"),
        Level.NOTE,
        "ignored  clicks: the new topic clicks-eu",
        {"subject": "clicks", "stream": "clicks-eu"},
    ),
    (
        engine.BatchCopied(
            subject="shop.users",
            rows_in=1200,
            rows_out=1100,
            rows_filtered=90,
            rows_quarantined=10,
            files=2,
            seconds=2.0,
            waited_seconds=3.0,
        ),
        Level.CAUTION,
        "copied   shop.users: 1,100 of 1,200 records, 10 quarantined in 2.0 s (600/s)",
        {
            "subject": "shop.users",
            "rows_in": 1200,
            "rows_out": 1100,
            "rows_filtered": 90,
            "rows_quarantined": 10,
            "files": 2,
            "seconds": 2.0,
            "waited_seconds": 3.0,
            "event_age_seconds": None,
        },
    ),
    (
        engine.ColumnUnknown(subject="shop.users", setting="timestamp", column="att", meant="at"),
        Level.WARNING,
        "shop.users: `timestamp` names `att`, which no record has; did you mean `at`?",
        {"subject": "shop.users", "setting": "timestamp", "column": "att", "meant": "at"},
    ),
    (
        engine.LoadProgress(
            subject="shop.users",
            reason="a first full load of 4194304 bytes",
            rows=1000,
            seconds=2.0,
            read_bytes=1 << 20,
            left_bytes=3 << 20,
        ),
        Level.NOTE,
        "loading  shop.users: 3 MiB left, about 6 s at 500 records/s",
        {
            "subject": "shop.users",
            "reason": "a first full load of 4194304 bytes",
            "rows": 1000,
            "seconds": 2.0,
            "read_bytes": 1 << 20,
            "left_bytes": 3 << 20,
            "left_seconds": 6,
        },
    ),
    (
        engine.LoadInBatches(subject="shop.users", reason="a key is there twice"),
        Level.DETAIL,
        "loading  shop.users: in batches: a key is there twice",
        {"subject": "shop.users", "reason": "a key is there twice"},
    ),
    (
        engine.DatasetApplied(
            subject="shop.users",
            reason="this run always applies",
            seconds=1.5,
            rows={"events": 9, "current": 4, "prior": 3, "removed": 1},
        ),
        Level.NOTE,
        (
            "applied  shop.users: 9 changes, 7 rows written, 1 removed in 1.5 s "
            "(this run always applies)"
        ),
        {
            "subject": "shop.users",
            "reason": "this run always applies",
            "seconds": 1.5,
            "events": 9,
            "current": 4,
            "prior": 3,
            "removed": 1,
        },
    ),
    (
        engine.ApplySkipped(subject="shop.users", reason="nothing is pending"),
        Level.DETAIL,
        "waiting  shop.users: nothing is pending",
        {"subject": "shop.users", "reason": "nothing is pending"},
    ),
    (
        engine.ColumnsRewritten(
            subject="shop.users",
            columns={"price": "bigint → double"},
            rows=1200,
            size_bytes=3400,
            seconds=1.26,
        ),
        Level.NOTE,
        "rewrote  shop.users: price bigint → double, 1,200 rows in 1.3 s",
        {
            "subject": "shop.users",
            "columns": {"price": "bigint → double"},
            "rows": 1200,
            "size_bytes": 3400,
            "seconds": 1.26,
        },
    ),
    (
        engine.SchemaChanged(
            subject="shop.users", change="add_column", policy="apply", says="new column a"
        ),
        Level.NOTE,
        "changed  shop.users: new column a (propagate)",
        {
            "subject": "shop.users",
            "change": "add_column",
            "policy": "apply",
            "says": "new column a",
        },
    ),
    (
        engine.FileChanged(subject="shop.users", file="1.json", size_bytes=9, copied_bytes=7),
        Level.WARNING,
        "shop.users: 1.json changed after it was copied; the new content is not read",
        {"subject": "shop.users", "file": "1.json", "size_bytes": 9, "copied_bytes": 7},
    ),
    (
        engine.RowsDerived(
            subject="sales.cities",
            rows=3,
            changes={"inserts": 1, "updates": 2},
            seconds=1.5,
            how="3 of city",
        ),
        Level.NOTE,
        "derived  sales.cities: 3 rows in 1.5 s, 1 insert, 2 updates (3 of city)",
        {
            "subject": "sales.cities",
            "rows": 3,
            "changes": {"inserts": 1, "updates": 2},
            "seconds": 1.5,
            "how": "3 of city",
            "rows_quarantined": 0,
        },
    ),
    (
        engine.ExpectationFailed(
            subject="sales.cities", expectation="not_null(people)", reason="1 of 7 rows"
        ),
        Level.WARNING,
        "sales.cities: not_null(people) fails: 1 of 7 rows",
        {
            "subject": "sales.cities",
            "expectation": "not_null(people)",
            "reason": "1 of 7 rows",
        },
    ),
    (
        engine.DerivedTableWaits(subject="sales.cities", table="shop.users"),
        Level.NOTE,
        "waiting  sales.cities: shop.users has no columns yet",
        {"subject": "sales.cities", "table": "shop.users"},
    ),
    (
        engine.FileWaiting(subject="shop.users", file="1.csv", waits_for="1.dfm"),
        Level.NOTE,
        "waiting  shop.users: 1.csv: 1.dfm has not landed",
        {"subject": "shop.users", "file": "1.csv", "waits_for": "1.dfm"},
    ),
    (
        engine.ReloadLoaded(
            subject="shop.users", rows_in=9, rows_loaded=8, rows_quarantined=1, files_left=2
        ),
        Level.NOTE,
        "loaded   shop.users: 8 rows, 2 files left",
        {
            "subject": "shop.users",
            "rows_in": 9,
            "rows_loaded": 8,
            "rows_quarantined": 1,
            "files_left": 2,
        },
    ),
    (
        engine.ExtractApplied(
            subject="shop.users",
            extract="1.csv",
            time="2026-01-01T00:00:00+00:00",
            rows_loaded=8,
            rows_quarantined=1,
            complete=False,
        ),
        Level.NOTE,
        "extract  shop.users: 1.csv, 8 rows, incomplete",
        {
            "subject": "shop.users",
            "extract": "1.csv",
            "time": "2026-01-01T00:00:00+00:00",
            "rows_loaded": 8,
            "rows_quarantined": 1,
            "complete": False,
        },
    ),
    (
        engine.ExtractWaiting(subject="shop.users", extract="1", reason="no _SUCCESS"),
        Level.NOTE,
        "waiting  shop.users: 1: no _SUCCESS",
        {"subject": "shop.users", "extract": "1", "reason": "no _SUCCESS"},
    ),
    (
        engine.ReloadWaiting(subject="shop.users", files=2),
        Level.NOTE,
        (
            "waiting  shop.users: a reload is in progress: "
            "`polynya reload` has to read 2 more files of its load"
        ),
        {"subject": "shop.users", "files": 2},
    ),
    (
        engine.ExtractRestarted(subject="shop.users", extract="1", reason="it left"),
        Level.NOTE,
        "restarted shop.users: 1: it left",
        {"subject": "shop.users", "extract": "1", "reason": "it left"},
    ),
    (
        engine.LoadCompared(
            subject="shop.prices",
            time="2026-01-01T02:30:00+00:00",
            rows_loaded=1000,
            rows_quarantined=1,
        ),
        Level.NOTE,
        "compared shop.prices: a load of 1,000 rows, incomplete",
        {
            "subject": "shop.prices",
            "time": "2026-01-01T02:30:00+00:00",
            "rows_loaded": 1000,
            "rows_quarantined": 1,
        },
    ),
    (
        engine.LoadDiscarded(subject="shop.prices", rows=1000, reason="it lacks a chunk"),
        Level.WARNING,
        "discarded shop.prices: 1,000 rows of a load: it lacks a chunk",
        {"subject": "shop.prices", "rows": 1000, "reason": "it lacks a chunk"},
    ),
    (
        engine.UnitFailed(subject="shop.users", error=OUTAGE),
        Level.FAILURE,
        "failed   shop.users: s3://lake: S3 is slow (POLYNYA-DEP-005); wait",
        {
            "subject": "shop.users",
            "code": "POLYNYA-DEP-005",
            "message": "s3://lake: S3\nis slow; wait",
        },
    ),
    (
        engine.UnitRecovered(subject="shop.users"),
        Level.NOTE,
        "recovered shop.users: works again",
        {"subject": "shop.users"},
    ),
    (
        events.RunStarted(subject="shop", target="local", tasks=("users",)),
        Level.NOTE,
        "start    shop: target local, 1 task",
        {"subject": "shop", "target": "local", "tasks": ["users"]},
    ),
    (
        events.StepProgress(
            subject="shop.users",
            step="loading",
            seconds=2.0,
            rows=1000,
            files_left=3,
            left_bytes=5 << 20,
            left_seconds=6.2,
        ),
        Level.PROGRESS,
        "loading  shop.users: 3 files, 5.0 MiB left, 500 records/s, about 6 s",
        {
            "subject": "shop.users",
            "step": "loading",
            "seconds": 2.0,
            "rows": 1000,
            "files_left": 3,
            "left_bytes": 5 << 20,
            "left_seconds": 6,
        },
    ),
    (
        events.StepEnded(subject="shop.users"),
        Level.PROGRESS,
        "ended    shop.users: the step is over",
        {"subject": "shop.users"},
    ),
    (
        engine.ViewsPublished(subject="shop.users", views=("shop.users", "shop.users_history")),
        Level.DETAIL,
        "views    shop.users, shop.users_history",
        {"subject": "shop.users", "views": ["shop.users", "shop.users_history"]},
    ),
    (
        engine.ViewsFailed(subject="shop.users", error=OUTAGE),
        Level.WARNING,
        (
            "shop.users: other engines may miss its views: "
            "s3://lake: S3 is slow (POLYNYA-DEP-005); wait"
        ),
        {
            "subject": "shop.users",
            "error": "s3://lake: S3\nis slow; wait",
            "code": "POLYNYA-DEP-005",
        },
    ),
]
