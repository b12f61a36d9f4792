"""One provider: JSON-RPC over HTTP, its limits, its health, and what its errors mean."""
