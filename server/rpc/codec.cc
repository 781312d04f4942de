#include "server/rpc/codec.h"

#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "server/core/datatype.h"
#include "server/rpc/typed_contents.h"

namespace reprise {
namespace {

using inference::InferParameter;
using inference::ModelInferRequest;

constexpr int64_t kLargestMessage = std::numeric_limits<int32_t>::max();
// What names, shapes and parameters of an answer may add to its tensors.
constexpr int64_t kMessageOverhead = 1 << 20;

absl::StatusOr<int64_t> IntegerParameter(const std::string& name, const InferParameter& value) {
  switch (value.parameter_choice_case()) {
    case InferParameter::kInt64Param:
      return value.int64_param();
    case InferParameter::kUint64Param:
      if (value.uint64_param() > std::numeric_limits<int64_t>::max()) break;
      return static_cast<int64_t>(value.uint64_param());
    default:
      break;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("parameter ", name, " must be an integer, it is ", value.ShortDebugString()));
}

absl::StatusOr<OnMiss> OnMissParameter(const std::string& name, const InferParameter& value) {
  const std::pair<const char*, OnMiss> choices[] = {{"pad", OnMiss::kPad},
                                                    {"wait", OnMiss::kWait},
                                                    {"eager", OnMiss::kEager},
                                                    {"reject", OnMiss::kReject}};
  for (const auto& [text, choice] : choices) {
    if (value.string_param() == text) return choice;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "parameter ", name, " must be pad, wait, eager or reject, it is ", value.ShortDebugString()));
}

absl::Status DecodeParameter(const std::string& name, const InferParameter& value,
                             InferRequest& view) {
  if (name == "timeout") {
    ASSIGN_OR_RETURN(view.timeout_us, IntegerParameter(name, value));
  } else if (name == "priority") {
    ASSIGN_OR_RETURN(const int64_t priority, IntegerParameter(name, value));
    if (priority < 0) {
      return absl::InvalidArgumentError(absl::StrCat("parameter priority is ", priority));
    }
    view.priority = static_cast<uint64_t>(priority);
  } else if (name == "reprise.on_miss") {
    ASSIGN_OR_RETURN(view.on_miss, OnMissParameter(name, value));
  } else if (absl::StartsWith(name, "triton_") && name != "triton_enable_empty_final_response") {
    return absl::InvalidArgumentError(absl::StrCat("parameter ", name, " is not known"));
  }
  // Others, a sequence's among them, mean nothing to a model without state.
  return absl::OkStatus();
}

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

absl::Status Decode(const ModelInferRequest& message, DecodedRequest& decoded) {
  InferRequest& view = decoded.view;
  view.model = message.model_name();
  view.version = message.model_version();
  view.id = message.id();
  for (const auto& [name, value] : message.parameters()) {
    RETURN_IF_ERROR(DecodeParameter(name, value, view));
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
    output.set_datatype(std::string(ProtocolName(outputs[position].dtype)));
    output.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
    *message.add_raw_output_contents() = std::move(tensor.bytes);
  }
  const ReplayInfo& info = result.response.info;
  auto& parameters = *message.mutable_parameters();
  parameters["reprise.bucket"].set_string_param(info.bucket);
  parameters["reprise.recipe"].set_string_param(info.recipe);
  parameters["reprise.capture"].set_string_param(std::string(CaptureOutcomeName(info.capture)));
  parameters["reprise.batch"].set_int64_param(info.batch);
  parameters["reprise.batch_size"].set_int64_param(info.batch_size);
  parameters["reprise.batches"].set_string_param(absl::StrJoin(result.batches, ","));
  return absl::OkStatus();
}

}  // namespace reprise
