// The passes that fuse several nodes into one that a kernel serves, or split one for kernels.
//
// One factory each; pipeline.cc holds the order in which they run. A rewrite fires only where it is
// known to keep the answers: shapes, dtypes, the values of constants and the number of uses are
// checked, and near matches of the pattern stay as they are. On a symbolic graph, rewrites that
// need shapes do nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>

#include "runtime/passes/kit/pass.h"

namespace reprise {

// Means, differences, squares and roots become LayerNormalization.
std::unique_ptr<Pass> FuseLayerNorm();
// Squares, means and roots without a difference become RMSNormalization.
std::unique_ptr<Pass> FuseRmsNorm();
// Channels joined to groups, InstanceNormalization, scale and bias become GroupNormalization.
std::unique_ptr<Pass> FuseGroupNorm();
// Fuses the erf and tanh forms into Gelu, the sigmoid form into com.microsoft.QuickGelu.
std::unique_ptr<Pass> FuseGelu();
// MatMul with a parameter on the right, bias and activation become reprise.Linear; bias and
// activation after a reprise.IntegerLinear join it.
std::unique_ptr<Pass> FuseLinear();
// Taps of a Conv that see nothing but padding go.
std::unique_ptr<Pass> CropWindows();
// BatchNormalization, Add and activation after a Conv join it: reprise.Conv; the first and last
// after a ConvTranspose: reprise.ConvTranspose.
std::unique_ptr<Pass> FuseConv();
// Makes the Add after such a product its residual. Runs after FuseAddLayerNorm, which goes first
// where a LayerNormalization is the only reader of the sum.
std::unique_ptr<Pass> FuseResidual();
// Heads times a cosine plus their turned halves times a sine become reprise.Rotary, over tokens.
std::unique_ptr<Pass> FuseRotary();
// Products of q and k, scale, mask, Softmax and product with v become reprise.Attention.
std::unique_ptr<Pass> FuseAttention();
// Scores that queries and keys look up in tables by distance join the attention that adds them:
// reprise.RelativeAttention.
std::unique_ptr<Pass> FuseRelativeAttention();
// Returns the q, k and v projections of one reprise.Attention become one product.
std::unique_ptr<Pass> FuseQkv();
// Splits products whose columns are read in pieces into a product for each piece.
std::unique_ptr<Pass> SplitLinear();
// Gathers from parameters and the Adds between them become reprise.EmbeddingSum.
std::unique_ptr<Pass> FuseEmbedding();
// Add and LayerNormalization become reprise.AddLayerNorm.
std::unique_ptr<Pass> FuseAddLayerNorm();
// Keys and values of a reprise.Attention that lie head by head are read where they lie. After all
// that looks at operands of tokens; not before packing, which lays tokens end to end.
std::unique_ptr<Pass> AttendByHead();
// Transpose of the last two dims in front of a MatMul's right side, which is no weight, joins it:
// com.microsoft.FusedMatMul. After all that looks for either.
std::unique_ptr<Pass> FuseTranspose();
// Concat and Split of more than kMostPieces become several of runs of pieces, since a launch has
// room for no more operands than that.
inline constexpr size_t kMostPieces = 60;
std::unique_ptr<Pass> SplitWide();
// Products with weights round their operands, and attention may, as their precision in the options
// says; weights that are floats become numbers of few bits where the options or the precision of
// their product say so. RoundProducts: none does.
std::unique_ptr<Pass> RoundProducts();
std::unique_ptr<Pass> RoundProductsAs(const PipelineOptions& options);
// Counts the changes of RoundProducts to a graph.
struct RoundedProducts {
  int64_t rounded = 0;                                // products with weights that round
  int64_t by_precision[std::size(kPrecisions)] = {};  // the same
  int64_t all = 0;         // products with weights, convolutions and recurrent layers among them
  int64_t attentions = 0;  // attentions that may round
};
RoundedProducts CountRoundedProducts(const Graph& graph);
// Makes every output of the graph a distinct result of a node that is no view of an input.
std::unique_ptr<Pass> FinalizeOutputs();

}  // namespace reprise
