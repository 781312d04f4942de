#include "server/rest/json_tensor.h"

#include <simdjson.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/shape.h"
#include "runtime/graph/tensor.h"
#include "runtime/json/json_writer.h"
#include "server/rest/json_numbers.h"
#include "server/wire/datatype.h"

namespace reprise {
namespace {

using simdjson::dom::element;

template <typename T>
void AppendRaw(T value, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

std::string Text(const element& json) { return simdjson::minify(json).substr(0, 40); }

absl::Status NoElement(const element& json, absl::string_view datatype) {
  return absl::InvalidArgumentError(absl::StrCat("is ", Text(json), ", no ", datatype));
}

// `T` is the type of the elements in memory.
template <typename T>
absl::Status AppendInteger(const element& json, absl::string_view datatype, std::string& bytes) {
  int64_t number = 0;
  uint64_t large = 0;
  const bool is_small = json.get(number) == simdjson::SUCCESS;
  if (!is_small && json.get(large) != simdjson::SUCCESS) return NoElement(json, datatype);
  const bool fits = is_small ? std::in_range<T>(number) : std::in_range<T>(large);
  if (!fits) {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", Text(json), ", out of the range of ", datatype));
  }
  AppendRaw(is_small ? static_cast<T>(number) : static_cast<T>(large), bytes);
  return absl::OkStatus();
}

// `round` makes the element of a double, `wide` a number of the element.
template <typename Round, typename Wide>
absl::Status AppendFloat(const element& json, absl::string_view datatype, std::string& bytes,
                         Round round, Wide wide) {
  if (const std::optional<double> odd = OddNumber(json)) {
    AppendRaw(round(*odd), bytes);
    return absl::OkStatus();
  }
  double number = 0;
  if (!json.is_number() || json.get(number) != simdjson::SUCCESS) return NoElement(json, datatype);
  const auto rounded = round(number);
  if (!std::isfinite(wide(rounded))) {
    return absl::InvalidArgumentError(
        absl::StrCat("is ", Text(json), ", out of the range of ", datatype));
  }
  AppendRaw(rounded, bytes);
  return absl::OkStatus();
}

absl::Status AppendBool(const element& json, std::string& bytes) {
  bool flag = false;
  int64_t number = 0;
  if (json.get(flag) != simdjson::SUCCESS) {
    if (json.get(number) != simdjson::SUCCESS || (number != 0 && number != 1)) {
      return NoElement(json, "BOOL");
    }
    flag = number == 1;
  }
  AppendRaw(flag, bytes);
  return absl::OkStatus();
}

absl::Status AppendBase64(const element& json, std::string& bytes) {
  std::string_view coded;
  std::string text;
  if (json.at_key("b64").get(coded) != simdjson::SUCCESS ||
      !absl::Base64Unescape(absl::string_view(coded.data(), coded.size()), &text)) {
    return NoElement(json, "BYTES: base64 is {\"b64\": \"...\"}");
  }
  AppendRaw(static_cast<uint32_t>(text.size()), bytes);
  bytes += text;
  return absl::OkStatus();
}

absl::Status AppendText(const element& json, std::string& bytes) {
  std::string_view found;
  if (json.get(found) != simdjson::SUCCESS) return NoElement(json, "BYTES");
  AppendRaw(static_cast<uint32_t>(found.size()), bytes);
  bytes.append(found.data(), found.size());
  return absl::OkStatus();
}

absl::Status AppendElement(const element& json, DType dtype, absl::string_view datatype,
                           std::string& bytes) {
  const auto to_float = [](double number) { return static_cast<float>(number); };
  const auto to_half = [](double number) { return FloatToHalf(static_cast<float>(number)); };
  const auto to_brain = [](double number) { return FloatToBFloat16(static_cast<float>(number)); };
  const auto same = [](auto number) { return number; };
  switch (dtype) {
    case DType::kBool:
      return AppendBool(json, bytes);
    case DType::kInt8:
      return AppendInteger<int8_t>(json, datatype, bytes);
    case DType::kInt16:
      return AppendInteger<int16_t>(json, datatype, bytes);
    case DType::kInt32:
      return AppendInteger<int32_t>(json, datatype, bytes);
    case DType::kInt64:
      return AppendInteger<int64_t>(json, datatype, bytes);
    case DType::kUInt8:
      return AppendInteger<uint8_t>(json, datatype, bytes);
    case DType::kUInt16:
      return AppendInteger<uint16_t>(json, datatype, bytes);
    case DType::kUInt32:
      return AppendInteger<uint32_t>(json, datatype, bytes);
    case DType::kUInt64:
      return AppendInteger<uint64_t>(json, datatype, bytes);
    case DType::kFloat16:
      return AppendFloat(json, datatype, bytes, to_half, HalfToFloat);
    case DType::kBFloat16:
      return AppendFloat(json, datatype, bytes, to_brain, BFloat16ToFloat);
    case DType::kFloat32:
      return AppendFloat(json, datatype, bytes, to_float, same);
    case DType::kFloat64:
      return AppendFloat(json, datatype, bytes, same, same);
    case DType::kUndefined:
      break;
  }
  return AppendText(json, bytes);
}

// Walks lists in lists; `position` counts elements.
class Appender {
 public:
  // `base64`: texts may be {"b64": "..."}.
  Appender(DType dtype, absl::string_view datatype, bool base64, std::string& bytes)
      : dtype_(dtype), datatype_(datatype), base64_(base64), bytes_(bytes) {}

  // `shape` empty: one element.
  absl::Status Append(const element& json, absl::Span<const int64_t> shape) {
    simdjson::dom::array list;
    if (shape.empty()) {
      const bool coded = base64_ && dtype_ == DType::kUndefined && json.is_object();
      const absl::Status status =
          coded ? AppendBase64(json, bytes_) : AppendElement(json, dtype_, datatype_, bytes_);
      if (!status.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("element ", position_, " ", status.message()));
      }
      ++position_;
      return absl::OkStatus();
    }
    if (json.get(list) != simdjson::SUCCESS) {
      return absl::InvalidArgumentError(absl::StrCat("element ", position_, " is ", Text(json),
                                                     ", expected a list of ", shape[0]));
    }
    int64_t size = 0;
    for (const element each : list) {
      if (++size > shape[0]) break;
      RETURN_IF_ERROR(Append(each, shape.subspan(1)));
    }
    if (size == shape[0]) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat("the list at element ", position_, " has ",
                                                   size > shape[0] ? "more" : absl::StrCat(size),
                                                   size > shape[0] ? " than " : " elements, not ",
                                                   shape[0], size > shape[0] ? " elements" : ""));
  }

 private:
  const DType dtype_;
  const absl::string_view datatype_;
  const bool base64_;
  std::string& bytes_;
  int64_t position_ = 0;
};

bool IsNested(const element& data) {
  simdjson::dom::array list;
  if (data.get(list) != simdjson::SUCCESS) return false;
  return list.begin() != list.end() && (*list.begin()).is_array();
}

// Writes the elements of `bytes` as `write` does, which returns a number that JSON can have.
template <typename T, typename Write>
void AppendList(absl::string_view bytes, std::string& json, Write write) {
  for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    if (i > 0) json += ',';
    T value;
    std::memcpy(&value, bytes.data() + i, sizeof(T));
    write(value);
  }
}

template <typename T>
void AppendNumber(T value, std::string& json) {
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) {
      json += std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
      return;
    }
    if (value == 0 && std::signbit(value)) {
      json += "-0.0";  // "-0" would be read as an integer, which has no sign at zero
      return;
    }
  }
  char digits[32];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof(digits), value);
  json.append(digits, end.ptr);
}

template <typename T>
void AppendNumbers(absl::string_view bytes, std::string& json) {
  AppendList<T>(bytes, json, [&](T value) { AppendNumber(value, json); });
}

void AppendTexts(absl::string_view bytes, std::string& json) {
  bool first = true;
  while (bytes.size() >= sizeof(uint32_t)) {
    uint32_t size = 0;
    std::memcpy(&size, bytes.data(), sizeof(size));
    bytes.remove_prefix(sizeof(size));
    if (!first) json += ',';
    first = false;
    json += JsonText(bytes.substr(0, size));
    bytes.remove_prefix(std::min<size_t>(size, bytes.size()));
  }
}

// Returns the type of the elements of `datatype`; kUndefined: texts.
absl::StatusOr<DType> TypeOf(absl::string_view datatype) {
  const std::optional<DType> dtype = ParseProtocolName(datatype);
  if (dtype.has_value() || datatype == kTextDatatype) return dtype.value_or(DType::kUndefined);
  return absl::InvalidArgumentError(absl::StrCat("datatype \"", datatype, "\" does not exist"));
}

}  // namespace

absl::Status AppendElements(const element& data, absl::string_view datatype,
                            absl::Span<const int64_t> shape, std::string& bytes) {
  ASSIGN_OR_RETURN(const DType dtype, TypeOf(datatype));
  const absl::StatusOr<int64_t> elements = CheckedNumElements(shape);
  if (!elements.ok()) return absl::InvalidArgumentError(elements.status().message());
  Appender appender(dtype, datatype, /*base64=*/false, bytes);
  if (IsNested(data)) return appender.Append(data, shape);
  return appender.Append(data, {*elements});
}

absl::Status AppendNestedElements(const element& data, absl::string_view datatype,
                                  absl::Span<const int64_t> shape, std::string& bytes) {
  ASSIGN_OR_RETURN(const DType dtype, TypeOf(datatype));
  return Appender(dtype, datatype, /*base64=*/true, bytes).Append(data, shape);
}

absl::string_view TakeElements(absl::string_view datatype, int64_t count,
                               absl::string_view& bytes) {
  size_t size = 0;
  if (const std::optional<DType> dtype = ParseProtocolName(datatype)) {
    size = static_cast<size_t>(count) * DTypeSize(*dtype);
  } else {
    for (; count > 0 && size + sizeof(uint32_t) <= bytes.size(); --count) {
      uint32_t length = 0;
      std::memcpy(&length, bytes.data() + size, sizeof(length));
      size += sizeof(length) + length;
    }
  }
  const absl::string_view taken = bytes.substr(0, size);
  bytes.remove_prefix(taken.size());
  return taken;
}

void AppendNestedJson(absl::string_view bytes, absl::string_view datatype,
                      absl::Span<const int64_t> shape, std::string& json) {
  if (shape.size() == 1) return AppendJson(bytes, datatype, json);
  if (shape.empty()) {
    std::string list;
    AppendJson(bytes, datatype, list);
    json.append(list, 1, list.size() - 2);  // the brackets are left out
    return;
  }
  json += '[';
  int64_t elements = 1;
  for (const int64_t dim : shape.subspan(1)) elements *= dim;
  for (int64_t i = 0; i < shape[0]; ++i) {
    if (i > 0) json += ',';
    AppendNestedJson(TakeElements(datatype, elements, bytes), datatype, shape.subspan(1), json);
  }
  json += ']';
}

void AppendJson(absl::string_view bytes, absl::string_view datatype, std::string& json) {
  json += '[';
  switch (ParseProtocolName(datatype).value_or(DType::kUndefined)) {
    case DType::kBool:
      AppendList<uint8_t>(bytes, json, [&](uint8_t value) { json += value ? "true" : "false"; });
      break;
    case DType::kInt8:
      AppendNumbers<int8_t>(bytes, json);
      break;
    case DType::kInt16:
      AppendNumbers<int16_t>(bytes, json);
      break;
    case DType::kInt32:
      AppendNumbers<int32_t>(bytes, json);
      break;
    case DType::kInt64:
      AppendNumbers<int64_t>(bytes, json);
      break;
    case DType::kUInt8:
      AppendNumbers<uint8_t>(bytes, json);
      break;
    case DType::kUInt16:
      AppendNumbers<uint16_t>(bytes, json);
      break;
    case DType::kUInt32:
      AppendNumbers<uint32_t>(bytes, json);
      break;
    case DType::kUInt64:
      AppendNumbers<uint64_t>(bytes, json);
      break;
    case DType::kFloat16:
      AppendList<uint16_t>(bytes, json,
                           [&](uint16_t half) { AppendNumber(HalfToFloat(half), json); });
      break;
    case DType::kBFloat16:
      AppendList<uint16_t>(bytes, json,
                           [&](uint16_t half) { AppendNumber(BFloat16ToFloat(half), json); });
      break;
    case DType::kFloat32:
      AppendNumbers<float>(bytes, json);
      break;
    case DType::kFloat64:
      AppendNumbers<double>(bytes, json);
      break;
    case DType::kUndefined:
      AppendTexts(bytes, json);
      break;
  }
  json += ']';
}

}  // namespace reprise
