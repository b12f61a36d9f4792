"""Webhooks: functions and triggers that another server runs and that are called over HTTP.

``service`` registers them (REST, admin), ``class_hooks`` gives the object service those of a
class, ``synchronous_calls`` calls a webhook while the client waits, ``deliveries`` delivers
notifications after the commit.
"""
