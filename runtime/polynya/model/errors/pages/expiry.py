"""Errors of what leaves a table, and of what other engines do to its files."""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages.page import ErrorPage

PAGES: Final = (
    ErrorPage(
        "POLYNYA-LAKE-050",
        "the snapshot of a step has expired",
        "An apply, or a rewrite, was computed from a snapshot, and meanwhile another engine "
        "expired it. Whether the step is still right cannot be checked, so it was not committed; "
        "a run takes it again at once. Polynya itself never expires a snapshot that its own "
        "process works on. Let the other engine keep snapshots for longer than the longest apply.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-051",
        "another engine changed files that a step works on",
        "A step removes files that it has read, and the files of the states that it follows. "
        "Another engine, such as a compaction by Spark or Athena, replaced them before the "
        "commit. Nothing of the step was written, and a run retries it immediately, from the "
        "present state of the table. If it happens often, steps cost twice as much: leave the "
        "compaction to Polynya, or let the other engine leave the partition `asset_state` alone.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-052",
        "a table changed while its columns or layout were changed",
        "A step adds columns to a table, drops or renames some, or changes how it is laid out. The "
        "catalog refused that, because another engine or another node made a commit in the same "
        "moment. Nothing of the step was written, and a run takes it again at once; where the "
        "other one is the new owner of the table, the next try is refused for that.",
    ),
    ErrorPage(
        "POLYNYA-LAKE-061",
        "a table cannot have these columns",
        "Two columns or fields have one name in a table of Iceberg (`a.b`, and the field `b` of "
        "`a`; or names that differ only in case), or a column has the name of one of Iceberg's "
        "metadata columns (`_file`, `_pos`, `_deleted`, `_spec_id`, `_partition`, `_row_id`, "
        "`_last_updated_sequence_number`). Records that bring such a name go to quarantine by the "
        "rule `bad_column`; this error comes where settings make it, in a list of `columns` or "
        "with `nested: expand`. Nothing was changed. Give the column another name, or leave it out "
        "with `except_columns`.",
    ),
    ErrorPage(
        "POLYNYA-MNT-010",
        "a clean-up would have deleted a file in use",
        "After an expiry Iceberg says which files nothing reaches any more. One of them was in "
        "the current snapshot, so none was deleted. The table is whole. This is a bug: report it "
        "with the metadata of the table. What could have been deleted is removed with the orphans.",
    ),
    ErrorPage(
        "POLYNYA-MNT-011",
        "the folder of a table lists under another name",
        "Before orphans are removed, every file of the current snapshot has to be in the listing "
        "of the table's folder. Some are not: they are missing, which `polynya verify` says, "
        "or the folder is reached by another path than the metadata names, for example through a "
        "link. Then every file would look like an orphan, so nothing was deleted.",
    ),
)
