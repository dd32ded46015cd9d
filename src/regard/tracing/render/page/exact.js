// Whether a written equation is exactly true: its numbers as they are written, worked out as fractions.
// The same as render/exact.py. Nothing that is shown is computed here: it only tells = from ≈.

class Rounded extends Error {}

function exactly(expression, digits) {
  try {
    return exactValue(expression, digits);
  } catch (error) {
    if (error instanceof Rounded) return null;
    throw error;
  }
}

function exactlyEqual(a, b) {
  if (a === null || b === null) return false;
  if (typeof a === "number" || typeof b === "number") return plainNumber(a) === plainNumber(b);
  return a.n * b.d === b.n * a.d;
}

function plainNumber(a) {
  return typeof a === "number" ? a : Number(a.n) / Number(a.d);
}

function exactValue(a, digits) {
  const parts = () => a.of.map((each) => exactValue(each, digits));
  switch (a.form) {
    case "cell":
    case "number":
      return exactWritten(a, digits);
    case "softmax":
      return exactSoftmax(a);
    case "choose":
      return exactValue(isZero(exactValue(a.of[0], digits)) ? a.of[2] : a.of[1], digits);
    case "over":
      return exactOver(a, digits);
    case "compare":
      return fraction(exactCompare(a.name, ...parts()) ? 1n : 0n);
    case "power":
      return exactPower(...parts());
    case "function":
      return exactFunction(a.name, parts());
    case "sum":
      return parts().reduce(exactSum, fraction(0n));
    case "product":
      return parts().reduce(exactProduct, fraction(1n));
    case "difference": {
      const [one, other] = parts();
      return exactSum(one, exactNegative(other));
    }
    case "quotient":
      return exactQuotient(...parts());
    case "negative":
      return exactNegative(parts()[0]);
    default:
      throw new Rounded();
  }
}

function exactWritten(a, digits) {
  if (a.value === null || a.value === undefined) throw new Rounded();
  const { exact } = shown(a.value, digits, a.step ? a.step.dtype : "float64");
  if (exact === null) throw new Rounded();
  return exact;
}

function infinite(...parts) {
  return parts.some((each) => typeof each === "number");
}

function exactSum(a, b) {
  if (infinite(a, b)) return plainNumber(a) + plainNumber(b);
  return a.d === b.d ? fraction(a.n + b.n, a.d) : fraction(a.n * b.d + b.n * a.d, a.d * b.d);
}

function exactProduct(a, b) {
  return infinite(a, b) ? plainNumber(a) * plainNumber(b) : fraction(a.n * b.n, a.d * b.d);
}

function exactQuotient(a, b) {
  if (isZero(b)) throw new Rounded();
  if (infinite(a, b)) return plainNumber(a) / plainNumber(b);
  const sign = b.n < 0n ? -1n : 1n;
  return fraction(a.n * b.d * sign, a.d * b.n * sign);
}

function exactNegative(a) {
  return typeof a === "number" ? -a : fraction(-a.n, a.d);
}

function exactPower(a, b) {
  if (infinite(a, b) || b.n % b.d !== 0n) throw new Rounded();
  const power = b.n / b.d;
  if (power > 64n || power < -64n) throw new Rounded();
  if (power >= 0n) return fraction(a.n ** power, a.d ** power);
  return exactQuotient(fraction(1n), fraction(a.n ** -power, a.d ** -power));
}

function isZero(a) {
  return typeof a === "number" ? a === 0 : a.n === 0n;
}

function exactOrder(a, b) {
  if (infinite(a, b)) return Math.sign(plainNumber(a) - plainNumber(b)) || 0;
  const [one, other] = [a.n * b.d, b.n * a.d];
  return one < other ? -1 : one > other ? 1 : 0;
}

function exactExtreme(parts, direction) {
  return parts.reduce((best, each) => (exactOrder(each, best) * direction > 0 ? each : best));
}

function exactCompare(name, a, b) {
  const order = exactOrder(a, b);
  const [yes, no] = [!isZero(a), !isZero(b)];
  const rules = { "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0, "==": order === 0, "!=": order !== 0 };
  return { ...rules, and: yes && no, or: yes || no, xor: yes !== no }[name];
}

const AT_ZERO = { exp: [1n], tanh: [0n], sin: [0n], cos: [1n], sigmoid: [1n, 2n], sqrt: [0n], gelu: [0n], silu: [0n] };

function exactFunction(name, parts) {
  const [a] = parts;
  if (name === "relu") return exactExtreme([fraction(0n), a], 1);
  if (name === "maximum" || name === "minimum") return exactExtreme(parts, name === "minimum" ? -1 : 1);
  if (name === "abs") return exactExtreme([a, exactNegative(a)], 1);
  if (name === "square") return exactProduct(a, a);
  if (name === "reciprocal") return exactQuotient(fraction(1n), a);
  if (name === "not") return fraction(isZero(a) ? 1n : 0n);
  if (name === "sign") return fraction(BigInt(exactOrder(a, fraction(0n))));
  if (isZero(a) && name in AT_ZERO) return fraction(...AT_ZERO[name]);
  if (name === "exp" && a === -Infinity) return fraction(0n);
  throw new Rounded();
}

function exactOver(a, digits) {
  const terms = a.terms.map((each) => exactValue(each, digits));
  const none = fraction(0n);
  if (a.name === "sum") return terms.reduce(exactSum, none);
  if (a.name === "mean") return exactQuotient(terms.reduce(exactSum, none), fraction(BigInt(terms.length)));
  if (a.name === "product") return terms.reduce(exactProduct, fraction(1n));
  if (a.name === "any") return fraction(terms.some((each) => !isZero(each)) ? 1n : 0n);
  if (a.name === "all") return fraction(terms.every((each) => !isZero(each)) ? 1n : 0n);
  if (!terms.length || !["max", "min", "argmax", "argmin"].includes(a.name)) throw new Rounded();
  const best = exactExtreme(terms, a.name.endsWith("max") ? 1 : -1);
  if (!a.name.startsWith("arg")) return best;
  return fraction(BigInt(terms.findIndex((each) => exactOrder(each, best) === 0)));
}

// 0 where the cell is blocked, 1 where it is alone; all other weights are written rounded.
function exactSoftmax(a) {
  if (a.of[0].value === -Infinity) return fraction(0n);
  if (a.terms.filter((each) => each.value !== -Infinity).length === 1) return fraction(1n);
  throw new Rounded();
}

function known(value) {
  return value !== null && value !== undefined;
}
