// Requests to the JSON endpoints of the admin.

/** An error response: `message` is its text, `code` that of the service, 0 without a response. */
export class RequestError extends Error {
  constructor(message, code = 0) {
    super(message);
    this.code = code;
  }
}

function token() {
  return document.querySelector("input[name=csrfmiddlewaretoken]")?.value ?? "";
}

/** Return the body of the response. Throws `RequestError`. With `keepalive` it outlives the page. */
export async function request(url, { method = "GET", body, signal, keepalive = false } = {}) {
  const headers = { Accept: "application/json", "X-CSRFToken": token() };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(url, { method, headers, signal, keepalive, body: JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new RequestError("The server can't be reached. Check the connection and try again.");
  }
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  throw new RequestError(answer.error ?? `The server responded with ${response.status}.`, answer.code);
}

/** Return a query string of the parameters that have a value. */
export function query(parameters) {
  const entries = Object.entries(parameters).filter(([, value]) => value);
  return new URLSearchParams(entries).toString();
}
