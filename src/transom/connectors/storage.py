"""Where files are: a disk of this machine, or a storage that a URI names (`core.location.is_remote`).

What is asked of a storage is little, so that all of them have it: a file is read from any byte on, it is written whole
or not at all under a name, it is listed and deleted. There is no renaming, no appending, no lock and no link. Whoever
needs an atomic step writes one file (`put`).

Credentials, endpoints and regions come from the environment and from the files that the tools of a storage read, never
from a query: its text is not trusted, and could have keys sent anywhere.

| scheme | by | from the environment |
| --- | --- | --- |
| s3, s3a | pyarrow | AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_PROFILE, .., AWS_REGION, AWS_ENDPOINT_URL |
| gs | pyarrow | GOOGLE_APPLICATION_CREDENTIALS, STORAGE_EMULATOR_HOST |
| abfs, abfss | pyarrow | AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN, or what Azure's tools find |
| hdfs | hdfs-native | HADOOP_CONF_DIR, HADOOP_HOME, and tickets of Kerberos |
"""

from __future__ import annotations

import io
import os
import secrets as chance
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self
from urllib.parse import urlsplit

import pyarrow as pa

from transom.core.errors import OptionError
from transom.core.location import is_remote
from transom.core.secrets import taken

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_BLOCK: Final = 4 * 1024 * 1024
_BLOCKS: Final = 3
"""Of a file on a storage so many blocks are at hand, so that small reads are no requests of their own."""


@dataclass(frozen=True)
class Entry:
    """A file or a folder by its name in a folder. `state` changes whenever the file does."""

    name: str
    folder: bool
    size: int
    modified: int
    """When, in nanoseconds."""

    @property
    def state(self) -> tuple[int, ...]:
        return self.size, self.modified


class ReadFile(Protocol):
    """A file that is open to be read, from any byte on."""

    mark: str | None
    """How it is known again as a whole; None: by what it holds."""

    def read(self, count: int = -1, /) -> bytes: ...

    def seek(self, offset: int, whence: int = 0, /) -> int: ...

    def pread(self, count: int, offset: int) -> bytes: ...

    def status(self) -> tuple[int, int, int]:
        """The size of the file, when it was changed, and a number that another file of this name would not have."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


class WriteFile(Protocol):
    """A file that is being written."""

    @property
    def sink(self) -> Any:
        """What takes the bytes."""

    def close(self) -> int:
        """Everything is safe afterwards; how many bytes that are."""

    def abort(self) -> None: ...


def open_file(path: str) -> ReadFile:
    """A file, wherever it is."""
    return RemoteFile(storage_of(path), path) if is_remote(path) else DiskFile(path)


def read_file(path: str) -> bytes:
    """All that is in a file, wherever it is."""
    if not is_remote(path):
        with open(path, "rb") as file:
            return file.read()
    data = storage_of(path).read(path)
    if data is None:
        raise FileNotFoundError(f"there is no file '{path}'")
    return data


def is_there(path: str) -> bool:
    return storage_of(path).entry(path) is not None if is_remote(path) else os.path.exists(path)


def delete(path: str) -> None:
    if is_remote(path):
        storage_of(path).delete(path)
    else:
        os.unlink(path)


def create_file(path: str) -> WriteFile:
    """A file that is written, wherever it is."""
    return storage_of(path).create(path) if is_remote(path) else _DiskWrite(path)


class DiskFile(io.BufferedReader):
    mark: str | None = None

    def __init__(self, path: str) -> None:
        super().__init__(io.FileIO(path))

    def pread(self, count: int, offset: int) -> bytes:
        return os.pread(self.fileno(), count, offset)

    def status(self) -> tuple[int, int, int]:
        status = os.fstat(self.fileno())
        return status.st_size, status.st_mtime_ns, status.st_ino


class _DiskWrite:
    """Whoever wants it to be unseen until it is whole gives it a hidden name, and renames it then."""

    def __init__(self, path: str) -> None:
        self.sink = open(path, "wb")  # noqa: SIM115 (closed by close)

    def close(self) -> int:
        self.sink.flush()
        os.fsync(self.sink.fileno())
        size = self.sink.tell()
        self.sink.close()
        return size

    def abort(self) -> None:
        """What was written stays."""
        self.sink.close()


class MemoryWrite:
    """Keeps what is written, for whoever puts it somewhere as a whole."""

    def __init__(self) -> None:
        self.sink = io.BytesIO()

    def close(self) -> int:
        return self.sink.tell()

    def abort(self) -> None:
        self.sink = io.BytesIO()


class PositionedFile(ABC):
    """A file of which any bytes can be had; where the next read begins is known here."""

    mark: str | None = None

    def __init__(self) -> None:
        self._at = 0

    @abstractmethod
    def pread(self, count: int, offset: int) -> bytes: ...

    @abstractmethod
    def status(self) -> tuple[int, int, int]: ...

    def seek(self, offset: int, whence: int = 0, /) -> int:
        assert whence == 0
        self._at = offset
        return offset

    def read(self, count: int = -1, /) -> bytes:
        rest = max(0, self.status()[0] - self._at)
        data = self.pread(rest if count < 0 else min(count, rest), self._at)
        self._at += len(data)
        return data

    def close(self) -> None:  # noqa: B027 most have nothing to let go of
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()


class RemoteFile(PositionedFile):
    def __init__(self, storage: Storage, path: str) -> None:
        super().__init__()
        entry = storage.entry(path)
        if entry is None:
            raise FileNotFoundError(f"there is no file '{path}'")
        self._entry = entry
        self._file = storage.open(path)
        self._blocks: OrderedDict[int, bytes] = OrderedDict()

    def status(self) -> tuple[int, int, int]:
        return self._entry.size, self._entry.modified, self._entry.modified

    def pread(self, count: int, offset: int) -> bytes:
        count = min(count, self._entry.size - offset)
        if count <= 0:
            return b""
        if count >= _BLOCK:
            return self._fetch(count, offset)
        first, last = offset // _BLOCK, (offset + count - 1) // _BLOCK
        data = b"".join(self._block(number) for number in range(first, last + 1))
        return data[offset - first * _BLOCK :][:count]

    def _block(self, number: int) -> bytes:
        if number not in self._blocks:
            self._blocks[number] = self._fetch(min(_BLOCK, self._entry.size - number * _BLOCK), number * _BLOCK)
            if len(self._blocks) > _BLOCKS:
                self._blocks.popitem(last=False)
        return self._blocks[number]

    def _fetch(self, count: int, offset: int) -> bytes:
        data = bytes(self._file.read_at(count, offset))
        if len(data) < count:
            raise OSError("it has become shorter while it was read")
        return data

    def close(self) -> None:
        self._file.close()


class Storage(ABC):
    """Files by their URIs. What goes wrong is an OSError; a file that is not there a FileNotFoundError."""

    @abstractmethod
    def entry(self, path: str) -> Entry | None:
        """What is there by this name."""

    @abstractmethod
    def entries(self, folder: str) -> list[Entry]:
        """What is in a folder, not below it; nothing where there is no folder."""

    @abstractmethod
    def open(self, path: str) -> pa.NativeFile: ...

    @abstractmethod
    def create(self, path: str) -> WriteFile:
        """Writes a file in the place of one that is there. The name must be one of chance unless all is written at
        once: not every storage can give up a file that it was given in part."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """A file that is not there is no error."""

    def read(self, path: str) -> bytes | None:
        try:
            with self.open(path) as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None

    def put(self, path: str, data: bytes) -> None:
        """A file in the place of what was there, whole or not at all.

        It is not given up when writing fails: a storage whose streams can only be ended would show what it has.
        """
        file = self.create(path)
        file.sink.write(data)
        file.close()


def storage_of(path: str) -> Storage:
    """The storage that a URI is in."""
    scheme, _, rest = path.partition("://")
    key = (scheme, rest.partition("/")[0])
    with _lock:
        if key not in _opened:
            for name in _SECRETS:
                taken(f"${name}")  # from now on no message shows it
            _opened[key] = _OPENERS[scheme](*key)
        return _opened[key]


# --- those that pyarrow knows ----------------------------------------------------------------------------------------


class ArrowStorage(Storage):
    """A file system of pyarrow, whose paths are those of URIs without scheme and host.

    A `root` is what they begin with there: the bucket, or the container.
    """

    def __init__(self, system: FileSystem, root: str = "") -> None:
        self.system = system
        self._root = root

    def _path(self, uri: str) -> str:
        return f"{self._root}/{uri.partition('://')[2].partition('/')[2].rstrip('/')}".rstrip("/")

    def entry(self, path: str) -> Entry | None:
        return _entry(self.system.get_file_info(self._path(path)))

    def entries(self, folder: str) -> list[Entry]:
        from pyarrow.fs import FileSelector

        where = self._path(folder)
        infos = self.system.get_file_info(FileSelector(where, allow_not_found=True))
        return [entry for info in infos if (entry := _entry(info)) is not None]

    def open(self, path: str) -> pa.NativeFile:
        return self.system.open_input_file(self._path(path))

    def create(self, path: str) -> WriteFile:
        return _ArrowWrite(self.system, self._path(path))

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self.system.delete_file(self._path(path))


class _ArrowWrite:
    def __init__(self, system: FileSystem, path: str) -> None:
        self._system = system
        self._path = path
        self.sink = system.open_output_stream(path, compression=None)  # which would go by the name

    def close(self) -> int:
        size = int(self.sink.tell())
        self.sink.close()
        return size

    def abort(self) -> None:
        """The stream can only be ended, which shows what it got."""
        self.sink.close()
        self._system.delete_file(self._path)


def _entry(info: Any) -> Entry | None:
    from pyarrow.fs import FileType

    if info.type == FileType.NotFound:
        return None
    return Entry(info.base_name, info.type == FileType.Directory, info.size or 0, info.mtime_ns or 0)


def _s3(scheme: str, bucket: str) -> Storage:
    from pyarrow.fs import S3FileSystem, resolve_s3_region

    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    given: dict[str, Any] = {} if region is None else {"region": region}
    if endpoint:
        parts = urlsplit(endpoint if "://" in endpoint else f"https://{endpoint}")
        given |= {"endpoint_override": parts.netloc, "scheme": parts.scheme}
    elif region is None:
        with suppress(OSError):  # then the files of AWS's tools say it, or it is the first one
            given["region"] = resolve_s3_region(bucket)
    return ArrowStorage(S3FileSystem(**given), bucket)


def _gs(scheme: str, bucket: str) -> Storage:
    from pyarrow.fs import GcsFileSystem

    emulator = os.environ.get("STORAGE_EMULATOR_HOST")
    if not emulator:
        return ArrowStorage(GcsFileSystem(), bucket)
    parts = urlsplit(emulator if "://" in emulator else f"http://{emulator}")
    return ArrowStorage(GcsFileSystem(anonymous=True, scheme=parts.scheme, endpoint_override=parts.netloc), bucket)


def _abfs(scheme: str, authority: str) -> Storage:
    from pyarrow.fs import AzureFileSystem

    container, at, host = authority.rpartition("@")
    account = host.partition(".")[0] if at else os.environ.get("AZURE_STORAGE_ACCOUNT")
    if not account:
        raise OptionError(
            f"'{scheme}://{authority}' names no account of Azure",
            remedy=f"write {scheme}://container@account.dfs.core.windows.net/.., or set AZURE_STORAGE_ACCOUNT",
        )
    given = {"account_key": "AZURE_STORAGE_KEY", "sas_token": "AZURE_STORAGE_SAS_TOKEN"}
    credentials = {name: os.environ[variable] for name, variable in given.items() if os.environ.get(variable)}
    return ArrowStorage(AzureFileSystem(account, **credentials), container if at else authority)


# --- HDFS ------------------------------------------------------------------------------------------------------------


class HdfsStorage(Storage):
    """HDFS by a client of its own, which needs neither Java nor the libraries of Hadoop."""

    def __init__(self, url: str) -> None:
        try:
            from hdfs_native import Client
        except ImportError:
            raise OptionError(
                f"'{url}' cannot be reached without the package hdfs-native",
                remedy="install it: pip install 'transom[hdfs]'",
            ) from None
        self.client = Client(url)

    @staticmethod
    def _path(uri: str) -> str:
        return "/" + uri.partition("://")[2].partition("/")[2].rstrip("/")

    def entry(self, path: str) -> Entry | None:
        try:
            return _hdfs_entry(self.client.get_file_info(self._path(path)))
        except FileNotFoundError:
            return None

    def entries(self, folder: str) -> list[Entry]:
        try:
            return [_hdfs_entry(status) for status in self.client.list_status(self._path(folder))]
        except FileNotFoundError:
            return []

    def open(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(self.client.read(self._path(path)), mode="r")

    def create(self, path: str) -> WriteFile:
        return _HdfsWrite(self.client, self._path(path))

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError):
            self.client.delete(self._path(path))


class _HdfsWrite:
    """A file of a hidden name, which is renamed at the end."""

    def __init__(self, client: Any, path: str) -> None:
        self._client = client
        self._path = path
        folder, _, name = path.rpartition("/")
        self._hidden = f"{folder}/.{name}.{chance.token_hex(8)}.new"
        self._file = client.create(self._hidden)
        self.sink = pa.PythonFile(self._file, mode="w")

    def close(self) -> int:
        size = int(self.sink.tell())
        self.sink.close()
        self._client.rename(self._hidden, self._path, overwrite=True)
        return size

    def abort(self) -> None:
        self.sink.close()
        self._client.delete(self._hidden)


def _hdfs_entry(status: Any) -> Entry:
    name = str(status.path).rstrip("/").rpartition("/")[2]
    return Entry(name, bool(status.isdir), int(status.length), int(status.modification_time) * 1_000_000)


def _hdfs(scheme: str, authority: str) -> Storage:
    return HdfsStorage(f"{scheme}://{authority}")


_OPENERS: Final[dict[str, Callable[[str, str], Storage]]] = {
    "s3": _s3,
    "s3a": _s3,
    "gs": _gs,
    "abfs": _abfs,
    "abfss": _abfs,
    "hdfs": _hdfs,
}
_SECRETS: Final = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN")

_opened: Final[dict[tuple[str, str], Storage]] = {}
_lock: Final = threading.Lock()
