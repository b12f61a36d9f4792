// The sidebar: sections that stay folded, favourite classes, and the search among many classes.

const FOLDED = "sv-folded-sections";
const WAIT = 150; // milliseconds after the last key

function folded() {
  try {
    return new Set(JSON.parse(localStorage.getItem(FOLDED) ?? "[]"));
  } catch {
    return new Set();
  }
}

function keepFolded(group) {
  const names = folded();
  if (group.open) names.delete(group.dataset.group);
  else names.add(group.dataset.group);
  localStorage.setItem(FOLDED, JSON.stringify([...names]));
}

async function toggleFavourite(button, token) {
  const isFavourite = button.getAttribute("aria-pressed") === "true";
  button.disabled = true;
  try {
    const response = await fetch(button.dataset.favourite, {
      method: isFavourite ? "DELETE" : "PUT",
      headers: { "X-CSRFToken": token },
    });
    if (!response.ok) throw new Error((await response.json()).error);
    button.setAttribute("aria-pressed", String(!isFavourite));
    button.title = isFavourite ? "Put among your favourites" : "Remove from your favourites";
  } catch (error) {
    button.title = error.message;
  } finally {
    button.disabled = false;
  }
}

function classEntry({ title, link }) {
  const item = document.createElement("li");
  const anchor = document.createElement("a");
  anchor.href = link;
  anchor.title = title;
  const name = document.createElement("span");
  name.className = "sv-nav-title";
  name.textContent = title;
  anchor.append(name);
  item.append(anchor);
  return item;
}

function findClasses(input, list, none) {
  const listed = [...list.children];
  let timer;
  let asked = 0;
  const show = async () => {
    const text = input.value.trim();
    const number = ++asked;
    if (!text) {
      list.replaceChildren(...listed);
      none.hidden = true;
      return;
    }
    const response = await fetch(input.dataset.find + encodeURIComponent(text));
    if (!response.ok || number !== asked) return;
    const { groups } = await response.json();
    const results = groups.flatMap((group) => group.results);
    list.replaceChildren(...results.map(classEntry));
    none.hidden = results.length > 0;
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(show, WAIT);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && input.value) {
      event.preventDefault();
      input.value = "";
      show();
    } else if (event.key === "Enter") {
      list.querySelector("a")?.click();
    }
  });
}

const sidebar = document.getElementById("nav-sidebar-apps");
if (sidebar) {
  const names = folded();
  for (const group of sidebar.querySelectorAll("details")) {
    // The section of the page at hand is open.
    if (names.has(group.dataset.group) && !group.querySelector("a.active")) group.open = false;
    group.querySelector("summary").addEventListener("click", () => setTimeout(keepFolded, 0, group));
  }
  sidebar.addEventListener("click", (event) => {
    const button = event.target.closest("[data-favourite]");
    if (button) toggleFavourite(button, sidebar.dataset.csrf);
  });
  const input = sidebar.querySelector("[data-find]");
  if (input) {
    findClasses(
      input,
      sidebar.querySelector("[data-classes]"),
      sidebar.querySelector("[data-none]"),
    );
  }
}
