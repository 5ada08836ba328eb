"""The handles of Kafka's client library, made where they are used: none of them survives a fork, and the library itself
is imported when a query first names a topic."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from transom.connectors.properties import reject_unknown
from transom.core.errors import OptionError, SinkError, SourceError, TransomError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError
    from confluent_kafka.admin import AdminClient, OffsetSpec

T = TypeVar("T")

PATIENCE: Final = 60.0
"""For so many seconds a broker may be away: it may be starting again."""

_FIRST: Final = 10.0
"""For so many when a query begins, whose address may be wrong."""

_REQUEST: Final = 2.0
"""For so many one answer is waited for, before it is asked anew: meanwhile the library may have said what is wrong."""

_CLIENT: Final = "properties."
_OURS: Final = {
    "transactional.id": "every sink has its own",
    "enable.auto.commit": "how far a topic has been read is kept in the checkpoint",
    "auto.offset.reset": "write 'scan.startup.mode' = 'earliest-offset'",
    "enable.partition.eof": "it is needed to find the end",
}


OF_PRODUCERS: Final = (
    *("linger.", "batch.", "queue.", "compression", "acks", "request.required", "enable.idempotence", "transaction."),
    *("partitioner", "message.", "delivery."),
)
_NOT_OF_ADMINS: Final = (
    *("isolation.level", "group.id", "fetch.", "queued.", "max.poll.", "session."),
    *OF_PRODUCERS,
)


def require_library() -> None:
    """Raises OptionError where the client library is not installed."""
    try:
        import confluent_kafka  # noqa: F401
    except ImportError:
        raise OptionError(
            "connector 'kafka' needs the package confluent-kafka, which is not installed",
            remedy="pip install 'transom[kafka]'",
        ) from None


def read_client_properties(
    properties: Mapping[str, str], names: Iterable[str], owner: str, free: tuple[str, ...] = ()
) -> tuple[str, dict[str, str]]:
    """The topic, and what the client library is told; OptionError with what to write instead.

    Beside the properties in `names` there are those of the library, and those that begin with one of `free`.
    """
    require_library()
    client = {name.removeprefix(_CLIENT): text for name, text in properties.items() if name.lower().startswith(_CLIENT)}
    rest = {name: text for name, text in properties.items() if not name.startswith((_CLIENT, *free))}
    reject_unknown(rest, ["connector", "topic", "properties.bootstrap.servers", *names], owner)
    topic = properties.get("topic", "")
    if not topic:
        raise OptionError("connector 'kafka' needs a topic", remedy="write topic = 'orders'")
    if "bootstrap.servers" not in client:
        raise OptionError(
            "connector 'kafka' needs the address of a broker",
            remedy="write 'properties.bootstrap.servers' = 'localhost:9092'",
        )
    for name, why in _OURS.items():
        if name in client:
            raise OptionError(f"'{_CLIENT}{name}' cannot be set", remedy=f"leave it out: {why}")
    return topic, client


def settings_of(client: Mapping[str, str], **own: Any) -> dict[str, Any]:
    """What a handle is made with. The library would write to the terminal by itself; and having looked for a broker in
    vain a few times it would look every ten seconds."""
    ours: dict[str, Any] = {"log_level": 0, "client.id": "transom"}
    if "reconnect.backoff.ms" not in client:
        ours["reconnect.backoff.max.ms"] = "1000"
    return {**ours, **client, **{name.replace("_", "."): v for name, v in own.items()}}


def made(make: Callable[[dict[str, Any]], T], settings: dict[str, Any]) -> T:
    """A handle; a property that the library does not know is an error of the declaration."""
    from confluent_kafka import KafkaException

    try:
        return make(settings)
    except (KafkaException, ValueError, TypeError) as error:
        raise OptionError(
            f"Kafka's client library rejects its properties: {message_of(error)}",
            remedy="names and values behind 'properties.' are those of librdkafka (CONFIGURATION.md)",
        ) from None


def message_of(error: BaseException) -> str:
    """What the library says, without what it says around it."""
    reason = error.args[0] if error.args else error
    return str(reason.str()) if hasattr(reason, "str") else str(reason)


def retriable(error: KafkaError) -> bool:
    """Whether it may be otherwise in a moment: a broker that is away, has just started, or is not the leader any more.

    The client library itself says so only of what it answers to a transaction.
    """
    from confluent_kafka import KafkaError as Codes

    return bool(error.retriable()) or error.code() in (
        *(Codes._TRANSPORT, Codes._ALL_BROKERS_DOWN, Codes._TIMED_OUT, Codes._RESOLVE, Codes._WAIT_COORD),
        *(Codes.NOT_COORDINATOR, Codes.COORDINATOR_NOT_AVAILABLE, Codes.COORDINATOR_LOAD_IN_PROGRESS),
        *(Codes.LEADER_NOT_AVAILABLE, Codes.NOT_LEADER_FOR_PARTITION, Codes.BROKER_NOT_AVAILABLE),
        *(
            Codes.FENCED_LEADER_EPOCH,
            Codes.UNKNOWN_LEADER_EPOCH,
            Codes.OFFSET_NOT_AVAILABLE,
            Codes.REPLICA_NOT_AVAILABLE,
        ),
        *(Codes.REQUEST_TIMED_OUT, Codes.NETWORK_EXCEPTION, Codes.KAFKA_STORAGE_ERROR, Codes.CONCURRENT_TRANSACTIONS),
        *(Codes.NOT_ENOUGH_REPLICAS, Codes.NOT_ENOUGH_REPLICAS_AFTER_APPEND, Codes.UNSTABLE_OFFSET_COMMIT),
        Codes._NOENT,  # of a partition no leader is known
    )


def in_time(call: Callable[[], T], seconds: float) -> T:
    """What it returns; NotInTime if it is not through by then. It is left behind in a thread of its own, and nobody may
    rely any more on what it works with.

    For calls of the library that can wait for ever, whatever time they are given.
    """
    answer: Future[T] = Future()

    def work() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:
            answer.set_exception(error)

    threading.Thread(target=work, name="transom-kafka", daemon=True).start()
    return answer.result(seconds)


class Topic:
    """What is asked about a topic, for whoever plans how far it is read. `wrong` is the error that it is."""

    def __init__(self, name: str, client: Mapping[str, str], wrong: type[TransomError] = SourceError) -> None:
        self.name = name
        self.begins = False
        """Whether it is the beginning of a query, which waits less for a broker."""
        self._client = client
        self._wrong = wrong
        self._admin: AdminClient | None = None
        self._heard: KafkaError | None = None
        """Why no broker answers, as far as the library has said so."""

    @property
    def _handle(self) -> AdminClient:
        from confluent_kafka.admin import AdminClient

        if self._admin is None:
            client = {name: text for name, text in self._client.items() if not name.startswith(_NOT_OF_ADMINS)}
            self._admin = made(AdminClient, {**settings_of(client), "error_cb": self._hear})
        return self._admin

    def _hear(self, error: KafkaError) -> None:
        """Of several the one that says most: when all brokers are down it has been said why each is."""
        from confluent_kafka import KafkaError as Codes

        if self._heard is None or error.code() != Codes._ALL_BROKERS_DOWN:
            self._heard = error

    def check_writable(self) -> None:
        """An error where no broker answers, or the topic is not there and no broker would make it."""
        self.begins = True
        cluster = self._await(lambda: self._handle.describe_cluster().result(timeout=_REQUEST))
        if not self._await(self._is_there) and not self._is_made(cluster.nodes[0].id):
            raise self._missing()

    def _is_there(self) -> bool:
        from confluent_kafka import KafkaError, KafkaException

        try:
            return bool(self._describe())
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return False
            raise

    def _is_made(self, broker: int) -> bool:
        """Whether a broker makes topics that are written to; if it does not say so, that will be seen."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import ConfigResource

        resource = ConfigResource(ConfigResource.Type.BROKER, str(broker))
        try:
            settings = self._handle.describe_configs([resource])[resource].result(timeout=_REQUEST)
        except (KafkaException, NotInTime):
            return True
        made_so = settings.get("auto.create.topics.enable")
        return made_so is None or made_so.value != "false"

    def _describe(self) -> list[int]:
        from confluent_kafka import TopicCollection

        described = self._handle.describe_topics(TopicCollection([self.name]))[self.name]
        return sorted(partition.id for partition in described.result(timeout=_REQUEST).partitions)

    def partitions(self) -> list[int]:
        """The numbers of its partitions."""
        return self._await(self._describe)

    def offsets(self, partitions: Iterable[int], spec: OffsetSpec) -> dict[int, int]:
        """An offset of each partition; of the latest it is the last stable one, unless the client reads otherwise.

        A broker that has just started may answer without one, and without an error; then it is asked again.
        """
        from confluent_kafka import OFFSET_INVALID, IsolationLevel, TopicPartition

        committed = self._client.get("isolation.level", "read_committed") == "read_committed"
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        wanted = {TopicPartition(self.name, partition): spec for partition in partitions}

        def request() -> dict[int, int]:
            answered = self._handle.list_offsets(wanted, isolation_level=level)
            offset_of = {
                partition.partition: each.result(timeout=_REQUEST).offset for partition, each in answered.items()
            }
            if OFFSET_INVALID in offset_of.values():
                raise NotInTime
            return offset_of

        return self._await(request) if wanted else {}

    def _await(self, request: Callable[[], T]) -> T:
        """The answer, which may have to wait for a broker that is away."""
        from confluent_kafka import KafkaError, KafkaException

        deadline = time.monotonic() + (_FIRST if self.begins else PATIENCE)
        while True:
            try:
                answer = request()
                self._heard = None
                return answer
            except (KafkaException, NotInTime) as error:
                failure = error.args[0] if isinstance(error, KafkaException) else None
                missing = failure is not None and failure.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
                over = time.monotonic() > deadline
                if missing and (self.begins or over):  # a broker that has just started may not know it yet
                    raise self._missing() from None
                self._handle.poll(0)
                may_pass = missing or failure is None or retriable(failure)
                if not may_pass or self._shut_out or over:
                    self._give_up(failure)
                if failure is not None and failure.code() > 0:  # a broker said so, and not the library
                    self._admin = None  # which knows an older leader, and would ask by it for minutes
                time.sleep(0.2)

    def _missing(self) -> TransomError:
        return self._wrong(
            f"there is no topic '{self.name}' at {self._client['bootstrap.servers']},"
            " or not all of the partitions that it had",
            remedy="create it before the query starts, or correct its name",
        )

    @property
    def _shut_out(self) -> bool:
        from confluent_kafka import KafkaError

        return self._heard is not None and self._heard.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL)

    def _give_up(self, failure: KafkaError | None) -> NoReturn:
        if self._shut_out and self._heard is not None:
            why = self._heard.str()
        elif failure is not None and not retriable(failure):
            why = failure.str()
        else:
            why = "no broker answers" if self._heard is None else f"no broker answers: {self._heard.str()}"
        if self._shut_out:
            remedy = "check 'properties.sasl.' and 'properties.ssl.', user and password among them"
        else:
            remedy = "check 'properties.bootstrap.servers', 'properties.security.protocol' and that the broker runs"
        verb = "written to" if self._wrong is SinkError else "read"
        where = f"topic '{self.name}' at {self._client['bootstrap.servers']}"
        raise self._wrong(f"{where} cannot be {verb}: {why}", remedy=remedy) from None


def sink_error(topic: str, error: BaseException) -> SinkError:
    return SinkError(
        f"rows cannot be written to topic '{topic}': {message_of(error)}",
        remedy="check 'properties.bootstrap.servers', that the broker runs and that the topic may be written to",
    )
