"""Reading the files of one table that Qlik Replicate wrote: they become one `DatasetBatch`."""

from __future__ import annotations

from polynya.formats.base import ReadRequest
from polynya.formats.batch import DatasetBatch, FilePart
from polynya.formats.errors import UnreadableFileError
from polynya.formats.files.landed_file import landed_file
from polynya.formats.replicate.batches import FileFacts, to_batch
from polynya.formats.replicate.header import BEFORE_IMAGE
from polynya.formats.replicate.metadata import HEADER_COLUMNS, Metadata, read_metadata
from polynya.formats.replicate.rows import HEADER, Described, open_replicate
from polynya.formats.replicate.tables import is_load, kind_of
from polynya.formats.values.buffer import RecordBuffer
from polynya.formats.values.names import NameSpace, column_problem, reserved_problem
from polynya.formats.values.observed import Observed


def read_replicate(request: ReadRequest) -> DatasetBatch:
    """Read the next batch; see `Format.read`. The `.dfm` files are in the same store.

    The batch does not end between a before image and its update, and it ends before a file of
    another format. Operations are L, I, U, D and T. A file that is not what its `.dfm` file says is
    one rejected record too.
    """
    reading = _Reading(request)
    for part in request.files:
        if reading.is_full:
            break
        try:
            own = kind_of(part.path)
            if reading.kind not in {None, own}:
                break
            reading.take_file(part)
            reading.kind = own
        except UnreadableFileError as error:
            reading.buffer.refuse_file(part, str(error))
    return to_batch(
        reading.buffer,
        request.table.dataset,
        request.table.schema,
        reading.keys,
        FileFacts(
            reading.kind or "csv",
            reading.types.types,
            reading.observed.types,
            reading.types.conflicts,
            reading.types.columns,
        ),
    )


class _Reading:
    """The state of one read: what the files and their metadata gave so far."""

    def __init__(self, request: ReadRequest) -> None:
        table = request.table
        self.buffer = RecordBuffer(request.limits)
        self.keys = table.dataset.events.keys or table.keys
        self.kind: str | None = None
        self.types = Observed()
        self.observed = Observed()
        self._store = request.store
        self._dataset = table.dataset
        self._known = table.schema

    @property
    def is_full(self) -> bool:
        """Whether the batch ends here: one more record may follow a before image."""
        if not self.buffer.is_full:
            return False
        last = [record[HEADER].operation for record in self.buffer.records[-2:]]
        # Two in a row are no pair; a file of nothing else must not fill the memory.
        return last[-1:] != [BEFORE_IMAGE] or last == [BEFORE_IMAGE, BEFORE_IMAGE]

    def take_file(self, part: FilePart) -> None:
        """Read one file, as far as the limits allow. Raises UnreadableFileError."""
        metadata = read_metadata(self._store, part.path, self._dataset.landing.delivery)
        self._check_names(metadata)
        # Also of a file that is refused: a table that begins with one still gets its keys.
        self.keys = self._agreed_keys(metadata)
        described = Described(
            kind_of(part.path), is_load(part.path, self._dataset.landing.folder), metadata
        )
        has_header = self._dataset.landing.delivery.has_header
        with landed_file(self._store, part.path, described.kind) as file:
            opened = open_replicate(file, part.start, described, has_header=has_header)
            offset, complete = part.start, False
            for raw, parsed in opened.records:
                if self.is_full:
                    break
                self.buffer.add(part.path, offset, raw, parsed)
                offset += 1
            else:
                complete = True
        self.buffer.progress[part.path] = part.read(offset, complete=complete)
        # Not before: a file that turns out to be damaged has no say in the types.
        self.types.learn(metadata.types)
        self.observed.learn(opened.types)

    def _check_names(self, metadata: Metadata) -> None:
        """Whether the table can have the columns. They come before any record could be refused."""
        space = NameSpace([*self._known, *self._dataset.events.columns, *self.types.types])
        for name in metadata.columns:
            if name in HEADER_COLUMNS:
                continue
            problem = column_problem(name) or space.clash(name)
            if name not in self._dataset.events.except_columns:
                problem = problem or reserved_problem(name)
            if problem is not None:
                raise UnreadableFileError(f"its .dfm file names {problem}")

    def _agreed_keys(self, metadata: Metadata) -> tuple[str, ...]:
        own = metadata.keys
        if self._dataset.events.keys or not own or not self.keys:
            return self.keys or own
        if set(own) != set(self.keys):
            raise UnreadableFileError(
                f"its .dfm file names the keys {list(own)}, the table has {list(self.keys)}"
            )
        return self.keys
