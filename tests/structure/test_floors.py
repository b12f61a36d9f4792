"""Import contracts leave nothing out: each module is on a floor and in a room."""

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
APPS = ("backend", "objects", "functions", "chain", "realtime")
LARGEST_ROOM = 14
"""Modules in a package, without its packages. Smaller is better: lower it when you can."""

CONTRACTS = {
    contract["name"]: contract
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
}


def children(package: str) -> set[str]:
    """The modules and packages directly below a package."""
    return {
        path.stem
        for path in (ROOT / package).iterdir()
        if (path.suffix == ".py" and path.stem != "__init__") or (path / "__init__.py").exists()
    }


def layers_of(name: str) -> set[str]:
    return {
        module.strip(" ()")
        for layer in CONTRACTS[name]["layers"]
        for module in layer.replace("|", ":").split(":")
    }


def test_every_part_of_the_project_package_is_on_a_floor():
    floors = layers_of("Floors")
    assert {f"backend.{child}" for child in children("backend")} == {
        floor for floor in floors if floor.startswith("backend.")
    }
    assert set(APPS) - {"backend"} <= floors


@pytest.mark.parametrize("app", [app for app in APPS if app != "backend"])
def test_the_rooms_of_an_app_are_in_a_contract_that_leaves_none_out(app):
    contract = CONTRACTS[f"Rooms of {app}"]
    assert contract["containers"] == [app]
    assert contract["exhaustive"] is True
    assert layers_of(f"Rooms of {app}") == children(app)


def test_no_contract_excuses_an_import():
    for contract in CONTRACTS.values():
        assert "ignore_imports" not in contract


def test_circles_are_looked_for_in_every_app():
    assert CONTRACTS["No room imports in a circle"]["ancestors"] == list(APPS)


def test_every_folder_with_modules_is_a_package_with_a_description():
    """A folder without ``__init__.py`` would be left out of every contract."""
    missing = [
        str(folder.relative_to(ROOT))
        for app in APPS
        for folder in (ROOT / app).rglob("*")
        if folder.is_dir() and any(folder.glob("*.py")) and not (folder / "__init__.py").exists()
    ]
    assert missing == []


def test_rooms_stay_small():
    sizes = {
        str(package.parent.relative_to(ROOT)): len(
            [path for path in package.parent.glob("*.py") if path.name != "__init__.py"]
        )
        for app in APPS
        for package in (ROOT / app).rglob("__init__.py")
        if package.parent.name != "migrations"
    }
    largest = max(sizes, key=lambda name: sizes[name])
    assert sizes[largest] <= LARGEST_ROOM, largest
