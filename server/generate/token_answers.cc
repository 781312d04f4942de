#include "server/generate/token_answers.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

constexpr int64_t kNoToken = -1;

template <class T>
void AddOutput(const char* name, const char* datatype, int64_t rows, const std::vector<T>& values,
               inference::ModelInferResponse& message) {
  inference::ModelInferResponse::InferOutputTensor& output = *message.add_outputs();
  output.set_name(name);
  output.set_datatype(datatype);
  output.add_shape(rows);
  output.add_shape(static_cast<int64_t>(values.size()) / std::max<int64_t>(rows, 1));
  message.add_raw_output_contents(reinterpret_cast<const char*>(values.data()),
                                  values.size() * sizeof(T));
}

void FillHead(const TokenCallInfo& info, inference::ModelInferResponse& message) {
  message.set_model_name(info.model);
  message.set_model_version(info.version);
  message.set_id(info.id);
}

void SetNumber(const char* name, int64_t value, inference::ModelInferResponse& message) {
  (*message.mutable_parameters())[name].set_int64_param(value);
}

}  // namespace

void FillTokenAnswer(const TokenCallInfo& info, const GenerationEvent& event,
                     inference::ModelInferResponse& message) {
  FillHead(info, message);
  std::vector<int64_t> ids;
  std::vector<float> logprobs;
  for (const SampledToken& token : event.tokens) {
    ids.push_back(token.id);
    logprobs.push_back(token.logprob);
  }
  AddOutput(kTokensOutput, "INT64", 1, ids, message);
  if (info.logprobs) AddOutput(kLogprobsOutput, "FP32", 1, logprobs, message);
  SetNumber("index", event.answer, message);
  if (event.finish == Ending::kGoesOn) return;
  (*message.mutable_parameters())["finish_reason"].set_string_param(
      std::string(EndingName(event.finish)));
  if (!event.last) return;
  SetNumber("prompt_tokens", info.prompt_tokens, message);
  SetNumber("cached_tokens", event.cached_tokens, message);
}

bool WholeTokenAnswer::Add(const GenerationEvent& event) {
  if (event.answer >= static_cast<int64_t>(answers_.size())) {
    answers_.resize(static_cast<size_t>(event.answer) + 1);
  }
  Answer& answer = answers_[static_cast<size_t>(event.answer)];
  answer.tokens.insert(answer.tokens.end(), event.tokens.begin(), event.tokens.end());
  answer.finish = event.finish;
  cached_tokens_ = event.cached_tokens;
  if (status_.ok()) status_ = event.status;
  return event.last;
}

void WholeTokenAnswer::Fill(const TokenCallInfo& info,
                            inference::ModelInferResponse& message) const {
  FillHead(info, message);
  size_t longest = 0;
  std::string finishes;
  for (const Answer& answer : answers_) {
    longest = std::max(longest, answer.tokens.size());
    absl::StrAppend(&finishes, finishes.empty() ? "" : ",", EndingName(answer.finish));
  }
  std::vector<int64_t> ids(answers_.size() * longest, kNoToken);
  std::vector<float> logprobs(ids.size(), 0);
  for (size_t a = 0; a < answers_.size(); ++a) {
    for (size_t i = 0; i < answers_[a].tokens.size(); ++i) {
      ids[a * longest + i] = answers_[a].tokens[i].id;
      logprobs[a * longest + i] = answers_[a].tokens[i].logprob;
    }
  }
  const auto rows = static_cast<int64_t>(answers_.size());
  AddOutput(kTokensOutput, "INT64", rows, ids, message);
  if (info.logprobs) AddOutput(kLogprobsOutput, "FP32", rows, logprobs, message);
  (*message.mutable_parameters())["finish_reason"].set_string_param(finishes);
  SetNumber("prompt_tokens", info.prompt_tokens, message);
  SetNumber("cached_tokens", cached_tokens_, message);
}

}  // namespace reprise
