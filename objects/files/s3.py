"""Files in storage that speaks S3.

django-storages, and what it doesn't do: reading a part without fetching the whole, and uploads that
hold one part of a file in memory and not ten.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import ClientError
from storages.backends.s3 import S3Storage

from backend.kernel.outgoing.s3 import POOLS
from objects.files.delivery import content_headers
from objects.files.uploads import CHUNK


class ObjectStorage(S3Storage):
    """``STORAGES["files"]`` with ``FILE_STORAGE=s3``."""

    def __init__(self, **options: Any) -> None:
        if options.get("endpoint_url"):
            # Servers other than Amazon's know buckets by path, and not all know its checksums.
            options["client_config"] = Config(
                s3={"addressing_style": "path"},
                signature_version="s3v4",
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            )
        super().__init__(**options)
        self.transfer_config = TransferConfig(use_threads=False)

    @property
    def connection(self) -> Any:
        connection = super().connection
        # botocore has no public way to choose them.
        session = connection.meta.client._endpoint.http_session
        session._pool_classes_by_scheme.update(POOLS)
        return connection

    def _get_write_parameters(self, name: str, content: Any = None) -> dict[str, Any]:
        # The service itself decides by its row. These are for a bucket that is read without it.
        parameters: dict[str, Any] = super()._get_write_parameters(name, content)
        headers = content_headers(name.rpartition("/")[2], parameters["ContentType"])
        parameters["ContentType"] = headers["Content-Type"]
        parameters["ContentDisposition"] = headers["Content-Disposition"]
        parameters.pop("ContentEncoding", None)
        return parameters

    def read_range(self, key: str, start: int, length: int) -> Iterator[bytes] | None:
        """So many bytes from there on; None if there is no such object."""
        name = self._normalize_name(key)
        arguments = {"Range": f"bytes={start}-{start + length - 1}"} if length else {}
        try:
            body = self.bucket.Object(name).get(**arguments)["Body"]
        except ClientError as error:
            if error.response["Error"]["Code"] in ("404", "NoSuchKey"):
                return None
            raise
        pieces: Iterator[bytes] = body.iter_chunks(CHUNK)
        return pieces
