// The view "Try a model": texts, a picture, or made-up tensors.
import { byId, bytes, cut, el, number, seconds, setOptions, shown } from "./dom.js";
import { ask, postJson } from "./server.js";
import * as tensors from "./tensors.js";

const MOST_ELEMENTS = 2 ** 26;
const SHOWN_ROWS = 20;
let models = new Map();
let shownFor = "";

const pathOf = (model, path) => `models/${encodeURIComponent(model.name)}/${path}`;

// Tasks whose requests are a file.
const FILES = {
  "image classification": { words: "a picture, for labels", label: "Picture", accept: "image/jpeg,image/png", path: "v1/vision/classify" },
  "object detection": { words: "a picture, for objects", label: "Picture", accept: "image/jpeg,image/png", path: "v1/vision/detect" },
  "transcription": { words: "a sound, for its words", label: "Sound", accept: "audio/*", path: "v1/audio/transcriptions" },
};

// Which forms a model has: id, words.
function kindsOf(model) {
  const kinds = [];
  const task = model.offers?.task;
  if (task === "embeddings") kinds.push(["embed", "texts, for vectors"]);
  if (task === "rerank") kinds.push(["rank", "a query and documents"]);
  if (task === "classification") kinds.push(["label", "texts, for labels"]);
  if (task === "token classification") kinds.push(["label", "texts, for labels of tokens"]);
  if (task === "generation") kinds.push(model.offers.texts ? ["complete", "a text that goes on"] : ["ids", "token ids that go on"]);
  if (FILES[task] !== undefined) kinds.push(["file", FILES[task].words]);
  if (task !== "generation") {
    if (model.inputs.some((tensor) => tensors.pictureLayout(tensor) !== null)) kinds.push(["picture", "a picture"]);
    kinds.push(["tensors", "made-up tensors"]);
  }
  return kinds;
}

function field(id, label, control, hint) {
  control.id = id;
  const parts = [el("label", { for: id }, label), control];
  if (hint !== undefined) {
    control.setAttribute("aria-describedby", `${id}-hint`);
    parts.push(el("p", { class: "hint", id: `${id}-hint` }, hint));
  }
  return el("div", { class: "field" }, ...parts);
}
function area(rows, text) {
  const control = el("textarea", { rows, required: true });
  control.value = text;
  return control;
}
const textsOf = (id) => byId(id).value.split("\n").map((line) => line.trim()).filter((line) => line !== "");

// The size that stands for one that requests decide.
function guess(tensor, at) {
  if (at === 0) return 1;
  return tensors.pictureLayout(tensor) !== null ? 224 : 8;
}

function tensorFields(tensor, i) {
  const shape = tensor.shape.map((dim, at) => (dim < 0 ? guess(tensor, at) : dim));
  const parts = [field(`try-shape-${i}`, "Shape", el("input", { type: "text", inputmode: "numeric", value: shape.join(", "), required: true }))];
  if (tensors.isText(tensor.datatype)) {
    parts.push(field(`try-texts-${i}`, "Texts, one a line", area(2, "a text")));
  } else {
    const mask = /mask/i.test(tensor.name), types = /type/i.test(tensor.name);
    const fill = el("select", {}, ...[["random", "random"], ["ones", "ones"], ["zeros", "zeros"], ["counting", "0, 1, 2 ..."]]
      .map(([value, text]) => el("option", { value }, text)));
    fill.value = mask ? "ones" : types ? "zeros" : "random";
    parts.push(field(`try-fill-${i}`, "Numbers", fill));
    if (!tensors.isFloat(tensor.datatype) && tensor.datatype !== "BOOL") {
      parts.push(field(`try-most-${i}`, "Random below", el("input", { type: "number", min: 1, value: tensor.datatype === "UINT8" ? 256 : 1000 })));
    }
  }
  return el("fieldset", {}, el("legend", {}, el("code", {}, tensor.name), ` ${tensor.datatype}`), el("div", { class: "fields" }, ...parts));
}

function pictureFields(model) {
  const tensor = model.inputs.find((one) => tensors.pictureLayout(one) !== null);
  const layout = tensors.pictureLayout(tensor);
  const size = (name, label, dim) => field(`try-${name}`, label, el("input", {
    type: "number", min: 1, max: 8192, value: dim > 0 ? dim : 224, readonly: dim > 0, required: true }));
  const scale = el("select", {}, el("option", { value: "unit" }, "0 to 1"),
    el("option", { value: "imagenet" }, "ImageNet’s mean and deviation"), el("option", { value: "bytes" }, "0 to 255"));
  const canvas = el("canvas", { class: "preview", id: "try-canvas", hidden: true, role: "img", "aria-label": "The picture as it is sent" });
  const file = el("input", { type: "file", accept: "image/*", required: true, onchange: drawPicture });
  const others = model.inputs.map((one, i) => (one === tensor ? null : tensorFields(one, i)));
  return [
    field("try-file", "Picture", file, "It is made as large as the input in this browser, and sent as numbers."),
    el("div", { class: "fields" }, size("width", "Width", layout.width), size("height", "Height", layout.height),
      field("try-scale", "Numbers", scale)),
    canvas, ...others,
  ];
}

async function drawPicture() {
  const file = byId("try-file").files[0];
  if (file === undefined) return;
  const picture = await createImageBitmap(file);
  const canvas = byId("try-canvas");
  canvas.width = Number(byId("try-width").value);
  canvas.height = Number(byId("try-height").value);
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  canvas.hidden = false;
}

const FORMS = {
  embed: () => [field("try-texts", "Texts, one a line", area(4, "A man is eating food.\nA man eats something.\nThe sky is blue."))],
  rank: () => [field("try-query", "Query", el("input", { type: "text", value: "What is the capital of France?", required: true })),
    field("try-texts", "Documents, one a line", area(4, "Paris is the capital of France.\nBerlin is in Germany.\nFrance exports wine."))],
  label: () => [field("try-texts", "Texts, one a line", area(3, "I like this very much."))],
  complete: () => [field("try-text", "Text", area(3, "The capital of France is")),
    field("try-new", "Most new tokens", el("input", { type: "number", min: 1, value: 32 }))],
  ids: () => [field("try-ids", "Token ids", el("input", { type: "text", value: "1, 2, 3", required: true })),
    field("try-new", "Most new tokens", el("input", { type: "number", min: 1, value: 16 }))],
  file: (model) => {
    const { label, accept } = FILES[model.offers.task];
    return [field("try-file", label, el("input", { type: "file", accept, required: true }), "It is sent as it is.")];
  },
  picture: pictureFields,
  tensors: (model) => model.inputs.map(tensorFields),
};

function showForm(force = false) {
  const model = models.get(byId("try-model").value);
  byId("try-run").disabled = model === undefined;
  if (model === undefined) {
    if (shownFor !== "none") byId("try-fields").replaceChildren(el("p", { class: "note" }, "No model is ready."));
    shownFor = "none";
    return setOptions(byId("try-kind"), []);
  }
  setOptions(byId("try-kind"), kindsOf(model));
  const wanted = `${model.name} ${model.version} ${byId("try-kind").value}`;
  if (wanted === shownFor && !force) return;
  shownFor = wanted;
  byId("try-fields").replaceChildren(...FORMS[byId("try-kind").value](model).filter((part) => part !== null));
  byId("try-answer").replaceChildren();
}

const numbers = (pairs) => el("dl", { class: "numbers" }, ...pairs.map(([name, value]) =>
  el("div", {}, el("dt", {}, name), el("dd", {}, String(value)))));

function table(head, rows) {
  const first = rows.slice(0, SHOWN_ROWS);
  return el("div", { class: "scroll", tabindex: "0" }, el("table", {}, el("thead", {}, el("tr", {}, ...head.map((text, i) =>
    el("th", { scope: "col", class: i > 0 && typeof rows[0]?.[i] === "number" ? "n" : "" }, text)))),
  el("tbody", {}, ...first.map((row) => el("tr", {}, ...row.map((value) => typeof value === "number"
    ? el("td", { class: "n" }, shortNumber(value)) : el("td", {}, value)))))),
  rows.length > first.length ? el("p", { class: "note" }, `and ${number(rows.length - first.length)} more`) : null);
}
const shortNumber = (value) => (Number.isInteger(value) ? String(value) : Number.isFinite(value) ? String(Number(value.toPrecision(4))) : String(value));

const cosine = (a, b) => {
  const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
};

const RUN = {
  async embed(model) {
    const texts = textsOf("try-texts");
    const vectors = await (await postJson(pathOf(model, "embed"), { inputs: texts })).json();
    const parts = [table(["Text", "Dimensions", "First numbers"], texts.map((text, i) =>
      [cut(text, 80), vectors[i].length, vectors[i].slice(0, 4).map(shortNumber).join(", ")]))];
    if (texts.length > 1) {
      const some = vectors.slice(0, 8);
      parts.push(el("h3", {}, "Cosines"), table(["", ...some.map((_, i) => String(i + 1))],
        some.map((a, i) => [`${i + 1}. ${cut(texts[i], 32)}`, ...some.map((b) => Number(cosine(a, b).toFixed(3)))])));
    }
    return parts;
  },
  async rank(model) {
    const documents = textsOf("try-texts");
    const answer = await (await postJson(pathOf(model, "rerank"), { query: byId("try-query").value, documents })).json();
    return [table(["Document", "Score"], answer.results.map((one) => [cut(documents[one.index], 200), one.relevance_score]))];
  },
  async label(model) {
    const texts = textsOf("try-texts");
    const answers = await Promise.all(texts.map(async (inputs) => (await postJson(pathOf(model, "predict"), { inputs })).json()));
    return [table(["Text", "Label", "Score"], texts.flatMap((text, i) => answers[i].flat().slice(0, 5)
      .map((one) => [cut(one.word ?? text, 80), one.label ?? one.entity ?? one.entity_group, one.score])))];
  },
  async complete(model) {
    const prompt = byId("try-text").value;
    const answer = await (await postJson("v1/completions",
      { model: model.name, prompt, max_tokens: Number(byId("try-new").value), temperature: 0 })).json();
    return [numbers([["new tokens", answer.usage.completion_tokens], ["found computed", answer.reprise.cached_tokens],
      ["captures", answer.reprise.captures], ["first token", seconds(answer.reprise.time_to_first_token_ms / 1e3)],
      ["ended by", answer.choices[0].finish_reason]]),
    el("p", {}, el("span", { class: "soft" }, prompt), el("strong", {}, answer.choices[0].text))];
  },
  async ids(model) {
    const ids = byId("try-ids").value.split(/[\s,]+/).filter((text) => text !== "").map(Number);
    const answer = await (await postJson(`v2/models/${encodeURIComponent(model.name)}/generate`,
      { input_ids: ids, parameters: { max_tokens: Number(byId("try-new").value), temperature: 0 } })).json();
    return [numbers([["ended by", answer.finish_reason]]), el("p", {}, el("code", {}, answer.token_ids.join(", ")))];
  },
  async file(model) {
    const { path } = FILES[model.offers.task];
    const file = byId("try-file").files[0];
    if (model.offers.task === "transcription") {
      const form = new FormData();
      form.append("file", file);
      const reply = await ask(pathOf(model, path), { method: "POST", body: form });
      return [el("p", {}, el("strong", {}, (await reply.json()).text))];
    }
    const reply = await ask(pathOf(model, path), { method: "POST", body: file, headers: { "Content-Type": file.type } });
    const [picture] = (await reply.json()).images;
    const size = numbers([["width", picture.width], ["height", picture.height]]);
    if (picture.classes !== undefined) return [size, table(["Label", "Score"], picture.classes.map((one) => [one.label, one.score]))];
    return [size, table(["Label", "Score", "Left, top, right, bottom"],
      picture.objects.map((one) => [one.label, one.score, one.box.map(shortNumber).join(", ")]))];
  },
  picture: (model) => infer(model, (tensor, i) => {
    const layout = tensors.pictureLayout(tensor);
    if (layout === null) return made(tensor, i);
    const canvas = byId("try-canvas");
    const sizes = layout.first ? [1, layout.channels, canvas.height, canvas.width] : [1, canvas.height, canvas.width, layout.channels];
    return { shape: sizes, bytes: tensors.encode(tensor.datatype, tensors.pictureNumbers(canvas, layout, byId("try-scale").value)) };
  }),
  tensors: (model) => infer(model, made),
};

function made(tensor, i) {
  const shape = byId(`try-shape-${i}`).value.split(/[\s,x×]+/).filter((text) => text !== "").map(Number);
  if (shape.some((dim) => !Number.isInteger(dim) || dim < 0)) throw new Error(`the shape of ${tensor.name} is a list of sizes: 1, 8`);
  const count = tensors.countOf(shape);
  if (count > MOST_ELEMENTS) throw new Error(`${tensor.name} would have ${number(count)} elements; this page makes up to ${number(MOST_ELEMENTS)}`);
  if (tensors.isText(tensor.datatype)) {
    const texts = textsOf(`try-texts-${i}`);
    return { shape, bytes: tensors.encodeTexts(Array.from({ length: count }, (_, k) => texts[k % texts.length] ?? "")) };
  }
  const whole = !tensors.isFloat(tensor.datatype);
  const most = tensor.datatype === "BOOL" ? 2 : Number(byId(`try-most-${i}`)?.value ?? 1);
  return { shape, bytes: tensors.encode(tensor.datatype, tensors.madeUp(byId(`try-fill-${i}`).value, count, whole, most)) };
}

// The outputs in a table: what they are, and their first numbers; of scores the best.
function outputRows(output) {
  const values = output.values;
  if (tensors.isText(output.datatype)) return [output.name, `${output.datatype}[${output.shape.join(", ")}]`, cut(values.join("; "), 200), "", ""];
  let least = Infinity, most = -Infinity, sum = 0;
  for (const value of values) {
    least = Math.min(least, value);
    most = Math.max(most, value);
    sum += value;
  }
  return [output.name, `${output.datatype}[${output.shape.join(", ")}]`, Array.from(values.slice(0, 5), shortNumber).join(", "),
    values.length > 0 ? `${shortNumber(least)} to ${shortNumber(most)}` : "–", values.length > 0 ? shortNumber(sum / values.length) : "–"];
}
function bestRows(output) {
  const isScores = output.shape.length === 2 && output.shape[0] === 1 && output.shape[1] > 5 && tensors.isFloat(output.datatype);
  if (!isScores) return null;
  const order = Array.from(output.values.keys()).sort((a, b) => output.values[b] - output.values[a]).slice(0, 5);
  return el("div", {}, el("h3", {}, `Highest of ${output.name}`), table(["Position", "Value"], order.map((i) => [String(i), output.values[i]])));
}

async function infer(model, make) {
  const list = model.inputs.map((tensor, i) => ({ name: tensor.name, datatype: tensor.datatype, ...make(tensor, i) }));
  const { body, jsonBytes } = tensors.requestBody(list);
  const reply = await ask(`v2/models/${encodeURIComponent(model.name)}/infer`, {
    method: "POST", body, headers: { "Content-Type": "application/octet-stream", "Inference-Header-Content-Length": String(jsonBytes) } });
  const answer = await tensors.readAnswer(reply);
  const says = answer.parameters ?? {};
  const facts = ["capture", "bucket", "batch_size", "tokens"].filter((name) => says[`reprise.${name}`] !== undefined)
    .map((name) => [name.replace("_", " "), says[`reprise.${name}`]]);
  return [numbers([...facts, ["sent", bytes(body.size)]]),
    table(["Output", "Type", "First values", "Range", "Mean"], answer.outputs.map(outputRows)), ...answer.outputs.map(bestRows)];
}

async function run(event) {
  event.preventDefault();
  const model = models.get(byId("try-model").value);
  const button = byId("try-run"), answer = byId("try-answer");
  button.disabled = true;
  answer.setAttribute("aria-busy", "true");
  const begin = performance.now();
  try {
    const parts = await RUN[byId("try-kind").value](model);
    const took = (performance.now() - begin) / 1e3;
    answer.replaceChildren(el("h3", {}, `Answered after ${seconds(took)}`), ...parts.filter((part) => part !== null));
  } catch (error) {
    answer.replaceChildren(el("h3", { class: "bad" }, "That did not work"), el("p", {}, error.message));
  } finally {
    button.disabled = false;
    answer.removeAttribute("aria-busy");
  }
}

// `list`: models that are ready.
export function showTry(list) {
  models = new Map(list.map((model) => [`${model.name} ${model.version}`, model]));
  setOptions(byId("try-model"), list.map((model) => [`${model.name} ${model.version}`, shown(model.name)]));
  showForm();
}

export function startTry() {
  byId("try-form").addEventListener("submit", run);
  byId("try-model").addEventListener("change", () => showForm());
  byId("try-kind").addEventListener("change", () => showForm(true));
  byId("try-fields").addEventListener("change", (event) => {
    if (["try-width", "try-height"].includes(event.target.id) && byId("try-canvas") !== null) drawPicture();
  });
}
