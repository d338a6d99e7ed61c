"""Pages of streams (STR): their sources, landed batches and what messages mean."""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages.page import ErrorPage

PAGES: Final = (
    ErrorPage(
        "POLYNYA-STR-020",
        "a landed batch was written by a newer version",
        "The footer of a landed batch has a version that this Polynya does not know. Nothing of it "
        "is copied, and it is read again later: upgrade the nodes that copy before those that "
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
        "Messages of `avro_with_schema` name their schema by a number, and the registry that knows "
        "it could not be asked. No message was refused and nothing of the landed batch was copied: "
        "it is read again, with growing pauses, until the registry answers. A schema that it does "
        "not have is another thing: such messages go to quarantine (`unknown_schema`).",
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
)
