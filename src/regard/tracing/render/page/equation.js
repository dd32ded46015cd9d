// An expression as text (the same as render/equation.py, letter for letter) or as MathML.
// Levels tell where parentheses are needed: 1 a sum, 2 a product, 3 a power, 4 what stands alone, 5 words for terms left out.

const SUM = 1, PRODUCT = 2, POWER = 3, ALONE = 4, LEFT_OUT = 5;

const TEXT = {
  about: "≈",
  equals: "=",
  one: (text) => ({ text, level: ALONE }),
  leaf(a, digits) {
    if (!known(a.value)) return this.one(a.step.name + a.step.place(a.flat));
    const { text } = shown(a.value, digits, a.step ? a.step.dtype : "float64");
    if (text.startsWith("-")) return { text, level: SUM };
    return { text, level: text.includes("e") && /\d/.test(text[0]) ? PRODUCT : ALONE };
  },
  omitted: (count) => ({ text: `… (${count} more)`, level: LEFT_OUT }),
  held(part, level) {
    return part.level >= level ? part.text : `(${part.text})`;
  },
  sum(parts) {
    if (parts.length === 1) return parts[0];
    let text = this.held(parts[0], SUM);
    for (const part of parts.slice(1)) {
      const minus = part.level >= SUM && part.text.startsWith("-") && !part.text.includes(" ");
      text += minus ? ` - ${part.text.slice(1)}` : ` + ${this.held(part, SUM)}`;
    }
    return { text, level: SUM };
  },
  product(parts) {
    return parts.length === 1 ? parts[0] : { text: parts.map((each) => this.held(each, POWER)).join("·"), level: PRODUCT };
  },
  difference(a, b) {
    return { text: `${this.held(a, SUM)} - ${this.held(b, PRODUCT)}`, level: SUM };
  },
  negative(a) {
    return { text: `-${this.held(a, POWER)}`, level: SUM };
  },
  quotient(a, b) {
    return { text: `${this.held(a, PRODUCT)} / ${this.held(b, POWER)}`, level: PRODUCT };
  },
  power(a, b) {
    return { text: `${this.held(a, ALONE)}^${this.held(b, ALONE)}`, level: POWER };
  },
  call: (name, parts) => ({ text: `${name}(${parts.map((each) => each.text).join(", ")})`, level: ALONE }),
  root: (a) => ({ text: a.level >= ALONE && !a.text.includes("[") ? `√${a.text}` : `√(${a.text})`, level: ALONE }),
  chosen: (condition, yes, no) => ({ text: `${yes.text} if ${condition.text} else ${no.text}`, level: 0 }),
  compared(a, name, b) {
    return { text: `${this.held(a, SUM)} ${name} ${this.held(b, SUM)}`, level: 0 };
  },
  words: (text) => text,
  joined: (left, relation, right) => `${left.text} ${relation} ${right.text}`,
  said: (left, words) => left.text + words,
  denied: (left, right, words) => `${left.text} ≠ ${right.text}${words}`,
};

class Writer {
  constructor(digits, terms, to) {
    Object.assign(this, { digits, most: terms, to });
  }

  write(a) {
    if (a.form === "cell" || a.form === "number") return this.to.leaf(a, this.digits);
    const rule = FORM_WRITERS[a.form];
    return rule ? rule(this, a) : this.to.call(a.name || a.form, []);
  }

  all(a) {
    return a.of.map((each) => this.write(each));
  }

  terms(a) {
    const count = a.places.length;
    const shownCount = this.most === null || count <= this.most + 1 ? count : this.most;
    const parts = [];
    for (let k = 0; k < shownCount; k++) parts.push(this.write(a.term(k)));
    return shownCount < count ? [...parts, this.to.omitted(count - shownCount)] : parts;
  }

  exp(part) {
    return this.to.power(this.to.one("e"), part);
  }

  exponentials(a) {
    return this.to.sum(this.terms(a).map((each) => (each.level === LEFT_OUT ? each : this.exp(each))));
  }

  over(a) {
    const { to } = this;
    const [parts, count] = [this.terms(a), a.places.length];
    if (["sum", "mean", "product"].includes(a.name)) {
      if (count === 0) return to.one({ sum: "0", product: "1" }[a.name] ?? "NaN");
      const joined = a.name === "product" ? to.product(parts) : to.sum(parts);
      return a.name === "mean" && count > 1 ? to.quotient(joined, to.one(String(count))) : joined;
    }
    const usual = { variance: 0, norm: 2 }[a.name];
    const name = usual === undefined || a.number === null ? a.name : withNumber(a.name === "variance" ? "var" : a.name, a.number, usual);
    return to.call(name, parts);
  }

  call(a) {
    const { to } = this;
    const parts = this.all(a);
    const [x] = parts;
    const one = to.one("1");
    switch (a.name) {
      case "maximum":
      case "minimum":
        return to.call(a.name.slice(0, 3), parts);
      case "exp":
        return this.exp(x);
      case "sigmoid":
        return to.quotient(one, to.sum([one, this.exp(to.negative(x))]));
      case "silu":
        return to.quotient(x, to.sum([one, this.exp(to.negative(x))]));
      case "relu":
        return to.call("max", [to.one("0"), x]);
      case "sqrt":
        return to.root(x);
      case "rsqrt":
        return to.quotient(one, to.root(x));
      case "reciprocal":
        return to.quotient(one, x);
      case "square":
        return to.power(x, to.one("2"));
      case "gelu":
        return to.product([x, to.call("Φ", [x])]);
      default:
        return to.call(a.name, parts);
    }
  }
}

// var divides by the count, var₁ by the count less one; norm is that of order 2, norm₁ of order 1.
function withNumber(name, number, usual) {
  const text = number === usual ? "" : number === Infinity ? "∞" : String(Number(Number(number).toPrecision(6)));
  return name + text.replace(/[\d-]/g, (digit) => (digit === "-" ? "₋" : "₀₁₂₃₄₅₆₇₈₉"[digit]));
}

const FORM_WRITERS = {
  sum: (writer, a) => writer.to.sum(writer.all(a)),
  product: (writer, a) => writer.to.product(writer.all(a)),
  difference: (writer, a) => writer.to.difference(...writer.all(a)),
  quotient: (writer, a) => writer.to.quotient(...writer.all(a)),
  power: (writer, a) => writer.to.power(...writer.all(a)),
  negative: (writer, a) => writer.to.negative(...writer.all(a)),
  choose: (writer, a) => writer.to.chosen(...writer.all(a)),
  compare: (writer, a) => {
    const [one, other] = writer.all(a);
    return writer.to.compared(one, a.name, other);
  },
  round: (writer, a) => writer.to.call(a.name, writer.all(a)),
  function: (writer, a) => writer.call(a),
  over: (writer, a) => writer.over(a),
  softmax: (writer, a) => writer.to.quotient(writer.exp(writer.write(a.of[0])), writer.exponentials(a)),
  log_softmax: (writer, a) => writer.to.difference(writer.write(a.of[0]), writer.to.call("log", [writer.exponentials(a)])),
};

// What is said of a cell that no arithmetic made.
function saidOf(cell) {
  const { expression: a, step } = cell;
  if (a.form === "given") return step.role === "parameter" ? " is a parameter" : " is given";
  if (a.form === "made") return ` is made so (${a.name})`;
  if (a.form === "drawn") return ` was drawn by chance (${a.name})`;
  if (a.form === "opaque") return ` was made by ${a.name}, for which no rule is known`;
  if (a.form === "number" && a.name === "fill") return " is filled in";
  return null;
}

const OVERWRITTEN = ": one of these numbers was written over past PyTorch (by numpy or in another thread, perhaps), or left the range of its dtype on the way";

// A cell and what it is: `=` where all that is written is exact and so is the arithmetic, else `≈`.
function equation(cell, digits, terms, to) {
  const { expression: a, step, flat } = cell;
  const own = new Expression(a.frame, { form: "cell" }, null, step, flat);
  own.isLeft = true;
  const left = to.leaf(own, digits);
  const words = saidOf(cell);
  if (words !== null) return to.said(left, to.words(words));
  if (!cell.holds) {
    const right = a.step ? to.one(a.step.name + a.step.place(a.flat), a) : new Writer(digits, terms, to).write(a);
    return to.denied(left, right, to.words(OVERWRITTEN));
  }
  if (a.step) {
    // A name stands for its whole number.
    const whole = !known(cell.value) || shown(cell.value, digits, cell.step.dtype).exact !== null;
    return to.joined(left, whole ? to.equals : to.about, to.one(a.step.name + a.step.place(a.flat), a));
  }
  return to.joined(left, isTrue(cell, digits) ? to.equals : to.about, new Writer(digits, terms, to).write(a));
}

function isTrue(cell, digits) {
  if (!known(cell.value)) return false;
  const { exact } = shown(cell.value, digits, cell.step.dtype);
  return exact !== null && exactlyEqual(exactly(cell.expression, digits), exact);
}
