"""Webhooks: functions and triggers that another server runs and that are called over HTTP.

``service`` registers them (REST, admin), ``class_hooks`` gives the object service those of a
class, ``calls`` calls a webhook while the client waits, ``outbox`` delivers notifications later.
"""
