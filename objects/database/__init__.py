"""Access to PostgreSQL: statements, transactions, maintenance mode, and the hold after a restore.

Every statement of the object service passes ``statements``.
"""
