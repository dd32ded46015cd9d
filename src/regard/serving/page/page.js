// The page: its tabs, its colours, and the address that holds what it shows.
const THEMES = ["system", "light", "dark"];

function theme(next) {
  const kept = (() => { try { return localStorage.getItem("regard-theme"); } catch { return null; } })() ?? "system";
  const now = next ?? kept;
  if (now === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = now;
  try { localStorage.setItem("regard-theme", now); } catch { /* there is nowhere to keep it */ }
  $("theme").textContent = { system: "◐ system", light: "○ light", dark: "● dark" }[now];
  $("theme").setAttribute("aria-label", `Colours: ${now}. Change`);
  $("theme").onclick = () => theme(THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]);
}

const tabs = ["translate", "work"];

function shownTab() {
  return tabs.find((name) => $(`tab-${name}`).getAttribute("aria-selected") === "true");
}

function showTab(name, focus = false) {
  for (const each of tabs) {
    const own = each === name;
    $(`tab-${each}`).setAttribute("aria-selected", String(own));
    $(`tab-${each}`).tabIndex = own ? 0 : -1;
    $(`panel-${each}`).hidden = !own;
  }
  if (focus) $(`tab-${name}`).focus();
}

async function start() {
  theme();
  const held = address.read();
  let translate = null;
  const changed = () => address.write(shownTab() === "work" ? worked.state() : translate?.state() ?? {});
  const worked = new Worked(changed);
  const select = (name, focus) => {
    showTab(name, focus);
    if (name === "work") worked.open().then(changed);
    else changed();
  };
  for (const [place, name] of tabs.entries()) {
    $(`tab-${name}`).addEventListener("click", () => select(name, true));
    $(`tab-${name}`).addEventListener("keydown", (event) => {
      const to = { ArrowRight: place + 1, ArrowLeft: place - 1, Home: 0, End: tabs.length - 1 }[event.key];
      if (to !== undefined) { event.preventDefault(); select(tabs[(to + tabs.length) % tabs.length], true); }
    });
  }
  const begin = async () => {
    try {
      const [settings, languages] = await Promise.all([asked("frontend/settings"), asked("languages")]);
      tell($("trouble"), "");
      translate = new Translate(settings, languages, changed);
      translate.restore(held);
    } catch (error) {
      tell($("trouble"), error.message, begin);
    }
  };
  if (held.get("tab") === "work") {
    showTab("work");
    worked.open(held);
  }
  await begin();
}

start();
