// Ranges of cells as spreadsheets exchange them: lines of cells with tabs between.

const FORMULA = /^[=+\-@\t\r]/; // what a spreadsheet takes for a formula

/** Return rows of texts from what a spreadsheet has copied. */
export function parse(text) {
  const rows = [[]];
  let at = 0;
  while (at <= text.length) {
    let cell = "";
    if (text[at] === '"') {
      const end = closingQuote(text, at + 1);
      if (end >= 0) {
        cell = text.slice(at + 1, end).replaceAll('""', '"');
        at = end + 1;
      }
    }
    const end = text.slice(at).search(/[\t\r\n]/);
    const stop = end < 0 ? text.length : at + end;
    cell += text.slice(at, stop);
    rows.at(-1).push(cell);
    if (stop === text.length) break;
    at = stop + 1;
    if (text[stop] === "\r" && text[at] === "\n") at += 1;
    if (text[stop] !== "\t") {
      if (at >= text.length) break; // the last line ends like the others
      rows.push([]);
    }
  }
  return rows;
}

// The end of a quoted cell: a quote that isn't doubled, before a tab or the end of a line.
function closingQuote(text, from) {
  for (let at = text.indexOf('"', from); at >= 0; at = text.indexOf('"', at)) {
    if (text[at + 1] === '"') at += 2;
    else return /^[\t\r\n]|^$/.test(text.slice(at + 1, at + 2)) ? at : -1;
  }
  return -1;
}

/** Return the text for a spreadsheet. */
export function format(rows) {
  return rows.map((row) => row.map(quoted).join("\t")).join("\n");
}

function quoted(text) {
  return /[\t\r\n"]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** An apostrophe before a text that a spreadsheet would run as a formula, as in exports. */
export function guarded(text, kind) {
  return kind === "String" && FORMULA.test(text) ? `'${text}` : text;
}

export function unguarded(text, kind) {
  return kind === "String" && text[0] === "'" && FORMULA.test(text.slice(1)) ? text.slice(1) : text;
}
