"""Webhooks: functions and triggers whose code runs somewhere else and is asked over HTTP.

``service`` is the door to them (REST, admin), ``known`` tells the door to objects which there are,
``calling`` asks while the caller waits, ``outbox`` tells afterwards.
"""
