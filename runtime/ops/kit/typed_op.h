// Typed ops: how their structs of attributes are read.
//
// A typed op (ROOM/*_op.h) names an op once: its name, its inputs and its attributes with their
// defaults. Passes, plans and rules compare with `kName`, index by `Input`, and read attributes by
// `From`.
//
//   struct EluOp : NamedOp<"Elu"> {
//     enum Input : size_t { kX };
//     float alpha = 1.0f;
//     OP_ATTRIBUTES(EluOp, alpha)
//   };
//
//   if (node.op != EluOp::kName) return false;
//   const float alpha = EluOp::From(node).alpha;
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/node.h"

namespace reprise {

// The text of an op's name, as an argument of a template.
template <size_t kSize>
struct OpText {
  constexpr OpText(const char (&name)[kSize]) {  // NOLINT(google-explicit-constructor)
    std::copy_n(name, kSize, text);
  }
  char text[kSize];
};

template <OpText kOp>
struct NamedOp {
  static constexpr auto& kName = kOp.text;
};

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

// Reads one attribute for each field; `names` lists them: "alpha, beta".
template <typename... Fields>
void ReadAttributes(const Attributes& attributes, absl::string_view names, Fields&... fields) {
  const auto next = [&] {
    const absl::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 2));
    return name;
  };
  (ReadAttribute(attributes, next(), fields), ...);
}

}  // namespace reprise

// Defines `From` of an op whose attributes are named as the fields that are listed.
#define OP_ATTRIBUTES(Op, ...) OP_ATTRIBUTES_NAMED(Op, #__VA_ARGS__, __VA_ARGS__)

// The same for attributes of these names, in the order of the fields.
#define OP_ATTRIBUTES_NAMED(Op, names, ...)                    \
  void Read(const ::reprise::Attributes& attributes) {         \
    ::reprise::ReadAttributes(attributes, names, __VA_ARGS__); \
  }                                                            \
  static Op From(const ::reprise::Attributes& attributes) {    \
    Op op;                                                     \
    op.Read(attributes);                                       \
    return op;                                                 \
  }                                                            \
  static Op From(const ::reprise::Node& node) { return From(node.attributes); }
