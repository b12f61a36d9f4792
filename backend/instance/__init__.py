"""The data folder of an instance: what is where in it, who holds it, its keys.

The lowest floor: it needs neither settings nor Django, because settings are read from the folder.
"""
