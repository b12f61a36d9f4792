"""Why a request has no response that can be used. The texts never hold the address: it may have
secrets in it."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from zlib import error as ZlibError

import h11


class Unreachable(Exception):
    """No usable response. The text says why, as the end of a sentence."""


class TimedOut(Unreachable):
    """The response wasn't complete in time."""


class TooLarge(Unreachable):
    """The response has more bytes than the caller takes."""


@contextmanager
def unreachable_for(seconds: float) -> Iterator[None]:
    """Raise ``Unreachable`` for what an exchange of at most so many seconds raises."""
    try:
        yield
    except TimeoutError:
        raise TimedOut(f"it took longer than {seconds:.3g} seconds") from None
    except ssl.SSLError:
        raise Unreachable("TLS with it failed") from None
    except ConnectionRefusedError:
        raise Unreachable("the connection was refused") from None
    except h11.RemoteProtocolError:
        raise Unreachable("its response isn't valid HTTP/1.1") from None
    except ZlibError:
        raise Unreachable("its response isn't compressed as it says") from None
    except (OSError, ValueError, h11.LocalProtocolError):
        raise Unreachable("the connection failed") from None
