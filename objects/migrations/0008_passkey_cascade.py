"""Passkeys go with their user, also when SQL removes the row and not the ORM.

Django makes foreign keys at the end of a migration, so this one stands by itself.
"""

from django.db import migrations

CASCADE = """
DO $$
DECLARE found record;
BEGIN
    FOR found IN
        SELECT conname FROM pg_constraint
        WHERE contype = 'f' AND conrelid = 'objects_passkey'::regclass
    LOOP
        EXECUTE format(
            'ALTER TABLE objects_passkey DROP CONSTRAINT %I, ADD CONSTRAINT %I FOREIGN KEY'
            ' (user_id) REFERENCES objects_user (object_id) ON DELETE CASCADE',
            found.conname, found.conname);
    END LOOP;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("objects", "0007_passkeys")]

    operations = [migrations.RunSQL(CASCADE, migrations.RunSQL.noop)]
