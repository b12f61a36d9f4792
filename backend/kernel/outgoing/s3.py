"""Connections to S3 storage that take no interim response for the response.

``http.client``, which boto3 stands on, skips ``100 Continue`` alone. After another interim response
(102, 103) the connection would be used again with the real response in it: the next request would
get the file of this one.
"""

from __future__ import annotations

from http.client import BadStatusLine
from typing import Any, Final

from botocore.awsrequest import (
    AWSHTTPConnection,
    AWSHTTPConnectionPool,
    AWSHTTPResponse,
    AWSHTTPSConnection,
    AWSHTTPSConnectionPool,
)
from botocore.config import Config

_MOST_INTERIM: Final = 100
_CONTINUE: Final = 100
_SWITCHING: Final = 101
_FINAL: Final = 200  # the lowest status of a response that isn't interim


class _Response(AWSHTTPResponse):
    def __init__(self, *args: Any, status_tuple: Any = None, **options: Any) -> None:
        super().__init__(*args, status_tuple=status_tuple, **options)
        self._interim = 0

    def _read_status(self) -> Any:
        version, status, reason = super()._read_status()
        if status >= _FINAL:
            return version, status, reason
        self._interim += 1
        if status == _SWITCHING or self._interim > _MOST_INTERIM:
            raise BadStatusLine(f"{version} {status}")
        return version, _CONTINUE, reason  # http.client skips these


class _Interim:
    """For connections: of an early response only a final one keeps the request's body back."""

    sock: Any
    _response_received: bool
    response_class = _Response

    def _is_100_continue_status(self, line: bytes) -> bool:
        parts = line.split(None, 2)
        return len(parts) > 1 and parts[0].startswith(b"HTTP/") and parts[1].startswith(b"1")

    def getresponse(self) -> Any:
        is_early = self._response_received
        response = super().getresponse()  # type: ignore[misc]
        if is_early and self.sock is not None:
            # The server expects the body still, and would take the next request for it.
            self.sock.close()
            self.sock = None
        return response


class _Connection(_Interim, AWSHTTPConnection):
    pass


class _TlsConnection(_Interim, AWSHTTPSConnection):
    pass


class _Pool(AWSHTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(AWSHTTPSConnectionPool):
    ConnectionCls = _TlsConnection


_POOLS: Final = {"http": _Pool, "https": _TlsPool}


def use_own_pools(client: Any) -> None:
    """Let a client of boto3 use the connections of this module."""
    # botocore has no public way to choose them.
    client._endpoint.http_session._pool_classes_by_scheme.update(_POOLS)


def client_config(bounds: Config, *, is_other_service: bool) -> Config:
    """Return the configuration of a client with these time limits.

    Servers other than Amazon's know buckets by path, and not all know its checksums.
    """
    if not is_other_service:
        return bounds
    return bounds.merge(
        Config(
            s3={"addressing_style": "path"},
            signature_version="s3v4",
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
    )
