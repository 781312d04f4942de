// Typed ops: how their structs of attributes are read.
//
// A typed op (ROOM/*_op.h) names an op once: its name, its inputs and its attributes with their
// defaults. Passes, plans and rules compare with `kName`, index by `Input`, and read attributes by
// `From`.
//
//   if (node.op != SoftmaxOp::kName) return false;
//   const int64_t axis = SoftmaxOp::From(node).axis;
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/node.h"

namespace reprise {

// Leaves `field` as it is where the attribute is left out.
inline void ReadAttribute(const Attributes& attributes, absl::string_view name, int64_t& field) {
  field = attributes.Int(name, field);
}
inline void ReadAttribute(const Attributes& attributes, absl::string_view name, bool& field) {
  field = attributes.Int(name, field ? 1 : 0) != 0;
}
inline void ReadAttribute(const Attributes& attributes, absl::string_view name, float& field) {
  field = attributes.Float(name, field);
}
inline void ReadAttribute(const Attributes& attributes, absl::string_view name,
                          std::string& field) {
  if (const auto* value = attributes.Get<std::string>(name)) field = *value;
}
inline void ReadAttribute(const Attributes& attributes, absl::string_view name,
                          std::vector<int64_t>& field) {
  if (const auto* value = attributes.Get<std::vector<int64_t>>(name)) field = *value;
}

}  // namespace reprise
