// One step's numbers as a grid: tokens and shapes on both axes, a window of it where it is big, one tab stop.
// Arrows, Home, End, Page Up and Page Down move through all of it; the window follows.

const ALL_ROWS = 24, ALL_COLUMNS = 24, SOME_ROWS = 16;

class Grid {
  constructor(viewer, step) {
    Object.assign(this, { viewer, step, mounted: false, marked: [], cells: new Map() });
    const { shape } = step;
    this.rows = shape.length > 1 ? shape.at(-2) : 1;
    this.columns = shape.length ? shape.at(-1) : 1;
    this.outer = shape.slice(0, -2).map(() => 0);
    this.top = this.left = 0;
    this.focus = { row: 0, column: 0 };
    this.root = element("div", { class: "rg-grid" });
    this.root.style.minHeight = `${this.expectedHeight()}px`;
  }

  get step0() {
    return ravel(this.outer, this.step.shape.slice(0, -2)) * this.rows * this.columns;
  }

  flatAt(row, column) {
    return this.step0 + row * this.columns + column;
  }

  // Where a cell is: its slice, row and column.
  find(flat) {
    const inSlice = flat % (this.rows * this.columns);
    const slice = Math.floor(flat / (this.rows * this.columns));
    return { outer: unravel(slice, this.step.shape.slice(0, -2)), row: Math.floor(inSlice / this.columns), column: inSlice % this.columns };
  }

  // About how high it will be, so that the page does not jump when it is made.
  expectedHeight() {
    const { rows, columns, outer } = this;
    const big = rows > ALL_ROWS || columns > ALL_COLUMNS;
    return 33 * (rows <= ALL_ROWS ? rows : SOME_ROWS) + 30 + (big ? MAP.height + 12 : outer.length ? 38 : 0);
  }

  mount() {
    if (this.mounted) return;
    this.mounted = true;
    this.root.style.minHeight = "";
    const width = this.root.clientWidth || 700;
    this.height = this.rows <= ALL_ROWS ? this.rows : SOME_ROWS;
    const room = Math.max(4, Math.floor((width - 130) / (48 + 8 * this.viewer.digits)));
    this.width = this.columns <= ALL_COLUMNS ? this.columns : Math.min(ALL_COLUMNS, room);
    this.clamp();
    this.render();
  }

  get whole() {
    return this.height === this.rows && this.width === this.columns;
  }

  clamp() {
    this.top = Math.max(0, Math.min(this.top, this.rows - this.height));
    this.left = Math.max(0, Math.min(this.left, this.columns - this.width));
  }

  // Brings a cell into its window, without moving the page.
  reveal(flat) {
    const { outer, row, column } = this.find(flat);
    const before = [this.outer.join(), this.top, this.left].join();
    this.outer = outer;
    if (!this.mounted) {
      [this.top, this.left] = [row - 2, column - 2];
      return;
    }
    if (row < this.top || row >= this.top + this.height) this.top = row - Math.floor(this.height / 3);
    if (column < this.left || column >= this.left + this.width) this.left = column - Math.floor(this.width / 3);
    this.clamp();
    if (before !== [this.outer.join(), this.top, this.left].join()) this.render();
  }

  render() {
    this.focus.row = Math.max(this.top, Math.min(this.focus.row, this.top + this.height - 1));
    this.focus.column = Math.max(this.left, Math.min(this.focus.column, this.left + this.width - 1));
    const had = this.root.contains(document.activeElement) && document.activeElement.matches("td");
    this.cells.clear();
    this.marked = [];
    this.waiting = false;
    this.root.replaceChildren(...this.controls(), element("div", { class: "rg-scroll" }, this.table()));
    this.mark();
    this.drawMap();
    if (had) this.cellAt(this.focus.row, this.focus.column)?.focus({ preventScroll: true });
  }

  names(axis) {
    const tokens = this.step.axes.length ? this.step.axes[axis] : null;
    return (at) => (tokens ? visibleToken(tokens[at]) : String(at));
  }

  get axes() {
    const last = this.step.shape.length - 1;
    return { row: last >= 1 ? this.names(last - 1) : () => "", column: last >= 0 ? this.names(last) : () => "" };
  }

  table() {
    const { step, viewer } = this;
    const { row: rowName, column: columnName } = this.axes;
    const matrix = step.shape.length > 1;
    const attention = step.kind === "weights" && matrix;
    const label = `${step.name}${step.formula ? ` = ${step.formula}` : ""}, ${shapeWords(step.shape)}`;
    const table = element("table", {
      role: "grid", "aria-label": label, "aria-rowcount": this.rows + 1, "aria-colcount": this.columns + (matrix ? 1 : 0),
      class: `rg-${step.kind}`, onkeydown: (event) => this.key(event), onclick: (event) => this.click(event),
    });
    if (step.shape.length) {
      const size = attention ? "queries\u00a0↓ keys\u00a0→" : `${this.rows}\u00a0↓ ${this.columns}\u00a0→`;
      const head = element("tr", { role: "row", "aria-rowindex": 1 });
      if (matrix) head.append(element("th", { class: "rg-corner", scope: "col", role: "columnheader", "aria-colindex": 1 }, size));
      for (let column = this.left; column < this.left + this.width; column++) {
        head.append(element("th", { scope: "col", role: "columnheader", "aria-colindex": column + 1 + matrix, dir: "auto" }, columnName(column)));
      }
      table.append(element("thead", {}, head));
    }
    const body = element("tbody");
    const reach = reachOf(viewer.derivation, step);
    for (let row = this.top; row < this.top + this.height; row++) {
      const line = element("tr", { role: "row", "aria-rowindex": row + 2 });
      if (matrix) line.append(element("th", { scope: "row", role: "rowheader", "aria-colindex": 1, dir: "auto" }, rowName(row)));
      for (let column = this.left; column < this.left + this.width; column++) line.append(this.cell(row, column, reach, matrix));
      body.append(line);
    }
    table.append(body);
    return table;
  }

  cell(row, column, reach, matrix) {
    const { step, viewer } = this;
    const flat = this.flatAt(row, column);
    const value = viewer.derivation.value(step, flat);
    const here = row === this.focus.row && column === this.focus.column;
    const made = element("td", { role: "gridcell", "aria-colindex": column + 1 + matrix, tabindex: here ? 0 : -1, "data-cell": `${step.position}:${flat}` });
    this.cells.set(flat, made);
    if (value === null) {
      this.waiting = true;
      made.textContent = "·";
      return made;
    }
    const blocked = value === -Infinity || (step.kind === "weights" && value === 0 && isBlocked(viewer.derivation, step, flat));
    const text = step.kind === "weights" ? small(value, viewer.digits, step.dtype) : shown(value, viewer.digits, step.dtype).text;
    made.textContent = typeset(text);
    if (blocked) {
      made.classList.add("rg-blocked");
      made.setAttribute("aria-label", `${text === "0" ? "0" : "minus infinity"}, blocked`);
      return made;
    }
    const colour = colourOf(step, value, reach, viewer.scheme);
    if (colour) made.style.cssText = `background:rgb(${colour.map(Math.round).join(" ")});color:${inkOn(colour)}`;
    return made;
  }

  cellAt(row, column) {
    return this.cells.get(this.flatAt(row, column));
  }

  // The slice that is shown, the window, and the whole of it as a small picture.
  controls() {
    const parts = this.outer.map((at, axis) => (this.step.shape[axis] > 1 ? this.chooser(at, axis) : null)).filter(Boolean);
    if (!this.whole) parts.push(this.pager("rows", "top", this.rows, this.height), this.pager("columns", "left", this.columns, this.width));
    const made = parts.length ? [element("div", { class: "rg-controls" }, ...parts.filter(Boolean))] : [];
    if (this.whole || !this.viewer.derivation.hasValues(this.step)) return made;
    this.map = element("canvas", { class: "rg-map", "aria-hidden": "true", title: "All of it; choose what to look at", onpointerdown: (event) => this.jump(event) });
    return [element("div", { class: "rg-over" }, this.map, ...made)];
  }

  chooser(at, axis) {
    const name = this.names(axis);
    const size = this.step.shape[axis];
    const select = element("select", {
      onchange: (event) => {
        this.outer[axis] = Number(event.target.value);
        this.render();
        this.viewer.flush();
      },
    });
    for (let k = 0; k < size; k++) select.append(element("option", { value: k, selected: k === at }, name(k)));
    return element("label", {}, `${axisWord(this.step, axis)} `, select, ` of ${size}`);
  }

  pager(what, edge, count, size) {
    if (size >= count) return null;
    const go = (by) => () => {
      this[edge] += by * size;
      this.clamp();
      this.render();
      this.viewer.flush();
    };
    const button = (sign, by, word, off) => element("button", { type: "button", tabindex: -1, "aria-label": `${word} ${what}`, disabled: off, onclick: go(by) }, sign);
    const words = element("span", {}, `${what} ${this[edge]} to ${this[edge] + size - 1} of ${count}`);
    return element("span", { class: "rg-pager" }, button("‹", -1, "earlier", this[edge] === 0), words, button("›", 1, "later", this[edge] + size >= count));
  }

  jump(event) {
    const box = this.map.getBoundingClientRect();
    this.top = Math.round(((event.clientY - box.top) / box.height) * this.rows - this.height / 2);
    this.left = Math.round(((event.clientX - box.left) / box.width) * this.columns - this.width / 2);
    this.clamp();
    this.focus = { row: this.top, column: this.left };
    this.render();
    this.viewer.flush();
  }

  drawMap() {
    if (this.whole || !this.map || !this.viewer.derivation.hasValues(this.step)) return;
    const marks = this.viewer.marksOf(this.step).map(({ flat, group }) => ({ ...this.find(flat), group })).filter((each) => each.outer.join() === this.outer.join());
    const view = { row: this.top, column: this.left, rows: this.height, columns: this.width };
    drawMap(this.map, { derivation: this.viewer.derivation, step: this.step, rows: this.rows, columns: this.columns, at: (r, c) => this.flatAt(r, c), scheme: this.viewer.scheme, marks, view });
  }

  // Outlines the open cell and its parents.
  mark() {
    for (const each of this.marked) {
      each.classList.remove("rg-open", "rg-parent", "rg-p0", "rg-p1", "rg-p2", "rg-p3");
      each.removeAttribute("aria-selected");
    }
    this.marked = [];
    for (const { flat, group } of this.viewer.marksOf(this.step)) {
      const cell = this.cells.get(flat);
      if (!cell) continue;
      if (group === undefined) {
        cell.classList.add("rg-open");
        cell.setAttribute("aria-selected", "true");
      } else cell.classList.add("rg-parent", `rg-p${group}`);
      this.marked.push(cell);
    }
  }

  click(event) {
    const cell = event.target.closest("td");
    if (!cell) return;
    const flat = Number(cell.dataset.cell.split(":")[1]);
    const { row, column } = this.find(flat);
    this.moveTo(row, column);
    this.viewer.open(this.step, flat);
  }

  key(event) {
    if (!event.target.matches("td") || event.altKey || event.metaKey) return;
    const { row, column } = this.focus;
    const far = event.ctrlKey;
    const moves = {
      ArrowUp: [row - 1, column], ArrowDown: [row + 1, column], ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
      Home: [far ? 0 : row, 0], End: [far ? this.rows - 1 : row, this.columns - 1],
      PageUp: [row - this.height, column], PageDown: [row + this.height, column],
    };
    if (event.key in moves) this.moveTo(...moves[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.viewer.enter(this.step, this.flatAt(row, column));
    else if (event.key === "Backspace") this.viewer.back();
    else return;
    event.preventDefault();
  }

  // Focus on a cell, its window with it.
  moveTo(row, column) {
    row = Math.max(0, Math.min(row, this.rows - 1));
    column = Math.max(0, Math.min(column, this.columns - 1));
    const before = this.cellAt(this.focus.row, this.focus.column);
    if (before) before.tabIndex = -1;
    this.focus = { row, column };
    this.reveal(this.flatAt(row, column));
    const cell = this.cellAt(row, column);
    cell.tabIndex = 0;
    cell.focus({ preventScroll: true });
    cell.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.viewer.flush();
  }
}
