// The tab that works problems: an editor with the shipped ones, the result as one types, the marks of an answer in it.
const OWN = `title: A problem of my own
given:
  X: [[1, 0], [0.5, 2]]
  W: [[1, 2], [3, 4]]
steps:
  Q: X @ W
  E: Q @ X.T
  A: softmax(E)
`;

class Worked {
  constructor(changed) {
    this.changed = changed;
    this.working = latest((signal) => this.work(signal), 450);
    $("problem").addEventListener("change", () => this.pick($("problem").value));
    $("problem-text").addEventListener("input", () => { this.changed(); this.working.soon(); });
  }

  // The list is fetched when the tab is first opened.
  async open(held) {
    if (!this.shipped) {
      try {
        this.shipped = await asked("problems");
      } catch (error) {
        tell($("problem-trouble"), error.message, () => this.open(held));
        return;
      }
      const option = (each) => made("option", { value: each.name }, each.title);
      $("problem").replaceChildren(made("option", { value: "" }, "my own"), ...this.shipped.map(option));
      const text = held?.get("problem");
      const name = held?.get("name") ?? (text ? "" : "self-attention");
      $("problem").value = name;
      $("problem-text").value = text ?? this.textOf(name);
      this.working.now();
    }
  }

  textOf(name) {
    return this.shipped?.find((each) => each.name === name)?.text ?? OWN;
  }

  pick(name) {
    $("problem-text").value = this.textOf(name);
    this.changed();
    this.working.now();
  }

  state() {
    const [name, text] = [$("problem").value, $("problem-text").value];
    return { tab: "work", name, problem: this.shipped && text !== this.textOf(name) ? text : "" };
  }

  async work(signal) {
    $("work").classList.add("stale");
    try {
      const told = await asked("work", { problem: $("problem-text").value }, signal);
      tell($("problem-trouble"), "");
      this.marked(told);
      mountDerivation($("work"), told.derivation, { title: told.title });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      tell($("problem-trouble"), error.message, () => this.working.now(), error);
      $("marks").hidden = true;
      return;
    }
    $("work").classList.remove("stale");
  }

  marked({ marks, report }) {
    $("marks").hidden = !marks;
    if (!marks) return;
    const step = ({ name, verdict }) => made("li", { class: verdict }, made("b", {}, name), ` ${verdict}`);
    $("marks").replaceChildren(
      made("h2", { class: "hidden" }, "Marks"), made("ol", {}, ...marks.steps.map(step)), made("pre", {}, report));
  }
}
