// The live page of a server: asks for /v2/overview every two seconds and shows it.
import { byId, duration, setText, shown } from "./dom.js";
import { askJson, key, onNeedsKey, setKey } from "./server.js";
import { History, Sample } from "./numbers.js";
import { showOverview } from "./overview.js";
import { isMiss, showRecompilations } from "./recompilations.js";
import { showTry, startTry } from "./tryout.js";
import { showChat, startChat } from "./chat.js";

const EVERY_MS = 2000;
const VIEWS = ["overview", "recompilations", "try", "chat"];

const history = new History();
const states = new Map();  // of models, and the newest miss: what was announced
let paused = false, timer = null, dialogWasClosed = false;

function view() {
  const wanted = location.hash.slice(1);
  return VIEWS.includes(wanted) ? wanted : "overview";
}

function showView(focus) {
  const current = view();
  for (const name of VIEWS) {
    byId(`view-${name}`).hidden = name !== current;
    const link = document.querySelector(`nav a[href="#${name}"]`);
    if (name === current) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${byId(`h-${current}`).textContent} · Reprise`;
  if (focus) byId(`h-${current}`).focus();
}

function trouble(text) {
  const node = byId("trouble");
  node.hidden = text === "";
  setText(node, text);
}

// Tells screen readers what has changed since the last time: states of models, and new misses.
function announce(overview, misses) {
  const news = [];
  for (const model of overview.models) {
    const name = `${model.name} ${model.version}`, before = states.get(name);
    if (before !== undefined && before !== model.state) news.push(`${shown(model.name)} is ${model.state.toLowerCase()}.`);
    states.set(name, model.state);
  }
  const newest = misses.length > 0 ? misses[misses.length - 1].sequence : 0;
  const seen = states.get("newest miss");
  if (seen !== undefined && newest > seen) {
    const fresh = misses.filter((miss) => miss.sequence > seen);
    news.push(`${fresh.length === 1 ? "A recompilation" : `${fresh.length} recompilations`} of ${shown(fresh[0].model)}.`);
  }
  states.set("newest miss", newest);
  if (news.length > 0) setText(byId("announce"), news.join(" "));
}

function showServer(server) {
  const badge = byId("server-state");
  setText(badge, server.ready ? "ready" : server.state === "serving" ? "not ready" : server.state);
  badge.className = `badge ${server.ready ? "good" : "warn"}`;
  setText(byId("server-facts"), `${server.version} on ${server.device}, up for ${duration(server.uptime_seconds)}${
    server.reason !== undefined ? `: ${server.reason}` : ""}`);
}

// Models that are ready, the newest version of each.
function readyModels(overview) {
  const newest = new Map();
  for (const model of overview.models) {
    if (model.state !== "READY" || model.offers === undefined) continue;
    const other = newest.get(model.name);
    if (other === undefined || Number(other.version) < Number(model.version)) newest.set(model.name, model);
  }
  return [...newest.values()];
}

// A key that may infer and not observe: its models, without numbers.
async function showModelsAlone() {
  const list = (await askJson("v1/models")).data;
  const models = await Promise.all(list.map(async ({ id, task, texts, chats, pictures, max_model_len }) => {
    const metadata = await askJson(`v2/models/${encodeURIComponent(id)}`);
    return {
      name: id, version: metadata.versions?.at(-1) ?? "", state: "READY", inputs: metadata.inputs ?? [],
      offers: task === "generation" ? { task, texts, chats, context: max_model_len } : { task, pictures },
    };
  }));
  for (const model of models) {
    for (const tensor of model.inputs) tensor.shape = (tensor.shape ?? []).map(Number);
  }
  showTry(models);
  showChat(models);
}

async function refresh() {
  try {
    const overview = await askJson("v2/overview");
    trouble("");
    history.add(new Sample(overview));
    const misses = overview.captures.filter(isMiss);
    showServer(overview.server);
    showOverview(overview, history, misses);
    showRecompilations(overview.captures, misses);
    const ready = readyModels(overview);
    showTry(ready);
    showChat(ready);
    announce(overview, misses);
  } catch (error) {
    if (error.status === 403) {
      trouble(`Numbers are not shown: ${error.message}.`);
      await showModelsAlone().catch(() => {});
    } else if (error.status === 401) {
      trouble("This server asks for a key.");
    } else {
      trouble(`${error.message}; trying again.`);
      if (error.status === undefined) throw error;
    }
  }
}

function schedule() {
  clearTimeout(timer);
  if (paused || document.hidden) return;
  timer = setTimeout(async () => {
    await refresh().catch((error) => console.error(error));
    schedule();
  }, EVERY_MS);
}

async function refreshNow() {
  clearTimeout(timer);
  await refresh().catch((error) => console.error(error));
  schedule();
}

function askForKey(why) {
  const dialog = byId("key-dialog");
  if (dialog.open || (why === "" && dialogWasClosed)) return;
  byId("key-text").value = "";
  dialog.showModal();
}

function startKeys() {
  const dialog = byId("key-dialog");
  onNeedsKey(askForKey);
  byId("key-button").addEventListener("click", () => {
    byId("key-text").value = key();
    dialog.showModal();
  });
  dialog.addEventListener("close", () => {
    dialogWasClosed = true;
    if (dialog.returnValue === "use") setKey(byId("key-text").value.trim());
    if (dialog.returnValue === "forget") setKey("");
    byId("key-text").value = "";
    refreshNow();
  });
}

function start() {
  startKeys();
  startTry();
  startChat();
  const pause = byId("pause");
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    if (paused) clearTimeout(timer);
    else refreshNow();
  });
  addEventListener("hashchange", () => showView(true));
  document.addEventListener("visibilitychange", () => { if (!document.hidden && !paused) refreshNow(); });
  showView(false);
  refreshNow();
}

start();
