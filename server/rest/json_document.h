// JsonDocument: the JSON of a request, parsed within the memory that all requests share for it.
//
// Threads: one at a time.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/engine/types/memory_budget.h"

namespace simdjson::dom {
class element;
class object;
}  // namespace simdjson::dom

namespace reprise {

class JsonDocument {
 public:
  // `budget` outlives the object, which gives back its share.
  explicit JsonDocument(MemoryBudget& budget);
  ~JsonDocument();

  // Returns the value of `text`, which points into this, not into `text`. NaN and Infinity are as
  // json_numbers has them. Once. Errors: INVALID_ARGUMENT for invalid JSON, RESOURCE_EXHAUSTED
  // for more than a request may send and where the system has no memory, UNAVAILABLE while others
  // have it.
  absl::StatusOr<simdjson::dom::element> Parse(absl::string_view text);
  // Returns the object that the body of a request is. Errors: also INVALID_ARGUMENT where it is
  // another value.
  absl::StatusOr<simdjson::dom::object> ParseObject(absl::string_view body);

 private:
  struct Parser;

  MemoryBudget& budget_;
  int64_t taken_ = 0;
  const std::unique_ptr<Parser> parser_;
};

}  // namespace reprise
