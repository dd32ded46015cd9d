// MathML: the notation of equations, and names and formulas as mathematics.
// A part is a list of pieces of markup between which a line may be broken.

function safe(text) {
  return String(text).replace(/[&<>"]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[letter]);
}

const FORM_INFIX = ' form="infix" lspace="0.24em" rspace="0.24em"';
const FORM_PREFIX = ' form="prefix"';
const FENCES = { "(": "prefix", "[": "prefix", "{": "prefix", ")": "postfix", "]": "postfix", "}": "postfix" };

// An operator; brackets grow only around what is tall.
function mo(sign, spacing = "", tall = false) {
  if (sign in FENCES) return `<mo form="${FENCES[sign]}" stretchy="${tall}">${sign}</mo>`;
  return `<mo${spacing}>${safe(sign)}</mo>`;
}

function row(markup) {
  return `<mrow>${markup}</mrow>`;
}

// A number as mathematics: 1.2e-5 is 1.2 · 10^-5.
function numberMarkup(text, attributes = "") {
  const [body, exponent] = /^-?\d.*e/.test(text) ? text.split("e") : [text];
  const number = `<mn${attributes}>${safe(typeset(body))}</mn>`;
  return exponent ? row(`${number}${mo("·")}<msup><mn>10</mn><mn>${typeset(exponent)}</mn></msup>`) : number;
}

// Notation in which fractions stand upright, or with `linear` on the line, where they can be broken.
function mathNotation(groups, linear) {
  const whole = (part) => part.pieces.join("");
  const alone = (markup, level = ALONE) => ({ pieces: [markup], level });
  const wrapped = (part, before, after, level) => {
    const pieces = [...part.pieces];
    pieces[0] = before + pieces[0];
    pieces[pieces.length - 1] += after;
    return { pieces, level };
  };
  const tall = (part) => whole(part).includes("<mfrac");
  const held = (part, level) => (part.level >= level ? part : wrapped(part, mo("(", "", tall(part)), mo(")", "", tall(part)), ALONE));
  const together = (part) => row(whole(part));
  return {
    about: "≈",
    equals: "=",
    one: (text, leaf) => alone(leaf ? nameMarkup(leaf.step.name, leaf.step.place(leaf.flat), linked(leaf)) : token(text)),
    leaf(a, digits) {
      if (!known(a.value)) return alone(nameMarkup(a.step.name, a.step.place(a.flat), a.isLeft ? "" : linked(a)));
      const { text } = shown(a.value, digits, a.step ? a.step.dtype : "float64");
      const mark = a.step && !a.isLeft ? linked(a) : "";
      if (text.startsWith("-")) return { ...alone(numberMarkup(text, mark), SUM), minus: numberMarkup(text.slice(1), mark) };
      return alone(numberMarkup(text, mark), text.includes("e") && /\d/.test(text[0]) ? PRODUCT : ALONE);
    },
    omitted: (count) => alone(`${mo("⋯")}<mtext class="rg-more" data-more="1">(${count} more)</mtext>`, LEFT_OUT),
    sum(parts) {
      if (parts.length === 1) return parts[0];
      const rest = parts.slice(1).flatMap((part) => {
        if (part.minus) return [mo("−", FORM_INFIX) + part.minus];
        return wrapped(held(part, SUM), mo("+", FORM_INFIX), "", SUM).pieces;
      });
      return { pieces: [...held(parts[0], SUM).pieces, ...rest], level: SUM };
    },
    product(parts) {
      if (parts.length === 1) return parts[0];
      return alone(parts.map((each) => whole(held(each, POWER))).join(mo("·")), PRODUCT);
    },
    difference(a, b) {
      return { pieces: [...held(a, SUM).pieces, ...wrapped(held(b, PRODUCT), mo("−", FORM_INFIX), "", SUM).pieces], level: SUM };
    },
    negative: (a) => wrapped(held(a, POWER), mo("−", FORM_PREFIX), "", SUM),
    quotient(a, b) {
      if (!linear) return alone(`<mfrac>${together(a)}${together(b)}</mfrac>`, PRODUCT);
      return { pieces: [...held(a, PRODUCT).pieces, ...wrapped(held(b, POWER), mo("/"), "", PRODUCT).pieces], level: PRODUCT };
    },
    power: (a, b) => alone(`<msup>${together(held(a, ALONE))}${together(b)}</msup>`, POWER),
    call(name, parts) {
      const inside = parts.flatMap((part, k) => (k ? wrapped(part, mo(","), "", 0).pieces : part.pieces));
      const body = inside.length ? { pieces: inside, level: 0 } : alone("");
      return wrapped(body, `<mi>${safe(name)}</mi>${mo("(", "", tall(body))}`, mo(")", "", tall(body)), ALONE);
    },
    root: (a) => alone(`<msqrt>${whole(a)}</msqrt>`),
    chosen(condition, yes, no) {
      const pieces = [whole(yes), `<mtext>&nbsp;if&nbsp;</mtext>${whole(condition)}`, `<mtext>&nbsp;else&nbsp;</mtext>${whole(no)}`];
      return { pieces, level: 0 };
    },
    compared: (a, name, b) => alone(whole(held(a, SUM)) + mo(name) + whole(held(b, SUM)), 0),
    words: (text) => text,
    joined: (left, relation, right) => [whole(left) + mo(relation, FORM_INFIX), ...right.pieces],
    said: (left, words) => [whole(left), `<mtext>&nbsp;${safe(words.trim())}</mtext>`],
    denied(left, right, words) {
      const [sign, ...rest] = words.split(" ").map((word) => `<mtext class="rg-denied">${safe(word)}</mtext>`);
      return [whole(left) + mo("≠", FORM_INFIX), ...wrapped(right, "", sign, 0).pieces, ...rest];
    },
  };

  function linked(a) {
    const group = groups.get(a.step);
    return ` data-cell="${a.step.position}:${a.flat}" class="rg-n${group === undefined ? "" : ` rg-p${group}`}"`;
  }
}

function token(text) {
  return /^\d/.test(text) ? `<mn>${text}</mn>` : `<mi>${safe(text)}</mi>`;
}

// Letters, without those that stand for raised signs (ᵀ is one); a name with its arrow and index (h→_3); a path of
// modules, or a name with a number (add#1); a gradient (∂loss/∂W).
const LETTER = String.raw`[\p{Ll}\p{Lu}\p{Lt}\p{Lo}]`;
const SIGNED = String.raw`(?:${LETTER}|[\p{Nd}_#])`;
const NAME = String.raw`(${LETTER}+\d*)([→←](?=[_^\[), ]|$))?(['′]*)(?:_(\{[^{}]*\}|(?:${LETTER}|[\p{Nd}_])+))?`;
const PATH = String.raw`(?:${SIGNED}+\.)+${LETTER}${SIGNED}+|${LETTER}${SIGNED}*#\d+`;
const GRADIENT = String.raw`∂(?:${SIGNED}|[.'])+\/∂(?:${SIGNED}|[.'])+`;
const PLAIN_NAME = new RegExp(String.raw`^(?:${NAME}(?:\^\d+)?|${GRADIENT})$`, "u");
const PIECE = new RegExp(
  String.raw`(${GRADIENT})|(${PATH})|${NAME}|\^(\{[^{}]*\}|\([^()]*\)|-?(?:${LETTER}|\p{Nd})+)|(\d+(?:\.\d+)?)|(\s+)|√(\([^()]*\)|(?:${LETTER}|[\p{Nd}_])+)|(.)`,
  "gsu",
);
const RAISED = { "ᵀ": "⊤", "²": "2", "³": "3", "¹": "1" };

// A step's name as mathematics: a letter with its index, or a path as it is.
function nameMarkup(name, place = "", attributes = "") {
  const called = PLAIN_NAME.test(name) ? formulaMarkup(name) : pathMarkup(name);
  return `<mrow${attributes}>${called}${place ? `<mtext>${safe(place)}</mtext>` : ""}</mrow>`;
}

function pathMarkup(name, attributes = "") {
  return `<mtext class="rg-path"${attributes}>${safe(name)}</mtext>`;
}

// A formula as the code tells it (`softmax(Q K^T / √d)`). `attributesOf` a word may make it a link.
function formulaMarkup(text, attributesOf = () => "") {
  return row(formulaGroups(text, attributesOf).join('<mspace width="0.25em"></mspace>'));
}

// The same, in groups between which there is space and a line may be broken.
function formulaGroups(text, attributesOf = () => "") {
  const groups = [];
  let pieces = [];
  const raise = (markup) => pieces.push(`<msup>${row(pieces.pop() ?? "")}${markup}</msup>`);
  const inner = (part) => {
    if (part.startsWith("{")) return row(formulaMarkup(part.slice(1, -1)));
    return row(/^\p{L}/u.test(part) ? `<mi>${safe(part)}</mi>` : formulaMarkup(part));
  };
  for (const [all, gradient, path, base, arrow, prime, low, high, number, space, root, sign] of text.matchAll(PIECE)) {
    if (gradient) pieces.push(`<mi${attributesOf(all)}>${safe(gradient)}</mi>`);
    else if (path) pieces.push(`<mrow${attributesOf(path)}>${pathMarkup(path)}</mrow>`);
    else if (base) {
      const word = `<mi${low ? "" : attributesOf(all)}>${safe(base + prime.replaceAll("'", "′"))}</mi>`;
      const named = arrow ? `<mover>${word}<mo stretchy="false">${arrow}</mo></mover>` : word;
      pieces.push(low ? `<msub${attributesOf(all)}>${named}${inner(low)}</msub>` : named);
    } else if (high) raise(high === "T" ? "<mo>⊤</mo>" : inner(high));
    else if (number) pieces.push(`<mn>${number}</mn>`);
    else if (space) {
      groups.push(pieces.join(""));
      pieces = [];
    } else if (root) pieces.push(`<msqrt>${formulaMarkup(root.replace(/^\((.*)\)$/s, "$1"))}</msqrt>`);
    else if (sign in RAISED) raise(`<mo>${RAISED[sign]}</mo>`);
    else if (sign === "-" || sign === "−") pieces.push(mo("−", /(^|form="prefix"[^>]*>[^<]*<\/mo>)$/.test(pieces.at(-1) ?? groups.at(-1) ?? "") ? FORM_PREFIX : ""));
    else pieces.push(mo(sign));
  }
  return [...groups, pieces.join("")];
}

function mathMarkup(pieces) {
  return pieces.map((each) => `<math display="inline" displaystyle="true">${row(each)}</math>`).join(" ");
}
