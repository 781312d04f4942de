#include "client/generate_codec.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "client/infer_codec.h"
#include "runtime/base/status_macros.h"

namespace reprise::client {

inference::ModelInferRequest ToMessage(const GenerateRequest& request) {
  const auto count = static_cast<int64_t>(request.ids.size());
  inference::ModelInferRequest message = ToMessage(InferRequest{
      .model = request.model,
      .version = request.version,
      .id = request.id,
      .inputs = {InputTensor::Of<int64_t>(request.ids_input, {1, count}, request.ids)}});
  for (const auto& [name, value] : request.parameters) {
    inference::InferParameter& parameter = (*message.mutable_parameters())[name];
    if (const bool* flag = std::get_if<bool>(&value)) {
      parameter.set_bool_param(*flag);
    } else if (const int64_t* whole = std::get_if<int64_t>(&value)) {
      parameter.set_int64_param(*whole);
    } else if (const double* number = std::get_if<double>(&value)) {
      parameter.set_double_param(*number);
    } else {
      parameter.set_string_param(std::get<std::string>(value));
    }
  }
  return message;
}

absl::StatusOr<GeneratedTokens> TokensOf(const inference::ModelInferResponse& message) {
  ASSIGN_OR_RETURN(
      const InferResult result,
      InferResult::FromMessage(std::make_unique<inference::ModelInferResponse>(message)));
  GeneratedTokens tokens = {.answer = result.IntParameter("index", 0),
                            .finish_reason = result.Parameter("finish_reason")};
  ASSIGN_OR_RETURN(const OutputTensor ids, result.Output("token_ids"));
  ASSIGN_OR_RETURN(const auto numbers, ids.As<int64_t>());
  tokens.ids.assign(numbers.begin(), numbers.end());
  const absl::StatusOr<OutputTensor> logprobs = result.Output("logprobs");
  if (!logprobs.ok()) return tokens;
  ASSIGN_OR_RETURN(const auto values, logprobs->As<float>());
  tokens.logprobs.assign(values.begin(), values.end());
  return tokens;
}

}  // namespace reprise::client
