"""A service with a signer on a node's chain, as the tests of sending use it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import connection
from django.test import TestCase, override_settings

from backend.settings.areas.chain import Hidden
from chain.models import Blockchain, Sending, Transaction
from chain.rpc.web3_library import eth_account
from chain.sending.outgoing import send
from chain.sending.signers.local import LocalSigner
from chain.tasks import resend
from tests.evm.artefacts import Contract
from tests.evm.node import Node
from tests.rest import MASTER, Api, Reply

ETHER = 10**18


@dataclass
class Desk:
    """The service's signer, which has ether, and what was signed by it."""

    node: Node
    key: str
    address: str

    @property
    def network_id(self) -> int:
        return self.node.chain_id

    @property
    def rows(self) -> list[Sending]:
        """What was signed, oldest first."""
        return [*Sending.objects.order_by("id")]

    @property
    def states(self) -> list[str]:
        return [row.state for row in self.rows]

    @property
    def nonces(self) -> list[int]:
        return [row.nonce for row in self.rows]

    def elsewhere(self, **more: Any) -> str:
        """A transaction that another program sends from the account, with the same key."""
        # Imported so first, it leaves the recursion limit alone.
        eth_account()
        return self.node.send_raw(self.node.signed(self.key, {"to": self.address, **more}))

    @property
    def used(self) -> int:
        """How many transactions of the account are in the chain."""
        return int(self.node.rpc("eth_getTransactionCount", self.address, "latest"), 16)

    def pay(self, wei: int = 1, *, to: str | None = None, data: str = "0x") -> str:
        """Send ether by the service; the hash. In a test that commits nothing it is handed over as
        if it had; what the network says of it then is only in the row."""
        receiver = self.node.accounts[9] if to is None else to

        def sent() -> str:
            return send(self.network_id, receiver, data, value=wei, purpose="test")

        if not connection.in_atomic_block:
            return sent()
        with TestCase.captureOnCommitCallbacks(execute=True):
            return sent()

    def look_after(self, seconds: float = 0) -> None:
        """A round of upkeep, after so many seconds."""
        self.let_pass(seconds)
        resend(self.network_id)

    def let_pass(self, seconds: float) -> None:
        """Let everything that was signed be older."""
        by = timedelta(seconds=seconds)
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE chain_sending SET created_at = created_at - %s, sent_at = sent_at - %s,"
                " mined_at = mined_at - %s, passed_at = passed_at - %s",
                [by, by, by, by],
            )

    def behind(self, url: str) -> None:
        """Have the service ask at another address than the node's."""
        Blockchain.objects.update(rpc_endpoint=url)

    def record(self, sent: str) -> Transaction:
        return Transaction.objects.get(hash=sent)

    def register(self, contract: Contract, name: str, **fields: Any) -> str:
        """Have the service know a contract; the id of its object."""
        return Api(MASTER).make(
            "SmartContract",
            name=name,
            address=contract.address,
            networkId=self.network_id,
            abi=contract.abi,
            listening=False,
            **fields,
        )

    def call(self, caller: Api, contract: str, method: str, args: Any = None, **more: Any) -> Reply:
        """``callMethod`` by any user."""
        return self._function(caller, "callMethod", contract, method, args, more)

    def view(self, caller: Api, contract: str, method: str, args: Any = None, **more: Any) -> Reply:
        """``viewMethod`` by any user."""
        return self._function(caller, "viewMethod", contract, method, args, more)

    def _function(
        self, caller: Api, name: str, contract: str, method: str, args: Any, more: dict[str, Any]
    ) -> Reply:
        params = {"networkId": self.network_id, "contract": contract, "method": method, **more}
        return caller.post(
            f"/functions/{name}", params if args is None else {**params, "args": args}
        )


@contextmanager
def running_desk(node: Node, **settings: Any) -> Iterator[Desk]:
    """A network that the service knows, and a signer with ten ether on it."""
    key = secrets.token_hex(32)
    address = LocalSigner(bytes.fromhex(key)).address
    node.give(address, 10 * ETHER)
    Api(MASTER).make("Blockchain", networkId=node.chain_id, rpcEndpoint=node.url, name="Test")
    with with_settings(SIGNER_PRIVATE_KEY={node.chain_id: Hidden(key)}, **settings):
        yield Desk(node, key, address)


@contextmanager
def with_settings(**values: Any) -> Iterator[None]:
    """Other settings of the service for a while."""
    from django.conf import settings

    with override_settings(SERVICE={**settings.SERVICE, **values}):
        yield
