"""A page of Parse Dashboard that remembers each request that failed."""

from __future__ import annotations

from time import monotonic
from typing import Any, Final

from playwright.sync_api import ConsoleMessage, Error, Locator, Page, Response, expect

from tests.chromium import PATIENCE
from tests.other_process import OtherProcess

# What the page itself says about requests is reported with the request.
_QUIET: Final = 0.5  # seconds
_REPORTED: Final = ("Failed to load resource",)
# Warnings of the dashboard's own libraries, which have nothing to do with a server.
_OWN: Final = ("Warning:", "findDOMNode", "componentWill")
# The dialog of protected fields observes a table that may be gone when the observer is called.
_OBSERVER: Final = "reading 'toggleActive'"


class Dashboard:
    """An app in Parse Dashboard; ``check`` raises if something has failed meanwhile."""

    def __init__(self, page: Page, url: str, service: OtherProcess) -> None:
        self.page, self.url, self.service = page, url, service
        self.failures: list[str] = []
        self.requests: list[str] = []
        page.set_default_timeout(PATIENCE)
        self._pending: set[Any] = set()
        self._active_at = monotonic()
        page.on("request", self._on_request)
        page.on("requestfinished", self._on_end)
        page.on("response", self._on_response)
        page.on("requestfailed", self._on_failed)
        page.on("console", self._on_console)
        page.on("pageerror", self._on_error)

    def _on_response(self, response: Response) -> None:
        request = response.request
        if response.url.startswith(self.service.url):
            self.requests.append(f"{request.method} {response.url}")
        if response.status >= 400:
            body = request.post_data or ""
            self.failures.append(f"{response.status} {request.method} {response.url} {body[:300]}")

    def _on_request(self, request: Any) -> None:
        self._pending.add(request)
        self._active_at = monotonic()

    def _on_end(self, request: Any) -> None:
        self._pending.discard(request)
        self._active_at = monotonic()

    def _on_failed(self, request: Any) -> None:
        self._on_end(request)
        # A page that is left cancels what it was loading.
        if request.failure != "net::ERR_ABORTED":
            self.failures.append(f"{request.failure} {request.method} {request.url}")

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith((*_REPORTED, *_OWN)):
            self.failures.append(f"console: {message.text[:300]}")

    def _on_error(self, error: Error) -> None:
        if _OBSERVER not in error.message:
            self.failures.append(f"error of the page: {error.message}")

    def check(self) -> None:
        """Raise ``AssertionError`` if a request or the page has failed."""
        assert not self.failures, "\n".join(self.failures)

    def open(self, path: str) -> None:
        """Open a page of the app, and wait until its requests are answered."""
        self.page.goto(f"{self.url}/{path}")
        self.settle()

    def settle(self) -> None:
        """Wait until no request has been under way for a moment.

        The page's state ``networkidle`` is reached once, and not left when a click sends requests.
        """
        end = monotonic() + PATIENCE / 1000
        self._active_at = monotonic()
        while self._pending or monotonic() - self._active_at < _QUIET:
            assert monotonic() < end, f"still under way: {[each.url for each in self._pending]}"
            self.page.wait_for_timeout(50)

    def text(self, text: str) -> Locator:
        return self.page.get_by_text(text, exact=True).first

    def shows(self, text: str) -> None:
        """Wait until the page shows a text."""
        expect(self.page.get_by_text(text).first).to_be_visible(timeout=PATIENCE)

    def click(self, text: str) -> None:
        """Click what has exactly this text, such as a button or an entry of a menu."""
        self.page.get_by_text(text, exact=True).last.click()

    def confirm(self, label: str) -> None:
        """Click a button of the dialog that is open, and wait for its requests."""
        self.page.get_by_role("button", name=label, exact=True).last.click()
        self.settle()

    @property
    def dialog(self) -> Locator:
        """The dialog that is open: what surrounds the row of its buttons."""
        cancel = self.page.get_by_role("button", name="Cancel", exact=True)
        return self.page.locator("div", has=cancel).last.locator("xpath=..")

    def field(self, label: str) -> Locator:
        """The right half of a row of a form. The dashboard's class names are no help: they are
        hashes, which change with each version."""
        return self.page.get_by_text(label, exact=True).last.locator(
            "xpath=ancestor::div[following-sibling::div][1]/following-sibling::div[1]"
        )

    def fill(self, label: str, text: str) -> None:
        self.field(label).locator("input, textarea").first.fill(text)

    def choose(self, label: str, option: str) -> None:
        """Choose an option of a dropdown."""
        self.field(label).click()
        self.page.get_by_text(option, exact=True).last.click()

    def switch(self, label: str) -> None:
        """Switch a toggle on."""
        self.field(label).locator("span").last.click()

    def tick(self, label: str) -> None:
        """Change the first box with this label in the dialog of permissions."""
        self.settle()
        self.page.locator(f"span:text-is('{label}')").first.click()

    def edit(self, text: str, *, to: str, key: str = "Enter", number: int = 0) -> None:
        """Replace the value of a cell that shows ``text``, by default the first."""
        self.page.get_by_text(text, exact=True).nth(number).dblclick()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.type(to)
        self.page.keyboard.press(key)
        self.settle()
