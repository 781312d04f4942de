// The nodes of a model in an order in which every value is defined before it is used, with calls
// of the model's own functions replaced by their bodies. The nodes of an If's branches lie next
// to it; its inputs are then the condition and the results of both branches. The nodes of a
// Loop's body do too, see ops/control/loop.h; a Scan becomes a Loop.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/load_budget.h"
#include "runtime/onnx/file/onnx_proto.h"

namespace reprise {

// Domain ("" for ai.onnx) -> opset version.
using OpsetMap = std::map<std::string, int64_t>;

struct FlatNode {
  const onnx::NodeProto* proto;
  const OpsetMap* opsets;
  bool is_control = false;  // one of those: it has the operands that our op of that name has
  // The model's node that this one is a step of; nullptr: itself.
  const onnx::NodeProto* source = nullptr;
};

struct FlatModel {
  std::vector<FlatNode> nodes;
  // The nodes and operator sets that `nodes` points into besides the model.
  std::deque<onnx::NodeProto> inlined;
  std::deque<OpsetMap> opsets;
};

// "" and "ai.onnx" are one domain.
std::string CanonicalDomain(const std::string& domain);

// INVALID_ARGUMENT naming the node for values defined twice, used but never defined, or that depend
// on themselves; for functions that call themselves. RESOURCE_EXHAUSTED once functions and bodies
// make more than `budget` has. `model` must outlive the result.
absl::StatusOr<FlatModel> FlattenModel(const onnx::ModelProto& model, LoadBudget& budget);

}  // namespace reprise
