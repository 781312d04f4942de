// The page "/docs": what /openapi.json says of each route, for people.
import { byId, el, setText } from "./dom.js";
import { askJson, setKey } from "./server.js";

let document_ = null;

const resolve = (schema) => (schema?.$ref === undefined ? schema
  : document_.components.schemas[schema.$ref.split("/").pop()]);
const nameOf = (schema) => schema?.$ref?.split("/").pop();

// A schema in a line: "array of integer", "string or null", "EmbedRequest".
function typeText(schema) {
  if (schema === undefined) return "";
  if (schema.$ref !== undefined) return nameOf(schema);
  const some = schema.oneOf ?? schema.anyOf;
  if (some !== undefined) return some.map(typeText).join(" or ");
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.type === "array") return `array of ${typeText(schema.items) || "anything"}`;
  if (Array.isArray(schema.type)) return schema.type.join(" or ");
  return schema.type ?? "anything";
}

function schemaPart(schema) {
  const whole = resolve(schema);
  if (whole?.properties === undefined) return el("p", {}, el("code", {}, typeText(whole)));
  const needed = new Set(whole.required ?? []);
  return el("div", { class: "scroll", tabindex: "0" }, el("table", {}, el("thead", {}, el("tr", {},
    ...["Member", "Type", "Default"].map((text) => el("th", { scope: "col" }, text)))),
  el("tbody", {}, ...Object.entries(whole.properties).map(([name, of]) => el("tr", {},
    el("td", {}, el("code", {}, name), needed.has(name) ? " needed" : ""), el("td", {}, typeText(of)),
    el("td", {}, of.default === undefined ? "" : JSON.stringify(of.default)))))));
}

// A value that fits a schema, for the example.
function sample(schema, depth = 0) {
  const whole = resolve(schema);
  if (whole === undefined || depth > 4) return null;
  if (whole.default !== undefined) return whole.default;
  if (whole.enum !== undefined) return whole.enum[0];
  if (whole.const !== undefined) return whole.const;
  const some = whole.oneOf ?? whole.anyOf;
  if (some !== undefined && whole.properties === undefined) return sample(some[0], depth + 1);
  const type = Array.isArray(whole.type) ? whole.type[0] : whole.type;
  if (type === "array") return [sample(whole.items, depth + 1)];
  if (type === "object" || whole.properties !== undefined) {
    const needed = whole.required ?? some?.[0].required ?? Object.keys(whole.properties ?? {}).slice(0, 1);
    return Object.fromEntries(needed.map((name) => [name, sample(whole.properties?.[name], depth + 1)]));
  }
  return { string: "text", integer: whole.minimum ?? 1, number: 0.5, boolean: true }[type] ?? {};
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function curl(path, method, operation) {
  const body = operation.requestBody?.content["application/json"]?.schema;
  const at = new URL(path.slice(1), location.href.replace(/docs$/, "")).href.replaceAll("%7B", "{").replaceAll("%7D", "}");
  return `curl ${method === "post" && body === undefined ? "-X POST " : ""}${quoted(at)}${
    body === undefined ? "" : ` -d ${quoted(JSON.stringify(sample(body)))}`}`;
}

function contentPart(content) {
  return Object.entries(content ?? {}).map(([type, of]) => el("div", {}, el("p", { class: "small" },
    el("code", {}, type), nameOf(of.schema) === undefined ? "" : ` ${nameOf(of.schema)}`),
  type === "application/json" ? schemaPart(of.schema) : null));
}

function operationPart(path, method, operation) {
  const right = operation["x-reprise-right"];
  const errors = Object.entries(operation.responses).filter(([code]) => code !== "200");
  return el("details", { class: "operation", "data-words": `${method} ${path} ${operation.summary}`.toLowerCase() },
    el("summary", {}, el("strong", { class: "code" }, `${method.toUpperCase()} ${path}`), ` ${operation.summary}`),
    el("p", { class: "note" }, right === "none" ? "Takes no right." : `Takes the right ${right}, where the server has keys.`),
    el("p", {}, el("code", {}, curl(path, method, operation))),
    ...(operation.requestBody === undefined ? [] : [el("h4", {}, "Body"), ...contentPart(operation.requestBody.content)]),
    el("h4", {}, "Answer"), ...contentPart(operation.responses["200"].content),
    el("h4", {}, "Errors"),
    el("ul", {}, ...errors.map(([code, error]) => el("li", {}, el("code", {}, code), ` ${error.description}`))));
}

function find() {
  const words = byId("find").value.toLowerCase().split(/\s+/).filter((word) => word !== "");
  let shown = 0;
  for (const part of document.querySelectorAll(".operation")) {
    part.hidden = !words.every((word) => part.dataset.words.includes(word));
    if (!part.hidden) shown++;
  }
  for (const section of document.querySelectorAll("#operations section")) {
    section.hidden = section.querySelector(".operation:not([hidden])") === null;
  }
  setText(byId("found"), `${shown} paths`);
}

function show() {
  setText(byId("version"), `of ${document_.info.title} ${document_.info.version}`);
  const groups = new Map();
  for (const [path, operations] of Object.entries(document_.paths)) {
    // What is there a second time for one model is said once.
    if (path.startsWith("/models/{model}") || path.includes("/versions/{version}")) continue;
    for (const [method, operation] of Object.entries(operations)) {
      const group = groups.get(operation.tags[0]) ?? [];
      group.push(operationPart(path, method, operation));
      groups.set(operation.tags[0], group);
    }
  }
  const idOf = (tag) => `group-${tag.toLowerCase().replaceAll(" ", "-")}`;
  byId("groups").replaceChildren(...[...groups.keys()].map((tag) => el("a", { href: `#${idOf(tag)}` }, tag)));
  byId("operations").replaceChildren(...[...groups].map(([tag, parts]) =>
    el("section", { id: idOf(tag), "aria-label": tag }, el("h2", {}, tag), tag === "Texts"
      ? el("p", { class: "note" }, "Each of these but /v1/models is there below /models/{model} as well.") : null, ...parts)));
  byId("find-part").hidden = false;
}

async function start() {
  try {
    document_ = await askJson("openapi.json");
    byId("trouble").hidden = true;
    byId("key-form").hidden = true;
    show();
  } catch (error) {
    byId("trouble").hidden = false;
    setText(byId("trouble"), error.message);
    byId("key-form").hidden = error.status !== 401 && error.status !== 403;
  }
}

byId("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setKey(byId("key-text").value.trim());
  start();
});
byId("find").addEventListener("input", find);
start();
