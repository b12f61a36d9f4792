"""Webhooks: functions and triggers whose code runs elsewhere and is called over HTTP.

``service`` registers them (REST, admin), ``class_hooks`` tells the object service which a class
has, ``calls`` calls one while the client waits, ``outbox`` delivers notifications afterwards.
"""
