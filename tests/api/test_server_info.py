"""``/serverInfo``: what Parse's dashboard asks for before it shows anything."""

from __future__ import annotations

from backend import __version__
from tests.people import sign_up


def test_both_master_keys_learn_features_and_versions(master, reader):
    for api in (master, reader):
        body = api.get("/serverInfo").json
        assert set(body) == {"features", "parseServerVersion", "serviceVersion"}
        assert body["serviceVersion"] == __version__
        # What the dashboard shows its data browser and its config page for.
        shown = body["features"]["schemas"]
        names = ("addField", "removeField", "addClass", "removeClass", "clearAllDataFromClass")
        assert all(shown[name] for name in names)
        assert all(body["features"]["globalConfig"].values())
        assert all(body["features"]["push"].values())


def test_a_feature_is_there_if_its_route_is(master):
    features = master.get("/serverInfo").json["features"]
    for path, there in (
        ("/hooks/functions", features["hooks"]["read"]),
        ("/scriptlog", features["logs"]["level"]),
        ("/push_audiences", features["push"]["pushAudiences"]),
    ):
        assert (master.get(path).status == 200) == there


def test_no_other_caller_does(client, application):
    for api in (client, application, sign_up("ann")):
        assert api.get("/serverInfo").error == (403, 119)
