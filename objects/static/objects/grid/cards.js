// Objects as cards, for narrow screens, where a table shows two columns.

import { element, show } from "./cells.js";

const MOST_FIELDS = 7;

function card(row, columns, config) {
  const box = element("article", "grid-card");
  const head = element("a", "grid-card-head");
  head.href = `${config.objects}${encodeURIComponent(row.id)}/`;
  const values = columns.filter(({ name }) => row.cells[name] && row.cells[name].kind !== "null");
  const first = values.find(({ name }) => row.cells[name].kind === "string");
  head.append(element("strong", "", (first && row.cells[first.name].text) || row.id));
  head.append(element("code", "", row.id));
  const list = element("dl", "");
  for (const column of values.filter((other) => other !== first).slice(0, MOST_FIELDS)) {
    list.append(element("dt", "", column.name));
    const value = element("dd", "");
    value.append(show(row.cells[column.name], value));
    list.append(value);
  }
  box.append(head, list);
  return box;
}

/** Show the rows of a page as cards. */
export function showCards(holder, rows, columns, config) {
  holder.replaceChildren(...rows.map((row) => card(row, columns, config)));
  if (!rows.length) holder.append(element("p", "sv-muted", "No objects."));
}
