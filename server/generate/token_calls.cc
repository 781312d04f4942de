#include "server/generate/token_calls.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/hash64.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/generate/context_overflow.h"
#include "server/chat/answer_text.h"
#include "server/chat/grammar_constraint.h"
#include "server/generate/token_spans.h"
#include "server/requests/admit.h"
#include "server/requests/regions.h"

namespace reprise {
namespace {

const InputView* FindInput(const InferRequest& request, absl::string_view name) {
  const auto found =
      absl::c_find_if(request.inputs, [&](const InputView& one) { return one.name == name; });
  return found == request.inputs.end() ? nullptr : &*found;
}

template <class T>
std::vector<int64_t> Numbers(absl::string_view bytes) {
  std::vector<int64_t> ids(bytes.size() / sizeof(T));
  for (size_t i = 0; i < ids.size(); ++i) {
    T id;
    std::memcpy(&id, bytes.data() + i * sizeof(T), sizeof(T));
    ids[i] = id;
  }
  return ids;
}

// Ids are few: they come and go in messages.
absl::Status CheckNoRegions(const InferRequest& request) {
  if (!UsesRegions(request)) return absl::OkStatus();
  return absl::UnimplementedError(
      "parameter shared_memory_region is not supported by requests for tokens");
}

// Takes the prompt of an encoder that takes no ids.
absl::Status TakeNumbers(const InputView& input, TokenRequest& request) {
  if (input.datatype != "FP32") {
    return absl::InvalidArgumentError(absl::StrCat("input \"", input.name, "\" has datatype ",
                                                   input.datatype, ", the encoder takes FP32"));
  }
  request.numbers_shape.assign(input.shape.begin(), input.shape.end());
  request.numbers = std::string(input.bytes);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> IdsOf(const InputView& input) {
  const bool row = input.shape.size() == 1 || (input.shape.size() == 2 && input.shape[0] == 1);
  if (!row) {
    return absl::InvalidArgumentError(absl::StrCat("input \"", input.name, "\" has shape ",
                                                   ShapeToString(input.shape),
                                                   ", tokens are made for [1, tokens]"));
  }
  const bool wide = input.datatype == "INT64";
  if (!wide && input.datatype != "INT32") {
    return absl::InvalidArgumentError(absl::StrCat("input \"", input.name, "\" has datatype ",
                                                   input.datatype, ", ids are INT64 or INT32"));
  }
  const int64_t elements = input.shape.back();
  const int64_t bytes = wide ? 8 : 4;
  if (elements < 0 || elements != static_cast<int64_t>(input.bytes.size()) / bytes ||
      input.bytes.size() % static_cast<size_t>(bytes) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("input \"", input.name, "\" of shape ",
                                                   ShapeToString(input.shape), " does not take ",
                                                   input.bytes.size(), " bytes"));
  }
  return wide ? Numbers<int64_t>(input.bytes) : Numbers<int32_t>(input.bytes);
}

// Returns the one element of a BYTES tensor.
absl::StatusOr<absl::string_view> TextOf(const InputView& input) {
  uint32_t size = 0;
  if (input.datatype != "BYTES" || input.bytes.size() < sizeof(size)) {
    return absl::InvalidArgumentError(
        absl::StrCat("input \"", input.name, "\" is not one element of BYTES"));
  }
  std::memcpy(&size, input.bytes.data(), sizeof(size));
  if (input.bytes.size() != sizeof(size) + size) {
    return absl::InvalidArgumentError(
        absl::StrCat("input \"", input.name, "\" is not one element of BYTES"));
  }
  return input.bytes.substr(sizeof(size));
}

RequestRecord RecordOf(const TokenCallInfo& info, const KeyUse* key, absl::string_view trace_id,
                       const absl::Status& status, int64_t total_ns) {
  return {.code = status.code(),
          .rows = 1,
          .total_ns = total_ns,
          .id = info.id,
          .model = info.model,
          .version = info.version,
          .key = key == nullptr ? "" : absl::string_view(key->name()),
          .trace_id = trace_id,
          .bytes_in = info.prompt_tokens * static_cast<int64_t>(sizeof(int64_t)),
          .why = {status.message().data(), status.message().size()}};
}

// Checks that the prompt is of the kind that the model takes, and parameters that an encoder alone
// gives a meaning are given to a model with one.
absl::Status CheckPrompt(const Generator& generator, const TokenRequest& request) {
  if (!generator.has_encoder() && !request.parameters.decoder_ids.empty()) {
    return absl::InvalidArgumentError(
        "parameter 'decoder_input_ids' is of models whose prompts go to an encoder, and this one "
        "has none");
  }
  if (!request.ids.empty() && !request.numbers_shape.empty()) {
    return absl::InvalidArgumentError("the request has two prompts, ids and numbers");
  }
  if (generator.takes_ids() == request.numbers_shape.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the prompt of this model is its input '", generator.prompt_input(), "', ",
                   generator.takes_ids() ? "ids" : "float32 numbers"));
}

// Returns when the answer must be whole: the transport's deadline or its own timeout, whichever
// comes first; 0: there is none. A timeout beyond the range of the clock is none.
int64_t DeadlineOf(const TokenRequest& request, int64_t start_ns) {
  int64_t end_ns = 0;
  const int64_t timeout_us = request.parameters.timeout_us.value_or(0);
  if (timeout_us == 0 || __builtin_mul_overflow(timeout_us, int64_t{1000}, &end_ns) ||
      __builtin_add_overflow(end_ns, start_ns, &end_ns)) {
    end_ns = kNoDeadline;
  }
  end_ns = std::min(end_ns, request.deadline_ns);
  return end_ns == kNoDeadline ? 0 : std::max<int64_t>(1, end_ns);
}

// Returns the prompt as ids of the model.
absl::StatusOr<std::vector<int64_t>> EncodePrompt(const TextModel& model, const TextPrompt& prompt,
                                                  const Generator& generator, TextThreads& threads,
                                                  const std::function<absl::Status()>& go_on) {
  ASSIGN_OR_RETURN(const TextMemory::Share share,
                   threads.memory().Wait(Tokenizer::BytesFor(std::ssize(prompt.text)), go_on));
  const int64_t context = generator.context();
  // The text past the context is not read.
  const bool is_bounded = !generator.has_encoder();
  ASSIGN_OR_RETURN(const TextTokens tokens,
                   model.tokenizer().Encode(prompt.text, std::nullopt,
                                            {.add_special = prompt.add_special,
                                             .truncation = Truncation::kRight,
                                             .max_bytes = model.limits().max_bytes,
                                             .max_tokens = is_bounded ? context : 0,
                                             .go_on = go_on}));
  if (is_bounded && tokens.full_count > context) {
    // Proxies know these words.
    return ContextOverflow(absl::StrCat("the prompt has more than ", context,
                                        " tokens: it is longer than the model's context length, "
                                        "which leaves room for ",
                                        context - 1));
  }
  if (tokens.ids.empty()) return absl::InvalidArgumentError("the prompt has no tokens");
  return std::vector<int64_t>(tokens.ids.begin(), tokens.ids.end());
}

}  // namespace

PromptMaker PromptOf(std::string text, bool add_special) {
  return [prompt = TextPrompt{.text = std::move(text), .add_special = add_special}](
             const TextModel&, const std::function<absl::Status()>&) -> absl::StatusOr<TextPrompt> {
    return prompt;
  };
}

void TokenCall::Cancel() {
  cancelled_ = true;
  const std::shared_ptr<Generation> begun = handle();
  if (begun == nullptr) return;
  begun->Cancel();
  model_.servable->generation->Wake();
}

void TokenCall::Took(int64_t events) {
  std::shared_ptr<Generation> begun;
  {
    MutexLock lock(mutex_);
    begun = handle_;
    if (begun == nullptr) took_ += events;
  }
  if (begun == nullptr) return;
  begun->Took(events);
  model_.servable->generation->Wake();
}

void TokenCall::Begin(std::shared_ptr<Generation> handle) {
  int64_t took = 0;
  {
    MutexLock lock(mutex_);
    handle_ = std::move(handle);
    took = std::exchange(took_, 0);
  }
  if (took > 0) Took(took);
  if (cancelled_) Cancel();
}

bool TokenCalls::Takes(const InferRequest& request) const {
  constexpr size_t kMostInputs = 2;  // ids and parameters
  if (request.inputs.empty() || request.inputs.size() > kMostInputs) return false;
  const auto found = repository_.Find(request.model, request.version);
  if (!found.ok() || found->servable->generation == nullptr) return false;
  const std::string& ids = found->servable->generation->generator().prompt_input();
  const bool is_text = FindInput(request, kPromptInput) != nullptr;
  const absl::string_view prompt = is_text ? absl::string_view(kPromptInput) : ids;
  return FindInput(request, prompt) != nullptr &&
         absl::c_all_of(request.inputs, [&](const InputView& one) {
           return one.name == prompt || one.name == kSamplingInput;
         });
}

absl::StatusOr<std::shared_ptr<TokenCall>> TokenCalls::Start(const InferRequest& request,
                                                             SamplingParameters parameters,
                                                             bool counts_unread,
                                                             OnTokens on_tokens) const {
  RETURN_IF_ERROR(CheckNoRegions(request));
  ASSIGN_OR_RETURN(const Repository::Found found, repository_.Find(request.model, request.version));
  if (const InputView* sampling = FindInput(request, kSamplingInput); sampling != nullptr) {
    ASSIGN_OR_RETURN(const absl::string_view json, TextOf(*sampling));
    RETURN_IF_ERROR(parameters.SetAll(json));
  }
  for (const absl::string_view output : request.outputs) {
    constexpr absl::string_view kOutputs[] = {kTextOutput, kTokensOutput, kLogprobsOutput,
                                              kTopIdsOutput, kTopLogprobsOutput};
    if (absl::c_linear_search(kOutputs, output)) continue;
    return absl::InvalidArgumentError(absl::StrCat("a request for tokens has no output \"", output,
                                                   "\"; it has ", absl::StrJoin(kOutputs, ", ")));
  }
  const Generator& generator = found.servable->generation->generator();
  TokenRequest wanted = {.model = request.model,
                         .version = request.version,
                         .id = request.id,
                         .key = request.key,
                         .trace = request.trace};
  if (const InputView* text = FindInput(request, kPromptInput); text != nullptr) {
    ASSIGN_OR_RETURN(const absl::string_view prompt, TextOf(*text));
    wanted.prompt = PromptOf(std::string(prompt), parameters.texts.add_special);
  } else if (generator.takes_ids()) {
    ASSIGN_OR_RETURN(wanted.ids, IdsOf(*FindInput(request, generator.prompt_input())));
  } else {
    RETURN_IF_ERROR(TakeNumbers(*FindInput(request, generator.prompt_input()), wanted));
  }
  wanted.deadline_ns = request.deadline_ns;
  wanted.parameters = std::move(parameters);
  return Start(std::move(wanted), counts_unread, std::move(on_tokens));
}

// A request from its arrival until it is a sequence.
struct TokenCalls::Beginning {
  Repository::Found model;
  TokenCallInfo info;
  TokenRequest request;  // its views are of the two texts below
  std::string name, version;
  std::string id;
  KeyUse::Ticket ticket;
  OnTokens on_tokens;
  bool counts_unread = false;
  int64_t start_ns = 0, deadline_ns = 0;
  std::shared_ptr<const Grammar> grammar;
  std::shared_ptr<TokenCall> call;

  const Generator& generator() const { return model.servable->generation->generator(); }
  bool is_prepared() const {
    return request.prompt == nullptr && !request.parameters.texts.grammar.has_value();
  }
};

namespace {

// The texts of the answers of a request; they are told on the thread that steps.
struct AnswerTexts {
  AnswerText& Of(int64_t answer) {
    const auto found = answers.find(answer);
    if (found != answers.end()) return found->second;
    return answers.try_emplace(answer, model, wishes, min_tokens).first->second;
  }
  // Returns the part that `event` tells. Beams are told whole: their tokens were not seen before.
  TokenText TextOf(const GenerationEvent& event, bool whole) {
    AnswerText& answer = Of(event.answer);
    if (whole) {
      const size_t stop = event.finish == Ending::kStop ? 1 : 0;
      for (size_t i = 0; i + stop < event.tokens.size(); ++i) answer.Push(event.tokens[i].id);
    }
    return {.text = answer.Take(event.finish != Ending::kGoesOn), .stop = answer.stop()};
  }

  std::shared_ptr<const TextModel> model;
  TextWishes wishes;
  int64_t min_tokens = 0;
  std::map<int64_t, AnswerText> answers;
};

}  // namespace

absl::StatusOr<std::shared_ptr<TokenCall>> TokenCalls::Start(TokenRequest request,
                                                             bool counts_unread,
                                                             OnTokens on_tokens) const {
  if (state_.state() == ServerState::State::kDraining) {
    return absl::UnavailableError("the server is stopping");
  }
  auto beginning = std::make_shared<Beginning>();
  beginning->start_ns = clock_.NowNs();
  if (!request.is_counted) {
    ASSIGN_OR_RETURN(beginning->ticket, KeyUse::BeginFor(request.key, beginning->start_ns));
  }
  ASSIGN_OR_RETURN(beginning->model, repository_.Find(request.model, request.version));
  const Repository::Found& found = beginning->model;
  if (found.servable->generation == nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        "model \"", request.model, "\" makes no tokens: ", found.servable->generation_refusal));
  }
  RETURN_IF_ERROR(CheckId(request.id));
  const SamplingParameters& parameters = request.parameters;
  beginning->info = {.model = found.version->name,
                     .version = found.version->version,
                     .id = std::string(request.id),
                     .prompt_tokens = static_cast<int64_t>(request.ids.size()),
                     .logprobs = parameters.sampling.logprobs >= 0,
                     .alternatives = std::clamp<int64_t>(parameters.sampling.logprobs, 0,
                                                         beginning->generator().vocabulary())};
  RETURN_IF_ERROR(parameters.CheckTogether());
  beginning->info.tells_text = request.tells_text || request.prompt != nullptr;
  if (beginning->info.tells_text || parameters.texts.any()) {
    ASSIGN_OR_RETURN(beginning->info.text, texts_.models->Find(*found.servable->model));
  }
  if (request.prompt == nullptr) {
    RETURN_IF_ERROR(CheckPrompt(beginning->generator(), request));
  }
  if (request.trace != nullptr) {
    request.trace->AddAttribute({"reprise.model", found.version->name});
    request.trace->AddAttribute({"reprise.version", found.version->version});
  }
  beginning->deadline_ns = DeadlineOf(request, beginning->start_ns);
  beginning->request = std::move(request);
  beginning->on_tokens = std::move(on_tokens);
  beginning->counts_unread = counts_unread;
  beginning->call = std::make_shared<TokenCall>(found);
  const std::shared_ptr<TokenCall> call = beginning->call;
  if (beginning->is_prepared()) {
    RETURN_IF_ERROR(Submit(*beginning));
    return call;
  }
  // The transport's memory may be freed by then.
  beginning->request.model = beginning->request.version = beginning->request.id = "";
  if (!texts_.threads->Run([this, beginning] { Prepare(beginning); })) {
    return absl::UnavailableError("the server is stopping");
  }
  return call;
}

void TokenCalls::Prepare(const std::shared_ptr<Beginning>& beginning) const {
  TokenRequest& request = beginning->request;
  const std::function<absl::Status()> go_on = [&]() -> absl::Status {
    if (beginning->call->cancelled()) return absl::CancelledError("the client has disconnected");
    if (beginning->deadline_ns > 0 && clock_.NowNs() > beginning->deadline_ns) {
      return absl::DeadlineExceededError("the deadline passed before the prompt was read");
    }
    return texts_.threads->GoOn();
  };
  const absl::Status begun = WithinMemory(
      [] { return "the request"; },
      [&]() -> absl::Status {
        RETURN_IF_ERROR(go_on());
        const TextModel& model = *beginning->info.text;
        const Generator& generator = beginning->generator();
        if (std::optional<GrammarText>& text = request.parameters.texts.grammar) {
          ASSIGN_OR_RETURN(const Grammars* grammars,
                           model.GrammarsOf(generator.options().eos_ids, generator.vocabulary()));
          ASSIGN_OR_RETURN(beginning->grammar, grammars->Compile(*text, go_on));
          text.reset();
        }
        if (request.prompt != nullptr) {
          ASSIGN_OR_RETURN(const TextPrompt prompt, request.prompt(model, go_on));
          const int64_t encode_ns = clock_.NowNs();
          ASSIGN_OR_RETURN(request.ids,
                           EncodePrompt(model, prompt, generator, *texts_.threads, go_on));
          if (request.trace != nullptr) {
            request.trace->Add({.name = "tokenizer",
                                .start_ns = encode_ns,
                                .end_ns = clock_.NowNs(),
                                .attributes = {{"reprise.tokens", std::ssize(request.ids)}}});
          }
          request.prompt = nullptr;
          RETURN_IF_ERROR(CheckPrompt(generator, request));
        }
        beginning->info.prompt_tokens = static_cast<int64_t>(request.ids.size());
        return Submit(*beginning);
      });
  if (begun.ok()) return;
  const int64_t total_ns = clock_.NowNs() - beginning->start_ns;
  const std::string trace_id = request.trace == nullptr ? "" : request.trace->id_text();
  beginning->model.version->events->OnRequest(
      RecordOf(beginning->info, request.key.get(), trace_id, begun, total_ns));
  beginning->ticket = nullptr;
  beginning->on_tokens(beginning->info, {.finish = Ending::kError, .status = begun, .last = true},
                       {});
}

absl::Status TokenCalls::Submit(Beginning& beginning) const {
  TokenRequest& request = beginning.request;
  SamplingParameters& parameters = request.parameters;
  GenerationRequest wanted = {
      .ids = std::move(request.ids),
      .numbers = std::move(request.numbers),
      .numbers_shape = std::move(request.numbers_shape),
      .decoder_ids = std::move(parameters.decoder_ids),
      .begins_whole = request.begins_whole,
      .scores_prompt = request.scores_prompt,
      .watched = request.watched,
      .sampling = std::move(parameters.sampling),
      .beams = parameters.beams,
      .priority = parameters.priority,
      .deadline_ns = beginning.deadline_ns,
      .owner = {.key = request.key == nullptr ? 0 : request.key->page_owner(),
                .salt = parameters.cache_salt.empty() ? 0 : Hash64(parameters.cache_salt) | 1},
      .key = request.key == nullptr ? "" : request.key->name(),
      .weight = request.key == nullptr ? 1 : request.key->weight(),
      .constrain = std::move(request.constrain),
      .counts_unread = beginning.counts_unread};
  if (beginning.grammar != nullptr) {
    wanted.constrain = [grammar = beginning.grammar, &threads = *texts_.threads,
                        vocabulary = beginning.generator().vocabulary()] {
      return std::make_unique<GrammarConstraint>(grammar, vocabulary, threads);
    };
  }
  std::shared_ptr<AnswerTexts> texts;
  if (beginning.info.text != nullptr) {
    texts = std::make_shared<AnswerTexts>(AnswerTexts{.model = beginning.info.text,
                                                      .wishes = std::move(parameters.texts),
                                                      .min_tokens = wanted.sampling.min_tokens});
    wanted.ends = [texts](int64_t answer, const SampledToken& token) {
      return texts->Of(answer).Push(token.id);
    };
  }
  const bool whole = wanted.beams.beams > 1;
  wanted.on_event = [info = beginning.info, on_tokens = beginning.on_tokens,
                     version = beginning.model.version, start_ns = beginning.start_ns,
                     key = request.key, ticket = std::move(beginning.ticket), texts, whole,
                     spans = TokenSpans(request.trace, clock_.NowNs()),
                     &clock = clock_](const GenerationEvent& event) mutable {
    if (spans.wanted()) spans.On(event, info.prompt_tokens, clock.NowNs());
    if (event.last) {
      ticket = nullptr;
      version->events->OnRequest(
          RecordOf(info, key.get(), spans.trace_id(), event.status, clock.NowNs() - start_ns));
    }
    if (texts == nullptr) return on_tokens(info, event, {});
    const TokenText text = texts->TextOf(event, whole);
    const absl::Status& decoded = texts->Of(event.answer).status();
    if (decoded.ok() || !event.last || !event.status.ok()) return on_tokens(info, event, text);
    GenerationEvent failed = event;
    failed.status = decoded;
    on_tokens(info, failed, text);
  };
  ASSIGN_OR_RETURN(std::shared_ptr<Generation> begun,
                   beginning.model.servable->generation->Submit(std::move(wanted)));
  beginning.call->Begin(std::move(begun));
  return absl::OkStatus();
}

}  // namespace reprise
