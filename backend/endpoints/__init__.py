"""Routes of the service itself, which belong to no app.

Health, metrics, the start page, the API document and ``/serverInfo``, and the middleware of pages.
Add what operators and tools ask the service for; nothing here touches objects.
"""
