"""A place that is a bucket of a service that speaks S3.

Large objects are sent in parts, of which two are held in memory: the one that is sent and its copy.
After each thousand parts they are twice as large. Objects exist when they are complete; the parts
of a writer that fails are given up, those of one that is killed by ``remove_unfinished``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    PartialCredentialsError,
)
from botocore.parsers import ResponseParserError

from backend.kernel.outgoing.s3 import client_config, use_own_pools
from backend.operations.backup.places.storage import Entry
from backend.operations.backup.problems import PlaceError, UnreadableObject

_PIECE: Final = 64 * 1024  # bytes
_PART: Final = 8 * 1024 * 1024  # bytes
_PARTS_OF_A_SIZE: Final = 1000  # then parts are twice as large: S3 allows 10,000 of an object
_MAX_CODE: Final = 60  # characters of an error's code, which the server chooses
# No client waits for these requests.
_CLIENT_CONFIG: Final = Config(
    connect_timeout=10,
    read_timeout=60,
    retries={"mode": "standard", "total_max_attempts": 4},
)
_PERMISSIONS: Final = (
    "s3:ListBucket, s3:GetObject, s3:PutObject, s3:DeleteObject, s3:AbortMultipartUpload and"
    " s3:ListBucketMultipartUploads"
)


class Bucket:
    """Objects are those of the bucket whose keys begin with ``prefix``."""

    def __init__(self, name: str, prefix: str, settings: Mapping[str, Any]) -> None:
        self._bucket = name
        self._prefix = f"{prefix}/" if prefix else ""
        self.title = f"s3://{name}/{prefix}".rstrip("/")
        endpoint = settings.get("BACKUP_S3_ENDPOINT") or None
        with self._errors():
            self._client: Any = boto3.session.Session().client(
                "s3",
                endpoint_url=endpoint,
                region_name=settings.get("BACKUP_S3_REGION") or None,
                aws_access_key_id=settings.get("BACKUP_S3_ACCESS_KEY") or None,
                aws_secret_access_key=settings.get("BACKUP_S3_SECRET_KEY") or None,
                config=client_config(_CLIENT_CONFIG, is_other_service=endpoint is not None),
            )
        use_own_pools(self._client)

    def entries(self, prefix: str) -> Iterator[Entry]:
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=self._prefix + prefix
        )
        with self._errors():
            for page in pages:
                for item in page.get("Contents", ()):
                    name = item["Key"].removeprefix(self._prefix)
                    yield Entry(name, item["Size"], item["LastModified"])

    @contextmanager
    def writing(self, name: str) -> Iterator[_Upload]:
        upload = _Upload(self._client, self._bucket, self._prefix + name, self._errors)
        try:
            yield upload
            upload.finish()
        except BaseException:
            upload.abort()
            raise

    def pieces(self, name: str) -> Iterator[bytes]:
        with self._errors():
            try:
                response = self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)
            except ClientError as error:
                if _code(error) == "NoSuchKey":
                    raise UnreadableObject(f"{self.title} has no {name}.") from None
                raise
            # Reading raises an error if the body ends before its announced length. The raw stream,
            # which ``with body`` returns, doesn't.
            with closing(response["Body"]) as body:
                while piece := body.read(_PIECE):
                    yield piece

    def remove(self, name: str) -> None:
        with self._errors():
            self._client.delete_object(Bucket=self._bucket, Key=self._prefix + name)

    def remove_unfinished(self, prefix: str, is_own: Callable[[str], bool]) -> int:
        removed = 0
        with self._errors():
            pages = self._client.get_paginator("list_multipart_uploads").paginate(
                Bucket=self._bucket, Prefix=self._prefix + prefix
            )
            for page in pages:
                for item in page.get("Uploads", ()):
                    if not is_own(item["Key"].removeprefix(self._prefix)):
                        continue
                    self._client.abort_multipart_upload(
                        Bucket=self._bucket, Key=item["Key"], UploadId=item["UploadId"]
                    )
                    removed += 1
        return removed

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except ClientError as error:
            raise PlaceError(f"{self.title}: {_refusal(error)}") from error
        except (NoCredentialsError, PartialCredentialsError) as error:
            raise PlaceError(
                f"{self.title}: there are no credentials. Set BACKUP_S3_ACCESS_KEY and"
                " BACKUP_S3_SECRET_KEY."
            ) from error
        # Texts of other errors contain the address, which may contain a password.
        except (BotoCoreError, ResponseParserError, KeyError, ValueError) as error:
            raise PlaceError(
                f"{self.title} can't be reached, or doesn't answer in time or in full"
                f" ({type(error).__name__}). Check BACKUP_S3_ENDPOINT, BACKUP_S3_REGION and the"
                " network."
            ) from error
        except OSError as error:
            raise PlaceError(f"{self.title}: {error.strerror or type(error).__name__}.") from error


class _Upload:
    """Collects one part at a time. An object below the size of a part is one request."""

    def __init__(
        self,
        client: Any,
        bucket: str,
        key: str,
        errors: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._client = client
        self._errors = errors
        self._where = {"Bucket": bucket, "Key": key}
        self._pending = bytearray()
        self._upload: dict[str, str] = {}
        self._parts: list[dict[str, Any]] = []

    def write(self, piece: bytes, /) -> int:
        self._pending += piece
        size = _PART << (len(self._parts) // _PARTS_OF_A_SIZE)
        while len(self._pending) >= size:
            with self._errors():
                self._send(bytes(memoryview(self._pending)[:size]))
            del self._pending[:size]
        return len(piece)

    def finish(self) -> None:
        with self._errors():
            if not self._upload:
                self._client.put_object(**self._where, Body=bytes(self._pending))
                return
            if self._pending:
                self._send(bytes(self._pending))
            self._client.complete_multipart_upload(
                **self._where, **self._upload, MultipartUpload={"Parts": self._parts}
            )

    def abort(self) -> None:
        """Give up the parts, or leave them to ``remove_unfinished`` if the server fails."""
        if self._upload:
            with suppress(PlaceError), self._errors():
                self._client.abort_multipart_upload(**self._where, **self._upload)

    def _send(self, body: bytes) -> None:
        if not self._upload:
            response = self._client.create_multipart_upload(**self._where)
            self._upload = {"UploadId": response.get("UploadId", "")}
        number = len(self._parts) + 1
        response = self._client.upload_part(
            **self._where, **self._upload, PartNumber=number, Body=body
        )
        self._parts.append({"PartNumber": number, "ETag": response.get("ETag", "")})


def _code(error: ClientError) -> str:
    code = str(error.response.get("Error", {}).get("Code", ""))
    return "".join(character for character in code if character.isprintable())[:_MAX_CODE]


def _refusal(error: ClientError) -> str:
    """What the server refuses, and what to do. Its own text may repeat a key, and isn't shown."""
    code = _code(error)
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    if code == "NoSuchBucket":
        return "there is no such bucket. Create it, or correct BACKUP_TO."
    if status in (401, 403):
        return f"access is refused ({code}). Its access key needs {_PERMISSIONS}."
    return f"{error.operation_name} failed ({code}, status {status})."
