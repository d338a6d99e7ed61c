"""Settings for the files of one dataset, each with its reason, tried on a sample of the files.

A proposal keeps its word: the reader of a run reads the sample with it. Where a record would be
rejected, the next best proposal is tried: text instead of a type, a row for each record instead of
a key.
"""

from __future__ import annotations

import codecs
import io
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Protocol

from pydantic import ValidationError

from polynya.formats.base import KnownTable, ReadRequest
from polynya.formats.batch import WHOLE_FILE, BatchLimits, DatasetBatch, FilePart
from polynya.formats.errors import RecordError, UnreadableFileError
from polynya.formats.records.csv import CsvLayout, open_csv
from polynya.formats.records.json import open_json
from polynya.formats.registry import format_of
from polynya.model.config.task import StorageTask, resolved
from polynya.model.names import column_problem
from polynya.observe.events import counted
from polynya.proposal.column_types import (
    declared_type,
    json_column,
    null_word,
    number_style,
    text_column,
    texts_beside,
)
from polynya.proposal.csv_layout import SniffedLayout, layout_of
from polynya.proposal.json_layout import NotJsonError, json_layout, sample_document
from polynya.proposal.keys import appended, proposed_events
from polynya.proposal.samples import (
    SAMPLE_RECORDS,
    FileFamily,
    FoundFiles,
    SampleFile,
    SampleStore,
    no_settings,
    sample_store,
    sampled,
    wide_encoding,
)
from polynya.proposal.settings import (
    DatasetProposal,
    ProposedEvents,
    ProposedSetting,
    SampleOutcome,
)

#: Times that columns are made text because of their records.
_MOST_TRIES: Final = 4
_LIMITS: Final = BatchLimits(max_rows=SAMPLE_RECORDS, max_bytes=1 << 30)
#: Without a limit on records, for texts, of which few bytes are looked at.
_TEXT_LIMITS: Final = BatchLimits(max_rows=1 << 40, max_bytes=1 << 40)


@dataclass(frozen=True, slots=True)
class TriedProposal:
    """A proposal, and what a run would make of the sample with it."""

    family: FileFamily
    proposal: DatasetProposal
    outcome: SampleOutcome


def proposed(found: FoundFiles, family: FileFamily, schema: str) -> TriedProposal:
    """The proposal for a family of files.

    Raises:
        ConfigError: POLYNYA-CLI-005, a file cannot be read, or nothing can be proposed for it.
    """
    files = sampled(found, family)
    shown = found.shown[files[0].path]
    with tempfile.TemporaryDirectory(prefix="polynya-init-", ignore_cleanup_errors=True) as folder:
        begun = _begun(files, shown)
        store = sample_store(found, begun.files, Path(folder))
        trial = _FileTrial(store, family, schema, text=files[0].kind == "text", shown=shown)
        base = replace(begun.proposal, events=ProposedEvents(appended="a row for each record"))
        base, batch = with_types(trial, base)
        if not batch.rows_in:
            reason = "it holds no records" + ("" if len(files) == 1 else ", nor do the other files")
            raise no_settings(shown, reason, "give a file with records")
        _refuse_unreadable(batch, shown)
        is_whole = store.is_whole and trial.is_complete(batch)
        events = proposed_events(batch.rows, batch.schema, family.name, is_whole=is_whole)
        final = replace(base, events=events)
        if events.key is not None or events.timestamp is not None:
            tried = trial.read(final)
            if len(tried.rejected) > len(batch.rejected):
                reason = "with a key and an order, records of the sample would be rejected"
                final = replace(base, events=appended(ProposedEvents(), reason))
            else:
                batch = tried
        rules = Counter(record.rule for record in batch.rejected)
        outcome = SampleOutcome(
            records=batch.rows_in,
            copied=batch.rows.num_rows,
            quarantined=dict(rules),
            replaced=final.events.replaced,
            no_records=begun.no_records,
            is_whole=is_whole and len(files) == len(family.files),
        )
        return TriedProposal(family, final, outcome)


def _refuse_unreadable(batch: DatasetBatch, shown: str) -> None:
    """Refuse files of which no record would be copied. Raises ConfigError."""
    if batch.rows.num_rows:
        return
    first = batch.rejected[0]
    if first.offset == WHOLE_FILE:
        raise no_settings(shown, first.error, "check the file, and send it again")
    rules = Counter(record.rule for record in batch.rejected)
    listed = ", ".join(f"{count:,} {rule}" for rule, count in rules.items())
    raise no_settings(shown, f"none of its records can be read: {listed}", "check the file")


class Trial(Protocol):
    """Reads a sample as a run would, with settings."""

    def read(self, proposal: DatasetProposal) -> DatasetBatch:
        """One batch of all records."""
        ...


def with_types(trial: Trial, proposal: DatasetProposal) -> tuple[DatasetProposal, DatasetBatch]:
    """The proposal with text for columns whose values would be rejected, and what it reads."""
    batch = trial.read(proposal)
    for _ in range(_MOST_TRIES):
        faulty = _faulty_columns(batch, proposal)
        if not faulty:
            break
        columns = dict(proposal.columns)
        for name, count in faulty.items():
            reason = f"{count:,} values of the sample fit no other type"
            columns[name] = ProposedSetting("string", reason)
        tried = replace(proposal, columns=columns)
        better = trial.read(tried)
        if len(better.rejected) >= len(batch.rejected):
            break
        proposal, batch = tried, better
    return proposal, batch


def _faulty_columns(batch: DatasetBatch, proposal: DatasetProposal) -> Counter[str]:
    """Columns whose values records are rejected for, unless these are text already."""
    names = sorted({*batch.schema, *(batch.met or ())}, key=len, reverse=True)
    found: Counter[str] = Counter()
    for record in batch.rejected:
        if record.rule not in {"bad_value", "type_mismatch", "bad_number"}:
            continue
        named = (name for name in names if record.error.startswith(f"column {name}: "))
        name = next(named, None)
        declared = proposal.columns.get(name or "")
        if name is not None and (declared is None or declared.value != "string"):
            found[name] += 1
    return found


@dataclass(frozen=True, slots=True)
class _FileTrial:
    """Reads the files of the sample, or copies of their parts."""

    store: SampleStore
    family: FileFamily
    schema: str
    text: bool
    shown: str

    def read(self, proposal: DatasetProposal) -> DatasetBatch:
        """One batch of all records."""
        try:
            task = StorageTask.model_validate(task_document(self.family, proposal, self.schema))
        except ValidationError as error:
            # What a name of a file may hold, and a path of a task may not.
            reason = str(error.errors()[0]["msg"])
            raise no_settings(self.shown, reason, "rename the file") from None
        dataset = resolved(task, task.datasets[0])
        table = KnownTable(dataset)
        parts = [FilePart(path, size) for path, size in self.store.parts]
        limits = _TEXT_LIMITS if self.text else _LIMITS
        request = ReadRequest(self.store.store, parts, {table.source: table}, limits)
        return format_of(task).read(request).one

    def is_complete(self, batch: DatasetBatch) -> bool:
        """Whether all of the sample was read."""
        read = batch.files.values()
        return len(read) == len(self.store.parts) and all(file.complete for file in read)


def task_document(family: FileFamily, proposal: DatasetProposal, schema: str) -> dict[str, Any]:
    """The settings of a task as its file has them, without the reasons."""
    events = proposal.events
    dataset: dict[str, Any] = {"name": family.name, "path": family.glob}
    if events.key is None or events.sequence is None:
        dataset["mode"] = "append_only"
    else:
        dataset |= {"keys": [events.key.value], "sequence_by": [events.sequence.value]}
    if events.timestamp is not None:
        dataset["timestamp"] = events.timestamp.value
    if events.key is not None and events.deletes is not None:
        dataset["apply_as_deletes"] = events.deletes.value
    if events.left_out:
        dataset["except_columns"] = list(events.left_out)
    if proposal.columns:
        dataset["columns"] = {name: column.value for name, column in proposal.columns.items()}
    landing = {name: setting.value for name, setting in proposal.landing.items()}
    return {
        "apiVersion": "polynya/v1",
        "kind": "storage",
        "name": family.name,
        "schema": schema,
        "landing": {"path": family.name, "format": proposal.format.value, **landing},
        "datasets": [dataset],
    }


@dataclass(frozen=True, slots=True)
class _Begun:
    """Settings before any record was read with them, and the lines that are not records."""

    files: Sequence[SampleFile]
    proposal: DatasetProposal
    no_records: Mapping[str, int]


def _begun(files: Sequence[SampleFile], shown: str) -> _Begun:
    kinds = {file.kind for file in files}
    if len(kinds) > 1:
        reason = f"files of several formats have names of one kind: {', '.join(sorted(kinds))}"
        raise no_settings(shown, reason, "give the files of one format, with a glob")
    kind, packed = files[0].kind, files[0].compression
    begun = _of_kind(files, kind, packed, shown)
    landing = {**files[0].settings, **begun.proposal.landing}
    return replace(begun, proposal=replace(begun.proposal, landing=landing))


def _of_kind(files: Sequence[SampleFile], kind: str, packed: str, shown: str) -> _Begun:
    archive = f"{packed}, recognized by the first bytes" if packed else ""
    if kind == "excel":
        records = [record for file in files for record in _lines(file.content)]
        rows = ProposedSetting("excel", "the rows of a sheet of a workbook")
        return _Begun(files, DatasetProposal(rows, columns=_json_columns(records)), {})
    if kind != "text":
        name = {"parquet": "Parquet", "orc": "ORC", "avro": "Avro"}[kind]
        reason = f"{name}, with the types of its columns" + (f"; {archive}" if archive else "")
        return _Begun(files, DatasetProposal(ProposedSetting(kind, reason)), {})
    if not any(file.content.strip() for file in files):
        raise no_settings(shown, "it holds no records", "give a file with records")
    if _looks_like_json(files[0].content):
        return _json(files, shown, archive)
    return _csv(files, shown, archive)


#: How the first value of an array may begin.
_IN_ARRAY: Final = frozenset({b"", b"]", *(bytes([byte]) for byte in b'{["-0123456789')})


def _looks_like_json(content: bytes) -> bool:
    start = content.removeprefix(codecs.BOM_UTF8)
    wide = wide_encoding(content)
    if wide is not None:
        text = content[: 1 << 12].decode(wide, "replace").removeprefix("\ufeff")
        start = text.encode("utf-8", "replace")
    start = start.lstrip()[:200]
    if start[:1] == b"{":
        return True
    return start[:1] == b"[" and start[1:].lstrip()[:1] in _IN_ARRAY


def _json(files: Sequence[SampleFile], shown: str, archive: str) -> _Begun:
    files = [file for file in files if file.content.strip()]
    encoding, contents = _decoded(files, shown)
    texts = [content.decode("utf-8", "replace") for content in contents]
    try:
        layouts = [
            json_layout(text, is_whole=file.is_whole)
            for text, file in zip(texts, files, strict=True)
        ]
    except NotJsonError as error:
        fix = "correct the file; a record is a JSON object"
        raise no_settings(shown, str(error), fix) from None
    # A path reads files of lines, too: a family may have both.
    path = next((layout for layout in layouts if layout.record_path is not None), layouts[0])
    landing = {} if encoding is None else {"encoding": encoding}
    reason = "a record in each line"
    if path.record_path is not None:
        landing["record_path"] = path.record_path
        reason = "a document"
    values = [
        record
        for content, layout in zip(contents, layouts, strict=True)
        for record in (_lines(content) if layout.record_path is None else layout.records)
    ]
    files = [
        file if file.is_whole or layout.record_path is None
        else replace(file, content=_encoded(sample_document(layout), encoding))
        for file, layout in zip(files, layouts, strict=True)
    ]  # fmt: skip
    reason += f"; {archive}" if archive else ""
    proposal = DatasetProposal(ProposedSetting("json", reason), landing, _json_columns(values))
    return _Begun(files, proposal, {})


def _json_columns(records: Sequence[Mapping[str, Any]]) -> dict[str, ProposedSetting]:
    """The declared types of columns of JSON."""
    columns = {}
    for name in dict.fromkeys(name for record in records for name in record):
        if column_problem(name) is None:
            column = json_column(name, [record.get(name) for record in records])
            if column is not None:
                columns[name] = column
    return columns


def _encoded(content: bytes, encoding: ProposedSetting | None) -> bytes:
    """A text in ASCII, as the files are encoded."""
    return content if encoding is None else content.decode().encode(str(encoding.value))


def _lines(content: bytes) -> Iterator[Mapping[str, Any]]:
    """The records of a text that has one in each line."""
    for _, parsed in open_json(io.BytesIO(content), 0).records:
        if isinstance(parsed, dict):
            yield parsed


#: Bytes that windows-1252 has letters and signs for, and iso-8859-1 has not.
_BEYOND_LATIN: Final = frozenset(range(0x80, 0xA0))
_MARKS: Final = (
    codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE,
)  # fmt: skip
_NO_WINDOWS: Final = frozenset({0x81, 0x8D, 0x8F, 0x90, 0x9D})


def encoding_of(content: bytes) -> ProposedSetting | None:
    """The encoding of a text, None for UTF-8.

    Raises ValueError for one in an alphabet of its own, which nothing tells from another.
    """
    wide = wide_encoding(content)
    if wide is not None:
        name = wide.rpartition("-")[0]
        if content.startswith(_MARKS):
            reason = f"it begins with the byte order mark of {name.upper()}"
            return ProposedSetting(name, reason)
        if name == "utf-32":
            raise ValueError("it is UTF-32 without a byte order mark")
        return ProposedSetting(wide, "every second byte is zero, as in UTF-16, and it has no mark")
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        pass
    else:
        return None
    lines = [line for line in content.split(b"\n") if not line.isascii()]
    good = sum(_is_utf8(line) for line in lines)
    if 2 * good > len(lines):
        return None
    high = Counter(byte for line in lines for byte in line if byte >= 0x80)
    letters = sum(chr(byte).isalpha() for line in lines for byte in line if byte < 0x80)
    if sum(high.values()) > max(letters, 4):
        raise ValueError("its letters are not UTF-8, and hardly of a western alphabet")
    if high.keys() & _BEYOND_LATIN and not high.keys() & _NO_WINDOWS:
        return ProposedSetting("windows-1252", "not UTF-8; its bytes fit this one: check accents")
    if high.keys() & _NO_WINDOWS:
        return ProposedSetting("iso-8859-1", "not UTF-8; its bytes fit this one: check accents")
    return ProposedSetting("windows-1252", "not UTF-8; its bytes fit this one: check accents")


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _csv(files: Sequence[SampleFile], shown: str, archive: str) -> _Begun:
    encoding, texts = _decoded(files, shown)
    if b"\n" not in texts[0] and b"\r" in texts[0].strip():
        fix = "convert it: `tr '\\r' '\\n' < FILE > NEW`"
        raise no_settings(shown, "its lines end as those of old Macs do", fix)
    layout = layout_of(texts[0])
    landing = dict(layout.settings)
    if encoding is not None:
        landing = {"encoding": encoding, **landing}
    columns, more = _csv_columns(texts, layout)
    landing |= more
    what = "text with one column" if layout.width == 1 else f"text with {layout.width:,} columns"
    reason = what + (f"; {archive}" if archive else "")
    proposal = DatasetProposal(ProposedSetting("csv", reason), landing, columns)
    return _Begun(files, proposal, _no_records(texts, layout))


def _decoded(files: Sequence[SampleFile], shown: str) -> tuple[ProposedSetting | None, list[bytes]]:
    """The encoding of the files, and their contents in UTF-8. Raises ConfigError."""
    fix = "convert it: `iconv -f ENCODING -t UTF-8 FILE > NEW`"
    try:
        encoding = encoding_of(b"\n".join(file.content for file in files))
        if encoding is None:
            return None, [file.content for file in files]
        name = str(encoding.value)
        return encoding, [file.content.decode(name).encode() for file in files]
    except UnicodeError:
        raise no_settings(shown, "its encoding is damaged", fix) from None
    except ValueError as error:
        raise no_settings(shown, str(error), fix) from None


def _csv_columns(
    texts: Sequence[bytes], layout: SniffedLayout
) -> tuple[dict[str, ProposedSetting], dict[str, ProposedSetting]]:
    """The declared types of columns, and settings that they need."""
    counts = _counts(texts, layout)
    landing: dict[str, ProposedSetting] = {}
    word = null_word(counts.values())
    if word is not None:
        among = texts_beside(counts.values(), word)
        dialect = replace(layout.dialect, null_value=word)
        counts = _counts(texts, replace(layout, dialect=dialect))
        empties = any("" in column for column in counts.values())
        more = "; an empty field is the empty text then" if empties else ""
        if among:
            more += f"; also in {counted(among, 'column')} of texts: check"
        landing["null_value"] = ProposedSetting(word, f"stands where values are missing{more}")
    present = {
        name: {text: count for text, count in column.items() if text is not None}
        for name, column in counts.items()
    }
    style = number_style(present.values())
    columns = {}
    for name, column in present.items():
        kind = text_column(name, column, style, has_semicolons=layout.dialect.delimiter == ";")
        if kind is None and layout.names is not None:
            kind = declared_type(list(column))
        if kind is not None and column_problem(name) is None:
            columns[name] = kind
    return columns, {**landing, **({} if style is None else style.settings())}


def _counts(texts: Sequence[bytes], layout: SniffedLayout) -> dict[str, Counter[str | None]]:
    """How often each column has each text, None where NULL."""
    read_as = CsvLayout(layout.dialect, layout.names, layout.skip_lines)
    found: dict[str, Counter[str | None]] = {}
    for text in texts:
        try:
            for _, record in open_csv(io.BytesIO(text), 0, read_as).records:
                if not isinstance(record, RecordError):
                    for name, value in record.items():
                        found.setdefault(name, Counter())[value] += 1
        except UnreadableFileError:
            # The trial says so, of that file alone.
            continue
    if layout.names is not None:
        return {name: found.get(name, Counter()) for name in layout.names}
    return found


def _no_records(texts: Iterable[bytes], layout: SniffedLayout) -> dict[str, int]:
    """Lines that are not read as records, by what they are."""
    found: Counter[str] = Counter()
    comment = layout.dialect.comment.encode()
    for text in texts:
        lines = text.removeprefix(codecs.BOM_UTF8).splitlines()
        found["header"] += 1 if layout.has_header else 0
        found["skipped"] += min(layout.skip_lines, len(lines))
        if comment:
            rest = lines[layout.skip_lines :]
            found["comment"] += sum(line.startswith(comment) for line in rest)
    return {what: count for what, count in found.items() if count}
