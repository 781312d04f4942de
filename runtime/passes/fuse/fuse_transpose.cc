// Fuses a Transpose of the last two dims of a product's right side, which is no weight, into
// it: the kernels of such products transpose their operand on its way into panels.
#include "runtime/graph/graph.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/products/matmul_op.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
namespace {

absl::StatusOr<bool> FuseTransposeAt(Graph& graph, NodeId id) {
  if (graph.node(id).op != MatMulOp::kName) return false;
  const ValueId right = graph.node(id).inputs[1];
  const Node* transpose = graph.ProducerIf(right, TransposeOp::kName);
  if (transpose == nullptr || OnlyUser(graph, right) != id || !IsFloat32(graph, right)) {
    return false;
  }
  const size_t rank = ShapeOf(graph, right)->size();
  if (rank < 2 || transpose->attributes.Ints("perm") != LastDimsSwapped(rank)) return false;
  const NodeId producer = graph.value(right).producer;
  graph.SetInput(id, 1, transpose->inputs[0]);
  Node& product = graph.node(id);
  product.op = FusedMatMulOp::kName;
  product.attributes.Set("transB", int64_t{1});
  RemoveIfDead(graph, producer);
  return true;
}

}  // namespace

std::unique_ptr<Pass> FuseTranspose() { return PassOfNodes("fuse_transpose", FuseTransposeAt); }

}  // namespace reprise
