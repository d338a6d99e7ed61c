"""Reload a captured table from its database as it is now, while its changes continue to arrive."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from polynya.capture.landing.log import CaptureLog, change_identifier, chunk_as_batch
from polynya.capture.landing.position import CapturePosition, in_epoch, source_in_epoch
from polynya.capture.source import Chunk, Key, SourceDatabase, SourceSnapshot, SourceTable
from polynya.capture.worker.masks import TableMasks
from polynya.engine.commands.captures import database_of, secrets_of
from polynya.engine.context import EngineContext
from polynya.engine.dataset import WorkingDataset
from polynya.engine.tasks.capture_process import lob_limit, masks_of
from polynya.formats.base import ReadRequest
from polynya.formats.batch import BatchLimits, DatasetBatch, FilePart
from polynya.formats.registry import format_of
from polynya.lake.copy import reload as lake
from polynya.lake.table.suspension import refuse_suspended
from polynya.model.config.connected import ConnectedCapture
from polynya.model.config.dataset import KEEPING, ReloadMode
from polynya.model.config.task import StorageTask
from polynya.model.error_catalogue.capture import CAPTURED_TABLE_NOT_RELOADABLE
from polynya.model.errors import OperationError
from polynya.observe.engine import ReloadLoaded
from polynya.store.object_store import LocalObjectStore


class CapturedLoad:
    """The load of a reload: a consistent view of one table, whose place in the order is known.

    Changes that come after the view win over it, whenever they are copied. A view ends with the
    process that made it, so that a reload which was killed begins again.
    """

    def __init__(
        self,
        context: EngineContext,
        working: WorkingDataset,
        task: StorageTask,
        capture: ConnectedCapture,
        *,
        mode: ReloadMode,
    ) -> None:
        self._context, self._working, self._capture = context, working, capture
        self._task, self._mode = task, mode
        self._opened = ExitStack()
        self._view: tuple[SourceTable, SourceSnapshot, TableMasks] | None = None

    def refuse(self, files: str | None) -> None:
        """Open the view. Raises OperationError and DependencyError when there is none to load."""
        name = self._working.table.dataset.landing.source or ""
        if files is not None:
            raise self._impossible(
                "a captured table is loaded from its database, not from files",
                "leave out `--files`",
            )
        if name in self._capture.load.filter and self._mode != KEEPING:
            raise self._impossible(
                f"`load.filter` excludes rows of {name}, which the reload would delete",
                f"`--mode {KEEPING}` keeps them, or remove the filter",
            )
        if self._working.table.state.copy.reloading is not None:
            lake.abandon(self._working.table)
        database = self._opened.enter_context(database_of(self._capture))
        chosen = self._capture.tables
        tables = {table.name: table for table in database.tables(chosen.include, chosen.exclude)}
        if name not in tables:
            raise self._impossible(
                f"the database has no table {name} that `{self._capture.name}` captures",
                "run `polynya landing preview`, and check the privileges of the user",
            )
        view = self._view_of(database, tuple(tables.values()))
        self._opened.callback(view.close)
        given = masks_of(self._capture, secrets_of(self._capture))
        masks = TableMasks.of(given, tables, lob_limit(self._capture))
        self._view = tables[name], view, masks

    @property
    def place(self) -> str | None:
        """The change identifier of the view."""
        assert self._view is not None, "it was opened"
        source = source_in_epoch(self._view[1].source, self._epoch)
        return change_identifier(source, self._working.known_table.eras)

    @cached_property
    def _epoch(self) -> int:
        """How often the offsets of the stream started again."""
        newest = CaptureLog(self._context.landing, self._capture.place).newest()
        return 0 if newest is None else CapturePosition.of(newest.position).epoch

    def gather(self) -> None:
        """Gather the table chunk by chunk until the run is stopped. Raises what a copy raises."""
        assert self._view is not None, "it was opened"
        table, view, _ = self._view
        refuse_suspended(self._working.table)
        where = self._capture.load.filter.get(table.name)
        after: Key | None = None
        number = 0
        with tempfile.TemporaryDirectory(prefix="polynya-reload-") as folder:
            while not self._context.stop.is_set():
                chunk = view.read(table, after, self._capture.load.chunk_rows, where)
                number += 1
                if chunk.rows:
                    self._take(chunk, number, LocalObjectStore(Path(folder)))
                if chunk.is_last:
                    return
                after = after if chunk.last is None else chunk.last

    def close(self) -> None:
        """Let go of the view and its database."""
        self._opened.close()

    def _view_of(self, database: SourceDatabase, tables: tuple[SourceTable, ...]) -> SourceSnapshot:
        if self._capture.follows:
            return database.resume(tables)
        newest = CaptureLog(self._context.landing, self._capture.place).newest()
        beyond = None if newest is None else CapturePosition.of(newest.position).stream.offset
        return database.look(tables, beyond).snapshot

    def _take(self, chunk: Chunk, number: int, store: LocalObjectStore) -> None:
        """Read a chunk like a landed batch, and keep it next to Current."""
        assert self._view is not None, "it was opened"
        (table, view, masks), now = self._view, self._context.clock.now()
        shape, lines = view.envelope(table), chunk.lines
        hidden = masks.of_table(table.name, shape)
        if hidden is not None:
            shape, lines = hidden.schema, hidden.lines(lines)
        lines = in_epoch(lines, self._epoch)
        name, data = chunk_as_batch(
            self._capture.name, number, now,
            table=table.name, schema=shape, lines=lines, rows=chunk.rows,
        )  # fmt: skip
        path = f"_reload/{name}"
        store.put(path, data)
        part = FilePart(path, len(data))
        complete = False
        while not complete:
            batch, part, complete = self._read(store, part)
            batch = self._working.apply_schema_changes(self._working.map_columns(batch))
            with self._working.views_following():
                result = lake.load(self._working.table, batch, now=now)
            self._working.tell(
                ReloadLoaded(
                    subject=self._working.name,
                    rows_in=result.rows_in,
                    rows_loaded=result.rows_out,
                    rows_quarantined=result.rows_quarantined,
                    files_left=0,
                )
            )
        store.delete(path)

    def _read(self, store: LocalObjectStore, part: FilePart) -> tuple[DatasetBatch, FilePart, bool]:
        """The next records of a chunk, what follows them, and whether that is nothing."""
        known, limits = self._working.known_table, self._task.batch
        request = ReadRequest(
            store, [part], {known.source: known}, BatchLimits(limits.max_rows, limits.max_bytes),
            only=known.source,
        )  # fmt: skip
        batch = format_of(self._task).read(request).datasets[known.source]
        progress = batch.files[part.path]
        # It is not a landed file, so the table need not remember it.
        following = replace(part, start=progress.records)
        return replace(batch, files={}), following, progress.complete

    def _impossible(self, message: str, fix: str) -> OperationError:
        return CAPTURED_TABLE_NOT_RELOADABLE(message, where=f"task {self._task.name}", fix=fix)
