"""Import of the modules of a deployment, which ``CLOUD_MODULES`` names."""

from __future__ import annotations

import sysconfig
import traceback
from importlib import import_module
from pathlib import Path
from typing import Final

from django.conf import settings

from backend.settings.environment import BadSetting

_ROOT: Final = Path(__file__).resolve().parents[2]
_SERVICE: Final = tuple(
    f"{_ROOT / name}/" for name in ("backend", "objects", "functions", "chain", "realtime")
)
_LIBRARIES: Final = tuple(
    f"{sysconfig.get_path(name)}/" for name in ("stdlib", "platlib", "purelib")
)


def load(module: str) -> None:
    """Import a module of the deployment. Raises ``BadSetting``, which ends the process, if that
    fails: with the place in the module and the reason, and with a traceback of the deployment's own
    frames where there are several. ``START_DEBUG`` adds the whole traceback."""
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            sentence = f"CLOUD_MODULES names {module}, and there is no such module."
            raise BadSetting(f"{_whole_traceback(error)}{sentence}") from None
        raise _refused(module, error) from None
    except Exception as error:
        raise _refused(module, error) from None


def _refused(module: str, error: Exception) -> BadSetting:
    # The first frame is that of this module.
    frames = traceback.extract_tb(error.__traceback__)[1:]
    frames = [frame for frame in frames if not frame.filename.startswith("<frozen")]
    own = [frame for frame in frames if not frame.filename.startswith((*_SERVICE, *_LIBRARIES))]
    place = f"{own[-1].filename}, line {own[-1].lineno}: " if own else ""
    reason = f"{type(error).__name__}: {error}"
    details = _whole_traceback(error)
    if isinstance(error, SyntaxError):
        place, reason = f"{error.filename}, line {error.lineno}: ", f"SyntaxError: {error.msg}"
    elif frames and frames[-1].filename.startswith(_SERVICE):
        reason = str(error)
    elif not isinstance(error, ImportError) and own[1:]:
        details = details or "".join(traceback.format_list(own))
    return BadSetting(f"{details}CLOUD_MODULES: {module} can't be loaded. {place}{reason}")


def _whole_traceback(error: Exception) -> str:
    if not settings.START_DEBUG:
        return ""
    return "".join(traceback.format_exception(error))
