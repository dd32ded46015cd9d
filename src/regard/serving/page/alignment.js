// What is no word of a text, in words: the tag that asks for a language, the end.
function sign(text) {
  const tag = /^<2(.+)>$/.exec(text);
  return tag ? `into ${languageName(tag[1])}` : { "</s>": "end", "<unk>": "unknown" }[text] ?? "";
}

// Words of the text above words of the translation; the word in hand lights up what it looked at, or was looked at by.
class Alignment {
  constructor(onOpen) {
    this.onOpen = onOpen;
    this.said = $("spoken");
    for (const name of ["layer", "head"]) $(name).addEventListener("change", () => this.choose());
    new ResizeObserver(() => this.draw()).observe($("looked"));
  }

  show(alignment) {
    this.told = alignment;
    this.now = null;
    $("looked").hidden = !alignment;
    if (!alignment) return;
    const numbers = (count) => Array.from({ length: count }, (_, k) => made("option", { value: k + 1 }, String(k + 1)));
    $("layer").replaceChildren(made("option", { value: "" }, "all"), ...numbers(alignment.layers));
    $("head").replaceChildren(made("option", { value: "" }, "all"), ...numbers(alignment.heads));
    const word = (text, side, at) => made(
      side === "target" ? "button" : "span",
      {
        class: sign(text) ? "word mark-of" : "word", dir: "auto", "data-at": at, title: sign(text) && text,
        ...(side === "target" ? { type: "button", tabindex: at ? -1 : 0, "aria-expanded": "false", "aria-controls": "why" } : {}),
        onmouseenter: () => this.take(side, at), onmouseleave: () => this.leave(), onfocus: () => this.take(side, at),
        onclick: () => side === "target" && this.onOpen(at),
      },
      made("span", { class: "share", "aria-hidden": "true" }), sign(text) || text.trim() || "␣",
    );
    this.sources = alignment.source.map((text, at) => word(text, "source", at));
    this.targets = alignment.target.map((text, at) => word(text, "target", at));
    $("words-source").replaceChildren(...this.sources);
    $("words-target").replaceChildren(...this.targets);
    $("words-target").onkeydown = (event) => this.move(event);
    this.choose();
  }

  // Which word of the translation is opened, for the eye and for readers of the screen; none: null.
  opened(word) {
    this.targets?.forEach((each, k) => each.setAttribute("aria-expanded", String(k === word)));
  }

  choose() {
    const layer = Number($("layer").value) || null;
    $("head").disabled = layer === null;
    if (layer === null) $("head").value = "";
    const head = Number($("head").value) || null;
    this.weights = this.told.weights.find((each) => each.layer === layer && each.head === head).rows;
    const { now } = this;
    this.leave();
    if (now) this.take(now.side, now.at);
  }

  take(side, at) {
    this.now = { side, at };
    const shares = side === "target" ? this.weights[at] : this.weights.map((row) => row[at]);
    const [own, others] = side === "target" ? [this.targets, this.sources] : [this.sources, this.targets];
    for (const word of own) this.light(word, 0, false);
    others.forEach((word, k) => this.light(word, shares[k], true));
    own.forEach((word, k) => word.classList.toggle("now", k === at));
    others.forEach((word) => word.classList.remove("now"));
    this.draw(shares);
    const best = shares.map((share, k) => [share, k]).sort((a, b) => b[0] - a[0]).slice(0, 3).filter(([share]) => share >= 0.05);
    const name = (words, k) => words[k].lastChild.textContent;
    const found = best.map(([share, k]) => `${name(others, k)} ${percent(share)}`).join(", ");
    this.said.textContent = `${name(own, at)}: ${side === "target" ? "looked at" : "was looked at by"} ${found || "nothing much"}`;
  }

  light(word, share, counted) {
    word.style.setProperty("--share", Math.min(1, share).toFixed(3));
    word.classList.toggle("strong", share > 0.55);
    word.firstChild.textContent = counted && share >= 0.01 ? percent(share) : "";
  }

  leave() {
    this.now = null;
    for (const word of [...this.sources, ...this.targets]) {
      this.light(word, 0, false);
      word.classList.remove("now");
    }
    this.draw();
  }

  // Lines from the word in hand to those it has to do with; with none in hand, each word's strongest.
  draw() {
    const svg = $("lines");
    svg.replaceChildren();
    if (!this.told || $("looked").hidden) return;
    const box = $("looked").getBoundingClientRect();
    const place = (word, bottom) => {
      const at = word.getBoundingClientRect();
      return [at.left + at.width / 2 - box.left, (bottom ? at.bottom : at.top) - box.top];
    };
    this.weights.forEach((row, t) => row.forEach((share, s) => {
      const { side, at } = this.now ?? {};
      if (this.now ? (side === "target" ? t !== at : s !== at) || share < 0.02 : share < 0.15 || share < Math.max(...row)) return;
      const [[x1, y1], [x2, y2]] = [place(this.sources[s], true), place(this.targets[t], false)];
      const middle = (y1 + y2) / 2;
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("d", `M${x1} ${y1}C${x1} ${middle} ${x2} ${middle} ${x2} ${y2}`);
      path.setAttribute("stroke-width", (0.6 + 5 * share).toFixed(2));
      path.setAttribute("opacity", (this.now ? 0.25 + 0.7 * share : 0.12 + 0.3 * share).toFixed(2));
      svg.append(path);
    }));
  }

  move(event) {
    const at = this.targets.indexOf(document.activeElement);
    const last = this.targets.length - 1;
    const steps = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last };
    if (!(event.key in steps) || at < 0) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(last, steps[event.key]));
    this.targets.forEach((word, k) => { word.tabIndex = k === next ? 0 : -1; });
    this.targets[next].focus();
  }
}
