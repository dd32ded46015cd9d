// What stands around the grids: the list of steps, the button that changes the colours, the address.

// A piece of the page: attributes by name, listeners by on….
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

// The list of steps, under the modules they ran in; many givens stand in a closed box of their own.
function outlineOf(viewer, givens, steps) {
  const list = element("ol", {}, ...listed(viewer, steps));
  const parts = [element("summary", {}, "Steps")];
  const count = givens.length + steps.length;
  const lists = [list];
  if (givens.length > 10) {
    const given = element("ol", {}, ...listed(viewer, givens));
    lists.push(given);
    parts.push(list, element("details", { class: "rg-given-list" }, element("summary", {}, `Given (${givens.length})`), given));
  } else {
    list.prepend(...listed(viewer, givens));
    parts.push(list);
  }
  if (count > 15) parts.splice(1, 0, finder(lists));
  const box = element("details", { open: true }, ...parts);
  const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
  if (viewer.root.clientWidth < 84 * rem) box.removeAttribute("open");
  return element("nav", { class: "rg-outline", "aria-label": "Steps" }, box);
}

function listed(viewer, steps) {
  let group = "";
  return steps.flatMap((step) => {
    const cut = step.name.startsWith("∂") ? -1 : step.name.lastIndexOf(".");
    const [path, last] = [step.name.slice(0, Math.max(cut, 0)), step.name.slice(cut + 1)];
    const name = element("button", { type: "button", title: step.name, onclick: () => viewer.showStep(step) });
    name.innerHTML = `<math>${nameMarkup(last)}</math>`;
    const item = element("li", { "data-name": step.name.toLowerCase(), class: step.isGiven ? "rg-is-given" : null }, name, element("span", {}, shapeWords(step.shape)));
    const heading = path && path !== group ? [element("li", { class: "rg-module" }, path)] : [];
    group = path;
    return [...heading, item];
  });
}

function finder(lists) {
  const find = element("input", { type: "search", placeholder: "find a step", "aria-label": "Find a step" });
  find.addEventListener("input", () => {
    const word = find.value.toLowerCase();
    for (const list of lists) {
      if (word) list.closest("details").open = true;
      for (const item of list.children) item.hidden = item.dataset.name ? !item.dataset.name.includes(word) : Boolean(word);
    }
  });
  return find;
}

const THEMES = { system: "◐ system", light: "☀ light", dark: "☾ dark" };

// The system's colours, or those chosen; the choice is kept where the browser lets it be.
function themeButton() {
  const root = document.documentElement;
  const keep = (theme) => {
    try {
      localStorage.setItem("regard-theme", theme);
    } catch {
      // A file or a frame may have nowhere to keep it.
    }
  };
  const kept = () => {
    try {
      return localStorage.getItem("regard-theme") ?? "system";
    } catch {
      return "system";
    }
  };
  const button = element("button", { type: "button", class: "rg-theme" });
  const set = (theme) => {
    if (theme === "system") delete root.dataset.theme;
    else root.dataset.theme = theme;
    button.textContent = THEMES[theme] ?? THEMES.system;
    button.setAttribute("aria-label", `Colours: ${theme}`);
    button.dataset.now = theme;
  };
  button.addEventListener("click", () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const round = dark ? ["system", "light", "dark"] : ["system", "dark", "light"];
    const next = round[(round.indexOf(button.dataset.now) + 1) % 3];
    set(next);
    keep(next);
  });
  set(kept() in THEMES ? kept() : "system");
  return button;
}

function keepAddress(text) {
  try {
    history.replaceState(null, "", text ? `#${encodeURIComponent(text)}` : location.pathname + location.search);
  } catch {
    // A frame without an address of its own has none to keep.
  }
}

function askedAddress() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}
