"""Signing in with an identity token of an issuer that answers over HTTP."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.core.exceptions import ImproperlyConfigured

from backend.kernel.errors import ObjectNotFound, UnsupportedService
from objects.users import adapters
from objects.users.adapters import http
from tests.objects.sign_in.issuer import KEYS, Issuer, Said, ec_key, public_jwk, rsa_key
from tests.objects.sign_in.openid import refused, verify

DEEP = base64.urlsafe_b64encode(b"[" * 6000).decode()


def part(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def test_a_right_token_proves_its_subject(our_issuer):
    identity = verify(our_issuer.token())
    assert (identity.id, identity.data) == ("alice", {"id": "alice"})


def test_the_id_may_be_sent_with_it(our_issuer):
    assert verify(our_issuer.token(), id="alice").id == "alice"


@pytest.mark.parametrize("claimed", ["bob", "", 7, True, ["alice"], {"alice": 1}])
def test_an_id_that_is_not_the_proven_one_is_refused(our_issuer, claimed):
    assert refused(our_issuer.token(), id=claimed)


def test_a_token_for_another_of_our_apps_counts(our_issuer):
    assert verify(our_issuer.token(aud="our-web")).id == "alice"


@pytest.mark.parametrize(
    "changes",
    [
        {"aud": "their-app"},
        {"aud": ["their-app"]},
        {"aud": None},
        {"aud": []},
        {"aud": {"our-app": 1}},
        {"iss": "https://accounts.example.org"},
        {"iss": None},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": "a" * 256},
        {"sub": "a\x00b"},
        {"exp": None},
        {"iat": None},
        {"exp": "soon"},
        {"exp": [1]},
        {"azp": "their-app"},
        {"aud": ["our-app", "their-app"]},
        {"aud": ["our-app", "their-app"], "azp": "their-app"},
    ],
    ids=str,
)
def test_claims_that_do_not_fit_are_refused(our_issuer, changes):
    assert refused(our_issuer.token(**changes))


@pytest.mark.parametrize(
    "changes", [{"azp": "our-web"}, {"aud": ["our-app", "their-app"], "azp": "our-app"}], ids=str
)
def test_who_requested_the_token_may_be_any_of_our_apps(our_issuer, changes):
    assert verify(our_issuer.token(**changes)).id == "alice"


@pytest.mark.parametrize(
    "offsets", [{"exp": -120, "iat": -900}, {"nbf": 120}, {"iat": 120}, {"exp": -1e300}], ids=str
)
def test_times_that_do_not_fit_are_refused(our_issuer, offsets):
    assert refused(our_issuer.token(**{name: time.time() + o for name, o in offsets.items()}))


def test_clocks_may_differ_a_little(our_issuer):
    now = time.time()
    assert verify(our_issuer.token(exp=now - 30)).id == "alice"
    assert verify(our_issuer.token(nbf=now + 30, iat=now + 30)).id == "alice"


def test_an_unsigned_token_is_refused(our_issuer):
    for algorithm in ("none", "None", "NONE", ""):
        unsigned = f"{part({'alg': algorithm, 'kid': 'first'})}.{part(our_issuer.claims())}."
        assert refused(unsigned)


@pytest.mark.parametrize("form", ["PEM", "DER", "modulus", "jwk"])
def test_the_public_key_is_no_shared_secret(our_issuer, form):
    public = our_issuer.keys["first"].public_key()
    secret = {
        "PEM": public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "DER": public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        "modulus": public_jwk(our_issuer.keys["first"])["n"].encode(),
        "jwk": json.dumps(public_jwk(our_issuer.keys["first"], "first")).encode(),
    }[form]
    signed = f"{part({'alg': 'HS256', 'kid': 'first'})}.{part(our_issuer.claims())}"
    signature = hmac.digest(secret, signed.encode(), "sha256")
    assert refused(f"{signed}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}")


def test_an_algorithm_that_was_not_chosen_is_refused(our_issuer):
    assert refused(our_issuer.token(algorithm="RS512"))
    assert refused(our_issuer.token(algorithm="PS256"))


def test_a_key_is_used_for_its_own_algorithm_only(our_issuer):
    our_issuer.answers[KEYS] = Said(
        body={"keys": [public_jwk(our_issuer.keys["first"], "first", alg="RS512")]}
    )
    assert refused(our_issuer.token())


def test_elliptic_curves_work(our_issuer):
    our_issuer.keys["curve"] = ec_key()
    assert verify(our_issuer.token(key_id="curve", algorithm="ES256")).id == "alice"


def test_a_changed_token_is_refused(our_issuer):
    head, _, signature = our_issuer.token().split(".")
    assert refused(f"{head}.{part(our_issuer.claims(sub='bob'))}.{signature}")


def test_a_key_of_another_issuer_is_refused(our_issuer):
    with Issuer() as other:
        other.keys = {"first": rsa_key(2)}
        assert refused(other.token())
        assert refused(other.token(iss=our_issuer.url))
        assert other.asked == []


def test_a_token_does_not_bring_its_own_key(our_issuer):
    stranger = rsa_key(2)
    with Issuer() as other:
        other.keys = {"first": stranger}
        for header in (
            {"jwk": public_jwk(stranger, "first")},
            {"jku": f"{other.url}{KEYS}"},
            {"x5u": f"{other.url}/chain"},
            {"crit": ["b64"], "b64": False},
        ):
            assert refused(our_issuer.token(key=stranger, header=header))
        assert other.asked == []


def test_an_access_token_is_no_identity(our_issuer):
    assert refused(our_issuer.token(header={"typ": "at+jwt"}))


@pytest.mark.parametrize(
    "token",
    ["", "a", "a.b.c", "..", "é.é.é", "x" * 20_000, f"{DEEP}.{DEEP}.c", 7, True, None, {}, ["a"]],
    ids=repr,
)
def test_what_is_no_token_is_refused(our_issuer, token):
    assert refused(token)
    assert our_issuer.asked == []


@pytest.mark.parametrize("data", [{}, {"id": "alice"}, None, "alice", [], {"access_token": "a"}])
def test_empty_or_partial_data_is_refused(our_issuer, data):
    with pytest.raises(ObjectNotFound):
        adapters.verify("idp", data)


def test_the_nonce_is_compared_if_it_is_sent(our_issuer):
    assert verify(our_issuer.token(nonce="n-1")).id == "alice"
    assert verify(our_issuer.token(nonce="n-1"), nonce="n-1").id == "alice"
    hashed = hashlib.sha256(b"n-1").hexdigest()
    assert verify(our_issuer.token(nonce=hashed), nonce="n-1").id == "alice"
    for nonce in ("n-2", "", 1, ["n-1"]):
        assert refused(our_issuer.token(nonce="n-1"), nonce=nonce)
    assert refused(our_issuer.token(), nonce="n-1")


def test_claims_can_be_required(issuer, sign_in_by):
    options = {"adapter": "oidc", "issuer": issuer.url, "clientIds": ["our-app"]}
    sign_in_by(idp={**options, "requiredClaims": {"hd": "example.org"}})
    assert verify(issuer.token(hd="example.org")).id == "alice"
    assert refused(issuer.token(hd="example.com"))
    assert refused(issuer.token())


# -- What a deployment says ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["google", "mfa", "anonymous", "__proto__", "", "a" * 1000, None])
def test_a_provider_that_is_not_set_up_is_unsupported(our_issuer, name):
    with pytest.raises(UnsupportedService) as caught:
        adapters.verify(name, {"id_token": our_issuer.token()})
    assert (caught.value.code, caught.value.status) == (252, 400)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"issuer": "https://a.example.org"},
        {"clientIds": ["a"]},
        {"issuer": "https://a.example.org", "clientIds": []},
        {"issuer": "https://a.example.org", "clientIds": "a"},
        {"issuer": "http://a.example.org", "clientIds": ["a"]},
        {"issuer": "https://a.example.org", "clientIds": ["a"], "algorithms": ["HS256"]},
        {"issuer": "https://a.example.org", "clientIds": ["a"], "algorithms": ["none"]},
        {"issuer": "https://a.example.org", "clientIds": ["a"], "jwksUri": "file:///keys"},
        {"issuer": "https://a.example.org", "clientIds": ["a"], "requiredClaims": ["hd"]},
    ],
    ids=str,
)
def test_options_that_can_not_work_are_reported(sign_in_by, options):
    sign_in_by(idp={"adapter": "oidc", **options})
    with pytest.raises(ImproperlyConfigured, match="AUTH_ADAPTERS: idp"):
        adapters.providers()


def test_plain_http_needs_debug_or_tests(settings):
    settings.PROCESS = "web"
    assert not http.allowed("http://127.0.0.1:1/")
    settings.DEBUG = True
    assert http.allowed("http://127.0.0.1:1/")
    assert not http.allowed("http://example.org/")
    assert not http.allowed("https://user@example.org/")
    assert http.allowed("https://example.org/")
