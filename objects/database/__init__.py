"""Access to PostgreSQL: statements, transactions, and the guard of maintenance mode.

Every statement of the object service passes ``statements``.
"""
