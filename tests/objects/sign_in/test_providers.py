"""Google, Apple, Microsoft, Facebook and GitHub, played by a server on this machine."""

from __future__ import annotations

import base64
import json
import time
from urllib.parse import parse_qs, urlsplit

import pytest

from backend.kernel.errors import ObjectNotFound, ServiceUnavailable
from objects.users import adapters
from tests.objects.sign_in.issuer import CONFIGURATION, KEYS, Said, public_jwk, rsa_key

TENANT = "11111111-2222-3333-4444-555555555555"
OTHER_TENANT = "99999999-2222-3333-4444-555555555555"
USER = "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"


def refused(provider, **data):
    with pytest.raises(ObjectNotFound) as caught:
        adapters.verify(provider, data)
    assert caught.value.message == f"{provider} auth is invalid for this user."
    return True


def unreachable(provider, **data):
    with pytest.raises(ServiceUnavailable, match=f"{provider} can't be reached"):
        adapters.verify(provider, data)
    return True


# -- Google and Apple ----------------------------------------------------------------------------


def test_google_signs_in(issuer, sign_in_by):
    sign_in_by(google={"clientIds": ["our-app", "our-android"], "issuer": issuer.url})
    for iss in (issuer.url, urlsplit(issuer.url).netloc):
        token = issuer.token(iss=iss, sub="1234567890", azp="our-android")
        identity = adapters.verify("google", {"id": "1234567890", "id_token": token})
        assert (identity.id, identity.data) == ("1234567890", {"id": "1234567890"})
    assert refused("google", id="1234567890", id_token=issuer.token(aud="their-app"))
    assert refused("google", id="1234567890", access_token="ya29.abc")


def test_apple_signs_in_with_its_own_name_for_the_token(issuer, sign_in_by):
    sign_in_by(apple={"clientIds": ["our-app"], "issuer": issuer.url})
    identity = adapters.verify("apple", {"id": "000.a.1", "token": issuer.token(sub="000.a.1")})
    assert identity.id == "000.a.1"
    assert refused("apple", id="000.a.2", token=issuer.token(sub="000.a.1"))


@pytest.mark.parametrize("provider", ["google", "apple", "microsoft"])
def test_other_algorithms_than_the_providers_are_refused(issuer, sign_in_by, provider):
    sign_in_by(**{provider: {"clientIds": ["our-app"], "issuer": issuer.url}})
    assert refused(provider, id_token=issuer.token(algorithm="PS256"))


# -- Microsoft ------------------------------------------------------------------------------------


@pytest.fixture
def microsoft(issuer, sign_in_by):
    """Microsoft's addresses: a configuration for each tenant, and one for all of them."""
    for place, named in ((TENANT, TENANT), ("common", "{tenantid}")):
        issuer.answers[f"/{place}/v2.0{CONFIGURATION}"] = Said(
            body={"issuer": f"{issuer.url}/{named}/v2.0", "jwks_uri": f"{issuer.url}{KEYS}"}
        )

    def set_up(*tenants):
        options = {"clientIds": ["our-app"], "issuer": issuer.url, "tenants": list(tenants)}
        sign_in_by(microsoft=options)

    return set_up


def of_tenant(issuer, tenant=TENANT, **changes):
    return issuer.token(
        **{"iss": f"{issuer.url}/{tenant}/v2.0", "tid": tenant, "oid": USER} | changes
    )


def test_a_user_of_our_tenant_has_the_id_that_graph_knows(issuer, microsoft):
    microsoft(TENANT)
    identity = adapters.verify("microsoft", {"id": USER, "id_token": of_tenant(issuer)})
    assert (identity.id, identity.data) == (USER, {"id": USER})


def test_users_of_any_tenant_are_distinguished(issuer, microsoft):
    microsoft()
    ids = set()
    for tenant in (TENANT, OTHER_TENANT):
        identity = adapters.verify("microsoft", {"id": USER, "id_token": of_tenant(issuer, tenant)})
        ids.add(identity.id)
    assert ids == {f"{TENANT}.{USER}", f"{OTHER_TENANT}.{USER}"}
    assert refused("microsoft", id=f"{OTHER_TENANT}.{USER}", id_token=of_tenant(issuer))


def test_a_user_of_a_tenant_that_is_not_ours_is_refused(issuer, microsoft):
    microsoft(TENANT)
    assert refused("microsoft", id_token=of_tenant(issuer, OTHER_TENANT))
    assert refused("microsoft", id_token=of_tenant(issuer, OTHER_TENANT, tid=TENANT))
    assert refused("microsoft", id_token=of_tenant(issuer, tid=OTHER_TENANT))
    assert refused("microsoft", id_token=of_tenant(issuer, tid=None))
    assert refused("microsoft", id_token=of_tenant(issuer, oid=None))


@pytest.mark.parametrize("tid", ["{tenantid}", "../" + TENANT, "common", "", ["a"], 7])
def test_a_tenant_is_a_uuid(issuer, microsoft, tid):
    microsoft()
    token = of_tenant(issuer, tid=tid, iss=f"{issuer.url}/{tid}/v2.0")
    assert refused("microsoft", id_token=token)


# -- Facebook -------------------------------------------------------------------------------------


@pytest.fixture
def facebook(issuer, sign_in_by):
    """Facebook, which knows the access token ``right`` as alice's at our app."""
    options = {"appId": "1234", "appSecret": "shh", "graphUrl": issuer.url}
    sign_in_by(facebook={**options, "issuer": issuer.url, "jwksUri": f"{issuer.url}{KEYS}"})
    existing = {"right": {"app_id": "1234", "is_valid": True, "user_id": "777", "type": "USER"}}

    def debug_token(request):
        query = parse_qs(urlsplit(request.path).query)
        if query["access_token"] != ["1234|shh"]:
            return Said(400, {"error": {"code": 190}})
        return Said(body={"data": existing.get(query["input_token"][0], {"is_valid": False})})

    issuer.answers["/debug_token"] = debug_token
    return existing


def test_an_access_token_of_our_app_counts(facebook):
    assert adapters.verify("facebook", {"id": "777", "access_token": "right"}).id == "777"
    assert adapters.verify("facebook", {"id": 777, "access_token": "right"}).id == "777"


def test_an_access_token_of_another_user_is_refused(facebook):
    assert refused("facebook", id="778", access_token="right")


@pytest.mark.parametrize(
    "changes",
    [
        {"app_id": "9999"},
        {"app_id": None},
        {"is_valid": False},
        {"is_valid": "true"},
        {"type": "PAGE"},
        {"user_id": None},
        {"user_id": ""},
        {"user_id": ["777"]},
        {"expires_at": 1},
        {"expires_at": "never"},
    ],
    ids=str,
)
def test_what_facebook_says_of_a_token_has_to_fit(facebook, changes):
    facebook["right"].update(changes)
    assert refused("facebook", id="777", access_token="right")


def test_tokens_that_facebook_does_not_know_are_refused(facebook, issuer):
    assert refused("facebook", id="777", access_token="wrong")
    assert refused("facebook", id="777", access_token="right&input_token=x#?")
    assert refused("facebook", id="777")


def test_a_token_that_lasts_is_accepted(facebook):
    for expires in (0, int(time.time()) + 60):
        facebook["right"]["expires_at"] = expires
        assert adapters.verify("facebook", {"access_token": "right"}).id == "777"


def test_facebook_in_trouble_is_named(facebook, issuer):
    for message in (
        Said(500, {}),
        Said(302, {}, {"Location": "http://127.0.0.1:1/"}),
        Said(200, b""),
    ):
        issuer.answers["/debug_token"] = message
        assert unreachable("facebook", access_token="right")


def test_a_limited_login_counts(facebook, issuer):
    for name in ("token", "id_token", "access_token"):
        token = issuer.token(aud="1234", sub="777")
        assert adapters.verify("facebook", {"id": "777", name: token}).id == "777"
    assert refused("facebook", id="777", token=issuer.token(aud="9999", sub="777"))
    assert issuer.times_asked("/debug_token") == 0


def test_access_tokens_need_the_app_secret(issuer, sign_in_by):
    sign_in_by(facebook={"appId": "1234", "graphUrl": issuer.url})
    assert refused("facebook", id="777", access_token="right")
    assert issuer.asked == []


# -- GitHub ---------------------------------------------------------------------------------------


@pytest.fixture
def github(issuer, sign_in_by):
    """GitHub, which knows the token ``gho_right`` of our app."""
    sign_in_by(github={"clientId": "Iv1.abc", "clientSecret": "shh", "apiUrl": issuer.url})
    existing = {
        "gho_right": {"app": {"client_id": "Iv1.abc"}, "user": {"id": 583231, "login": "a"}}
    }

    def check(query):
        basic = base64.b64encode(b"Iv1.abc:shh").decode()
        if query.method != "POST" or query.headers["Authorization"] != f"Basic {basic}":
            return Said(401, {"message": "Bad credentials"})
        response = existing.get(json.loads(query.body)["access_token"])
        return Said(body=response) if response else Said(404, {"message": "Not Found"})

    issuer.answers["/applications/Iv1.abc/token"] = check
    return existing


def test_a_token_of_our_app_counts(github):
    identity = adapters.verify("github", {"id": 583231, "access_token": "gho_right"})
    assert (identity.id, identity.data) == ("583231", {"id": "583231"})
    assert adapters.verify("github", {"id": "583231", "access_token": "gho_right"}) == identity


@pytest.mark.parametrize(
    "data", [{"access_token": "gho_of_another_app"}, {"id": 583231}, {"id": "1"}]
)
def test_a_token_that_github_does_not_know_as_ours_is_refused(github, data):
    assert refused("github", **data)


def test_a_token_of_another_github_user_is_refused(github):
    assert refused("github", id=1, access_token="gho_right")


@pytest.mark.parametrize(
    "changes",
    [
        {"app": {"client_id": "Iv1.other"}},
        {"app": None},
        {"user": None},
        {"user": {}},
        {"user": {"id": "583231"}},
        {"user": {"id": True}},
    ],
    ids=str,
)
def test_what_github_says_of_a_token_has_to_fit(github, changes):
    github["gho_right"].update(changes)
    assert refused("github", access_token="gho_right")


@pytest.mark.parametrize("status", [302, 401, 403, 429, 500])
def test_github_in_trouble_is_named(github, issuer, status):
    issuer.answers["/applications/Iv1.abc/token"] = Said(status, {"message": "no"})
    assert unreachable("github", access_token="gho_right")


def test_no_secret_is_reported(github, issuer, capfd):
    issuer.answers["/applications/Iv1.abc/token"] = Said(500, {})
    for data in ({"access_token": "gho_right"}, {"access_token": "gho_wrong"}):
        with pytest.raises(ServiceUnavailable):
            adapters.verify("github", data)
    text = "".join(capfd.readouterr())
    assert "provider_unreachable" in text
    assert not any(secret in text for secret in ("gho_", "shh", "Basic"))


def test_keys_of_one_provider_are_not_anothers(issuer, sign_in_by):
    """Each adapter keeps keys of its own, also with equal ids."""
    issuer.answers["/others"] = Said(body={"keys": [public_jwk(rsa_key(2), "first")]})
    shared = {"adapter": "oidc", "issuer": issuer.url, "clientIds": ["our-app"]}
    sign_in_by(one=shared, other={**shared, "jwksUri": f"{issuer.url}/others"})
    assert adapters.verify("one", {"id_token": issuer.token()}).id == "alice"
    assert refused("other", id_token=issuer.token())
    assert refused("one", id_token=issuer.token(key=rsa_key(2)))
