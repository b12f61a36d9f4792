"""``manage.py doctor`` on signers and on what they have sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backend.settings.areas.chain import Hidden
from chain.models import Sending
from chain.rpc.web3_library import eth_account
from chain.sending.doctor import sent_transactions, signers
from tests.chain.sending.desk import Desk, with_settings

pytestmark = pytest.mark.django_db


def findings() -> list[tuple[str, str]]:
    return [(item.level, item.text) for item in (*signers(), *sent_transactions())]


def test_a_signer_that_can_sign_and_pay_is_fine(desk: Desk) -> None:
    assert findings() == [("ok", f"network 31337: {desk.address}"), ("ok", "0 under way")]
    desk.node.give(desk.address, 0)
    assert ("warn", f"network 31337: {desk.address} has nothing to pay with.") in findings()
    desk.behind("http://127.0.0.1:9")
    assert ("ok", f"network 31337: {desk.address}") in findings()


def test_a_network_without_a_signer_is_no_trouble(desk: Desk) -> None:
    with with_settings(SIGNER_PRIVATE_KEY={}):
        assert findings() == [("ok", "0 under way")]


def test_a_keystore_that_others_can_read_is_reported(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "keystore.json"
    content = eth_account().Account.encrypt(desk.key, "secret", kdf="pbkdf2", iterations=1)
    path.write_text(json.dumps(content))
    path.chmod(0o644)
    settings = {"SIGNER_PRIVATE_KEY": {}, "SIGNER_KEYSTORE": {None: str(path)}}
    with with_settings(**settings, SIGNER_KEYSTORE_PASSWORD={None: Hidden("secret")}):
        assert ("warn", f"{path} can be read by other accounts.") in findings()
        path.chmod(0o600)
        assert ("ok", f"network 31337: {desk.address}") in findings()
    with with_settings(**settings):
        assert findings()[0][0] == "fail"
        assert "wrong password" in findings()[0][1]


def test_a_signing_service_in_clear_is_reported(desk: Desk) -> None:
    with with_settings(
        SIGNER_PRIVATE_KEY={}, SIGNER_URL={5: Hidden("http://u:secret@signer.example")}
    ):
        assert findings()[0][0] == "warn"
        assert "secret" not in findings()[0][1]


def test_what_waits_long_or_is_lost_is_reported(desk: Desk) -> None:
    desk.pay()
    desk.let_pass(4000)
    assert any("1 transactions have been waiting" in message for _, message in findings())
    Sending.objects.update(state="lost")
    assert (
        "fail",
        f"{desk.address} was used elsewhere: actions of the service were not done.",
    ) in (findings())
