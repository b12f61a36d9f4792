// What became of edits: a list of what was saved and what wasn't, with what to do about it.

import { element, shortText } from "./cells.js";

const MOST = 100; // lines of each list

function plural(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

function button(text, act) {
  const made = element("button", "sv-button grid-small", text);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

function names(change) {
  return Object.keys(change.cells).join(", ");
}

export class Results {
  constructor(panel, status, { edits, nameOf, goTo }) {
    this.nameOf = nameOf;
    this.panel = panel;
    this.status = status;
    this.edits = edits;
    this.goTo = goTo;
    this.open = []; // conflicts and errors that nothing was done about
  }

  /** Show an outcome of `Edits`; `skipped` are texts about cells that nothing was sent for. */
  show({ of, saved, conflicts, errors }, skipped = []) {
    const verb = { edit: "Saved", undo: "Undone", redo: "Redone" }[of];
    const cells = saved.reduce((sum, result) => sum + Object.keys(result.change.cells).length, 0);
    const failed = conflicts.length + errors.length;
    const texts = [];
    if (cells) texts.push(`${verb}: ${plural(cells, "cell")} of ${plural(saved.length, "object")}.`);
    if (conflicts.length) texts.push(`${plural(conflicts.length, "conflict")}.`);
    if (errors.length) texts.push(`${plural(errors.length, "object")} not saved.`);
    this.status.textContent = texts.join(" ");
    const ids = new Set([...saved, ...conflicts, ...errors].map((result) => result.change.id));
    this.open = this.open.filter((result) => !ids.has(result.change.id));
    this.open.push(...conflicts, ...errors);
    const isMany = of === "edit" && saved.length > 1;
    if (failed || skipped.length || this.open.length || isMany)
      this.paint(texts.join(" "), saved, skipped, isMany);
    else this.panel.hidden = true;
  }

  paint(summary, saved, skipped, isMany) {
    const list = element("ul", "grid-lines-of-results");
    for (const result of this.open.slice(0, MOST))
      list.append(result.status === "conflict" ? this.conflict(result) : this.error(result));
    if (this.open.length > MOST)
      list.append(element("li", "", `… and ${plural(this.open.length - MOST, "other")}.`));
    for (const text of skipped.slice(0, MOST)) list.append(element("li", "", text));
    const head = element("div", "grid-results-head");
    head.append(element("strong", "", summary || "Nothing was saved."));
    head.append(
      button("Close", () => {
        this.panel.hidden = true;
        this.open = [];
      }),
    );
    this.panel.replaceChildren(head, list);
    if (isMany) {
      const more = element("details", "grid-saved");
      more.append(element("summary", "", "What was saved"));
      const lines = element("ul", "");
      for (const { change } of saved.slice(0, MOST))
        lines.append(element("li", "", `${this.nameOf(change.id)}: ${names(change)}`));
      if (saved.length > MOST)
        lines.append(element("li", "", `… and ${plural(saved.length - MOST, "other object")}.`));
      more.append(lines);
      this.panel.append(more);
    }
    this.panel.hidden = false;
  }

  /** Show what became of deleting objects. */
  showDeleted(outcomes) {
    const failed = outcomes.filter((result) => result.status === "error");
    const deleted = outcomes.length - failed.length;
    const texts = deleted ? [`Deleted: ${plural(deleted, "object")}.`] : [];
    if (failed.length) texts.push(`${plural(failed.length, "object")} not deleted.`);
    this.status.textContent = texts.join(" ");
    this.open = [];
    const lines = failed.map((result) => `${this.nameOf(result.id)}: ${result.error}`);
    if (failed.length) this.paint(texts.join(" "), [], lines, false);
  }

  line(result) {
    const line = element("li", "grid-result");
    const { id, cells } = result.change;
    line.append(button(this.nameOf(id), () => this.goTo(id, Object.keys(cells)[0])));
    return line;
  }

  done(result) {
    this.open = this.open.filter((other) => other !== result);
    if (!this.open.length) this.panel.hidden = true;
  }

  conflict(result) {
    const line = this.line(result);
    line.append(element("span", "", "was changed by someone else meanwhile, so nothing was saved."));
    for (const [name, entered] of Object.entries(result.change.cells)) {
      const pair = element("span", "grid-versions");
      const mine = entered.text === undefined ? "the value before" : (entered.text ?? "no value");
      pair.append(element("b", "", name), " yours: ", element("q", "", mine));
      pair.append(" stored: ", element("q", "", shortText(result.cells[name])));
      line.append(pair);
    }
    line.append(
      button("Save yours", () => {
        this.done(result);
        this.edits.save([{ ...result.change, version: result.version }]);
      }),
      button("Keep the stored", () => {
        this.done(result);
        this.edits.discard(result.change.id, Object.keys(result.change.cells));
      }),
    );
    return line;
  }

  error(result) {
    const line = this.line(result);
    const about = result.field ?? names(result.change);
    line.append(element("b", "", about), element("span", "", result.error));
    line.append(
      button("Discard", () => {
        this.done(result);
        this.edits.discard(result.change.id, Object.keys(result.change.cells));
      }),
    );
    return line;
  }
}
