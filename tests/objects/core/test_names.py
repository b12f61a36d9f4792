"""What classes, fields and objects may be called."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from backend.kernel.errors import InvalidClassName, InvalidKeyName, MissingObjectId
from objects.core import names

BAD_NAMES = [
    "", "1a", "_a", "a b", "a-b", "a.b", "é", "a\n", "a'", 'a"', "length", "className",
    "a" * 129, "$a", "__proto__", "\x00",
]  # fmt: skip


@pytest.mark.parametrize("name", ["a", "A1", "some_Field", "a" * 128, "objectId"])
def test_letters_digits_and_underscores_make_a_name(name):
    assert names.check_field_name(name, "body") == name
    assert names.check_class_name(name) == name


@pytest.mark.parametrize("name", BAD_NAMES)
def test_other_names_are_refused_for_fields(name):
    with pytest.raises(InvalidKeyName, match="Invalid field name: "):
        names.check_field_name(name, "body")


@pytest.mark.parametrize("name", [*BAD_NAMES, "_Join:users:_Role", "_user", "_SCHEMA"])
def test_other_names_are_refused_for_classes(name):
    with pytest.raises(InvalidClassName, match="Invalid classname: "):
        names.check_class_name(name)


@pytest.mark.parametrize("name", sorted(names.SYSTEM_CLASSES))
def test_system_classes_have_their_names(name):
    assert names.check_class_name(name) == name


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("a", ("a",)),
        ("a.b", ("a", "b")),
        ("a.0.b-c.é", ("a", "0", "b-c", "é")),
    ],
)
def test_a_key_path_is_split_into_its_steps(path, steps):
    assert names.check_key_path(path) == steps


BAD_PATHS = [
    "", ".", "a.", ".a", "a..b", "a.$b", "_a.b", "a.\x00", "a.\ud800", "a b",
    "a" + ".b" * 50,
]  # fmt: skip


@pytest.mark.parametrize("path", BAD_PATHS)
def test_other_key_paths_are_refused(path):
    with pytest.raises(InvalidKeyName, match="Invalid key name: "):
        names.check_key_path(path)


@pytest.mark.parametrize("key", sorted(names.PROHIBITED_KEYS))
def test_prohibited_keys_in_paths_have_an_error_of_their_own(key):
    for path in (f"a.{key}", f"a.{key}.b"):
        with pytest.raises(InvalidKeyName, match=r"Prohibited keyword in request data: \{.key.:"):
            names.check_key_path(path)


def test_new_ids_are_ten_letters_and_digits_and_do_not_repeat():
    made = {names.new_object_id() for _ in range(5000)}
    assert len(made) == 5000
    assert all(re.fullmatch(r"[A-Za-z0-9]{10}", object_id) for object_id in made)
    assert len({letter for object_id in made for letter in object_id}) == 62


def test_a_new_id_is_a_valid_id():
    object_id = names.new_object_id()
    assert names.check_object_id(object_id) == object_id


@pytest.mark.parametrize(
    "object_id",
    ["", "*", "role:Admin", "a:b", "a/b", "a b", "a\n", ".", "é", "x" * 129, None, 5, ["a"]],
)
def test_an_id_never_looks_like_a_role_or_a_path(object_id):
    with pytest.raises(MissingObjectId):
        names.check_object_id(object_id)


def test_a_long_or_unprintable_text_is_shortened_in_messages():
    assert names.shown("a\n\x00b") == "a\ufffd\ufffdb"
    assert names.shown("x" * 500) == "x" * 80 + "…"


@pytest.mark.parametrize("count", [0, 1, 3, 5000])
def test_ids_made_in_bulk_are_like_others(count):
    ids = names.new_object_ids(count)
    assert len(set(ids)) == len(ids) == count
    assert all(re.fullmatch("[A-Za-z0-9]{10}", item) for item in ids)
    if count == 5000:
        # Each of the 62 letters about 806 times.
        shares = Counter("".join(ids)).values()
        assert len(shares) == 62
        assert 600 < min(shares) <= max(shares) < 1000
