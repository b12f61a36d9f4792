// The console: editors that know the classes, their fields, and the operators of the query language.

import { PostgreSQL, json, linter, sql, syntaxTree } from "../backend/vendor/codemirror/codemirror.js";
import { completion, edit, jsonErrors } from "./editor.js";

const form = document.querySelector("[data-console]");
const known = new Map();

/** The words for the class that the form names at the moment. */
async function words() {
  const name = form.elements.class_name?.value ?? "";
  if (!known.has(name)) {
    const address = `${form.dataset.words}?${new URLSearchParams({ class_name: name })}`;
    const request = fetch(address, { headers: { Accept: "application/json" } })
      .then((response) => (response.ok ? response.json() : null));
    known.set(name, request.catch(() => null));
    if ((await known.get(name)) === null) {
      known.delete(name);
      return null;
    }
  }
  return known.get(name);
}

/** The names of the properties around a node, from the outside in; "[]" is an array. */
function pathTo(node, state) {
  const path = [];
  for (let at = node; at; at = at.parent) {
    if (at.name === "Array") {
      path.unshift("[]");
    } else if (at.name === "Property") {
      const name = at.getChild("PropertyName");
      path.unshift(name ? state.sliceDoc(name.from, name.to).replaceAll('"', "") : "");
    }
  }
  return path;
}

const LOGIC = new Set(["$and", "$or", "$nor", "$not"]);

/** Which words can be a key of the object at a path within a query. */
function keysOfQuery(path, all) {
  const inner = path.filter((name) => name !== "[]");
  const last = inner.at(-1);
  if (last === undefined || LOGIC.has(last)) {
    return [...all.fields_of_class, ...all.clauses];
  }
  return last.startsWith("$") ? [] : all.operators;
}

/** Which words can be a key of the object at a path within a pipeline. */
function keysOfPipeline(path, all) {
  const [, stage, ...inner] = path;
  if (stage === undefined) {
    return all.stages;
  }
  if (stage === "$match") {
    return inner[0] === "$expr" ? all.expressions : keysOfQuery(inner, all);
  }
  if (stage === "$group") {
    return inner.length === 0 ? [{ name: "_id", detail: "the group's key" }]
      : inner[0] === "_id" ? all.expressions : [...all.accumulators, ...all.expressions];
  }
  if (inner.length === 0) {
    return stage === "$lookup" || stage === "$unwind" ? [] : all.fields_of_class;
  }
  return all.expressions;
}

function option(word, insert) {
  return { label: word.name, detail: word.detail || undefined, info: word.info || undefined, apply: insert };
}

/** Completions of the keys and of the references to fields ("$city") of one language. */
function completer(keys, hasReferences) {
  return async (context) => {
    const typed = context.matchBefore(/"?\$?[\w.]*/);
    if (!typed || (typed.from === typed.to && !context.explicit)) {
      return null;
    }
    const all = await words();
    if (!all || context.aborted) {
      return null;
    }
    const { state } = context;
    const before = state.sliceDoc(Math.max(0, typed.from - 200), typed.from).trimEnd().at(-1);
    const isKey = before === "{" || before === "," || before === undefined;
    const node = syntaxTree(state).resolveInner(typed.from, -1);
    const closing = state.sliceDoc(context.pos, context.pos + 1) === '"' ? 1 : 0;
    const put = (text) => (view, completion, from, to) => {
      const end = to + closing;
      const rest = /^\s*:/.test(view.state.sliceDoc(end, end + 10)) ? text.replace(/: $/, "") : text;
      view.dispatch({ changes: { from, to: end, insert: rest }, selection: { anchor: from + rest.length } });
    };
    if (isKey) {
      let around = node;
      while (around && around.name !== "Object" && around.name !== "Array") {
        around = around.parent;
      }
      const path = around ? pathTo(around, state) : [];
      const options = keys(path, all).map((word) => option(word, put(`"${word.name}": `)));
      return { from: typed.from, options, validFor: /^"?\$?[\w.]*$/ };
    }
    if (hasReferences && before === ":") {
      const options = all.fields_of_class.map((word) => ({ ...option(word, put(`"$${word.name}"`)), label: `$${word.name}` }));
      return { from: typed.from, options, validFor: /^"?\$?[\w.]*$/ };
    }
    return null;
  };
}

/** Words begin behind a quotation mark that may have been typed. */
function behindQuote(complete) {
  return async (context) => {
    const result = await complete(context);
    if (!result || context.state.sliceDoc(result.from, result.from + 1) !== '"') {
      return result;
    }
    const options = result.options.map((word) => ({
      ...word,
      apply: (view, completion, from, to) => word.apply(view, completion, from - 1, to),
    }));
    return { ...result, from: result.from + 1, options, validFor: /^\$?[\w.]*$/ };
  };
}

/** The classes and their columns, as the completion of SQL takes them. */
async function schema() {
  const response = await fetch(form.dataset.tables, { headers: { Accept: "application/json" } }).catch(() => null);
  const { tables } = response?.ok ? await response.json() : { tables: [] };
  return Object.fromEntries(tables.map(({ name, columns }) => [name, columns]));
}

const SOURCES = {
  where: () => [json(), linter(jsonErrors), completion(behindQuote(completer(keysOfQuery, false)))],
  pipeline: () => [json(), linter(jsonErrors), completion(behindQuote(completer(keysOfPipeline, true)))],
  json: () => [json(), linter(jsonErrors)],
  sql: async () => [sql({ dialect: PostgreSQL, schema: await schema(), upperCaseKeywords: true }), completion()],
};

if (form) {
  for (const area of form.querySelectorAll("[data-editor]")) {
    edit(area, await SOURCES[area.dataset.editor]());
  }
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.defaultPrevented) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
}
