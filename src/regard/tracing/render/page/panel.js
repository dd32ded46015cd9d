// What is said of the open cell: the trail that led to it, its equation, and the numbers it was made from.

const MOST_CHIPS = 24, MOST_TERMS = 512;

class Panel {
  constructor(viewer) {
    this.viewer = viewer;
    this.terms = 8;
    this.root = element("aside", { class: "rg-panel", "aria-label": "Where a number comes from" });
    this.root.addEventListener("click", (event) => this.click(event));
    this.root.addEventListener("pointerover", (event) => this.point(event, true));
    this.root.addEventListener("pointerout", (event) => this.point(event, false));
    this.empty();
  }

  empty() {
    const keys = element("p", { class: "rg-hint" });
    keys.innerHTML = "<kbd>←</kbd><kbd>→</kbd><kbd>↑</kbd><kbd>↓</kbd> move, <kbd>Home</kbd> and <kbd>End</kbd> go to the ends of a row, <kbd>Enter</kbd> opens, <kbd>Enter</kbd> again goes to what a number was made from, <kbd>⌫</kbd> goes back.";
    this.root.classList.add("rg-empty");
    this.root.replaceChildren(element("p", { class: "rg-invite" }, "Choose any number to see where it comes from."), keys);
  }

  show(cell, parents, groups) {
    const { viewer } = this;
    this.root.classList.remove("rg-empty");
    const { step, flat } = cell;
    for (const each of viewer.root.querySelectorAll(".rg-pointed")) each.classList.remove("rg-pointed");
    const title = element("h3", { class: "rg-cell-name" });
    title.innerHTML = titleMarkup(step.name, step.place(flat));
    const close = element("button", { type: "button", class: "rg-close", "aria-label": "Close", onclick: () => viewer.close() }, "×");
    const head = element("div", { class: "rg-panel-head" }, title, close);
    const where = placeWords(step, flat);
    const parts = viewer.trail.length > 1 ? [this.trail(), head] : [head];
    if (where) parts.push(element("p", { class: "rg-where" }, where));
    parts.push(this.equation(cell, groups));
    if (typeof cell.value === "number" && !Number.isInteger(cell.value)) parts.push(element("p", { class: "rg-recorded" }, `recorded as ${typeset(fullText(cell.value, step.dtype))} (${step.dtype})`));
    if (step.operation && !step.isGiven) parts.push(element("p", { class: "rg-recorded" }, `by ${step.operation}${step.module ? ` in ${step.module}` : ""}`));
    if (parents.length) parts.push(this.parents(parents, groups));
    this.root.replaceChildren(...parts);
    this.fit(cell, groups);
    for (const draw of this.maps ?? []) draw();
  }

  trail() {
    const { trail } = this.viewer;
    const list = element("ol", { class: "rg-trail", "aria-label": "Trail" });
    trail.forEach(({ step, flat }, k) => {
      const last = k === trail.length - 1;
      const go = () => this.viewer.goTo(step, flat);
      const button = element("button", { type: "button", "aria-label": `${step.name}${step.place(flat)}`, "aria-current": last ? "location" : null, onclick: go });
      button.innerHTML = titleMarkup(step.name, step.place(flat));
      list.append(element("li", {}, button));
    });
    return list;
  }

  equation(cell, groups, linear = false) {
    const box = element("div", { class: "rg-equation", role: "group", "aria-label": equation(cell, this.viewer.digits, 8, TEXT) });
    box.innerHTML = mathMarkup(equation(cell, this.viewer.digits, this.terms, mathNotation(groups, linear)));
    return box;
  }

  // On the line, where it can be broken, if it does not fit upright.
  fit(cell, groups) {
    const box = this.root.querySelector(".rg-equation");
    if (box.scrollWidth > box.clientWidth + 1) box.replaceWith(this.equation(cell, groups, true));
  }

  parents(parents, groups) {
    const box = element("div", { class: "rg-parents", role: "toolbar", "aria-label": "Made from", onkeydown: (event) => this.key(event) });
    this.maps = [];
    for (const [step, group] of groups) {
      const own = parents.filter((leaf) => leaf.step === step);
      box.append(this.family(step, group, own));
    }
    box.querySelector("button")?.setAttribute("tabindex", "0");
    return element("section", { "aria-label": "Made from" }, element("h4", {}, "made from"), box);
  }

  family(step, group, own) {
    const name = element("div", { class: "rg-family-name" });
    name.innerHTML = `${titleMarkup(step.name)} <span class="rg-size">${safe(shapeWords(step.shape))}</span>`;
    const chips = element("div", { class: "rg-chips" });
    for (const leaf of own.slice(0, MOST_CHIPS)) chips.append(this.chip(leaf, group));
    if (own.length > MOST_CHIPS) chips.append(element("span", { class: "rg-rest" }, `and ${own.length - MOST_CHIPS} more`));
    const parts = [name];
    if (step.size > 1 && this.viewer.derivation.hasValues(step)) parts.push(this.miniature(step, group, own));
    return element("div", { class: `rg-family rg-p${group}` }, ...parts, chips);
  }

  chip(leaf, group) {
    const { step, flat, value } = leaf;
    const text = known(value) ? typeset(shown(value, this.viewer.digits, step.dtype).text) : "·";
    const label = `${step.name}${step.place(flat)}, ${known(value) ? text : "left out"}${placeWords(step, flat) ? `, ${placeWords(step, flat)}` : ""}`;
    return element("button", { type: "button", tabindex: -1, class: `rg-chip rg-p${group}`, "data-cell": `${step.position}:${flat}`, "aria-label": label, title: placeWords(step, flat) || null },
      element("small", {}, step.place(flat) || step.name), ` ${text}`);
  }

  // The slice the parents are in, with their places.
  miniature(step, group, own) {
    const canvas = element("canvas", { class: "rg-map", "aria-hidden": "true" });
    const grid = this.viewer.gridOf(step);
    const { outer } = grid.find(own[0].flat);
    const places = own.map(({ flat }) => ({ ...grid.find(flat), group })).filter((each) => each.outer.join() === outer.join());
    const start = ravel(outer, step.shape.slice(0, -2)) * grid.rows * grid.columns;
    const at = (row, column) => start + row * grid.columns + column;
    const limits = { width: 132, height: 84, largest: 16 };
    this.maps.push(() => drawMap(canvas, { derivation: this.viewer.derivation, step, rows: grid.rows, columns: grid.columns, at, scheme: this.viewer.scheme, marks: places, limits }));
    return canvas;
  }

  click(event) {
    if (event.target.closest("[data-more]")) {
      this.terms = MOST_TERMS;
      this.viewer.refreshPanel();
      return;
    }
    const found = event.target.closest("[data-cell]");
    if (found) this.viewer.goTo(...this.viewer.cellOf(found));
  }

  // A number under the pointer shows where it stands.
  point(event, over) {
    const found = event.target.closest?.("[data-cell]");
    if (!found) return;
    const [step, flat] = this.viewer.cellOf(found);
    const all = [...this.root.querySelectorAll(`[data-cell="${found.dataset.cell}"]`), this.viewer.grids.get(step)?.cells.get(flat)];
    for (const each of all) each?.classList.toggle("rg-pointed", over);
  }

  focus() {
    const first = this.root.querySelector(".rg-chip");
    first?.focus();
    return Boolean(first);
  }

  key(event) {
    const chips = [...this.root.querySelectorAll(".rg-chip")];
    const at = chips.indexOf(document.activeElement);
    const moves = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: chips.length - 1 };
    if (event.key === "Escape") this.viewer.focusOpen();
    else if (event.key === "Backspace") this.viewer.back();
    else if (event.key in moves && at >= 0) {
      const next = chips[Math.max(0, Math.min(moves[event.key], chips.length - 1))];
      chips[at].tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    } else return;
    event.preventDefault();
  }
}
