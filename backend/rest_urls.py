"""The REST routes, below ``MOUNT_PATH``, in the order in which the API document shows them.

``routing`` looks a path up by its first words: the order matters only among those that share them.
"""

from __future__ import annotations

from django.urls import path

from backend.endpoints.health import health
from backend.endpoints.openapi import DocsPage, DocumentView
from backend.endpoints.script_log import ScriptLogView
from backend.endpoints.security import SecurityView
from backend.endpoints.server_info import ServerInfoView
from backend.openapi import describe_routes
from chain.views.networks import (
    NetworksView,
    NetworkView,
    ProvidersView,
    ProviderView,
    ResumeView,
)
from functions.views.functions import FunctionView
from functions.views.hooks import (
    FunctionHooksView,
    FunctionHookView,
    TriggerHooksView,
    TriggerHookView,
)
from functions.views.jobs import (
    JobSchedulesView,
    JobScheduleView,
    JobsDataView,
    JobsView,
    JobView,
)
from objects.views.aggregate import AggregateView
from objects.views.batch import BatchView
from objects.views.classes import InstallationsView, ObjectsView, ObjectView
from objects.views.config import ConfigView
from objects.views.email import RequestPasswordResetView, VerificationEmailRequestView
from objects.views.events import EventsView, EventView
from objects.views.files.stored import FileMetadataView, StoredFileView
from objects.views.files.views import FileView, NamelessFileView
from objects.views.pages.views import (
    ChoosePasswordPage,
    NamedPage,
    NoticePage,
    ResendVerificationPage,
    ResetPasswordPage,
    VerifyEmailPage,
)
from objects.views.purchases import PurchaseView
from objects.views.push import PushAudiencesView, PushAudienceView, PushView
from objects.views.schemas import PurgeView, SchemasView, SchemaView
from objects.views.users import (
    ChallengeView,
    LoginAsView,
    LoginView,
    LogoutView,
    MeView,
    OwnSessionView,
    SessionsView,
    SessionView,
    UpgradeSessionView,
    UsersView,
    UserView,
    VerifyPasswordView,
)

urlpatterns = [
    # The JavaScript SDK asks for users here as well.
    path("classes/_User/<str:object_id>", UserView.as_view(), {"class_name": "_User"}),
    path("classes/_User", UsersView.as_view(), {"class_name": "_User"}),
    path("classes/_Session/<str:object_id>", SessionView.as_view(), {"class_name": "_Session"}),
    path("classes/_Session", SessionsView.as_view(), {"class_name": "_Session"}),
    path("classes/<str:class_name>/<str:object_id>", ObjectView.as_view()),
    path("classes/<str:class_name>", ObjectsView.as_view()),
    path("users/me", MeView.as_view()),
    path("users/<str:object_id>", UserView.as_view(), {"class_name": "_User"}),
    path("users", UsersView.as_view(), {"class_name": "_User"}),
    path("login", LoginView.as_view()),
    path("logout", LogoutView.as_view()),
    path("loginAs", LoginAsView.as_view()),
    path("verifyPassword", VerifyPasswordView.as_view()),
    path("challenge", ChallengeView.as_view()),
    path("upgradeToRevocableSession", UpgradeSessionView.as_view()),
    path("requestPasswordReset", RequestPasswordResetView.as_view()),
    path("verificationEmailRequest", VerificationEmailRequestView.as_view()),
    path("sessions/me", OwnSessionView.as_view()),
    path("sessions/<str:object_id>", SessionView.as_view(), {"class_name": "_Session"}),
    path("sessions", SessionsView.as_view(), {"class_name": "_Session"}),
    path("roles/<str:object_id>", ObjectView.as_view(), {"class_name": "_Role"}),
    path("roles", ObjectsView.as_view(), {"class_name": "_Role"}),
    path("installations/<str:object_id>", ObjectView.as_view(), {"class_name": "_Installation"}),
    path("installations", InstallationsView.as_view(), {"class_name": "_Installation"}),
    path("push", PushView.as_view()),
    path("push_audiences/<str:object_id>", PushAudienceView.as_view()),
    path("push_audiences", PushAudiencesView.as_view()),
    path("files/<str:app_id>/metadata/<path:name>", FileMetadataView.as_view()),
    path("files/<str:app_id>/<path:name>", StoredFileView.as_view()),
    path("files/<str:name>", FileView.as_view()),
    path("files", NamelessFileView.as_view()),
    path("batch", BatchView.as_view()),
    path("config", ConfigView.as_view()),
    path("schemas", SchemasView.as_view()),
    path("schemas/<str:class_name>", SchemaView.as_view()),
    path("purge/<str:class_name>", PurgeView.as_view()),
    path("aggregate/<str:class_name>", AggregateView.as_view()),
    path("events/<str:name>", EventView.as_view()),
    path("events", EventsView.as_view()),
    path("validate_purchase", PurchaseView.as_view()),
    path("apps/choose_password", ChoosePasswordPage.as_view()),
    path("apps/<str:notice>", NamedPage.as_view()),
    path("apps/<str:app_id>/verify_email", VerifyEmailPage.as_view()),
    path("apps/<str:app_id>/resend_verification_email", ResendVerificationPage.as_view()),
    path("apps/<str:app_id>/request_password_reset", ResetPasswordPage.as_view()),
    path("apps/<str:app_id>/<str:notice>", NoticePage.as_view()),
    path("functions/<str:name>", FunctionView.as_view()),
    path("jobs/<str:name>", JobView.as_view()),
    path("jobs", JobsView.as_view()),
    path("cloud_code/jobs/data", JobsDataView.as_view()),
    path("cloud_code/jobs/<str:name>", JobScheduleView.as_view()),
    path("cloud_code/jobs", JobSchedulesView.as_view()),
    path("hooks/functions/<str:name>", FunctionHookView.as_view()),
    path("hooks/functions", FunctionHooksView.as_view()),
    path("hooks/triggers/<str:class_name>/<str:trigger_name>", TriggerHookView.as_view()),
    path("hooks/triggers", TriggerHooksView.as_view()),
    path("networks", NetworksView.as_view()),
    path("networks/<str:network_id>", NetworkView.as_view()),
    path("networks/<str:network_id>/providers", ProvidersView.as_view()),
    path("networks/<str:network_id>/providers/<path:name>", ProviderView.as_view()),
    path("networks/<str:network_id>/resume", ResumeView.as_view()),
    path("health", health),
    path("serverInfo", ServerInfoView.as_view()),
    path("scriptlog", ScriptLogView.as_view()),
    path("security", SecurityView.as_view()),
    path("openapi.json", DocumentView.as_view()),
    path("docs", DocsPage.as_view()),
]

describe_routes(urlpatterns)
