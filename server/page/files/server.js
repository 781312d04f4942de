// Asks this server, with the key of the user where there is one.

const KEY = "reprise.key";
let needsKey = () => {};

export const key = () => sessionStorage.getItem(KEY) ?? "";
export function setKey(text) {
  if (text === "") sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, text);
}
// `f(why)` is called when a key is missing or wrong.
export function onNeedsKey(f) { needsKey = f; }

export class ServerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// The words of an error, in any of the forms that the protocols have.
async function wordsOf(reply) {
  const text = await reply.text();
  try {
    const json = JSON.parse(text);
    const error = json.error?.message ?? json.error ?? json.message;
    if (typeof error === "string") return error;
  } catch { /* Not JSON: a proxy's page, maybe. */ }
  return text.length > 0 && text.length < 500 ? text : `${reply.status} ${reply.statusText}`;
}

// The reply of `path` (relative, so that a proxy may serve the page below a prefix). Throws ServerError.
export async function ask(path, { method = "GET", body, headers = {}, signal } = {}) {
  const used = key();
  const all = { ...headers };
  if (used !== "") all.Authorization = `Bearer ${used}`;
  let reply;
  try {
    reply = await fetch(path, { method, body, headers: all, signal, cache: "no-store", credentials: "same-origin" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServerError(0, "the server does not answer");
  }
  if (reply.ok) return reply;
  const words = await wordsOf(reply);
  if (reply.status === 401 && used === key()) needsKey(used === "" ? "" : words);
  throw new ServerError(reply.status, words);
}

export const askJson = async (path, options) => (await ask(path, options)).json();
export const postJson = (path, body, options = {}) => ask(path, {
  ...options, method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" },
});

// Calls `onData` with the data of each server-sent event of a reply.
export async function readEvents(reply, onData) {
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    rest += value.replaceAll("\r\n", "\n");
    for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
      const lines = rest.slice(0, end).split("\n").filter((line) => line.startsWith("data:"));
      rest = rest.slice(end + 2);
      if (lines.length > 0) onData(lines.map((line) => line.slice(5).trimStart()).join("\n"));
    }
  }
}
