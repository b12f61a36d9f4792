"""Large and deep bodies, with and without credentials."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

from bench.attack.attacks import Attack, Attacker
from bench.attack.scene import MOUNT, VICTIM, Scene
from bench.attack.wire import chunk, head

_MEGABYTE = 1 << 20
_WRONG = {"X-Svc-Application-Id": "wrong", "X-Svc-REST-API-Key": "wrong"}


class _Body(Attack):
    """A body, sent whole or in chunks of 64 KB, as fast as the server takes it."""

    attackers = 8
    most = 400
    pause = 0.1
    allowance = 256
    path: ClassVar[str] = f"{MOUNT}/classes/{VICTIM}"
    chunked: ClassVar[bool] = False
    statuses: ClassVar[frozenset[int]] = frozenset()
    """The only statuses that are right; none of them: any but a 5xx."""

    @cached_property
    def body(self) -> bytes:
        raise NotImplementedError

    @cached_property
    def _framed(self) -> bytes:
        if not self.chunked:
            return self.body
        parts = [self.body[at : at + 65_536] for at in range(0, len(self.body), 65_536)]
        return b"".join(map(chunk, [*parts, b""]))

    def headers(self, scene: Scene) -> Mapping[str, str]:
        return scene.client

    async def attack(self, attacker: Attacker) -> None:
        framing = (
            {"Transfer-Encoding": "chunked"}
            if self.chunked
            else {"Content-Length": str(len(self.body))}
        )
        headers = {"Content-Type": "application/json", **self.headers(attacker.scene), **framing}
        async with await attacker.connect() as wire:
            data = head("POST", self.path, headers) + self._framed
            answer = await attacker.exchange(wire, data)
        if self.statuses and answer.status not in self.statuses:
            expected = " or ".join(map(str, sorted(self.statuses)))
            attacker.tally.faults[f"{answer.status} instead of {expected}"] += 1
        elif answer.status >= 400 and not answer.is_error:
            attacker.tally.faults[f"{answer.status} without the JSON of an error"] += 1


class _BigJson(_Body):
    @cached_property
    def body(self) -> bytes:
        # Many small values cost more than a long text does.
        items = b'{"a":1,"b":"text"},' * (19 * _MEGABYTE // 19)
        return b'{"title":"a","items":[' + items[:-1] + b"]}"


class BigWrongKeys(_BigJson):
    name = "19 MB JSON, wrong keys"
    description = "a body of a million small objects, with Content-Length and wrong keys"
    statuses = frozenset({403, 413})
    short = True

    def headers(self, scene: Scene) -> Mapping[str, str]:
        return _WRONG


class BigChunkedWrongKeys(BigWrongKeys):
    name = "19 MB JSON in chunks, wrong keys"
    description = "the same, chunked"
    chunked = True
    short = False


class BigBody(_BigJson):
    name = "19 MB JSON"
    description = "a body of a million small objects, with Content-Length and a client key"


class BigChunkedBody(BigBody):
    name = "19 MB JSON in chunks"
    description = "the same, chunked"
    chunked = True


class BigBodyKeys(_BigJson):
    name = "19 MB JSON, keys in the body"
    description = "no credentials in headers, so they may be in the body"

    def headers(self, scene: Scene) -> Mapping[str, str]:
        return {}


class BigJsonUpload(_Body):
    name = "30 MB JSON upload, keys in the body"
    description = "a body of two million members to /files, without credentials"
    path = f"{MOUNT}/files/a.txt"

    @cached_property
    def body(self) -> bytes:
        members = b",".join(b'"%d":1' % number for number in range(2_600_000))
        return b'{"base64":"",' + members + b"}"

    def headers(self, scene: Scene) -> Mapping[str, str]:
        return {}


class DeepNesting(_Body):
    name = "deep nesting"
    description = "a list in a list, 500,000 deep"
    most = 2_000

    @cached_property
    def body(self) -> bytes:
        return b'{"title":' + b"[" * 500_000 + b"]" * 500_000 + b"}"


class ManyKeys(_Body):
    name = "many keys"
    description = "an object of 50,000 keys"
    most = 2_000
    short = True

    @cached_property
    def body(self) -> bytes:
        return b"{" + b",".join(b'"key%d":1' % number for number in range(50_000)) + b"}"


class ManyItems(_Body):
    name = "long batches"
    description = "a batch of 100 creates with 8 KB each"
    path = f"{MOUNT}/batch"
    most = 200

    @cached_property
    def body(self) -> bytes:
        item = b'{"method":"POST","path":"%s/classes/Flooded","body":{"title":"%s"}}' % (
            MOUNT.encode(),
            b"a" * 8_000,
        )
        return b'{"requests":[' + b",".join([item] * 100) + b"]}"


class _LongUpload(_Body):
    path = f"{MOUNT}/files/long.txt"
    most = 200

    @cached_property
    def body(self) -> bytes:
        return b"a" * (25 * _MEGABYTE)

    def headers(self, scene: Scene) -> Mapping[str, str]:
        return {**scene.user, "Content-Type": "text/plain"}


class LongUpload(_LongUpload):
    name = "over-long uploads"
    description = "25 MB to /files by a user, with Content-Length"
    statuses = frozenset({413, 429})
    short = True


class LongChunkedUpload(_LongUpload):
    name = "over-long uploads in chunks"
    description = "25 MB to /files by a user, chunked"
    statuses = frozenset({413, 429})
    chunked = True


class UploadWithoutRights(_LongUpload):
    name = "uploads without rights"
    description = "25 MB to /files by a stranger, with Content-Length"
    statuses = frozenset({400, 403, 413, 429})

    def headers(self, scene: Scene) -> Mapping[str, str]:
        return {**scene.client, "Content-Type": "text/plain"}


ATTACKS = (
    BigWrongKeys,
    BigChunkedWrongKeys,
    BigBody,
    BigChunkedBody,
    BigBodyKeys,
    BigJsonUpload,
    DeepNesting,
    ManyKeys,
    ManyItems,
    LongUpload,
    LongChunkedUpload,
    UploadWithoutRights,
)
