"""The order of the fields of declared indexes, which ``jsonb`` didn't keep.

The name of an index in the database has a digest of its declaration, so the declared order is the
one whose name is there. Where none is, the order of ``jsonb`` stays.
"""

from hashlib import blake2s
from itertools import permutations

from django.db import migrations

_MOST = 8
"""Fields; of more there are too many orders to try."""


def keep_orders(apps, schema_editor):
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relname LIKE 'objects\\_declared\\_%%'")
        built = {name for (name,) in cursor.fetchall()}
    for row in apps.get_model("objects", "ObjectClass").objects.all():
        orders = dict(row.definition.get("indexOrders", {}))
        for name, wire in row.definition.get("indexes", {}).items():
            is_unique = isinstance(wire.get("fields"), dict)
            fields = wire["fields"] if is_unique else wire
            if name not in orders and 1 < len(fields) <= _MOST:
                order = _order(row.pk, name, fields, is_unique, built)
                if order is not None:
                    orders[name] = order
        if orders:
            row.definition["indexOrders"] = orders
            row.save(update_fields=["definition"])


def _order(class_id, name, fields, is_unique, built):
    matching = [
        [field for field, _ in columns]
        for columns in permutations(fields.items())
        if _index_name(class_id, name, columns, is_unique) in built
    ]
    # Following doctor's advice has built it in the order of jsonb as well: the other is the declared.
    declared = [order for order in matching if order != [*fields]]
    return (declared or matching or [None])[0]


def _index_name(class_id, name, columns, is_unique):
    declaration = f"{name} {columns} {is_unique}"
    digest = blake2s(declaration.encode(), digest_size=8).hexdigest()
    return f"objects_declared_{class_id}_{digest}"


class Migration(migrations.Migration):
    dependencies = [("objects", "0014_learned_indexes")]
    operations = [migrations.RunPython(keep_orders, migrations.RunPython.noop)]
