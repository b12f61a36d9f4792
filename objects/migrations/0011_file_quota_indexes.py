"""Indexes of quotas, and a quota that goes with its user.

Django makes foreign keys at the end of a migration, so this one stands by itself.
"""

from django.db import migrations, models

# Also when SQL removes the row and not the ORM.
CASCADE = """
DO $$
DECLARE found record;
BEGIN
    FOR found IN
        SELECT conname FROM pg_constraint
        WHERE contype = 'f' AND conrelid = 'objects_file_quota'::regclass
    LOOP
        EXECUTE format(
            'ALTER TABLE objects_file_quota DROP CONSTRAINT %I, ADD CONSTRAINT %I FOREIGN KEY'
            ' (user_id) REFERENCES objects_user (object_id) ON DELETE CASCADE',
            found.conname, found.conname);
    END LOOP;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("objects", "0010_file_quotas")]

    operations = [
        migrations.RunSQL(CASCADE, migrations.RunSQL.noop),
        migrations.AddIndex(
            "storedfile",
            models.Index(
                fields=("charged_to",),
                condition=models.Q(charged_to__isnull=False),
                include=("size",),
                name="objects_file_charged",
            ),
        ),
        migrations.AddIndex(
            "storedfile",
            models.Index(
                fields=("created_at",),
                condition=models.Q(complete=False),
                name="objects_file_unfinished",
            ),
        ),
    ]
