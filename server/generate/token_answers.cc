#include "server/generate/token_answers.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

constexpr int64_t kNoToken = -1;

template <class T>
void AddOutput(const char* name, const char* datatype, const std::vector<int64_t>& shape,
               const std::vector<T>& values, inference::ModelInferResponse& message) {
  inference::ModelInferResponse::InferOutputTensor& output = *message.add_outputs();
  output.set_name(name);
  output.set_datatype(datatype);
  for (const int64_t dim : shape) output.add_shape(dim);
  message.add_raw_output_contents(reinterpret_cast<const char*>(values.data()),
                                  values.size() * sizeof(T));
}

// Fills a row of `columns` tokens for each answer; a shorter one is padded with id -1.
void FillTokens(const TokenCallInfo& info,
                const std::vector<const std::vector<SampledToken>*>& answers, size_t columns,
                inference::ModelInferResponse& message) {
  const size_t cells = answers.size() * columns;
  const auto width = static_cast<size_t>(info.alternatives);
  std::vector<int64_t> ids(cells, kNoToken), top_ids(cells * width, kNoToken);
  std::vector<float> logprobs(cells, 0), top_logprobs(cells * width, 0);
  for (size_t a = 0; a < answers.size(); ++a) {
    for (size_t i = 0; i < answers[a]->size(); ++i) {
      const SampledToken& token = (*answers[a])[i];
      const size_t cell = a * columns + i;
      ids[cell] = token.id;
      logprobs[cell] = token.logprob;
      for (size_t k = 0; k < std::min(width, token.best.size()); ++k) {
        top_ids[cell * width + k] = token.best[k].id;
        top_logprobs[cell * width + k] = token.best[k].logprob;
      }
    }
  }
  std::vector<int64_t> shape = {static_cast<int64_t>(answers.size()),
                                static_cast<int64_t>(columns)};
  AddOutput(kTokensOutput, "INT64", shape, ids, message);
  if (info.logprobs) AddOutput(kLogprobsOutput, "FP32", shape, logprobs, message);
  if (width == 0) return;
  shape.push_back(info.alternatives);
  AddOutput(kTopIdsOutput, "INT64", shape, top_ids, message);
  AddOutput(kTopLogprobsOutput, "FP32", shape, top_logprobs, message);
}

// BYTES [texts]: each with its size in front.
void FillTexts(const std::vector<absl::string_view>& texts,
               inference::ModelInferResponse& message) {
  std::string bytes;
  for (const absl::string_view text : texts) {
    const auto size = static_cast<uint32_t>(text.size());
    bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
    absl::StrAppend(&bytes, text);
  }
  auto& output = *message.add_outputs();
  output.set_name(kTextOutput);
  output.set_datatype("BYTES");
  output.add_shape(static_cast<int64_t>(texts.size()));
  *message.add_raw_output_contents() = std::move(bytes);
}

void FillHead(const TokenCallInfo& info, inference::ModelInferResponse& message) {
  message.set_model_name(info.model);
  message.set_model_version(info.version);
  message.set_id(info.id);
}

void SetNumber(const char* name, int64_t value, inference::ModelInferResponse& message) {
  (*message.mutable_parameters())[name].set_int64_param(value);
}

void SetWait(const GenerationWait& wait, inference::ModelInferResponse& message) {
  const std::string text = wait.Text();
  if (!text.empty()) (*message.mutable_parameters())["reprise.waited"].set_string_param(text);
}

}  // namespace

void FillTokenAnswer(const TokenCallInfo& info, const GenerationEvent& event, const TokenText& text,
                     inference::ModelInferResponse& message) {
  FillHead(info, message);
  FillTokens(info, {&event.tokens}, event.tokens.size(), message);
  if (info.tells_text) FillTexts({text.text}, message);
  SetNumber("index", event.answer, message);
  if (event.finish == Ending::kGoesOn) return;
  (*message.mutable_parameters())["finish_reason"].set_string_param(
      std::string(EndingName(event.finish)));
  if (!event.last) return;
  SetNumber("prompt_tokens", info.prompt_tokens, message);
  SetNumber("cached_tokens", event.cached_tokens, message);
  SetWait(event.wait, message);
}

bool WholeTokenAnswer::Add(const GenerationEvent& event, const TokenText& text) {
  if (event.answer >= static_cast<int64_t>(answers_.size())) {
    answers_.resize(static_cast<size_t>(event.answer) + 1);
  }
  Answer& answer = answers_[static_cast<size_t>(event.answer)];
  answer.tokens.insert(answer.tokens.end(), event.tokens.begin(), event.tokens.end());
  answer.text += text.text;
  if (text.stop != nullptr) answer.stop = *text.stop;
  answer.finish = event.finish;
  cached_tokens_ = event.cached_tokens;
  wait_ = event.wait;
  if (status_.ok()) status_ = event.status;
  return event.last;
}

void WholeTokenAnswer::Fill(const TokenCallInfo& info,
                            inference::ModelInferResponse& message) const {
  FillHead(info, message);
  size_t longest = 0;
  std::string finishes;
  std::vector<const std::vector<SampledToken>*> tokens;
  std::vector<absl::string_view> texts;
  for (const Answer& answer : answers_) {
    tokens.push_back(&answer.tokens);
    texts.push_back(answer.text);
    longest = std::max(longest, answer.tokens.size());
    absl::StrAppend(&finishes, finishes.empty() ? "" : ",", EndingName(answer.finish));
  }
  FillTokens(info, tokens, longest, message);
  if (info.tells_text) FillTexts(texts, message);
  (*message.mutable_parameters())["finish_reason"].set_string_param(finishes);
  SetNumber("prompt_tokens", info.prompt_tokens, message);
  SetNumber("cached_tokens", cached_tokens_, message);
  SetWait(wait_, message);
}

}  // namespace reprise
