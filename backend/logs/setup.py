"""Structured logs: one line for one event, JSON or readable, on standard error. The latest are
kept in Redis as well (``store``).

Everything that is logged, by structlog or by the standard library (Django, Celery,
uvicorn), carries the request id of the work it belongs to and passes ``mask``, so that no key, no
token and no password is written down.
"""

from __future__ import annotations

import logging
import logging.config
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import wraps
from types import MappingProxyType
from typing import Any, Final

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from backend.kernel.interruptions import is_from_outside
from backend.kernel.texts.encoding import describe, encode_text
from backend.kernel.texts.redaction import mask_text
from backend.logs import lines, records, store
from backend.logs.masking import mask
from backend.logs.readable import render

_STANDARD_ERROR = 2
_LONGEST_REMAINS: Final = 1000  # characters
_LEVELS: Final = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "exception": logging.ERROR,
    "critical": logging.CRITICAL,
}


class _LineLogger:
    """Where structlog's lines go."""

    def msg(self, line: bytes) -> None:
        lines.write(line)

    debug = info = warning = error = critical = exception = fatal = log = msg


class LineHandler(logging.Handler):
    """The standard library's records, on the same lines."""

    def handle(self, record: logging.LogRecord) -> bool:
        """Write a record. Filters and formatting call methods of its arguments, any objects."""
        try:
            return super().handle(record)
        except BaseException as error:
            if is_from_outside(error):
                raise
            _write_remains(record.levelname.lower(), record.msg, error)
            return True

    def emit(self, record: logging.LogRecord) -> None:
        lines.write(encode_text(self.format(record)))


class _RoutineTasks(logging.Filter):
    """Makes the lines about tasks that have succeeded debug lines. What is worth a line of
    another level, tasks log themselves."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name != "celery.app.trace" or "succeeded in" not in str(record.msg):
            return True
        record.levelno, record.levelname = logging.DEBUG, "DEBUG"
        return _lowest <= logging.DEBUG


class _ShortOutages(logging.Filter):
    """Reduces what Celery logs while PostgreSQL or Redis is away to a line with the reason.

    Beat logs a traceback and its own stack at each attempt. A warning about Celery's plans is
    dropped: Celery's logging enables it again, and repeats it whenever the broker is lost.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name == "py.warnings":
            return "CPendingDeprecationWarning" not in record.getMessage()
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and record.name.startswith(_CELERY) and _is_outage(error):
            record.msg, record.args = record.getMessage().partition("\n")[0], ()
            record.exc_info = record.exc_text = None
        return True


_CELERY: Final = ("celery", "django_celery_beat")


def _is_outage(error: BaseException | None) -> bool:
    # Loaded only here: script/manage --help, for example, needs neither.
    from kombu.exceptions import OperationalError
    from redis import exceptions as redis

    from backend.kernel.connections.outages import is_outage

    away = (OperationalError, redis.ConnectionError, redis.TimeoutError)
    return isinstance(error, away) or is_outage(error)


def _format_exception(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Put the traceback in the place of an exception, which may be of any class."""
    try:
        return structlog.processors.format_exc_info(logger, method, event)
    except BaseException as error:
        if is_from_outside(error):
            raise
        event.pop("exc_info", None)
        event["exception"] = f"<a traceback that can't be written: {type(error).__name__}>"
        return event


def _write_remains(level: str, event: object, error: BaseException) -> None:
    """Write what can be written of a line that can't. Never raises."""
    try:
        remains = {
            "event": mask_text(describe(event)[:_LONGEST_REMAINS]),
            "logger": "log",
            "problem": f"the line's other fields can't be written: {type(error).__name__}",
            "process": _process,
            "level": level,
            "timestamp": datetime.now(UTC).isoformat(),
        }
        text = render(remains, colours=False) if _style == "console" else ""
        lines.write(encode_text(text) if text else records.encode(remains))
    except Exception:
        lines.write(b'{"event":"a log line can\'t be written","level":"error"}')


def _guarded(method: Any) -> Any:
    """Return a method of a logger that never raises."""

    @wraps(method)
    def log(self: Any, *args: Any, **fields: Any) -> None:
        try:
            method(self, *args, **fields)
        except BaseException as error:
            if is_from_outside(error):
                raise
            event = args[0] if args else fields.get("event")
            level = method.__name__.replace("exception", "error")
            _write_remains(level, event, error)

    return log


def _logger_class(level: int) -> Any:
    """Return the class of loggers that write this level and those above it.

    They never raise, no matter what is logged: they are called where errors are handled.
    """
    base = structlog.make_filtering_bound_logger(level)
    written = [name for name, number in _LEVELS.items() if number >= level]
    methods = {name: _guarded(getattr(base, name)) for name in written}
    return type("Logger", (base,), methods)


def _json(logger: WrappedLogger, method: str, event: EventDict) -> bytes:
    record = records.encode(event)
    store.keep(record)
    return record


def _json_text(logger: WrappedLogger, method: str, event: EventDict) -> str:
    return _json(logger, method, event).decode()


class _Console:
    """Readable lines for a person at a terminal."""

    def __init__(self) -> None:
        self._colours = os.isatty(_STANDARD_ERROR) and "NO_COLOR" not in os.environ

    def text(self, logger: WrappedLogger, method: str, event: EventDict) -> str:
        if store.is_on():
            store.keep(records.encode(event))
        return render(event, colours=self._colours)

    def line(self, logger: WrappedLogger, method: str, event: EventDict) -> bytes:
        return encode_text(self.text(logger, method, event))


_process = ""
_style = "json"
_lowest = logging.INFO


def _add_process(logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
    event["process"] = _process
    return event


def name_process(process: str) -> None:
    """Name the process in its log lines from now on."""
    global _process
    _process = process


def configure_from(logging_settings: Mapping[str, Any]) -> None:
    """Set logging up as the setting ``LOGGING`` says. Django calls it (``LOGGING_CONFIG``)."""
    configure(logging_settings["level"], logging_settings["style"], logging_settings["process"])
    store.configure(logging_settings["redis_url"], logging_settings["keep"])


def configure(level: str, style: str, process: str) -> None:
    """Set up structlog and the standard library's logging for this process."""
    global _process, _style, _lowest
    _process, _style = process, style
    _lowest = logging.getLevelNamesMapping()[level]
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.StackInfoRenderer(),
        _format_exception,
        mask,
        _add_process,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    console = _Console()
    structlog.configure(
        processors=[*before, _json if style == "json" else console.line],
        wrapper_class=_logger_class(_lowest),
        logger_factory=lambda *names: _LineLogger(),
        cache_logger_on_first_use=True,
    )
    logging.config.dictConfig(standard_library(level, style))


def standard_library(level: str, style: str) -> dict[str, Any]:
    """A ``dictConfig`` that sends the standard library's records the same way."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": "backend.logs.setup.formatter", "style": style}},
        "filters": {
            "routine": {"()": "backend.logs.setup._RoutineTasks"},
            "outages": {"()": "backend.logs.setup._ShortOutages"},
        },
        "handlers": {
            "line": {
                "()": "backend.logs.setup.LineHandler",
                "formatter": "line",
                "filters": ["routine", "outages"],
            }
        },
        "root": {"handlers": ["line"], "level": level},
        "loggers": {
            # Without the handlers of Django's default configuration.
            "django": {"handlers": [], "level": "NOTSET"},
            "django.server": {"handlers": [], "level": "NOTSET", "propagate": True},
            # Each request has one line of ours; Django's own would say it twice.
            "django.request": {"level": "CRITICAL"},
            # What strangers write into Host would be a traceback each time.
            "django.security.DisallowedHost": {"level": "CRITICAL"},
            "django.channels.server": {"level": "WARNING"},
            "uvicorn": {"level": "WARNING"},
            "celery": {"level": _at_least(level, "INFO")},
            "celery.beat": {"level": _at_least(level, "WARNING")},
            "celery.worker": {"level": _at_least(level, "WARNING")},
            "django_celery_beat.schedulers": {"level": _at_least(level, "WARNING")},
            "asyncio": {"level": _at_least(level, "INFO")},
            # Its warnings have addresses in them, and those may have keys.
            "urllib3": {"level": _at_least(level, "ERROR")},
            "websockets": {"level": _at_least(level, "INFO")},
        },
    }


def _at_least(level: str, floor: str) -> str:
    names = logging.getLevelNamesMapping()
    return level if names[level] >= names[floor] else floor


def formatter(style: str) -> logging.Formatter:
    """For ``dictConfig``: a formatter with the same processors."""
    return structlog.stdlib.ProcessorFormatter(
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            _json_text if style == "json" else _Console().text,
        ],
        foreign_pre_chain=[
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.add_logger_name,
            _format_exception,
            mask,
            _add_process,
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
        ],
    )


def request_line(
    request_id: str,
    method: str,
    path: str,
    status: int,
    ms: float,
    *,
    is_routine: bool = False,
    about: Mapping[str, str | int] = MappingProxyType({}),
) -> None:
    """Log one answered request, with further fields ``about`` it.

    The level is "error" for an internal error, "warning" for other statuses from 500 on, "debug"
    for a routine request that succeeded, and otherwise "info". The line is the same as a logger
    writes, made by hand where it is JSON: the processors took a fifth of the time of a get by id,
    and of these fields only texts can hold anything to mask.
    """
    if status >= 500:
        level = "error" if status == 500 else "warning"
    else:
        level = "debug" if is_routine and status < 400 else "info"
    if _LEVELS[level] < _lowest:
        return
    if ":" in path or "=" in path:
        path = mask_text(path)
    # As ``mask_text`` does, without calling it for each of a dozen texts.
    masked = {
        name: mask_text(value)
        if isinstance(value, str) and (":" in value or "=" in value)
        else value
        for name, value in about.items()
    }
    if _style != "json":
        line = {"method": method, "path": path, "status": status, "ms": ms, **masked}
        getattr(get_logger("request"), level)("request", **line)
        return
    record = records.encode(
        {
            "logger": "request",
            "method": method,
            "path": path,
            "status": status,
            "ms": ms,
            **masked,
            "event": "request",
            "request_id": request_id,
            "process": _process,
            "level": level,
            "timestamp": datetime.now(UTC),
        }
    )
    lines.write_soon(record)
    store.keep(record)


def get_logger(name: str) -> Any:
    """A structlog logger whose lines carry ``logger=name``."""
    return structlog.get_logger(name).bind(logger=name)
