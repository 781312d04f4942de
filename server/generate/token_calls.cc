#include "server/generate/token_calls.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/hash64.h"
#include "runtime/base/status_macros.h"
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

// The prompt of an encoder that takes no ids.
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

// The one element of a BYTES tensor.
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

RequestRecord RecordOf(const TokenCallInfo& info, const KeyUse* key, const absl::Status& status,
                       int64_t total_ns) {
  return {.code = status.code(),
          .rows = 1,
          .total_ns = total_ns,
          .id = info.id,
          .model = info.model,
          .version = info.version,
          .key = key == nullptr ? "" : absl::string_view(key->name()),
          .bytes_in = info.prompt_tokens * static_cast<int64_t>(sizeof(int64_t)),
          .why = {status.message().data(), status.message().size()}};
}

// The prompt is of the kind that the model takes, and parameters that an encoder alone gives a
// meaning are given to a model with one.
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
// comes first; 0: there is none. A timeout beyond what the clock counts is none.
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

}  // namespace

void TokenCall::Cancel() {
  handle_->Cancel();
  model_.servable->generation->Wake();
}

void TokenCall::Took(int64_t events) {
  handle_->Took(events);
  model_.servable->generation->Wake();
}

bool TokenCalls::Takes(const InferRequest& request) const {
  constexpr size_t kMostInputs = 2;  // ids and parameters
  if (request.inputs.empty() || request.inputs.size() > kMostInputs) return false;
  const auto found = repository_.Find(request.model, request.version);
  if (!found.ok() || found->servable->generation == nullptr) return false;
  const std::string& ids = found->servable->generation->generator().prompt_input();
  return FindInput(request, ids) != nullptr &&
         absl::c_all_of(request.inputs, [&](const InputView& one) {
           return one.name == absl::string_view(ids) || one.name == kSamplingInput;
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
    constexpr absl::string_view kOutputs[] = {kTokensOutput, kLogprobsOutput, kTopIdsOutput,
                                              kTopLogprobsOutput};
    if (absl::c_linear_search(kOutputs, output)) continue;
    return absl::InvalidArgumentError(absl::StrCat("a request for tokens has no output \"", output,
                                                   "\"; it has ", absl::StrJoin(kOutputs, ", ")));
  }
  const Generator& generator = found.servable->generation->generator();
  const InputView& prompt = *FindInput(request, generator.prompt_input());
  TokenRequest wanted = {
      .model = request.model, .version = request.version, .id = request.id, .key = request.key};
  if (generator.takes_ids()) {
    ASSIGN_OR_RETURN(wanted.ids, IdsOf(prompt));
  } else {
    RETURN_IF_ERROR(TakeNumbers(prompt, wanted));
  }
  wanted.deadline_ns = request.deadline_ns;
  wanted.parameters = std::move(parameters);
  return Start(std::move(wanted), counts_unread, std::move(on_tokens));
}

absl::StatusOr<std::shared_ptr<TokenCall>> TokenCalls::Start(TokenRequest request,
                                                             bool counts_unread,
                                                             OnTokens on_tokens) const {
  if (state_.state() == ServerState::State::kDraining) {
    return absl::UnavailableError("the server is stopping");
  }
  const int64_t start_ns = clock_.NowNs();
  ASSIGN_OR_RETURN(KeyUse::Ticket ticket, KeyUse::BeginFor(request.key, start_ns));
  ASSIGN_OR_RETURN(Repository::Found found, repository_.Find(request.model, request.version));
  if (found.servable->generation == nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        "model \"", request.model, "\" makes no tokens: ", found.servable->generation_refusal));
  }
  RETURN_IF_ERROR(CheckId(request.id));
  SamplingParameters& parameters = request.parameters;
  const TokenCallInfo info = {
      .model = found.version->name,
      .version = found.version->version,
      .id = std::string(request.id),
      .prompt_tokens = static_cast<int64_t>(request.ids.size()),
      .logprobs = parameters.sampling.logprobs >= 0,
      .alternatives = std::clamp<int64_t>(parameters.sampling.logprobs, 0,
                                          found.servable->generation->generator().vocabulary())};
  const Generator& generator = found.servable->generation->generator();
  RETURN_IF_ERROR(CheckPrompt(generator, request));
  RETURN_IF_ERROR(parameters.CheckTogether());
  GenerationRequest wanted = {
      .ids = std::move(request.ids),
      .numbers = std::move(request.numbers),
      .numbers_shape = std::move(request.numbers_shape),
      .decoder_ids = std::move(parameters.decoder_ids),
      .sampling = std::move(parameters.sampling),
      .beams = parameters.beams,
      .priority = parameters.priority,
      .deadline_ns = DeadlineOf(request, start_ns),
      .owner = {.key = request.key == nullptr ? 0 : request.key->page_owner(),
                .salt = parameters.cache_salt.empty() ? 0 : Hash64(parameters.cache_salt) | 1},
      .key = request.key == nullptr ? "" : request.key->name(),
      .weight = request.key == nullptr ? 1 : request.key->weight(),
      .counts_unread = counts_unread};
  const Clock& clock = clock_;
  wanted.on_event = [info, on_tokens = std::move(on_tokens), version = found.version, start_ns,
                     key = std::move(request.key), ticket = std::move(ticket),
                     &clock](const GenerationEvent& event) mutable {
    if (event.last) {
      ticket = nullptr;
      version->events->OnRequest(RecordOf(info, key.get(), event.status, clock.NowNs() - start_ns));
    }
    on_tokens(info, event);
  };
  ASSIGN_OR_RETURN(std::shared_ptr<Generation> begun,
                   found.servable->generation->Submit(std::move(wanted)));
  return std::make_shared<TokenCall>(std::move(found), std::move(begun));
}

}  // namespace reprise
