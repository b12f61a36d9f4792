// The menu of columns: which are shown, in which order.

import { element } from "./cells.js";

const NEW_WIDTH = 140;

export class ColumnMenu {
  /** `choose(columns)` shows other columns; `reset()` returns to the proposal. */
  constructor(box, config, { columns, choose, reset }) {
    this.box = box;
    this.config = config;
    this.columns = columns;
    this.choose = choose;
    this.reset = reset;
    box.closest("details").addEventListener("toggle", () => this.paint());
  }

  paint() {
    const shown = this.columns();
    const names = shown.map((column) => column.name);
    const others = this.config.fields
      .map((field) => field.name)
      .filter((name) => name !== "objectId" && !names.includes(name));
    const list = element("ul", "grid-column-list");
    for (const name of [...names, ...others]) list.append(this.item(name, shown));
    const reset = element("button", "sv-button grid-small", "Reset");
    reset.type = "button";
    reset.title = "Return to the columns that suit the first objects";
    reset.addEventListener("click", () => this.reset());
    this.box.replaceChildren(list, reset);
  }

  item(name, shown) {
    const at = shown.findIndex((column) => column.name === name);
    const item = element("li", "");
    const label = element("label", "");
    const tick = element("input", "");
    tick.type = "checkbox";
    tick.checked = at >= 0;
    tick.disabled = at >= 0 && shown.length === 1;
    tick.addEventListener("change", () => {
      const others = this.columns().filter((column) => column.name !== name);
      this.change(tick.checked ? [...others, { name, width: NEW_WIDTH }] : others, name);
    });
    label.append(tick, ` ${name}`);
    item.append(label);
    if (at > 0) item.append(this.mover(name, -1, "↑", "earlier"));
    if (at >= 0 && at < shown.length - 1) item.append(this.mover(name, 1, "↓", "later"));
    return item;
  }

  mover(name, by, sign, word) {
    const mover = element("button", "grid-mover", sign);
    mover.type = "button";
    mover.setAttribute("aria-label", `Move ${name} ${word}`);
    mover.addEventListener("click", () => {
      const columns = [...this.columns()];
      const at = columns.findIndex((column) => column.name === name);
      columns.splice(at + by, 0, ...columns.splice(at, 1));
      this.change(columns, name);
    });
    return mover;
  }

  async change(columns, name) {
    await this.choose(columns);
    this.paint();
    const labels = [...this.box.querySelectorAll("label")];
    labels.find((label) => label.textContent.trim() === name)?.querySelector("input").focus();
  }
}
