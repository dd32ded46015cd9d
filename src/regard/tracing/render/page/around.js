// What stands around the grids: the list of steps, the button that changes the colours, the address.

function outlineOf(viewer, givens, steps) {
  const list = element("ol", {});
  const items = [...givens, ...steps].map((step) => {
    const name = element("button", { type: "button", onclick: () => viewer.showStep(step) });
    name.innerHTML = `<math>${nameMarkup(step.name)}</math>`;
    const item = element("li", { "data-name": `${step.name} ${step.module}`.toLowerCase(), class: step.isGiven ? "rg-is-given" : null }, name);
    item.append(element("span", {}, shapeWords(step.shape)));
    return item;
  });
  list.append(...items);
  const parts = [element("summary", {}, "Steps"), list];
  if (items.length > 15) {
    const find = element("input", { type: "search", placeholder: "find a step", "aria-label": "Find a step" });
    find.addEventListener("input", () => {
      for (const item of items) item.hidden = !item.dataset.name.includes(find.value.toLowerCase());
    });
    parts.splice(1, 0, find);
  }
  const box = element("details", { open: true }, ...parts);
  if (matchMedia("(max-width: 60rem)").matches) box.removeAttribute("open");
  return element("nav", { class: "rg-outline", "aria-label": "Steps" }, box);
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
