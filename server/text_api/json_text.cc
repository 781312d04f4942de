#include "server/text_api/json_text.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace reprise {

void AppendQuoted(absl::string_view text, std::string& json) {
  json += nlohmann::json(std::string(text))
              .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string Quoted(absl::string_view text) {
  std::string json;
  AppendQuoted(text, json);
  return json;
}

void AppendNumber(float value, std::string& json) {
  if (!std::isfinite(value)) {
    json += "null";
    return;
  }
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value);
  json.append(digits, end.ptr);
}

void AppendNumbers(absl::Span<const float> values, std::string& json) {
  json.reserve(json.size() + values.size() * 14 + 2);
  json += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) json += ',';
    AppendNumber(values[i], json);
  }
  json += ']';
}

void AppendRows(absl::Span<const float> values, int64_t rows, std::string& json) {
  const auto count = static_cast<size_t>(rows);
  const size_t width = count == 0 ? 0 : values.size() / count;
  json += '[';
  for (size_t row = 0; row < count; ++row) {
    if (row > 0) json += ',';
    AppendNumbers(values.subspan(row * width, width), json);
  }
  json += ']';
}

void AppendBase64(absl::Span<const float> values, std::string& json) {
  const absl::string_view bytes(reinterpret_cast<const char*>(values.data()),
                                values.size() * sizeof(float));
  absl::StrAppend(&json, "\"", absl::Base64Escape(bytes), "\"");
}

}  // namespace reprise
