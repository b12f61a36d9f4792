"""The one place where web3 and eth_account are imported, when they are first needed.

One of the libraries that they bring (py_ecc) raises the recursion limit of the whole process to
100,000 when it is imported. Deeply nested input would then end the process instead of raising
``RecursionError``, so the limit is put back.
"""

from __future__ import annotations

import importlib
import sys
import threading
from types import ModuleType

_importing = threading.Lock()


def web3() -> ModuleType:
    """The module ``web3``. Importing it the first time takes half a second."""
    return _imported("web3")


def eth_account() -> ModuleType:
    """The module ``eth_account``."""
    return _imported("eth_account")


def _imported(name: str) -> ModuleType:
    module = sys.modules.get(name)
    if module is not None and not getattr(module.__spec__, "_initializing", False):
        return module
    with _importing:
        limit = sys.getrecursionlimit()
        try:
            return importlib.import_module(name)
        finally:
            sys.setrecursionlimit(limit)
