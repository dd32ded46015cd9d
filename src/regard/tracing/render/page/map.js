// A whole slice at a glance: one small picture with a point a cell, the window in view and the cells that matter.

const MAP = { width: 168, height: 112, largest: 14, thinnest: 28 };

function mapSize(rows, columns, limits = MAP) {
  const scale = Math.min(limits.largest, limits.width / columns, limits.height / rows);
  const side = (count) => Math.round(Math.max(count * scale, Math.min(MAP.thinnest, count * limits.largest)));
  return { width: side(columns), height: side(rows) };
}

// Draws a slice: `at(row, column)` is the flat index there. Cells smaller than a point are sampled.
function drawMap(canvas, { derivation, step, rows, columns, at, scheme, marks = [], view = null, limits = MAP }) {
  const { width, height } = mapSize(rows, columns, limits);
  const ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  const style = getComputedStyle(canvas);
  paintCells(context, { derivation, step, rows, columns, at, scheme }, style);
  const [x, y] = [canvas.width / columns, canvas.height / rows];
  if (view) {
    context.strokeStyle = style.getPropertyValue("--rg-ink");
    context.lineWidth = 1.5 * ratio;
    context.strokeRect(view.column * x + 1, view.row * y + 1, view.columns * x - 2, view.rows * y - 2);
  }
  for (const { row, column, group } of marks) {
    context.strokeStyle = style.getPropertyValue(group === undefined ? "--rg-ink" : `--rg-p${group}`);
    context.lineWidth = Math.max(1.5, Math.min(x, y) / 5) * ratio ** 0.5;
    const [w, h] = [Math.max(x, 3 * ratio), Math.max(y, 3 * ratio)];
    context.strokeRect(column * x + 0.5, row * y + 0.5, w - 1, h - 1);
  }
}

function paintCells(context, { derivation, step, rows, columns, at, scheme }, style) {
  const { width, height } = context.canvas;
  const [across, down] = [Math.min(columns, width), Math.min(rows, height)];
  const reach = reachOf(derivation, step);
  const plain = style.getPropertyValue("--rg-plain");
  const [w, h] = [width / across, height / down];
  for (let i = 0; i < down; i++) {
    for (let j = 0; j < across; j++) {
      const flat = at(Math.floor((i * rows) / down), Math.floor((j * columns) / across));
      const value = derivation.value(step, flat);
      const colour = value === null ? null : colourOf(step, Number(value), reach, scheme);
      context.fillStyle = colour ? `rgb(${colour.map(Math.round).join(" ")})` : plain;
      context.fillRect(Math.floor(j * w), Math.floor(i * h), Math.ceil(w), Math.ceil(h));
    }
  }
}
