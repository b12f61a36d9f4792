"""Users, sessions, roles, installations, and what is kept about them apart from objects."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


# As every class's objects: any field by equality, and the newest first.
INDEXES = "".join(
    f"CREATE INDEX objects_{name}_data ON objects_{name} USING gin (data jsonb_path_ops);"
    f"CREATE INDEX objects_{name}_age ON objects_{name} (created_at, object_id);"
    for name in ("user", "session", "role", "installation")
)
# No number comes twice, also not after one was rolled back.
VERSION = "CREATE SEQUENCE objects_role_version_number;"


class Migration(migrations.Migration):
    dependencies = [
        ("objects", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="User",
            fields=[
                ("created_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField()),
                (
                    "read_acl",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), blank=True, null=True, size=None
                    ),
                ),
                (
                    "write_acl",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), blank=True, null=True, size=None
                    ),
                ),
                ("data", models.JSONField(default=dict)),
                (
                    "object_id",
                    models.TextField(db_collation="C", primary_key=True, serialize=False),
                ),
                ("username", models.TextField(blank=True, db_collation="C", null=True)),
                ("email", models.TextField(blank=True, db_collation="C", null=True)),
                ("email_verified", models.BooleanField(blank=True, null=True)),
                ("auth_data", models.JSONField(blank=True, null=True)),
                ("username_key", models.TextField(blank=True, db_collation="C", null=True)),
                ("email_key", models.TextField(blank=True, db_collation="C", null=True)),
            ],
            options={
                "db_table": "objects_user",
            },
        ),
        migrations.CreateModel(
            name="FormerPassword",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("encoded", models.TextField()),
                ("replaced_at", models.DateTimeField()),
            ],
            options={
                "db_table": "objects_former_password",
            },
        ),
        migrations.CreateModel(
            name="Identity",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "provider",
                        "external_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("provider", models.TextField(db_collation="C")),
                ("external_id", models.TextField(db_collation="C")),
            ],
            options={
                "db_table": "objects_identity",
            },
        ),
        migrations.CreateModel(
            name="Installation",
            fields=[
                ("created_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField()),
                (
                    "read_acl",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), blank=True, null=True, size=None
                    ),
                ),
                (
                    "write_acl",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), blank=True, null=True, size=None
                    ),
                ),
                ("data", models.JSONField(default=dict)),
                (
                    "object_id",
                    models.TextField(db_collation="C", primary_key=True, serialize=False),
                ),
                ("installation_id", models.TextField(blank=True, db_collation="C", null=True)),
                ("device_token", models.TextField(blank=True, db_collation="C", null=True)),
                ("device_type", models.TextField(blank=True, db_collation="C", null=True)),
                ("channels", models.JSONField(blank=True, null=True)),
            ],
            options={
                "db_table": "objects_installation",
            },
        ),
        migrations.CreateModel(
            name="MailToken",
            fields=[
                ("token_hash", models.BinaryField(primary_key=True, serialize=False)),
                (
                    "purpose",
                    models.TextField(
                        choices=[("verify", "Verify Email"), ("reset", "Reset Password")]
                    ),
                ),
                ("email", models.TextField()),
                ("created_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "objects_mail_token",
            },
        ),
        migrations.CreateModel(
            name="RecoveryCode",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("code_hash", models.BinaryField()),
            ],
            options={
                "db_table": "objects_recovery_code",
            },
        ),
        migrations.CreateModel(
            name="Role",
            fields=[
                ("created_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField()),
                (
                    "read_acl",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), blank=True, null=True, size=None
                    ),
                ),
                (
                    "write_acl",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), blank=True, null=True, size=None
                    ),
                ),
                ("data", models.JSONField(default=dict)),
                (
                    "object_id",
                    models.TextField(db_collation="C", primary_key=True, serialize=False),
                ),
                ("name", models.TextField(blank=True, db_collation="C", null=True)),
            ],
            options={
                "db_table": "objects_role",
            },
        ),
        migrations.CreateModel(
            name="RoleVersion",
            fields=[
                ("id", models.SmallIntegerField(primary_key=True, serialize=False)),
                ("version", models.BigIntegerField()),
            ],
            options={
                "db_table": "objects_role_version",
            },
        ),
        migrations.CreateModel(
            name="Session",
            fields=[
                ("created_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField()),
                (
                    "read_acl",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), blank=True, null=True, size=None
                    ),
                ),
                (
                    "write_acl",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.TextField(), blank=True, null=True, size=None
                    ),
                ),
                ("data", models.JSONField(default=dict)),
                (
                    "object_id",
                    models.TextField(db_collation="C", primary_key=True, serialize=False),
                ),
                ("user", models.TextField(blank=True, db_collation="C", null=True)),
                ("installation_id", models.TextField(blank=True, db_collation="C", null=True)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("created_with", models.JSONField(blank=True, null=True)),
                ("token_hash", models.BinaryField(null=True, unique=True)),
            ],
            options={
                "db_table": "objects_session",
            },
        ),
        migrations.CreateModel(
            name="FailedLogins",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="objects.user",
                    ),
                ),
                ("count", models.IntegerField()),
                ("locked_until", models.DateTimeField(null=True)),
            ],
            options={
                "db_table": "objects_failed_logins",
            },
        ),
        migrations.CreateModel(
            name="Password",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="objects.user",
                    ),
                ),
                ("encoded", models.TextField()),
                ("changed_at", models.DateTimeField()),
            ],
            options={
                "db_table": "objects_password",
            },
        ),
        migrations.CreateModel(
            name="SecondFactor",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="objects.user",
                    ),
                ),
                ("secret", models.TextField()),
                ("last_step", models.BigIntegerField(default=0)),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "db_table": "objects_second_factor",
            },
        ),
        migrations.AddConstraint(
            model_name="user",
            constraint=models.UniqueConstraint(
                fields=("username_key",), name="objects_user_username_unique"
            ),
        ),
        migrations.AddConstraint(
            model_name="user",
            constraint=models.UniqueConstraint(
                fields=("email_key",), name="objects_user_email_unique"
            ),
        ),
        migrations.AddField(
            model_name="formerpassword",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="former_passwords",
                to="objects.user",
            ),
        ),
        migrations.AddField(
            model_name="identity",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="identities",
                to="objects.user",
            ),
        ),
        migrations.AddIndex(
            model_name="installation",
            index=models.Index(fields=["device_token"], name="objects_installation_token"),
        ),
        migrations.AddConstraint(
            model_name="installation",
            constraint=models.UniqueConstraint(
                fields=("installation_id",), name="objects_installation_id_unique"
            ),
        ),
        migrations.AddField(
            model_name="mailtoken",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="mail_tokens",
                to="objects.user",
            ),
        ),
        migrations.AddField(
            model_name="recoverycode",
            name="user",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="recovery_codes",
                to="objects.user",
            ),
        ),
        migrations.AddConstraint(
            model_name="role",
            constraint=models.UniqueConstraint(fields=("name",), name="objects_role_name_unique"),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(fields=["user"], name="objects_session_user"),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(fields=["expires_at"], name="objects_session_expiry"),
        ),
        migrations.AddConstraint(
            model_name="identity",
            constraint=models.UniqueConstraint(
                fields=("user", "provider"), name="objects_identity_of_user_unique"
            ),
        ),
        migrations.AddIndex(
            model_name="mailtoken",
            index=models.Index(fields=["user", "purpose"], name="objects_mail_token_user"),
        ),
        migrations.AddConstraint(
            model_name="recoverycode",
            constraint=models.UniqueConstraint(
                fields=("user", "code_hash"), name="objects_recovery_code_unique"
            ),
        ),
        migrations.RunSQL(INDEXES, migrations.RunSQL.noop),
        migrations.RunSQL(VERSION, "DROP SEQUENCE objects_role_version_number;"),
    ]
