// Dims that are sums of products over symbols: "past + 1", "2 * n", "total - 1".
//
// Whether such a text is an expression depends on the model: where not all of its symbols are dims
// by themselves, as in "batch-size", it is a name like any other. The caller knows which are.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/graph/shape.h"
#include "runtime/shapes/size.h"

namespace reprise {

// Returns the symbols of `text`, in order; none when it has no operator or is no sum of products.
std::vector<std::string> ExpressionSymbols(absl::string_view text);

// `text` with each of its symbols replaced by what `replace` gives for it.
std::string ReplaceSymbols(absl::string_view text,
                           const std::function<std::string(const std::string&)>& replace);

// Returns the size of `dim` under sizes of symbols: a constant, the size that `sizes` has for its
// whole text, or the sum of products that it is. INVALID_ARGUMENT when a symbol has no size or the
// sum is negative.
absl::StatusOr<int64_t> DimSize(const Dim& dim, const std::map<std::string, int64_t>& sizes);
absl::StatusOr<Size> SizeOfDim(const Dim& dim, const std::map<std::string, Size>& sizes);

}  // namespace reprise
