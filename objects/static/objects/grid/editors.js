// Editors in cells, by the type of the field. Each calls `finish(text, direction)` once: with null
// for no value, and where to go next ("down", "right", "left", or "" to stay).

import { element, firstText } from "./cells.js";
import { query, request } from "./requests.js";

const WIDE = 40; // characters from which a text gets several lines
const LINES = ["Array", "Object", "Polygon"];

/** Return Tabulator's editor for a field. `typed` is the character that began the edit, if any. */
export function editor(field, { finish, typed }) {
  return (cell, onRendered, success, cancel) => {
    const value = cell.getValue();
    const begin = typed();
    let isOpen = true;
    const close = (text, direction = "") => {
      if (!isOpen) return;
      isOpen = false;
      cancel();
      const changed = text !== undefined && !isSame(field, text, value);
      finish(cell, changed ? text : undefined, direction);
    };
    const input = make(field, value, begin, close, cell);
    input.classList.add("grid-editor");
    input.setAttribute("aria-label", `${field.name}, ${field.type}`);
    const commit = async (direction) => {
      await input.suggestions?.();
      close(read(field, input), direction);
    };
    input.addEventListener("keydown", (event) => {
      event.stopPropagation();
      const isNewLine = input.tagName === "TEXTAREA" && (event.shiftKey || event.altKey);
      if (event.key === "Escape") close();
      else if (event.key === "Enter" && !isNewLine) commit("down");
      else if (event.key === "Tab") commit(event.shiftKey ? "left" : "right");
      else return;
      event.preventDefault();
    });
    // A name that was typed in part isn't a choice.
    input.addEventListener("blur", () => close(input.chosen ? undefined : read(field, input)));
    onRendered(() => {
      input.place?.(cell.getElement().getBoundingClientRect());
      input.focus({ preventScroll: true });
      if (begin === undefined) input.select?.();
      else input.setSelectionRange?.(input.value.length, input.value.length);
    });
    return input;
  };
}

function isSame(field, text, value) {
  if (value?.state === "error") return false;
  const before = firstText(value);
  if (field.kind === "Date" && before && text) return new Date(before) - new Date(text) === 0;
  return text === before || (text === "" && before === null);
}

function make(field, value, begin, close, cell) {
  const text = firstText(value) ?? "";
  if (field.kind === "Boolean") return booleanInput(text, close);
  if (field.kind === "Pointer" && field.names) return pointerInput(field, value, begin, close);
  if (field.kind === "Date") {
    const input = element("input");
    input.type = "datetime-local";
    input.step = "0.001";
    input.value = text.replace(/Z$/, "");
    return input;
  }
  const isLong = text.length > WIDE || /\n/.test(text) || LINES.includes(field.kind);
  const input = element(isLong ? "textarea" : "input");
  input.value = begin ?? text;
  input.autocomplete = "off";
  input.spellcheck = false;
  if (field.kind === "Number") input.inputMode = "decimal";
  if (isLong) {
    input.classList.add("grid-lines");
    input.place = (box) => place(input, box, Math.max(box.width, 340), 132);
    input.title = "Enter saves, Shift and Enter start a new line, Esc cancels";
  }
  return input;
}

// Over the cell, inside of the window.
function place(popup, box, width, height, below = 0) {
  const fits = box.top + below + height < innerHeight - 8;
  popup.style.left = `${Math.max(8, Math.min(box.left, innerWidth - width - 8))}px`;
  popup.style.top = `${Math.max(8, fits ? box.top + below : box.bottom - below - height)}px`;
  popup.style.width = `${width}px`;
  popup.style.height = `${height}px`;
}

function booleanInput(text, close) {
  const select = element("select");
  for (const option of ["", "true", "false"]) {
    const item = element("option", "", option || "no value");
    item.value = option;
    select.append(item);
  }
  select.value = text;
  select.addEventListener("change", () => close(select.value || null));
  return select;
}

function read(field, input) {
  if (input.chosen) return input.chosen();
  if (field.kind === "Date" && input.value) return `${input.value}Z`;
  if (field.kind === "String") return input.value;
  return input.value.trim() === "" ? null : input.value;
}

function pointerInput(field, value, begin, close) {
  const input = element("input");
  const list = element("ul", "grid-names");
  list.id = "grid-names";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", `Objects for ${field.name}`);
  input.setAttribute("role", "combobox");
  input.setAttribute("aria-controls", list.id);
  input.setAttribute("aria-expanded", "false");
  input.autocomplete = "off";
  input.placeholder = "name or id";
  const name = value && value.kind === "pointer" ? value.text : (firstText(value) ?? "");
  input.value = begin ?? name;
  let names = [];
  let at = -1;
  let latest;
  let pending;
  const paint = () => {
    list.replaceChildren(
      ...names.map((match, index) => {
        const item = element("li", index === at ? "is-chosen" : "", match.name || match.id);
        item.id = `grid-name-${index}`;
        item.setAttribute("role", "option");
        item.setAttribute("aria-selected", String(index === at));
        item.append(element("code", "", match.id));
        item.addEventListener("mousedown", (event) => {
          event.preventDefault();
          close(match.id);
        });
        return item;
      }),
    );
    list.hidden = !names.length;
    input.setAttribute("aria-expanded", String(!list.hidden));
    if (at >= 0) input.setAttribute("aria-activedescendant", `grid-name-${at}`);
    else input.removeAttribute("aria-activedescendant");
  };
  const look = async () => {
    latest?.abort();
    latest = new AbortController();
    const text = input.value.trim();
    try {
      names = text
        ? (await request(`${field.names}?${query({ text })}`, { signal: latest.signal })).names
        : [];
      at = names.length ? 0 : -1;
      if (input.isConnected) paint();
    } catch (error) {
      if (error.name !== "AbortError") names = [];
    }
  };
  input.addEventListener("input", () => {
    pending = look();
  });
  input.suggestions = () => pending;
  input.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    event.preventDefault();
    if (names.length) at = (at + (event.key === "ArrowDown" ? 1 : names.length - 1)) % names.length;
    paint();
  });
  input.addEventListener("blur", () => {
    latest?.abort();
    list.remove();
  });
  input.chosen = () => {
    if (input.value.trim() === "") return null;
    if (input.value === name && begin === undefined) return firstText(value);
    return at >= 0 ? names[at].id : input.value.trim();
  };
  input.place = (box) => {
    document.body.append(list);
    paint();
    place(list, box, Math.max(box.width, 260), 220, box.height);
    list.style.height = "auto";
    if (begin !== undefined) pending = look();
  };
  return input;
}
