// The view "Overview": tiles, models, decoders, memory.
import { byId, bytes, cell, cut, el, keep, number, rate, seconds, setText, share, shown, tableRow } from "./dom.js";
import { percentile } from "./numbers.js";

const POINTS = 90;
const SHOWN_INPUTS = 4;
const lines = new Map();  // values of the tiles that have a line, newest last

const TASKS = {
  "embeddings": "vectors of texts", "rerank": "ranks documents", "classification": "labels of texts",
  "token classification": "labels of tokens", "image classification": "labels of pictures",
  "object detection": "objects in pictures", "image embeddings": "vectors of pictures", "transcription": "texts of sound",
  "sparse embeddings": "weights of words", "token embeddings": "a vector a token", "tensors": "tensors", "none": "tensors",
};

const makesTokens = (model) => ["generation", "transcription"].includes(model.offers?.task);

export function offersText(model) {
  const offers = model.offers;
  if (offers === undefined) return "";
  if (offers.task === "embeddings" && offers.pictures) return "vectors of texts and pictures";
  if (offers.task !== "generation") return TASKS[offers.task] ?? offers.task;
  return offers.chats ? "chats, texts" : offers.texts ? "texts" : "token ids";
}

const tensorText = (tensor) =>
  `${shown(tensor.name)} ${tensor.datatype}[${tensor.shape.map((dim) => (dim < 0 ? "?" : dim)).join(", ")}]`;

function tile(id, label) {
  return el("div", { class: "tile" }, el("dt", {}, label), el("dd", { id: `tile-${id}` }), el("dd", { class: "sub" }));
}

function drawLine(row, values, whole) {
  if (values.length < 3) return;
  let line = row.querySelector("polyline");
  if (line === null) {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", `0 0 ${POINTS} 28`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true");
    line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
    svg.append(line);
    row.append(svg);
  }
  const most = whole ?? Math.max(...values, 1e-9);
  line.setAttribute("points", values
    .map((value, i) => `${POINTS - values.length + i + 1},${(26 - 24 * (value / most)).toFixed(1)}`).join(" "));
}

function tiles(history, misses) {
  const now = history.now;
  const latency = history.histogram("reprise_request_duration_seconds");
  const makesTokens = now.series("reprise_tokens_total").length > 0 && now.sum("reprise_tokens_total") > 0;
  const list = [
    { id: "requests", label: "Requests a second", text: rate(history.rate("reprise_requests_total")),
      sub: `${number(now.sum("reprise_requests_total"))} since the start`, line: history.lastRate("reprise_requests_total") },
    { id: "latency", label: "Latency, median", text: seconds(percentile(latency.histogram, 0.5)),
      sub: latency.histogram?.count > 0 ? `p99 ${seconds(percentile(latency.histogram, 0.99))}${latency.old ? ", since the start" : ""}`
        : "no requests yet" },
    { id: "queue", label: "Waiting, running", text:
      `${number(now.sum("reprise_requests_waiting"))}, ${number(now.sum("reprise_requests_running"))}`,
      sub: `streams busy ${number(100 * now.sum("reprise_utilization"))} %`, line: now.sum("reprise_utilization"), whole: 1 },
  ];
  if (makesTokens) {
    list.push({ id: "tokens", label: "New tokens a second", text: rate(history.rate("reprise_tokens_total", { kind: "generated" })),
      sub: `${number(now.sum("reprise_tokens_total", { kind: "generated" }))} since the start`,
      line: history.lastRate("reprise_tokens_total", { kind: "generated" }) });
  }
  list.push(
    { id: "misses", label: "Recompilations, last hour", text: number(misses),
      sub: `${number(now.sum("reprise_cache_recipes"))} recipes in memory` },
    { id: "memory", label: "Resident memory", text: bytes(now.sum("process_resident_memory_bytes")),
      sub: `${number(now.sum("reprise_connections"))} connections` });
  for (const one of list.filter((item) => item.line !== undefined)) {
    const values = lines.get(one.id) ?? [];
    values.push(one.line);
    if (values.length > POINTS) values.shift();
    lines.set(one.id, values);
  }
  keep(byId("tiles"), list, (one) => one.id, (one) => tile(one.id, one.label), (row, one) => {
    setText(row.children[1], one.text);
    setText(row.children[2], one.sub);
    if (one.line !== undefined) drawLine(row, lines.get(one.id), one.whole);
  });
}

const MODEL_COLUMNS = [["Model", "name"], ["State"], ["Offers"], ["Requests/s", "n"], ["p50", "n"], ["p90", "n"], ["p99", "n"],
  ["Queue", "n"], ["Padding", "n"], ["Recompiled", "n"]];

const STATE_CLASS = { READY: "good", LOADING: "warn", UNAVAILABLE: "bad" };

function changeState(node, model) {
  const words = [model.state.toLowerCase()];
  if (model.warmup !== undefined && model.warmup.done + model.warmup.failed < model.warmup.wanted) {
    words.push(`${model.warmup.done} of ${model.warmup.wanted} recipes`);
  }
  const text = words.join(", ");
  if (node.dataset.shown === text + (model.reason ?? "")) return;
  node.dataset.shown = text + (model.reason ?? "");
  node.replaceChildren(el("span", { class: STATE_CLASS[model.state] ?? "soft" }, text));
  if (model.reason !== undefined) node.append(el("div", { class: "why" }, model.reason));
}

function changeOffers(node, model) {
  if (node.firstChild !== null || model.offers === undefined) return;
  if (makesTokens(model)) {
    node.append(el("span", {}, offersText(model)), el("div", { class: "small" }, `up to ${number(model.offers.context)} tokens`));
    return;
  }
  node.append(el("span", {}, offersText(model)),
    ...model.inputs.slice(0, SHOWN_INPUTS).map((tensor) => el("div", { class: "small tensor" }, tensorText(tensor))));
  if (model.inputs.length > SHOWN_INPUTS) {
    node.append(el("div", { class: "small" }, `and ${model.inputs.length - SHOWN_INPUTS} more inputs`));
  }
  const exact = (model.axes ?? []).filter((axis) => !axis.padded && !axis.packed);
  for (const axis of exact) {
    node.append(el("div", { class: "small warn" }, 
      cut(`${axis.axis} is never padded: ${axis.reason ?? "not certified"}`, 160)));
  }
}

function setNumber(node, text, old) {
  setText(node, text);
  node.classList.toggle("soft", old);
}

function models(overview, history, misses) {
  keep(byId("models"), overview.models, (model) => JSON.stringify([model.name, model.version]), (model) => {
    const row = tableRow(MODEL_COLUMNS);
    cell(row, 0).append(shown(model.name), " ", el("span", { class: "small" }, model.version));
    return row;
  }, (row, model) => {
    const labels = { model: model.name, version: model.version };
    changeState(cell(row, 1), model);
    changeOffers(cell(row, 2), model);
    setText(cell(row, 3), rate(history.rate("reprise_requests_total", labels)));
    const latency = history.histogram("reprise_request_duration_seconds", labels);
    [0.5, 0.9, 0.99].forEach((quantile, i) =>
      setNumber(cell(row, 4 + i), seconds(percentile(latency.histogram, quantile)), latency.old));
    setText(cell(row, 7), number(history.now.sum("reprise_queue_depth", labels)));
    const valid = history.grown("reprise_elements_total", { ...labels, kind: "valid" });
    const padded = valid.old ? history.now.sum("reprise_elements_total", { ...labels, kind: "padded" })
      : history.now.sum("reprise_elements_total", { ...labels, kind: "padded" }) -
        history.past.sum("reprise_elements_total", { ...labels, kind: "padded" });
    setNumber(cell(row, 8), share(padded, padded + valid.value), valid.old);
    setText(cell(row, 9), number(misses.filter((m) => m.model === model.name && m.version === model.version).length));
  });
}

const DECODER_COLUMNS = [["Model", "name"], ["Tokens/s", "n"], ["First token p50", "n"], ["Next token p50", "n"],
  ["Found computed", "n"], ["Running", "n"], ["Waiting", "n"], ["Pages"]];

function stack(parts) {
  const bar = el("div", { class: "stack", "aria-hidden": "true" });
  changeStack(bar, parts);
  return bar;
}
function changeStack(bar, parts) {
  const whole = parts.reduce((sum, [, value]) => sum + value, 0);
  keep(bar, parts, ([name]) => name, ([name]) => el("span", { class: `k${parts.findIndex((part) => part[0] === name) % 5}` }),
    (piece, [, value]) => { piece.style.width = `${whole > 0 ? (100 * value) / whole : 0}%`; });
}

function decoders(overview, history) {
  const list = overview.models.filter(makesTokens);
  byId("decoders-part").hidden = list.length === 0;
  keep(byId("decoders"), list, (model) => JSON.stringify([model.name, model.version]), (model) => {
    const row = tableRow(DECODER_COLUMNS);
    cell(row, 0).append(shown(model.name));
    cell(row, 7).append(el("span"), stack([]));
    return row;
  }, (row, model) => {
    const labels = { model: model.name, version: model.version };
    const now = history.now;
    setText(cell(row, 1), rate(history.rate("reprise_tokens_total", { ...labels, kind: "generated" })));
    [["reprise_time_to_first_token_seconds", 2], ["reprise_time_per_output_token_seconds", 3]].forEach(([name, at]) => {
      const times = history.histogram(name, labels);
      setNumber(cell(row, at), seconds(percentile(times.histogram, 0.5)), times.old);
    });
    const cached = now.sum("reprise_tokens_total", { ...labels, kind: "cached" });
    setText(cell(row, 4), share(cached, cached + now.sum("reprise_tokens_total", { ...labels, kind: "prompt" })));
    setText(cell(row, 5), number(now.sum("reprise_sequences", { ...labels, state: "running" })));
    setText(cell(row, 6), number(["waiting", "set_back", "stalled"]
      .reduce((sum, state) => sum + now.sum("reprise_sequences", { ...labels, state }), 0)));
    const pages = Object.fromEntries(["used", "shared", "free"]
      .map((state) => [state, now.sum("reprise_pages", { ...labels, state })]));
    setText(cell(row, 7).firstChild, `${number(pages.used)} used, ${number(pages.shared)} of them shared, ${number(pages.free)} free`);
    changeStack(cell(row, 7).lastChild, [["used", pages.used - pages.shared], ["shared", pages.shared], ["", 0], [" ", 0], ["free", pages.free]]);
  });
}

function memory(history) {
  const now = history.now;
  const kind = (name) => now.sum("reprise_memory_bytes", { kind: name });
  const recipes = now.sum("reprise_cache_bytes");
  const known = [["parameters", kind("parameters")], ["arenas", kind("arena")], ["recipes", recipes],
    ["requests under way", kind("in_flight")]];
  const resident = now.sum("process_resident_memory_bytes");
  const rest = Math.max(0, resident - known.reduce((sum, [, value]) => sum + value, 0));
  const parts = [...known, ["the rest of the process", rest]];
  const part = byId("memory");
  if (part.firstChild === null) part.append(stack(parts), el("ul", { class: "legend" }));
  changeStack(part.firstChild, parts);
  keep(part.lastChild, parts, ([name]) => name, ([name]) => {
    const at = parts.findIndex((one) => one[0] === name);
    return el("li", {}, el("i", { class: `k${at}`, "aria-hidden": "true" }), el("span"));
  }, (row, [name, value]) => setText(row.lastChild, `${name} ${bytes(value)}`));
}

export function showOverview(overview, history, misses) {
  tiles(history, misses.length);
  models(overview, history, misses);
  decoders(overview, history);
  memory(history);
}
