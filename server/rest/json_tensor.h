// Elements of a tensor <-> numbers in JSON.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace simdjson::dom {
class element;
}

namespace reprise {

// Appends to `bytes` the elements of `data` as a tensor of `datatype` ("FP32") and `shape` has
// them, row-major: a flat list, or lists in lists as the shape says. BYTES are texts, each after
// its length in four bytes. FP16 and BF16 are rounded from the written numbers. Errors:
// INVALID_ARGUMENT for a datatype that does not exist, a list of another length than the shape
// says, an element that is no number of the datatype; by its position.
absl::Status AppendElements(const simdjson::dom::element& data, absl::string_view datatype,
                            absl::Span<const int64_t> shape, std::string& bytes);

// Appends the same, of lists in lists alone: a `shape` without dims is an element without a list.
// A text may also be {"b64": its bytes in base64}.
absl::Status AppendNestedElements(const simdjson::dom::element& data, absl::string_view datatype,
                                  absl::Span<const int64_t> shape, std::string& bytes);

// Appends to `json` a flat list of the elements in `bytes`. Numbers are the shortest that read back
// as the same; NaN and Infinity are written as such, which is not JSON, but clients understand it.
// Invalid UTF-8 is replaced. `datatype` is one that the server answers with.
void AppendJson(absl::string_view bytes, absl::string_view datatype, std::string& json);

// Appends the same as lists in lists, as `shape` says; without dims an element without a list.
void AppendNestedJson(absl::string_view bytes, absl::string_view datatype,
                      absl::Span<const int64_t> shape, std::string& json);

// Returns the bytes of the first `count` elements, and removes them from `bytes`.
absl::string_view TakeElements(absl::string_view datatype, int64_t count, absl::string_view& bytes);

}  // namespace reprise
