// The page of a derivation. `mountDerivation(element, derivation, options)` shows one in an element of any page:
//   derivation   its JSON, as text or parsed
//   options      title; digits (4); open, as "A[1, 2]"; theme (true: a button that changes it); hash (true: the
//                address holds the open cell); onOpen(name, index); cells({step, name, cells}) → a promise of
//                {values, reach}, asked where a number was left out of the JSON: `cells` are flat indices, `values`
//                their numbers in that order, `reach` the largest magnitude in the whole step, if it is known

class Viewer {
  constructor(host, record, options) {
    this.options = { title: "", digits: 4, theme: false, hash: false, ...options };
    this.derivation = new Derivation(typeof record === "string" ? JSON.parse(record) : record);
    this.digits = this.options.digits;
    this.fine = false;
    this.grids = new Map();
    this.sections = new Map();
    this.trail = [];
    this.marks = new Map();
    this.host = host;
    this.panel = new Panel(this);
    this.live = element("div", { class: "rg-hidden", "aria-live": "polite", role: "status" });
    this.root = element("div", { class: "rg" });
    this.body = element("div", { class: "rg-body" });
    this.root.append(this.header(), this.body, this.live);
    host.replaceChildren(this.root);
    this.scheme = this.seenScheme();
    this.watch = new IntersectionObserver((entries) => this.seen(entries), { rootMargin: "500px" });
    this.list();
    this.followScheme();
    this.openAsked();
  }

  header() {
    const digits = element("select", { onchange: (event) => this.setDigits(Number(event.target.value)) });
    for (let k = 2; k <= 6; k++) digits.append(element("option", { value: k, selected: k === this.digits }, k));
    const tools = element("div", { class: "rg-tools" }, element("label", {}, "digits ", digits));
    if (this.derivation.fine.length > this.derivation.steps.length + this.derivation.givens.length) {
      const box = element("input", { type: "checkbox", onchange: (event) => this.setFine(event.target.checked) });
      tools.append(element("label", { title: "Every operation the code ran, not only the steps a person would write" }, box, " every primitive"));
    }
    if (this.options.theme) tools.append(themeButton());
    const { title } = this.options;
    return element("header", { class: "rg-head" }, ...(title ? [element("h1", {}, title)] : []), tools);
  }

  // The steps in order, what was given before them; grids are made as they come into view.
  list() {
    this.watch.disconnect();
    const { derivation } = this;
    const steps = this.fine ? derivation.fine.filter((step) => !step.isGiven) : derivation.steps;
    const givens = this.fine ? derivation.fine.filter((step) => step.isGiven) : derivation.givens;
    const main = element(this.options.theme ? "main" : "div", { class: "rg-steps" }); // a page around it has its own main
    this.sections.clear();
    if (givens.length) {
      const few = givens.length <= 10 || givens.reduce((cells, step) => cells + step.size, 0) <= 500;
      const box = element("div", { class: "rg-flow" }, ...givens.map((step) => this.section(step)));
      main.append(element("details", { class: "rg-givens", open: few }, element("summary", {}, `Given (${givens.length})`), box));
    }
    main.append(element("div", { class: "rg-flow" }, ...steps.map((step) => this.section(step))));
    const outline = outlineOf(this, givens, steps);
    this.body.replaceChildren(outline, main, this.panel.root);
    for (const section of this.sections.values()) this.watch.observe(section);
  }

  section(step) {
    const said = step.formula ? `${step.name} = ${step.formula}` : step.name;
    const heading = element("h2", { class: "rg-formula", "aria-label": said, title: said });
    heading.innerHTML = headingMarkup(this.derivation, step);
    heading.addEventListener("click", (event) => {
      const link = event.target.closest("[data-step]");
      if (link) this.showStep(this.derivation.fine[Number(link.dataset.step)]);
    });
    const parts = [heading, element("p", { class: "rg-note" }, noteOf(step))];
    const has = this.options.cells || this.derivation.hasValues(step);
    if (step.size === 0) parts.push(element("p", { class: "rg-note" }, "no cells"));
    else if (has) parts.push(this.gridOf(step).root);
    else parts.push(element("p", { class: "rg-note" }, "its values were left out"));
    const wide = step.shape.length && step.shape.at(-1) > 6;
    const made = element("section", { class: `rg-step${wide ? " rg-wide" : ""}`, "aria-label": step.name, "data-position": step.position }, ...parts);
    this.sections.set(step, made);
    return made;
  }

  // Opens a cell by name, and brings it into view and focus.
  show(name, ...index) {
    const step = this.derivation.names.get(name);
    this.goTo(step, ravel(index, step.shape));
  }

  // A cell as text, as the terminal has it, and its parents: for pages around this one.
  why(name, ...index) {
    const step = this.derivation.names.get(name);
    const cell = this.derivation.why(step, ravel(index, step.shape), this.fine);
    const parents = this.derivation.parents(cell).map((leaf) => [leaf.step.name, leaf.step.index(leaf.flat)]);
    return { text: equation(cell, this.digits, 8, TEXT), parents, value: cell.value };
  }

  gridOf(step) {
    if (!this.grids.has(step)) this.grids.set(step, new Grid(this, step));
    return this.grids.get(step);
  }

  seen(entries) {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting) this.mount(this.derivation.fine[Number(target.dataset.position)]);
    }
    this.flush();
    this.root.dataset.ready = "true";
  }

  mount(step) {
    const grid = this.grids.get(step);
    if (grid && grid.root.isConnected) grid.mount();
  }

  cellOf(found) {
    const [position, flat] = found.dataset.cell.split(":").map(Number);
    return [this.derivation.fine[position], flat];
  }

  marksOf(step) {
    return this.marks.get(step) ?? [];
  }

  // Opens a cell: its equation, its parents outlined, the trail one longer where it is a parent of the one before.
  open(step, flat) {
    const before = this.trail.at(-1);
    const wasParent = before && this.lastParents?.some((leaf) => leaf.step === step && leaf.flat === flat);
    const at = this.trail.findIndex((each) => each.step === step && each.flat === flat);
    if (at >= 0) this.trail.length = at + 1;
    else this.trail = wasParent ? [...this.trail, { step, flat }] : [{ step, flat }];
    this.panel.terms = 8;
    this.refreshPanel(true);
    if (this.options.hash) keepAddress(`${step.name}${step.place(flat)}`);
    this.options.onOpen?.(step.name, step.index(flat));
    this.flush();
  }

  refreshPanel(speak = false) {
    const { step, flat } = this.trail.at(-1);
    const cell = this.derivation.why(step, flat, this.fine);
    const parents = this.derivation.parents(cell, 1024);
    this.lastParents = parents;
    const groups = new Map();
    for (const leaf of parents) if (!groups.has(leaf.step)) groups.set(leaf.step, groups.size % 4);
    this.marks = new Map([[step, [{ flat }]]]);
    for (const leaf of parents) {
      if (!this.marks.has(leaf.step)) this.marks.set(leaf.step, []);
      this.marks.get(leaf.step).push({ flat: leaf.flat, group: groups.get(leaf.step) });
    }
    for (const [each, marks] of this.marks) if (each !== step) this.grids.get(each)?.reveal(marks[0].flat);
    for (const grid of this.grids.values()) {
      if (!grid.mounted) continue;
      grid.mark();
      grid.drawMap();
    }
    this.panel.show(cell, parents, groups);
    if (speak) this.live.textContent = spoken(cell, this.digits);
  }

  // Enter opens; on the cell that is open it goes on to what that was made from.
  enter(step, flat) {
    const last = this.trail.at(-1);
    if (!(last && last.step === step && last.flat === flat && this.panel.focus())) this.open(step, flat);
  }

  goTo(step, flat) {
    this.open(step, flat);
    this.reach(step, flat);
  }

  // Brings a cell into view and focus, whatever slice, window or closed box it is in.
  reach(step, flat, smooth = true) {
    const section = this.sections.get(step);
    if (!section) return;
    section.closest("details")?.setAttribute("open", "");
    const grid = this.gridOf(step);
    this.mount(step);
    grid.reveal(flat);
    const { row, column } = grid.find(flat);
    const calm = !smooth || matchMedia("(prefers-reduced-motion: reduce)").matches;
    grid.moveTo(row, column);
    const cell = grid.cellAt(row, column);
    cell.scrollIntoView({ block: "center", inline: "nearest", behavior: calm ? "auto" : "smooth" });
  }

  back() {
    if (this.trail.length < 2) return;
    const { step, flat } = this.trail.at(-2);
    this.goTo(step, flat);
  }

  focusOpen() {
    const last = this.trail.at(-1);
    if (last) this.reach(last.step, last.flat);
  }

  close() {
    this.focusOpen();
    this.trail = [];
    this.lastParents = [];
    this.marks = new Map();
    for (const grid of this.grids.values()) if (grid.mounted) { grid.mark(); grid.drawMap(); }
    this.panel.empty();
    if (this.options.hash) keepAddress("");
  }

  showStep(step) {
    const section = this.sections.get(step);
    if (!section) return;
    section.closest("details")?.setAttribute("open", "");
    this.mount(step);
    section.scrollIntoView({ block: "start" });
    const grid = this.grids.get(step);
    grid?.cellAt(grid.focus.row, grid.focus.column)?.focus({ preventScroll: true });
  }

  setDigits(digits) {
    this.digits = digits;
    this.root.style.setProperty("--rg-cell", `${2.2 + 0.55 * digits}rem`);
    this.redraw();
  }

  setFine(fine) {
    this.fine = fine;
    this.grids.clear();
    this.list();
    if (this.trail.length) this.refreshPanel();
  }

  redraw() {
    for (const grid of this.grids.values()) if (grid.mounted) grid.render();
    if (this.trail.length) this.refreshPanel();
    this.flush();
  }

  seenScheme() {
    return getComputedStyle(this.root).getPropertyValue("--rg-scheme").trim() || "light";
  }

  // The system's choice, or that of the page around it, may change at any time.
  followScheme() {
    const follow = () => {
      const scheme = this.seenScheme();
      if (scheme === this.scheme) return;
      this.scheme = scheme;
      this.redraw();
    };
    this.ended = new AbortController();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", follow, { signal: this.ended.signal });
    this.themes = new MutationObserver(follow);
    this.themes.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  }

  // Takes the viewer out of the page, and with it all that it listens to.
  destroy() {
    this.ended.abort();
    this.themes.disconnect();
    this.watch.disconnect();
    this.root.remove();
  }

  flush() {
    return askForCells(this);
  }

  // `A[1, 2]`, from the options or the address.
  openAsked() {
    const address = this.options.hash && askedAddress();
    const asked = address || this.options.open;
    const found = asked && /^(.*?)(?:\[([\d, ]*)\])?$/s.exec(asked);
    const step = found && this.derivation.names.get(found[1]);
    const index = found?.[2] ? found[2].split(",").map(Number) : [];
    if (!step || index.length !== step.shape.length || !index.every((at, axis) => at >= 0 && at < step.shape[axis])) return;
    this.gridOf(step).reveal(ravel(index, step.shape));
    this.open(step, ravel(index, step.shape));
    if (address) requestAnimationFrame(() => this.reach(step, ravel(index, step.shape), false));
  }
}

function mountDerivation(host, derivation, options = {}) {
  return new Viewer(host, derivation, options);
}
