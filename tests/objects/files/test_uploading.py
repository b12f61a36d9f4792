"""Uploads: raw, in JSON, as a form."""

from __future__ import annotations

import base64
import json
import re
from urllib.parse import unquote

import pytest

from backend.settings.conf import service_settings
from objects.files.models import StoredFile
from objects.files.names import storage_key
from tests.objects.files.uploads import PNG, file_path, send, stored, stored_names, upload
from tests.rest import APPLICATION, CLIENT, MASTER

pytestmark = pytest.mark.django_db

CREDENTIALS = {"_ApplicationId": "test-app", "_MasterKey": "test-master-key"}


def form(*parts: tuple[str, bytes]) -> bytes:
    """A multipart body of headers and contents."""
    return (
        b"".join(
            b"--edge\r\nContent-Disposition: form-data; %b\r\n\r\n%b\r\n" % (head.encode(), content)
            for head, content in parts
        )
        + b"--edge--\r\n"
    )


def test_a_raw_body_is_the_file():
    answer = upload("pic.png", PNG, "image/png")
    assert answer.status == 201
    name = answer.json["name"]
    assert re.fullmatch(r"[0-9a-f]{32}_pic\.png", name)
    url = f"{service_settings.PUBLIC_URL}/api/files/test-app/{name}"
    assert answer.json == {"url": url, "name": name}
    assert answer.headers["location"] == url
    got = send("GET", file_path(name))
    assert (got.status, got.body) == (200, PNG)
    assert got.headers["content-type"] == "image/png"


def test_json_with_a_header_for_the_application_is_a_file_like_any_other():
    body = json.dumps({"base64": "QUJD", "_ContentType": "text/plain"}).encode()
    name = stored("a.json", body, "application/json")
    assert send("GET", file_path(name)).body == body


@pytest.mark.parametrize("content_type", ["text/plain", "application/json", ""])
def test_the_json_form_of_the_sdks_holds_file_type_and_notes(content_type):
    message = {
        **CREDENTIALS,
        "base64": base64.b64encode(PNG).decode(),
        "_ContentType": "image/png",
        "fileData": {"metadata": {"by": "me"}, "tags": {"kind": "logo"}},
    }
    answer = send("POST", "/files/logo", json.dumps(message).encode(), content_type=content_type)
    assert answer.status == 201, answer.body
    row = StoredFile.objects.get(name=answer.json["name"])
    assert (row.metadata, row.tags, row.size) == ({"by": "me"}, {"kind": "logo"}, len(PNG))
    got = send("GET", file_path(row.name))
    assert (got.body, got.headers["content-type"]) == (PNG, "image/png")


@pytest.mark.parametrize(
    "written",
    [
        lambda text: text,
        lambda text: text.replace("/", "\\/"),
        lambda text: text.replace("+", "\\u002b").replace("=", "\\u003D"),
        lambda text: "\\r\\n".join(text[i : i + 76] for i in range(0, len(text), 76)),
        lambda text: text.rstrip("="),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 3, 65536, 65537, 200_000])
def test_base64_may_be_written_as_json_libraries_do(written, size):
    content = bytes(n * n * 7 % 251 for n in range(size))
    text = written(base64.b64encode(content).decode())
    body = f'{{"base64":"{text}",{json.dumps(CREDENTIALS)[1:]}'.encode()
    answer = send("POST", "/files/a.bin", body, content_type="text/plain")
    assert answer.status == 201, answer.body
    assert send("GET", file_path(answer.json["name"])).body == content


@pytest.mark.parametrize(
    "value", ['"A"', '"AA=A"', '"AA==AAAA"', '"!!!!"', '"é"', "5", "null", '""']
)
def test_what_isnt_base64_is_refused(value):
    body = f'{{"base64":{value},{json.dumps(CREDENTIALS)[1:]}'.encode()
    answer = send("POST", "/files/a.bin", body)
    assert answer.status == 400
    assert answer.json["code"] in (107, 130)
    assert not stored_names()


@pytest.mark.parametrize("body", [b"", b"not json", b"\xff\xfe", b"[1]", b"{", b'{"a":' * 5000])
def test_without_an_application_anywhere_it_is_403(body):
    assert send("POST", "/files/a.txt", body).error == (403, 260)


def test_credentials_in_json_are_checked_as_everywhere():
    wrong = json.dumps({**CREDENTIALS, "_MasterKey": "no", "base64": "QQ=="}).encode()
    assert send("POST", "/files/a.txt", wrong).error == (403, 261)
    typed = json.dumps({**CREDENTIALS, "_ApplicationId": 5, "base64": "QQ=="}).encode()
    assert send("POST", "/files/a.txt", typed).error == (400, 107)


def test_a_form_holds_the_file_and_its_notes():
    body = form(
        ('name="fileData"', b'{"metadata": {"a": 1}}'),
        ('name="file"; filename="other.png"\r\nContent-Type: image/png', PNG),
    )
    name = stored("pic", body, "multipart/form-data; boundary=edge")
    assert name.endswith("_pic.png")
    got = send("GET", file_path(name))
    assert (got.body, got.headers["content-type"]) == (PNG, "image/png")
    assert StoredFile.objects.get(name=name).metadata == {"a": 1}


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (form(), "multipart/form-data; boundary=edge"),
        (form(('name="a"', b"x")), "multipart/form-data; boundary=edge"),
        (form(('name="a"; filename="a"', b"x"), ('name="b"; filename="b"', b"y")),
         "multipart/form-data; boundary=edge"),
        (b"--edge\r\nno end", "multipart/form-data; boundary=edge"),
        (PNG, "multipart/form-data"),
        (form(('name="a"; filename="a"', b"x"), ('name="t"', b"x" * 3_000_000)),
         "multipart/form-data; boundary=edge"),
    ],
)  # fmt: skip
def test_a_form_without_exactly_one_file_is_refused(body, content_type):
    assert upload("a.txt", body, content_type).error == (400, 130)
    assert not stored_names()


def test_notes_of_a_raw_upload_come_in_headers():
    headers = {
        **MASTER,
        "X-Svc-File-Metadata": '{"a": "é"}'.encode().decode("latin-1"),
        "X-Parse-File-Tags": '{"b": "c"}',
    }
    row = StoredFile.objects.get(name=stored("a.txt", b"text", headers=headers))
    assert (row.metadata, row.tags) == ({"a": "é"}, {"b": "c"})


@pytest.mark.parametrize(
    ("notes", "code"),
    [
        (5, 107),
        ({"metadata": "x"}, 107),
        ({"tags": {"a": "x" * 20_000}}, 107),
        ({"metadata": {"__proto__": {}}}, 105),
        ({"metadata": {"a.b": 1}}, 121),
        ({"metadata": {"a": "\x00"}}, 111),
        ({"acl": 5}, 123),
        ({"acl": {"role:": {"read": True}}}, 123),
    ],
)
def test_odd_notes_are_refused_and_nothing_is_kept(notes, code):
    body = json.dumps({**CREDENTIALS, "base64": "QQ==", "fileData": notes}).encode()
    assert send("POST", "/files/a.txt", body).error == (400, code)
    assert not stored_names()


@pytest.mark.parametrize(
    "name",
    [
        "..",
        "%2e%2e",
        ".a",
        "-a",
        "a\\b",
        "a\u200bb.png",
        "a\u202egnp.exe",
        "\u3164",
        "\u0301a",
        "a\uff0fb",
        'a"b',
        "a<b",
        "a;b",
        "a:b",
        "a%",
        "a" * 129,
        " a",
        "*",
    ],
)
def test_a_name_that_isnt_one_is_refused(name):
    answer = upload(name)
    assert answer.error == (400, 122)
    assert not stored_names()


NAMES = [
    "été.png",
    "e\u0301te\u0301.png",
    "日本.png",
    "a(1).txt",
    "a+b.txt",
    "don't, [1] & 2.txt",
    "я" * 128,
]


def name_of_download(disposition: str) -> str:
    """The name that browsers save a download under (RFC 6266: ``filename*`` is preferred)."""
    assert disposition.isascii()
    extended = re.search(r"filename\*=UTF-8''(\S+)$", disposition)
    if extended:
        return unquote(extended[1])
    plain = re.search(r'filename="([^"]*)"$', disposition)
    assert plain
    return plain[1]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_in_any_script_is_that_of_its_download(name):
    answer = upload(name, PNG if name.endswith("png") else b"text")
    assert answer.status == 201, answer.json
    stored_name = answer.json["name"]
    assert stored_name[33:].startswith(name)
    assert answer.json["url"].isascii()
    headers = send("GET", file_path(stored_name)).headers
    assert name_of_download(headers["content-disposition"]) == stored_name[33:]
    assert send("DELETE", f"/files/{stored_name}", headers=MASTER).status == 200
    assert not stored_names()


def test_storage_gets_names_in_ascii_that_fit_a_file_system(tmp_path):
    for name in NAMES:
        stored_name = upload(name, PNG).json["name"]
        place = tmp_path / "files" / storage_key(stored_name)
        assert place.exists(), stored_name
        assert str(place.relative_to(tmp_path)).isascii()
        assert len(place.name) <= 200


def test_names_that_differ_beyond_ascii_alone_have_places_of_their_own():
    mark = "0" * 32
    names = [f"{mark}_{name}" for name in ("é.png", "è.png", "_.png", "(.png", "+.png")]
    assert len({storage_key(name) for name in names}) == len(names)


@pytest.mark.parametrize("name", ["a\nb", "a\x00b"])
def test_a_name_with_control_characters_is_refused_with_its_path(name):
    assert upload(name).error == (400, 105)
    assert not stored_names()


@pytest.mark.parametrize("path", ["/files", "/files/"])
def test_a_name_is_needed(path):
    answer = send("POST", path, PNG, MASTER)
    assert answer.error == (400, 122)
    assert answer.json["error"] == "Filename not provided."


def test_the_error_of_a_name_with_a_slash_says_so():
    form = {"base64": "aGVsbG8=", "_ContentType": "text/plain", **CREDENTIALS}
    for answer in (
        send("POST", "/files/a/b.txt", b"hello", MASTER),
        send("POST", "/files/a/b.txt", json.dumps(form).encode(), content_type="text/plain"),
    ):
        assert answer.error == (400, 122)
        assert answer.json["error"] == "Filename contains invalid characters. It has a slash."
    assert not stored_names()


@pytest.mark.parametrize("name", ["a/b", "../a", "a/../../b", "metadata/x/y/z"])
def test_no_route_leads_into_folders(name):
    assert upload(name).status in (400, 404, 405)
    assert not stored_names()


@pytest.mark.parametrize(
    "name", ["file", "_", "a b.txt", "a@b~c-d.tar.gz", "a" * 128, "1", "a.b.c"]
)
def test_names_of_all_kinds_work(name):
    value = stored(name, b"some bytes")
    assert value[33:] == name
    got = send("GET", file_path(value))
    assert (got.status, got.body) == (200, b"some bytes")


def test_two_files_of_one_name_are_two_files():
    item, two = stored("a.txt", b"1"), stored("a.txt", b"2")
    assert item != two
    assert send("GET", file_path(item)).body == b"1"


def test_an_empty_file_is_refused():
    answer = upload("a.txt", b"")
    assert answer.error == (400, 130)
    assert answer.json["error"] == "Invalid file upload."
    assert send("POST", "/files/a.txt", json.dumps(CREDENTIALS).encode()).error == (400, 130)
    assert not stored_names()


def test_the_application_id_alone_is_not_enough():
    assert upload("a.png", headers=APPLICATION).error == (403, 262)


@pytest.mark.parametrize("together", [True, False])
def test_a_batch_uploads_and_removes_nothing(master, together):
    name = stored("a.png")
    for item in (
        {"method": "POST", "path": "/api/files/a.txt", "body": {}},
        {"method": "DELETE", "path": f"/api/files/{name}"},
        {"method": "GET", "path": f"/api/files/test-app/{name}"},
    ):
        reply = master.post("/batch", {"requests": [item], "transaction": together})
        error = reply.json if together else reply.json[0]["error"]
        assert error["code"] == 108
    assert stored_names() == {name}


def test_other_methods_are_405():
    assert send("PUT", "/files/a.txt", b"{}", CLIENT, content_type="application/json").error == (
        405,
        108,
    )
    answer = send("PUT", file_path("a.txt"), b"{}", CLIENT, content_type="application/json")
    assert answer.error == (405, 108)
    assert answer.headers["allow"] == "GET, HEAD, POST, DELETE"
