"""What operators do: start and supervise processes, back up, restore, rotate keys, diagnose.

It stands above all apps and may call any of them; no app imports it.
"""
