"""Files of the tests' session get their permissions from the JVM, not from a process each.

Hadoop starts `chmod` for each local file and folder that it makes, where its native library is
missing: a tenth of all that a step of a test costs. Here the JVM sets the same permissions itself.
"""

from __future__ import annotations

from typing import Any

from polynya.lake.spark.api import SparkSession

_SOURCE = """
public class FilesWithoutChmod extends org.apache.hadoop.fs.RawLocalFileSystem {
    public void setPermission(
        org.apache.hadoop.fs.Path path, org.apache.hadoop.fs.permission.FsPermission permission
    ) throws java.io.IOException {
        java.nio.file.Files.setAttribute(
            pathToFile(path).toPath(), "unix:mode", Integer.valueOf(permission.toShort()));
    }
}
"""


def without_chmod(spark: SparkSession) -> None:
    """Put it below the one local file system of the session's JVM."""
    jvm: Any = spark._jvm
    context: Any = spark.sparkContext
    conf = context._jsc.hadoopConfiguration()
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(_SOURCE)
    loader = compiler.getClassLoader()
    files = loader.loadClass("FilesWithoutChmod").getDeclaredConstructor(None).newInstance(None)
    local = jvm.org.apache.hadoop.fs.FileSystem.getLocal(conf)
    files.initialize(local.getUri(), conf)
    below = jvm.java.lang.Class.forName("org.apache.hadoop.fs.FilterFileSystem")
    field = below.getDeclaredField("fs")
    field.setAccessible(True)
    field.set(local, files)
