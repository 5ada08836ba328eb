"""An S3 for tests, served by this process on loopback; credentials and address are in the environment, as for users."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

ENVIRONMENT: Final = {
    "AWS_ACCESS_KEY_ID": "tester",
    "AWS_SECRET_ACCESS_KEY": "a-key-for-tests",
    "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
_numbers = itertools.count()


@contextmanager
def object_store() -> Iterator[str]:
    """Its address, for as long as the block runs."""
    from moto.server import ThreadedMotoServer
    from werkzeug.serving import WSGIRequestHandler

    # Python's server says "100 Continue", and werkzeug's once more: Amazon's client would take that for the answer.
    setattr(WSGIRequestHandler, "handle_expect_100", lambda handler: True)  # noqa: B010
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    before = dict(os.environ)
    os.environ.update(ENVIRONMENT, AWS_ENDPOINT_URL=f"http://{host}:{port}")
    try:
        yield os.environ["AWS_ENDPOINT_URL"]
    finally:
        os.environ.clear()
        os.environ.update(before)
        server.stop()


def new_bucket() -> str:
    """A bucket of its own, as a URI."""
    from pyarrow.fs import S3FileSystem

    name = f"bucket-{os.getpid()}-{next(_numbers)}"
    host = os.environ["AWS_ENDPOINT_URL"].partition("://")[2]
    S3FileSystem(endpoint_override=host, scheme="http", allow_bucket_creation=True).create_dir(name)
    return f"s3://{name}"
