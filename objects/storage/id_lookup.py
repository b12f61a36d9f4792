"""Find the classes that have an object with an id, in one statement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from objects.core.names import ClassName, ObjectId
from objects.database.statements import fetch_values
from objects.definitions.models import GENERIC_TABLE
from objects.definitions.registry import model_storage

# PostgreSQL plans this for the partitions of these classes alone.
_PARTITIONS: Final = f"""
SELECT class_id FROM {GENERIC_TABLE}
WHERE class_id = ANY(%(class_ids)s::bigint[]) AND object_id = %(object_id)s
"""
_OF_MODEL: Final = """
SELECT {class_id}::bigint FROM {table} WHERE object_id = %(object_id)s AND {is_object}
"""


def classes_with(classes: Mapping[int, ClassName], object_id: ObjectId) -> list[ClassName]:
    """Return those of the classes, which are given by their ids, that have an object with an id.

    Each class takes one lookup in the index of its table.
    """
    storage = model_storage()
    of_models = [
        _OF_MODEL.format(
            class_id=class_id, table=storage[name][0], is_object=storage[name][1] or True
        )
        for class_id, name in classes.items()
        if name in storage
    ]
    params = {
        "class_ids": [class_id for class_id, name in classes.items() if name not in storage],
        "object_id": object_id,
    }
    statement = " UNION ALL ".join([_PARTITIONS, *of_models])
    return [
        classes[class_id]
        for class_id in fetch_values(int, statement, params, prepare=False, is_read=True)
    ]
