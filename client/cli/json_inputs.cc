#include "client/cli/json_inputs.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise::cli {
namespace {

using Json = nlohmann::json;

absl::Status Wrong(absl::string_view name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("input '", name, "': ", what));
}

// Walks nested lists: their sizes become the shape, the leaves come out flat.
absl::Status Flatten(absl::string_view name, const Json& value, size_t depth,
                     std::vector<int64_t>& shape, std::vector<const Json*>& leaves) {
  if (!value.is_array()) {
    if (depth != shape.size()) return Wrong(name, "its lists are not equally deep");
    leaves.push_back(&value);
    return absl::OkStatus();
  }
  if (depth == shape.size()) {
    if (!leaves.empty()) return Wrong(name, "its lists are not equally deep");
    shape.push_back(static_cast<int64_t>(value.size()));
  }
  if (shape[depth] != static_cast<int64_t>(value.size())) {
    return Wrong(name, absl::StrCat("its lists at depth ", depth, " have ", shape[depth], " and ",
                                    value.size(), " entries"));
  }
  for (const Json& entry : value) {
    RETURN_IF_ERROR(Flatten(name, entry, depth + 1, shape, leaves));
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status Append(absl::string_view name, const Json& leaf, std::vector<std::byte>& bytes) {
  T value{};
  if constexpr (std::is_floating_point_v<T>) {
    if (!leaf.is_number()) return Wrong(name, absl::StrCat("'", leaf.dump(), "' is not a number"));
    value = leaf.get<T>();
  } else {
    if (leaf.is_boolean()) {
      value = leaf.get<bool>();
    } else if (leaf.is_number_unsigned() &&
               leaf.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<T>::max())) {
      value = static_cast<T>(leaf.get<uint64_t>());
    } else if (leaf.is_number_integer() && !leaf.is_number_unsigned() &&
               std::numeric_limits<T>::is_signed &&
               leaf.get<int64_t>() >= static_cast<int64_t>(std::numeric_limits<T>::min())) {
      value = static_cast<T>(leaf.get<int64_t>());
    } else {
      return Wrong(name, absl::StrCat("'", leaf.dump(), "' is not an integer of its datatype"));
    }
  }
  const auto* begin = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof(T));
  return absl::OkStatus();
}

absl::Status AppendText(absl::string_view name, const Json& leaf, std::vector<std::byte>& bytes) {
  if (!leaf.is_string()) return Wrong(name, absl::StrCat("'", leaf.dump(), "' is not a string"));
  const auto& text = leaf.get_ref<const std::string&>();
  const auto size = static_cast<uint32_t>(text.size());
  const auto* begin = reinterpret_cast<const std::byte*>(&size);
  bytes.insert(bytes.end(), begin, begin + sizeof(size));
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  bytes.insert(bytes.end(), data, data + text.size());
  return absl::OkStatus();
}

absl::Status AppendLeaf(const OwnedTensor& tensor, const Json& leaf, std::vector<std::byte>& out) {
  const std::string& type = tensor.datatype;
  if (type == "INT64") return Append<int64_t>(tensor.name, leaf, out);
  if (type == "INT32") return Append<int32_t>(tensor.name, leaf, out);
  if (type == "INT16") return Append<int16_t>(tensor.name, leaf, out);
  if (type == "INT8") return Append<int8_t>(tensor.name, leaf, out);
  if (type == "UINT64") return Append<uint64_t>(tensor.name, leaf, out);
  if (type == "UINT32") return Append<uint32_t>(tensor.name, leaf, out);
  if (type == "UINT16") return Append<uint16_t>(tensor.name, leaf, out);
  if (type == "UINT8") return Append<uint8_t>(tensor.name, leaf, out);
  if (type == "BOOL") return Append<bool>(tensor.name, leaf, out);
  if (type == "FP32") return Append<float>(tensor.name, leaf, out);
  if (type == "FP64") return Append<double>(tensor.name, leaf, out);
  if (type == "BYTES") return AppendText(tensor.name, leaf, out);
  return Wrong(tensor.name, absl::StrCat("datatype '", type, "' cannot be written in JSON"));
}

// Takes the bytes from `data`, and the shape from its nesting unless it is known.
absl::Status SetData(const Json& data, bool shape_known, OwnedTensor& tensor) {
  std::vector<int64_t> shape;
  std::vector<const Json*> leaves;
  RETURN_IF_ERROR(Flatten(tensor.name, data, 0, shape, leaves));
  if (!shape_known) tensor.shape = shape;
  int64_t elements = 1;
  for (int64_t dim : tensor.shape) elements *= dim;
  if (elements != static_cast<int64_t>(leaves.size())) {
    return Wrong(tensor.name, absl::StrCat("shape ", client::ShapeText(tensor.shape), " needs ",
                                           elements, " values, there are ", leaves.size()));
  }
  for (const Json* leaf : leaves) RETURN_IF_ERROR(AppendLeaf(tensor, *leaf, tensor.bytes));
  return absl::OkStatus();
}

constexpr absl::string_view kTextInput = "text";

absl::StatusOr<OwnedTensor> ParseRestTensor(const Json& entry) {
  if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string()) {
    return absl::InvalidArgumentError("every entry of \"inputs\" needs a \"name\"");
  }
  OwnedTensor tensor{.name = entry["name"].get<std::string>()};
  if (!entry.contains("datatype") || !entry["datatype"].is_string()) {
    return Wrong(tensor.name, "it needs a \"datatype\"");
  }
  tensor.datatype = entry["datatype"].get<std::string>();
  if (!entry.contains("shape") || !entry["shape"].is_array()) {
    return Wrong(tensor.name, "it needs a \"shape\"");
  }
  for (const Json& dim : entry["shape"]) {
    if (!dim.is_number_integer()) return Wrong(tensor.name, "its shape is not a list of integers");
    tensor.shape.push_back(dim.get<int64_t>());
  }
  if (!entry.contains("data")) return Wrong(tensor.name, "it needs \"data\"");
  RETURN_IF_ERROR(SetData(entry["data"], /*shape_known=*/true, tensor));
  return tensor;
}

}  // namespace

absl::StatusOr<std::vector<OwnedTensor>> ParseJsonInputs(
    absl::string_view text, const inference::ModelMetadataResponse& metadata) {
  const Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return absl::InvalidArgumentError("the inputs are not valid JSON");
  if (!json.is_object()) return absl::InvalidArgumentError("the inputs must be a JSON object");
  std::vector<OwnedTensor> tensors;
  if (json.contains("inputs") && json["inputs"].is_array() && !json["inputs"].empty() &&
      json["inputs"][0].is_object()) {
    for (const Json& entry : json["inputs"]) {
      ASSIGN_OR_RETURN(OwnedTensor tensor, ParseRestTensor(entry));
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  }
  for (const auto& [name, data] : json.items()) {
    OwnedTensor tensor{.name = name};
    for (const auto& input : metadata.inputs()) {
      if (input.name() == name) tensor.datatype = input.datatype();
    }
    // Texts, of which the server makes the tokens.
    if (tensor.datatype.empty() && name == kTextInput) tensor.datatype = "BYTES";
    if (tensor.datatype.empty()) {
      return Wrong(name, absl::StrCat("model '", metadata.name(), "' has no such input"));
    }
    RETURN_IF_ERROR(SetData(data, /*shape_known=*/false, tensor));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace reprise::cli
