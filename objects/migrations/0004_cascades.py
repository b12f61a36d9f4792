"""What belongs to a user goes with the user.

Django makes foreign keys at the end of a migration, so this one stands by itself.
"""

from django.db import migrations

# Also when SQL removes the row and not the ORM.
CASCADES = """
DO $$
DECLARE found record;
BEGIN
    FOR found IN
        SELECT conname, conrelid::regclass AS relation FROM pg_constraint
        WHERE contype = 'f' AND confrelid = 'objects_user'::regclass
    LOOP
        EXECUTE format(
            'ALTER TABLE %s DROP CONSTRAINT %I, ADD CONSTRAINT %I FOREIGN KEY (user_id)'
            ' REFERENCES objects_user (object_id) ON DELETE CASCADE',
            found.relation, found.conname, found.conname);
    END LOOP;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("objects", "0003_files")]

    operations = [migrations.RunSQL(CASCADES, migrations.RunSQL.noop)]
