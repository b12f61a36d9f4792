"""The objects of a class: the table with its filters, and the page of one object."""
