"use strict";

const $ = (id) => document.getElementById(id);

function made(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

// The key that a server may ask for, kept for as long as the page is open in this tab.
const key = {
  get: () => { try { return sessionStorage.getItem("regard-key") ?? ""; } catch { return ""; } },
  set: (value) => { try { sessionStorage.setItem("regard-key", value); } catch { /* there is nowhere to keep it */ } },
};

// An answer of the server, or an Error whose message can be shown: what it refused, or that it is not there.
async function asked(path, body, signal) {
  let response;
  try {
    const headers = key.get() ? { Authorization: `Bearer ${key.get()}` } : {};
    response = await fetch(path, body === undefined ? { headers, signal } : {
      method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body), signal,
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw Object.assign(new Error("The server does not answer. Your text is kept here."), { gone: true });
  }
  const held = await response.json().catch(() => null);
  if (!response.ok) {
    const said = held?.error ?? `The server answered ${response.status}.`;
    throw Object.assign(new Error(said), { status: response.status, again: Number(response.headers.get("Retry-After")) });
  }
  return held;
}

// Calls of `work(signal)`, the last one a little after the last call of what is returned; earlier ones are cancelled.
function latest(work, milliseconds) {
  let timer = 0, running = null;
  const start = () => {
    running?.abort();
    running = new AbortController();
    const { signal } = running;
    work(signal).catch((error) => {
      if (error.name !== "AbortError") throw error;
    });
  };
  return {
    soon: () => { clearTimeout(timer); running?.abort(); timer = setTimeout(start, milliseconds); },
    now: () => { clearTimeout(timer); start(); },
    stop: () => { clearTimeout(timer); running?.abort(); },
  };
}

// What the address holds behind #, so that a link brings the page back as it is.
const address = {
  read: () => new URLSearchParams(location.hash.slice(1)),
  write(values) {
    const held = new URLSearchParams();
    for (const [name, value] of Object.entries(values)) if (value) held.set(name, value);
    const text = held.toString();
    history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  },
};

const percent = (share) => (share >= 0.0995 ? `${Math.round(100 * share)}%` : share >= 0.001 ? `${(100 * share).toFixed(1)}%` : "<0.1%");

// What the server calls its languages: the page calls them the same everywhere.
const names = new Map();
const named = (languages) => { for (const { code, name } of languages) names.set(code, name); };

// The English name of a language; its code where it has none.
function languageName(code) {
  if (names.has(code)) return names.get(code);
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(code) ?? code;
  } catch {
    return code;
  }
}

// What went wrong, in its place; where trying again can help, a button; where a key is missing, a field for it.
function tell(element, message, again, error) {
  element.replaceChildren(message);
  if (again && error?.status === 403) {
    const field = made("input", { type: "password", "aria-label": "API key", placeholder: "API key" });
    const send = () => { key.set(field.value.trim()); again(); };
    field.addEventListener("keydown", (event) => { if (event.key === "Enter") send(); });
    element.append(field, made("button", { type: "button", onclick: send }, "Use this key"));
  } else if (again && (!error || error.gone || error.status >= 429)) element.append(made("button", { type: "button", onclick: again }, "Try again"));
  element.hidden = !message;
}
