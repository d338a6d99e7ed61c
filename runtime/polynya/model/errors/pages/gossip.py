"""Pages of the workload stream, by which nodes hear of each other."""

from __future__ import annotations

from typing import Final

from polynya.model.errors.pages.page import ErrorPage

PAGES: Final = (
    ErrorPage(
        "POLYNYA-AGT-040",
        "the place in the workload stream was lost",
        "A node read the stream too seldom, or its shards were changed. It goes on with the "
        "newest records, and looks at the store, which holds the truth. Nothing is to be done.",
    ),
    ErrorPage(
        "POLYNYA-AGT-041",
        "the workload stream is asked more often than it answers",
        "A shard of Kinesis answers five reads a second, of all nodes together. Nodes ask half as "
        "often, and less often after a refusal. When it lasts, something else reads the stream "
        "too, or several clusters share it: give each a stream of its own.",
    ),
    ErrorPage(
        "POLYNYA-AGT-042",
        "there is no such workload stream",
        "The stream that `--stream` names was not found in the region of the target. Nodes do not "
        "hear each other's load; who owns what is decided in the store, so work goes on. Create "
        "the stream, or name the right one: a node that finds it again uses it by itself.",
    ),
    ErrorPage(
        "POLYNYA-AGT-043",
        "the folder of the workload stream cannot be used",
        "Nodes of a project without Kinesis tell each other their state by small files. The "
        "folder for them cannot be read or written. Work goes on without.",
    ),
)
