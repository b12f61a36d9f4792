// A drawer with the whole object: the page of the object, without its frame.

import { element } from "./cells.js";

export class Drawer {
  /** `saved()` is called after the object was saved in the drawer, `closed()` when it closes. */
  constructor(panel, config, { saved, closed }) {
    this.panel = panel;
    this.config = config;
    this.saved = saved;
    this.closed = closed;
    panel.addEventListener("submit", (event) => this.submit(event));
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !panel.hidden) this.close();
    });
  }

  async open(id) {
    this.url = `${this.config.objects}${encodeURIComponent(id)}/`;
    this.id = id;
    await this.load({});
  }

  async submit(event) {
    event.preventDefault();
    const body = new FormData(event.target, event.submitter);
    await this.load({ method: "POST", body });
  }

  // The page redirects to itself when it has saved the object.
  async load(options) {
    let response;
    try {
      response = await fetch(this.url, options);
    } catch {
      this.paint(null, [element("p", "sv-error", "The server can't be reached. Try again.")]);
      return;
    }
    // Scripts in a document that was parsed like this don't run.
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const object = page.getElementById("object");
    const notes = [...page.querySelectorAll("#content .sv-error")];
    this.paint(object, notes.filter((note) => !object?.contains(note)));
    if (response.redirected && response.ok) this.saved();
  }

  close() {
    this.panel.hidden = true;
    this.panel.replaceChildren();
    this.closed();
  }

  paint(object, notes) {
    const head = element("div", "grid-drawer-head");
    const link = element("a", "sv-strong", this.id);
    link.href = this.url;
    const close = element("button", "sv-button grid-small", "Close");
    close.type = "button";
    close.addEventListener("click", () => this.close());
    head.append(link, close);
    if (!object && !notes.length) notes.push(element("p", "sv-error", "The object can't be shown."));
    this.panel.replaceChildren(head, ...notes, ...(object ? [object] : []));
    this.panel.hidden = false;
    this.panel.scrollTop = 0;
    this.panel.focus({ preventScroll: true });
    window.htmx?.process(this.panel);
  }
}
