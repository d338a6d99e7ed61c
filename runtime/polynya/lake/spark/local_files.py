"""How Hadoop makes local files: without a checksum file and without a process for each.

Iceberg writes through the same file system, for there is one in a JVM.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from polynya.lake.spark import api

if TYPE_CHECKING:
    from polynya.lake.spark.api import SparkSession

log = logging.getLogger(__name__)

#: Without its native library, which no Maven repository has, Hadoop runs `chmod` for each file and
#: folder that it makes: 10 ms, five times in a commit of Iceberg.
_FILES: Final = """
public class FilesWithoutChmod extends org.apache.hadoop.fs.RawLocalFileSystem {
    public void setPermission(
        org.apache.hadoop.fs.Path path, org.apache.hadoop.fs.permission.FsPermission permission
    ) throws java.io.IOException {
        java.nio.file.Files.setAttribute(
            pathToFile(path).toPath(), "unix:mode", Integer.valueOf(permission.toShort()));
    }
}
"""


def write_plain_files(spark: SparkSession) -> None:
    """Let Hadoop write nothing but each file, and set its permissions in the JVM.

    Parquet and Avro check their own content, so a hidden `.crc` next to each file says nothing new.
    """
    jvm: Any = spark._jvm
    context: Any = spark.sparkContext
    local = jvm.org.apache.hadoop.fs.FileSystem.getLocal(context._jsc.hadoopConfiguration())
    local.setWriteChecksum(False)
    try:
        _stand_on(jvm, local, _compiled(jvm))
    except api.Py4JError as error:
        log.info("Hadoop runs a process for each local file that it makes: %s", error)


def _compiled(jvm: Any) -> Any:
    """The class, made by the compiler of Spark's own code."""
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(_FILES)
    return compiler.getClassLoader().loadClass("FilesWithoutChmod")


def _stand_on(jvm: Any, local: Any, kind: Any) -> None:
    """Put a file system of this class below another one, for which Hadoop has no setting."""
    files = kind.getDeclaredConstructor(None).newInstance(None)
    files.initialize(local.getUri(), local.getConf())
    below = jvm.java.lang.Class.forName("org.apache.hadoop.fs.FilterFileSystem")
    field = below.getDeclaredField("fs")
    field.setAccessible(True)
    field.set(local, files)
