#include "client/infer_codec.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace reprise::client {
namespace {

// Names of the parameters as in Triton's extension for shared memory.
template <typename Tensor>
void SetRegion(const RegionSlice& region, Tensor& tensor) {
  auto& parameters = *tensor.mutable_parameters();
  parameters["shared_memory_region"].set_string_param(region.region);
  parameters["shared_memory_byte_size"].set_int64_param(region.bytes);
  if (region.offset != 0) parameters["shared_memory_offset"].set_int64_param(region.offset);
}

std::optional<RegionSlice> RegionOf(
    const inference::ModelInferResponse::InferOutputTensor& output) {
  const auto& parameters = output.parameters();
  const auto region = parameters.find("shared_memory_region");
  if (region == parameters.end()) return std::nullopt;
  const auto number = [&](const char* name) {
    const auto found = parameters.find(name);
    return found == parameters.end() ? 0 : found->second.int64_param();
  };
  return RegionSlice{.region = region->second.string_param(),
                     .offset = number("shared_memory_offset"),
                     .bytes = number("shared_memory_byte_size")};
}

std::string Names(absl::Span<const OutputTensor> outputs) {
  return absl::StrJoin(outputs, ", ", [](std::string* out, const OutputTensor& output) {
    absl::StrAppend(out, output.name);
  });
}

}  // namespace

inference::ModelInferRequest ToMessage(const InferRequest& request) {
  inference::ModelInferRequest message;
  message.set_model_name(request.model);
  message.set_model_version(request.version);
  message.set_id(request.id);
  for (const InputTensor& input : request.inputs) {
    auto& tensor = *message.add_inputs();
    tensor.set_name(input.name);
    tensor.set_datatype(input.datatype);
    tensor.mutable_shape()->Add(input.shape.begin(), input.shape.end());
    if (input.region.has_value()) {
      SetRegion(*input.region, tensor);
    } else {
      message.add_raw_input_contents(input.data.data(), input.data.size());
    }
  }
  std::map<std::string, RegionSlice> regions = request.output_regions;
  for (const std::string& output : request.outputs) {
    auto& tensor = *message.add_outputs();
    tensor.set_name(output);
    if (const auto region = regions.extract(output); !region.empty()) {
      SetRegion(region.mapped(), tensor);
    }
  }
  for (const auto& [output, region] : regions) {
    auto& tensor = *message.add_outputs();
    tensor.set_name(output);
    SetRegion(region, tensor);
  }
  return message;
}

absl::StatusOr<InferResult> InferResult::FromMessage(
    std::unique_ptr<inference::ModelInferResponse> message) {
  if (message->raw_output_contents_size() != message->outputs_size()) {
    return absl::InternalError(absl::StrCat("the response has ", message->outputs_size(),
                                            " outputs and ", message->raw_output_contents_size(),
                                            " raw contents"));
  }
  InferResult result;
  for (int i = 0; i < message->outputs_size(); ++i) {
    const auto& output = message->outputs(i);
    const std::string& raw = message->raw_output_contents(i);
    const size_t element = ElementBytes(output.datatype());
    std::optional<RegionSlice> region = RegionOf(output);
    if (element != 0 && !region.has_value()) {
      uint64_t bytes = element;
      for (int64_t dim : output.shape()) bytes *= static_cast<uint64_t>(dim);
      if (bytes != raw.size()) {
        return absl::InternalError(absl::StrCat("output '", output.name(), "' of shape ",
                                                absl::StrJoin(output.shape(), "x"), " holds ",
                                                raw.size(), " bytes instead of ", bytes));
      }
    }
    result.outputs_.push_back({output.name(),
                               output.datatype(),
                               {output.shape().data(), static_cast<size_t>(output.shape_size())},
                               {reinterpret_cast<const std::byte*>(raw.data()), raw.size()},
                               std::move(region)});
  }
  result.message_ = std::move(message);
  return result;
}

absl::StatusOr<OutputTensor> InferResult::Output(absl::string_view name) const {
  for (const OutputTensor& output : outputs_) {
    if (output.name == name) return output;
  }
  return absl::NotFoundError(
      absl::StrCat("no output '", name, "' in the response; it has ", Names(outputs_)));
}

std::string InferResult::Parameter(absl::string_view name) const {
  const auto found = message_->parameters().find(std::string(name));
  if (found == message_->parameters().end()) return "";
  const inference::InferParameter& value = found->second;
  switch (value.parameter_choice_case()) {
    case inference::InferParameter::kBoolParam:
      return value.bool_param() ? "true" : "false";
    case inference::InferParameter::kInt64Param:
      return absl::StrCat(value.int64_param());
    case inference::InferParameter::kStringParam:
      return value.string_param();
    case inference::InferParameter::kDoubleParam:
      return absl::StrCat(value.double_param());
    case inference::InferParameter::kUint64Param:
      return absl::StrCat(value.uint64_param());
    case inference::InferParameter::PARAMETER_CHOICE_NOT_SET:
      return "";
  }
  return "";
}

int64_t InferResult::IntParameter(absl::string_view name, int64_t fallback) const {
  int64_t value = 0;
  return absl::SimpleAtoi(Parameter(name), &value) ? value : fallback;
}

}  // namespace reprise::client
