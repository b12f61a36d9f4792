"""The rules of ``_User``, ``_Session``, ``_Role`` and ``_Installation``."""
