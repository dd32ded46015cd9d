// How a number is written: so many significant digits, and whether what is written is all of it.
// The same as render/numbers.py, letter for letter.

function fraction(n, d = 1n) {
  return { n, d };
}

// The digits of a decimal, and the power of ten that the first of them stands for.
function decimal(text) {
  const [body, exponent = "0"] = text.toLowerCase().split("e");
  const sign = body.startsWith("-") ? "-" : "";
  const [whole, part = ""] = body.replace("-", "").split(".");
  const all = whole + part;
  const digits = all.replace(/^0+/, "");
  if (!digits) return { sign, digits: "0", first: 0 };
  return { sign, digits: digits.replace(/0+$/, "") || "0", first: whole.length - 1 - (all.length - digits.length) + Number(exponent) };
}

function roundedDecimal({ sign, digits, first }, count) {
  if (digits.length <= count) return { sign, digits: digits.padEnd(count, "0"), first };
  const rest = digits.slice(count);
  let kept = BigInt(digits.slice(0, count));
  const half = "5".padEnd(rest.length, "0");
  if (rest > half || (rest === half && kept % 2n === 1n)) kept += 1n;
  const text = String(kept);
  return { sign, digits: text.slice(0, count), first: first + text.length - count };
}

// Without an exponent where that stays short; zeros that stand for digits rounded away are not written.
function positional({ sign, digits, first }, whole) {
  const last = first - digits.length + 1;
  if (first <= -5 || first >= 7 || (!whole && last > 0)) {
    const tail = digits.length > 1 ? `.${digits.slice(1)}` : "";
    return `${sign}${digits[0]}${tail}e${first}`;
  }
  if (last >= 0) return sign + digits + "0".repeat(last);
  if (first < 0) return `${sign}0.${"0".repeat(-first - 1)}${digits}`;
  return `${sign}${digits.slice(0, first + 1)}.${digits.slice(first + 1)}`;
}

function asFraction({ sign, digits, first }) {
  const last = first - digits.length + 1;
  const n = BigInt(sign + digits);
  return last >= 0 ? fraction(n * 10n ** BigInt(last)) : fraction(n, 10n ** BigInt(-last));
}

function half(value) {
  if (value === 0 || !Number.isFinite(value)) return value;
  const unit = 2 ** (Math.max(Math.floor(Math.log2(Math.abs(value))), -14) - 10);
  const count = value / unit;
  const low = Math.floor(count);
  const even = count - low === 0.5 ? (low % 2 === 0 ? low : low + 1) : Math.round(count);
  return even * unit;
}

// The shortest decimal that is this number in its own precision; of float64 the first 13 digits.
function shortest(value, dtype) {
  if (dtype === "float64" || dtype === "complex128") return value.toPrecision(13);
  const near = dtype === "float16" ? half : Math.fround;
  for (let count = 1; count < 9; count++) {
    const text = value.toPrecision(count);
    if (near(Number(text)) === value) return text;
  }
  return value.toPrecision(9);
}

// All the digits that tell a number from its neighbours.
function fullText(value, dtype) {
  return dtype === "float64" ? String(value) : String(Number(shortest(value, dtype)));
}

// {text, exact}: exact is a fraction, an infinity, or null where it was rounded.
function shown(value, digits, dtype = "float64") {
  if (typeof value === "boolean") return { text: value ? "True" : "False", exact: fraction(value ? 1n : 0n) };
  if (typeof value === "bigint") return { text: String(value), exact: fraction(value) };
  if (typeof value === "object") return { text: complexText(value, digits, dtype), exact: null };
  if (Number.isNaN(value)) return { text: "NaN", exact: null };
  if (!Number.isFinite(value)) return { text: value > 0 ? "∞" : "-∞", exact: value };
  if (Number.isInteger(value) && (Math.abs(value) < 1e7 || isWhole(dtype))) {
    return { text: String(value === 0 ? 0 : value), exact: fraction(BigInt(value)) };
  }
  const full = decimal(shortest(value, dtype));
  if (full.digits.length <= digits) return { text: positional(full, true), exact: asFraction(full) };
  return { text: positional(roundedDecimal(full, digits), false), exact: null };
}

function isWhole(dtype) {
  return dtype.startsWith("int") || dtype.startsWith("uint");
}

// As `shown`, for a table of weights: what is too small for four decimals says only that.
function small(value, digits, dtype) {
  if (typeof value === "number" && Math.abs(value) < 1e-4 && value !== 0) return value > 0 ? "<0.0001" : ">-0.0001";
  return shown(value, digits, dtype).text;
}

function complexText({ real, imaginary }, digits, dtype) {
  const [a, b] = [real, imaginary].map((part) => shown(part, digits, dtype).text);
  return `(${a} + ${b}i)`.replace("+ -", "- ");
}

// With the sign that mathematics has for less than nothing, for the eye.
function typeset(text) {
  return text.replaceAll("-", "−");
}
