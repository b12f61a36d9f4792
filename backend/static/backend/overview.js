/* Keeps the start page current while it is looked at. Without script, loading it again does. */

import { drawCharts } from "./charts.js";

const INTERVAL = 20_000; // milliseconds

const overview = document.querySelector("[data-overview]");
let refreshedAt = Date.now();
let openTables = [];
let focused = -1;

const controls = () => [...overview.querySelectorAll("a, summary, [tabindex]")];

function refresh() {
  const isIdle = document.hidden || !getSelection().isCollapsed;
  if (isIdle || Date.now() - refreshedAt < INTERVAL) return;
  refreshedAt = Date.now();
  htmx.trigger(overview, "refresh");
}

function remember(event) {
  // A session that has ended leads to the page for logging in, which is no part of this one.
  const path = new URL(event.detail.xhr.responseURL, location.href).pathname;
  if (path !== new URL(overview.dataset.overview, location.href).pathname) {
    event.detail.shouldSwap = false;
    location.reload();
    return;
  }
  openTables = [...overview.querySelectorAll("figure:has(details[open])")].map(({ id }) => id);
  focused = controls().indexOf(document.activeElement);
}

async function restore() {
  await drawCharts(overview);
  for (const id of openTables) {
    const details = document.getElementById(id)?.querySelector("details");
    if (details) details.open = true;
  }
  controls()[focused]?.focus({ preventScroll: true });
}

function complain() {
  const text = overview.querySelector("[data-read-at]");
  if (text) text.textContent = `not refreshed since ${text.textContent.replace(/^.*since /, "")}`;
}

if (overview) {
  drawCharts(overview);
  overview.addEventListener("htmx:beforeSwap", remember);
  overview.addEventListener("htmx:afterSwap", restore);
  overview.addEventListener("htmx:sendError", complain);
  overview.addEventListener("htmx:responseError", complain);
  document.addEventListener("visibilitychange", refresh);
  setInterval(refresh, 1000);
}
