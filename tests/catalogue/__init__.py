"""An application of a deployment: a Django model of its own, offered as a class."""
