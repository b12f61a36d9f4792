"""Signing in with an identity token of an issuer that answers over HTTP."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time

import pytest
import time_machine
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.core.exceptions import ImproperlyConfigured

from backend.errors import ObjectNotFound, ServiceUnavailable, UnsupportedService
from objects.users import adapters
from objects.users.adapters import fetching
from tests.sign_in.issuer import CONFIGURATION, KEYS, Issuer, Said, ec_key, public_jwk, rsa_key
from tests.threads import at_once


@pytest.fixture
def our_issuer(issuer, sign_in_by):
    sign_in_by(idp={"adapter": "oidc", "issuer": issuer.url, "clientIds": ["our-app", "our-web"]})
    return issuer


def verify(token, **more):
    return adapters.verify("idp", {"id_token": token, **more})


def refused(token, **more):
    with pytest.raises(ObjectNotFound) as caught:
        verify(token, **more)
    assert caught.value.message == "idp auth is invalid for this user."
    return True


def part(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def test_a_right_token_proves_its_subject(our_issuer):
    identity = verify(our_issuer.token())
    assert (identity.id, identity.data) == ("alice", {"id": "alice"})


def test_the_id_may_be_sent_beside_it(our_issuer):
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
def test_who_asked_for_the_token_may_be_any_of_our_apps(our_issuer, changes):
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
    "token", ["", "a", "a.b.c", "..", "é.é.é", "x" * 20_000, 7, True, None, {}, ["a"]], ids=repr
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


# -- Keys ---------------------------------------------------------------------------------------


def test_keys_are_asked_for_once(our_issuer):
    for _ in range(5):
        verify(our_issuer.token())
    assert (our_issuer.times_asked(CONFIGURATION), our_issuer.times_asked(KEYS)) == (1, 1)


def test_many_first_requests_ask_once(our_issuer):
    token = our_issuer.token()
    assert at_once([lambda: verify(token).id] * 8) == ["alice"] * 8
    assert our_issuer.times_asked(KEYS) == 1


def test_a_new_key_is_found_when_it_is_first_used(our_issuer):
    verify(our_issuer.token())
    old = our_issuer.token()
    our_issuer.keys = {"second": rsa_key(2)}
    with time_machine.travel(time.time() + 20, tick=False):
        assert verify(our_issuer.token(key_id="second")).id == "alice"
        assert refused(old), "the issuer has withdrawn the key"
    assert our_issuer.times_asked(KEYS) == 2


def test_invented_key_ids_do_not_make_the_service_ask(our_issuer):
    verify(our_issuer.token())
    for number in range(20):
        assert refused(our_issuer.token(key=rsa_key(2), key_id=f"invented-{number}"))
    assert our_issuer.times_asked(KEYS) == 1
    with time_machine.travel(time.time() + 20, tick=False):
        for number in range(20):
            assert refused(our_issuer.token(key=rsa_key(2), key_id=f"invented-{number}"))
    assert our_issuer.times_asked(KEYS) == 2


def test_keys_are_read_again_after_an_hour(our_issuer):
    verify(our_issuer.token())
    with time_machine.travel(time.time() + 3601, tick=False):
        verify(our_issuer.token())
    assert our_issuer.times_asked(KEYS) == 2


def test_a_token_without_key_id_is_checked_with_the_only_key(our_issuer):
    assert verify(our_issuer.token(key_id=None)).id == "alice"


def test_a_token_without_key_id_is_refused_among_several_keys(our_issuer):
    our_issuer.answers[KEYS] = Said(
        body={"keys": [public_jwk(rsa_key(1)), public_jwk(rsa_key(2)), public_jwk(ec_key(), "c")]}
    )
    assert refused(our_issuer.token(key_id=None))


@pytest.mark.parametrize(
    "changes",
    [
        {"use": "enc"},
        {"key_ops": ["encrypt"]},
        {"kty": "oct", "k": "c2VjcmV0"},
        {"n": 7},
        {"e": ""},
    ],
    ids=str,
)
def test_a_key_that_is_not_for_signatures_is_not_used(our_issuer, changes):
    our_issuer.answers[KEYS] = Said(
        body={"keys": ["x", None, {**public_jwk(rsa_key(1), "first"), **changes}]}
    )
    assert refused(our_issuer.token())


def test_a_key_that_is_too_short_is_not_used(our_issuer):
    our_issuer.keys = {"first": rsa_key(3, 1024)}
    with pytest.warns(UserWarning, match="key"):
        assert refused(our_issuer.token())


# -- An issuer that doesn't answer as it should ---------------------------------------------------


def unreachable(token):
    with pytest.raises(ServiceUnavailable) as caught:
        verify(token)
    assert caught.value.status == 503
    assert caught.value.message == "idp can't be reached at the moment."
    return True


def test_an_issuer_that_is_down_is_named(our_issuer):
    token = our_issuer.token()
    our_issuer.stop()
    assert unreachable(token)
    assert unreachable(token)


def test_known_keys_count_for_a_day_while_the_issuer_is_down(our_issuer):
    verify(our_issuer.token())
    our_issuer.answers[KEYS] = Said(500, {})
    with time_machine.travel(time.time() + 7200, tick=False):
        assert verify(our_issuer.token()).id == "alice"
    with time_machine.travel(time.time() + 90_000, tick=False):
        assert unreachable(our_issuer.token())


def test_an_issuer_that_is_back_is_asked_again(our_issuer):
    right = our_issuer.answers[KEYS]
    our_issuer.answers[KEYS] = Said(503, {})
    assert unreachable(our_issuer.token())
    assert unreachable(our_issuer.token())
    assert our_issuer.times_asked(KEYS) == 1, "not at once"
    our_issuer.answers[KEYS] = right
    with time_machine.travel(time.time() + 20, tick=False):
        assert verify(our_issuer.token()).id == "alice"


@pytest.mark.parametrize("path", [CONFIGURATION, KEYS])
@pytest.mark.parametrize(
    "said",
    [
        Said(404, {}),
        Said(200, b"not json"),
        Said(200, b"[" * 100_000),
        Said(200, b"\xff\xfe"),
        Said(200, []),
        Said(200, {}),
        Said(200, {"keys": [{}] * 101, "issuer": 7, "jwks_uri": 7}),
    ],
    ids=lambda said: f"{said.status} {str(said.body)[:12]}",
)
def test_an_answer_of_another_form_is_not_used(our_issuer, path, said):
    our_issuer.answers[path] = said
    assert unreachable(our_issuer.token())


def test_a_huge_key_list_is_not_read(our_issuer):
    keys = [public_jwk(rsa_key(1), "first"), {"kty": "x", "padding": "x" * 2 * 1024 * 1024}]
    our_issuer.answers[KEYS] = Said(body={"keys": keys})
    assert unreachable(our_issuer.token())


@pytest.mark.parametrize("path", [CONFIGURATION, KEYS])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(our_issuer, path, status):
    with Issuer() as other:
        other.keys = our_issuer.keys
        our_issuer.answers[path] = Said(status, {}, {"Location": f"{other.url}{path}"})
        assert unreachable(our_issuer.token())
        assert other.asked == []


@pytest.mark.parametrize(
    "uri", ["file:///etc/passwd", "http://example.org/keys", "ftp://127.0.0.1/keys", "//x", "keys"]
)
def test_keys_are_not_read_from_just_anywhere(our_issuer, uri):
    our_issuer.answers[CONFIGURATION] = Said(body={"issuer": our_issuer.url, "jwks_uri": uri})
    assert unreachable(our_issuer.token())


def test_a_configuration_of_another_issuer_is_not_used(our_issuer):
    our_issuer.answers[CONFIGURATION] = Said(
        body={"issuer": "https://accounts.example.org", "jwks_uri": f"{our_issuer.url}{KEYS}"}
    )
    assert unreachable(our_issuer.token())


def test_an_issuer_that_hangs_does_not_hold_every_thread(our_issuer, monkeypatch):
    monkeypatch.setattr(fetching, "_WAIT_FOR_TURN", 0.05)
    entered, done = threading.Barrier(3), threading.Event()

    def hang(_):
        entered.wait(10)
        done.wait(10)
        return Said(404, {})

    our_issuer.answers["/slow"] = hang
    waiting = [
        threading.Thread(target=lambda: fetching.fetch(f"{our_issuer.url}/slow")) for _ in range(2)
    ]
    for thread in waiting:
        thread.start()
    entered.wait(10)
    try:
        assert unreachable(our_issuer.token())
    finally:
        done.set()
        for thread in waiting:
            thread.join()


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
    assert not fetching.allowed("http://127.0.0.1:1/")
    settings.DEBUG = True
    assert fetching.allowed("http://127.0.0.1:1/")
    assert not fetching.allowed("http://example.org/")
    assert not fetching.allowed("https://user@example.org/")
    assert fetching.allowed("https://example.org/")
