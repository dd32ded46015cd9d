// Numbers that the JSON left out, asked for as they are looked at.

// What was looked for and is not here is asked for, all at once.
async function askForCells(viewer) {
  const { derivation, options } = viewer;
  const wanted = [...derivation.wanted];
  derivation.wanted.clear();
  if (!options.cells || !wanted.length || viewer.failed) return;
  try {
    await Promise.all(wanted.map(([step, cells]) => fetchCells(options.cells, step, [...cells])));
  } catch (error) {
    viewer.failed = true;
    sayFailed(viewer, error.message);
    return;
  }
  for (const grid of viewer.grids.values()) if (grid.mounted && grid.waiting) grid.render();
  if (viewer.trail.length) viewer.refreshPanel();
  if (derivation.wanted.size) await askForCells(viewer);
}

async function fetchCells(ask, step, cells) {
  const { values, reach } = await ask({ step: step.position, name: step.name, cells });
  if (reach !== undefined) step.told = reach;
  cells.forEach((flat, k) => step.cache.set(flat, readNumber(values[k])));
}

// In place, where it is seen and heard, with the way to try again.
function sayFailed(viewer, reason) {
  const again = element("button", { type: "button" }, "Try again");
  const notice = element("p", { class: "rg-notice", role: "alert" }, `The numbers could not be fetched: ${reason}. `, again);
  again.addEventListener("click", () => {
    notice.remove();
    viewer.failed = false;
    viewer.redraw();
  });
  viewer.body.before(notice);
}
