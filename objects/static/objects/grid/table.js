// The table of the grid: Tabulator with our columns, formatters, editors and keys.

import { TabulatorFull as Tabulator } from "../../backend/vendor/tabulator/tabulator.min.js";
import { element, show } from "./cells.js";
import { editor } from "./editors.js";
import { query } from "./requests.js";

const ID_WIDTH = 132;

/** The data of a row for the table. Names of fields never begin with "$". */
export function rowData(row) {
  return { $id: row.id, $version: row.version, ...row.cells };
}

function sortLink(config, field) {
  const order = config.order || "-createdAt";
  const arrow = { [field.name]: "↑", [`-${field.name}`]: "↓" }[order] ?? "";
  const following = order === field.name ? `-${field.name}` : field.name;
  const link = element("a", "grid-sort", field.name);
  link.href = `?${query({ where: config.where, order: following, view: config.view })}`;
  link.draggable = false;
  if (arrow) link.append(element("span", "grid-arrow", arrow));
  return link;
}

function title(config, field) {
  const box = element("span", "grid-title");
  box.append(field.isSortable ? sortLink(config, field) : element("span", "", field.name));
  box.title = `${field.name}: ${field.type}`;
  return box;
}

export class Table {
  /**
   * `edited(cell, text)` is called for each edit, `selected()` if other rows are ticked,
   * `arranged()` if columns are moved, `opened(id)` to show an object.
   */
  constructor(holder, config, { edited, selected, arranged, opened }) {
    this.config = config;
    this.fields = new Map(config.fields.map((field) => [field.name, field]));
    this.edited = edited;
    this.selected = selected;
    this.opened = opened;
    this.ticked = new Set();
    this.holder = holder;
    this.begin = undefined;
    this.table = new Tabulator(holder, {
      data: [],
      index: "$id",
      height: "100%",
      rowHeight: 26,
      layout: "fitData",
      nestedFieldSeparator: false,
      placeholder: "No objects.",
      movableColumns: true,
      columnHeaderSortMulti: false,
      rowHeader: this.idColumn(),
      columns: [],
      columnDefaults: { headerSort: false, resizable: "header", vertAlign: "middle" },
      selectableRange: 1,
      selectableRangeColumns: false,
      selectableRangeRows: true,
      selectableRangeInitializeDefault: true,
      selectableRangeAutoFocus: false,
      editTriggerEvent: "dblclick",
      // Tab leaves the table, as in other grids of the web.
      keybindings: { navNext: false, navPrev: false },
    });
    this.ready = new Promise((resolve) => this.table.on("tableBuilt", resolve));
    this.table.on("columnMoved", arranged);
    this.table.on("columnResized", arranged);
    this.table.on("rangeChanged", () => this.announce());
    this.table.on("renderComplete", () => this.describe());
    holder.addEventListener("keydown", (event) => this.keydown(event), true);
  }

  idColumn() {
    return {
      field: "$id",
      title: "objectId",
      width: ID_WIDTH,
      frozen: true,
      resizable: false,
      headerSort: false,
      editor: false,
      cssClass: "grid-id",
      titleFormatter: () => {
        const box = element("span", "grid-title");
        if (this.config.mayDelete || this.config.mayChange) box.append(this.tickAll());
        box.append(sortLink(this.config, this.fields.get("objectId")));
        return box;
      },
      formatter: (cell) => {
        const box = element("span", "grid-cell");
        const id = cell.getValue();
        if (this.config.mayDelete || this.config.mayChange) box.append(this.tick(id));
        const link = element("a", "grid-link", id);
        link.href = `${this.config.objects}${encodeURIComponent(id)}/`;
        link.tabIndex = -1;
        link.title = id;
        link.addEventListener("click", (event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey) return;
          event.preventDefault();
          this.opened(id);
        });
        box.append(link);
        return box;
      },
    };
  }

  tick(id) {
    const box = element("input", "grid-tick");
    box.type = "checkbox";
    box.checked = this.ticked.has(id);
    box.tabIndex = -1;
    box.setAttribute("aria-label", `Select ${id}`);
    box.addEventListener("mousedown", (event) => event.stopPropagation());
    box.addEventListener("change", () => {
      this.ticked[box.checked ? "add" : "delete"](id);
      this.selected();
    });
    return box;
  }

  tickAll() {
    const box = element("input", "grid-tick");
    box.type = "checkbox";
    box.id = "grid-all";
    box.setAttribute("aria-label", "Select all on this page");
    box.addEventListener("change", () => {
      const ids = this.table.getData().map((row) => row.$id);
      this.ticked = new Set(box.checked ? ids : []);
      for (const tick of this.holder.querySelectorAll(".tabulator-row .grid-tick"))
        tick.checked = box.checked;
      this.selected();
    });
    return box;
  }

  column({ name, width }) {
    const field = this.fields.get(name);
    return {
      field: name,
      title: name,
      width,
      minWidth: 48,
      maxWidth: 1000,
      hozAlign: field.kind === "Number" ? "right" : "left",
      titleFormatter: () => title(this.config, field),
      formatter: (cell) => show(cell.getValue(), cell.getElement()),
      editor: field.isEditable ? this.editor(field) : false,
      editable: (cell) => !cell.getValue()?.isCut && cell.getValue()?.state !== "saving",
    };
  }

  editor(field) {
    return editor(field, {
      typed: () => {
        const begin = this.begin;
        this.begin = undefined;
        return begin;
      },
      finish: (cell, text, direction) => {
        const { late } = this;
        this.late = undefined;
        if (late) this.update(late.id, late.values);
        if (text !== undefined) this.edited(cell, text);
        setTimeout(() => this.move(direction), 0);
      },
    });
  }

  move(direction) {
    this.holder.querySelector(".tabulator-tableholder").focus({ preventScroll: true });
    if (direction) this.table.modules.selectRange.navigate(false, false, direction);
  }

  // Typing in a cell begins an edit, F2 too; Enter is Tabulator's own key.
  keydown(event) {
    if (event.target.closest(".grid-editor, a, input, button")) return;
    if (event.key === " " && this.activeCell()) {
      event.preventDefault();
      this.opened(this.activeCell().getRow().getData().$id);
    } else if (event.key === "F2") this.edit(undefined, event);
    else if (event.key.length === 1 && event.key !== " " && !event.ctrlKey && !event.metaKey)
      this.edit(event.key, event);
  }

  edit(character, event) {
    const cell = this.activeCell();
    if (!cell || !this.fields.get(cell.getField())?.isEditable) return;
    event.preventDefault();
    event.stopPropagation();
    this.begin = character;
    cell.edit();
    this.begin = undefined;
  }

  /** The cells of the selected range, row by row. */
  range() {
    const range = this.table.getRanges()[0];
    return range ? range.getStructuredCells() : [];
  }

  activeCell() {
    return this.range()[0]?.[0];
  }

  async setColumns(columns) {
    this.table.setColumns(columns.map((column) => this.column(column)));
    await Promise.resolve();
  }

  async setRows(rows) {
    this.ticked.clear();
    this.selected();
    await this.table.replaceData(rows.map(rowData));
    const all = this.holder.querySelector("#grid-all");
    if (all) all.checked = false;
    this.holder.querySelector(".tabulator-tableholder").scrollTop = 0;
  }

  /** The columns as they are arranged, without that of the ids. */
  columns() {
    return this.table
      .getColumns()
      .filter((column) => column.getField() && column.getField() !== "$id")
      .map((column) => ({ name: column.getField(), width: Math.round(column.getWidth()) }));
  }

  row(id) {
    return this.table.getRow(id) || undefined;
  }

  /** Show other values in a row. A cell that is being edited gets its value afterwards. */
  update(id, values) {
    const row = this.row(id);
    if (!row) return;
    const editing = this.table.modules.edit.currentCell;
    const isEdited = (name) =>
      editing && editing.row.getData().$id === id && editing.column.getField() === name;
    const changed = {};
    for (const [name, value] of Object.entries(values)) {
      if (isEdited(name)) this.late = { id, values: { [name]: value } };
      else if (JSON.stringify(row.getData()[name]) !== JSON.stringify(value)) changed[name] = value;
    }
    row.update(changed);
  }

  // Screen readers follow the active cell by its id.
  announce() {
    const holder = this.holder.querySelector(".tabulator-tableholder");
    const cell = this.activeCell()?.getElement();
    if (!holder || !cell) return;
    this.holder.querySelector("#grid-active")?.removeAttribute("id");
    cell.id = "grid-active";
    holder.setAttribute("aria-activedescendant", "grid-active");
  }

  // For screen readers the element with the focus is the grid, which also owns the headers.
  describe() {
    const holder = this.holder.querySelector(".tabulator-tableholder");
    const header = this.holder.querySelector(".tabulator-header");
    header.id = "grid-header";
    for (const name of ["role", "aria-owns"]) this.holder.removeAttribute(name);
    holder.setAttribute("role", "grid");
    holder.setAttribute("aria-owns", header.id);
    holder.setAttribute("aria-label", `Objects of ${this.config.className}`);
    this.announce();
  }
}
