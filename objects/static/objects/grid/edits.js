// Edits: what is saved, in turn, and what became of it. Each edit names the version of its object that
// it is based on; edits that were saved can be undone by others that check the version too.

import { editText, shortText } from "./cells.js";
import { request } from "./requests.js";
import { rowData } from "./table.js";

const MOST_UNDONE = 100;

export class Edits {
  /** `report(outcome)` is called after each save; `progress(text)` while one goes on. */
  constructor(table, config, { report, progress }) {
    this.table = table;
    this.config = config;
    this.report = report;
    this.progress = progress;
    this.undoable = [];
    this.redoable = [];
    this.pending = 0;
    this.turn = Promise.resolve();
    addEventListener("beforeunload", (event) => {
      if (this.pending) event.preventDefault();
    });
  }

  /** Save changes, each `{id, cells: {field: {text} | {value}}}`. `of` is "edit", "undo" or "redo". */
  save(changes, of = "edit") {
    this.pending += 1;
    for (const change of changes) this.mark(change);
    this.turn = this.turn
      .then(() => this.send(changes, of))
      .finally(() => {
        this.pending -= 1;
      });
    return this.turn;
  }

  undo() {
    const entry = this.undoable.pop();
    if (entry) this.save(entry, "undo");
  }

  redo() {
    const entry = this.redoable.pop();
    if (entry) this.save(entry, "redo");
  }

  // Show what was entered until the response is there.
  mark({ id, cells }) {
    const row = this.table.row(id);
    if (!row) return;
    const shown = {};
    for (const [name, entered] of Object.entries(cells)) {
      const before = plain(row.getData()[name]);
      const text = entered.text === undefined ? shortText(before) : entered.text;
      const cell = { kind: before?.kind ?? "string", text: text ?? "", before, state: "saving" };
      shown[name] = cell;
    }
    this.table.update(id, shown);
  }

  async send(changes, of) {
    const outcome = { of, saved: [], conflicts: [], errors: [] };
    const entry = [];
    const columns = this.table.columns().map((column) => column.name);
    for (let at = 0; at < changes.length; at += this.config.mostObjects) {
      if (changes.length > 1) this.progress(`Saving ${at + 1} of ${changes.length}…`);
      const some = changes.slice(at, at + this.config.mostObjects);
      const results = await this.results(some, columns);
      some.forEach((change, index) => this.take(change, results[index], outcome, entry));
    }
    if (entry.length) this.remember(entry, of);
    this.progress("");
    this.report(outcome);
  }

  async results(changes, columns) {
    try {
      const body = {
        columns: columns.join(","),
        changes: changes.map(({ id, cells, version }) => ({
          id,
          cells,
          version: version ?? this.table.row(id)?.getData().$version ?? "",
        })),
      };
      return (await request(this.config.urls.cells, { method: "POST", body })).results;
    } catch (error) {
      return changes.map(({ id }) => ({ id, status: "error", error: error.message, field: null }));
    }
  }

  take(change, result, outcome, entry) {
    const row = this.table.row(change.id);
    const data = row?.getData() ?? {};
    if (result.status === "error") {
      for (const [name, entered] of Object.entries(change.cells)) {
        const isAtFault = result.field === null || result.field === name;
        const before = plain(data[name]);
        const text = entered.text === undefined ? editText(before) : entered.text;
        const wrong = { ...(before ?? { kind: "string", text: "" }), before, entered: text };
        const shown = isAtFault ? { ...wrong, state: "error", error: result.error } : before;
        this.table.update(change.id, { [name]: shown });
      }
      outcome.errors.push({ change, ...result });
      return;
    }
    if (result.status === "conflict") outcome.conflicts.push({ change, ...result });
    else {
      outcome.saved.push({ change, ...result });
      entry.push({ id: change.id, cells: result.before });
    }
    if (!row) return;
    const cells = Object.fromEntries(this.table.columns().map(({ name }) => [name, undefined]));
    Object.assign(cells, result.cells);
    if (result.status === "conflict")
      for (const name of Object.keys(change.cells))
        cells[name] = { kind: "string", text: "", ...cells[name], state: "conflict" };
    this.table.update(change.id, rowData({ id: change.id, version: result.version, cells }));
  }

  remember(entry, of) {
    const list = of === "undo" ? this.redoable : this.undoable;
    if (of === "edit") this.redoable.length = 0;
    list.push(entry);
    if (list.length > MOST_UNDONE) list.shift();
  }

  /** Show the stored value of a cell again instead of what couldn't be saved. */
  discard(id, names) {
    const row = this.table.row(id);
    if (!row) return;
    for (const name of names) this.table.update(id, { [name]: plain(row.getData()[name]) });
  }
}

// The cell as it is stored.
function plain(cell) {
  if (!cell?.state) return cell;
  if ("before" in cell) return plain(cell.before);
  const { state, error, entered, ...stored } = cell;
  return stored;
}
