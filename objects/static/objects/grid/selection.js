// Actions on the rows that are ticked: set a field, export, delete.

import { element } from "./cells.js";
import { query, request } from "./requests.js";

const at = (id) => document.getElementById(id);

function count(ids, className) {
  return `${ids.length.toLocaleString("en")} object${ids.length === 1 ? "" : "s"} of ${className}`;
}

export class Selection {
  /** `save(changes)` saves edits, `say(text)` shows progress, `deleted(results)` what became of it. */
  constructor(table, config, { save, say, deleted }) {
    this.table = table;
    this.config = config;
    this.save = save;
    this.say = say;
    this.deleted = deleted;
    at("grid-set")?.addEventListener("click", () => this.openSet());
    at("grid-delete")?.addEventListener("click", () => this.openDelete());
    this.onClose("grid-set-dialog", () => this.set());
    this.onClose("grid-delete-dialog", () => this.delete());
  }

  get ids() {
    return [...this.table.ticked];
  }

  // Cancel and Esc leave the value of the dialog empty.
  onClose(id, act) {
    const dialog = at(id);
    dialog?.addEventListener("close", () => {
      const isChosen = dialog.returnValue === "do";
      dialog.returnValue = "";
      if (isChosen) act();
    });
  }

  show() {
    const ids = this.ids;
    at("grid-selection").hidden = !ids.length;
    at("grid-selected").textContent = `${ids.length.toLocaleString("en")} selected`;
    const where = JSON.stringify({ objectId: { $in: ids } });
    at("grid-export").href = `${this.config.export}?${query({ where })}`;
  }

  openSet() {
    const dialog = at("grid-set-dialog");
    at("grid-set-title").textContent = `Set a field of ${count(this.ids, this.config.className)}`;
    const select = dialog.querySelector("select");
    if (!select.options.length)
      for (const field of this.config.fields.filter((other) => other.isEditable)) {
        const option = element("option", "", `${field.name} (${field.type})`);
        option.value = field.name;
        select.append(option);
      }
    dialog.showModal();
  }

  set() {
    const form = at("grid-set-dialog").querySelector("form");
    const text = form.elements.text.value;
    const cells = { [form.elements.field.value]: { text: text === "" ? null : text } };
    this.save(this.ids.map((id) => ({ id, cells })));
  }

  openDelete() {
    at("grid-delete-title").textContent = `Delete ${count(this.ids, this.config.className)}?`;
    at("grid-delete-dialog").showModal();
  }

  async delete() {
    const ids = this.ids;
    const results = [];
    for (let first = 0; first < ids.length; first += this.config.mostObjects) {
      this.say(`Deleting ${first + 1} of ${ids.length}…`);
      const some = ids.slice(first, first + this.config.mostObjects);
      try {
        const body = { ids: some };
        const answer = await request(this.config.urls.deletions, { method: "POST", body });
        results.push(...answer.results);
      } catch (error) {
        const failed = { status: "error", error: error.message, field: null };
        results.push(...some.map((id) => ({ id, ...failed })));
      }
    }
    await this.deleted(results);
  }
}
