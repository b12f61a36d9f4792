"""The wallets of a user, on the user's page. Their keys are shown nowhere."""

from __future__ import annotations

from chain.models import Identity, Wallet
from objects.admin.people.sections import MOST, Section, user_section


@user_section("chain.view_wallet")
def wallets(user_id: str) -> Section:
    rows = Wallet.objects.filter(user_id=user_id)[:MOST]
    return Section(
        "Wallets",
        ("Network", "Address", "Kept by", "There", "Since"),
        [
            (
                *(wallet.network, wallet.address, wallet.custodian, wallet.reference or ""),
                f"{wallet.created_at:%Y-%m-%d %H:%M}",
            )
            for wallet in rows
        ],
    )


@user_section("chain.view_identity")
def identities(user_id: str) -> Section:
    rows = Identity.objects.filter(user=user_id).order_by("created_at")[:MOST]
    return Section(
        "Addresses",
        ("Wallet address", "Since"),
        [
            (identity.wallet_address or "", f"{identity.created_at:%Y-%m-%d %H:%M}")
            for identity in rows
        ],
    )
