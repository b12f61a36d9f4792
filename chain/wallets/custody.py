"""Make, list and use the wallets of users with any custodian."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from cryptography.fernet import InvalidToken
from django.db import IntegrityError, transaction

from backend.kernel.encryption import cipher
from backend.kernel.json_types import Json
from backend.kernel.principal import MASTER
from backend.logs.setup import get_logger
from backend.settings.conf import service_settings
from chain.core.names import address_of
from chain.models import Blockchain, Identity
from chain.models.signing import Wallet
from chain.wallets.adapters import Custodian, CustodyFailed, Made, Owner, Proof
from chain.wallets.http import Delegated, Http
from chain.wallets.local import Local
from chain.wallets.mock import Mock
from objects import service
from objects.core.names import check_class_name
from objects.core.values import pointer
from objects.database import maintenance

_CUSTODIANS: Final[dict[str, type[Custodian]]] = {"local": Local, "http": Http, "mock": Mock}
_INVITATION: Final = "wallet invitation"
WITHOUT_CHAIN: Final = "local"
"""The network of wallets where no network is known."""

log = get_logger("wallets")


def custodian() -> Custodian | None:
    """Who keeps keys by the setting; None where users have no wallets."""
    if service_settings.WALLET_CUSTODIAN == "http" and service_settings.WALLET_API_DELEGATED:
        return Delegated()
    kind = _CUSTODIANS.get(service_settings.WALLET_CUSTODIAN)
    return None if kind is None else kind()


def invite(owner: Owner) -> tuple[bytes, str] | None:
    """The challenge that a user to be has to sign for the custodian, and what ``create_wallets``
    wants back as ``invitation``, encrypted; None if the custodian doesn't ask for anything.

    Raises ``CustodyFailed``.
    """
    keeper = custodian()
    invitation = None if keeper is None else keeper.invite(owner)
    if invitation is None:
        return None
    return invitation.challenge, cipher(_INVITATION).encrypt(invitation.token.encode()).decode()


def networks() -> tuple[str, ...]:
    """The networks that users have wallets on: those of the setting, else the active networks by
    their ids, else one that stands for none."""
    if service_settings.WALLET_NETWORKS:
        return tuple(service_settings.WALLET_NETWORKS)
    blockchains = Blockchain.objects.filter(active=True, network_id__isnull=False)
    ids = blockchains.order_by("network_id").values_list("network_id", flat=True)
    return tuple(str(network_id) for network_id in ids) or (WITHOUT_CHAIN,)


def create_wallets(
    owner: Owner, credential: Mapping[str, Any] | None = None, invitation: str | None = None
) -> list[Wallet]:
    """Make the wallets that the user lacks; all that the user has then.

    Call it last in the transaction that makes the user: what a custodian elsewhere has made can't
    be unmade, so nothing else should fail after it. Its log line names what is left over if
    something does. Each address gets its ``Identity``. ``credential`` is a new user's passkey, and
    ``invitation`` what ``invite`` gave for it. Raises ``CustodyFailed`` and ``UnderMaintenance``;
    nothing is stored then.
    """
    keeper = custodian()
    if keeper is None:
        return wallets_of(owner.user_id)
    made: list[Made] = []
    try:
        with maintenance.writing():
            has = Wallet.objects.filter(user_id=owner.user_id, custodian=keeper.name)
            existing = set(has.values_list("network", flat=True))
            missing = [network for network in networks() if network not in existing]
            proof = _proof(credential, invitation)
            for made_wallet in keeper.create(owner, missing, proof) if missing else ():
                made.append(made_wallet)
                _store(owner, keeper.name, made_wallet)
    except BaseException:
        leave_behind(made)
        raise
    return wallets_of(owner.user_id)


def _proof(credential: Mapping[str, Any] | None, invitation: str | None) -> Proof | None:
    if credential is None or invitation is None:
        return None
    try:
        return Proof(cipher(_INVITATION).decrypt(invitation).decode(), credential)
    except InvalidToken:
        raise CustodyFailed("the invitation can't be read: SECRET_KEY is another one") from None


def leave_behind(made: Sequence[Made]) -> None:
    """Write down which wallets a custodian elsewhere has made for a user who isn't there."""
    left = [wallet.wallet_id for wallet in made if wallet.reference is not None]
    if left:
        log.error("wallets were left at the custodian", wallets=left)


def _store(owner: Owner, keeper: str, wallet: Made) -> None:
    try:
        with transaction.atomic():
            Wallet.objects.create(
                wallet_id=wallet.wallet_id,
                user_id=owner.user_id,
                network=wallet.network,
                address=wallet.address,
                custodian=keeper,
                reference=wallet.reference,
                key=wallet.key,
            )
    except IntegrityError:
        raise CustodyFailed("the wallet is there already") from None
    _identify(owner.user_id, wallet.address)


def _identify(user_id: str, address: str) -> None:
    """Let the address be known as this user's. Custodians may give one for several networks."""
    try:
        address = address_of(address)
    except ValueError:
        return  # of a network that isn't Ethereum's kind
    owners = Identity.objects.filter(wallet_address=address).values_list("user", flat=True)
    for owner in owners:
        if owner != user_id:
            raise CustodyFailed("the address is known as somebody else's")
        return
    body: dict[str, Json] = {"walletAddress": address, "user": pointer("_User", user_id)}
    service.create(MASTER, check_class_name("Identity"), body)


def wallets_of(user_id: str) -> list[Wallet]:
    """The wallets of a user, in the order of their making."""
    return list(Wallet.objects.filter(user_id=user_id).order_by("created_at", "id"))


def shown(wallets: Sequence[Wallet]) -> list[dict[str, Json]]:
    """Wallets as their owner sees them."""
    return [
        {"id": wallet.wallet_id, "network": wallet.network, "address": wallet.address}
        for wallet in wallets
    ]


def sign(user_id: str, network: str, digest: bytes) -> bytes:
    """The signature of a hash by a user's wallet: 65 bytes, r, s and v (0 or 1).

    For code of the deployment, which has to know that the user wants it. Raises ``CustodyFailed``
    if there is no such wallet, or its custodian doesn't sign.
    """
    keeper = custodian()
    if keeper is None:
        raise CustodyFailed("users have no wallets here")
    if len(digest) != 32:
        raise CustodyFailed("what is signed is a hash of 32 bytes")
    mine = Wallet.objects.filter(user_id=user_id, custodian=keeper.name)
    wallet = mine.filter(network=network).first()
    if wallet is None:
        raise CustodyFailed("the user has no such wallet")
    return keeper.sign(wallet, digest)
