// What is said of a step and of a cell.

// `A = softmax(M)`, its names leading to their steps; or what it is where no formula stands in the code.
function headingMarkup(derivation, step) {
  const name = titleMarkup(step.name);
  if (step.formula) {
    const inputs = step.inputs.map((each) => derivation.names.get(each)).filter(Boolean);
    const link = (word) => {
      const found = inputs.find((each) => each.label === word || each.name === word || each.name.endsWith(`.${word}`));
      return found ? ` data-step="${found.position}" class="rg-link"` : "";
    };
    // A sign between two spaces needs none of its own.
    const groups = [mo("="), ...formulaGroups(step.formula, link)].map((each) => each.replace(/^<mo>(?=[^<]*<\/mo>$)/, '<mo lspace="0" rspace="0">'));
    return [name, ...groups.map((each) => mathematics(row(each)))].join(" ");
  }
  if (step.isGiven) {
    const said = { given: "is given", parameter: "is a parameter", constant: "is a constant", random: "is drawn by chance" };
    return `${name} <span class="rg-said">${said[step.role]}</span>`;
  }
  const of = step.inputs.length ? ` of ${step.inputs.join(", ")}` : "";
  return `${name} <span class="rg-said">by ${safe(step.operation + of)}</span>`;
}

// A name over a step or a cell: a path is text, which may be broken anywhere.
function titleMarkup(name, place = "") {
  return PLAIN_NAME.test(name) ? mathematics(nameMarkup(name, place)) : `<span class="rg-path">${safe(name + place)}</span>`;
}

function mathematics(markup) {
  return `<math>${markup}</math>`;
}

// Its shape, how to read it, and where it was computed.
function noteOf(step) {
  const parts = [shapeWords(step.shape)];
  if (step.kind === "weights" && step.shape.length > 1) parts.push("rows are queries, columns keys");
  if (step.module && !step.name.startsWith(step.module)) parts.push(step.module);
  return parts.join(" · ");
}

// A cell as the live region speaks it.
function spoken(cell, digits) {
  const { step, flat } = cell;
  const where = placeWords(step, flat);
  return `${step.name}${step.place(flat)}${where ? ` (${where})` : ""}: ${equation(cell, digits, 8, TEXT)}`;
}

// `row are, column how`, or with attention's words.
function placeWords(step, flat) {
  const index = step.index(flat);
  const last = index.length - 1;
  const words = index.map((at, axis) => {
    const tokens = step.axes.length ? step.axes[axis] : null;
    if (!tokens) return "";
    const attention = step.kind === "weights" && axis >= last - 1;
    const what = attention ? ["query", "key"][axis - last + 1] : axis === last ? "column" : axis === last - 1 ? "row" : axisWord(step, axis);
    return `${what} ${visibleToken(tokens[at])}`;
  });
  return words.filter(Boolean).join(", ");
}

function shapeWords(shape) {
  return shape.length ? shape.join(" × ") : "one number";
}

// What an axis before the last two is; that of heads is known by attention's four axes.
function axisWord(step, axis) {
  if (step.kind === "weights" && step.shape.length === 4) return ["example", "head"][axis];
  return `axis ${axis}`;
}

// A token as it can be seen: no line ends, no spaces at its ends, never nothing.
function visibleToken(text) {
  const plain = text.replaceAll("\n", "⏎").replaceAll("\t", "⇥").replaceAll("\r", "");
  const body = plain.replace(/^ +| +$/g, "");
  if (!body) return "␣".repeat(plain.length) || "∅";
  const left = plain.length - plain.trimStart().length;
  return "␣".repeat(left) + body + "␣".repeat(plain.length - left - body.length);
}
