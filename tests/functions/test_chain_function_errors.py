"""The functions about chains refuse callers by one rule: a wrong parameter is 141, a missing login
142, a missing right 119, in this order."""

from __future__ import annotations

from typing import Any

import pytest

from chain.models import Transaction
from tests.people import sign_up
from tests.rest import APPLICATION, CLIENT, READ_ONLY, Api

pytestmark = pytest.mark.django_db

ADDRESS = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
WRONG_PARAMETER, NO_LOGIN, NO_RIGHT = (400, 141), (400, 142), (403, 119)

# Each function with parameters that are right, and one of them that is not.
CALLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "addDiamondFacet": (
        {"networkId": 5, "diamondAddress": ADDRESS, "facetName": "Badge"},
        {"diamondAddress": "0x12"},
    ),
    "callMethod": ({"networkId": 5, "contract": "Gem", "method": "mint"}, {"method": ""}),
    "viewMethod": ({"networkId": 5, "contract": "Gem", "method": "name"}, {"networkId": "main"}),
    "monitorTransaction": ({"networkId": 5, "hash": "0x" + "ab" * 32}, {"hash": "0x12"}),
}
WITH_RIGHTS = sorted(CALLS.keys() - {"viewMethod"})
FOR_ADMINS = ("addDiamondFacet", "callMethod")


@pytest.fixture(autouse=True)
def network(master: Api) -> None:
    master.make("Blockchain", networkId=5)
    master.make("SmartContract", name="Gem", address=ADDRESS, networkId=5, abi=[])


def error(name: str, caller: Api, **changed: Any) -> tuple[int, int]:
    params, _ = CALLS[name]
    return caller.post(f"/functions/{name}", params | changed).error


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_parameter_comes_before_the_rights_of_the_caller(name: str) -> None:
    params, wrong = CALLS[name]
    for caller in (Api(APPLICATION), Api(CLIENT), Api(READ_ONLY), sign_up("ann")):
        assert error(name, caller, **wrong) == WRONG_PARAMETER
        for missing in params:
            remaining = {key: value for key, value in params.items() if key != missing}
            reply = caller.post(f"/functions/{name}", remaining)
            assert reply.error == WRONG_PARAMETER
            assert missing in reply.json["error"]


@pytest.mark.parametrize("name", CALLS)
def test_a_missing_login_is_142_with_the_text_of_parse(name: str) -> None:
    for headers in (APPLICATION, CLIENT):
        reply = Api(headers).post(f"/functions/{name}", CALLS[name][0])
        assert reply.error == NO_LOGIN
        assert reply.json["error"] == "Validation failed. Please login to continue."
    assert not Transaction.objects.exists()


@pytest.mark.parametrize("name", WITH_RIGHTS)
def test_the_read_only_master_key_lacks_a_right_and_no_login(name: str) -> None:
    assert error(name, Api(READ_ONLY)) == NO_RIGHT
    assert not Transaction.objects.exists()


@pytest.mark.parametrize("name", FOR_ADMINS)
def test_a_user_without_the_role_lacks_a_right(name: str) -> None:
    assert error(name, sign_up("ann")) == NO_RIGHT


def test_a_user_without_a_role_of_the_contract_lacks_a_right(master: Api) -> None:
    address = "0x" + "ab" * 20
    roles = {"viewRoles": ["Readers"], "abi": []}
    master.make("SmartContract", name="Closed", address=address, networkId=5, **roles)
    assert error("viewMethod", sign_up("ann"), contract="Closed") == NO_RIGHT
    assert error("viewMethod", Api(CLIENT), contract="Closed") == NO_LOGIN


@pytest.mark.parametrize("name", ["callMethod", "viewMethod"])
def test_a_contract_that_is_not_registered_is_a_wrong_parameter(name: str, master: Api) -> None:
    assert error(name, sign_up("ann"), contract="Nobody") == WRONG_PARAMETER
    assert error(name, master, contract="Nobody") == WRONG_PARAMETER
