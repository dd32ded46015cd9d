// A derivation as its JSON says it: steps, their numbers, and the rules by which the parents of a cell are found.
// docs/derivation.schema.json says what stands where. Nothing is computed: every number is read from some step.

const ROWS = ["over", "softmax", "log_softmax"]; // Forms whose last part runs over the inner places.
const WORDS = { inf: Infinity, "-inf": -Infinity, nan: NaN };
// Of a number in the JSON: some stand in words, and whole ones that JavaScript would round as their digits.
function readNumber(value) {
  if (typeof value !== "string") return value;
  return WORDS[value] ?? BigInt(value);
}

const PACKED = {
  float32: Float32Array, float64: Float64Array, int8: Int8Array, int16: Int16Array, int32: Int32Array,
  int64: BigInt64Array, uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array,
};

function unravel(flat, shape) {
  const places = new Array(shape.length);
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    places[axis] = flat % shape[axis];
    flat = Math.floor(flat / shape[axis]);
  }
  return places;
}

function ravel(places, shape) {
  return places.reduce((flat, at, axis) => flat * shape[axis] + at, 0);
}

function mapped(map, places) {
  let [flat, row] = [map.offset, 0];
  for (let axis = 0; axis < map.strides.length; axis++) {
    flat += map.strides[axis] * places[axis];
    if (map.table) row += map.lookup[axis] * places[axis];
  }
  if (!map.table) return flat;
  return map.table[row] < 0 ? -1 : flat + map.table[row];
}

class Step {
  constructor(record, position) {
    Object.assign(this, record, { position, cache: new Map() });
    this.size = this.shape.reduce((product, size) => product * size, 1);
    this.isMove = Boolean(this.rule && this.rule.pieces);
    this.isGiven = ["given", "parameter", "constant", "random"].includes(this.role);
    this.isComplex = this.dtype.startsWith("complex");
  }

  // Its own numbers, unpacked when they are first read; null where it has none.
  get array() {
    if (this.unpacked === undefined) this.unpacked = this.values === null ? null : this.unpack(this.values);
    return this.unpacked;
  }

  unpack(values) {
    if (!Array.isArray(values)) {
      const text = atob(values.base64);
      const bytes = new Uint8Array(text.length);
      for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
      return new PACKED[values.type](bytes.buffer);
    }
    const near = ["float32", "bfloat16", "complex64"].includes(this.dtype) ? Math.fround : this.dtype === "float16" ? half : (x) => x;
    return values.map((each) => (typeof each === "boolean" ? each : near(readNumber(each))));
  }

  at(flat) {
    const { array } = this;
    if (this.isComplex) return { real: array[2 * flat], imaginary: array[2 * flat + 1] };
    return this.dtype === "bool" ? Boolean(array[flat]) : array[flat];
  }

  index(flat) {
    return unravel(flat, this.shape);
  }

  place(flat) {
    return this.shape.length ? `[${this.index(flat).join(", ")}]` : "";
  }
}

class Derivation {
  constructor(record) {
    this.fine = record.steps.map((step, position) => new Step(step, position));
    this.target = this.fine[record.target];
    const shownSteps = this.fine.filter((step) => step.shown);
    this.steps = shownSteps.filter((step) => !step.isGiven || step === this.target);
    this.givens = shownSteps.filter((step) => step.isGiven && step !== this.target);
    this.names = new Map(this.fine.map((step) => [step.name, step]));
    this.wanted = new Map(); // Cells that were looked for and are not here, by step.
  }

  // The number of a cell; null where it was left out (and then it is among `wanted`).
  value(step, flat) {
    const isTruth = step.dtype === "bool";
    for (;;) {
      if (step.array !== null) return step.at(flat);
      if (step.cache.has(flat)) return step.cache.get(flat);
      if (!step.isMove) break;
      const [owner, index] = this.source(step, flat);
      if (owner < 0) return isTruth ? Boolean(step.rule.fill) : readNumber(step.rule.fill ?? 0);
      [step, flat] = [this.fine[owner], index];
    }
    if (!this.wanted.has(step)) this.wanted.set(step, new Set());
    this.wanted.get(step).add(flat);
    return null;
  }

  hasValues(step) {
    if (step.values !== null) return true; // not unpacked for the question alone
    return step.isMove && step.rule.pieces.every((piece) => this.hasValues(this.fine[piece.step]));
  }

  // Of a moved cell: the step and the flat index it comes from; -1 and 0 where it is filled in.
  source(step, flat) {
    const places = unravel(flat, step.shape);
    for (const piece of step.rule.pieces.toReversed()) {
      const inside = places.map((place, axis) => place - piece.start[axis]);
      if (!inside.every((place, axis) => place >= 0 && place < piece.size[axis])) continue;
      const found = mapped(piece, inside);
      if (found >= 0) return [piece.step, found];
    }
    return [-1, 0];
  }

  // Passed on through every move that is not shown.
  passed(position, flat, fine) {
    while (position >= 0 && !fine && !this.fine[position].shown && this.fine[position].isMove) {
      const [owner, index] = this.source(this.fine[position], flat);
      if (owner < 0) return [-1, position];
      [position, flat] = [owner, index];
    }
    return [position, flat];
  }

  why(step, flat, fine = false) {
    const frame = new Frame(this, step, flat, fine);
    const runs = step.untrue?.[fine ? "primitives" : "steps"] ?? [];
    const holds = !runs.some(([start, count]) => flat >= start && flat < start + count);
    return { step, flat, expression: frame.part(frame.body, null), value: this.value(step, flat), holds };
  }

  // The cells a cell was made from, each once, in the order of the text.
  parents(cell, most = Infinity) {
    const found = new Map();
    for (const leaf of leaves(cell.expression)) {
      found.set(`${leaf.step.position}:${leaf.flat}`, leaf);
      if (found.size >= most) break;
    }
    return [...found.values()];
  }
}

class Frame {
  constructor(derivation, step, flat, fine) {
    Object.assign(this, { derivation, step, flat, fine, inner: [], outer: [] });
    const { rule } = step;
    if (step.isMove) this.body = { form: "cell", operand: 0 };
    else if (rule) {
      [this.body, this.inner, this.outer] = [rule.body, rule.inner, step.index(flat)];
      this.count = rule.inner.reduce((product, size) => product * size, 1);
    } else this.body = { form: step.isGiven ? "given" : "opaque", name: step.operation };
  }

  // The flat index an operand is read at; negative where there is no cell.
  read(operand, at) {
    const inner = this.inner.length ? unravel(at ?? 0, this.inner) : [];
    return mapped(operand, [...this.outer, ...inner]);
  }

  places() {
    const found = [];
    for (let at = 0; at < this.count; at++) {
      if (this.step.rule.operands.every((operand) => this.read(operand, at) >= 0)) found.push(at);
    }
    return found;
  }

  part(form, at) {
    if (form.form !== "cell") return new Expression(this, form, at);
    const { derivation, step } = this;
    let [owner, index] = [-1, step.position];
    if (step.isMove) {
      [owner, index] = derivation.source(step, this.flat);
      if (owner < 0) index = step.position;
    } else {
      const operand = step.rule.operands[form.operand];
      [owner, index] = [operand.step, this.read(operand, at)];
    }
    if (owner >= 0) [owner, index] = derivation.passed(owner, index, this.fine);
    if (owner < 0) return new Expression(this, { form: "number", number: derivation.fine[index].rule.fill, name: "fill" }, at);
    const found = derivation.fine[owner];
    if (found.shown || this.fine || !found.rule || found.isMove) return new Expression(this, { form: "cell" }, null, found, index);
    const nested = new Frame(derivation, found, index, false);
    return nested.part(nested.body, null);
  }
}

// A formula with numbers in their places; its parts are made when they are looked at.
class Expression {
  constructor(frame, template, at, step = null, flat = -1) {
    Object.assign(this, { frame, template, at, step, flat, form: template.form, name: template.name ?? "" });
  }

  get number() {
    const { number } = this.template;
    return readNumber(number ?? null);
  }

  get value() {
    return this.step ? this.frame.derivation.value(this.step, this.flat) : this.number;
  }

  get of() {
    const parts = this.template.of ?? [];
    return (ROWS.includes(this.form) ? parts.slice(0, -1) : parts).map((part) => this.frame.part(part, this.at));
  }

  get places() {
    this.found ??= ROWS.includes(this.form) ? this.frame.places() : [];
    return this.found;
  }

  term(k) {
    return this.frame.part(this.template.of.at(-1), this.places[k]);
  }

  get terms() {
    return this.places.map((_, k) => this.term(k));
  }
}

function* leaves(a) {
  if (a.step) {
    yield a;
    return;
  }
  for (const part of a.of) yield* leaves(part);
  for (let k = 0; k < a.places.length; k++) yield* leaves(a.term(k));
}

// Whether a weight of 0 comes of a score of minus infinity in its own place.
function isBlocked(derivation, step, flat) {
  const own = (a) => {
    if (a.form === "softmax" || a.form === "quotient") {
      for (const leaf of leaves(a.of[0])) if (leaf.value === -Infinity) return true;
    } else if (a.step && a.value === 0 && a.step.kind === "weights") return isBlocked(derivation, a.step, a.flat);
    return a.of.some(own);
  };
  return own(derivation.why(step, flat).expression);
}
