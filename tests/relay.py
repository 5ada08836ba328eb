"""A process that passes on what comes to one port to another one, to be killed: `python -m tests.relay PORT BEHIND`."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    with suppress(OSError):
        writer.close()


async def main(port: int, behind: int) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", behind)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pass_on(reader, server_writer), _pass_on(server_reader, writer))

    server = await asyncio.start_server(connected, "127.0.0.1", port)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
