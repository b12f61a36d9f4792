"""``manage.py import_objects``: every row arrives once, and those that can't are reported."""

from __future__ import annotations

import json

import pytest
from django.core.management import CommandError

from backend.kernel.principal import MASTER
from objects import service
from objects.exchange.checkpoint import Checkpoint, identity
from tests.backend.commands.conftest import run
from tests.rest import Api

pytestmark = pytest.mark.django_db


def stored(master: Api, class_name: str, field: str) -> list[object]:
    """The values of a field of all objects, in their order."""
    return [result.get(field) for result in master.results(class_name, order=field, limit=1000)]


@pytest.mark.parametrize("name", ["rows.ndjson", "rows.json"])
def test_rows_become_objects_of_a_new_class(master, write, name):
    path = write(name, [{"n": 1, "tags": ["a"]}, {"n": 2, "tags": []}])
    output = run("import_objects", "Thing", str(path))
    assert output.out == "Thing: 2 objects stored, 0 rows left out\n"
    assert output.err == ""
    assert stored(master, "Thing", "n") == [1, 2]
    again = run("import_objects", "Thing", str(path), "--resume")
    assert again.out.startswith(f"The import of {path} into Thing is finished: 2 objects are")
    assert stored(master, "Thing", "n") == [1, 2]


def test_a_finished_import_keeps_no_other_from_starting(master, write):
    path = write("rows.ndjson", '{"n":1}\n')
    run("import_objects", "Thing", str(path))
    # Of the same file again, into another class, and of a new file with this name.
    for class_name, options in (("Thing", []), ("Thing", ["--restart"]), ("Other", ["--resume"])):
        output = run("import_objects", class_name, str(path), *options)
        assert output.out == f"{class_name}: 1 objects stored, 0 rows left out\n"
    path.write_text('{"n":2}\n')
    output = run("import_objects", "Other", str(path), "--resume")
    assert output.out == "Other: 1 objects stored, 0 rows left out\n"
    assert (stored(master, "Thing", "n"), stored(master, "Other", "n")) == ([1, 1, 1], [1, 2])


def test_a_csv_file_is_read_with_types_that_fit_all_rows(master, write):
    path = write("rows.csv", "name,score,zip,open\nA,1,08001,true\nB,2.5,9000,false\nC,,1,true\n")
    run("import_objects", "Place", str(path))
    results = master.results("Place", order="name", keys="name,score,zip,open")
    assert [(f["name"], f.get("score"), f["zip"], f["open"]) for f in results] == [
        ("A", 1, "08001", True),
        ("B", 2.5, "9000", False),
        ("C", None, "1", True),
    ]


def test_what_the_class_says_of_its_fields_comes_before_what_is_inferred(master, write):
    master.make("Place", zip="8001")
    run("import_objects", "Place", str(write("rows.csv", "zip\n9000\n")))
    assert stored(master, "Place", "zip") == ["8001", "9000"]


def test_options_convert_rename_and_combine(master, write):
    rows = [
        {
            "US Title": 1984,
            "Release Date": "Jun 12 1998",
            "lat": "47.4",
            "lng": "8.5",
            "owner": "abc",
            "junk": 1,
        }
    ]
    run(
        "import_objects",
        "Movie",
        str(write("rows.json", rows)),
        "--camel-case",
        "--types=usTitle=String,owner=Pointer:Person",
        "--date=releaseDate=%b %d %Y",
        "--geopoint=place=lat,lng",
        "--ignore=junk",
    )
    (result,) = master.results("Movie")
    assert result["usTitle"] == "1984"
    assert result["releaseDate"] == {"__type": "Date", "iso": "1998-06-12T00:00:00.000Z"}
    assert result["place"] == {"__type": "GeoPoint", "latitude": 47.4, "longitude": 8.5}
    assert result["owner"] == {"__type": "Pointer", "className": "Person", "objectId": "abc"}
    assert "junk" not in result


def test_bad_rows_are_reported_with_their_lines_and_left_out(master, write):
    path = write("rows.ndjson", '{"n":1}\n{"n":"two"}\nnonsense\n{"n":4,"a-b":1}\n{"n":5}\n')
    output = run("import_objects", "Thing", str(path), "--on-error=skip")
    assert stored(master, "Thing", "n") == [1, 5]
    assert output.out == "Thing: 2 objects stored, 3 rows left out\n"
    lines = {int(line.split(":")[1]): line for line in output.err.splitlines()}
    assert lines.keys() == {2, 3, 4}
    assert "expected Number but got String" in lines[2]
    assert "malformed JSON" in lines[3]
    assert "'a-b' is no name for a field" in lines[4]


@pytest.mark.parametrize("bad", ['{"n":"three"}', "nonsense"])
def test_a_bad_row_stops_the_import_right_before_it(master, write, bad):
    path = write("rows.ndjson", f'{{"n":1}}\n{{"n":2}}\n{bad}\n{{"n":4}}\n')
    with pytest.raises(CommandError, match="2 objects are stored"):
        run("import_objects", "Thing", str(path))
    assert stored(master, "Thing", "n") == [1, 2]


def test_rows_that_are_all_bad_make_no_class(master, write):
    path = write("rows.ndjson", '{"a-b":1}\n{"n":1,"ACL":5}\n')
    output = run("import_objects", "Thing", str(path), "--on-error=skip")
    assert output.out == "Thing: 0 objects stored, 2 rows left out\n"
    assert master.get("/schemas/Thing").status == 400


def test_a_stopped_import_goes_on_behind_what_is_stored(master, write):
    path = write("rows.ndjson", '{"n":1}\n{"n":2}\n{"n":"three"}\n{"n":4}\n')
    with pytest.raises(CommandError):
        run("import_objects", "Thing", str(path))
    with pytest.raises(CommandError, match="--resume goes on"):
        run("import_objects", "Thing", str(path))
    output = run("import_objects", "Thing", str(path), "--resume", "--on-error=skip")
    assert output.out == "Thing: 3 objects stored, 1 rows left out\n"
    assert stored(master, "Thing", "n") == [1, 2, 4]


def test_rows_stored_right_before_a_crash_aren_t_stored_twice(master, write):
    path = write("rows.ndjson", [{"n": number} for number in range(6)])
    # A process that died after its second batch was stored and before it could note that.
    checkpoint = Checkpoint("Thing", identity(path), rows=2, stored=2)
    checkpoint.save(path.with_name("rows.ndjson.import.json"))
    for number in range(4):
        service.create(MASTER, "Thing", {"n": number}, object_id=checkpoint.object_id(number))
    output = run("import_objects", "Thing", str(path), "--resume", "--batch-size=2")
    assert output.out == "Thing: 6 objects stored, 0 rows left out\n"
    assert stored(master, "Thing", "n") == [0, 1, 2, 3, 4, 5]


def test_a_changed_file_isn_t_resumed(write):
    path = write("rows.ndjson", '{"n":1}\nnonsense\n')
    with pytest.raises(CommandError):
        run("import_objects", "Thing", str(path))
    path.write_text('{"n":1}\n{"n":2}\n')
    with pytest.raises(CommandError, match="has changed"):
        run("import_objects", "Thing", str(path), "--resume")
    assert run("import_objects", "Thing", str(path), "--restart").out.startswith("Thing: 2 ")


def test_ids_of_rows_are_the_ids_of_objects_and_taken_ones_are_reported(master, write):
    path = write("rows.csv", "code,name\nZRH,Zurich\nGVA,Geneva\nZRH,Again\n")
    output = run("import_objects", "Airport", str(path), "--id=code", "--on-error=skip")
    assert {result["objectId"]: result["name"] for result in master.results("Airport")} == {
        "ZRH": "Zurich",
        "GVA": "Geneva",
    }
    assert ":4: A duplicate value" in output.err


def test_made_ids_differ_and_can_t_be_guessed_from_the_file(master, write):
    path = write("rows.ndjson", [{"n": number} for number in range(20)])
    run("import_objects", "Thing", str(path))
    run("import_objects", "Thing", str(path))
    assert len({result["objectId"] for result in master.results("Thing")}) == 40


def test_a_check_stores_nothing(master, write):
    path = write("rows.ndjson", '{"n":1}\nnonsense\n{"n":3}\n')
    output = run("import_objects", "Thing", str(path), "--check", "--on-error=skip")
    assert output.out == "Thing: 2 objects would be stored, 1 rows left out\n"
    assert master.get("/classes/Thing").json["results"] == []
    assert list(path.parent.iterdir()) == [path]


def test_an_unusable_file_or_option_is_one_sentence(tmp_path, write):
    path = write("rows.ndjson", '{"n":1}\n')
    for arguments, message in (
        (["Thing", str(tmp_path / "missing.json")], "No such file"),
        (["Thing", str(write("rows.txt", "x"))], "--format"),
        (["a-b", str(path)], "classname"),
        (["Thing", str(path), "--types=n=Integer"], "'Integer' is none of"),
        (["Thing", str(path), "--types=n=Pointer"], "names its class"),
        (["Thing", str(path), "--geopoint=place=lat"], "LATITUDE,LONGITUDE"),
        (["Thing", str(path), "--rename=n"], "COLUMN=FIELD"),
        (["Thing", str(path), "--rest=nowhere"], "expected a URL"),
        (["Thing", str(write("broken.json", "[{}"))], "line 1: expected ',' or ']'"),
    ):
        with pytest.raises(CommandError, match=message):
            run("import_objects", *arguments)


@pytest.fixture
def address(live_server) -> str:
    return f"{live_server.url}/api"


@pytest.mark.django_db(transaction=True)
def test_rows_can_be_stored_over_rest(address, master, write):
    path = write("rows.ndjson", [{"n": number} for number in range(25)])
    output = run("import_objects", "Thing", str(path), f"--rest={address}", "--batch-size=10")
    assert output.out == "Thing: 25 objects stored, 0 rows left out\n"
    assert stored(master, "Thing", "n") == list(range(25))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("on_error", "numbers"), [("skip", [1, 2, 4]), ("stop", [1, 2])])
def test_what_an_instance_refuses_over_rest_is_reported(address, master, write, on_error, numbers):
    master.make("Thing", n=0)
    path = write("rows.ndjson", '{"n":1}\n{"n":2}\n{"n":"three"}\n{"n":4}\n')
    arguments = ["Thing", str(path), f"--rest={address}", f"--on-error={on_error}"]
    if on_error == "stop":
        with pytest.raises(CommandError, match="2 objects are stored"):
            run("import_objects", *arguments)
    else:
        assert ":3: schema mismatch" in run("import_objects", *arguments).err
    assert stored(master, "Thing", "n") == [0, *numbers]


@pytest.mark.django_db(transaction=True)
def test_an_instance_that_isn_t_there_is_reported_and_the_import_can_be_resumed(write):
    path = write("rows.ndjson", [{"n": 1}])
    with pytest.raises(CommandError, match="can't be reached"):
        run("import_objects", "Thing", str(path), "--rest=http://127.0.0.1:9/api")
    state = json.loads(path.with_name("rows.ndjson.import.json").read_text())
    assert state["rows"] == 0
