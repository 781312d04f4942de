#include "server/hub/safetensors.h"

#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/shape.h"

namespace reprise {
namespace {

float FromBf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

float FromF16(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16;
  const uint32_t exponent = (bits >> 10) & 31;
  const uint32_t fraction = bits & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  // Zero and numbers below the smallest normal one: `fraction` steps of 2^-24.
  const float small = static_cast<float>(fraction) * std::bit_cast<float>(uint32_t{103} << 23);
  return sign != 0 ? -small : small;
}

// A row of the table of dtypes.
struct Format {
  const char* name;
  size_t bytes;
};
constexpr Format kFormats[] = {{"F32", 4}, {"F16", 2}, {"BF16", 2}};

std::optional<Format> FormatOf(const std::string& name) {
  for (const Format& format : kFormats) {
    if (name == format.name) return format;
  }
  return std::nullopt;
}

std::vector<float> ToFloats(const Format& format, absl::string_view bytes) {
  std::vector<float> values(bytes.size() / format.bytes);
  if (format.bytes == 4) {
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  const bool half = format.name[0] == 'F';
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, bytes.data() + 2 * i, 2);
    values[i] = half ? FromF16(bits) : FromBf16(bits);
  }
  return values;
}

absl::StatusOr<Tensor> ReadTensor(const std::string& name, const nlohmann::json& entry,
                                  absl::string_view data) {
  const auto damaged = [&](absl::string_view why) {
    return absl::InvalidArgumentError(absl::StrCat("the tensor \"", name, "\" ", why));
  };
  if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
      !entry.contains("shape") || !entry["shape"].is_array() || !entry.contains("data_offsets") ||
      !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2) {
    return damaged("has no dtype, shape and data_offsets");
  }
  const std::string dtype = entry["dtype"].get<std::string>();
  const std::optional<Format> format = FormatOf(dtype);
  if (!format) {
    return absl::UnimplementedError(
        absl::StrCat("the tensor \"", name, "\" is ", dtype, "; F32, F16 and BF16 are read"));
  }
  Shape shape;
  for (const auto& dim : entry["shape"]) {
    if (!dim.is_number_unsigned()) return damaged("has a shape that is none");
    shape.push_back(dim.get<int64_t>());
  }
  const auto& offsets = entry["data_offsets"];
  if (!offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned()) {
    return damaged("has data_offsets that are none");
  }
  const auto begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
  const auto elements = CheckedNumElements(shape);
  if (begin > end || end > data.size()) return damaged("lies outside of the file");
  if (!elements.ok() || static_cast<uint64_t>(*elements) != (end - begin) / format->bytes ||
      (end - begin) % format->bytes != 0) {
    return damaged("has another number of bytes than its shape takes");
  }
  return Tensor::FromVector(DType::kFloat32, shape,
                            ToFloats(*format, data.substr(begin, end - begin)));
}

}  // namespace

absl::StatusOr<std::map<std::string, Tensor>> ReadSafetensors(absl::string_view bytes) {
  uint64_t header = 0;
  if (bytes.size() < sizeof(header)) return absl::InvalidArgumentError("the file is cut");
  std::memcpy(&header, bytes.data(), sizeof(header));
  bytes.remove_prefix(sizeof(header));
  if (header > bytes.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the header has ", header, " bytes, the file ", bytes.size()));
  }
  const absl::string_view text = bytes.substr(0, header);
  const nlohmann::json json =
      nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return absl::InvalidArgumentError("the header is not a JSON object");
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, entry] : json.items()) {
    if (name == "__metadata__") continue;
    ASSIGN_OR_RETURN(tensors[name], ReadTensor(name, entry, bytes.substr(header)));
  }
  return tensors;
}

}  // namespace reprise
