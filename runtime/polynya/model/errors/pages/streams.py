"""Pages of streams (STR): their sources, landed batches and what messages mean."""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages.page import ErrorPage

PAGES: Final = (
    ErrorPage(
        "POLYNYA-STR-020",
        "a landed batch was written by a newer version",
        "The footer of a landed batch has a version that this Polynya does not know. Nothing of "
        "it is copied, and it is retried later: upgrade the nodes that copy before those that "
        "land.",
    ),
    ErrorPage(
        "POLYNYA-STR-021",
        "the content of a stream cannot be used",
        "The pattern or the Avro schema that `content` of a landing task gives, and that is in its "
        "landed batches, is none that messages can be decoded with. Nothing of such a landed "
        "batch is copied. Correct the landing task: batches that it lands from then on have the "
        "new content. Those that are there keep the old one, so move them out of the folder, or "
        "start a new one with `folder`.",
    ),
    ErrorPage(
        "POLYNYA-STR-022",
        "the schema registry does not answer",
        "Messages of `avro_with_schema` name their schema by a number, and the registry could not"
        " be reached. No message was rejected and nothing of the landed batch was copied: Polynya"
        " retries it, with growing pauses, until the registry answers. Messages with a schema "
        "that the registry does not have go to quarantine (`unknown_schema`).",
    ),
    ErrorPage(
        "POLYNYA-STR-023",
        "the schema registry refuses access",
        "The registry answers 401 or 403. Nothing was copied and nothing refused. Landed batches "
        "hold no secrets: the task that copies them says who logs in, with `schema_registry: {url, "
        "user, password}` under `landing`, both as `${env:NAME}`. A `streaming_transform` takes "
        "the log-in that `content` of its landing has.",
    ),
    ErrorPage(
        "POLYNYA-STR-083",
        "the address of the schema registry is that of something else",
        "A registry that does not have a schema says so (404 with the code 40401, 40402 or 40403). "
        "This answer was a bare 404, as web servers and proxies give it, so nobody knows whether "
        "the schema exists. Nothing was copied and no message refused. Look at "
        "`schema_registry.url`. It is that of the interface which Confluent's clients use: "
        "`https://HOST:8081` of Confluent's registry and Karapace, "
        "`http://HOST:8080/apis/ccompat/v7` of Apicurio's.",
    ),
    ErrorPage(
        "POLYNYA-STR-091",
        "messages need a schema registry that the project does not name",
        "A landed batch says that its messages name their schemas by numbers in a registry. "
        "Anybody with write access to the landing zone can have written the address in it, so "
        "only a registry that the project names is asked: `schema_registry: {url: ...}` under "
        "`landing` of the task, or that of `content` of the landing task of the same project "
        "whose folder the task reads. Nothing was copied and no message refused. Name the "
        "registry, and the next run copies the batch. Where you expect no such messages, find "
        "out who wrote the batch.",
    ),
    ErrorPage(
        "POLYNYA-STR-060",
        "a setting of landed batches together with `direct: true`",
        "If the transform reads the source itself, landed batches do not exist, so a folder and a"
        " retention have no meaning. Remove one of the two settings.",
    ),
    ErrorPage(
        "POLYNYA-STR-061",
        "nobody reads a source that does not land",
        "A landing with `direct: true` only names the source; the `streaming_transform` that "
        "names it as `from` reads it. Without one nothing would happen, and the source would "
        "delete unread records.",
    ),
    ErrorPage(
        "POLYNYA-STR-062",
        "a task wants files where nothing lands",
        "The landing of that folder has `direct: true`. Only a `streaming_transform` can read it; "
        "a `storage` task needs landed batches.",
    ),
    ErrorPage(
        "POLYNYA-STR-063",
        "two transforms read one stream that does not land",
        "With `direct: true` each table would read the source by itself, and pay for it. What has "
        "landed is read by any number of tasks: take `direct` out of the landing.",
    ),
    ErrorPage(
        "POLYNYA-STR-064",
        "the source has nothing that a table could read",
        "No topic or stream that the landing takes goes to this table. The source is looked at "
        "again every half a minute; a position that the table has stays.",
    ),
    ErrorPage(
        "POLYNYA-STR-065",
        "a table has read another stream",
        "The position in the table is that of another kind of source, or of another landed table, "
        "and means nothing in this one. Undo the change of `source`, `into`, `from` or `stream`, "
        "or give the transform another `table`.",
    ),
    ErrorPage(
        "POLYNYA-STR-066",
        "a source cannot give a reload all that the table has read",
        "A reload that deletes missing records needs everything from the first record on. The "
        "source has deleted some of it since. `--mode compare_and_apply_without_deleted_rows` "
        "takes what is left and keeps the rest. If you reload often, land the stream with a long "
        "`folder_retention`.",
    ),
    ErrorPage(
        "POLYNYA-STR-067",
        "a stream that does not land has no files",
        "A reload of a table with `direct: true` reads the source again, from where the table "
        "began to its end.",
    ),
    ErrorPage(
        "POLYNYA-STR-068",
        "a table of landed batches is to read its stream itself",
        "The table remembers the newest landed batch, and not its end position in the source, so "
        "records would be read twice or not at all. Build another table, or continue landing.",
    ),
    ErrorPage(
        "POLYNYA-STR-069",
        "a table that read its stream itself cannot switch to landed files",
        "The table remembers the position in the source, and landed batches begin somewhere else, "
        "so records would be read twice or not at all. Build another table, or set `direct: true` "
        "again.",
    ),
    ErrorPage(
        "POLYNYA-STR-070",
        "a table cannot be reloaded from its source",
        "`polynya reload --from source` rereads what a landing of this project has landed "
        "unchanged. It cannot be used if the settings use values that only landing knows: its "
        "time (`get_processing_time`, `hdr__landed_at`), or the position of a record (`random`, "
        "`uuid_generator`): every row would differ. Nor if an older version landed the first "
        "batch and did not record where it begins. Reload from the landed batches.",
    ),
    ErrorPage(
        "POLYNYA-STR-071",
        "the source cannot return the landed files again",
        "Delivered files may have been added, changed or removed since, and a landed batch names "
        "only recent files. So a reload would read files that the table never had. Reload from "
        "the landed batches.",
    ),
    ErrorPage(
        "POLYNYA-STR-072",
        "a source gave another number of messages than had landed",
        "Landed batches count messages, so a reload from the source knows how many there were. "
        "Fewer: the topic is compacted, or its brokers have lost some. More: another "
        "`isolation.level` shows them. Records of missing messages would be deleted; `--mode "
        "compare_and_apply_without_deleted_rows` keeps them. Discard the load with `--abandon`, "
        "or reload from the landed batches.",
    ),
    ErrorPage(
        "POLYNYA-STR-073",
        "nobody can tell which message of a record is its newest",
        "Messages of one record are in several partitions or shards, and only the landing, which "
        "read them in order of arrival, knew their order. That happens if the key of messages is "
        "not the table's key, or if a topic got more partitions. `sequence_by` names columns that"
        " order them. Discard the load with `--abandon`, and reload from the landed batches.",
    ),
)
