// Text areas as editors of code. Without this script they stay text areas.

import {
  EditorState, EditorView, HighlightStyle, autocompletion, bracketMatching, closeBrackets,
  closeBracketsKeymap, completionKeymap, defaultKeymap, drawSelection, history, historyKeymap,
  indentOnInput, indentUnit, jsonParseLinter, keymap, lintKeymap, placeholder,
  syntaxHighlighting, tags, tooltips,
} from "../backend/vendor/codemirror/codemirror.js";

const colours = HighlightStyle.define([
  { tag: tags.propertyName, color: "var(--sv-code-name)" },
  { tag: tags.string, color: "var(--sv-code-text)" },
  { tag: tags.keyword, color: "var(--sv-code-name)", fontWeight: "600" },
  { tag: tags.comment, color: "var(--color-base-500)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--sv-code-value)" },
]);

const parsed = jsonParseLinter();

/** Errors in the JSON that was entered; nothing entered is none. */
export function jsonErrors(view) {
  return view.state.doc.toString().trim() ? parsed(view) : [];
}

/** Completion of words while they are typed, by a source of one's own or the language's. */
export function completion(source) {
  return autocompletion({ icons: false, ...(source ? { override: [source] } : {}) });
}

/**
 * Put an editor in the place of a text area, which keeps its value for the form.
 * `language` are extensions of CodeMirror: what is written, its errors, its completion.
 */
export function edit(area, language) {
  const label = document.querySelector(`label[for="${area.id}"]`);
  const submit = () => {
    area.form.requestSubmit();
    return true;
  };
  const view = new EditorView({
    state: EditorState.create({
      doc: area.value,
      extensions: [
        history(), drawSelection(), indentOnInput(), indentUnit.of("  "), bracketMatching(),
        closeBrackets(), EditorView.lineWrapping, language,
        syntaxHighlighting(colours), placeholder(area.placeholder),
        tooltips({ position: "fixed" }),
        keymap.of([
          { key: "Mod-Enter", run: submit },
          ...closeBracketsKeymap, ...completionKeymap, ...lintKeymap, ...historyKeymap,
          ...defaultKeymap,
        ]),
        EditorView.editorAttributes.of({ class: "sv-editor" }),
        EditorView.contentAttributes.of({
          "aria-label": label ? label.textContent : area.name,
          ...(area.getAttribute("aria-describedby")
            ? { "aria-describedby": area.getAttribute("aria-describedby"), "aria-invalid": "true" }
            : {}),
        }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) {
            area.value = update.state.doc.toString();
          }
        }),
      ],
    }),
  });
  area.hidden = true;
  area.after(view.dom);
  label?.addEventListener("click", () => view.focus());
  return view;
}
