"""Changes of large objects: what of them is read."""

from __future__ import annotations

from objects.changes.images import LARGEST
from tests.objects.changes.recorder import Watch, everything, fields, recorded
from tests.rest import Api

LONG = list(range(1_000_000, 1_000_000 + LARGEST // 10))


def test_an_image_that_is_not_too_large_is_read_whole(watch: Watch, master: Api) -> None:
    reader = watch("Game")
    value = {"list": LONG[: len(LONG) // 4], "n": 1}
    master.make("Game", **value)
    assert recorded(reader) == [(None, value)]


def test_of_larger_images_the_largest_lists_and_objects_are_left_out(
    watch: Watch, master: Api
) -> None:
    large = {f"key{number}": number for number in range(20_000)}
    game = master.make("Game", list=LONG, object=large, text="x" * 300_000, n=1, tags=["a"])
    reader = watch("Game")
    master.put(f"/classes/Game/{game}", {"n": 2, "ACL": {"u1": {"read": True}}})
    master.put(f"/classes/Game/{game}", {"object": {}})
    master.delete(f"/classes/Game/{game}")
    updated, shortened, deleted = everything(reader)
    acl, shown = {"u1": {"read": True}}, {"text": "x" * 300_000, "tags": ["a"]}
    assert updated.left_out == {"list", "object"}
    assert fields(updated.before) == {"n": 1, **shown}
    assert fields(updated.after) == {"n": 2, "ACL": acl, **shown}
    assert shortened.left_out == {"list", "object"}
    assert fields(shortened.before) == {"n": 2, "ACL": acl, **shown}
    assert fields(shortened.after) == {"n": 2, "ACL": acl, "object": {}, **shown}
    assert deleted.left_out == {"list"}
    assert deleted.after is None


def test_changes_of_a_large_object_keep_their_order(watch: Watch, master: Api) -> None:
    reader = watch("Game", "Other")
    game = master.make("Game", list=LONG, n=0)
    for number in (1, 2):
        master.put(f"/classes/Game/{game}", {"n": number})
        master.make("Other", n=number)
    master.put(f"/classes/Game/{game}", {"list": [], "n": 3})
    master.put(f"/classes/Game/{game}", {"n": 4})
    after = [
        (change.table.class_name, (fields(change.after) or {})["n"])
        for change in everything(reader)
    ]
    assert [n for name, n in after if name == "Game"] == [0, 1, 2, 3, 4]
    assert [n for name, n in after if name == "Other"] == [1, 2]
    assert after[:2] == [("Other", 1), ("Other", 2)]
