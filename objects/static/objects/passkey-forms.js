// Forms with data-passkey="create" or "get": hand data-options to the browser, and send what the
// authenticator answers in the input "answer".
"use strict";

(() => {
  const bytes = (text) =>
    Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
  const text = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
  const descriptors = (list) => (list || []).map((item) => ({ ...item, id: bytes(item.id) }));

  async function create(options) {
    const publicKey = {
      ...options,
      challenge: bytes(options.challenge),
      user: { ...options.user, id: bytes(options.user.id) },
      excludeCredentials: descriptors(options.excludeCredentials),
    };
    const credential = await navigator.credentials.create({ publicKey });
    const { response } = credential;
    return {
      id: credential.id,
      rawId: credential.id,
      type: credential.type,
      response: {
        clientDataJSON: text(response.clientDataJSON),
        attestationObject: text(response.attestationObject),
        transports: response.getTransports ? response.getTransports() : [],
      },
    };
  }

  async function get(options) {
    const publicKey = {
      ...options,
      challenge: bytes(options.challenge),
      allowCredentials: descriptors(options.allowCredentials),
    };
    const credential = await navigator.credentials.get({ publicKey });
    const { response } = credential;
    return {
      id: credential.id,
      rawId: credential.id,
      type: credential.type,
      response: {
        clientDataJSON: text(response.clientDataJSON),
        authenticatorData: text(response.authenticatorData),
        signature: text(response.signature),
        userHandle: response.userHandle ? text(response.userHandle) : null,
      },
    };
  }

  const ceremonies = { create, get };
  if (!window.PublicKeyCredential) return;
  for (const form of document.querySelectorAll("form[data-passkey]")) {
    const status = form.querySelector("[role=status]");
    status.textContent = "";
    for (const hidden of form.querySelectorAll("[hidden]")) hidden.hidden = false;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      status.textContent = "Follow what your browser shows.";
      try {
        const answer = await ceremonies[form.dataset.passkey](JSON.parse(form.dataset.options));
        form.elements.answer.value = JSON.stringify(answer);
      } catch (error) {
        status.textContent =
          error.name === "InvalidStateError"
            ? "This device has a passkey of yours already."
            : `The browser made no passkey available (${error.name}). Try again.`;
        return;
      }
      form.submit();
    });
  }
})();
