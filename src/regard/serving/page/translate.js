// The tab that translates: as one types, with alternatives; under it where words looked, and how each came about.
class Translate {
  constructor(settings, languages, changed) {
    this.settings = settings;
    this.languages = languages;
    named(languages);
    this.sources = languages.filter((each) => each.targets.length);
    this.changed = changed;
    this.alignment = new Alignment((word) => this.open(word));
    this.translating = latest((signal) => this.translate(signal), 250);
    this.explaining = latest((signal) => this.explain(signal), 350);
    this.opening = latest((signal) => this.derive(signal), 0);
    this.fill();
    const text = $("text");
    text.maxLength = settings.charLimit;
    text.addEventListener("input", () => this.typed());
    for (const name of ["source", "target"]) $(name).addEventListener("change", () => this.picked(name));
    $("swap").addEventListener("click", () => this.swap());
    $("clear").addEventListener("click", () => { text.value = ""; text.focus(); this.typed(); });
    $("copy").addEventListener("click", () => this.copy());
    $("why-close").addEventListener("click", () => this.close());
    $("why").addEventListener("keydown", (event) => { if (event.key === "Escape") this.close(); });
  }

  fill() {
    const several = this.sources.length > 1;
    const option = (code, name) => made("option", { value: code }, name);
    $("source").replaceChildren(
      ...(several ? [option("auto", "Detect language")] : []), ...this.sources.map((each) => option(each.code, each.name)));
    $("swap").hidden = !several;
    this.targets();
  }

  // Into which languages the chosen one goes; one that stays possible stays chosen.
  targets() {
    const source = $("source").value;
    const own = this.languages.find((each) => each.code === source);
    const codes = [...new Set(own ? own.targets : this.languages.flatMap((each) => each.targets))];
    const before = $("target").value;
    $("target").replaceChildren(...codes.map((code) => made("option", { value: code }, languageName(code))));
    if (codes.includes(before)) $("target").value = before;
    else if (codes.includes(this.settings.language.target.code)) $("target").value = this.settings.language.target.code;
  }

  restore(held) {
    if ([...$("source").options].some((each) => each.value === held.get("from"))) $("source").value = held.get("from");
    this.targets();
    if ([...$("target").options].some((each) => each.value === held.get("to"))) $("target").value = held.get("to");
    // What was typed before the server had answered stays.
    $("text").value = ($("text").value || held.get("q") || "").slice(0, this.settings.charLimit);
    this.counted();
    // The word that was open when the link was made, and the number in it: opened again when its text is explained.
    const word = Number(held.get("word"));
    this.again = held.get("q") === $("text").value && Number.isInteger(word) && word > 0 ? { word: word - 1, cell: held.get("cell") } : null;
    if ($("text").value.trim()) this.translating.now();
  }

  state() {
    const open = this.again ?? ($("why").hidden ? null : { word: this.word.word, cell: this.cell });
    const inside = open && { word: open.word + 1, cell: open.cell };
    return { q: $("text").value, from: $("source").value, to: $("target").value, ...inside };
  }

  typed() {
    this.counted();
    this.again = null;
    this.close(false);
    this.changed();
    tell($("trouble"), "");
    this.explaining.stop();
    if (!$("text").value.trim()) {
      this.translating.stop();
      this.shown(null);
      return;
    }
    $("result").classList.add("stale");
    this.translating.soon();
  }

  picked(name) {
    if (name === "source") this.targets();
    this.typed();
  }

  swap() {
    const [from, to, said] = [this.detected ?? $("source").value, $("target").value, $("result").textContent];
    if (from === "auto" || !this.sources.some((each) => each.code === to)) return;
    $("source").value = to;
    this.targets();
    $("target").value = from;
    if (said) $("text").value = said;
    this.typed();
  }

  counted() {
    const size = $("text").value.length;
    const left = this.settings.charLimit - size;
    $("count").textContent = size && left < 500 ? `${size.toLocaleString()} of ${this.settings.charLimit.toLocaleString()}` : "";
    $("clear").hidden = !size;
  }

  async translate(signal) {
    const q = $("text").value;
    $("busy").textContent = "translating…";
    try {
      const alternatives = Math.min(2, this.settings.alternatives);
      const told = await asked("translate", { q, source: $("source").value, target: $("target").value, alternatives }, signal);
      this.shown(told);
      this.explaining.soon();
    } catch (error) {
      if (error.name === "AbortError") throw error;
      $("result").classList.remove("stale");
      this.shown(null);
      tell($("trouble"), error.message, () => { tell($("trouble"), ""); this.translating.now(); }, error);
      if (error.status === 503) setTimeout(() => this.translating.now(), 1000 * (error.again || 1));
    } finally {
      if (!signal.aborted) $("busy").textContent = "";
    }
  }

  shown(told) {
    $("result").classList.remove("stale");
    $("result").textContent = told?.translatedText ?? "";
    $("result").lang = $("target").value;
    $("copy").hidden = !told;
    const others = told?.alternatives ?? [];
    $("others").hidden = !others.length;
    $("others").querySelector("ul").replaceChildren(...others.map((each) => made("li", { dir: "auto" }, each)));
    $("remarks").textContent = (told?.remarks ?? []).join("; ");
    this.detected = told?.detectedLanguage?.language;
    const found = this.languages.find((each) => each.code === this.detected);
    $("detected").textContent = found ? `${found.name}, ${Math.round(told.detectedLanguage.confidence)}% sure` : "";
    if (!told) this.alignment.show(null);
    tell($("unexplained"), "");
    this.told = null;
  }

  // Where the words looked: for one sentence at a time, in one step, and where the model can be asked.
  async explain(signal) {
    const q = $("text").value.trim();
    if (!this.settings.explanations || !q) {
      this.alignment.show(null);
      return;
    }
    try {
      const source = this.detected ?? $("source").value;
      $("looked-how").hidden = false;
      this.told = await asked("explain", { q, source, target: $("target").value }, signal);
      this.alignment.show(this.told.alignment ?? null);
      tell($("unexplained"), "");
      const { sentence, sentences } = this.told;
      $("looked-of").textContent = sentences > 1 ? `Of the first of ${sentences} sentences: “${sentence}”` : "";
      const { again } = this;
      this.again = null;
      if (again && this.told.alignment?.steps[again.word]?.length) this.open(again.word, again.cell);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      this.alignment.show(null);
      tell($("unexplained"), error.message, () => this.explaining.now(), error);
    }
  }

  // cell: the number to be open in the derivation; none: the probability of what was said.
  open(word, cell = null) {
    const steps = this.told.alignment.steps[word];
    const text = this.told.alignment.target[word];
    this.word = { word, steps, step: steps[0] };
    this.cell = cell;
    this.alignment.opened(word);
    $("why").hidden = false;
    $("why-title").textContent = sign(text) ? `How its ${sign(text)} came about` : `How “${text.trim()}” came about`;
    this.changed();
    $("candidates").replaceChildren(...steps.map((step) => this.candidates(step)));
    this.opening.now();
    $("why").focus({ preventScroll: true });
    $("why").scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  }

  candidates(number) {
    const step = this.told.steps[number - 1];
    const widest = Math.max(...step.candidates.map((each) => each.probability));
    const row = ({ token, probability }) => made(
      "tr", { class: token === step.token ? "chosen" : "" },
      made("th", { scope: "row", dir: "auto" }, token.replace(/^ /, "␣") || "(end)"),
      made("td", {}, made("span", { class: "share-bar" }, bar(probability / widest), percent(probability))),
    );
    const said = step.rank === 1 ? "the likeliest of all" : `number ${step.rank} by likelihood`;
    return made(
      "table", {},
      made("caption", {}, `Step ${number}: “${step.token.trim() || "(end)"}” with ${percent(step.probability)}, ${said}. What else was likely:`),
      made("tbody", {}, ...step.candidates.map(row)),
    );
  }

  async derive(signal) {
    const { step } = this.word;
    const place = `explain/${encodeURIComponent(this.told.id)}/${step}`;
    $("derivation").replaceChildren(made("p", { class: "soft", role: "status" }, "working it out…"));
    try {
      const record = await asked(place, undefined, signal);
      mountDerivation($("derivation"), record, {
        title: "", open: this.cell || `p[0, ${this.told.steps[step - 1].number}]`,
        cells: ({ name, cells }) => asked(`${place}/cells`, { name, cells }),
        onOpen: (name, index) => { this.cell = `${name}[${index.join(", ")}]`; this.changed(); },
      });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      $("derivation").replaceChildren(made("p", { role: "alert" }, error.message));
    }
  }

  close(back = true) {
    if ($("why").hidden) return;
    $("why").hidden = true;
    $("derivation").replaceChildren();
    this.cell = null;
    this.alignment.opened(null);
    this.opening.stop();
    this.changed();
    if (back && this.word) this.alignment.targets?.[this.word.word]?.focus();
  }

  async copy() {
    try {
      await navigator.clipboard.writeText($("result").textContent);
      $("copy").textContent = "Copied";
      setTimeout(() => { $("copy").textContent = "Copy"; }, 1500);
    } catch {
      getSelection().selectAllChildren($("result"));
    }
  }
}

function bar(share) {
  const found = made("i");
  found.style.width = `${(70 * share).toFixed(1)}%`;
  return found;
}
