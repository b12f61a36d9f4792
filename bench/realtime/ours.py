"""``fan_out`` behind uvicorn with our protocol: ``python -m bench.realtime.ours SOCKET LOOP``."""

from __future__ import annotations

import sys
from typing import Literal, cast

import uvicorn

from realtime.sockets.wire import Wire

if __name__ == "__main__":
    uvicorn.run(
        "bench.realtime.fan_out:application",
        uds=sys.argv[1],
        loop=cast(Literal["uvloop", "asyncio"], sys.argv[2]),
        ws=Wire,
        ws_per_message_deflate=False,
        log_level="warning",
    )
