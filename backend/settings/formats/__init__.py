"""How dates are written on pages, by language (``FORMAT_MODULE_PATH``)."""
