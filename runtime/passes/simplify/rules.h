// The rewrite rules of the canonicalize pass, one idea each.
//
// A rule looks at one node. It returns the value that replaces the node's output 0, the output
// itself when it changed the node in place, or kNone when it does not apply. Errors come from
// shape rules over nodes that it adds: a bug of the rule.
#pragma once

#include "absl/status/statusor.h"
#include "runtime/graph/node.h"

namespace reprise {

using RewriteRule = absl::StatusOr<ValueId> (*)(Graph&, NodeId);

// Nodes that pass their input on: Identity, Dropout, Cast and CastLike to the same dtype, Concat
// and Max of one, Slice of everything, Expand and Tile and Pad to the same shape. CastLike to
// another one no longer reads its second input, so that weights are cast once.
absl::StatusOr<ValueId> ForwardRule(Graph& graph, NodeId node);
// Squeeze, Unsqueeze, Flatten and Reshape become one Reshape with a constant shape, or nothing.
absl::StatusOr<ValueId> ViewRule(Graph& graph, NodeId node);
// Transpose of Transpose, of nothing, or of dims of size 1 alone.
absl::StatusOr<ValueId> TransposeRule(Graph& graph, NodeId node);
// x * 1, x / 1, x + 0 (which may leave a -0), x - 0, x ^ 1; float division by a constant becomes a
// product.
absl::StatusOr<ValueId> ArithmeticRule(Graph& graph, NodeId node);
// Resize between bytes goes by floats, which have a fast kernel.
absl::StatusOr<ValueId> ByteResizeRule(Graph& graph, NodeId node);
// Sum and Mean become Adds, Max and Min of several become pairs, which join other nodes.
absl::StatusOr<ValueId> VariadicRule(Graph& graph, NodeId node);
// x * tanh(softplus(x)) is Mish.
absl::StatusOr<ValueId> MishRule(Graph& graph, NodeId node);
// And, Or, Where, Not with constant conditions.
absl::StatusOr<ValueId> LogicRule(Graph& graph, NodeId node);
// GatherND whose constant indices name every element in order is a Reshape.
absl::StatusOr<ValueId> GatherNdRule(Graph& graph, NodeId node);
// So is Gather of every place in order by places of several dims, as exporters look up each
// position of each row in a padding mask whose rows are laid end to end.
absl::StatusOr<ValueId> WholeGatherRule(Graph& graph, NodeId node);
// Gather of a place in each row, of rows laid end to end, looks it up in each row: GatherND by
// batch dims. Where the places may not lie in their rows (only results of ArgMax and ArgMin do
// for sure) it stays.
absl::StatusOr<ValueId> FlatRowsRule(Graph& graph, NodeId node);
// GatherND whose first places count the rows looks the others up in each row: GatherND by batch
// dims. So does GatherElements of whole pieces, whose places an Expand repeats for every element.
absl::StatusOr<ValueId> CountedRowsRule(Graph& graph, NodeId node);
absl::StatusOr<ValueId> WholePiecesRule(Graph& graph, NodeId node);
// ScatterND to every place in order, as exporters write to a slice that is all of a mask, is its
// updates.
absl::StatusOr<ValueId> WholeScatterRule(Graph& graph, NodeId node);
// Elementwise over Expand: the Expand moves after the node, or goes where broadcasting does it.
absl::StatusOr<ValueId> ExpandRule(Graph& graph, NodeId node);
// Moves a reduction over dims that an Expand in front of it leaves alone before the Expand.
absl::StatusOr<ValueId> ReduceRule(Graph& graph, NodeId node);
// Softmax over the last dim comes before a Reshape that keeps that dim (as old opsets need it).
absl::StatusOr<ValueId> SoftmaxRule(Graph& graph, NodeId node);
// Gemm with a parameter on the right becomes MatMul and Add.
absl::StatusOr<ValueId> GemmRule(Graph& graph, NodeId node);
// com.microsoft.FusedMatMul with a weight on the right, or with its left side transposed, becomes
// Transpose, MatMul and Mul.
absl::StatusOr<ValueId> FusedMatMulRule(Graph& graph, NodeId node);
// MatMul with a weight, and elementwise nodes over one value and operands that broadcast along its
// last dim, come before a Reshape that keeps the last dim: exporters flatten rows around products.
absl::StatusOr<ValueId> FlattenedRowsRule(Graph& graph, NodeId node);
// MatMul of depth 1 by a constant is a Mul that broadcasts: positions times frequencies.
absl::StatusOr<ValueId> OuterProductRule(Graph& graph, NodeId node);
// MatMul of a constant whose rows repeat, such as values of positions for each row of a batch,
// by a weight: an Expand makes the copies of one product.
absl::StatusOr<ValueId> RepeatedRowsRule(Graph& graph, NodeId node);
// Moves a Transpose of an elementwise node over two values that broadcast to the values, where that
// moves no element of either.
absl::StatusOr<ValueId> TransposedBroadcastRule(Graph& graph, NodeId node);
// Einsum of two operands becomes Transpose, MatMul and Reshape, or Mul where it is by element; one
// of more operands a chain of such.
absl::StatusOr<ValueId> EinsumRule(Graph& graph, NodeId node);
// Moves a bias of [heads, size] on features that a Reshape has split before that Reshape.
absl::StatusOr<ValueId> SplitFeaturesRule(Graph& graph, NodeId node);
// Fused nodes of graphs that onnxruntime has optimised become the nodes that our passes know.
absl::StatusOr<ValueId> ContribRule(Graph& graph, NodeId node);
// Attention of ONNX and of onnxruntime becomes its products and Softmax, which fuse_attention
// fuses.
absl::StatusOr<ValueId> NamedAttentionRule(Graph& graph, NodeId node);
absl::StatusOr<ValueId> ProjectedAttentionRule(Graph& graph, NodeId node);
// RotaryEmbedding of either becomes lookups and the products that fuse_rotary fuses.
absl::StatusOr<ValueId> RotaryEmbeddingRule(Graph& graph, NodeId node);
// QuantizeLinear of the result of a DequantizeLinear with the same steps, moved about or
// not, is the integers, moved about likewise.
absl::StatusOr<ValueId> QuantizeRule(Graph& graph, NodeId node);
// onnxruntime's EmbedLayerNormalization becomes lookups, sums and a LayerNormalization.
absl::StatusOr<ValueId> EmbeddingNormRule(Graph& graph, NodeId node);

}  // namespace reprise
