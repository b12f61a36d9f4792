// The cells of the grid: what they show of a value, and the text that is edited and copied.
//
// A cell is what the endpoint of rows sends for a value: `kind`, `text`, and perhaps `title`, `href`,
// `picture` and `edit`. A cell without a value is undefined. The page adds `state` ("saving", "error"
// or "conflict"), `error` in words, and `entered`, the text that wasn't saved.

export function element(name, className, text) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

/** The text of a value as people edit and copy it; null for no value. */
export function editText(cell) {
  if (!cell) return null;
  return cell.edit === undefined ? cell.text : cell.edit;
}

/** The text with which an edit of the cell begins. */
export function firstText(cell) {
  return cell?.entered !== undefined ? cell.entered : editText(cell);
}

/** A value in a sentence. */
export function shortText(cell) {
  if (!cell || cell.kind === "null") return "no value";
  return cell.text === "" ? "an empty text" : cell.text;
}

function link(cell) {
  const open = element("a", "grid-open", "↗");
  open.href = cell.href;
  open.tabIndex = -1;
  open.setAttribute("aria-label", `Open ${cell.text}`);
  if (cell.kind === "file") {
    open.rel = "noopener noreferrer";
    open.target = "_blank";
  }
  return open;
}

/** Fill the element of a cell of the table. */
export function show(cell, holder) {
  holder.classList.remove("is-saving", "is-error", "is-conflict");
  if (cell?.state) holder.classList.add(`is-${cell.state}`);
  const box = element("span", "grid-cell");
  if (cell?.state === "error") {
    box.append(element("span", "grid-entered", cell.entered ?? "no value"));
    box.append(element("span", "grid-complaint", cell.error));
    box.title = cell.error;
    return box;
  }
  if (!cell) return box;
  box.classList.add(`grid-${cell.kind}`);
  if (cell.picture) {
    const picture = element("img", "grid-picture");
    picture.src = cell.picture;
    picture.alt = "";
    picture.loading = "lazy";
    box.append(picture);
  }
  const text = cell.kind === "string" && cell.text === "" ? '""' : cell.text;
  box.append(element("span", "grid-text", text));
  if (cell.title && cell.title !== cell.text) box.title = cell.title;
  if (cell.href) box.append(link(cell));
  return box;
}
