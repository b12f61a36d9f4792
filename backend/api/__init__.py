"""The HTTP edge, in the words of Django REST framework."""
