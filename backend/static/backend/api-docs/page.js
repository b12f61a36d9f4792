// Asks for the keys, loads the document with them, and lets Swagger UI send them with requests.
"use strict";

(() => {
  const HEADERS = {
    applicationId: "X-Svc-Application-Id",
    restApiKey: "X-Svc-REST-API-Key",
    masterKey: "X-Svc-Master-Key",
    sessionToken: "X-Svc-Session-Token",
  };
  const STORE = "api-docs-keys";
  const mount = document.body.dataset.mount;
  const form = document.getElementById("keys");
  const message = document.getElementById("message");
  const base = location.origin + mount;

  function kept() {
    try {
      return JSON.parse(sessionStorage.getItem(STORE)) || {};
    } catch {
      return {};
    }
  }

  function given() {
    const keys = {};
    for (const name of Object.keys(HEADERS)) {
      const value = form.elements[name].value.trim();
      if (value) keys[name] = value;
    }
    return keys;
  }

  function headers(keys) {
    return Object.fromEntries(Object.entries(keys).map(([name, value]) => [HEADERS[name], value]));
  }

  function say(text, failed) {
    message.textContent = text;
    message.classList.toggle("failed", Boolean(failed));
  }

  // The keys go to this service and nowhere else, whatever the document says.
  function signed(request, keys) {
    const url = new URL(request.url, location.href);
    if (url.origin === location.origin && url.pathname.startsWith(mount + "/")) {
      request.headers = { ...request.headers, ...headers(keys) };
    }
    return request;
  }

  async function loaded(keys) {
    const response = await fetch(`${base}/openapi.json`, { headers: headers(keys) });
    const answer = await response.json();
    if (!response.ok) throw new Error(`${answer.error} (code ${answer.code})`);
    return answer;
  }

  async function show() {
    const keys = given();
    say("Loading …");
    try {
      const api = await loaded(keys);
      sessionStorage.setItem(STORE, JSON.stringify(keys));
      // The page's own address may be another one of the same service.
      api.servers = [{ url: base }];
      SwaggerUIBundle({
        spec: api,
        domNode: document.getElementById("api"),
        deepLinking: true,
        docExpansion: "none",
        defaultModelsExpandDepth: 0,
        displayRequestDuration: true,
        filter: true,
        validatorUrl: null,
        requestInterceptor: (request) => signed(request, keys),
        // The keys are asked for above, once for all operations.
        plugins: [{ wrapComponents: { authorizeBtn: () => () => null, authorizeOperationBtn: () => () => null } }],
      });
      say("");
    } catch (error) {
      document.getElementById("api").replaceChildren();
      say(error.message, true);
    }
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    show();
  });
  form.addEventListener("reset", () => {
    sessionStorage.removeItem(STORE);
    document.getElementById("api").replaceChildren();
    say("");
  });

  const keys = kept();
  for (const [name, value] of Object.entries(keys)) {
    if (name in HEADERS) form.elements[name].value = value;
  }
  if (keys.applicationId) show();
})();
