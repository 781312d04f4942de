#include "server/rest/infer_json.h"

#include <simdjson.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/json/json_writer.h"
#include "server/protocol/answers.h"
#include "server/protocol/region_parameters.h"
#include "server/protocol/request_parameters.h"
#include "server/rest/json_document.h"
#include "server/rest/json_tensor.h"
#include "server/wire/datatype.h"

namespace reprise {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

constexpr char kHeaderLength[] = "inference-header-content-length";

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

// Returns the bytes of the body that are JSON.
absl::StatusOr<size_t> JsonLength(const HttpRequest& request) {
  std::optional<absl::string_view> found;
  for (const auto& [name, value] : request.fields) {
    if (name != kHeaderLength) continue;
    if (found.has_value() && *found != value) {
      return absl::InvalidArgumentError(absl::StrCat(
          "header Inference-Header-Content-Length is there twice, ", *found, " and ", value));
    }
    found = value;
  }
  if (!found.has_value()) return request.body.size();
  const absl::string_view text = *found;
  uint64_t length = 0;
  if (!absl::c_all_of(text, absl::ascii_isdigit) || !absl::SimpleAtoi(text, &length) ||
      length > request.body.size()) {
    return absl::InvalidArgumentError(absl::StrCat("header Inference-Header-Content-Length is ",
                                                   text, ", the body has ", request.body.size(),
                                                   " bytes"));
  }
  return static_cast<size_t>(length);
}

// Returns the member `name` of `json`; nullopt where it is left out. Errors: it is no `T`,
// described by `what`.
template <typename T>
absl::StatusOr<std::optional<T>> Member(const object& json, const char* name, const char* what) {
  element value;
  if (json.at_key(name).get(value) != simdjson::SUCCESS || value.is_null()) {
    return std::optional<T>();
  }
  T typed;
  if (value.get(typed) == simdjson::SUCCESS) return std::optional<T>(typed);
  return absl::InvalidArgumentError(absl::StrCat(
      "\"", name, "\" is ", simdjson::minify(value).substr(0, 40), ", expected ", what));
}

template <typename T>
absl::StatusOr<T> NeededMember(const object& json, const char* name, const char* what) {
  ASSIGN_OR_RETURN(const std::optional<T> member, Member<T>(json, name, what));
  if (member.has_value()) return *member;
  return absl::InvalidArgumentError(absl::StrCat("\"", name, "\" is missing"));
}

absl::Status Named(absl::string_view what, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(what, ": ", status.message()));
}

absl::StatusOr<ParameterValue> ValueOf(std::string_view name, const element& json) {
  if (bool flag; json.get(flag) == simdjson::SUCCESS) return flag;
  if (int64_t number; json.get(number) == simdjson::SUCCESS) return number;
  if (uint64_t number; json.get(number) == simdjson::SUCCESS) return number;
  if (double number; json.get(number) == simdjson::SUCCESS) return number;
  if (std::string_view text; json.get(text) == simdjson::SUCCESS) return std::string(text);
  return absl::InvalidArgumentError(absl::StrCat("parameter ", View(name), " is ",
                                                 simdjson::minify(json).substr(0, 40),
                                                 ", expected a number, a text or a boolean"));
}

// Returns where a tensor with these parameters lies that is not in the body.
absl::StatusOr<std::optional<RegionSlice>> RegionOf(const object& parameters) {
  RegionParameters region;
  for (const char* name :
       {"shared_memory_region", "shared_memory_byte_size", "shared_memory_offset"}) {
    element json;
    if (parameters.at_key(name).get(json) != simdjson::SUCCESS) continue;
    ASSIGN_OR_RETURN(const ParameterValue value, ValueOf(name, json));
    RETURN_IF_ERROR(region.Set(name, value));
  }
  return region.Slice();
}

// Cuts the tensor's bytes off the front of `binary`.
absl::StatusOr<absl::string_view> TakeBinary(int64_t size, absl::string_view& binary) {
  if (size < 0 || static_cast<uint64_t>(size) > binary.size()) {
    return absl::InvalidArgumentError(absl::StrCat("parameter binary_data_size is ", size,
                                                   ", after the JSON ", binary.size(),
                                                   " bytes are left"));
  }
  const absl::string_view bytes = binary.substr(0, static_cast<size_t>(size));
  binary.remove_prefix(bytes.size());
  return bytes;
}

}  // namespace

absl::string_view InferJson::Keep(std::string_view text) { return texts_.emplace_back(text); }

absl::Status InferJson::Decode(const HttpRequest& request, absl::string_view model,
                               absl::string_view version, MemoryBudget& parsing) {
  view_.model = model;
  view_.version = version;
  ASSIGN_OR_RETURN(const size_t length, JsonLength(request));
  JsonDocument document(parsing);
  ASSIGN_OR_RETURN(const object root,
                   document.ParseObject(absl::string_view(request.body).substr(0, length)));
  ASSIGN_OR_RETURN(const auto id, Member<std::string_view>(root, "id", "a text"));
  if (id.has_value()) view_.id = Keep(*id);
  ASSIGN_OR_RETURN(const auto parameters, Member<object>(root, "parameters", "an object"));
  if (parameters.has_value()) {
    for (const auto& [name, json] : *parameters) {
      // Other servers' clients send lists and objects, which mean nothing here.
      const bool nested = json.is_object() || json.is_array() || json.is_null();
      if (nested && !IsOwnParameter(View(name))) continue;
      ASSIGN_OR_RETURN(const ParameterValue value, ValueOf(name, json));
      if (name == "binary_data_output") {
        if (!std::holds_alternative<bool>(value)) {
          return absl::InvalidArgumentError(absl::StrCat("parameter binary_data_output is ",
                                                         simdjson::minify(json).substr(0, 40),
                                                         ", expected a boolean"));
        }
        binary_ = std::get<bool>(value);
        continue;
      }
      RETURN_IF_ERROR(SetParameter(std::string(name), value, view_));
    }
  }
  RETURN_IF_ERROR(DecodeTensors(root, absl::string_view(request.body).substr(length)));
  return DecodeOutputs(root);
}

absl::Status InferJson::DecodeTensors(const object& root, absl::string_view binary) {
  ASSIGN_OR_RETURN(const auto inputs, Member<array>(root, "inputs", "a list"));
  if (inputs.has_value()) RETURN_IF_ERROR(DecodeInputs(*inputs, binary));
  if (binary.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(binary.size(), " bytes after the JSON and the tensors belong to no input"));
}

absl::Status InferJson::DecodeInputs(const array& inputs, absl::string_view& binary) {
  int position = 0;
  for (const element input : inputs) {
    object json;
    if (input.get(json) != simdjson::SUCCESS) {
      return absl::InvalidArgumentError(absl::StrCat("input ", position, " must be an object"));
    }
    const auto name = NeededMember<std::string_view>(json, "name", "a text");
    if (!name.ok()) return Named(absl::StrCat("input ", position), name.status());
    ++position;
    InputView tensor = {.name = Keep(*name)};
    const absl::Status status = DecodeTensor(json, binary, tensor);
    if (!status.ok()) return Named(absl::StrCat("input \"", tensor.name, "\""), status);
    view_.inputs.push_back(std::move(tensor));
  }
  return absl::OkStatus();
}

absl::Status InferJson::DecodeTensor(const object& json, absl::string_view& binary,
                                     InputView& tensor) {
  ASSIGN_OR_RETURN(const auto datatype, NeededMember<std::string_view>(json, "datatype", "a text"));
  tensor.datatype = Keep(datatype);
  ASSIGN_OR_RETURN(const array dims, NeededMember<array>(json, "shape", "a list of sizes"));
  std::vector<int64_t>& shape = shapes_.emplace_back();
  for (const element dim : dims) {
    int64_t size = 0;
    if (dim.get(size) != simdjson::SUCCESS || size < 0) {
      return absl::InvalidArgumentError(absl::StrCat("dim ", shape.size(), " of \"shape\" is ",
                                                     simdjson::minify(dim).substr(0, 40)));
    }
    shape.push_back(size);
  }
  tensor.shape = shape;
  std::optional<int64_t> binary_size;
  ASSIGN_OR_RETURN(const auto parameters, Member<object>(json, "parameters", "an object"));
  if (parameters.has_value()) {
    if (element ignored; parameters->at_key(kClassification).get(ignored) == simdjson::SUCCESS) {
      return absl::InvalidArgumentError("parameter classification belongs to outputs");
    }
    ASSIGN_OR_RETURN(tensor.region, RegionOf(*parameters));
    ASSIGN_OR_RETURN(binary_size,
                     Member<int64_t>(*parameters, "binary_data_size", "a number of bytes"));
  }
  ASSIGN_OR_RETURN(const std::optional<element> data, Member<element>(json, "data", "a list"));
  if (tensor.region.has_value()) {
    if (!data.has_value() && !binary_size.has_value()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("has the parameter shared_memory_region and ",
                     data.has_value() ? "\"data\"" : "the parameter binary_data_size"));
  }
  if (binary_size.has_value()) {
    if (data.has_value()) {
      return absl::InvalidArgumentError("has \"data\" and the parameter binary_data_size");
    }
    ASSIGN_OR_RETURN(tensor.bytes, TakeBinary(*binary_size, binary));
    return absl::OkStatus();
  }
  if (!data.has_value()) {
    return absl::InvalidArgumentError("has neither \"data\" nor the parameter binary_data_size");
  }
  std::string& bytes = tensors_.emplace_back();
  RETURN_IF_ERROR(AppendElements(*data, tensor.datatype, tensor.shape, bytes));
  tensor.bytes = bytes;
  return absl::OkStatus();
}

absl::Status InferJson::DecodeOutputs(const object& root) {
  ASSIGN_OR_RETURN(const auto outputs, Member<array>(root, "outputs", "a list"));
  if (!outputs.has_value()) return absl::OkStatus();
  for (const element output : *outputs) {
    object json;
    if (output.get(json) != simdjson::SUCCESS) {
      return absl::InvalidArgumentError(
          absl::StrCat("output ", view_.outputs.size(), " must be an object"));
    }
    const auto name = NeededMember<std::string_view>(json, "name", "a text");
    if (!name.ok()) return Named(absl::StrCat("output ", view_.outputs.size()), name.status());
    view_.outputs.push_back(Keep(*name));
    const std::string what = absl::StrCat("output \"", view_.outputs.back(), "\"");
    const auto parameters = Member<object>(json, "parameters", "an object");
    if (!parameters.ok()) return Named(what, parameters.status());
    bool binary = binary_;
    if (parameters->has_value()) {
      auto region = RegionOf(**parameters);
      if (!region.ok()) return Named(what, region.status());
      if (region->has_value()) {
        view_.output_regions.resize(view_.outputs.size());
        view_.output_regions.back() = *std::move(region);
      }
      const auto classes = Member<int64_t>(**parameters, kClassification, "a number of classes");
      if (!classes.ok()) return Named(what, classes.status());
      if (classes->has_value()) {
        view_.classes.resize(view_.outputs.size());
        view_.classes.back() = **classes;
      }
      const auto own = Member<bool>(**parameters, "binary_data", "a boolean");
      if (!own.ok()) return Named(what, own.status());
      binary = own->value_or(binary_);
    }
    binary_outputs_.push_back(binary);
  }
  if (!view_.output_regions.empty()) view_.output_regions.resize(view_.outputs.size());
  if (!view_.classes.empty()) view_.classes.resize(view_.outputs.size());
  return absl::OkStatus();
}

void InferJson::WriteOutput(const InferResult& result, size_t index, JsonWriter& json,
                            std::string& binary) const {
  const ModelIo& io = result.model.servable->signature.outputs[result.outputs[index]];
  const OutputTensor& tensor = result.response.outputs[result.outputs[index]];
  const absl::string_view datatype = DatatypeOfAnswer(result, index);
  json.Object([&] {
    json.Member("name", io.name);
    json.Member("datatype", datatype);
    json.List("shape", tensor.shape);
    // Clients that read `parameters` of an output expect the size of its binary data there.
    if (index < result.regions.size() && result.regions[index].has_value()) return;
    if (index < binary_outputs_.size() ? binary_outputs_[index] : binary_) {
      json.Object("parameters", [&] { json.Member("binary_data_size", tensor.bytes.size()); });
      binary += tensor.bytes;
    } else {
      json.Key("data");
      json.Raw([&](std::string& text) { AppendJson(tensor.bytes, datatype, text); });
    }
  });
}

HttpReply InferJson::Encode(const InferResult& result) const {
  const ModelVersion& version = *result.model.version;
  JsonWriter json;
  std::string binary;
  json.Object([&] {
    json.Member("model_name", version.name);
    json.Member("model_version", version.version);
    if (!view_.id.empty()) json.Member("id", view_.id);
    json.Object("parameters", [&] {
      for (const auto& [name, value] : AnswerParameters(result)) {
        json.Key(name);
        const int64_t* number = std::get_if<int64_t>(&value);
        number != nullptr ? json.Value(*number) : json.Value(std::get<std::string>(value));
      }
    });
    json.Array("outputs", [&] {
      for (size_t i = 0; i < result.outputs.size(); ++i) WriteOutput(result, i, json, binary);
    });
  });
  HttpReply reply = {.content_type = "application/json", .body = json.Take()};
  const bool has_binary = binary_ || std::find(binary_outputs_.begin(), binary_outputs_.end(),
                                               true) != binary_outputs_.end();
  if (has_binary) {
    reply.content_type = "application/octet-stream";
    reply.fields = {{"Inference-Header-Content-Length", absl::StrCat(reply.body.size())}};
  }
  reply.body += binary;
  return reply;
}

}  // namespace reprise
