"""A Kafka broker for tests, benchmarks and examples: Kafka in KRaft mode, one node, in a folder of its own.

Its jars come from Maven Central by the Ivy that is among the jars of PySpark, once for a user; then a broker is up in
seconds. `BrokerUnavailable` says why there can be none.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

VERSION: Final = "4.3.1"
_SECONDS: Final = 120.0
_OPTIONS: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_SETTINGS: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs={folder}/logs
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.retention.ms=-1
"""


class BrokerUnavailable(Exception):
    """No broker can be had here."""


class KafkaBroker:
    """A broker that runs until it is stopped; as a context it is removed with all it has.

    It can be killed and started again on the same port, with what it had.
    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        java = shutil.which("java")
        if java is None:
            raise BrokerUnavailable("there is no Java on the PATH to run a Kafka broker with")
        self._java, self._jars = java, _jars(java)
        self.folder = Path(tempfile.mkdtemp(prefix="transom-kafka-"))
        self._port, controller = _free_ports(2)
        text = _SETTINGS.format(port=self._port, controller=controller, folder=self.folder)
        text += "".join(f"{name}={value}\n" for name, value in (settings or {}).items())
        (self.folder / "server.properties").write_text(text)
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._run("kafka.tools.StorageTool", "format", "-t", _uuid(), "-c", "server.properties")
            self.start()
        except BaseException:
            self.remove()
            raise

    @property
    def servers(self) -> str:
        """What clients call bootstrap.servers."""
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Up, and ready for clients."""
        with open(self.folder / "broker.log", "ab") as log:
            self._process = subprocess.Popen(
                self._command("kafka.Kafka", "server.properties"),
                cwd=self.folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for those who use it
            )
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            with socket.socket() as probe:
                probe.settimeout(1.0)
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            time.sleep(0.1)
        raise BrokerUnavailable(f"Kafka does not start:\n{self._log()}")

    def kill(self) -> None:
        """End the broker as a machine that loses its power."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def remove(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> KafkaBroker:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def _end(self, how: int) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(how)
            self._process.wait()
        self._process = None

    def _run(self, main: str, *arguments: str) -> None:
        done = subprocess.run(
            self._command(main, *arguments), cwd=self.folder, capture_output=True, text=True, timeout=_SECONDS
        )
        if done.returncode:
            raise BrokerUnavailable(f"{main} fails: {done.stdout}{done.stderr}")

    def _command(self, main: str, *arguments: str) -> list[str]:
        return [self._java, *_OPTIONS, "-cp", f"{self._jars}/*", main, *arguments]

    def _log(self) -> str:
        return (self.folder / "broker.log").read_text(errors="replace")[-2000:]


def _uuid() -> str:
    """An id as Kafka writes it: 22 letters, and the first one is no dash, or it would be taken for an option."""
    import base64

    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def _jars(java: str) -> Path:
    """The folder of Kafka's jars, which are fetched when nobody has done so before."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "transom"
    folder = cache / f"kafka-{VERSION}"
    if folder.is_dir():
        return folder
    spark = find_spec("pyspark")
    if spark is None or not spark.submodule_search_locations:
        raise BrokerUnavailable("the jars of Kafka are fetched with those of PySpark, which is not installed")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as fetched:
        done = subprocess.run(
            [
                *(java, "-cp", f"{spark.submodule_search_locations[0]}/jars/*", "org.apache.ivy.Main"),
                *("-cache", f"{fetched}/ivy", "-confs", "default", "-dependency", "org.apache.kafka", "kafka_2.13"),
                *(VERSION, "-retrieve", f"{fetched}/jars/[artifact]-[revision](-[classifier]).[ext]"),
            ],
            capture_output=True,
            text=True,
        )
        if done.returncode or not list(Path(fetched).glob("jars/kafka_2.13-*.jar")):
            raise BrokerUnavailable(f"the jars of Kafka cannot be fetched: {(done.stdout + done.stderr)[-500:]}")
        try:
            os.rename(Path(fetched) / "jars", folder)
        except OSError:  # another process was faster
            if not folder.is_dir():
                raise
    return folder
