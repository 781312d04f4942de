#include "server/rpc/codec.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "server/protocol/answers.h"
#include "server/protocol/region_parameters.h"
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

// Returns where a tensor lies that is not in the message.
template <typename Tensor>
absl::StatusOr<std::optional<RegionSlice>> RegionOf(const Tensor& tensor, const char* kind) {
  RegionParameters region;
  const auto take = [&]() -> absl::StatusOr<std::optional<RegionSlice>> {
    for (const auto& [name, value] : tensor.parameters()) {
      if (name == kClassification && std::is_same_v<Tensor, ModelInferRequest::InferInputTensor>) {
        return absl::InvalidArgumentError("parameter classification belongs to outputs");
      }
      RETURN_IF_ERROR(region.Set(name, ValueOf(value)));
    }
    return region.Slice();
  };
  auto slice = take();
  if (slice.ok()) return slice;
  return absl::Status(slice.status().code(),
                      absl::StrCat(kind, " \"", tensor.name(), "\": ", slice.status().message()));
}

// Returns the bytes of an input that is in the message; `raw` is the next of its
// raw_input_contents.
absl::StatusOr<absl::string_view> InputBytes(const ModelInferRequest& message,
                                             const ModelInferRequest::InferInputTensor& input,
                                             int& raw, DecodedRequest& decoded) {
  if (message.raw_input_contents().empty()) return TypedBytes(input, decoded.converted);
  if (input.has_contents()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input \"", input.name(), "\" has contents, and the request has raw_input_contents"));
  }
  return absl::string_view(message.raw_input_contents(raw++));
}

// There is one entry of raw_input_contents for each input in the message, or none at all.
absl::Status CheckRawCount(const ModelInferRequest& message, const std::vector<InputView>& inputs) {
  const auto in_regions = std::count_if(inputs.begin(), inputs.end(), [](const InputView& input) {
    return input.region.has_value();
  });
  const int raw = message.raw_input_contents_size();
  if (raw == 0 || raw == std::ssize(inputs) - in_regions) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the request has ", inputs.size(), " inputs and ", raw, " raw_input_contents",
      in_regions == 0 ? "" : absl::StrCat(", and ", in_regions, " inputs are in shared memory")));
}

absl::Status DecodeInputs(const ModelInferRequest& message, DecodedRequest& decoded) {
  std::vector<InputView>& inputs = decoded.view.inputs;
  inputs.reserve(message.inputs_size());
  for (const ModelInferRequest::InferInputTensor& input : message.inputs()) {
    InputView view = {.name = input.name(),
                      .datatype = input.datatype(),
                      .shape = absl::MakeConstSpan(input.shape().data(), input.shape_size())};
    ASSIGN_OR_RETURN(view.region, RegionOf(input, "input"));
    inputs.push_back(std::move(view));
  }
  RETURN_IF_ERROR(CheckRawCount(message, inputs));
  int raw = 0;
  for (int i = 0; i < message.inputs_size(); ++i) {
    const ModelInferRequest::InferInputTensor& input = message.inputs(i);
    if (!inputs[i].region.has_value()) {
      ASSIGN_OR_RETURN(inputs[i].bytes, InputBytes(message, input, raw, decoded));
    } else if (input.has_contents()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input \"", input.name(), "\" has contents and the parameter shared_memory_region"));
    }
  }
  return absl::OkStatus();
}

absl::Status DecodeOutputs(const ModelInferRequest& message, InferRequest& view) {
  for (const auto& output : message.outputs()) {
    ASSIGN_OR_RETURN(std::optional<RegionSlice> region, RegionOf(output, "output"));
    view.outputs.push_back(output.name());
    if (const auto classes = output.parameters().find(kClassification);
        classes != output.parameters().end()) {
      auto count = IntegerParameter(kClassification, ValueOf(classes->second));
      if (!count.ok()) {
        return absl::Status(count.status().code(), absl::StrCat("output \"", output.name(),
                                                                "\": ", count.status().message()));
      }
      view.classes.resize(view.outputs.size());
      view.classes.back() = *count;
    }
    if (!region.has_value() && view.output_regions.empty()) continue;
    view.output_regions.resize(view.outputs.size());
    view.output_regions.back() = std::move(region);
  }
  if (!view.output_regions.empty()) view.output_regions.resize(view.outputs.size());
  if (!view.classes.empty()) view.classes.resize(view.outputs.size());
  return absl::OkStatus();
}

void EncodeRegion(const RegionSlice& region,
                  inference::ModelInferResponse::InferOutputTensor& output) {
  auto& parameters = *output.mutable_parameters();
  parameters["shared_memory_region"].set_string_param(region.region);
  parameters["shared_memory_byte_size"].set_int64_param(region.bytes);
  if (region.offset != 0) parameters["shared_memory_offset"].set_int64_param(region.offset);
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
    ParameterValue given = ValueOf(value);
    // Clients put an unsigned id into the signed number of the same bits, as other servers read it.
    if (const int64_t* number = std::get_if<int64_t>(&given);
        number != nullptr && name == kSequenceId) {
      given = static_cast<uint64_t>(*number);
    }
    RETURN_IF_ERROR(SetParameter(name, given, view));
  }
  RETURN_IF_ERROR(DecodeInputs(message, decoded));
  return DecodeOutputs(message, view);
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
  for (size_t i = 0; i < result.outputs.size(); ++i) {
    const int position = result.outputs[i];
    OutputTensor& tensor = result.response.outputs[position];
    inference::ModelInferResponse::InferOutputTensor& output = *message.add_outputs();
    output.set_name(outputs[position].name);
    output.set_datatype(std::string(DatatypeOfAnswer(result, i)));
    output.mutable_shape()->Add(tensor.shape.begin(), tensor.shape.end());
    if (i < result.regions.size() && result.regions[i].has_value()) {
      EncodeRegion(*result.regions[i], output);
    }
    // Clients count on one entry for each output; an output in shared memory has an empty one.
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
