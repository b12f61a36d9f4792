"""Settings: read from the environment once, checked, and offered as typed attributes.

``django`` is the Django settings module, ``conf.service_settings`` the service's own settings.
"""
