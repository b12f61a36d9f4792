// What the editors of the admin need of CodeMirror, as one module.
export { closeBrackets, closeBracketsKeymap, autocompletion, completionKeymap, startCompletion } from "@codemirror/autocomplete";
export { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
export { json, jsonParseLinter } from "@codemirror/lang-json";
export { PostgreSQL, sql } from "@codemirror/lang-sql";
export { HighlightStyle, bracketMatching, indentOnInput, indentUnit, syntaxHighlighting, syntaxTree } from "@codemirror/language";
export { linter, lintKeymap } from "@codemirror/lint";
export { EditorState } from "@codemirror/state";
export { EditorView, drawSelection, keymap, placeholder, tooltips } from "@codemirror/view";
export { tags } from "@lezer/highlight";
