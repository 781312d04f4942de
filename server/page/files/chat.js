// The view "Chat": a conversation by OpenAI's protocol, streamed, with the numbers of each answer.
import { byId, el, rate, seconds, setOptions, setText, shown } from "./dom.js";
import { postJson, readEvents } from "./server.js";

let models = new Map();
let messages = [];
let running = null;  // what ends the answer

function addTurn(who, text) {
  const said = el("div", { class: "said" }, text);
  const turn = el("article", { class: `turn ${who}` }, el("h3", {}, who === "user" ? "You" : shown(byId("chat-model").value)), said);
  const log = byId("chat-log");
  log.append(turn);
  log.scrollTop = log.scrollHeight;
  return { turn, said };
}

function showNumbers(turn, pairs) {
  let list = turn.querySelector(".numbers");
  if (list === null) {
    list = el("dl", { class: "numbers" });
    turn.append(list);
  }
  list.replaceChildren(...pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

function numbersOf(state) {
  const { usage, reprise, first, last, pieces } = state;
  const tokens = usage?.completion_tokens ?? pieces;
  const pairs = [["tokens", String(tokens)]];
  if (tokens > 1 && last > first) pairs.unshift(["tokens a second", rate((1000 * (tokens - 1)) / (last - first))]);
  if (reprise !== undefined) {
    pairs.push(["first token", seconds(reprise.time_to_first_token_ms / 1e3)], ["prompt tokens", String(usage.prompt_tokens)],
      ["found computed", String(reprise.cached_tokens)], ["captures", String(reprise.captures)]);
  }
  if (state.finish !== undefined) pairs.push(["ended by", state.finish]);
  return pairs;
}

// A model with a chat template gets the conversation, another one the last message.
function request(model, text) {
  const asked = {
    model: model.name, stream: true, stream_options: { include_usage: true },
    max_tokens: Number(byId("chat-tokens").value), temperature: Number(byId("chat-temperature").value),
  };
  if (!model.offers.chats) return ["v1/completions", { ...asked, prompt: text }];
  const system = byId("chat-system").value.trim();
  return ["v1/chat/completions", { ...asked, messages: [...(system === "" ? [] : [{ role: "system", content: system }]), ...messages] }];
}

async function answer(model, text) {
  const { turn, said } = addTurn("assistant", "");
  const state = { pieces: 0, first: 0, last: 0 };
  let whole = "";
  // The log is told of the whole, not of each token.
  turn.setAttribute("aria-busy", "true");
  running = new AbortController();
  byId("chat-send").disabled = true;
  byId("chat-stop").hidden = false;
  try {
    const [path, body] = request(model, text);
    const reply = await postJson(path, body, { signal: running.signal });
    await readEvents(reply, (data) => {
      if (data === "[DONE]") return;
      const event = JSON.parse(data);
      if (event.error !== undefined) throw new Error(event.error.message ?? String(event.error));
      const choice = event.choices?.[0];
      const piece = choice?.delta?.content ?? choice?.text ?? "";
      if (piece !== "") {
        state.last = performance.now();
        if (state.pieces++ === 0) state.first = state.last;
        whole += piece;
        const log = byId("chat-log"), atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
        said.append(piece);
        if (atEnd) log.scrollTop = log.scrollHeight;
      }
      if (choice?.finish_reason) state.finish = choice.finish_reason;
      if (event.usage) state.usage = event.usage;
      if (event.reprise) state.reprise = event.reprise;
      showNumbers(turn, numbersOf(state));
    });
  } catch (error) {
    if (error.name === "AbortError") state.finish = "you";
    else turn.append(el("p", { class: "bad", role: "alert" }, error.message));
  } finally {
    if (whole === "" && state.finish === undefined) messages.pop();
    else messages.push({ role: "assistant", content: whole });
    showNumbers(turn, numbersOf(state));
    turn.removeAttribute("aria-busy");
    running = null;
    byId("chat-send").disabled = false;
    byId("chat-stop").hidden = true;
    byId("chat-log").scrollTop = byId("chat-log").scrollHeight;
  }
}

function send(event) {
  event.preventDefault();
  const box = byId("chat-text"), text = box.value.trim(), model = models.get(byId("chat-model").value);
  if (text === "" || model === undefined || running !== null) return;
  box.value = "";
  messages.push({ role: "user", content: text });
  addTurn("user", text);
  answer(model, text);
}

// `list`: models that are ready.
export function showChat(list) {
  const texts = list.filter((model) => model.offers?.task === "generation" && model.offers.texts);
  models = new Map(texts.map((model) => [model.name, model]));
  setOptions(byId("chat-model"), texts.map((model) => [model.name, shown(model.name)]));
  byId("chat-none").hidden = texts.length > 0;
  byId("chat-part").hidden = texts.length === 0;
}

export function startChat() {
  byId("chat-form").addEventListener("submit", send);
  byId("chat-text").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    byId("chat-form").requestSubmit();
  });
  byId("chat-stop").addEventListener("click", () => running?.abort());
  byId("chat-clear").addEventListener("click", () => {
    running?.abort();
    messages = [];
    byId("chat-log").replaceChildren();
    setText(byId("announce"), "A new chat begins.");
    byId("chat-text").focus();
  });
}
