"""Hadoop's local file system in a JVM of ours: the files are those of Hadoop's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from transom.runtimes.spark import hadoop_origins
from transom.runtimes.spark.local_files import CLASS, install


def test_files_have_the_permissions_and_the_checksums_of_hadoops_own(spark: SparkSession, tmp_path: Path) -> None:
    context: Any = spark.sparkContext
    hadoop, known = context._jvm.org.apache.hadoop, context._jsc.hadoopConfiguration()
    install(spark)
    files = hadoop.fs.FileSystem.get(context._jvm.java.net.URI.create("file:///"), known)
    assert files.getClass().getName() == CLASS
    own = hadoop.fs.LocalFileSystem()
    own.initialize(context._jvm.java.net.URI.create("file:///"), known)
    modes = {}
    for name, system in (("ours", files), ("hadoop's", own)):
        (tmp_path / name).mkdir()
        path = hadoop.fs.Path(str(tmp_path / name / "file"))
        written = system.create(path, True)
        written.writeInt(7)
        written.close()
        system.mkdirs(hadoop.fs.Path(str(tmp_path / name / "folder")), hadoop.fs.permission.FsPermission("750"))
        found = sorted((tmp_path / name).iterdir())
        assert [each.name for each in found] == [".file.crc", "file", "folder"]
        modes[name] = [oct(each.stat().st_mode) for each in found]
        system.setPermission(path, hadoop.fs.permission.FsPermission("1640"))
        modes[name].append(oct((tmp_path / name / "file").stat().st_mode))
    assert modes["ours"] == modes["hadoop's"]
    (tmp_path / "ours" / "file").write_bytes(b"\0\0\0\x08")  # a bit has turned over
    with pytest.raises(Py4JJavaError, match="Checksum error"):
        files.open(hadoop.fs.Path(str(tmp_path / "ours" / "file"))).readInt()


def test_settings_are_what_they_were_and_forget_where_they_come_from(spark: SparkSession) -> None:
    context: Any = spark.sparkContext
    settings = context._jsc.hadoopConfiguration()
    before = settings.size(), settings.get("io.file.buffer.size")
    hadoop_origins.forget(spark)
    assert (settings.size(), settings.get("io.file.buffer.size")) == before and before[0] > 100
    assert settings.getPropertySources("io.file.buffer.size") is None
    sent = context._jvm.java.io.ByteArrayOutputStream()
    settings.write(context._jvm.java.io.DataOutputStream(sent))
    back = context._jvm.org.apache.hadoop.conf.Configuration(False)
    back.readFields(context._jvm.java.io.DataInputStream(context._jvm.java.io.ByteArrayInputStream(sent.toByteArray())))
    assert (back.size(), back.get("io.file.buffer.size")) == before
