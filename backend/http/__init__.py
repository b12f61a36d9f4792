"""The HTTP edge of REST: from bytes to a checked ``Call``, and from a result to a response.

Credentials, body limits, rate limits, routes, idempotency and errors are decided here, once, for
requests and for the items of batches. It knows no app: ``ports`` names what ``objects`` plugs in.
"""
