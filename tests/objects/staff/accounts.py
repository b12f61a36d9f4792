"""Staff users with a second factor, and logins to the admin as a browser sends them."""

from __future__ import annotations

import html
import re
import time
from dataclasses import dataclass, field
from typing import Any

import pyotp
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client

from objects.staff import second_factor

PASSWORD = "the right password"
LOG_IN = "/admin/login/"
STEP = "/admin/second-factor/"
SET_UP = "/admin/second-factor/set-up/"
START = "/admin/"


@dataclass
class Person:
    """A staff user with an authenticator app, and a browser."""

    user: User
    secret: str = ""
    codes: list[str] = field(default_factory=list)
    client: Client = field(default_factory=lambda: Client(headers={"host": "localhost"}))

    def code(self, steps: int = 1) -> str:
        """The app's next code, which counts already; the present one has set the app up."""
        return pyotp.TOTP(self.secret).at(int(time.time()) + 30 * steps)

    def log_in(self, *, next: str = "", password: str = PASSWORD) -> Any:
        query = f"?next={next}" if next else ""
        form = {"username": self.user.get_username(), "password": password}
        return self.client.post(f"{LOG_IN}{query}", form)

    def enter(self, code: str, next: str = "", **options: Any) -> Any:
        return self.client.post(STEP, {"code": code, "next": next}, **options)

    @property
    def is_in(self) -> bool:
        return self.client.get(START).status_code == 200


def person(name: str = "root", *, with_app: bool = True) -> Person:
    """A superuser, by default with an app."""
    person = Person(User.objects.create_superuser(name, password=PASSWORD))
    if with_app:
        person.secret = pyotp.random_base32()
        person.codes = second_factor.set_up_app(
            person.user, person.secret, person.code(0), seen=None
        )
    return person


def secret_of(page: HttpResponse) -> tuple[str, str]:
    """The secret that the set-up page shows, and what its form sends of it."""
    shown = re.search(r'<code class="sv-code">([A-Z2-7 ]+)</code>', page.text)
    signed = re.search(r'name="signed" value="([^"]+)"', page.text)
    assert shown is not None
    assert signed is not None
    return shown[1].replace(" ", ""), html.unescape(signed[1])


def shown_codes(page: HttpResponse) -> list[str]:
    """The recovery codes on a page."""
    return re.findall(r"\b[A-Za-z0-9]{30}\b", page.text.partition("<pre")[2].partition("</pre>")[0])


def set_up_app(person: Person) -> Any:
    """Set an app up by the page; the response shows the recovery codes."""
    person.secret, signed = secret_of(person.client.get(SET_UP))
    form = {"action": "app", "signed": signed, "code": person.code(0)}
    return person.client.post(SET_UP, form)
