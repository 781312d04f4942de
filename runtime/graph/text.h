// The text form of a graph: golden tests read it, `dump` prints it, and keys are made of it.
//
//   graph {
//     input %input_ids: i64[batch, sequence]
//     param %w: f32[384, 384] = p0
//     param %w2: f32[384, 384] = Transpose{perm = [1, 0]}(p1)
//     const %c: i64[2] = {0, -1}
//     %x: f32[2, 16, 384] = LayerNormalization(%a, %w, _) {axis = -1, epsilon = 1e-05}
//     %q: f32[2, 4], _, %k: f32[2, 4] = Split(%x) {axis = -1} @split_qk
//     output %x
//   }
//
// A type without a shape (`f32` or `?`) is a value not yet inferred. A left-out optional operand is
// `_`; `@` gives the model's name of a node; `overridable` ends the line of an initialiser that a
// request may override. Names that are not identifiers are quoted as C strings. Floats print so
// that they parse back to the same bits (inf, -inf, nan; a NaN of other bits is `nan(0x7fc00001)`);
// tensors above 16 elements print as hex"…" bytes. The parts of a parameter expression print
// without types, unless asked for, so a parsed expression knows dtype and shape of the whole alone.
// Attributes: integers `1`, floats with a point or exponent, strings quoted, lists in [ ] (an empty
// list is `ints[]`, `floats[]`, `strings[]`), tensors `f32[2]{1, 2}`, graphs nested in braces.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "runtime/graph/node.h"

namespace reprise {

struct PrintOptions {
  // False: values are numbered in order of definition (%0, %1, ...) and node names are left out,
  // so that two graphs that differ in names alone print alike: the canonical text of a key.
  bool names = true;
  // True: parts of a parameter expression print with their types, `Transpose(f32[2, 3] p1)`, so
  // that a parsed expression knows all of them.
  bool part_types = false;
};

std::string Print(const Graph& graph, const PrintOptions& options = {});
std::string PrintAttributes(const Attributes& attributes);  // "{axis = 1}", "" when empty
std::string PrintTensor(const Tensor& tensor);              // "f32[2]{1, 2}"

// Parses a graph; Parse(Print(g)) prints as g does. INVALID_ARGUMENT with line and column
// otherwise.
absl::StatusOr<Graph> Parse(absl::string_view text);

}  // namespace reprise
