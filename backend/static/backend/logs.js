/* The pages of the log: times in the browser's time zone, and following new records. Without this
   script times are in UTC, and the page is loaded again to see new ones. */

const INTERVAL = 2000; // milliseconds between two requests for new records
const PAUSE = 10000; // after a failed one
const CHART_EVERY = 15000;
const MOST_ROWS = 500;

const two = (number) => String(number).padStart(2, "0");

function dateOf(time) {
  return `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
}

function clockOf(time) {
  return `${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}

function zoneName() {
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone || "local time";
  const minutes = -new Date().getTimezoneOffset();
  if (minutes === 0) return name === "UTC" ? name : `${name} (UTC)`;
  const sign = minutes < 0 ? "−" : "+";
  const size = Math.abs(minutes);
  const rest = size % 60 ? `:${two(size % 60)}` : "";
  return `${name} (UTC${sign}${Math.floor(size / 60)}${rest})`;
}

/** Write the times of the server, which are in UTC, in the browser's zone. */
function localise(root) {
  for (const element of root.querySelectorAll("time[datetime]:not([data-local])")) {
    const text = element.getAttribute("datetime");
    const time = new Date(text);
    if (Number.isNaN(time.getTime())) continue;
    const milliseconds = text.includes(".") ? `.${String(time.getMilliseconds()).padStart(3, "0")}` : "";
    element.textContent = `${dateOf(time)} ${clockOf(time)}${milliseconds}`;
    element.dataset.local = "";
    element.title = text;
  }
  for (const element of root.querySelectorAll("[data-zone]")) element.textContent = zoneName();
  for (const bar of root.querySelectorAll("svg a[data-start]")) {
    const [start, end] = [new Date(bar.dataset.start), new Date(bar.dataset.end)];
    const title = bar.querySelector("title");
    if (title) title.textContent = `${dateOf(start)} ${clockOf(start)} to ${clockOf(end)}: ${bar.dataset.counts}`;
  }
}

/** Show "from" and "until" in the browser's zone, and send them with its offset. */
function prepareForm(form) {
  const fields = [...form.querySelectorAll("input[type=datetime-local]")];
  for (const field of fields) {
    if (!field.value) continue;
    const time = new Date(`${field.value}Z`);
    field.value = `${dateOf(time)}T${clockOf(time)}`;
  }
  const period = form.querySelector("[data-period]");
  period.addEventListener("change", () => {
    if (period.value) for (const field of fields) field.value = "";
    form.requestSubmit();
  });
  form.addEventListener("submit", () => {
    for (const field of form.querySelectorAll("input, select")) {
      // Addresses are short: what is empty isn't part of them.
      if (!field.value) field.disabled = true;
    }
    for (const field of fields) {
      if (!field.value) continue;
      const hidden = document.createElement("input");
      hidden.type = "hidden";
      hidden.name = field.name;
      hidden.value = new Date(field.value).toISOString();
      field.disabled = true;
      form.append(hidden);
      period.disabled = true;
    }
  });
  // A page that the browser shows again after "back" has the fields as they were sent.
  window.addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    for (const field of form.querySelectorAll(":disabled")) field.disabled = false;
    for (const field of form.querySelectorAll("input[type=hidden]")) field.remove();
  });
}

/** Append new records while the button is pressed, the page is visible and its top is in view. */
class Follower {
  constructor(button, table, status) {
    this.button = button;
    this.table = table;
    this.status = status;
    this.address = new URL(button.dataset.follow, location.href);
    this.timer = 0;
    this.chartAt = Date.now();
    button.hidden = false;
    button.addEventListener("click", () => (this.isOn ? this.stop() : this.start()));
    document.addEventListener("visibilitychange", () => this.resume());
    window.addEventListener("scroll", () => this.resume(), { passive: true });
    // Unfold scrolls a part of the page.
    document.addEventListener("scroll", () => this.resume(), { passive: true, capture: true });
  }

  get isOn() {
    return this.button.getAttribute("aria-pressed") === "true";
  }

  get isPaused() {
    const place = this.table.hidden ? this.status : this.table;
    return document.hidden || place.getBoundingClientRect().top < 0;
  }

  start() {
    this.button.setAttribute("aria-pressed", "true");
    this.button.textContent = "Following";
    this.poll();
  }

  stop() {
    clearTimeout(this.timer);
    this.timer = 0;
    this.button.setAttribute("aria-pressed", "false");
    this.button.textContent = "Follow";
    this.status.textContent = "";
  }

  say(text) {
    if (this.status.textContent !== text) this.status.textContent = text;
  }

  /** Go on where scrolling or another tab has paused. */
  resume() {
    if (!this.isOn) return;
    if (this.isPaused) {
      if (!document.hidden) this.say("Paused while you read. Scroll to the top to go on.");
    } else if (!this.timer && !this.isBusy) {
      this.poll();
    }
  }

  async poll() {
    this.timer = 0;
    if (!this.isOn) return;
    if (this.isPaused) {
      this.resume();
      return;
    }
    let pause = INTERVAL;
    this.isBusy = true;
    try {
      const response = await fetch(this.address, { headers: { Accept: "text/html" }, redirect: "error" });
      if (!response.ok) throw new Error(String(response.status));
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      this.insert(page.querySelector("tbody[data-newest]"));
      this.say("New records appear at the top.");
      if (Date.now() - this.chartAt > CHART_EVERY) await this.refreshChart();
    } catch {
      pause = PAUSE;
      this.say("The log can't be read at the moment. Trying again.");
    }
    this.isBusy = false;
    if (this.isOn) this.timer = setTimeout(() => this.poll(), pause);
  }

  insert(part) {
    this.address.searchParams.set("after", part.dataset.newest);
    const rows = [...part.rows];
    if (rows.length === 0) return;
    localise(part);
    this.table.hidden = false;
    document.querySelector("[data-empty]")?.remove();
    const body = this.table.tBodies[0];
    for (const row of rows) row.classList.add("sv-log-new");
    body.prepend(...rows);
    while (body.rows.length > MOST_ROWS) body.lastElementChild.remove();
  }

  async refreshChart() {
    this.chartAt = Date.now();
    const chart = document.getElementById("chart");
    const response = await fetch(location.href, { redirect: "error" });
    if (!chart || !response.ok) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = page.getElementById("chart");
    if (!fresh) return;
    localise(fresh);
    chart.replaceWith(document.adoptNode(fresh));
  }
}

localise(document);
const form = document.querySelector("[data-log-form]");
if (form) prepareForm(form);
const button = document.querySelector("[data-follow]");
const table = document.querySelector("[data-log]");
if (button && table) new Follower(button, table, document.querySelector("[data-follow-status]"));
