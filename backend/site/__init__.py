"""The site of the admin: the base of its pages, and what each group of staff may do."""
