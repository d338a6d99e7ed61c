"""Errors of the sources of streams (STR): Kafka, Kinesis, files, schema registries, secrets."""

from __future__ import annotations

from typing import Final

from polynya.model.error_catalogue.entry import ErrorEntry
from polynya.model.errors import (
    ConfigError,
    DependencyError,
    OperationError,
)

_TOPICS_KEPT: Final = "nothing was landed; the topics keep their records for their retention"
_OTHERS_LANDED: Final = "the other topics and streams of the task are landed"
_NOTHING_READ: Final = "nothing was read after the last landed batch"
_NOTHING_COPIED: Final = (
    "nothing of the landed batch was copied and no message was rejected; it is retried with a "
    "growing pause"
)
_OTHER_SOURCE: Final = (
    "The newest landed batch holds the position in its source. Its task had another type of "
    "source when the batch was written."
)

# Kafka.

KAFKA_PROPERTY_REFUSED = ErrorEntry(
    OperationError,
    "POLYNYA-STR-002",
    title="a task cannot set this property of the Kafka client",
    state="nothing was read from the stream",
    page="Polynya reads records as bytes and keeps the position in the landed batches, so a task "
    "cannot set the group, deserializers and the like. It sets limits, timeouts, TLS and the "
    "login, by Kafka's names. A property that names a class, a command or a plug-in would run "
    "code on the node, so it is refused; so is a property that Polynya does not know. "
    '`sasl.jaas.config` is `MODULE required NAME="VALUE" …;` with a module of Kafka, of Kerberos '
    "or of Amazon MSK.",
)
BROKERS_UNREACHABLE = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-005",
    title="the Kafka brokers do not answer",
    state=_TOPICS_KEPT,
    fix="wait: the task retries with a growing pause. If it lasts, check `bootstrap_servers`, "
    "`security.protocol` and the network between this machine and the brokers",
    page="No broker of `bootstrap_servers` answered in time. A client without TLS gets no answer "
    "from a listener with TLS. Also check the addresses that the brokers advertise.",
)
TOPIC_MISSING = ErrorEntry(
    ConfigError,
    "POLYNYA-STR-006",
    title="there is no topic of this name",
    message="there is no topic {topic}",
    state=_OTHERS_LANDED,
    fix="create the topic, or correct `topics`. If it exists, grant this user Describe on it",
    page="Names of topics are case-sensitive. Kafka does not show a topic to a user without the "
    "permission Describe.",
)
KAFKA_READ_DENIED = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-007",
    title="Kafka does not allow this user to read the topics",
    state=_TOPICS_KEPT,
    fix="grant Read and Describe on the topics to the user in `properties`",
    page="No permission on groups is needed: the position is in the landed batches.",
)
KAFKA_LOGIN_REFUSED = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-008",
    title="Kafka refuses the login or the certificate of the client",
    state=_TOPICS_KEPT,
    fix="check `security.protocol`, `sasl.mechanism`, `sasl.jaas.config` and the `ssl.` stores in "
    "`properties`, and the secrets that they name",
    page="The brokers refused the login or the certificate. `bad_certificate` and "
    "`certificate_required` mean that they require a client certificate: `ssl.keystore.location`.",
)
KAFKA_SETTINGS_INVALID = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-009",
    title="the Kafka client does not accept its settings",
    state=_TOPICS_KEPT,
    fix="check `bootstrap_servers` and `properties`",
    page="A property has a value that the client refuses, or no address of `bootstrap_servers` "
    "can be resolved. The cause in the error says which.",
)
KAFKA_REQUEST_FAILED = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-010",
    title="Kafka refused a request",
    message="Kafka refused a request: {exception}",
    state=_TOPICS_KEPT,
    fix="wait: the task retries with a growing pause. If it lasts, see the logs of the brokers",
    page="The brokers answered with an error that has no code of its own here.",
)
RECORDS_DELETED_MEANWHILE = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-011",
    title="records of a topic were deleted while they were read",
    state=_TOPICS_KEPT,
    fix="wait: the next read counts the lost records, and continues after them",
    page="Retention, or an operator, deleted records after the landing had planned to read them.",
)
KAFKA_JARS_MISSING = ErrorEntry(
    OperationError,
    "POLYNYA-STR-015",
    title="the Spark session was started without the jars for Kafka",
    state=_TOPICS_KEPT,
    fix="restart the process. An agent fetches the jars and restarts by itself; the event "
    "`jars.missing` says what prevents it",
    page="Spark loads its jars when a process starts. The first landing from Kafka, or the first "
    "one that logs in to MSK by IAM, came into the configuration of a process that was already "
    "running.",
)
BROKER_UNTRUSTED = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-080",
    title="the certificate of a Kafka broker is not trusted",
    state=_TOPICS_KEPT,
    fix="name the authority that signed it: `ssl.truststore.type: PEM` and "
    "`ssl.truststore.location`, a file on every machine that lands",
    page="No authority that this machine trusts signed the certificate, or it has expired or is "
    "not valid yet. Spark's executors read the file of `ssl.truststore.location`, too, for "
    "instance `/etc/polynya/secrets/kafka-ca.pem`. Without it Java's own authorities are trusted.",
)
BROKER_HOST_MISMATCH = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-081",
    title="the certificate of a Kafka broker is for another host",
    state=_TOPICS_KEPT,
    fix="write the names of the certificates in `bootstrap_servers`. They must also contain the "
    "names that the brokers advertise (`advertised.listeners`)",
    page="The certificate does not contain the name or the address by which the broker was "
    "reached. This may be an attack, so nothing is read. A client first asks "
    "`bootstrap_servers`, then the addresses that the brokers advertise.",
)
KAFKA_FILES_UNUSABLE = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-082",
    title="a file with certificates or keys cannot be used",
    state=_TOPICS_KEPT,
    fix="check the `ssl.` stores in `properties`: whether this process may read the file, the "
    "`type`, and the password and the encryption of the key",
    page="The Kafka client cannot read the file of `ssl.truststore` or `ssl.keystore`, or the file "
    "is not below the secrets folder of the machine: `/etc/polynya/secrets`, unless "
    "`POLYNYA_SECRETS` names another one. `ssl.keystore.location` with `type: PEM` is one file "
    "with the key in PKCS #8, then the certificate. The client reads keys that `openssl pkcs8 "
    "-topk8 -v1 PBE-SHA1-3DES` encrypts; `PBES2 SecretKeyFactory not available` means another "
    "encryption, such as the default of OpenSSL. A key without a password in a file that only this "
    "user may read, or `type: PKCS12`, works as well.",
)

# Kinesis.

KINESIS_STREAM_MISSING = ErrorEntry(
    ConfigError,
    "POLYNYA-STR-045",
    title="there is no Kinesis stream of this name",
    message="there is no stream {stream} in this region",
    state=_OTHERS_LANDED,
    fix="create the stream, or correct `streams` and `region`; the task continues by itself",
    page="The stream does not exist in this account and region, or it is being created or deleted.",
)
SHARD_ITERATOR_EXPIRED = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-046",
    title="the iterator of a Kinesis shard expired repeatedly",
    state="nothing is lost; the landing continues after the last landed batch",
    fix="wait; if it lasts, check whether this machine is overloaded",
    page="The iterator of a shard is valid for five minutes, and an expired one is renewed. Three "
    "expired ones in a row mean that this machine or the network is very slow.",
)
SHARD_THROTTLED = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-047",
    title="the Kinesis stream is read more often than it allows",
    state="nothing is lost; the stream keeps the records for its retention",
    fix="wait; if it lasts, check who else reads the stream, or add shards",
    page="A shard serves five reads and 2 MB a second, for all of its readers together. Polynya "
    "reads more slowly after a refusal.",
)
KINESIS_POSITION_INVALID = ErrorEntry(
    OperationError,
    "POLYNYA-STR-048",
    title="the position in a landed batch is not one of Kinesis streams",
    message="the position in a landed batch is not one of Kinesis streams: {error!r}",
    state="nothing was read after it; the landed batches are unchanged",
    fix="give the task a new `folder`, or restore its source",
    page=_OTHER_SOURCE,
)

# Files.

TOO_MANY_UNDATED_FILES = ErrorEntry(
    OperationError,
    "POLYNYA-STR-040",
    title="too many files without dates in their paths",
    message="there are {count:,} files without dates in their paths; Polynya remembers at most "
    "{limit:,}",
    state=_NOTHING_READ,
    fix="write the date parts of the paths as placeholders such as `<yyyy>`, set "
    "`delete_after_load`, or move files away that were read",
    page="The dates in their paths tell which files were read. If `pattern` has no dates, the name "
    "of each file is remembered.",
)
FILES_POSITION_INVALID = ErrorEntry(
    OperationError,
    "POLYNYA-STR-041",
    title="the position in a landed batch is not one of files",
    message="the position in a landed batch is not one of files: {error!r}",
    state="nothing was read after it; the landed batches are unchanged",
    fix="give the task a new `folder`, or restore its source",
    page=_OTHER_SOURCE,
)
SOURCE_FOLDER_MISSING = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-042",
    title="the folder of the files does not exist",
    state=_NOTHING_READ,
    fix="create the folder, mount its device, or correct `url`; the task continues by itself",
    page="A folder that is missing would look like an empty source, so it is an error.",
)

# Schema registries and secrets.

SCHEMA_REGISTRY_UNREACHABLE = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-022",
    title="the schema registry does not answer",
    message="the schema registry does not answer: {reason}",
    state=_NOTHING_COPIED,
    fix="start the registry, or correct `schema_registry.url`",
    page="Messages of `avro_with_schema` name their schema by a number in a registry. A message "
    "whose schema the registry does not have goes to quarantine (`unknown_schema`).",
)
SCHEMA_REGISTRY_DENIED = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-023",
    title="the schema registry refuses access",
    message="the schema registry refuses access ({status})",
    state=_NOTHING_COPIED,
    fix="set `user` and `password` in `schema_registry` of the task that copies the stream; for a "
    "`streaming_transform`, in `content` of its landing",
    page="The registry answers 401 or 403. Landed batches hold no secrets, so the task that copies "
    "them has the login: `schema_registry: {url, user, password}` under `landing`, user and "
    "password as `${env:NAME}`.",
)
SCHEMA_REGISTRY_MISADDRESSED = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-083",
    title="the address of the schema registry is that of another server",
    message="the server is not a schema registry: it does not know the path (404)",
    state=_NOTHING_COPIED,
    fix="correct `schema_registry.url` to the interface that Confluent's clients use, for instance "
    "with `/apis/ccompat/v7` at its end",
    page="A registry without a schema answers 404 with the code 40401, 40402 or 40403. This answer "
    "was a bare 404, as web servers and proxies give it, so it is unknown whether the schema "
    "exists. The address is `https://HOST:8081` for Confluent's registry and Karapace, "
    "`http://HOST:8080/apis/ccompat/v7` for Apicurio's.",
)
SCHEMA_REGISTRY_NOT_NAMED = ErrorEntry(
    OperationError,
    "POLYNYA-STR-091",
    title="messages need a schema registry that the project does not name",
    message="messages need a schema registry, and the task that copies them names none",
    state=_NOTHING_COPIED,
    fix="write `schema_registry: {{url: ...}}` under `landing` of the task",
    page="The messages of a landed batch name their schemas by numbers in a registry. Anybody with "
    "write access to the landing zone could have written the address in the batch, so Polynya "
    "asks only a registry that the project names: `schema_registry` under `landing` of the task, "
    "or that of `content` of the landing task of the same project whose folder the task reads. If "
    "you do not expect such messages, find out who wrote the batch.",
)
STREAM_SECRET_UNREADABLE = ErrorEntry(
    DependencyError,
    "POLYNYA-STR-090",
    title="a secret of a stream cannot be read",
    state="nothing was read from the stream; it is retried with a growing pause",
    fix="create the secret, let this process read it, or correct the reference",
    page="A property of Kafka, or the login of a schema registry, is `${file:PATH}` or "
    "`${secret:NAME}`. The file or the entry of AWS Secrets Manager is missing, unreadable for "
    "this process, not text, or lacks the field after `#`. A file lies below "
    "`/etc/polynya/secrets`, or the folder in the environment variable `POLYNYA_SECRETS` of the "
    "process. The node reads a file at each use, and Secrets Manager every five minutes.",
)
