"""Names of fields that look like personal data or secrets, which a class rarely shows everybody.

A name is a hint and no more: what a field holds, only its app knows.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ALONE: Final = frozenset(
    {
        *("email", "mail", "phone", "mobile", "telephone", "fax", "street", "postcode", "zipcode"),
        *("secret", "password", "passwd", "passcode", "credential", "credentials", "otp"),
        *("firstname", "lastname", "fullname", "surname", "forename", "realname"),
        *("birthday", "birthdate", "birthplace", "dob", "ssn", "passport", "iban", "salary"),
    }
)
_PAIRS: Final = frozenset(
    {
        *(("postal", "address"), ("home", "address"), ("mailing", "address"), ("ip", "address")),
        *(("billing", "address"), ("delivery", "address"), ("shipping", "address")),
        *(("post", "code"), ("postal", "code"), ("zip", "code"), ("e", "mail")),
        *(("api", "key"), ("private", "key"), ("access", "key"), ("secret", "key")),
        *(("first", "name"), ("last", "name"), ("full", "name"), ("family", "name")),
        *(("given", "name"), ("maiden", "name"), ("real", "name"), ("legal", "name")),
        *(("date", "birth"), ("birth", "date"), ("tax", "id"), ("tax", "number")),
        *(("credit", "card"), ("card", "number"), ("bank", "account"), ("account", "number")),
    }
)
_JOINED: Final = frozenset("".join(pair) for pair in _PAIRS)
_LINKS: Final = frozenset({"of", "the"})


def looks_personal(name: str) -> bool:
    """Whether a field of this name probably holds an address, a secret or a person's name.

    ``homeAddress``, ``home_address`` and ``HOMEADDRESS`` do; ``walletAddress`` and ``name`` don't.
    """
    words = [_singular(word.lower()) for word in _WORD.findall(name)]
    words = [word for word in words if word not in _LINKS]
    if not words:
        return False
    # The id and the name of a token that a contract issues are public.
    is_token = words[-1] == "token"
    return (
        is_token
        or not _ALONE.isdisjoint(words)
        or "".join(words) in _JOINED
        or any(pair in _PAIRS for pair in pairwise(words))
    )


def _singular(word: str) -> str:
    if word.endswith("sses"):
        return word.removesuffix("es")
    return word if word.endswith("ss") else word.removesuffix("s")
