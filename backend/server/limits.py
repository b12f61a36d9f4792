"""The limits of one server process, for each client and for all clients together."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one process. Sizes in bytes, times in seconds, rates in bytes per second."""

    max_connections: int = 4096
    """Open connections. Beyond it, the longest idle tenth of the busiest address is closed."""
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
    """Lowest average rate for sending a body and for reading a response; 0 for no limit."""
    grace: float = 15.0
    """``min_rate`` is enforced after this time."""
    body_memory: int = 256 * 1024
    """Memory for one body; a larger one goes to a temporary file."""
    bodies_memory: int = 64 * 1024 * 1024
    """Memory for all bodies of the process; beyond it, bodies go to temporary files."""
    spooled_per_address: int = 256 * 1024 * 1024
    """Temporary files of bodies of one client address, together."""
    spooled: int = 2 * 1024 * 1024 * 1024
    """Temporary files of all bodies of the process, together."""
    unsent: int = 256 * 1024 * 1024
    """Responses of the whole process that wait in memory for their clients."""

    half_closed: float = 5.0
    """A client that has closed its sending side gets its response for this time. One that has gone
    looks the same until something is sent to it, and the work for it would go on."""
    pipelined: int = 32
    """Requests that may wait on one connection for the responses before them."""
    waiting: int = 2048
    """Complete requests that wait for a thread."""
    waiting_per_address: int = 512
    wait_time: float = 30.0
    """A request that waits longer for a thread is refused."""
    stall_time: float = 10.0
    """If requests wait for so long and no thread takes one, or works, the process can't serve."""
    idle_thread: float = 30.0
    """An additional thread ends after this time without work."""

    linger_time: float = 30.0
    """The rest of a refused body is read and discarded for at most this time, so that the client
    sees the response instead of a broken connection."""
    linger_idle: float = 5.0
    """A lingering connection is closed after this time without a byte."""
