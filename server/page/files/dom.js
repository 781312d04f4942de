// Elements and words. Texts of models and clients only ever become text nodes: nothing is read as HTML.

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export const byId = (id) => document.getElementById(id);

// Changes a text only where it differs, so that selections and screen readers are left alone.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Makes the children of `parent` those of `items`: rows are made once by `make(item)` and then
// changed by `change(row, item)`; what the reader has focused or selected stays.
export function keep(parent, items, keyOf, make, change) {
  const rows = (parent.keptRows ??= new Map());
  const wanted = new Map();
  for (const item of items) wanted.set(keyOf(item), item);
  for (const [key, row] of rows) {
    if (!wanted.has(key)) {
      row.remove();
      rows.delete(key);
    }
  }
  let before = null;
  for (const [key, item] of wanted) {
    let row = rows.get(key);
    if (row === undefined) {
      row = make(item);
      rows.set(key, row);
    }
    change(row, item);
    const place = before === null ? parent.firstChild : before.nextSibling;
    if (place !== row) parent.insertBefore(row, place);
    before = row;
  }
}

// A row of cells, each with its label for narrow screens; `row.cells` has them in order.
export function tableRow(columns) {
  return el("tr", {}, ...columns.map(([label, kind]) =>
    el("td", { class: kind, "data-label": label }, el("div"))));
}
export const cell = (row, i) => row.cells[i].firstChild;

// Replaces the options of a select; keeps the choice where it is still there.
export function setOptions(select, options) {
  const same = options.length === select.options.length &&
    options.every(([value, text], i) => select.options[i].value === value && select.options[i].text === text);
  if (same) return;
  const chosen = select.value;
  select.replaceChildren(...options.map(([value, text]) => el("option", { value }, text)));
  if (options.some(([value]) => value === chosen)) select.value = chosen;
}

export function number(value, digits = 0) {
  return value.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: 0 });
}
export function rate(value) {
  return value >= 100 ? number(value) : value >= 10 ? number(value, 1) : number(value, 2);
}
export function seconds(value) {
  if (value === null) return "–";
  if (value < 1e-3) return `${number(value * 1e6)} µs`;
  if (value < 1) return `${number(value * 1e3, value < 0.01 ? 2 : value < 0.1 ? 1 : 0)} ms`;
  return `${number(value, value < 10 ? 2 : 1)} s`;
}
export function bytes(value) {
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 1024]]) {
    if (value >= size) return `${number(value / size, value < 10 * size ? 1 : 0)} ${unit}`;
  }
  return `${number(value)} B`;
}
export function share(part, whole) {
  return whole > 0 ? `${number((100 * part) / whole, 1)} %` : "–";
}
export function duration(value) {
  if (value < 60) return `${Math.floor(value)} s`;
  if (value < 3600) return `${Math.floor(value / 60)} min`;
  if (value < 172800) return `${number(value / 3600, 1)} h`;
  return `${Math.floor(value / 86400)} days`;
}
export const plural = (count, one, many) => `${number(count)} ${count === 1 ? one : many}`;
export const cut = (text, most) => (text.length > most ? `${text.slice(0, most)}…` : text);

// A name as the log shows it: what moves a line or turns its direction is written out.
export const shown = (name) => name.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
  (letter) => (letter === "\n" ? "\\n" : `\\u{${letter.codePointAt(0).toString(16)}}`));
