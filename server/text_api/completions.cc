#include "server/text_api/completions.h"

#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "server/chat/conversation.h"
#include "server/chat/forced_calls.h"
#include "server/rest/json_document.h"
#include "server/text_api/completion_call.h"

namespace reprise {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

// Members that are read here, or that mean something else than the parameter of their name.
const std::set<absl::string_view>& OwnMembers() {
  static const auto& names =
      *new std::set<absl::string_view>{"stream", "logprobs", "max_tokens",
                                       "triton_enable_empty_final_response", "decoder_input_ids"};
  return names;
}

// Refuses members that change an answer and are not supported.
absl::Status RefuseMembers(const Fields& fields, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (fields.Has(name)) {
      return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" is not supported"));
    }
  }
  return absl::OkStatus();
}

// Reads one text, which is a schema, or a schema itself.
absl::StatusOr<GrammarText> SchemaOf(const element& schema) {
  std::string_view text;
  if (schema.get(text) == simdjson::SUCCESS) return GrammarText{.text = std::string(text)};
  return GrammarText{.text = std::string(simdjson::minify(schema))};
}

absl::Status SetGrammar(const char* name, GrammarText grammar, SamplingParameters& to) {
  if (to.texts.grammar.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\" is a second grammar, and an answer has one"));
  }
  to.texts.grammar = std::move(grammar);
  return absl::OkStatus();
}

GrammarText AnyObject() { return {.text = R"({"type":"object"})"}; }

absl::Status ReadResponseFormat(const Fields& fields, SamplingParameters& to) {
  const auto member = fields.Find("response_format");
  if (!member) return absl::OkStatus();
  std::string_view type;
  if ((*member)["type"].get(type) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError("\"response_format\" has no type");
  }
  if (type == "text") return absl::OkStatus();
  element schema;
  if (type == "json_object" || type == "json") {
    // Some clients name a schema here, those of text-generation-inference as a value.
    GrammarText any = AnyObject();
    for (const char* name : {"schema", "value"}) {
      if ((*member)[name].get(schema) != simdjson::SUCCESS || schema.is_null()) continue;
      ASSIGN_OR_RETURN(any, SchemaOf(schema));
    }
    return SetGrammar("response_format", std::move(any), to);
  }
  std::string_view pattern;
  if (type == "regex" && (*member)["value"].get(pattern) == simdjson::SUCCESS) {
    return SetGrammar("response_format",
                      {.kind = GrammarKind::kRegex, .text = std::string(pattern)}, to);
  }
  if (type != "json_schema") {
    return absl::InvalidArgumentError(
        absl::StrCat("\"response_format\" is of type \"", std::string(type),
                     "\", it must be text, json_object or json_schema"));
  }
  if ((*member)["json_schema"]["schema"].get(schema) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError("\"response_format\" has no json_schema.schema");
  }
  ASSIGN_OR_RETURN(GrammarText grammar, SchemaOf(schema));
  return SetGrammar("response_format", std::move(grammar), to);
}

// Grammars as newer servers name them: {"json": ..., "regex": ..., "choice": [...]}.
absl::Status ReadStructured(const Fields& fields, SamplingParameters& to) {
  const auto member = fields.Find("structured_outputs");
  if (!member) return absl::OkStatus();
  object members;
  if (member->get(members) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError("\"structured_outputs\" must be an object");
  }
  for (const auto& [key, value] : members) {
    const std::string name = absl::StrCat("guided_", std::string(key));
    bool flag = false;
    if (value.is_null() || (value.get(flag) == simdjson::SUCCESS && !flag)) continue;
    if (SamplingParameters::Knows(name)) {
      RETURN_IF_ERROR(to.SetOne(name, value));
    } else if (key == "json_object" && flag) {
      RETURN_IF_ERROR(SetGrammar("structured_outputs", AnyObject(), to));
    } else if (key == "structural_tag" || key == "whitespace_pattern") {
      return absl::InvalidArgumentError(
          absl::StrCat("\"structured_outputs\" has \"", std::string(key),
                       "\", which is not supported: json, json_object, regex, choice and grammar "
                       "are"));
    }
  }
  return absl::OkStatus();
}

// Reads the members that both kinds of requests have.
absl::Status ReadCommon(const Fields& fields, const object& body, AskedCompletion& asked) {
  SamplingParameters& to = asked.parameters;
  for (const auto& [key, value] : body) {
    const std::string name(key);
    if (OwnMembers().contains(name) || !SamplingParameters::Knows(name)) continue;
    RETURN_IF_ERROR(to.SetOne(name, value));
  }
  ASSIGN_OR_RETURN(asked.stream, fields.Bool("stream", false));
  if (const auto options = fields.Find("stream_options")) {
    ASSIGN_OR_RETURN(const Fields of, Fields::Of(*options));
    ASSIGN_OR_RETURN(asked.include_usage, of.Bool("include_usage", false));
  }
  const char* const limit =
      fields.Has("max_completion_tokens") ? "max_completion_tokens" : "max_tokens";
  ASSIGN_OR_RETURN(to.sampling.max_tokens, fields.Int(limit, to.sampling.max_tokens));
  if (to.sampling.max_tokens < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", limit, "\" is ", to.sampling.max_tokens, ", it must be at least 1"));
  }
  if (to.beams.beams > 1 && asked.stream) {
    return absl::InvalidArgumentError("\"stream\" does not go with \"num_beams\"");
  }
  RETURN_IF_ERROR(ReadResponseFormat(fields, to));
  return ReadStructured(fields, to);
}

absl::Status ReadPrompts(const Fields& fields, AskedCompletion& asked) {
  constexpr size_t kMostPrompts = 1024;
  ASSIGN_OR_RETURN(const std::vector<TextItem> items, fields.WantItems("prompt"));
  if (items.empty() || items.size() > kMostPrompts) {
    return absl::InvalidArgumentError(absl::StrCat("\"prompt\" has ", items.size(),
                                                   " prompts, it must have 1 to ", kMostPrompts));
  }
  for (const TextItem& item : items) {
    AskedCompletion::Prompt& prompt = asked.prompts.emplace_back();
    if (!item.ids.empty()) {
      prompt.ids.assign(item.ids.begin(), item.ids.end());
      continue;
    }
    const std::string text = item.text == nullptr ? "" : *item.text;
    if (asked.echo) prompt.echo = text;
    prompt.text = PromptOf(text, asked.parameters.texts.add_special);
  }
  return absl::OkStatus();
}

absl::StatusOr<AskedCompletion> ReadCompletions(const Fields& fields, const object& body,
                                                const TextApiContext& context,
                                                const std::string& model) {
  AskedCompletion asked;
  ASSIGN_OR_RETURN(asked.model, ChooseGenerator(context, model));
  RETURN_IF_ERROR(ReadCommon(fields, body, asked));
  ASSIGN_OR_RETURN(const std::string suffix, fields.Text("suffix", ""));
  if (!suffix.empty()) return absl::InvalidArgumentError("\"suffix\" is not supported");
  SamplingOptions& sampling = asked.parameters.sampling;
  ASSIGN_OR_RETURN(const int64_t best, fields.Int("best_of", sampling.n));
  if (best != sampling.n) {
    return absl::InvalidArgumentError(absl::StrCat("\"best_of\" is ", best, " and \"n\" is ",
                                                   sampling.n,
                                                   ": answers are not chosen among others"));
  }
  ASSIGN_OR_RETURN(asked.echo, fields.Bool("echo", false));
  ASSIGN_OR_RETURN(sampling.logprobs, fields.Int("logprobs", -1));
  asked.scores_prompt = asked.echo && sampling.logprobs >= 0;
  if (asked.scores_prompt && asked.parameters.beams.beams > 1) {
    return absl::InvalidArgumentError("\"echo\" with \"logprobs\" does not go with \"num_beams\"");
  }
  RETURN_IF_ERROR(ReadPrompts(fields, asked));
  if (!asked.echo) return asked;
  for (AskedCompletion::Prompt& prompt : asked.prompts) {
    if (prompt.ids.empty()) continue;
    ASSIGN_OR_RETURN(const auto text, FindTextModel(context, asked.model));
    const std::vector<uint32_t> ids(prompt.ids.begin(), prompt.ids.end());
    ASSIGN_OR_RETURN(prompt.echo,
                     text->tokenizer().Decode(ids, asked.parameters.texts.skip_special));
  }
  return asked;
}

// The client's options for its tools.
struct ToolWishes {
  bool told = false;    // the template gets them
  bool forced = false;  // the answer is calls
  std::string only;     // the one tool that is called
};

// Refuses tools of kinds that no template writes.
absl::Status CheckTools(const array& tools) {
  size_t place = 0;
  for (const element tool : tools) {
    std::string_view type;
    if (tool["type"].get(type) == simdjson::SUCCESS && type != "function") {
      return absl::InvalidArgumentError(absl::StrCat("\"tools\"[", place, "] is of type \"",
                                                     std::string(type),
                                                     "\", and tools are functions"));
    }
    ++place;
  }
  return absl::OkStatus();
}

absl::StatusOr<ToolWishes> ReadToolChoice(const Fields& fields) {
  ToolWishes wishes;
  array tools;
  if (const auto member = fields.Find("tools")) {
    if (member->get(tools) != simdjson::SUCCESS) {
      return absl::InvalidArgumentError("\"tools\" must be a list");
    }
    wishes.told = tools.size() > 0;
    RETURN_IF_ERROR(CheckTools(tools));
  }
  const auto choice = fields.Find("tool_choice");
  if (!choice) return wishes;
  std::string_view word;
  if (choice->get(word) == simdjson::SUCCESS) {
    if (word == "none") wishes.told = false;
    wishes.forced = word == "required";
    if (word == "auto" || word == "none" || word == "required") return wishes;
    return absl::InvalidArgumentError(
        absl::StrCat("\"tool_choice\" is \"", std::string(word),
                     "\", it must be auto, none, required or a function"));
  }
  if ((*choice)["type"].get(word) == simdjson::SUCCESS && word != "function") {
    return absl::InvalidArgumentError(
        absl::StrCat("\"tool_choice\" is of type \"", std::string(word),
                     "\", it must be auto, none, required or a function"));
  }
  if ((*choice)["function"]["name"].get(word) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError("\"tool_choice\" names no function");
  }
  wishes.forced = true;
  wishes.only = std::string(word);
  return wishes;
}

absl::Status ReadTools(const Fields& fields, const ToolWishes& wishes, AskedCompletion& asked,
                       const TextModel& model) {
  if (!wishes.told && !wishes.forced) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool parallel, fields.Bool("parallel_tool_calls", true));
  asked.one_call = !parallel;
  const ToolForm& form = ToolFormOf(model.package());
  asked.short_call_ids = form.short_ids;
  if (!wishes.forced) {
    // An answer with a grammar of its own is no call.
    if (asked.parameters.texts.grammar.has_value()) return absl::OkStatus();
    asked.tools = &form;
    if (const auto tools = fields.Find("tools"); tools && form.tagged) {
      asked.argument_types = ArgumentTypes(std::string(simdjson::minify(*tools)));
    }
    // The texts of a form may be special tokens.
    asked.parameters.texts.skip_special = false;
    return absl::OkStatus();
  }
  const auto member = fields.Find("tools");
  array tools;
  if (!member || member->get(tools) != simdjson::SUCCESS) {
    return absl::InvalidArgumentError(
        "\"tool_choice\" asks for a call, and there are no \"tools\"");
  }
  ASSIGN_OR_RETURN(GrammarText grammar,
                   ForcedCalls(tools, wishes.only, parallel && wishes.only.empty()));
  asked.tools = &ForcedToolForm();
  return SetGrammar("tool_choice", std::move(grammar), asked.parameters);
}

absl::StatusOr<AskedCompletion> ReadChat(const Fields& fields, const object& body,
                                         const TextApiContext& context, const std::string& model) {
  AskedCompletion asked{.is_chat = true};
  ASSIGN_OR_RETURN(asked.model, ChooseGenerator(context, model));
  RETURN_IF_ERROR(RefuseMembers(fields, {"chat_template", "functions", "function_call", "audio"}));
  // Without a limit an answer ends with its context.
  asked.parameters.sampling.max_tokens = std::numeric_limits<int32_t>::max();
  asked.parameters.texts.add_special = false;
  RETURN_IF_ERROR(ReadCommon(fields, body, asked));
  ASSIGN_OR_RETURN(const bool logprobs, fields.Bool("logprobs", false));
  ASSIGN_OR_RETURN(const int64_t top, fields.Int("top_logprobs", 0));
  if (top != 0 && !logprobs) {
    return absl::InvalidArgumentError("\"top_logprobs\" is given, and \"logprobs\" is not true");
  }
  if (logprobs) asked.parameters.sampling.logprobs = top;
  ASSIGN_OR_RETURN(const ToolWishes wishes, ReadToolChoice(fields));
  ASSIGN_OR_RETURN(Conversation conversation, ReadConversation(body, wishes.told));
  ASSIGN_OR_RETURN(const auto text, FindTextModel(context, asked.model));
  RETURN_IF_ERROR(ReadTools(fields, wishes, asked, *text));
  RETURN_IF_ERROR(text->Chat(conversation.has_tools).status());
  const bool add_special = asked.parameters.texts.add_special;
  asked.prompts.push_back(
      {.text = [conversation = std::move(conversation), add_special](
                   const TextModel& of,
                   const std::function<absl::Status()>& go_on) -> absl::StatusOr<TextPrompt> {
        ASSIGN_OR_RETURN(std::string prompt, RenderConversation(conversation, of, go_on));
        return TextPrompt{.text = std::move(prompt), .add_special = add_special};
      }});
  return asked;
}

using CompletionReader = absl::StatusOr<AskedCompletion> (*)(const Fields& fields,
                                                             const object& body,
                                                             const TextApiContext& context,
                                                             const std::string& model);

void ServeAsked(const TextApiContext& context, std::shared_ptr<HttpExchange> exchange,
                const std::string& model, CompletionReader read) {
  AskedCompletion asked;
  const absl::Status status =
      WithinMemory([] { return "the request"; },
                   [&]() -> absl::Status {
                     JsonDocument document(*context.parsing);
                     ASSIGN_OR_RETURN(const element json, document.Parse(exchange->request().body));
                     ASSIGN_OR_RETURN(const Fields fields, Fields::Of(json));
                     object body;
                     if (json.get(body) != simdjson::SUCCESS) {
                       return absl::InvalidArgumentError("the request body must be a JSON object");
                     }
                     std::string named = model;
                     if (named.empty()) {
                       ASSIGN_OR_RETURN(named, fields.Text("model", ""));
                     }
                     ASSIGN_OR_RETURN(asked, read(fields, body, context, named));
                     return absl::OkStatus();
                   });
  if (!status.ok()) {
    return exchange->Answer([status] { return TextErrorReply(ErrorForm::kOpenAi, status); });
  }
  CompletionCall::Start(context, std::move(asked), std::move(exchange));
}

}  // namespace

void ServeCompletions(const TextApiContext& context, std::shared_ptr<HttpExchange> exchange,
                      const std::string& model) {
  ServeAsked(context, std::move(exchange), model, ReadCompletions);
}

void ServeChat(const TextApiContext& context, std::shared_ptr<HttpExchange> exchange,
               const std::string& model) {
  ServeAsked(context, std::move(exchange), model, ReadChat);
}

}  // namespace reprise
