"""Which storage a URI leads to, and what files are called there."""

from __future__ import annotations

import sys

import pytest

from transom.connectors import storage
from transom.connectors.storage import ArrowStorage, storage_of
from transom.core.errors import OptionError


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_opened", {})


@pytest.mark.parametrize(
    ("uri", "kind", "path"),
    [
        ("gs://shop/a/b.csv", "gcs", "shop/a/b.csv"),
        ("abfs://box@account.dfs.core.windows.net/a/b.csv", "abfs", "box/a/b.csv"),
        ("abfss://box/a/", "abfs", "box/a"),
        ("s3a://shop", "s3", "shop"),
        ("s3://shop/a//", "s3", "shop/a"),
    ],
)
def test_what_files_are_called(uri: str, kind: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "STORAGE_EMULATOR_HOST": "http://127.0.0.1:9",
        "AZURE_STORAGE_ACCOUNT": "account",
        "AZURE_STORAGE_KEY": "a2V5",
        "AWS_REGION": "eu-west-1",
    }.items():
        monkeypatch.setenv(name, value)
    storage = storage_of(uri)
    assert isinstance(storage, ArrowStorage)
    assert (storage.system.type_name, storage._path(uri)) == (kind, path)
    assert storage_of(uri) is storage


def test_a_container_without_an_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT", raising=False)
    with pytest.raises(OptionError, match="names no account of Azure"):
        storage_of("abfs://box/a")


def test_hdfs_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    with pytest.raises(OptionError, match="cannot be reached without the package hdfs-native") as raised:
        storage_of("hdfs://node:8020/a")
    assert "transom[hdfs]" in str(raised.value.remedy)
