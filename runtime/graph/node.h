// Node: an op applied to values of a graph. Code that looks at nodes alone (the meaning of an op,
// its attributes) needs no more of a graph than this.
//
// Threads: const methods from any thread; no concurrent change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/graph/attribute.h"

namespace reprise {

struct Value;

using ValueId = int32_t;
using NodeId = int32_t;
inline constexpr int32_t kNone = -1;  // "no value" (an optional input left out), "no node"

struct Node {
  bool removed = false;
  std::string op;    // "MatMul", "com.microsoft.BiasGelu", "reprise.Attention"
  std::string name;  // the model's name of it, for messages; may be empty
  // The op of the model's node, named like this one, that this one is a step of; empty where it is
  // `op` itself. It serves messages: the text form leaves it out.
  std::string source_op;
  Attributes attributes;
  std::vector<ValueId> inputs;   // kNone where an optional input is left out
  std::vector<ValueId> outputs;  // kNone where an optional output is left out

  ValueId input(size_t i) const { return i < inputs.size() ? inputs[i] : kNone; }
  ValueId output(size_t i) const { return i < outputs.size() ? outputs[i] : kNone; }
};

// Returns the op of the model's node that `node` is, or is a step of.
const std::string& SourceOp(const Node& node);
// Returns "Reshape '/encoder/Reshape_3'", "QLinearConv 'conv', step Conv": how messages name a
// node; and the same without the step.
std::string NodeLabel(const Node& node);
std::string SourceLabel(const Node& node);

}  // namespace reprise
