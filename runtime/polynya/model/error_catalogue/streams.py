"""Pages of streams (STR): sources, landed batches and what messages mean."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorPage

STREAM_PAGES: Final = (
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


LANDING_PAGES: Final = (
    ErrorPage(
        "POLYNYA-STR-001",
        "a streaming landing does not say what it reads, or where to",
        "`source` has exactly one key, such as `kafka`, and `into` is `{each: topic}` or "
        "`{table: NAME}`.",
    ),
    ErrorPage(
        "POLYNYA-STR-002",
        "a property of the Kafka client cannot be set",
        "Polynya reads records as bytes and keeps the position in the landed batches, so group, "
        "deserializers and the like are not for a file to set. A task sets limits, timeouts, TLS "
        "and the login, in the names that Kafka gives them. A property that names a class, a "
        "command or a plug-in would run code on the node, so it is refused; so is one that Polynya "
        'does not know. `sasl.jaas.config` is `MODULE required NAME="VALUE" …;` with a module of '
        "Kafka, of Kerberos or of Amazon MSK.",
    ),
    ErrorPage(
        "POLYNYA-STR-004",
        "two landings write to one folder",
        "A landed table belongs to one task: its newest batch says how far the stream was read. "
        "Give each landing a `folder` that lies neither in nor around that of another.",
    ),
    ErrorPage(
        "POLYNYA-STR-005",
        "the brokers of Kafka do not answer",
        "No broker of `bootstrap_servers` answered in time. Nothing is lost: the position is in "
        "the landed batches, and a run that goes on tries again with a growing pause. If it "
        "lasts, look at the addresses, at `security.protocol` (a client without TLS gets no "
        "answer from a listener with it), at the addresses that the brokers advertise, and at "
        "what lies in between.",
    ),
    ErrorPage(
        "POLYNYA-STR-006",
        "a topic that the task names is not there",
        "The other topics of the task are landed. Create the topic or correct its name; case "
        "matters. Kafka does not show a topic to a user who may not describe it.",
    ),
    ErrorPage(
        "POLYNYA-STR-007",
        "Kafka does not allow this user to read",
        "The user that `properties` name needs Describe and Read on the topics. Groups are not "
        "used: the position is in the landed batches.",
    ),
    ErrorPage(
        "POLYNYA-STR-008",
        "Kafka does not accept who we are",
        "The brokers refused the log-in or our certificate. Look at `security.protocol`, "
        "`sasl.mechanism`, `sasl.jaas.config` and `ssl.keystore.location`, and at the variables of "
        "the environment that hold their secrets. `bad_certificate` and `certificate_required` "
        "mean that the brokers want a certificate of ours.",
    ),
    ErrorPage(
        "POLYNYA-STR-009",
        "the Kafka client does not take its settings",
        "A property has a value that the client refuses, or no address of `bootstrap_servers` "
        "can be resolved. The message says which.",
    ),
    ErrorPage(
        "POLYNYA-STR-010",
        "Kafka refused a request",
        "The brokers answered with an error that has no page of its own. It is tried again with a "
        "growing pause. The logs of the brokers say more.",
    ),
    ErrorPage(
        "POLYNYA-STR-011",
        "records of a topic went while they were being read",
        "Retention, or somebody, deleted records between the look at a topic and its reading. "
        "Nothing of that batch was landed. The next look counts what is lost, says so, and goes "
        "on after it.",
    ),
    ErrorPage(
        "POLYNYA-STR-012",
        "two topics want one landed table",
        "A landed table is named like its topic in lower case, with `_` for `-` and `.`, so that "
        "`a-b` and `a.b` have one name. The first in name order is landed. Land the other by a "
        "task with another `folder`, or all of them in one table: `into: {table: NAME}`.",
    ),
    ErrorPage(
        "POLYNYA-STR-013",
        "a landed table belongs to another task or topic",
        "The newest landed batch says which task and which topic it is of, and its position is of "
        "no use to another. It happens after a task was renamed, or its `topics` changed to one "
        "that has the same table name. Give the task its name back, or another `folder`.",
    ),
    ErrorPage(
        "POLYNYA-STR-014",
        "the newest landed batch cannot be used",
        "The position is in the footer of the newest landed batch. Without it nobody knows how "
        "far the stream was read, so nothing is landed. It cannot be read, or begins at another "
        "position than the one at which the batch before it ends: then somebody else has put it "
        "there, and its end is no position to continue from. Put the object back as it was "
        "written. If "
        "it is lost for ever, delete the batches from that one on: what they held is read again "
        "from the source, if it still has it. Tables that have copied the deleted batches get "
        "those records again.",
    ),
    ErrorPage(
        "POLYNYA-STR-015",
        "the session was started without the jars for Kafka",
        "Spark's jars are chosen when a process starts. The first landing from Kafka, or the first "
        "that logs in to MSK by IAM, came into the configuration of one that was running. An agent "
        "fetches the jars and starts again by itself once they are there; `jars.missing` among its "
        "events says what is in the way. Start other processes again.",
    ),
    ErrorPage(
        "POLYNYA-STR-016",
        "a new topic waits for a decision",
        "A wildcard of `topics` meets a topic that was not there before, and `on_new_topic` says "
        "`suspend` or `stop`. Name it in `topics` to land it from its first record on; it keeps "
        "its records only as long as its retention says.",
    ),
    ErrorPage(
        "POLYNYA-STR-040",
        "too many files without dates",
        "Which files were read is told by the dates in their paths. Where `pattern` has none, each "
        "name is remembered, up to 100,000. Write the date parts of the paths as placeholders, let "
        "files be deleted with `delete_after_load`, or move those away that were read.",
    ),
    ErrorPage(
        "POLYNYA-STR-041",
        "the position in a landed batch is not that of a source of files",
        "The newest landed batch says how far its source was read. Its task had another kind of "
        "source when the batch was written. Give the task a new `folder`, or its old source back.",
    ),
    ErrorPage(
        "POLYNYA-STR-042",
        "there is no such folder to read files from",
        "The folder that `url` names is not there: it is misspelled, or what it is on is not "
        "mounted. An empty source would look the same, so it is an error. Nothing was read.",
    ),
    ErrorPage(
        "POLYNYA-STR-043",
        "`start_from` has a time, and the files have no dates",
        "A time can only be compared with the dates in the paths of files. Write their parts as "
        "placeholders in `pattern`, or begin with `earliest` or `now`.",
    ),
    ErrorPage(
        "POLYNYA-STR-044",
        "content that no file holds",
        "`avro_with_schema` is one message after the number of its schema in a registry, as "
        "streams carry it. Avro files name their schema themselves: `content: avro`.",
    ),
    ErrorPage(
        "POLYNYA-STR-045",
        "there is no such Kinesis stream",
        "The stream that `streams` names was not found in this account and region, or it is just "
        "being made or deleted. The other streams of the task are landed, and the task looks again "
        "by itself.",
    ),
    ErrorPage(
        "POLYNYA-STR-046",
        "the place in a shard has expired again and again",
        "Kinesis gives a place in a shard for five minutes. One that has expired is asked for "
        "again; three times in a row means that this machine or the network is very slow. Nothing "
        "is lost: the next batch begins after the last one that was put.",
    ),
    ErrorPage(
        "POLYNYA-STR-047",
        "the stream is read more often than it answers",
        "A shard of Kinesis answers five reads and gives 2 MB a second, to all of its readers "
        "together. Polynya reads slower after a refusal, and the records wait in the stream. When "
        "it lasts, see who else reads, or give the stream more shards.",
    ),
    ErrorPage(
        "POLYNYA-STR-048",
        "the position in a landed batch is not that of Kinesis streams",
        "The newest landed batch says how far its source was read. Its task had another kind of "
        "source when the batch was written. Give the task a new `folder`, or its old source back.",
    ),
    ErrorPage(
        "POLYNYA-STR-049",
        "a transform does not come after a landing",
        "`from` of a `streaming_transform` names a task of kind `streaming_landing` of the same "
        "project. Files of other tasks are for tasks of kind `storage`, which take the same "
        "`columns`, `nested` and `where`.",
    ),
    ErrorPage(
        "POLYNYA-STR-050",
        "a setting has no meaning in a table that only appends",
        "With `mode: append_only` each message is a row that never changes: there is no key and "
        "nothing is deleted. Take the setting out, or write `mode: merge`.",
    ),
    ErrorPage(
        "POLYNYA-STR-051",
        "a merge without a key",
        "`mode: merge` folds messages by the key of their record. Give the columns of the key "
        "their ordinal: `{name: id, expression: id, key: 1}`.",
    ),
    ErrorPage(
        "POLYNYA-STR-052",
        "which stream a transform takes is not clear",
        "A landing of several topics or streams has a landed table for each. Name one as `stream`, "
        "or land all of them in one table: `into: {table: NAME}`.",
    ),
    ErrorPage(
        "POLYNYA-STR-053",
        "there is no day of ingestion",
        "`ingestion_date` is the day on which Kafka or Kinesis took a message, or on which a file "
        "was landed. Files that are read with `direct: true` do not land, and have no time that a "
        "reload would find again. Make a column of that name by an expression, or name another "
        "one.",
    ),
    ErrorPage(
        "POLYNYA-STR-056",
        "`readers` for a source of files",
        "Partitions of Kafka and shards of Kinesis can be read side by side, because each has an "
        "order of its own. Files land in the order of their dates and names, one after the other.",
    ),
    ErrorPage(
        "POLYNYA-STR-080",
        "the certificate of a Kafka broker is not trusted",
        "No authority that this machine trusts signed the certificate, or it is out of its time. "
        "With an authority of your own name its certificate: `ssl.truststore.type: PEM` and "
        "`ssl.truststore.location: /etc/polynya/secrets/kafka-ca.pem`. The file has to be on every "
        "machine that lands, and Spark's executors read it, too. Without the setting those "
        "authorities are trusted that Java trusts.",
    ),
    ErrorPage(
        "POLYNYA-STR-081",
        "the certificate of a Kafka broker is for another host",
        "The name or address by which the broker was reached is not in its certificate. That may "
        "be an attack, so nothing is read. Reach the brokers by the names that are in their "
        "certificates, or give them certificates with these names. A client first asks "
        "`bootstrap_servers`, then the addresses that the brokers advertise: both have to be "
        "right.",
    ),
    ErrorPage(
        "POLYNYA-STR-082",
        "a file with certificates or keys cannot be used",
        "The client of Kafka could not read what `ssl.truststore` or `ssl.keystore` name: the file "
        "is not there, not readable for this process, not of the `type`, or its password is wrong. "
        "Or it is not below the folder of secrets of the machine, `/etc/polynya/secrets` unless "
        "`POLYNYA_SECRETS` names another one. "
        "`ssl.keystore.location` with `type: PEM` is one file with the key in PKCS #8 and then the "
        "certificate. Of encrypted keys the client takes those of `openssl pkcs8 -topk8 -v1 "
        "PBE-SHA1-3DES`; `PBES2 SecretKeyFactory not available` means another encryption, such as "
        "the one that OpenSSL chooses by itself. A key without a password in a file that only this "
        "user may read, or `type: PKCS12`, works as well.",
    ),
    ErrorPage(
        "POLYNYA-STR-090",
        "a secret that a stream needs cannot be read",
        "A property of Kafka, or the login of a schema registry, is `${file:PATH}` or "
        "`${secret:NAME}`. The file or the entry of AWS Secrets Manager is not there, cannot be "
        "read by this process, is no text, or lacks the field after `#`. A file has to be below "
        "`/etc/polynya/secrets`, or the folder that the environment variable `POLYNYA_SECRETS` of "
        "the process names. It is read where it is "
        "used: on the node, at each use of a file, and every five minutes of Secrets Manager. "
        "Nothing was read from the stream, and it is tried again.",
    ),
)
