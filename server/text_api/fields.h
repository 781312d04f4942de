// Members of a request's JSON, read with errors that name them.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/tasks/text_call.h"

namespace reprise {

class Fields {
 public:
  // Errors: INVALID_ARGUMENT where `json` is no object.
  static absl::StatusOr<Fields> Of(const simdjson::dom::element& json);

  // Returns the member, unless it is absent or null.
  std::optional<simdjson::dom::element> Find(const char* name) const;
  bool Has(const char* name) const { return Find(name).has_value(); }
  // Returns all of them.
  const simdjson::dom::object& all() const { return object_; }

  // `fallback` where the member is absent. Errors: INVALID_ARGUMENT where it is of another type.
  absl::StatusOr<std::string> Text(const char* name, absl::string_view fallback) const;
  absl::StatusOr<bool> Bool(const char* name, bool fallback) const;
  absl::StatusOr<int64_t> Int(const char* name, int64_t fallback) const;
  absl::StatusOr<std::optional<double>> Number(const char* name) const;

  // Errors: INVALID_ARGUMENT also where the member is absent.
  absl::StatusOr<std::string> WantText(const char* name) const;
  // Reads a text, or a list of texts or of objects with a member "text". `alone`: set where it was
  // one text.
  absl::StatusOr<std::vector<std::string>> WantTexts(const char* name, bool* alone = nullptr) const;
  // Reads a text, a list of texts, a list of ids, or a list of lists of ids.
  absl::StatusOr<std::vector<TextItem>> WantItems(const char* name, bool* alone = nullptr) const;

  // `truncate` and `truncation_direction`, and `truncate_prompt_tokens` as others name it. Where no
  // direction is asked for, the model's folder decides.
  absl::StatusOr<Truncation> TruncationAsked() const;

 private:
  explicit Fields(const simdjson::dom::object& object) : object_(object) {}

  simdjson::dom::object object_;
};

}  // namespace reprise
