"""What the environment says is taken as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from backend.settings import environment


@pytest.mark.parametrize("secret", ["$ecret", "$", "$HOME", "$A_SECRET", r"\$x", "a=b#c"])
def test_a_value_that_begins_with_a_dollar_is_no_other_variable_s(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, secret: str
) -> None:
    name = f"SECRET_{secret.encode().hex()}"  # values of files are remembered by name
    monkeypatch.setenv("A_SECRET", secret)
    assert environment.text("A_SECRET") == secret
    file = tmp_path / "secret"
    file.write_text(f"{secret}\n")
    monkeypatch.setenv(f"{name}_FILE", str(file))
    assert environment.text(name) == secret


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("My shop # mine", "My shop"),
        ('"My shop" # mine', "My shop"),
        ("'My #1 shop'  # mine", "My #1 shop"),
        ('"My #1 \\"shop\\""', 'My #1 "shop"'),
        ("pass#word", "pass#word"),
        ("#1", "#1"),
        ("# nothing", "# nothing"),
        (" # nothing", ""),
        ("  padded  ", "padded"),
        ("'[\"defaults\"]'", '["defaults"]'),
        ('["defaults"]', '["defaults"]'),
        ("it's", "it's"),
        ("'a' and 'b'", "'a' and 'b'"),
        (r"C:\new", r"C:\new"),
        ("a=b", "a=b"),
        ("", ""),
    ],
)
def test_a_line_of_a_file_is_read_as_docker_compose_reads_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str, value: str
) -> None:
    monkeypatch.setenv("A_SETTING", "")  # which is undone
    monkeypatch.delenv("A_SETTING")
    file = tmp_path / "settings.env"
    file.write_text(f"A_SETTING={line}\n")
    environment.read_file(file)
    assert environment.text("A_SETTING") == value


def test_of_several_lines_for_a_name_the_last_one_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As with Docker Compose: settings are appended to the file."""
    monkeypatch.setenv("A_SETTING", "")  # which is undone
    monkeypatch.delenv("A_SETTING")
    file = tmp_path / "settings.env"
    file.write_text("A_SETTING=on\nexport A_SETTING=off\n")
    environment.read_file(file)
    assert environment.text("A_SETTING") == "off"


@pytest.mark.parametrize("default", [True, False])
def test_an_empty_switch_is_the_default(monkeypatch: pytest.MonkeyPatch, default: bool) -> None:
    monkeypatch.setenv("A_SWITCH", "")
    assert environment.flag("A_SWITCH", default) is default


@pytest.mark.parametrize("place", ["unix:/", "unix:/run/", ":80", "host:0", "host"])
def test_a_place_where_nothing_can_listen_is_refused(
    monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("A_BIND", place)
    with pytest.raises(environment.BadSetting, match=r"A_BIND must be unix:/path/to.sock"):
        environment.bind("A_BIND", "")
