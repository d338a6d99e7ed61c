"""One scenario: a dataset lives through random steps, in the engine and in the world beside it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from polynya.engine.commands.rebuild import rebuild
from polynya.engine.commands.reload import ReloadRequest, reload
from polynya.lake.read.verify import verify
from polynya.model.config.dataset import ReloadMode
from tests.lab.lab import EPOCH, Feed, Lab
from tests.oracle.histories import Choices
from tests.oracle.values import bag, difference
from tests.scenarios.kills import Kill, in_spite_of
from tests.scenarios.world import World

KEYS = 6
_ARROW = {"bigint": pa.int64(), "string": pa.string()}
_FOLLOW = {"incompatible_type": "apply", "rename_column": "apply"}


class Life:
    """See the module. Every step is told in `told`, so that a failure can be read."""

    def __init__(self, lab: Lab, choices: Choices) -> None:
        self.lab, self.choices = lab, choices
        self.world = World()
        self.told: list[str] = []
        self.history = choices.integer(0, 3) > 0
        self.soft = choices.integer(0, 3) == 0
        self.drops = choices.integer(0, 1) == 1
        self.keeps = choices.integer(0, 2) > 0
        policies = {**_FOLLOW, "drop_column": "apply" if self.drops else "ignore"}
        self.feed: Feed = lab.feed(
            "t",
            task={"landing": {"path": f"{lab.schema}/t", "format": "parquet"}},
            path="changes/*.parquet",
            initial_load="load/*.parquet",
            history=self.history,
            delete_mode="soft" if self.soft else "hard",
            apply_as_truncates=None,
            schema_evolution=policies,
            changes_retention="keep" if self.keeps else None,
        )
        self._files = 0
        self._sequence = 0
        self._late = 0
        self.kill: Kill | None = None
        for kind in ("bigint", "string"):
            self.world.add_column(kind)

    def live(self, steps: int) -> list[str]:
        """Take random steps; what differs from the world at times, and what is unsound."""
        if self.choices.integer(0, 1):
            self._first_load()
        self._changes()
        for _ in range(steps):
            self._step()
            # What is wrong stays wrong: not every step needs a look, but some before they hide it.
            if self.choices.integer(0, 2) == 0:
                found = self.mismatches()
                if found:
                    return found
        unsound = verify(self.feed.table()).findings
        return [*self.mismatches(), *(f"verify: {finding}\n{self.told}" for finding in unsound)]

    def _step(self) -> None:
        step: Callable[[], None] = self.choices.pick(
            [self._changes, self._changes, self._ddl, self._reload, self._rebuild]
            if self.keeps
            else [self._changes, self._changes, self._ddl, self._reload, self._apply]
        )
        if self.choices.integer(0, 3) == 0:
            self.kill = Kill(self.choices.integer(1, 3), after=bool(self.choices.integer(0, 1)))
        self.lab.clock.advance(timedelta(seconds=1))
        step()
        self.kill = None

    # ---- what the source does ----

    def _first_load(self) -> None:
        rows = self._rows()
        self._say(f"first load of {sorted(rows)}")
        self._land_load(rows)
        self._run("never")
        self.world.first_load(rows, self.lab.clock.now())

    def _changes(self) -> None:
        """Some changes, each new, or older than others that were copied."""
        events = []
        for _ in range(self.choices.integer(1, 5)):
            key, seq = self.choices.integer(1, KEYS), self._next()
            at = EPOCH + timedelta(seconds=seq)
            if self.choices.integer(0, 3) == 0:
                self.world.delete(key, seq, at)
                row = {column.name: None for column in self.world.columns}
                events.append({"id": key, "op": "D", "seq": seq, "at": at, **row})
            else:
                row = self._row()
                self.world.change(key, seq, row, at)
                events.append({"id": key, "op": "U", "seq": seq, "at": at, **row})
        self._say("changes " + ", ".join(f"{e['op']}{e['id']}@{e['seq']}" for e in events))
        self._land("changes", events)
        self._run(self.choices.pick(("never", "always")))

    def _ddl(self) -> None:
        """The source changes its shape, and then some rows."""
        columns = self.world.columns
        column = self.choices.pick(columns)
        change = self.choices.pick(("add", "drop", "rename", "retype"))
        if change == "drop" and len(columns) > 1:
            self.world.drop(column, follow=self.drops)
        elif change == "rename" and column.variant is None:
            self.world.rename(column)
        elif change == "retype" and column.kind == "bigint":
            self.world.retype(column)
        else:
            column = self.world.add_column(self.choices.pick(("bigint", "string")))
            change = "add"
        self._say(f"{change} {column.name}")
        self._changes()

    def _reload(self) -> None:
        mode: ReloadMode = self.choices.pick(get_args(ReloadMode))
        rows = self._rows() or {1: self._row()}
        self._say(f"reload {mode} of {sorted(rows)}")
        self._land_load(rows)
        if self.feed.table().state.copy.reloading is not None:
            return
        before = self.feed.table().state.copy.reloads
        at = self.lab.clock.now()

        def once() -> None:
            state = self.feed.table().state.copy
            if state.reloads == before or state.reloading is not None:
                context = self.lab.context(**self.feed.applier)
                assert (
                    reload(context, ReloadRequest(self.feed.task, self.feed.dataset, mode=mode))
                    is not None
                )

        self._until_done(once)
        self.world.reload(mode, rows, at)

    def _apply(self) -> None:
        self._say("apply")
        self._run("always")

    def _rebuild(self) -> None:
        self._say("rebuild")
        if self.feed.table().state.apply.retaining is None:
            # Before the first apply there is no kept event, and a rebuild says so.
            self.feed.run("always")
        context = self.lab.context(**self.feed.applier)
        self._until_done(lambda: rebuild(context, self.feed.dataset))

    # ---- the engine ----

    def _run(self, apply: Any) -> None:
        self._until_done(lambda: self.feed.run(apply))

    def _until_done(self, step: Callable[[], None]) -> None:
        if self.kill is not None:
            self._say(f"  killed {self.kill}")
        in_spite_of(self.kill, step)

    def mismatches(self) -> list[str]:
        """What the views show else than the world says."""
        names = self.world.table_columns()
        listed = ", ".join(f"`{name}`" for name in ["id", *names])
        view = self.feed.view
        pairs = [("current", self.world.current(soft=self.soft), f"SELECT {listed} FROM {view}")]
        if self.history:
            more = "hdr__operation, hdr__from_timestamp, hdr__to_timestamp"
            pairs.append(
                ("history", self.world.history(), f"SELECT {listed}, {more} FROM {view}__history")
            )
        found = []
        for name, wanted, statement in pairs:
            text = difference(bag(wanted), bag(map(_utc, self.lab.rows(statement))))
            if text:
                found.append("\n".join([name, *self.told, text]))
        return found

    # ---- rows and files ----

    def _next(self) -> int:
        """A sequence: mostly the next one, sometimes one that should have come long ago."""
        self._sequence += 10
        if self.choices.integer(0, 3) == 0 and self._sequence > 20:
            # Never one that was used: those end in 0.
            self._late += 1
            return 10 * self.choices.integer(0, self._sequence // 10 - 1) + 1 + self._late % 9
        return self._sequence

    def _row(self) -> dict[str, Any]:
        return {column.name: self._value(column.kind) for column in self.world.columns}

    def _value(self, kind: str) -> Any:
        if self.choices.integer(0, 4) == 0:
            return None
        if kind == "bigint":
            return self.choices.integer(-2, 2)
        return self.choices.pick(("7", "x", "", "large"))

    def _rows(self) -> dict[int, dict[str, Any]]:
        keys = [key for key in range(1, KEYS + 1) if self.choices.integer(0, 2)]
        return {key: self._row() for key in keys}

    def _land_load(self, rows: dict[int, dict[str, Any]]) -> None:
        at = self.lab.clock.now()
        records = [{"id": k, "op": "U", "seq": None, "at": at, **row} for k, row in rows.items()]
        self._land("load", records, name="load.parquet")

    def _land(self, folder: str, records: list[dict[str, Any]], name: str | None = None) -> None:
        self._files += 1
        kinds = {column.name: _ARROW[column.kind] for column in self.world.columns}
        fields = {
            "id": pa.int64(), "op": pa.string(), "seq": pa.int64(),
            "at": pa.timestamp("us", "UTC"), **kinds,
        }  # fmt: skip
        table = pa.Table.from_pylist(records, schema=pa.schema(list(fields.items())))
        path = self.feed.folder / folder / (name or f"{self._files:04d}.parquet")
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path)

    def _say(self, text: str) -> None:
        self.told.append(f"{len(self.told)}: {text}")


def _utc(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(v.astimezone(UTC) if isinstance(v, datetime) else v for v in row)
