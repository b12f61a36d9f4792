"""Files in the admin."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.objects.files.uploads import stored

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("admin"))
    return client


def test_the_list_shows_files_and_no_way_to_change_them(staff):
    name = stored("a b.png")
    page = staff.get("/admin/objects/storedfile/")
    assert name in page.text
    assert "image/png" in page.text
    assert staff.get("/admin/objects/storedfile/add/").status_code == 403
    page = staff.get(
        f"/admin/objects/storedfile/{name.replace('_', '_5F').replace(' ', '%20')}/change/"
    )
    assert page.status_code == 200
    assert 'name="_save"' not in page.text


def test_files_are_found_by_the_beginning_of_their_name(staff):
    item, other = stored("a.png"), stored("b.png")
    page = staff.get("/admin/objects/storedfile/", {"q": item[:12]})
    assert item in page.text
    assert other not in page.text
