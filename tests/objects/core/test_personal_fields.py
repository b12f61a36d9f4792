"""Which names of fields look like personal data or secrets."""

from __future__ import annotations

import pytest

from objects.core.access.personal_fields import looks_personal


@pytest.mark.parametrize(
    "name",
    [
        *("email", "eMail", "userEmail", "emails", "EMAIL", "e_mail", "contact_email_2", "mail"),
        *("phone", "phoneNumber", "mobilePhone", "homeAddress", "home_address", "HOMEADDRESS"),
        *("billingAddresses", "zipCode", "street", "postalCode", "ipAddress"),
        *("token", "apiToken", "accessTokens", "apiKey", "api_key", "APIKey", "secret", "password"),
        *("privateKey", "firstName", "last_name", "surname", "fullName", "realname"),
        *("birthday", "dateOfBirth", "date_of_birth", "ssn", "iban", "passportNumber", "taxId"),
        *("creditCard", "cardNumber", "bankAccount"),
    ],
)
def test_personal_names(name: str) -> None:
    assert looks_personal(name)


@pytest.mark.parametrize(
    "name",
    [
        *("name", "title", "walletAddress", "contractAddress", "address", "key", "score", "card"),
        *(
            "mailbox",
            "emailed",
            "tokenId",
            "tokenURI",
            "streetlight",
            "account",
            "number",
            "first",
            "code",
        ),
        *("objectId", "createdAt", "birth", "a", "x1", "publicKey", "nickname", "username", "date"),
    ],
)
def test_other_names(name: str) -> None:
    assert not looks_personal(name)
