// Tensors as the inference protocol sends them after its JSON: made-up ones, pictures, and answers.

const FLOATS = new Set(["FP16", "BF16", "FP32", "FP64"]);
const ARRAYS = {
  FP32: Float32Array, FP64: Float64Array, INT8: Int8Array, INT16: Int16Array, INT32: Int32Array, INT64: BigInt64Array,
  UINT8: Uint8Array, UINT16: Uint16Array, UINT32: Uint32Array, UINT64: BigUint64Array, BOOL: Uint8Array,
};
export const isFloat = (datatype) => FLOATS.has(datatype);
export const isText = (datatype) => datatype === "BYTES";
export const countOf = (shape) => shape.reduce((product, dim) => product * dim, 1);

function bfloat(value) {
  const bits = new Uint32Array(new Float32Array([value]).buffer)[0];
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}
function half(value) {
  const sign = value < 0 ? 0x8000 : 0, size = Math.abs(value);
  if (size < 2 ** -24) return sign;
  if (size >= 65520) return sign | 0x7c00;
  const power = Math.max(-14, Math.floor(Math.log2(size)));
  const bits = Math.round((size / 2 ** power - (power === -14 && size < 2 ** -14 ? 0 : 1)) * 1024);
  return sign + (power === -14 && size < 2 ** -14 ? bits : ((power + 15) << 10) + bits);
}
function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1, power = (bits >> 10) & 31, rest = bits & 1023;
  if (power === 31) return rest ? NaN : sign * Infinity;
  return sign * (power === 0 ? rest * 2 ** -24 : (1024 + rest) * 2 ** (power - 25));
}
const fromBfloat = (bits) => new Float32Array(new Uint32Array([bits << 16]).buffer)[0];

// The bytes of numbers as `datatype` has them.
export function encode(datatype, numbers) {
  if (datatype === "FP16") return new Uint8Array(Uint16Array.from(numbers, half).buffer);
  if (datatype === "BF16") return new Uint8Array(Uint16Array.from(numbers, bfloat).buffer);
  if (datatype === "INT64" || datatype === "UINT64") {
    return new Uint8Array(ARRAYS[datatype].from(numbers, (value) => BigInt(Math.trunc(value))).buffer);
  }
  if (ARRAYS[datatype] === undefined) throw new Error(`this page makes no tensors of ${datatype}`);
  return new Uint8Array(ARRAYS[datatype].from(numbers).buffer);
}

// Texts: each after the number of its bytes.
export function encodeTexts(texts) {
  const parts = texts.map((text) => new TextEncoder().encode(text));
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + 4 + part.length, 0));
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const part of parts) {
    view.setUint32(at, part.length, true);
    bytes.set(part, at + 4);
    at += 4 + part.length;
  }
  return bytes;
}

function decode(datatype, bytes) {
  if (isText(datatype)) {
    const texts = [], view = new DataView(bytes.buffer);
    for (let at = 0; at + 4 <= bytes.length;) {
      const size = view.getUint32(at, true);
      texts.push(new TextDecoder().decode(bytes.subarray(at + 4, at + 4 + size)));
      at += 4 + size;
    }
    return texts;
  }
  if (datatype === "FP16") return Array.from(new Uint16Array(bytes.buffer), fromHalf);
  if (datatype === "BF16") return Array.from(new Uint16Array(bytes.buffer), fromBfloat);
  const array = new ARRAYS[datatype](bytes.buffer);
  return datatype === "INT64" || datatype === "UINT64" ? Array.from(array, Number) : array;
}

// `count` numbers: "zeros", "ones", "random" or "counting". Whole numbers of "random" are below `most`.
export function madeUp(fill, count, whole, most) {
  const make = {
    zeros: () => 0, ones: () => 1, counting: (_, i) => i,
    random: whole ? () => Math.floor(Math.random() * most) : () => Math.random() * 2 - 1,
  }[fill];
  return Array.from({ length: count }, make);
}

// A request: its JSON, then the bytes of each input.
export function requestBody(tensors) {
  const json = new TextEncoder().encode(JSON.stringify({
    inputs: tensors.map((tensor) => ({
      name: tensor.name, datatype: tensor.datatype, shape: tensor.shape, parameters: { binary_data_size: tensor.bytes.length },
    })),
    parameters: { binary_data_output: true },
  }));
  return { body: new Blob([json, ...tensors.map((tensor) => tensor.bytes)]), jsonBytes: json.length };
}

// The JSON of an answer and its outputs, each with `values`.
export async function readAnswer(reply) {
  const bytes = new Uint8Array(await reply.arrayBuffer());
  const size = Number(reply.headers.get("Inference-Header-Content-Length") ?? bytes.length);
  const json = JSON.parse(new TextDecoder().decode(bytes.subarray(0, size)));
  let at = size;
  for (const output of json.outputs ?? []) {
    const length = output.parameters?.binary_data_size;
    if (length === undefined) output.values = (output.data ?? []).flat(Infinity);
    else {
      output.values = decode(output.datatype, bytes.slice(at, at + length));
      at += length;
    }
  }
  return json;
}

// How a picture lies in an input: channels first or last; null where the input is none.
export function pictureLayout(tensor) {
  const { shape, datatype } = tensor;
  if (shape.length !== 4 || !(isFloat(datatype) || datatype === "UINT8")) return null;
  if (shape[1] === 3 || (shape[1] === 1 && shape[3] !== 3)) return { channels: shape[1], first: true, height: shape[2], width: shape[3] };
  if (shape[3] === 3 || shape[3] === 1) return { channels: shape[3], first: false, height: shape[1], width: shape[2] };
  return null;
}

const MEAN = [0.485, 0.456, 0.406], DEVIATION = [0.229, 0.224, 0.225];

// The numbers of a picture that a canvas shows. `scale`: "unit", "imagenet", "bytes".
export function pictureNumbers(canvas, layout, scale) {
  const { width, height } = canvas;
  const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
  const numbers = new Float32Array(layout.channels * width * height);
  for (let i = 0; i < width * height; i++) {
    const rgb = [pixels[4 * i], pixels[4 * i + 1], pixels[4 * i + 2]];
    const values = layout.channels === 3 ? rgb : [0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]];
    values.forEach((byte, c) => {
      const value = scale === "bytes" ? byte : scale === "unit" ? byte / 255 : (byte / 255 - MEAN[c]) / DEVIATION[c];
      numbers[layout.first ? c * width * height + i : i * layout.channels + c] = value;
    });
  }
  return numbers;
}
