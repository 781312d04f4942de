// Signature: the sizes of a model's axes, read off the shapes of its inputs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/graph/shape.h"
#include "runtime/onnx/importer.h"

namespace reprise {

// The size of every symbol that the dims of `inputs` name, such that `shapes` (by input; a nullptr
// is left out) agree with them. INVALID_ARGUMENT naming the input, what it should be and what it
// is: a wrong rank, a negative size, a constant dim that differs, a symbol with two sizes, an
// expression that does not come out.
absl::StatusOr<std::map<std::string, int64_t>> MatchShapes(const std::vector<ModelIo>& inputs,
                                                           absl::Span<const Shape* const> shapes);

// "[batch, sequence, 384]".
std::string DimsToString(const std::vector<Dim>& dims);

}  // namespace reprise
