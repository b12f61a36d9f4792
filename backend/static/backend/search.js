// The search dialog: Ctrl-K, / or the button in the sidebar open it.

const WAIT = 120; // milliseconds after the last key
const MOST_RECENT = 8;

class Search {
  constructor(dialog) {
    this.dialog = dialog;
    this.input = dialog.querySelector("input");
    this.list = dialog.querySelector("[role=listbox]");
    this.notes = dialog.querySelector("[role=status]");
    this.storage = `sv-recent-${dialog.dataset.staff}`;
    this.number = 0;
    this.options = [];
    this.chosen = -1;
    this.input.addEventListener("input", () => this.changed());
    this.input.addEventListener("keydown", (event) => this.pressed(event));
    dialog.querySelector("[data-close]").addEventListener("click", () => dialog.close());
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) dialog.close();
    });
    this.list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) this.remember(option.result);
    });
    this.list.addEventListener("mousemove", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) this.choose(this.options.indexOf(option));
    });
  }

  open() {
    if (this.dialog.open) return;
    this.dialog.showModal();
    this.input.select();
    this.changed();
  }

  changed() {
    clearTimeout(this.timer);
    const text = this.input.value.trim();
    if (!text) {
      this.number += 1;
      this.showRecent();
      return;
    }
    this.timer = setTimeout(() => this.search(text), WAIT);
  }

  async search(text) {
    const number = ++this.number;
    let answer;
    try {
      const url = `${this.dialog.dataset.results}?q=${encodeURIComponent(text)}`;
      const response = await fetch(url);
      answer = await response.json();
      if (!response.ok) throw new Error(answer.error);
    } catch (error) {
      if (number === this.number) this.show([], [`The search failed: ${error.message}`]);
      return;
    }
    // Only the response to the text that is there now.
    if (number !== this.number) return;
    const none = answer.groups.length ? [] : [`Nothing that you may see matches “${text}”.`];
    this.show(answer.groups, [...none, ...answer.notes]);
  }

  recent() {
    try {
      return JSON.parse(localStorage.getItem(this.storage) ?? "[]");
    } catch {
      return [];
    }
  }

  remember(result) {
    const others = this.recent().filter(({ link }) => link !== result.link);
    localStorage.setItem(this.storage, JSON.stringify([result, ...others].slice(0, MOST_RECENT)));
  }

  forget() {
    localStorage.removeItem(this.storage);
  }

  showRecent() {
    const results = this.recent();
    this.show(results.length ? [{ title: "Recent", results }] : [], []);
  }

  show(groups, notes) {
    this.list.replaceChildren(...groups.map((group, index) => this.group(group, index)));
    this.list.scrollTop = 0;
    this.notes.replaceChildren(
      ...notes.map((text) => Object.assign(document.createElement("p"), { textContent: text })),
    );
    this.options = [...this.list.querySelectorAll("[role=option]")];
    this.options.forEach((option, index) => (option.id = `sv-search-option-${index}`));
    this.input.setAttribute("aria-expanded", String(this.options.length > 0));
    this.choose(this.options.length ? 0 : -1);
  }

  group({ title, results }, index) {
    const group = document.createElement("div");
    group.setAttribute("role", "group");
    const heading = document.createElement("div");
    heading.className = "sv-search-group";
    heading.id = `sv-search-group-${index}`;
    heading.textContent = title;
    group.setAttribute("aria-labelledby", heading.id);
    group.append(heading, ...results.map((result) => this.option(result)));
    return group;
  }

  option(result) {
    const option = document.createElement("a");
    option.href = result.link;
    option.result = result;
    option.tabIndex = -1;
    option.setAttribute("role", "option");
    for (const [name, text] of [
      ["material-symbols-outlined", result.icon],
      ["sv-search-title", result.title],
      ["sv-search-detail", result.detail],
    ]) {
      const part = document.createElement("span");
      part.className = name;
      part.textContent = text;
      option.append(part);
    }
    option.firstChild.setAttribute("aria-hidden", "true");
    return option;
  }

  choose(index) {
    this.options[this.chosen]?.setAttribute("aria-selected", "false");
    this.chosen = index;
    const option = this.options[index];
    if (option) {
      option.setAttribute("aria-selected", "true");
      option.scrollIntoView({ block: "nearest" });
      this.input.setAttribute("aria-activedescendant", option.id);
    } else {
      this.input.removeAttribute("aria-activedescendant");
    }
  }

  pressed(event) {
    const count = this.options.length;
    if (event.key === "ArrowDown" && count) this.choose((this.chosen + 1) % count);
    else if (event.key === "ArrowUp" && count) this.choose((this.chosen - 1 + count) % count);
    else if (event.key === "Enter" && !event.isComposing) this.go(event.ctrlKey || event.metaKey);
    else return;
    event.preventDefault();
  }

  go(isNewTab) {
    const option = this.options[this.chosen];
    if (!option) return;
    this.remember(option.result);
    if (isNewTab) window.open(option.href, "_blank", "noopener");
    else window.location.assign(option.href);
  }
}

function isTyping(target) {
  return target.closest("input, textarea, select, [contenteditable]") !== null;
}

const dialog = document.getElementById("sv-search");
if (dialog) {
  const search = new Search(dialog);
  document.addEventListener("keydown", (event) => {
    const isShortcut = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey);
    // Lists of models have a search of their own by this key.
    const hasOwn = document.getElementById("searchbar") !== null;
    const isSlash = event.key === "/" && !isTyping(event.target) && !hasOwn;
    if (isShortcut || isSlash) {
      event.preventDefault();
      search.open();
    }
  });
  for (const button of document.querySelectorAll("[data-open-search]")) {
    button.addEventListener("click", () => search.open());
  }
  // Recent choices stay in this browser until the staff user logs out.
  document.addEventListener("submit", (event) => {
    // A form's property of this name may be one of its fields.
    if (event.target.getAttribute("action")?.endsWith("/logout/")) search.forget();
  });
}
