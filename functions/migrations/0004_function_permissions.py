"""Who of the staff may see server functions, and call them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("functions", "0003_webhooks")]

    operations = [
        migrations.CreateModel(
            name="Function",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
            ],
            options={
                "permissions": (("call_function", "Can call server functions"),),
                "managed": False,
                "default_permissions": ("view",),
            },
        ),
    ]
