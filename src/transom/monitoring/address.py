"""Where a server listens: HOST:PORT as people write it, on this machine unless they say otherwise."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from transom.core.errors import OptionError
from transom.core.text import visible


@dataclass(frozen=True)
class Address:
    """Port 0 is any that is free.

    >>> Address.read("9464", 1), str(Address.read("[::1]:80", 1)), str(Address.read("localhost", 9464))
    (Address(host='127.0.0.1', port=9464), '[::1]:80', 'localhost:9464')
    """

    host: str
    port: int

    @staticmethod
    def read(text: str, port: int) -> Address:
        """What is not said is this machine, and the port that is given."""
        if not text:
            raise _no_address(text)
        host, _, number = text.rpartition(":") if text.endswith("]") is False else (text, "", "")
        if not host and not number.isdecimal():
            host, number = number, ""
        host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
        if number and (not number.isdecimal() or len(number) > 5 or int(number) > 65_535):
            raise _no_address(text)
        if not _may_be_host(host):
            raise _no_address(text)
        return Address(host, int(number) if number else port)

    @property
    def is_local(self) -> bool:
        """Whether nobody outside this machine can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @contextmanager
    def taken_is_an_error(self, what: str) -> Iterator[None]:
        """Within it a server is opened: that it cannot listen is said so that something can be done about it."""
        try:
            yield
        except (OSError, OverflowError) as error:
            raise OptionError(
                f"{what} cannot listen on {visible(str(self))}: {getattr(error, 'strerror', None) or error}",
                remedy=f"give another address, or port 0 for any that is free: {self.with_port(0)}",
            ) from None

    def with_port(self, port: int) -> Address:
        return Address(self.host, port)

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def _may_be_host(text: str) -> bool:
    """A name or an address; a word without a dot that is no name of this machine is rather something else."""
    try:
        ipaddress.ip_address(text)
        return True
    except ValueError:
        letters = text.replace("-", "").replace(".", "")
        return letters.isascii() and letters.isalnum() and not text.endswith((".cql", ".sql"))


def _no_address(text: str) -> OptionError:
    return OptionError(
        f"'{visible(text)}' is no address to listen on", remedy="write HOST:PORT, as in 127.0.0.1:9464, or a port alone"
    )
