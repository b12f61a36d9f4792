"""Signers: keys of the environment, keystores, another service; and what is never shown of them."""

from __future__ import annotations

import json
import pickle
import secrets
from pathlib import Path
from typing import Any

import pytest
from eth_keys.datatypes import PrivateKey

from backend.kernel.errors import ScriptFailed
from backend.settings.areas.chain import Hidden
from backend.settings.environment import BadSetting
from chain.core.transactions.encoding import Unsigned
from chain.core.transactions.fees import Fees
from chain.rpc.web3_library import eth_account
from chain.sending.signers import CannotSign, signer_for
from chain.sending.signers.local import LocalSigner
from chain.sending.signers.remote import RemoteSigner
from tests.chain.sending.desk import Desk, with_settings
from tests.chain.sending.web3signer import SigningService, signing_service
from tests.setting_areas import signers

KEY = "2b" * 32
ADDRESS = LocalSigner(bytes.fromhex(KEY)).address
TRANSACTION = Unsigned(5, 0, "0x" + "12" * 20, 1, "0x", 21_000, Fees(10, 1))
WANTED = LocalSigner(bytes.fromhex(KEY)).sign(TRANSACTION)


# -- Keystores ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keystore(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encrypted key whose password is "secret", with as little work in it as is allowed."""
    path = tmp_path_factory.mktemp("keys") / "keystore.json"
    content = eth_account().Account.encrypt(KEY, "secret", kdf="pbkdf2", iterations=1)
    path.write_text(json.dumps(content))
    return path


def test_a_keystore_signs(keystore: Path) -> None:
    with with_settings(
        SIGNER_KEYSTORE={5: str(keystore)}, SIGNER_KEYSTORE_PASSWORD={None: Hidden("secret")}
    ):
        signer = signer_for(5)
        assert (signer.address, signer.sign(TRANSACTION)) == (ADDRESS, WANTED)
        assert signer_for(5) is signer, "it is decrypted once"


def test_a_keystore_that_cannot_be_used_says_why_and_not_more(
    keystore: Path, tmp_path: Path
) -> None:
    none = tmp_path / "none.json"
    none.write_text("{}")
    text = tmp_path / "text.json"
    text.write_text("my secret notes")
    for path, message in (
        (keystore, "wrong password"),
        (none, "wrong password, or no keystore"),
        (text, "no JSON"),
        (tmp_path / "missing", "No such file"),
        (tmp_path, "Is a directory"),
    ):
        with (
            with_settings(
                SIGNER_KEYSTORE={5: str(path)}, SIGNER_KEYSTORE_PASSWORD={5: Hidden("guess")}
            ),
            pytest.raises(CannotSign, match=message) as raised,
        ):
            signer_for(5)
        assert "guess" not in str(raised.value)
        assert str(tmp_path) not in str(raised.value)


# -- Another service ------------------------------------------------------------------------------


def test_another_service_signs_the_same() -> None:
    with signing_service(KEY) as service:
        signer = RemoteSigner(service.url)
        assert (signer.address, signer.sign(TRANSACTION)) == (ADDRESS, WANTED)
        assert service.signed == [TRANSACTION.payload]


def test_an_older_transaction_is_signed_as_well() -> None:
    legacy = TRANSACTION.with_fees(Fees(10, None))
    with signing_service(KEY) as service:
        raw = RemoteSigner(service.url).sign(legacy)
    assert raw == LocalSigner(bytes.fromhex(KEY)).sign(legacy)


def test_of_several_keys_one_is_named() -> None:
    with signing_service(KEY, secrets.token_hex(32)) as service:
        with pytest.raises(CannotSign, match="has 2 keys: SIGNER_ADDRESS"):
            _ = RemoteSigner(service.url).address
        assert RemoteSigner(service.url, ADDRESS).sign(TRANSACTION) == WANTED
        with pytest.raises(CannotSign, match="has no key of 0x5aAe"):
            RemoteSigner(service.url, "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed").sign(
                TRANSACTION
            )


def broken(service: SigningService, what: str) -> None:
    other = PrivateKey(secrets.token_bytes(32))
    if what == "another key":
        service.keys = dict.fromkeys(service.keys, other)
    elif what == "something else":
        service.also = b"\x00"
    elif what == "an error":
        service.status = 500
    elif what == "gone":
        service.keys = {}
    elif what == "moved":
        service.status = 302
    else:
        service.body = what.encode()


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("another key", "by another key"),
        ("something else", "something else"),
        ("an error", "HTTP 500"),
        ("gone", "doesn't have the key"),
        ("moved", "HTTP 302"),
        ("no", "no signature"),
        ("0x" + "00" * 65, "signature"),
        ("0x" + "ff" * 65, "signature"),
        ("0x" + "12" * 64 + "1b", "signed something else|signature is none"),
    ],
)
def test_what_it_answers_is_checked(what: str, message: str) -> None:
    with signing_service(KEY) as service:
        signer = RemoteSigner(service.url)
        assert signer.address
        broken(service, what)
        with pytest.raises(CannotSign, match=message):
            signer.sign(TRANSACTION)


def test_a_service_that_is_away_is_told_without_its_address() -> None:
    signer = RemoteSigner("http://name:secret@127.0.0.1:9/path", timeout=1)
    with pytest.raises(CannotSign, match="can't be used: the connection was refused") as raised:
        _ = signer.address
    assert "secret" not in str(raised.value)


@pytest.mark.django_db
def test_the_service_sends_by_another_service(desk: Desk) -> None:
    with (
        signing_service(desk.key) as service,
        with_settings(SIGNER_PRIVATE_KEY={}, SIGNER_URL={None: Hidden(service.url)}),
    ):
        sent = desk.pay()
    assert desk.node.mined(sent)["from"] == desk.address.lower()


# -- Which one ------------------------------------------------------------------------------------


def test_a_network_s_own_signer_goes_before_the_one_for_all() -> None:
    other = secrets.token_hex(32)
    with with_settings(SIGNER_PRIVATE_KEY={None: Hidden(other), 5: Hidden(KEY)}):
        assert signer_for(5).address == ADDRESS
        assert signer_for(6).address == LocalSigner(bytes.fromhex(other)).address
    with with_settings(SIGNER_PRIVATE_KEY={6: Hidden(KEY)}), pytest.raises(ScriptFailed):
        signer_for(5)


def test_a_stated_address_has_to_be_the_key_s() -> None:
    both = {"SIGNER_PRIVATE_KEY": {5: Hidden(KEY)}}
    with with_settings(**both, SIGNER_ADDRESS={5: ADDRESS}):
        assert signer_for(5).address == ADDRESS
    with (
        with_settings(**both, SIGNER_ADDRESS={5: "0x" + "12" * 20}),
        pytest.raises(CannotSign, match="SIGNER_ADDRESS"),
    ):
        signer_for(5)


@pytest.mark.parametrize("key", ["00" * 32, "ff" * 32])
def test_a_key_that_is_none_is_refused(key: str) -> None:
    with pytest.raises(CannotSign, match="no key of secp256k1"):
        LocalSigner(bytes.fromhex(key))


def test_no_text_of_a_signer_has_its_key() -> None:
    signer = LocalSigner(bytes.fromhex(KEY))
    number = str(int(KEY, 16))
    for text in (repr(signer), str(signer), f"{signer!r}", repr(Hidden(KEY)), str(Hidden(KEY))):
        assert KEY not in text
        assert number not in text
    assert not hasattr(signer, "__dict__")
    with pytest.raises(TypeError):
        pickle.dumps(signer)


# -- Settings -------------------------------------------------------------------------------------


def read(monkeypatch: pytest.MonkeyPatch, **variables: str) -> dict[str, Any]:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return signers.service_values()


def test_variables_may_have_a_network_s_id(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("secret\n")
    values = read(
        monkeypatch,
        SIGNER_PRIVATE_KEY=f"0x{KEY}",
        SIGNER_KEYSTORE_137="/run/keys/polygon.json",
        SIGNER_KEYSTORE_PASSWORD_137_FILE=str(password),
        SIGNER_URL_10="https://signer.example/",
        SIGNER_ADDRESS_10=ADDRESS,
        MAX_FEE_GWEI="50",
        MAX_FEE_GWEI_137="0.5",
        STUCK_AFTER="60",
    )
    assert values["SIGNER_PRIVATE_KEY"] == {None: Hidden(KEY)}
    assert values["SIGNER_KEYSTORE"] == {137: "/run/keys/polygon.json"}
    assert values["SIGNER_KEYSTORE_PASSWORD"] == {137: Hidden("secret")}
    assert values["SIGNER_URL"] == {10: Hidden("https://signer.example")}
    assert values["SIGNER_ADDRESS"] == {10: ADDRESS}
    assert values["MAX_FEE_GWEI"] == {None: 50 * 10**9, 137: 5 * 10**8}
    assert values["STUCK_AFTER"] == 60
    assert KEY not in repr(values)
    assert "secret" not in repr(values)


@pytest.mark.parametrize(
    "variables",
    [
        {"SIGNER_PRIVATE_KEY": "topsecret"},
        {"SIGNER_PRIVATE_KEY": KEY, "SIGNER_URL": "https://topsecret.example"},
        {"SIGNER_PRIVATE_KEY_5": KEY, "SIGNER_KEYSTORE_5": "/topsecret"},
        {"SIGNER_URL": "ftp://topsecret"},
        {"SIGNER_ADDRESS": "topsecret"},
        {"MAX_FEE_GWEI": "topsecret"},
        {"MAX_FEE_GWEI_5": "0"},
        {"MAX_FEE_GWEI": "NaN"},
        {"MAX_PRIORITY_FEE_GWEI": "-1"},
        {"STUCK_AFTER": "1"},
    ],
)
def test_what_cannot_be_meant_ends_the_process(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    with pytest.raises(BadSetting) as raised:
        read(monkeypatch, **variables)
    assert next(iter(variables)) in str(raised.value)
    assert "topsecret" not in str(raised.value)
    assert KEY not in str(raised.value)
