"""How much one client, and all of them together, may take of a server process."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one process. Sizes in bytes, times in seconds, rates in bytes per second."""

    max_connections: int = 4096
    """Open connections. Beyond it, the longest idle one of the busiest address is closed."""
    max_per_address: int = 512
    """Open connections of one client address; for IPv6, of one /64 network."""

    head_size: int = 64 * 1024
    """Request line and headers together."""
    head_fields: int = 100
    target_size: int = 32 * 1024
    """The request target (path and query string)."""
    head_time: float = 10.0
    """From the first byte of a request to the end of its headers."""
    idle_time: float = 75.0
    """Between two requests on a connection."""

    min_rate: int = 1024
    """Average rate that a body must arrive with, and a response must be read with; 0 for none."""
    grace: float = 15.0
    """Until ``min_rate`` counts."""
    body_memory: int = 256 * 1024
    """Of one body; a larger one goes to a temporary file."""
    bodies_memory: int = 64 * 1024 * 1024
    """Of all bodies of the process; beyond it, new pieces go to temporary files."""
    spooled_per_address: int = 256 * 1024 * 1024
    """Temporary files of bodies that one client address may have at a time."""
    spooled: int = 2 * 1024 * 1024 * 1024
    """Temporary files of bodies of the whole process."""
    unsent: int = 256 * 1024 * 1024
    """Responses that wait in memory for their clients, of the whole process."""

    pipelined: int = 32
    """Requests that may wait on one connection for the responses before them."""
    waiting: int = 2048
    """Complete requests that wait for a thread."""
    waiting_per_address: int = 512
    wait_time: float = 30.0
    """A request that waits longer for a thread is refused."""
    idle_thread: float = 30.0
    """An additional thread that has nothing to do for so long ends."""

    linger_time: float = 30.0
    """How long the rest of a refused body is read and thrown away, so that the client sees the
    response instead of a broken connection."""
    linger_idle: float = 5.0
    """The same, from the last byte that arrived."""
