// Numbers, lists and tensors of the text form of a graph.
//
// Private to the parser (text_parser.cc). Errors are the lexer's: INVALID_ARGUMENT with the place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/graph/attribute.h"
#include "runtime/graph/tensor.h"
#include "runtime/graph/text_lexer.h"

namespace reprise {

absl::StatusOr<int64_t> ReadInteger(TextLexer& lexer);

// Returns the number that `text`, read at `position`, stands for: a float where it has a point, an
// exponent, inf or nan, else an int.
absl::StatusOr<Attribute> ToNumber(TextLexer& lexer, const std::string& text, size_t position);

// Reads "[1, 2]" (ints), "[1, 2.5]" (floats) or ["a", "b"] (strings); not empty.
absl::StatusOr<Attribute> ReadList(TextLexer& lexer);

// Reads "{1, 2, 3}", each in the dtype's own range, or hex "0a0b" with the bytes as they lie in
// memory: as many as `shape` has.
absl::StatusOr<Tensor> ReadTensorBody(TextLexer& lexer, DType dtype, Shape shape);

}  // namespace reprise
