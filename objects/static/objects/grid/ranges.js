// Copying and pasting ranges, and emptying them.

import { editText } from "./cells.js";
import { format, guarded, parse, unguarded } from "./tsv.js";

export class Ranges {
  /** `save(changes, skipped)` saves edits; `say(text)` shows a text. */
  constructor(table, { save, say }) {
    this.table = table;
    this.save = save;
    this.say = say;
    const holder = table.holder;
    for (const [name, act] of [
      ["copy", (event) => this.copy(event)],
      ["cut", (event) => this.copy(event) && this.empty()],
      ["paste", (event) => this.paste(event)],
    ])
      document.addEventListener(name, (event) => {
        const at = document.activeElement;
        if (holder.contains(at) && !at.closest("input, textarea, select")) act(event);
      });
    holder.addEventListener("keydown", (event) => {
      if (event.key !== "Delete" && event.key !== "Backspace") return;
      if (event.target.closest("input, textarea, select, a")) return;
      event.preventDefault();
      this.empty();
    });
  }

  copy(event) {
    const cells = this.table.range();
    const cut = cells.flat().filter((cell) => cell.getValue()?.isCut).length;
    event.preventDefault();
    if (cut) {
      this.say(`Nothing was copied: ${cut} of these cells are too long. Export the objects instead.`);
      return false;
    }
    const rows = cells.map((row) => row.map((cell) => this.text(cell)));
    event.clipboardData.setData("text/plain", format(rows));
    this.say(`Copied: ${rows.flat().length} cells.`);
    return true;
  }

  text(cell) {
    if (cell.getField() === "$id") return cell.getValue();
    return guarded(editText(cell.getValue()) ?? "", this.kind(cell.getField()));
  }

  kind(name) {
    return this.table.fields.get(name)?.kind;
  }

  paste(event) {
    const text = event.clipboardData.getData("text/plain");
    const range = this.table.range();
    if (!text || !range.length) return;
    event.preventDefault();
    const texts = parse(text);
    const isOne = texts.length === 1 && texts[0].length === 1;
    const columns = this.table.columns().map((column) => column.name);
    const left = Math.max(0, columns.indexOf(range[0][0].getField()));
    const rows = this.table.table.getRows("active");
    const top = rows.findIndex((row) => row.getData().$id === range[0][0].getRow().getData().$id);
    const height = isOne ? range.length : texts.length;
    const width = isOne ? range[0].length : Math.max(...texts.map((line) => line.length));
    const changes = [];
    const skipped = this.outside(top + height - rows.length, left + width - columns.length);
    for (let y = 0; y < height && top + y < rows.length; y++) {
      const line = isOne ? Array(width).fill(texts[0][0]) : texts[y];
      this.change(rows[top + y], columns.slice(left, left + line.length), line, changes, skipped);
    }
    this.send(changes, skipped);
  }

  outside(below, beyond) {
    const texts = [];
    if (below > 0) texts.push(`${below} rows had no place below the last row of this page.`);
    if (beyond > 0) texts.push(`${beyond} columns had no place beside the last column.`);
    return texts;
  }

  // Add the edit of a row: the cells whose text is another one.
  change(row, names, texts, changes, skipped) {
    const cells = {};
    names.forEach((name, index) => {
      const value = row.getData()[name];
      const kind = this.kind(name);
      const raw = texts[index] === null ? "" : unguarded(texts[index], kind);
      const before = editText(value) ?? "";
      if (value?.state !== "error" && raw === before) return;
      if (!this.table.fields.get(name)?.isEditable) {
        const text = `${name} can't be edited in the grid.`;
        if (!skipped.includes(text)) skipped.push(text);
      } else cells[name] = { text: raw === "" ? null : raw };
    });
    if (Object.keys(cells).length) changes.push({ id: row.getData().$id, cells });
  }

  /** Remove the values of the selected cells. */
  empty() {
    const changes = [];
    const skipped = [];
    for (const row of this.table.range()) {
      const cells = row.filter((cell) => cell.getField() !== "$id" && cell.getValue());
      if (!cells.length) continue;
      const names = cells.map((cell) => cell.getField());
      const texts = names.map(() => null);
      const emptied = {};
      for (const name of names)
        if (this.table.fields.get(name)?.isEditable || this.kind(name) === "File")
          emptied[name] = { text: null };
        else this.change(row[0].getRow(), [name], texts, [], skipped);
      if (Object.keys(emptied).length) changes.push({ id: row[0].getRow().getData().$id, cells: emptied });
    }
    this.send(changes, skipped);
  }

  send(changes, skipped) {
    if (!this.table.config.mayChange) this.say("You have no permission to change these objects.");
    else if (changes.length || skipped.length) this.save(changes, skipped);
    else this.say("These cells have these values already.");
  }
}
