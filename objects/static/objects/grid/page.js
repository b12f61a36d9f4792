// The page of a class's objects: loads pages of rows into the table, or into cards on narrow screens.

import { showCards } from "./cards.js";
import { Drawer } from "./drawer.js";
import { Edits } from "./edits.js";
import { ColumnMenu } from "./menus.js";
import { Ranges } from "./ranges.js";
import { query, request, RequestError } from "./requests.js";
import { Results } from "./results.js";
import { Selection } from "./selection.js";
import { Table } from "./table.js";

const at = (id) => document.getElementById(id);
const config = JSON.parse(at("grid-config").textContent);
const address = new URLSearchParams(location.search);
config.where = address.get("where") ?? "";
config.order = address.get("order") ?? "";
config.view = address.get("view") ?? "";
const opened = {
  after: address.get("after"),
  before: address.get("before"),
  start: Number(address.get("start")) || undefined,
};
const narrow = matchMedia("(max-width: 40rem)");
const BELOW = 16; // pixels of the frame below the page
const number = new Intl.NumberFormat("en");

let columns = [];
let shown = { rows: [], before: null, after: null, estimate: 0, start: 1 };
let size;
let ready = false;
let selection;
let latest = 0; // counts loads; only the last one is shown

const table = new Table(at("grid"), config, {
  edited: (cell, text) =>
    edits.save([{ id: cell.getRow().getData().$id, cells: { [cell.getField()]: { text } } }]),
  selected: () => selection?.show(),
  arranged: () => arranged(),
  opened: (id) => drawer.open(id),
});
const drawer = new Drawer(at("grid-drawer"), config, {
  saved: async () => {
    await reload();
    say("Saved.");
  },
  closed: () => table.move(""),
});
const edits = new Edits(table, config, {
  report: (outcome) => {
    results.show(outcome, skipped);
    skipped = [];
    showHistory();
  },
  progress: (text) => say(text),
});
let skipped = [];
const results = new Results(at("grid-results"), at("grid-status"), {
  edits,
  nameOf: (id) => table.row(id)?.getData()[columns[0]?.name]?.text || id,
  goTo: (id, name) => {
    const row = table.row(id);
    if (!row) return;
    row.scrollTo("center", false);
    const cell = row.getCell(name);
    if (cell) table.table.modules.selectRange.resetRanges().setBounds(cell._cell);
    table.move("");
  },
});
new Ranges(table, {
  save: (changes, texts) => {
    skipped = texts;
    edits.save(changes);
  },
  say,
});
selection = new Selection(table, config, {
  save: (changes) => edits.save(changes),
  say,
  deleted: async (outcomes) => {
    await reload();
    results.showDeleted(outcomes);
  },
});
new ColumnMenu(at("grid-columns"), config, {
  columns: () => columns,
  choose: (chosen) => choose(chosen),
  reset: async () => {
    await request(config.urls.layout, { method: "DELETE" });
    location.reload();
  },
});

function say(text) {
  at("grid-status").textContent = text;
}

function fail(error) {
  if (!(error instanceof RequestError)) throw error;
  const box = at("grid-error");
  box.textContent = error.message;
  box.hidden = false;
}

// -- Pages of rows --------------------------------------------------------------------------------

async function load(edges, { record = true } = {}) {
  const turn = ++latest;
  at("grid-box").setAttribute("aria-busy", "true");
  const { start, ...cut } = edges;
  const names = columns.map((column) => column.name).join(",");
  const { where, order, view } = config;
  const parameters = { where, order, size, columns: names, view: names ? "" : view, ...cut };
  try {
    const page = await request(`${config.urls.rows}?${query(parameters)}`);
    if (turn !== latest) return;
    at("grid-error").hidden = true;
    if (page.columns.length) columns = page.columns;
    size = page.size;
    at("grid-size").value = String(size);
    const isFirst = !page.before && !cut.after;
    shown = { ...page, start: isFirst ? 1 : (start ?? null) };
    if (cut.before && start) shown.start = isFirst ? 1 : Math.max(1, start - page.rows.length);
    await showRows();
    if (record) remember(cut);
  } catch (error) {
    if (turn === latest) fail(error);
  } finally {
    if (turn === latest) at("grid-box").removeAttribute("aria-busy");
  }
}

// The page that is shown: of the history's state, or of the address that it was opened with.
async function reload() {
  const { before, after, start } = history.state ?? opened;
  await load({ before, after, start }, { record: false });
}

function remember(cut) {
  const start = shown.start > 1 ? shown.start : "";
  const { where, order, view } = config;
  const text = query({ where, order, view, ...cut, start });
  history.pushState({ ...cut, start: shown.start }, "", text ? `?${text}` : location.pathname);
}

async function showRows() {
  const isNarrow = narrow.matches;
  at("grid").hidden = isNarrow;
  at("grid-cards").hidden = !isNarrow;
  if (isNarrow) showCards(at("grid-cards"), shown.rows, columns, config);
  else {
    await table.ready;
    ready = false;
    fit();
    await table.setColumns(columns);
    await table.setRows(shown.rows);
    ready = true;
  }
  showFoot();
}

// The table takes what is left of the window, so that the page itself needn't be scrolled.
function fit() {
  const box = at("grid-box");
  const top = box.getBoundingClientRect().top + scrollY;
  const below = at("grid-foot").offsetHeight + BELOW;
  box.style.height = narrow.matches ? "" : `${Math.max(280, innerHeight - top - below)}px`;
}

function showFoot() {
  const { rows, start, before, after, estimate } = shown;
  const end = start ? start + rows.length - 1 : null;
  const isFiltered = Boolean(config.where);
  let text = rows.length ? `${number.format(rows.length)} objects` : "No objects";
  if (rows.length && start) text = `${number.format(start)} to ${number.format(end)}`;
  if (rows.length && !after && start) text += ` of ${number.format(end)}`;
  else if (!isFiltered && estimate > (end ?? 0)) text += ` of about ${number.format(estimate)}`;
  at("grid-range").textContent = text;
  at("grid-count").hidden = !after && Boolean(start);
  at("grid-back").disabled = !before;
  at("grid-next").disabled = !after;
  at("grid-nearest").hidden = !shown.isByDistance;
  at("grid-slow").hidden = !shown.slowOrder;
  at("grid-slow-name").textContent = shown.slowOrder;
}

at("grid-next").addEventListener("click", () =>
  load({ after: shown.after, start: shown.start && shown.start + shown.rows.length }),
);
at("grid-back").addEventListener("click", () => load({ before: shown.before, start: shown.start }));
at("grid-size").addEventListener("change", () => {
  size = Number(at("grid-size").value);
  store();
  load({});
});
at("grid-count").addEventListener("click", async () => {
  try {
    say("Counting…");
    const { count } = await request(`${config.urls.count}?${query({ where: config.where })}`);
    say(`Counted: ${number.format(count)} objects.`);
  } catch (error) {
    say("");
    fail(error);
  }
});
addEventListener("popstate", (event) => load(event.state ?? opened, { record: false }));
addEventListener("resize", fit);
narrow.addEventListener("change", () => showRows());

// -- Columns --------------------------------------------------------------------------------------

let waiting = null;

async function send() {
  clearTimeout(waiting);
  waiting = null;
  try {
    await request(config.urls.layout, { method: "PUT", body: { columns, size }, keepalive: true });
  } catch (error) {
    fail(error);
  }
}

function store() {
  clearTimeout(waiting);
  waiting = setTimeout(send, 300);
}

// A choice is also stored if the page is left at once.
addEventListener("pagehide", () => waiting && send());

function arranged() {
  if (!ready) return;
  columns = table.columns();
  store();
}

async function choose(chosen) {
  columns = chosen;
  store();
  await reload();
}

// -- Undo --------------------------------------------------------------------------

function showHistory() {
  if (!at("grid-undo")) return;
  at("grid-undo").disabled = !edits.undoable.length;
  at("grid-redo").disabled = !edits.redoable.length;
}

at("grid-undo")?.addEventListener("click", () => edits.undo());
at("grid-redo")?.addEventListener("click", () => edits.redo());
document.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.target.closest("input, textarea, select")) return;
  const key = event.key.toLowerCase();
  if (key === "z" && !event.shiftKey) edits.undo();
  else if (key === "y" || (key === "z" && event.shiftKey)) edits.redo();
  else return;
  event.preventDefault();
});

// -- Saved views ----------------------------------------------------------------------------------

at("grid-save-view")?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  const { where, order } = config;
  const isShared = Boolean(form.elements.shared?.checked);
  const body = { name: form.elements.name.value, isShared, where, order, columns, size };
  try {
    const { address: saved } = await request(config.urls.views, { method: "POST", body });
    location.search = saved;
  } catch (error) {
    fail(error);
  }
});
for (const button of document.querySelectorAll("[data-view]"))
  button.addEventListener("click", async () => {
    try {
      await request(button.dataset.view, { method: "DELETE" });
      button.closest("li").remove();
    } catch (error) {
      fail(error);
    }
  });

// -- Menus ----------------------------------------------------------------------------------------

// One menu at a time; Esc and a click elsewhere close it.
const menus = [...document.querySelectorAll(".grid-menu")];
document.addEventListener("click", (event) => {
  for (const menu of menus) if (!menu.contains(event.target)) menu.open = false;
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of menus.filter((other) => other.open && other.contains(event.target))) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

load(opened, { record: false });
