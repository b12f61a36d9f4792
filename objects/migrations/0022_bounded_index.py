"""The function of the index of all fields, which bounds its entries of one object.

Indexes of classes with many objects are replaced while the service runs
(``objects.learned.replacements``), and so are those of generic classes. The function is never changed: an index on it would no longer be true. Another rule is another
function, with the next number.

``data || '{}'`` is the object uncompressed, so the size is the same wherever the object is stored.
Typed values of up to 1 KiB always stay, since queries rely on the index for them.
"""

from django.db import migrations, models

FUNCTION = """
CREATE FUNCTION objects_indexed_1(data jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 4 AS $$
BEGIN
    IF pg_column_size(data || '{}') <= 8192 THEN
        RETURN data;
    END IF;
    RETURN (
        SELECT jsonb_object_agg(
            f.key, CASE WHEN f.stays THEN f.value ELSE '"(left out)"'::jsonb END)
        FROM (
            SELECT e.key, e.value,
                jsonb_typeof(e.value) NOT IN ('array', 'object')
                OR (
                    e.size <= 1024
                    AND e.value ->> '__type' IN ('Pointer', 'Date', 'GeoPoint', 'File', 'Bytes')
                )
                OR sum(e.size) OVER (
                    PARTITION BY jsonb_typeof(e.value) IN ('array', 'object')
                    ORDER BY e.size, e.key COLLATE "C"
                ) <= 8192 AS stays
            FROM (
                SELECT m.key, m.value, pg_column_size(m.value) AS size
                FROM jsonb_each(data) m OFFSET 0
            ) e
        ) f
    );
END $$;
"""

# Accounts, sessions and so on: on a new instance, and while they are few, that takes no time.
PEOPLE = """
DO $$
DECLARE
    of_table text;
    of_class text;
    are_few boolean;
BEGIN
    FOR of_table, of_class IN VALUES ('objects_user', '_User'), ('objects_session', '_Session'),
        ('objects_role', '_Role'), ('objects_installation', '_Installation')
    LOOP
        EXECUTE format('SELECT NOT EXISTS (SELECT FROM %I OFFSET 1000)', of_table) INTO are_few;
        IF are_few THEN
            EXECUTE format(
                'CREATE INDEX %I ON %I USING gin (objects_indexed_1(data) jsonb_path_ops)',
                of_table || '_fields_1', of_table);
            EXECUTE format('DROP INDEX IF EXISTS %I', of_table || '_data');
            UPDATE objects_class SET index_version = 1, version = nextval('objects_class_version')
            WHERE name = of_class;
        END IF;
    END LOOP;
END $$;
"""
PEOPLE_BEFORE = "".join(
    f"DROP INDEX IF EXISTS objects_{name}_fields_1;"
    f"CREATE INDEX IF NOT EXISTS objects_{name}_data ON objects_{name}"
    " USING gin (data jsonb_path_ops);"
    for name in ("user", "session", "role", "installation")
)


class Migration(migrations.Migration):
    dependencies = [("objects", "0021_staff_second_factor")]

    operations = [
        migrations.RunSQL(FUNCTION, "DROP FUNCTION objects_indexed_1(jsonb)"),
        migrations.AddField(
            model_name="objectclass",
            name="index_version",
            field=models.SmallIntegerField(db_default=0),
        ),
        migrations.RunSQL(PEOPLE, PEOPLE_BEFORE),
    ]
