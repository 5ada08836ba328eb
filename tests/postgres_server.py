"""A PostgreSQL for the tests, from the package pgserver: one for a test session, and a schema for each test."""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from adbc_driver_postgresql import dbapi

_USER: Final = "nobody"
"""PostgreSQL does not run as root."""

_SETTINGS: Final = ("fsync=off", "wal_level=logical", "shared_buffers=16MB", "max_connections=50", "autovacuum=off")


class PostgresServer:
    """It listens on a socket in its own folder, so that no port is taken."""

    def __init__(self) -> None:
        package = importlib.util.find_spec("pgserver")  # to import it would touch folders of the user
        if package is None or package.origin is None:
            pytest.skip("pgserver is not installed: pip install pgserver")
        self._programs = Path(package.origin).parent / "pginstall" / "bin"
        self._as_user = {"user": _USER} if os.geteuid() == 0 else {}
        self._folder = tempfile.mkdtemp(prefix="transom-pg-")
        if self._as_user:
            shutil.chown(self._folder, _USER)
        self._process: subprocess.Popen[bytes] | None = None
        options = ["--auth=trust", "-U", "postgres", "-E", "utf8", "--no-locale", "--no-sync"]
        self._run("initdb", "-D", self._data, *options)

    @property
    def _data(self) -> str:
        return os.path.join(self._folder, "data")

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._programs / program, *arguments], cwd="/", capture_output=True, text=True, **self._as_user
        )  # type: ignore[call-overload]
        if done.returncode:
            pytest.skip(f"PostgreSQL does not start here: {done.stderr[-500:]}")

    def start(self) -> None:
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        command = [self._programs / "postgres", "-D", self._data, "-k", self._folder, "-h", "", *settings]
        with open(os.path.join(self._folder, "log"), "a") as log:
            self._process = subprocess.Popen(command, cwd="/", stdout=log, stderr=log, **self._as_user)  # type: ignore[call-overload]
        until = time.monotonic() + 60
        while True:
            try:
                return self.execute("SELECT 1")
            except dbapi.OperationalError:
                if time.monotonic() > until or self._process.poll() is not None:
                    raise
                time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT: clients are thrown out; SIGQUIT: as if it had crashed."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait()

    def kill(self) -> None:
        self.stop(random.choice([signal.SIGINT, signal.SIGQUIT]))

    def remove(self) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self._folder)

    def url(self, schema: str | None = None) -> str:
        path = "" if schema is None else f"&options=-csearch_path%3D{schema}"
        return f"postgresql://postgres@/postgres?host={self._folder}{path}"

    def execute(self, text: str) -> None:
        with connected(self.url()) as cursor:
            cursor.execute(text)

    def schema(self) -> Database:
        """An empty place for a test."""
        name = f"t{uuid.uuid4().hex[:12]}"
        self.execute(f"CREATE SCHEMA {name}")
        return Database(self.url(name))


@contextmanager
def connected(url: str) -> Iterator[Any]:
    with dbapi.connect(url) as connection, connection.cursor() as cursor:
        yield cursor
        connection.commit()


class Database:
    """What an ordinary client sees at `url`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._connection = dbapi.connect(url, autocommit=True)

    def execute(self, *texts: str) -> None:
        with self._connection.cursor() as cursor:
            for text in texts:
                cursor.execute(text)

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(text)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    def table(self, name: str) -> list[tuple[Any, ...]]:
        """All rows, or none if it is not there."""
        there = self.rows(f"SELECT to_regclass('{name}') IS NOT NULL") == [(True,)]
        return self.rows(f"SELECT * FROM {name}") if there else []

    def close(self) -> None:
        self._connection.close()
