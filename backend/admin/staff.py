"""Staff users and their groups in the admin."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from backend.site.model_admin import ModelAdmin

admin.site.unregister((User, Group))


@admin.register(User)
class StaffAdmin(UserAdmin, ModelAdmin):
    """Staff users, and what they may do. Only superusers are allowed here."""

    section = "Staff"
    icon = "badge"
    sidebar_title = "Staff"
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "is_staff", "is_superuser", "last_login")


@admin.register(Group)
class StaffGroupAdmin(GroupAdmin, ModelAdmin):
    """Groups. ``manage.py prepare`` gives Viewers, Editors and Administrators their permissions."""

    section = "Staff"
    icon = "groups"
