"""Files in storage that speaks S3.

django-storages, and what it doesn't do: reading a part without fetching the whole, and uploads that
hold one part of a file in memory and not ten.
"""

from __future__ import annotations

from io import BytesIO
from typing import IO, Any, Final

from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError
from storages.backends.s3 import S3Storage
from storages.utils import clean_name

from backend.kernel.outgoing.s3 import client_config, use_own_pools
from objects.files.delivery import content_headers

_NO_SUCH_OBJECT: Final = "NoSuchKey"
"""The code for a missing object. A missing bucket has 404 as well, and another code."""

# A thread of the web waits meanwhile.
_BOUNDS: Final = Config(
    connect_timeout=5,
    read_timeout=20,
    retries={"mode": "standard", "total_max_attempts": 2},
)


class ObjectStorage(S3Storage):
    """``STORAGES["files"]`` with ``FILE_STORAGE=s3``."""

    def __init__(self, **options: Any) -> None:
        options["client_config"] = client_config(
            _BOUNDS, is_other_service=bool(options.get("endpoint_url"))
        )
        super().__init__(**options)
        self.transfer_config = TransferConfig(use_threads=False)

    @property
    def connection(self) -> Any:
        connection = super().connection
        use_own_pools(connection.meta.client)
        return connection

    def _get_write_parameters(self, name: str, content: Any = None) -> dict[str, Any]:
        # The service itself decides by its row. These are for a bucket that is read without it.
        parameters: dict[str, Any] = super()._get_write_parameters(name, content)
        headers = content_headers(name.rpartition("/")[2], parameters["ContentType"])
        parameters["ContentType"] = headers["Content-Type"]
        parameters["ContentDisposition"] = headers["Content-Disposition"]
        parameters.pop("ContentEncoding", None)
        return parameters

    def delete(self, name: str) -> None:
        """Remove an object; one that isn't there is no error, but a bucket that isn't is one."""
        try:
            self.bucket.Object(self._normalize_name(clean_name(name))).delete()
        except ClientError as error:
            if _code(error) != _NO_SUCH_OBJECT:
                raise

    def open_range(self, key: str, start: int, length: int) -> tuple[IO[bytes], int] | None:
        """Open so many bytes from there on. Return them with the size of the whole object; None if
        there is no such object."""
        name = self._normalize_name(key)
        arguments = {"Range": f"bytes={start}-{start + length - 1}"} if length else {}
        try:
            answer = self.bucket.Object(name).get(**arguments)
        except ClientError as error:
            if _code(error) == _NO_SUCH_OBJECT:
                return None
            if _code(error) == "InvalidRange" and start == 0:
                return BytesIO(), 0
            raise
        byte_range = answer.get("ContentRange", "")
        if start and not byte_range:
            answer["Body"].close()
            raise OSError("the storage sent another part of the object than the requested one")
        size = byte_range.rpartition("/")[2] or answer.get("ContentLength")
        if size is None:
            answer["Body"].close()
            raise OSError("the storage doesn't announce the length of the object")
        return answer["Body"], int(size)


def _code(error: ClientError) -> str:
    return str(error.response["Error"]["Code"])
