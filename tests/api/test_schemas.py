"""``/schemas`` and ``/purge``: classes, their fields and permissions."""

from __future__ import annotations

import pytest

from objects.definitions import registry

PUBLIC = {
    **{
        action: {"*": True}
        for action in ("find", "get", "count", "create", "update", "delete", "addField")
    },
    "protectedFields": {"*": []},
}
DEFAULT_FIELDS = {
    "objectId": {"type": "String"},
    "createdAt": {"type": "Date"},
    "updatedAt": {"type": "Date"},
    "ACL": {"type": "ACL"},
}
TEXT, NUMBER = {"type": "String"}, {"type": "Number"}
DELETE = {"__op": "Delete"}


def make(master, class_name="Game", **schema):
    reply = master.post(f"/schemas/{class_name}", {"className": class_name, **schema})
    assert reply.status == 200, reply.json
    return reply.json


def change(master, class_name="Game", **schema):
    return master.put(f"/schemas/{class_name}", schema)


def listed(master):
    """All classes but those of models, which are there from the start."""
    from objects.definitions.registry import model_tables

    schemas = master.get("/schemas").json["results"]
    return [schema for schema in schemas if schema["className"] not in model_tables()]


# -- Who may --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/schemas"),
        ("POST", "/schemas"),
        ("GET", "/schemas/Game"),
        ("POST", "/schemas/Other"),
        ("PUT", "/schemas/Game"),
        ("DELETE", "/schemas/Game"),
        ("DELETE", "/purge/Game"),
    ],
)
def test_only_the_master_key_may_and_the_read_only_one_may_look(
    client, application, reader, master, method, path
):
    make(master)
    for caller in (client, application):
        assert caller.call(method, path, {}).error == (403, 119)
    assert reader.call(method, path).status == (200 if method == "GET" else 400)
    assert [schema["className"] for schema in listed(master)] == ["Game"]


# -- Reading --------------------------------------------------------------------------------------


def test_a_new_class_shows_the_fields_and_permissions_that_every_class_has(master):
    schema = {"className": "Game", "fields": DEFAULT_FIELDS, "classLevelPermissions": PUBLIC}
    assert make(master) == schema
    assert master.get("/schemas/Game").json == schema
    assert listed(master) == [schema]


def test_classes_are_listed_by_name(master):
    for name in ("Zoo", "Game", "Player"):
        make(master, name)
    assert [schema["className"] for schema in listed(master)] == ["Game", "Player", "Zoo"]


def test_a_schema_shows_fields_that_writes_have_made(master):
    master.make(
        "Game",
        score=1,
        owner={"__type": "Pointer", "className": "Player", "objectId": "aaaaaaaaaa"},
    )
    fields = master.get("/schemas/Game").json["fields"]
    assert fields["score"] == {"type": "Number"}
    assert fields["owner"] == {"type": "Pointer", "targetClass": "Player"}


# -- Errors ---------------------------------------------------------------------------------------

CLP = "classLevelPermissions"
ERRORS = [
    # method, path, body, code, error (or None)
    ("GET", "/schemas/Nothing", None, 103, "Class Nothing does not exist."),
    ("PUT", "/schemas/Nothing", {}, 103, "Class Nothing does not exist."),
    (
        "DELETE",
        "/purge/a-b",
        None,
        103,
        "Invalid classname: a-b, classnames can only have alphanumeric characters and _,"
        " and must start with an alpha character ",
    ),
    (
        "DELETE",
        "/schemas/_GlobalConfig",
        None,
        103,
        "Invalid classname: _GlobalConfig, classnames can only have alphanumeric characters and _,"
        " and must start with an alpha character ",
    ),
    ("POST", "/schemas/Game", {}, 103, "Class Game already exists."),
    ("POST", "/schemas", {"className": "Game"}, 103, "Class Game already exists."),
    (
        "POST",
        "/schemas/A",
        {"className": "B"},
        103,
        "Class name mismatch between B and A.",
    ),
    ("PUT", "/schemas/Game", {"className": "B"}, 103, "Class name mismatch between B and Game."),
    ("POST", "/schemas/1a", {}, 103, None),
    ("POST", "/schemas/_Custom", {}, 103, None),
    ("GET", "/schemas/a-b", None, 103, None),
    ("DELETE", "/schemas/a-b", None, 103, None),
    ("POST", "/schemas", {}, 135, None),
    ("POST", "/schemas", {"className": 5}, 107, None),
    ("POST", "/schemas/A", {"fields": []}, 107, None),
    ("POST", "/schemas/A", {"odd": 1}, 107, None),
    ("POST", "/schemas/A", {"fields": {"x": {"type": "Pointer"}}}, 135, None),
    ("POST", "/schemas/A", {"fields": {"x": {"type": "Relation"}}}, 135, None),
    (
        "POST",
        "/schemas/A",
        {"fields": {"x": {"type": "Pointer", "targetClass": "a b"}}},
        103,
        None,
    ),
    ("POST", "/schemas/A", {"fields": {"x": {"type": "Odd"}}}, 111, "invalid field type: Odd"),
    ("POST", "/schemas/A", {"fields": {"x": {}}}, 107, None),
    ("POST", "/schemas/A", {"fields": {"x": {"type": 5}}}, 107, None),
    ("POST", "/schemas/A", {"fields": {"a-b": TEXT}}, 105, None),
    ("POST", "/schemas/A", {"fields": {"__proto__": TEXT}}, 105, None),
    (
        "POST",
        "/schemas/A",
        {"fields": {"x": {"type": "Number", "defaultValue": "a"}}},
        111,
        "schema mismatch for A.x default value; expected Number but got String",
    ),
    (
        "POST",
        "/schemas/A",
        {"fields": {"x": {"type": "GeoPoint"}, "y": {"type": "GeoPoint"}}},
        111,
        "currently, only one GeoPoint field may exist in an object."
        " Adding y when x already exists.",
    ),
    (
        "PUT",
        "/schemas/Game",
        {"fields": {"score": TEXT}},
        255,
        "Field score exists, cannot update.",
    ),
    (
        "PUT",
        "/schemas/Game",
        {"fields": {"nothing": DELETE}},
        255,
        "Field nothing does not exist, cannot delete.",
    ),
    ("PUT", "/schemas/Game", {"fields": {"objectId": DELETE}}, 136, None),
    ("PUT", "/schemas/Game", {"fields": {"ACL": DELETE}}, 136, None),
    ("POST", "/schemas/A", {"fields": {"createdAt": TEXT}}, 136, None),
    ("PUT", "/schemas/Game", {"fields": {"score": {"__op": "Increment"}}}, 107, None),
    (
        "DELETE",
        "/schemas/Game",
        None,
        255,
        "Class Game is not empty, contains 1 objects, cannot drop schema.",
    ),
    ("PUT", "/schemas/Game", {"indexes": {"a": {"nothing": 1}}}, 102, None),
    ("PUT", "/schemas/Game", {"indexes": {"a": DELETE}}, 102, None),
    ("PUT", "/schemas/Game", {"indexes": {"a": {"score": 2}}}, 102, None),
    ("PUT", "/schemas/Game", {"indexes": {"a": {}}}, 102, None),
    ("PUT", "/schemas/Game", {"indexes": {"a-b": {"score": 1}}}, 102, None),
    ("PUT", "/schemas/Game", {"indexes": {"a": {"score": "text"}}}, 102, None),
    ("PUT", "/schemas/Game", {"indexes": {"a": "score"}}, 107, None),
    ("PUT", "/schemas/Game", {CLP: "x"}, 107, None),
    ("PUT", "/schemas/Game", {CLP: {"odd": {"*": True}}}, 107, None),
    ("PUT", "/schemas/Game", {CLP: {"find": {"*": 1}}}, 107, None),
    ("PUT", "/schemas/Game", {CLP: {"find": {"*": False}}}, 107, None),
    ("PUT", "/schemas/Game", {CLP: {"find": {"a b": True}}}, 107, None),
    ("PUT", "/schemas/Game", {CLP: {"find": ["*"]}}, 107, None),
    ("PUT", "/schemas/Game", {CLP: {"find": {"pointerFields": ["score"]}}}, 107, None),
    ("PUT", "/schemas/Game", {CLP: {"readUserFields": "owner"}}, 107, None),
    ("PUT", "/schemas/Game", {CLP: {"writeUserFields": ["nothing"]}}, 107, None),
    ("PUT", "/schemas/Game", {CLP: {"protectedFields": {"*": ["nothing"]}}}, 107, None),
    ("PUT", "/schemas/Game", {CLP: {"protectedFields": {"*": ["objectId"]}}}, 107, None),
    ("PUT", "/schemas/Game", {CLP: {"protectedFields": {"odd key": ["score"]}}}, 107, None),
    ("PUT", "/schemas/Game", {CLP: {"ACL": {"*": {"odd": True}}}}, 107, None),
]


def test_each_mistake_has_its_code_and_changes_nothing(master):
    master.make("Game", score=1)
    before = master.get("/schemas").json
    for method, path, body, code, message in ERRORS:
        reply = master.call(method, path, body)
        assert reply.error == (400, code), (method, path, body, reply.json)
        if message is not None:
            assert reply.json["error"] == message
        assert master.get("/schemas").json == before, (method, path, body)


REFUSED_PERMISSIONS = [
    ({"get": True}, "'true' is not a valid value for class level permissions get - must be an"
     " object"),
    ({"get": None}, "'null' is not a valid value for class level permissions get - must be an"
     " object"),
    ({"readUserFields": False}, "'false' is not a valid value for class level permissions"
     " readUserFields - must be an array"),
    ({"get": {"pointerFields": {}}}, "'[object Object]' is not a valid value for"
     " get[pointerFields] - expected an array."),
    ({"get": {"*": None}}, "'null' is not a valid value for class level permissions acl get:*"),
    ({"get": {"12345_6789": True}}, "'12345_6789' is not a valid key for class level permissions"),
    ({"protectedFields": {"*": {"a": 1}}}, "'[object Object]' is not a valid value for"
     " protectedFields[*] - expected an array."),
    ({"protectedFields": {"*": [None]}}, "Field 'null' in protectedFields:* does not exist"),
]  # fmt: skip


@pytest.mark.parametrize(("permissions", "message"), REFUSED_PERMISSIONS)
def test_refused_permissions_are_shown_as_json_spells_them(master, permissions, message):
    make(master)
    assert change(master, classLevelPermissions=permissions).json == {"code": 107, "error": message}


REFUSED_FIELDS = [
    ({"type": 7}, 107, "invalid JSON"),
    ({"type": None}, 107, "invalid JSON"),
    ({"type": "Pointer", "targetClass": {"a": 1}}, 107, "invalid JSON"),
    ({"type": "Relation", "other": "A"}, 135, "type Relation needs a class name"),
    ({"type": "Pointer"}, 135, "type Pointer needs a class name"),
    ({"type": "Pointer", "targetClass": "a b"}, 103, "Invalid classname: a b, classnames can only"
     " have alphanumeric characters and _, and must start with an alpha character "),
    ({"type": "Unknown"}, 111, "invalid field type: Unknown"),
    ({"type": "String", "defaultValue": True}, 111, "schema mismatch for Game.a default value;"
     " expected String but got Boolean"),
]  # fmt: skip


@pytest.mark.parametrize(("field", "code", "message"), REFUSED_FIELDS)
def test_refused_fields_have_the_errors_of_parse(master, field, code, message):
    make(master)
    assert change(master, fields={"a": field}).json == {"code": code, "error": message}


# -- Fields ---------------------------------------------------------------------------------------


def test_fields_are_declared_and_hold_for_writes(master):
    make(master, fields={"score": NUMBER, "owner": {"type": "Pointer", "targetClass": "Player"}})
    assert master.post("/classes/Game", {"score": "x"}).error == (400, 111)
    wrong = {"__type": "Pointer", "className": "Club", "objectId": "aaaaaaaaaa"}
    reply = master.post("/classes/Game", {"owner": wrong})
    assert reply.json["error"] == (
        "schema mismatch for Game.owner; expected Pointer<Player> but got Pointer<Club>"
    )


def test_a_removed_field_is_removed_from_all_objects(master):
    first = master.make("Game", score=1, name="a")
    master.make("Game", score=2)
    assert change(master, fields={"score": DELETE, "level": NUMBER}).status == 200
    assert all("score" not in obj for obj in master.results("Game"))
    assert master.get(f"/classes/Game/{first}").json["name"] == "a"
    assert master.get("/schemas/Game").json["fields"] == {
        **DEFAULT_FIELDS,
        "name": TEXT,
        "level": NUMBER,
    }
    assert master.make("Game", score="of another type now")


def test_options_of_a_field_may_change(master):
    make(master, fields={"name": TEXT})
    assert change(master, fields={"name": {**TEXT, "required": True}}).status == 200
    assert master.post("/classes/Game", {}).error == (400, 142)


def test_fields_of_system_classes_are_there_by_themselves(master):
    fields = make(master, "_Role")["fields"]
    assert fields["users"] == {"type": "Relation", "targetClass": "_User"}
    reply = master.put("/schemas/_Role", {"fields": {"name": DELETE}})
    assert reply.error == (400, 136)


# -- Classes --------------------------------------------------------------------------------------


def test_an_empty_class_is_deleted(master):
    make(master, fields={"score": NUMBER})
    assert master.delete("/schemas/Game").json == {}
    assert master.get("/schemas/Game").error == (400, 103)
    assert master.delete("/schemas/Game").json == {}


def test_a_class_deleted_and_made_again_begins_empty(master):
    master.make("Game", score=1)
    assert master.delete("/purge/Game").json == {}
    assert master.delete("/schemas/Game").json == {}
    master.make("Game", score="text")
    assert [obj["score"] for obj in master.results("Game")] == ["text"]


def test_purging_a_class_that_is_not_there_removes_nothing(master):
    assert master.delete("/purge/Nothing").json == {}
    assert listed(master) == []


def test_a_purge_removes_all_objects_and_keeps_the_schema(master, client):
    player = {"__type": "Pointer", "className": "Player", "objectId": master.make("Player")}
    for _ in range(3):
        game = master.make("Game", players={"__op": "AddRelation", "objects": [player]})
    assert master.delete("/purge/Game").json == {}
    assert master.get("/classes/Game", count=1).json == {"results": [], "count": 0}
    assert "players" in master.get("/schemas/Game").json["fields"]
    owner = {"__type": "Pointer", "className": "Game", "objectId": game}
    where = {"$relatedTo": {"object": owner, "key": "players"}}
    assert client.results("Player", where=where) == []


# -- Permissions ----------------------------------------------------------------------------------


def test_permissions_are_shown_as_they_were_set_and_replaced_as_a_whole(master):
    make(master, fields={"owner": {"type": "Pointer", "targetClass": "_User"}, "secret": TEXT})
    expected = {
        "find": {"requiresAuthentication": True},
        "get": {"*": True},
        "create": {"role:Admins": True},
        "update": {"pointerFields": ["owner"]},
        "readUserFields": ["owner"],
        "protectedFields": {"*": ["secret"], "userField:owner": []},
    }
    assert change(master, classLevelPermissions=expected).status == 200
    shown = master.get("/schemas/Game").json["classLevelPermissions"]
    assert {name: shown[name] for name in expected} == expected
    assert shown["delete"] == shown["count"] == {}
    change(master, classLevelPermissions={"find": {"*": True}})
    shown = master.get("/schemas/Game").json["classLevelPermissions"]
    assert shown["get"] == {}
    assert "readUserFields" not in shown


def test_permissions_hold_from_the_next_request_on(master, client):
    object_id = master.make("Game", score=1)
    assert client.get(f"/classes/Game/{object_id}").status == 200
    change(master, classLevelPermissions={"find": {"*": True}})
    assert client.get(f"/classes/Game/{object_id}").error == (400, 119)
    assert len(client.results("Game")) == 1
    change(master, classLevelPermissions={"get": {"*": True}})
    assert client.get(f"/classes/Game/{object_id}").status == 200
    assert client.get("/classes/Game").error == (400, 119)


def test_new_objects_get_the_access_list_of_the_class(master, client):
    acl = {"*": {"read": True}}
    make(master, classLevelPermissions={**PUBLIC, "ACL": acl})
    object_id = client.make("Game", score=1)
    assert client.get(f"/classes/Game/{object_id}").json["ACL"] == acl
    assert client.put(f"/classes/Game/{object_id}", {"score": 2}).error == (404, 101)
    own = client.make("Game", ACL={"*": {"read": True, "write": True}})
    assert client.put(f"/classes/Game/{own}", {"score": 2}).status == 200


def test_a_class_that_does_not_exist_is_empty_already(master, reader):
    assert (master.delete("/purge/Nothing").status, master.delete("/purge/Nothing").json) == (
        200,
        {},
    )
    assert master.get("/schemas/Nothing").status == 400
    assert master.delete("/purge/a-b").error == (400, 103)
    refused = reader.delete("/purge/Nothing")
    assert refused.json["error"] == "read-only masterKey isn't allowed to purge a schema."


def test_the_read_only_key_is_refused_before_the_request_is_read(reader):
    reply = reader.post("/schemas", {})
    assert reply.json == {
        "code": 119,
        "error": "read-only masterKey isn't allowed to create a schema.",
    }


@pytest.mark.parametrize("default", ["open", "authenticated", "closed"])
def test_permissions_that_are_null_become_those_of_a_new_class(master, client, settings, default):
    settings.SERVICE = {**settings.SERVICE, "CLASS_PERMISSIONS_DEFAULT": default}
    new = make(master)["classLevelPermissions"]
    permissions = {"find": {"role:Admins": True}, "ACL": {"currentUser": {"read": True}}}
    assert change(master, classLevelPermissions=permissions).status == 200
    unnamed = change(master, fields={"score": NUMBER}).json["classLevelPermissions"]
    assert unnamed["find"] == {"role:Admins": True}
    assert change(master, classLevelPermissions=None).json["classLevelPermissions"] == new
    assert (client.get("/classes/Game").status == 200) == (default == "open")


def test_the_access_list_that_parse_server_shows_for_every_class_is_none(master):
    public = {"*": {"read": True, "write": True}}
    make(master, classLevelPermissions={"find": {"*": True}, "ACL": public})
    game = master.make("Game")
    assert "ACL" not in master.get(f"/classes/Game/{game}").json


def test_ids_that_clients_choose_may_be_named_where_they_choose_them(master, settings):
    make(master)
    permissions = {"find": {"user_1": True}}
    assert change(master, classLevelPermissions=permissions).error == (400, 107)
    settings.SERVICE = {**settings.SERVICE, "ALLOW_CUSTOM_OBJECT_ID": True}
    assert change(master, classLevelPermissions=permissions).status == 200
    settings.SERVICE = {**settings.SERVICE, "ALLOW_CUSTOM_OBJECT_ID": False}
    registry.forget_all()
    shown = master.get("/schemas/Game").json["classLevelPermissions"]
    assert shown["find"] == {"user_1": True}


def test_after_the_last_index_is_deleted_the_one_of_every_class_is_shown(master):
    make(master, fields={"score": NUMBER}, indexes={"by_score": {"score": 1}})
    reply = change(master, indexes={"by_score": DELETE})
    assert reply.json["indexes"] == {"_id_": {"_id": 1}}
    assert change(master, indexes=reply.json["indexes"]).status == 200
