// reprise chat: a conversation with a model, in this process or with a server.
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/http_json.h"
#include "runtime/base/cpu/cpu_info.h"
#include "runtime/base/status_macros.h"
#include "server/chat/answer_text.h"
#include "server/chat/conversation.h"
#include "server/chat/grammar_constraint.h"
#include "server/chat/tool_calls.h"
#include "tools/command.h"
#include "tools/local_decoder.h"

namespace reprise::cli {
namespace {

using ChatJson = nlohmann::ordered_json;

struct ChatFlags {
  std::string model;
  ServerFlags server;
  bool has_server = false;
  std::string system, schema_file, tools_file;
  SamplingOptions sampling;
  int64_t context = 0, memory_mb = 1024;
  int threads = AvailableCpus();
  bool json = false;
};

std::atomic<bool> interrupted{false};

void OnInterrupt(int) { interrupted = true; }

// An answer, as far as it came.
struct ChatAnswer {
  bool is_shown = true;  // as it comes
  std::string content;
  struct Call {
    std::string id, name, arguments;
  };
  std::vector<Call> calls;
  int64_t tokens = 0;
  int64_t first_ns = 0, total_ns = 0;
};

int64_t NowNs() { return SteadyClock().NowNs(); }

void Show(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void ShowPart(const ChatAnswer& answer, const std::string& text) {
  if (answer.is_shown) Show(text);
}

// Returns nine letters and digits, which every template takes.
std::string LocalCallId(size_t index) {
  return absl::StrCat("call", absl::Dec(index % 100000, absl::kZeroPad5));
}

// Adds a part of a call, and shows it.
void AddCall(size_t index, const std::string& id, const std::string& name,
             const std::string& arguments, ChatAnswer& answer) {
  if (answer.calls.size() <= index) {
    answer.calls.resize(index + 1);
    answer.calls[index] = {.id = id.empty() ? LocalCallId(index) : id, .name = name};
    ShowPart(answer, absl::StrCat(index > 0 || !answer.content.empty() ? "\n" : "", name, " "));
  }
  answer.calls[index].arguments += arguments;
  ShowPart(answer, arguments);
}

// The source of answers: a model in this process, or a server.
class ChatPartner {
 public:
  virtual ~ChatPartner() = default;
  // Shows the answer to `body` as it comes.
  virtual absl::StatusOr<ChatAnswer> Ask(const ChatJson& body) = 0;
};

class LocalPartner : public ChatPartner {
 public:
  explicit LocalPartner(const ChatFlags& flags) : flags_(flags), local_(kEveryIsa, flags.threads) {}
  ~LocalPartner() override {
    generator_.reset();
    threads_.Stop();
  }

  absl::Status Load(const std::string& schema) {
    GeneratorOptions wanted = {.page_bytes = flags_.memory_mb << 20,
                               .context = flags_.context,
                               .max_threads = flags_.threads};
    ASSIGN_OR_RETURN(const std::shared_ptr<const Model> model,
                     LoadLocalDecoder(local_, flags_.model, wanted));
    ASSIGN_OR_RETURN(texts_, LoadLocalTexts(flags_.model, *model));
    RETURN_IF_ERROR(texts_->Chat(false).status());
    const std::vector<int64_t> eos = wanted.eos_ids;
    ASSIGN_OR_RETURN(generator_, Generator::Create(local_.engine, model, std::move(wanted)));
    if (schema.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(threads_.Start(1));
    ASSIGN_OR_RETURN(const Grammars* grammars, texts_->GrammarsOf(eos, generator_->vocabulary()));
    ASSIGN_OR_RETURN(grammar_, grammars->Compile({.text = schema}, nullptr));
    return absl::OkStatus();
  }

  absl::StatusOr<ChatAnswer> Ask(const ChatJson& body) override {
    ASSIGN_OR_RETURN(const Conversation conversation,
                     ReadConversation(body.dump(), /*with_tools=*/true));
    ASSIGN_OR_RETURN(const std::string prompt, RenderConversation(conversation, *texts_, nullptr));
    ASSIGN_OR_RETURN(
        const TextTokens tokens,
        texts_->tokenizer().Encode(prompt, std::nullopt, {.add_special = false, .max_bytes = 0}));
    TextWishes wishes;
    std::optional<ToolCallReader> reader;
    const ArgumentTypes types(body.value("tools", ChatJson()).dump());
    if (conversation.has_tools && grammar_ == nullptr) {
      wishes.skip_special = false;
      reader.emplace(ToolFormOf(texts_->package()), types);
    }
    AnswerText text(texts_, wishes, 0);
    ChatAnswer answer = {.is_shown = !flags_.json};
    const int64_t start = NowNs();
    GenerationRequest request = {.sampling = flags_.sampling};
    request.ids.assign(tokens.ids.begin(), tokens.ids.end());
    if (grammar_ != nullptr) {
      request.constrain = [this] {
        return std::make_unique<GrammarConstraint>(grammar_, generator_->vocabulary(), threads_);
      };
    }
    request.ends = [&](int64_t, const SampledToken& token) { return text.Push(token.id); };
    absl::Status status;
    request.on_event = [&](const GenerationEvent& event) {
      if (answer.first_ns == 0) answer.first_ns = NowNs() - start;
      answer.tokens += static_cast<int64_t>(event.tokens.size());
      const bool ended = event.finish != Ending::kGoesOn;
      Add(text.Take(ended), ended, reader, answer);
      if (!absl::IsCancelled(event.status)) status = event.status;
    };
    ASSIGN_OR_RETURN(const std::shared_ptr<Generation> handle,
                     generator_->Submit(std::move(request)));
    while (generator_->Step()) {
      if (interrupted) handle->Cancel();
    }
    RETURN_IF_ERROR(status);
    answer.total_ns = NowNs() - start;
    return answer;
  }

 private:
  static void Add(const std::string& text, bool ended, std::optional<ToolCallReader>& reader,
                  ChatAnswer& answer) {
    ToolCallParts parts = {.content = text};
    if (reader.has_value()) {
      parts = reader->Push(text);
      if (ended) {
        ToolCallParts rest = reader->Finish();
        parts.content += rest.content;
        std::move(rest.calls.begin(), rest.calls.end(), std::back_inserter(parts.calls));
      }
    }
    answer.content += parts.content;
    ShowPart(answer, parts.content);
    for (const ToolCallPart& part : parts.calls) {
      AddCall(static_cast<size_t>(part.index), "", part.name, part.arguments, answer);
    }
  }

  const ChatFlags& flags_;
  LocalEngine local_;
  TextThreads threads_;
  std::shared_ptr<const TextModel> texts_;
  std::shared_ptr<const Grammar> grammar_;
  std::unique_ptr<Generator> generator_;
};

class ServerPartner : public ChatPartner {
 public:
  ServerPartner(const ChatFlags& flags, const std::string& schema)
      : flags_(flags), schema_(schema) {}

  absl::StatusOr<ChatAnswer> Ask(const ChatJson& body) override {
    nlohmann::json asked = body;
    asked["model"] = flags_.model;
    asked["stream"] = true;
    asked["stream_options"] = {{"include_usage", true}};
    const SamplingOptions& sampling = flags_.sampling;
    asked["temperature"] = sampling.temperature;
    asked["top_p"] = sampling.top_p;
    asked["top_k"] = sampling.top_k;
    if (sampling.seed.has_value()) asked["seed"] = *sampling.seed;
    if (sampling.max_tokens < kNoLimit) asked["max_completion_tokens"] = sampling.max_tokens;
    if (!schema_.empty()) {
      asked["response_format"] = {
          {"type", "json_schema"},
          {"json_schema", {{"name", "answer"}, {"schema", nlohmann::json::parse(schema_)}}}};
    }
    ChatAnswer answer = {.is_shown = !flags_.json};
    absl::Status failed;
    const int64_t start = NowNs();
    ASSIGN_OR_RETURN(const HttpTarget target, flags_.server.Http());
    RETURN_IF_ERROR(
        PostForEvents(target, "/v1/chat/completions", asked, [&](const std::string& data) {
          if (answer.first_ns == 0) answer.first_ns = NowNs() - start;
          failed = Take(data, answer);
          return failed.ok() && !interrupted && data != "[DONE]";
        }));
    RETURN_IF_ERROR(failed);
    answer.total_ns = NowNs() - start;
    return answer;
  }

  static constexpr int64_t kNoLimit = std::numeric_limits<int32_t>::max();

 private:
  static absl::Status Take(const std::string& data, ChatAnswer& answer) {
    const nlohmann::json event = nlohmann::json::parse(data, nullptr, false);
    if (!event.is_object()) return absl::OkStatus();  // [DONE]
    if (event.contains("error")) {
      return absl::InvalidArgumentError(event["error"].value("message", data));
    }
    if (event.contains("usage") && event["usage"].is_object()) {
      answer.tokens = event["usage"].value("completion_tokens", int64_t{0});
    }
    for (const auto& choice : event.value("choices", nlohmann::json::array())) {
      const nlohmann::json delta = choice.value("delta", nlohmann::json::object());
      if (delta.contains("content") && delta["content"].is_string()) {
        // Until the usage comes, which it does not where the answer is interrupted.
        if (!delta["content"].get_ref<const std::string&>().empty()) ++answer.tokens;
        answer.content += delta["content"].get<std::string>();
        ShowPart(answer, delta["content"].get<std::string>());
      }
      for (const auto& call : delta.value("tool_calls", nlohmann::json::array())) {
        const nlohmann::json function = call.value("function", nlohmann::json::object());
        AddCall(call.value("index", size_t{0}), call.value("id", ""), function.value("name", ""),
                function.value("arguments", ""), answer);
      }
    }
    return absl::OkStatus();
  }

  const ChatFlags& flags_;
  const std::string schema_;
};

// Returns a line of the input; nullopt at its end. Ctrl-C begins another line.
std::optional<std::string> ReadLine(const char* prompt) {
  const bool asks = isatty(STDIN_FILENO) != 0;
  std::string line;
  if (asks) Show(prompt);
  while (true) {
    const int c = std::getc(stdin);
    if (c == '\n') return line;
    if (c != EOF) {
      line += static_cast<char>(c);
      continue;
    }
    if (!interrupted.exchange(false)) {
      return line.empty() ? std::nullopt : std::optional<std::string>(line);
    }
    std::clearerr(stdin);
    line.clear();
    Show(absl::StrCat("\n", asks ? prompt : ""));
  }
}

// Reads a message: a line, lines that end with a backslash, or lines between """.
std::optional<std::string> ReadMessage() {
  constexpr char kQuotes[] = "\"\"\"";
  std::optional<std::string> line = ReadLine(">>> ");
  if (!line.has_value()) return line;
  if (absl::StartsWith(*line, kQuotes)) {
    std::string text = line->substr(3);
    while (!absl::EndsWith(text, kQuotes)) {
      line = ReadLine("... ");
      if (!line.has_value()) return text;
      absl::StrAppend(&text, text.empty() ? "" : "\n", *line);
    }
    return text.substr(0, text.size() - 3);
  }
  while (absl::EndsWith(*line, "\\")) {
    const std::optional<std::string> more = ReadLine("... ");
    line->back() = '\n';
    if (!more.has_value()) break;
    *line += *more;
  }
  return line;
}

absl::StatusOr<std::string> FileText(const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read '", path, "'"));
  if (!nlohmann::json::accept(text.str())) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not JSON"));
  }
  return text.str();
}

void PrintSpeed(const ChatAnswer& answer) {
  const int64_t next_ns = answer.total_ns - answer.first_ns;
  const double rate = next_ns > 0 && answer.tokens > 1 ? static_cast<double>(answer.tokens - 1) *
                                                             1e9 / static_cast<double>(next_ns)
                                                       : 0;
  std::fprintf(stderr, "[%lld tokens, %.1f a second, the first after %.0f ms]\n",
               static_cast<long long>(answer.tokens), rate,
               static_cast<double>(answer.first_ns) * 1e-6);
}

// The conversation so far.
class Chat {
 public:
  Chat(const ChatFlags& flags, ChatJson tools)
      : system_(flags.system), tools_(std::move(tools)), json_(flags.json) {
    Clear();
  }

  void Clear() {
    messages_ = ChatJson::array();
    if (!system_.empty()) messages_.push_back({{"role", "system"}, {"content", system_}});
  }
  // Returns whether the message was a command. `leave`: it ends the chat.
  bool TakeCommand(const std::string& text, bool& leave) {
    if (text == "/bye" || text == "/exit" || text == "/quit") {
      leave = true;
    } else if (text == "/clear") {
      Clear();
    } else if (absl::StartsWith(text, "/system ")) {
      system_ = text.substr(8);
      Clear();
    } else if (text == "/help") {
      Show(
          "/clear begins again, /system TEXT too and with that, /bye leaves. A line that ends with "
          "\\\n"
          "goes on, and so do lines between \"\"\". Ctrl-C ends an answer.\n");
    } else {
      return false;
    }
    return true;
  }

  absl::Status Say(const std::string& text, ChatPartner& partner) {
    messages_.push_back({{"role", "user"}, {"content", text}});
    while (true) {
      interrupted = false;
      ChatJson body = {{"messages", messages_}};
      if (!tools_.empty()) body["tools"] = tools_;
      const absl::StatusOr<ChatAnswer> answer = partner.Ask(body);
      if (!answer.ok()) {
        messages_.erase(messages_.end() - 1);
        return answer.status();
      }
      if (!json_) Show("\n");
      PrintSpeed(*answer);
      ChatJson message = {{"role", "assistant"}, {"content", answer->content}};
      for (const ChatAnswer::Call& call : answer->calls) {
        message["tool_calls"].push_back(
            {{"id", call.id},
             {"type", "function"},
             {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
      }
      if (json_) RETURN_IF_ERROR(PrintJsonLine(message));
      messages_.push_back(std::move(message));
      if (answer->calls.empty() || interrupted.exchange(false)) return absl::OkStatus();
      for (const ChatAnswer::Call& call : answer->calls) {
        const std::optional<std::string> result = ReadLine(absl::StrCat(call.name, " = ").c_str());
        if (!result.has_value()) return absl::OkStatus();
        messages_.push_back({{"role", "tool"},
                             {"tool_call_id", call.id},
                             {"name", call.name},
                             {"content", *result}});
      }
    }
  }

 private:
  std::string system_;
  const ChatJson tools_;
  const bool json_;  // each answer is printed as a message
  ChatJson messages_;
};

absl::Status RunChat(const ChatFlags& flags) {
  ASSIGN_OR_RETURN(const std::string schema, FileText(flags.schema_file));
  ASSIGN_OR_RETURN(const std::string tools, FileText(flags.tools_file));
  std::unique_ptr<ChatPartner> partner;
  if (flags.has_server) {
    partner = std::make_unique<ServerPartner>(flags, schema);
  } else {
    auto local = std::make_unique<LocalPartner>(flags);
    RETURN_IF_ERROR(local->Load(schema));
    partner = std::move(local);
  }
  struct sigaction action = {};
  action.sa_handler = OnInterrupt;  // SA_RESTART is not set: a read ends
  sigaction(SIGINT, &action, nullptr);
  Chat chat(flags, tools.empty() ? ChatJson::array() : ChatJson::parse(tools));
  absl::Status last;
  while (const std::optional<std::string> text = ReadMessage()) {
    bool leave = false;
    if (chat.TakeCommand(*text, leave)) {
      if (leave) break;
      continue;
    }
    if (text->empty()) continue;
    last = chat.Say(*text, *partner);
    if (!last.ok()) std::fprintf(stderr, "%s\n", std::string(last.message()).c_str());
  }
  // People have seen an error; a program that wrote the questions has not.
  return isatty(STDIN_FILENO) != 0 ? absl::OkStatus() : last;
}

}  // namespace

void AddChat(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<ChatFlags>();
  flags->sampling.max_tokens = ServerPartner::kNoLimit;
  flags->sampling.temperature = 0.7f;
  CLI::App* command =
      app.add_subcommand("chat", "Talk to a model, in this process or with a server");
  command->footer("Each line of the input is a message; /help lists the commands.");
  AddOption(*command, "model", flags->model, "MODEL",
            "File or folder of a model; with --server the name of one of its models")
      ->required();
  flags->server.Add(*command);
  const CLI::Option* server = command->get_option("--server");
  AddOption(*command, "--system", flags->system, "TEXT", "System prompt");
  AddOption(*command, "--json-schema", flags->schema_file, "FILE",
            "Answers are JSON of this schema");
  AddOption(*command, "--tools", flags->tools_file, "FILE",
            "Tools that the model may call, a JSON list as OpenAI has it; you give the "
            "results");
  SamplingOptions& sampling = flags->sampling;
  command->add_option("--max-tokens", sampling.max_tokens,
                      "Most new tokens of an answer; the context's end if not given");
  command->add_option("--temperature", sampling.temperature, "0 takes the best token")
      ->capture_default_str();
  command->add_option("--top-k", sampling.top_k, "Sample from this many best tokens; 0: from all")
      ->capture_default_str();
  command->add_option("--top-p", sampling.top_p, "Sample from the best tokens that add up to this")
      ->capture_default_str();
  command->add_option("--seed", sampling.seed, "Makes draws repeatable");
  command->add_option("--context", flags->context, "Positions of a conversation; 0: the model's")
      ->capture_default_str();
  command->add_option("--cache-mb", flags->memory_mb, "Memory for the KV cache, in MiB")
      ->capture_default_str();
  command->add_option("--threads", flags->threads, "Threads of a step")->capture_default_str();
  AddJson(*command, flags->json);
  command->callback([flags, server, &action] {
    flags->has_server = server->count() > 0;
    action = [flags] { return RunChat(*flags); };
  });
}

}  // namespace reprise::cli
