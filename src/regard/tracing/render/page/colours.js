// The colours of numbers: weights on cividis from 0 to 1, signed numbers about 0. PALETTE comes from render/colours.py.

function channels(code) {
  return [1, 3, 5].map((at) => parseInt(code.slice(at, at + 2), 16));
}

function mixed(one, other, share) {
  return one.map((value, k) => value + (other[k] - value) * share);
}

const CIVIDIS = PALETTE.cividis.map(channels);
const DIVERGING = Object.fromEntries(Object.entries(PALETTE.diverging).map(([scheme, codes]) => [scheme, codes.map(channels)]));

function luminance(colour) {
  const [red, green, blue] = colour.map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

// Black or white, whichever reads better: at least 4.5 to 1 on any colour.
function inkOn(colour) {
  return luminance(colour) > 0.179 ? "#000" : "#fff";
}

// The colour of a number of a step; null where it has none (whole numbers, truths, blocked cells).
function colourOf(step, value, reach, scheme) {
  if (typeof value !== "number" || !Number.isFinite(value)) return null;
  if (step.kind === "weights") {
    const at = Math.min(Math.max(value, 0), 1) * (CIVIDIS.length - 1);
    const low = Math.min(Math.floor(at), CIVIDIS.length - 2);
    return mixed(CIVIDIS[low], CIVIDIS[low + 1], at - low);
  }
  if (!step.dtype.includes("float")) return null;
  const [negative, zero, positive] = DIVERGING[scheme];
  return mixed(zero, value < 0 ? negative : positive, reach > 0 ? Math.min(Math.abs(value) / reach, 1) : 0);
}

// The largest magnitude in a step, so that all its slices share their colours; of moved numbers in what they come from.
function reachOf(derivation, step) {
  if (step.reach !== undefined) return step.reach;
  if (step.array === null) {
    if (!step.isMove) return step.told ?? largestOf(step.cache.values());
    return Math.max(0, ...new Set(step.rule.pieces.map((piece) => reachOf(derivation, derivation.fine[piece.step]))));
  }
  step.reach = largestOf(step.array);
  return step.reach;
}

function largestOf(numbers) {
  let reach = 0;
  for (const value of numbers) {
    const size = Math.abs(Number(value));
    if (size > reach && size < Infinity) reach = size;
  }
  return reach;
}
