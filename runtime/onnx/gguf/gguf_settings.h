// GgufSettings: members of metadata that belong to the model's architecture: "llama.block_count".
//
// Errors name the member: INVALID_ARGUMENT where it is missing, has another type or is out of
// range. Ownership: borrows the file. Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/onnx/gguf/gguf_file.h"

namespace reprise {

class GgufSettings {
 public:
  // Nothing that multiplies two of them overflows.
  static constexpr int64_t kMost = 1 << 24;

  static absl::StatusOr<GgufSettings> Of(const GgufFile& file);

  const std::string& architecture() const { return architecture_; }
  const GgufFile& file() const { return *file_; }
  std::string Key(absl::string_view name) const;
  bool Has(absl::string_view name) const { return file_->Find(Key(name)) != nullptr; }

  // From 1 to kMost. A list of equal numbers, one a layer, is that number.
  absl::StatusOr<int64_t> Size(absl::string_view name) const;
  absl::StatusOr<int64_t> Size(absl::string_view name, int64_t fallback) const;
  absl::StatusOr<double> Number(absl::string_view name, double fallback) const;
  // Above 0 and finite.
  absl::StatusOr<double> Positive(absl::string_view name, std::optional<double> fallback) const;
  absl::StatusOr<std::string> Text(absl::string_view name, std::string fallback) const;

 private:
  GgufSettings(const GgufFile& file, std::string architecture)
      : file_(&file), architecture_(std::move(architecture)) {}

  const GgufFile* file_;
  std::string architecture_;
};

}  // namespace reprise
