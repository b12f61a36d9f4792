"""Requests to ``script/server`` to replace the application, and its answers: files in a folder of
the running instance.

``manage.py reload`` writes ``NAME.request``; ``script/server`` removes it, replaces the application
and writes ``NAME.answer``, which holds the reason if the application couldn't be replaced.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Iterable
from pathlib import Path

from backend.instance.folder import DataFolder


def make_folder(data: DataFolder) -> None:
    """Forget the requests of an earlier instance and be ready for those to come. For a start,
    before anything is loaded: what is requested later isn't forgotten."""
    folder = _folder(data)
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, exist_ok=True)


def request(data: DataFolder) -> Path:
    """Request a replacement; the place of the answer to it. Raises ``OSError`` if no instance takes
    requests, or not from this account."""
    place = _folder(data) / f"{secrets.token_hex(8)}.request"
    place.touch(mode=0o600)
    return place.with_suffix(".answer")


def take(data: DataFolder) -> list[Path]:
    """Take the requests that wait; the places of the answers to them. Makes the folder again if it
    was removed, as programs that clean up do with empty ones."""
    answers = []
    folder = _folder(data)
    with contextlib.suppress(OSError):
        if not folder.is_dir():
            folder.mkdir(mode=0o700)
        for each in folder.glob("*.request"):
            with contextlib.suppress(OSError):
                each.unlink()
                answers.append(each.with_suffix(".answer"))
    return answers


def answer(places: Iterable[Path], reason: str) -> None:
    """Answer requests: the application was replaced, or ``reason`` says why it wasn't, and what
    runs now."""
    for each in places:
        with contextlib.suppress(OSError):
            fresh = each.with_suffix(".new")
            fresh.write_text(reason)
            fresh.rename(each)


def read_answer(place: Path) -> str | None:
    """The reason why the application wasn't replaced, empty if it was; None while there is no
    answer."""
    try:
        reason = place.read_text()
    except OSError:
        return None
    with contextlib.suppress(OSError):
        place.unlink()
    return reason


def _folder(data: DataFolder) -> Path:
    return data.app_sockets / "reloads"
