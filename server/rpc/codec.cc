#include "server/rpc/codec.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/protocol/answers.h"
#include "server/protocol/request_parameters.h"
#include "server/rpc/typed_contents.h"
#include "server/wire/datatype.h"

namespace reprise {
namespace {

using inference::InferParameter;
using inference::ModelInferRequest;

constexpr int64_t kLargestMessage = std::numeric_limits<int32_t>::max();
// Bytes that names, shapes and parameters of an answer may add to its tensors.
constexpr int64_t kMessageOverhead = 1 << 20;

// Extensions that change where a tensor's bytes are, or what they mean.
template <typename Tensor>
absl::Status CheckTensorParameters(const Tensor& tensor, const char* kind) {
  for (const char* name : {"shared_memory_region", "classification"}) {
    if (tensor.parameters().count(name) > 0) {
      return absl::UnimplementedError(
          absl::StrCat(kind, " \"", tensor.name(), "\": parameter ", name, " is not supported"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::string_view> InputBytes(const ModelInferRequest& message, int index,
                                             DecodedRequest& decoded) {
  const ModelInferRequest::InferInputTensor& input = message.inputs(index);
  if (message.raw_input_contents().empty()) return TypedBytes(input, decoded.converted);
  if (input.has_contents()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input \"", input.name(), "\" has contents, and the request has raw_input_contents"));
  }
  return absl::string_view(message.raw_input_contents(index));
}

}  // namespace

ParameterValue ValueOf(const InferParameter& value) {
  switch (value.parameter_choice_case()) {
    case InferParameter::kBoolParam:
      return value.bool_param();
    case InferParameter::kInt64Param:
      return value.int64_param();
    case InferParameter::kUint64Param:
      if (value.uint64_param() > std::numeric_limits<int64_t>::max()) return value.uint64_param();
      return static_cast<int64_t>(value.uint64_param());
    case InferParameter::kDoubleParam:
      return value.double_param();
    default:
      return value.string_param();
  }
}

absl::Status Decode(const ModelInferRequest& message, DecodedRequest& decoded) {
  InferRequest& view = decoded.view;
  view.model = message.model_name();
  view.version = message.model_version();
  view.id = message.id();
  for (const auto& [name, value] : message.parameters()) {
    RETURN_IF_ERROR(SetParameter(name, ValueOf(value), view));
  }
  if (!message.raw_input_contents().empty() &&
      message.raw_input_contents_size() != message.inputs_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request has ", message.inputs_size(), " inputs and ",
                     message.raw_input_contents_size(), " raw_input_contents"));
  }
  view.inputs.reserve(message.inputs_size());
  for (int i = 0; i < message.inputs_size(); ++i) {
    const ModelInferRequest::InferInputTensor& input = message.inputs(i);
    RETURN_IF_ERROR(CheckTensorParameters(input, "input"));
    ASSIGN_OR_RETURN(const absl::string_view bytes, InputBytes(message, i, decoded));
    view.inputs.push_back({.name = input.name(),
                           .datatype = input.datatype(),
                           .shape = absl::MakeConstSpan(input.shape().data(), input.shape_size()),
                           .bytes = bytes});
  }
  for (const auto& output : message.outputs()) {
    RETURN_IF_ERROR(CheckTensorParameters(output, "output"));
    view.outputs.push_back(output.name());
  }
  return absl::OkStatus();
}

absl::Status Encode(InferResult result, const std::string& id,
                    inference::ModelInferResponse& message) {
  int64_t bytes = 0;
  for (const int position : result.outputs) {
    bytes += static_cast<int64_t>(result.response.outputs[position].bytes.size());
  }
  if (bytes > kLargestMessage - kMessageOverhead) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the answer has ", bytes, " bytes of tensors, a message holds ",
                     kLargestMessage - kMessageOverhead, "; ask for fewer outputs or rows"));
  }
  message.set_model_name(result.model.version->name);
  message.set_model_version(result.model.version->version);
  message.set_id(id);
  const std::vector<ModelIo>& outputs = result.model.servable->signature.outputs;
  for (const int position : result.outputs) {
    OutputTensor& tensor = result.response.outputs[position];
    inference::ModelInferResponse::InferOutputTensor& output = *message.add_outputs();
    output.set_name(outputs[position].name);
    output.set_datatype(std::string(ProtocolName(outputs[position])));
    output.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
    *message.add_raw_output_contents() = std::move(tensor.bytes);
  }
  for (auto& [name, value] : AnswerParameters(result)) {
    inference::InferParameter& parameter = (*message.mutable_parameters())[name];
    if (const int64_t* number = std::get_if<int64_t>(&value)) {
      parameter.set_int64_param(*number);
    } else {
      parameter.set_string_param(std::get<std::string>(std::move(value)));
    }
  }
  return absl::OkStatus();
}

}  // namespace reprise
