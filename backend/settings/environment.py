"""Reading settings from the environment.

A missing or malformed value ends the process with one sentence that names the variable. Where
``NAME_FILE`` is set, the value of ``NAME`` is read from that file. ``backend.settings.declaration``
declares the settings; the functions here read one value of each type.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import environ

LOOPBACK_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts in URLs that are this machine."""
_variables = environ.FileAwareEnv.ENVIRON
_names: set[str] = set()
_numbered_names: set[str] = set()
_former_names: dict[str, tuple[str, ...]] = {}
_ignored_lines: dict[Path, list[int]] = {}
_file_values: dict[Path, dict[str, str]] = {}
_LINE = re.compile(r"(?:export )?(?P<name>[A-Za-z_0-9]+)=(?P<value>.*)")
# As Docker Compose reads the same file: a comment follows a blank, or the closing quote.
_VALUES = (
    re.compile(r"\s*'(?P<literal>[^']*)'\s*(?:#.*)?"),
    re.compile(r'\s*"(?P<escaped>(?:[^"\\]|\\.)*)"\s*(?:#.*)?'),
    re.compile(r"(?P<bare>.*?)(?:\s+#.*)?"),
)
_ESCAPE = re.compile(r'\\(["\\])')
_SIMILAR = 0.86  # of 1: a letter more, less or other in a name of eight
# Prefixes that no other program uses: any name that begins with one is meant as a setting.
_PREFIXES = (
    *("APNS_", "BACKUP_S3_", "FILE_S3_", "IDEMPOTENCY_", "LIVE_QUERY_", "SIGNER_", "WALLET_API_"),
    *("WEBAUTHN_", "WEBHOOK_", "WS_"),
)
_SIMILAR_AFTER_PREFIX = 0.7
_NUMBER = re.compile(r"_[1-9][0-9]*(_FILE)?$")
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}


class BadSetting(SystemExit):
    """Ends the process with its message on standard error, and status 1."""


def read_file(path: Path) -> None:
    """Take ``NAME=value`` lines from a file for names that the environment doesn't have. Values may
    be in quotes; a ``#`` after a blank begins a comment. Of several lines for a name, the last one
    counts.

    Does nothing without such a file. ``problems`` reports the lines that are neither settings,
    comments nor empty. Raises ``BadSetting`` if the file can't be read.
    """
    try:
        if not path.is_file():
            return
        content = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BadSetting(f"{path} can't be read: it isn't UTF-8.") from None
    except OSError as error:
        raise BadSetting(f"{path} can't be read: {error.strerror}.") from None
    if "\0" in content:
        raise BadSetting(f"{path} can't be read: it contains a NUL character.")
    lines = content.splitlines()
    _ignored_lines[path] = [
        number
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#") and not _LINE.match(line)
    ]
    matches = filter(None, map(_LINE.match, lines))
    values = {match["name"]: _value(match["value"]) for match in matches}
    _file_values[path] = values
    for name, value in values.items():
        os.environ.setdefault(name, value)


def _value(text: str) -> str:
    """The value that a line of a file gives a setting: without quotes and without a comment."""
    match = next(match for pattern in _VALUES if (match := pattern.fullmatch(text)))
    parts = match.groupdict()
    if "escaped" in parts:
        return _ESCAPE.sub(r"\1", parts["escaped"])
    return parts["literal"] if "literal" in parts else parts["bare"].strip()


def env_file(default: Path) -> Path:
    """The file with the settings: that of ``ENV_FILE``, or the default. Raises ``BadSetting`` if
    ``ENV_FILE`` names a file that doesn't exist, or a folder or pipe. Processes that start later
    read the file again, which a pipe doesn't allow; a device (``/dev/null``) is an empty file."""
    name = text("ENV_FILE")
    path = Path(name or default)
    if name and not path.exists():
        raise BadSetting(f"ENV_FILE={name}: there is no such file.")
    if name and not (path.is_file() or path.is_char_device()):
        raise BadSetting(f"ENV_FILE={name}: this isn't a file.")
    return path


def declare(name: str, former: tuple[str, ...] = (), *, is_numbered: bool = False) -> None:
    """Make a name known as a setting. Its former names are read where it isn't set itself. With
    ``is_numbered`` the name with any number (``NAME_137``) is a setting too."""
    _names.add(name)
    if is_numbered:
        _numbered_names.add(name)
    if former:
        _names.update(former)
        _former_names[name] = former


def problems() -> list[tuple[str, str]]:
    """Return settings that have no effect or a former name, each with what to do: variables that
    aren't settings, and lines of files that aren't settings. Values are never part of it."""
    unknown = [
        (
            f"{name} is not a setting{f'; did you mean {meant}?' if meant else '.'}",
            "Correct the name, or remove the variable.",
        )
        for name, meant in _unknown()
    ]
    renamed = [
        (f"{old} is the former name of {name}.", f"Rename it to {name}.")
        for name, former in _former_names.items()
        for old in former
        if old in os.environ or f"{old}_FILE" in os.environ
    ]
    lines = [
        (f"{path}, line {number} is ignored: it isn't NAME=value.", "Correct it, or remove it.")
        for path, numbers in _ignored_lines.items()
        for number in numbers
    ]
    return unknown + renamed + lines


def origin(name: str) -> str:
    """Return where the value of a setting comes from: a variable of the environment or a file. It
    is "" for a setting that has its default."""
    for variable in (name, *_former_names.get(name, ())):
        if os.environ.get(f"{variable}_FILE"):
            return f"the file that {variable}_FILE names"
        value = os.environ.get(variable, "")
        if not value.strip():
            continue
        files = (path for path, values in _file_values.items() if values.get(variable) == value)
        return str(next(files, f"the environment variable {variable}"))
    return ""


def _unknown() -> Iterator[tuple[str, str]]:
    """Yield variables that are meant as settings, each with the most similar setting, or "".
    Variables of other programs are left out: their names are neither similar nor prefixed."""
    unset = _names - os.environ.keys()
    for name in sorted(os.environ.keys() - _names - {f"{name}_FILE" for name in _names}):
        if _NUMBER.sub("", name) in _numbered_names:
            continue
        prefix = next((prefix for prefix in _PREFIXES if name.startswith(prefix)), "")
        ends = [setting.removeprefix(prefix) for setting in unset if setting.startswith(prefix)]
        cutoff = _SIMILAR_AFTER_PREFIX if prefix else _SIMILAR
        similar = difflib.get_close_matches(name.removeprefix(prefix), ends, 1, cutoff)
        if prefix or similar:
            yield name, prefix + similar[0] if similar else ""


def text(name: str, default: str = "") -> str:
    """The variable's text without surrounding blanks; the default if there is none. Nothing in it
    is replaced: a secret may begin with ``$``, which ``environ.Env.str`` would take for the name of
    another variable."""
    _names.add(name)
    for variable in (name, *_former_names.get(name, ())):
        try:
            value = str(_variables.get(variable, "")).strip()
        except (OSError, ValueError):
            raise BadSetting(f"{variable}_FILE can't be read.") from None
        if value:
            return value
    return default


def required(name: str, hint: str) -> str:
    """A text that has to be there."""
    value = text(name)
    if not value:
        raise BadSetting(f"{name} isn't set: {hint}")
    return value


def flag(name: str, default: bool) -> bool:
    """A switch: on or off. Empty is the default."""
    value = text(name).lower() or ("on" if default else "off")
    if value not in _TRUE | _FALSE:
        raise BadSetting(f"{name} must be on or off, not {value!r}.")
    return value in _TRUE


def whole(name: str, default: int, *, least: int = 0, most: int = 2**31 - 1) -> int:
    """A whole number between ``least`` and ``most``."""
    value = text(name) or str(default)
    try:
        number = int(value)
    except ValueError:
        raise BadSetting(f"{name} must be a whole number, not {value!r}.") from None
    if not least <= number <= most:
        raise BadSetting(f"{name} must be between {least} and {most}, not {number}.")
    return number


def pattern(name: str) -> str:
    """A regular expression, or nothing."""
    value = text(name)
    try:
        re.compile(value)
    except re.error as error:
        raise BadSetting(f"{name} must be a regular expression: {error}.") from None
    return value


def choice(name: str, default: str, options: Iterable[str]) -> str:
    """One of a few words, in any case."""
    value = text(name) or default
    choices = {option.lower(): option for option in options}
    if value.lower() not in choices:
        raise BadSetting(f"{name} must be one of {', '.join(choices.values())}, not {value!r}.")
    return choices[value.lower()]


def words(name: str, default: Iterable[str] = ()) -> list[str]:
    """A list, its items separated by commas."""
    value = text(name)
    return [word.strip() for word in value.split(",") if word.strip()] if value else list(default)


def address(name: str, default: str, schemes: Iterable[str]) -> str:
    """A URL with one of the schemes. Its text is never repeated: it may hold a password."""
    value = text(name) or default
    allowed = tuple(schemes)
    try:
        scheme = urlsplit(value).scheme
    except ValueError:
        scheme = ""
    if value and scheme not in allowed:
        raise BadSetting(f"{name} must be a URL that begins with {' or '.join(allowed)}.")
    return value


def site_url(name: str) -> str:
    """Return the first https address with a host name of Caddy's site addresses, or ""."""
    for site in words(name):
        try:
            parts = urlsplit(site)
        except ValueError:
            continue
        if parts.scheme == "https" and parts.hostname and "*" not in parts.hostname:
            return f"https://{parts.netloc}"
    return ""


def bind(name: str, default: str) -> str:
    """Where a server listens: ``unix:/path`` or ``host:port``."""
    value = text(name) or default
    if _is_bind(value):
        return value
    raise BadSetting(f"{name} must be unix:/path/to.sock or host:port, not {value!r}.")


def binds(name: str, default: Iterable[str]) -> tuple[str, ...]:
    """Where a server listens: one or more of what ``bind`` reads, separated by commas."""
    values = words(name, default)
    for value in values:
        if not _is_bind(value):
            raise BadSetting(f"{name} must list unix:/path/to.sock or host:port, not {value!r}.")
    return tuple(values)


def _is_bind(value: str) -> bool:
    host, _, port = value.rpartition(":")
    is_address = bool(host) and port.isdecimal() and 0 < int(port) < 65536
    is_socket = value.startswith("unix:/") and not value.endswith("/")
    return is_socket or is_address
