// The view "Recompilations": captures of the last hour that no warm-up asked for.
import { byId, cell, el, keep, plural, seconds, setText, shown, tableRow } from "./dom.js";

const COLUMNS = [["Time"], ["Model", "name"], ["Shape"], ["Why"], ["Cost", "n"], ["Who waited"], ["What would avoid it"]];

// Words for the reasons; the label of the metric stands next to them.
const REASONS = {
  new_shape: "no request had this shape before", first_request: "the first request of the model",
  evicted: "its recipe had to leave the cache", bucket_change: "other buckets come into force",
  store_corrupt: "its file in the store was damaged", graph_changed: "the model has changed",
  device_changed: "the store is of another device", compiler_changed: "the store is of another build",
  policy_change: "the store is of another precision",
};

export const isMiss = (capture) => capture.reason !== "warmup";

function difference(miss) {
  if (miss.nearest === "") return "no recipe was ready";
  const fields = miss.differences.map((d) => `${d.field} ${d.wanted} in place of ${d.had}`);
  return `nearest is ${miss.nearest}${fields.length > 0 ? `: ${fields.join(", ")}` : ""}`;
}

function makeRow(miss) {
  const row = tableRow(COLUMNS);
  const time = new Date(miss.time_ms);
  cell(row, 0).append(el("time", { datetime: time.toISOString() }, time.toLocaleTimeString(undefined, { hourCycle: "h23" })));
  cell(row, 1).append(shown(miss.model), " ", el("span", { class: "small" }, miss.version));
  cell(row, 2).append(el("span", {}, miss.bucket), el("div", { class: "small" }, ...miss.binding.split(/(?<=,)/).flatMap((size) => [size, el("wbr")])));
  cell(row, 3).append(el("span", {}, REASONS[miss.reason] ?? miss.reason), " ", el("code", {}, miss.reason),
    el("div", { class: "small" }, miss.cause !== "" ? miss.cause : difference(miss)));
  cell(row, 4).append(seconds(miss.total_ms / 1e3));
  cell(row, 5).append(miss.requests_waited > 0
    ? `${plural(miss.requests_waited, "request", "requests")}, up to ${seconds(miss.longest_wait_ms / 1e3)}`
    : "nobody: it was made in the background");
  cell(row, 6).append(miss.suggestion !== "" ? el("code", {}, miss.suggestion) : el("span", { class: "soft" }, "nothing is known"));
  return row;
}

export function showRecompilations(captures, misses) {
  setText(byId("miss-count"), misses.length > 0 ? String(misses.length) : "");
  const warm = captures.length - misses.length;
  const words = misses.length === 0 ? "No request has waited for a capture, and none was made for one."
    : `${plural(misses.length, "capture was", "captures were")} made for requests, which took ${
      seconds(misses.reduce((sum, miss) => sum + miss.total_ms, 0) / 1e3)} in all.`;
  setText(byId("miss-words"), `${words} ${plural(warm, "more was", "more were")} made by the warm-up.`);
  byId("misses-table").hidden = misses.length === 0;
  keep(byId("misses"), [...misses].reverse(), (miss) => miss.sequence, makeRow, () => {});
}
