"""Hadoop's files of this machine, without a process for each.

Hadoop's local file system sets the permissions of every file that it makes, and starts the program `chmod` for it where
its native library is missing, as in PySpark: eight to twelve processes a batch, which take a tenth of the time of a
small one. Java can ask the system itself. So in a JVM of our own the local file system, which all of Spark shares, is
one that does: the same files, with the same permissions and the same checksums beside them.

It is two small classes, which Spark's own compiler (Janino, which compiles its plans) makes when the session begins.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import SparkSession

CLASS: Final = "transom.LocalFiles"

_SOURCE: Final = """
package transom;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

public class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new Raw());
    }

    public static class Raw extends RawLocalFileSystem {
        public void setPermission(Path path, FsPermission permission) throws IOException {
            if (permission.getStickyBit()) {
                super.setPermission(path, permission);
            } else {
                Files.setPosixFilePermissions(
                    pathToFile(path).toPath(), PosixFilePermissions.fromString(permission.toString()));
            }
        }
    }
}
"""


def install(spark: SparkSession) -> None:
    """Let Hadoop take this for the local file system from now on, in the whole JVM of a session."""
    jvm: Any = spark.sparkContext._jvm
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    files, here = jvm.org.apache.hadoop.fs.FileSystem, jvm.java.net.URI.create("file:///")
    present = files.get(here, configuration)
    if present.getClass().getName() == CLASS:  # by an earlier session of this JVM
        return
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(configuration.getClassLoader())
    compiler.cook(_SOURCE)
    with_ours = jvm.org.apache.hadoop.conf.Configuration(configuration)
    with_ours.setClassLoader(compiler.getClassLoader())
    with_ours.set("fs.file.impl", CLASS)
    present.close()  # Hadoop forgets a file system that is closed, and makes another one for whoever asks next
    files.get(here, with_ours)
