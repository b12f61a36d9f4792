"""Every table of the objects app, for Django.

A deployment's own models inherit ``ModelBackedObject`` from here (docs/model-classes.md). Inside
the service, import a model from the module that declares it.
"""

from objects.analytics import models as analytics  # noqa: F401
from objects.app_config import models as app_config  # noqa: F401
from objects.definitions.models import ModelBackedObject
from objects.files import models as files  # noqa: F401
from objects.idempotency import models as idempotency  # noqa: F401
from objects.learned import models as learned  # noqa: F401
from objects.push import models as push  # noqa: F401
from objects.staff import models as staff  # noqa: F401
from objects.users import models as users  # noqa: F401
from objects.users.passkeys import models as passkeys  # noqa: F401

__all__ = ["ModelBackedObject"]
