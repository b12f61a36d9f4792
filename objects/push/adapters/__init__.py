"""Services that notifications are sent through: ``log``, FCM and APNs. ``setup`` chooses them."""
