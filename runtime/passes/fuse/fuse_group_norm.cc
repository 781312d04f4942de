// GroupNormalization as exporters without that op spell it: channels are joined to groups by a
// Reshape, each group is normalised by InstanceNormalization, and after the Reshape back a Mul and
// an Add give every channel its scale and bias.
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/reduce/channel_norm_op.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
namespace {

// Returns the operand of the Reshape that makes `value`; kNone where none does.
ValueId BeforeReshape(const Graph& graph, ValueId value) {
  const NodeId producer = ProducerOf(graph, value);
  return producer == kNone || graph.node(producer).op != ReshapeOp::kName
             ? kNone
             : graph.node(producer).inputs[0];
}

// Returns whether it is a weight of one element a channel of `shape`, [batch, channels, dims...].
bool IsPerChannel(const Graph& graph, ValueId weight, const Shape& shape) {
  if (!IsWeight(graph, weight) || !IsFloat32(graph, weight)) return false;
  const Shape& own = *ShapeOf(graph, weight);
  if (own.size() > shape.size() || own.size() + 1 < shape.size()) return false;
  Shape wanted(own.size(), 1);
  wanted[own.size() + 1 - shape.size()] = shape[1];
  return own == wanted;
}

struct Affine {
  ValueId scale, bias;  // weights [channels]
};

// Returns the weights of groups for their channels.
absl::StatusOr<ValueId> OfChannels(Graph& graph, ValueId weight, int64_t channels) {
  const int64_t groups = (*ShapeOf(graph, weight))[0];
  if (groups == channels) return weight;
  const Shape wide = {groups, channels / groups};
  const ValueId sizes = graph.AddConstant("", Tensor::Int64s({groups, channels / groups}));
  ASSIGN_OR_RETURN(weight, AddReshape(graph, weight, {groups, 1}));
  ASSIGN_OR_RETURN(weight,
                   AddWeight(graph, ExpandOp::kName, {}, {weight, sizes}, DType::kFloat32, wide));
  return AddReshape(graph, weight, {channels});
}

// Mul or Add, alone in reading `result`, of one weight a channel.
absl::Status Absorb(Graph& graph, absl::string_view op, const Shape& shape, ValueId& result,
                    Affine& affine) {
  const NodeId user = OnlyUser(graph, result);
  if (user == kNone || graph.node(user).op != op) return absl::OkStatus();
  ValueId weight = OtherInput(graph.node(user), result);
  if (weight == kNone || !IsPerChannel(graph, weight, shape)) return absl::OkStatus();
  result = graph.node(user).outputs[0];
  ASSIGN_OR_RETURN(weight, AddReshape(graph, weight, {shape[1]}));
  const auto apply = [&](ValueId& to) -> absl::Status {
    ASSIGN_OR_RETURN(to, AddWeight(graph, op, {}, {to, weight}, DType::kFloat32, {shape[1]}));
    return absl::OkStatus();
  };
  if (op == MulOp::kName) RETURN_IF_ERROR(apply(affine.scale));
  return apply(affine.bias);
}

absl::StatusOr<bool> FuseGroupNormAt(Graph& graph, NodeId id) {
  const Node node = graph.node(id);  // A copy: adding nodes moves them.
  if (node.op != InstanceNormalizationOp::kName) return false;
  const ValueId x = BeforeReshape(graph, node.inputs[0]);
  if (x == kNone || !IsFloat32(graph, x) || !IsWeight(graph, node.inputs[1]) ||
      !IsWeight(graph, node.inputs[2])) {
    return false;
  }
  const Shape shape = *ShapeOf(graph, x), grouped = *ShapeOf(graph, node.inputs[0]);
  if (shape.size() < 3 || shape[0] != grouped[0] || shape[1] == 0 || grouped[1] == 0 ||
      shape[1] % grouped[1] != 0) {
    return false;
  }
  const NodeId back = OnlyUser(graph, node.outputs[0]);
  if (back == kNone || graph.node(back).op != ReshapeOp::kName) return false;
  ValueId result = graph.node(back).outputs[0];
  if (!HasShape(graph, result, shape)) return false;
  Affine affine{};
  ASSIGN_OR_RETURN(affine.scale, OfChannels(graph, node.inputs[1], shape[1]));
  ASSIGN_OR_RETURN(affine.bias, OfChannels(graph, node.inputs[2], shape[1]));
  RETURN_IF_ERROR(Absorb(graph, MulOp::kName, shape, result, affine));
  RETURN_IF_ERROR(Absorb(graph, AddOp::kName, shape, result, affine));
  ASSIGN_OR_RETURN(const ValueId fused,
                   AddInferred(graph, GroupNormalizationOp::kName, {x, affine.scale, affine.bias},
                               {{"epsilon", InstanceNormalizationOp::From(node.attributes).epsilon},
                                {"num_groups", grouped[1]}},
                               node.name));
  Replace(graph, result, fused);
  return true;
}

}  // namespace

std::unique_ptr<Pass> FuseGroupNorm() { return PassOfNodes("fuse_group_norm", FuseGroupNormAt); }

}  // namespace reprise
