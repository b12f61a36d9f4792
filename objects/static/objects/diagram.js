// The schema as a diagram: a box for each class, a line for each pointer and relation.

import { Graph, layout } from "../backend/vendor/dagre/dagre.esm.js";

const WIDTH = 240;
const HEAD = 34;
const ROW = 22;
const MOST_ROWS = 12;
const GAP = 32;
const LEAST_COLUMNS = 6;
const READABLE = 0.5; // of the size that the drawing has by itself
const NS = "http://www.w3.org/2000/svg";

// Attributes are in the drawing itself, so that a saved file looks like the page.
const STYLE = `
  text { font: 12px system-ui, sans-serif; fill: var(--text); }
  .title { font-weight: 600; font-size: 13px; }
  .kind { fill: var(--soft); font-size: 11px; }
  .frame { fill: var(--box); stroke: var(--line); }
  .head { fill: var(--head); }
  .link { fill: none; stroke: var(--soft); stroke-width: 1.25; }
  .relation { stroke-dasharray: 5 4; }
  .arrow { fill: var(--soft); }
  .is-lit { stroke: var(--accent); stroke-width: 2; }
  .is-centre .frame { stroke: var(--accent); stroke-width: 2; }
`;

function element(name, attributes = {}, ...children) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/** A text that ends within a width, measured by its characters. */
function short(text, most) {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}

function rowsOf(entry) {
  return entry.fields.slice(0, MOST_ROWS);
}

function heightOf(entry) {
  const more = entry.fields.length > MOST_ROWS ? 1 : 0;
  return HEAD + ROW * (rowsOf(entry).length + more) + 8;
}

/** Where each box stands: those with lines by layers, the others in rows below. */
function places(classes) {
  const known = new Map(classes.map((entry) => [entry.name, entry]));
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: "LR", nodesep: GAP, ranksep: 90, edgesep: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  const linked = new Set();
  for (const entry of classes) {
    for (const field of entry.fields) {
      if (known.has(field.target)) {
        linked.add(entry.name).add(field.target);
      }
    }
  }
  for (const name of linked) {
    graph.setNode(name, { width: WIDTH, height: heightOf(known.get(name)) });
  }
  for (const name of linked) {
    for (const field of known.get(name).fields) {
      if (known.has(field.target) && field.target !== name) {
        graph.setEdge(name, field.target, {}, field.name);
      }
    }
  }
  const found = new Map();
  let width = 0;
  let bottom = 0;
  if (linked.size) {
    layout(graph);
    for (const name of linked) {
      const node = graph.node(name);
      found.set(name, { x: node.x - WIDTH / 2, y: node.y - node.height / 2 });
      width = Math.max(width, node.x + WIDTH / 2);
      bottom = Math.max(bottom, node.y + node.height / 2 + GAP);
    }
  }
  const columns = Math.max(Math.floor(width / (WIDTH + GAP)), LEAST_COLUMNS);
  let x = 0;
  let tallest = 0;
  for (const entry of classes.filter(({ name }) => !linked.has(name))) {
    if (x === columns) {
      [x, bottom, tallest] = [0, bottom + tallest + GAP, 0];
    }
    found.set(entry.name, { x: x * (WIDTH + GAP), y: bottom });
    tallest = Math.max(tallest, heightOf(entry));
    x += 1;
  }
  return found;
}

function box(entry, place, isCentre) {
  const height = heightOf(entry);
  const group = element("g", {
    transform: `translate(${place.x} ${place.y})`, class: isCentre ? "is-centre" : "", "data-class": entry.name,
  });
  const link = element("a", { href: entry.address, "aria-label": `${entry.name}, ${entry.fields.length} fields` });
  link.append(
    element("rect", { class: "frame", width: WIDTH, height, rx: 8 }),
    element("path", { class: "head", d: `M1 ${HEAD}V9a8 8 0 0 1 8-8h${WIDTH - 18}a8 8 0 0 1 8 8V${HEAD}z` }),
    element("text", { class: "title", x: 12, y: 22 }, short(entry.name, 30)),
  );
  group.append(link);
  rowsOf(entry).forEach((field, index) => {
    const y = HEAD + ROW * index + 17;
    const marks = `${field.is_required ? " *" : ""}${field.is_unique ? " unique" : ""}`;
    const kind = field.target ? `→ ${field.target}` : field.kind;
    const row = element("g", {});
    row.append(
      element("title", {}, `${field.name}: ${field.kind}${field.target ? ` of ${field.target}` : ""}${field.is_required ? ", required" : ""}${field.is_unique ? ", unique" : ""}`),
      element("text", { x: 12, y }, short(`${field.name}${marks}`, 19)),
      element("text", { class: "kind", x: WIDTH - 12, y, "text-anchor": "end" }, short(kind, 18)),
    );
    group.append(row);
  });
  if (entry.fields.length > MOST_ROWS) {
    const y = HEAD + ROW * MOST_ROWS + 17;
    group.append(element("text", { class: "kind", x: 12, y }, `${entry.fields.length - MOST_ROWS} more`));
  }
  return group;
}

/** The line of a field: from its row to the head of the other box. */
function line(entry, index, field, found) {
  const from = found.get(entry.name);
  const to = found.get(field.target);
  const row = Math.min(index, MOST_ROWS);
  const y1 = from.y + HEAD + ROW * row + 12;
  const y2 = to.y + HEAD / 2;
  const isRight = to.x > from.x + WIDTH / 2 || entry.name === field.target;
  const x1 = from.x + (isRight ? WIDTH : 0);
  const comesFromLeft = isRight && entry.name !== field.target;
  const x2 = to.x + (comesFromLeft ? -6 : WIDTH + 6);
  const bend = Math.max(Math.abs(x2 - x1) / 2, 40);
  const d = `M${x1} ${y1}C${x1 + (isRight ? bend : -bend)} ${y1} ${x2 + (comesFromLeft ? -bend : bend)} ${y2} ${x2} ${y2}`;
  const path = element("path", {
    class: `link${field.kind === "Relation" ? " relation" : ""}`, d, "marker-end": "url(#arrow)",
    "data-from": entry.name, "data-to": field.target,
  });
  path.append(element("title", {}, `${entry.name}.${field.name} → ${field.target}`));
  return path;
}

function draw({ classes, centre }) {
  const found = places(classes);
  const marker = element("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" });
  marker.append(element("path", { class: "arrow", d: "M0 0L8 4L0 8z" }));
  const drawing = element("svg", { xmlns: NS, role: "group", "aria-label": "Classes and their pointers" });
  const lines = element("g", {});
  const boxes = element("g", {});
  for (const entry of classes) {
    entry.fields.forEach((field, index) => {
      if (found.has(field.target)) {
        lines.append(line(entry, index, field, found));
      }
    });
    boxes.append(box(entry, found.get(entry.name), entry.name === centre));
  }
  drawing.append(element("style", {}, STYLE), element("defs", {}, marker), lines, boxes);
  const all = classes.map((entry) => ({ ...found.get(entry.name), height: heightOf(entry) }));
  const right = Math.max(...all.map(({ x }) => x + WIDTH), WIDTH);
  const bottom = Math.max(...all.map(({ y, height }) => y + height), HEAD);
  return { drawing, whole: { x: -GAP, y: -GAP, width: right + 2 * GAP, height: bottom + 2 * GAP } };
}

/** Moving and zooming, by pointer, wheel and buttons. What is too large begins at its corner. */
function view(svg, whole) {
  let shown = { ...whole };
  const { width: room, height } = svg.getBoundingClientRect();
  const isReadable = Math.min(room / whole.width, height / whole.height) >= READABLE;
  const first = isReadable ? whole : { ...whole, width: room / READABLE, height: height / READABLE };
  const show = (next) => {
    const width = Math.min(Math.max(next.width, 300), 4 * whole.width);
    const scale = width / next.width;
    shown = { x: next.x, y: next.y, width, height: next.height * scale };
    svg.setAttribute("viewBox", `${shown.x} ${shown.y} ${shown.width} ${shown.height}`);
  };
  const zoom = (factor, x = shown.x + shown.width / 2, y = shown.y + shown.height / 2) => show({
    x: x - (x - shown.x) / factor, y: y - (y - shown.y) / factor,
    width: shown.width / factor, height: shown.height / factor,
  });
  const place = (event) => new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  svg.addEventListener("wheel", (event) => {
    event.preventDefault();
    const at = place(event);
    zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15, at.x, at.y);
  }, { passive: false });
  let begin = null;
  svg.addEventListener("pointerdown", (event) => {
    begin = event.button === 0 ? { at: place(event), hasMoved: false } : null;
  });
  svg.addEventListener("pointermove", (event) => {
    if (!begin) {
      return;
    }
    const at = place(event);
    if (!begin.hasMoved && Math.hypot(at.x - begin.at.x, at.y - begin.at.y) > 4) {
      begin.hasMoved = true;
      svg.setPointerCapture(event.pointerId);
      svg.classList.add("is-moving");
    }
    if (begin.hasMoved) {
      show({ ...shown, x: shown.x + begin.at.x - at.x, y: shown.y + begin.at.y - at.y });
    }
  });
  const end = () => {
    begin = null;
    svg.classList.remove("is-moving");
  };
  svg.addEventListener("pointerup", end);
  svg.addEventListener("pointercancel", end);
  svg.addEventListener("dragstart", (event) => event.preventDefault());
  show(first);
  return { zoom, fit: () => show(whole) };
}

/** Light the lines of the class that the pointer or the focus is on. */
function light(svg) {
  const mark = (name) => {
    for (const path of svg.querySelectorAll(".link")) {
      path.classList.toggle("is-lit", name !== undefined && (path.dataset.from === name || path.dataset.to === name));
    }
  };
  const of = (event) => event.target.closest("[data-class]")?.dataset.class;
  svg.addEventListener("pointerover", (event) => mark(of(event)));
  svg.addEventListener("focusin", (event) => mark(of(event)));
}

/** Offer the drawing as a file with the colours of the page. */
function save(svg, whole) {
  const copy = svg.cloneNode(true);
  copy.setAttribute("viewBox", `${whole.x} ${whole.y} ${whole.width} ${whole.height}`);
  copy.setAttribute("width", whole.width);
  copy.setAttribute("height", whole.height);
  const colours = getComputedStyle(svg);
  const names = ["--line", "--box", "--text", "--soft", "--head", "--accent"];
  copy.setAttribute("style", names.map((name) => `${name}: ${colours.getPropertyValue(name)}`).join("; "));
  const file = new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = "schema.svg";
  link.click();
  URL.revokeObjectURL(link.href);
}

const host = document.querySelector("[data-diagram]");
const data = JSON.parse(document.getElementById("schema-data").textContent);
if (data.classes.length) {
  const { drawing, whole } = draw(data);
  host.append(drawing);
  host.hidden = false;
  const { zoom, fit } = view(drawing, whole);
  light(drawing);
  const tools = document.querySelector("[data-diagram-tools]");
  tools.hidden = false;
  tools.addEventListener("click", ({ target }) => {
    if (target.dataset.zoom) {
      zoom(Number(target.dataset.zoom));
    } else if ("fit" in target.dataset) {
      fit();
    } else if ("save" in target.dataset) {
      save(drawing, whole);
    }
  });
  document.querySelector("[data-diagram-list]").open = false;
}
