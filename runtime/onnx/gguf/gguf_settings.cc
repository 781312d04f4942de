#include "runtime/onnx/gguf/gguf_settings.h"

#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {

absl::StatusOr<GgufSettings> GgufSettings::Of(const GgufFile& file) {
  ASSIGN_OR_RETURN(const std::optional<std::string> name, file.Text("general.architecture"));
  if (!name.has_value()) {
    return absl::InvalidArgumentError("there is no member 'general.architecture'");
  }
  return GgufSettings(file, *name);
}

std::string GgufSettings::Key(absl::string_view name) const {
  return absl::StrCat(architecture_, ".", name);
}

absl::StatusOr<int64_t> GgufSettings::Size(absl::string_view name) const {
  if (!Has(name)) {
    return absl::InvalidArgumentError(absl::StrCat("there is no member '", Key(name), "'"));
  }
  return Size(name, 0);
}

absl::StatusOr<int64_t> GgufSettings::Size(absl::string_view name, int64_t fallback) const {
  const std::string key = Key(name);
  const GgufValue* const value = file_->Find(key);
  if (value == nullptr) return fallback;
  int64_t size = 0;
  if (const auto* list = std::get_if<std::vector<int64_t>>(value); list != nullptr) {
    if (list->empty() || absl::c_any_of(*list, [&](int64_t x) { return x != list->front(); })) {
      return absl::UnimplementedError(
          absl::StrCat("member '", key, "' differs between layers, which is not supported"));
    }
    size = list->front();
  } else {
    ASSIGN_OR_RETURN(const std::optional<int64_t> number, file_->Int(key));
    size = *number;
  }
  if (size >= 1 && size <= kMost) return size;
  return absl::InvalidArgumentError(
      absl::StrCat("member '", key, "' is ", size, ", not from 1 to ", kMost));
}

absl::StatusOr<double> GgufSettings::Number(absl::string_view name, double fallback) const {
  ASSIGN_OR_RETURN(const std::optional<double> value, file_->Number(Key(name)));
  return value.value_or(fallback);
}

absl::StatusOr<double> GgufSettings::Positive(absl::string_view name,
                                              std::optional<double> fallback) const {
  if (!Has(name) && !fallback.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("there is no member '", Key(name), "'"));
  }
  ASSIGN_OR_RETURN(const double value, Number(name, fallback.value_or(0)));
  if (value > 0 && std::isfinite(value)) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("member '", Key(name), "' is ", value, ", not above 0"));
}

absl::StatusOr<std::string> GgufSettings::Text(absl::string_view name, std::string fallback) const {
  ASSIGN_OR_RETURN(const std::optional<std::string> value, file_->Text(Key(name)));
  return value.value_or(std::move(fallback));
}

}  // namespace reprise
