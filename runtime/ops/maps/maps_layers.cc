// Maps of convolutions, pools, recurrent layers and sampled planes.
#include "runtime/ops/maps/map_rules.h"
#include "runtime/ops/quantized/integer_conv_op.h"
#include "runtime/ops/windows/conv_op.h"
#include "runtime/ops/windows/resize_op.h"

namespace reprise::ops {
namespace {

// Samples of a batch stay, windows slide over the dims from 2 on.
void Windows(MapContext& context) {
  context.Says("reads windows over");
  context.Parallel(0, 0, 1, 0);
  for (int64_t d = 2; d < context.rank(0); ++d) context.Set(0, d, Link::kWindow, d);
}

// Makes a channel of the result for each place of dim `dim` of the weights; with groups they are
// not told apart.
void Maps(MapContext& context, int64_t dim) {
  constexpr size_t kWeights = 1, kBias = 2;
  const Link link = ConvOp::From(context.attributes()).group == 1 ? Link::kParallel : Link::kMixed;
  context.Set(kWeights, dim, link, 1);
  if (context.has_input(kBias)) context.Set(kBias, 0, link, 1);
}

// Samples of a batch, whatever the layout of the others.
void Samples(MapContext& context, size_t residual) {
  context.Parallel(0, 0, 1, 0);
  if (!context.has_input(residual)) return;
  if (context.rank(residual) == context.out_rank() && context.shape(residual)[0] != 1) {
    context.Parallel(residual, 0, 1, 0);
  }
}

}  // namespace

void ConvMap(MapContext& context) {
  Windows(context);
  Maps(context, 0);
}

void ConvTransposeMap(MapContext& context) {
  Windows(context);
  Maps(context, 1);
}

void FusedConvMap(MapContext& context) { Samples(context, FusedConvOp::kResidual); }
void IntegerConvMap(MapContext& context) { Samples(context, IntegerConvOp::kResidual); }

// Maps read x wherever offsets say.
void DeformConvMap(MapContext& context) {
  context.Says("reads wherever offsets say over");
  using enum DeformConvOp::Input;
  for (const size_t i : {kX, kOffset, kMask}) {
    if (context.has_input(i)) context.Parallel(i, 0, 1, 0);
  }
}

void PoolMap(MapContext& context) {
  Windows(context);
  context.Parallel(0, 1, 1);
  // Places of the largest count over all rows.
  if (context.has_output(1)) context.Mixed(0, 0);
}

void GlobalPoolMap(MapContext& context) {
  context.Says("pools over");
  context.Parallel(0, 0, 2, 0);
}

// [sequence, batch, channels] to [sequence, directions, batch, hidden]; with `layout` 1 [batch,
// sequence, channels] to [batch, sequence, directions, hidden].
void RecurrentMap(MapContext& context) {
  constexpr size_t kWeights = 3, kLengths = 4;
  if (!context.has_output(0)) return context.Unknown();
  context.Says("runs over");
  const bool batch_first = context.attributes().Int("layout", 0) != 0;
  const int64_t rows = batch_first ? 0 : 2;
  context.Parallel(0, batch_first ? 0 : 1, rows);
  context.Set(0, batch_first ? 1 : 0, Link::kScan, batch_first ? 1 : 0);
  for (size_t i = kWeights + 1; i < context.num_inputs(); ++i) {
    if (context.rank(i) == 3) context.Parallel(i, batch_first ? 0 : 1, rows);
  }
  if (context.has_input(kLengths)) context.Parallel(kLengths, 0, rows);
}

// Dims that the scales leave as they are, and not by a scale that happens to give their size.
void ResizeMap(MapContext& context) {
  context.Says("resizes");
  const auto& attributes = context.attributes();
  const auto scales = context.numbers(ResizeOp::kScales);
  const bool plain =
      attributes.Ints("axes").empty() && scales.has_value() &&
      std::ssize(*scales) == context.rank(0) &&
      attributes.String("coordinate_transformation_mode", "") != "tf_crop_and_resize";
  if (!plain) return context.Unknown();
  for (int64_t d = 0; d < context.rank(0); ++d) {
    const bool stays = (*scales)[d] == 1 && context.shape(0)[d] == context.out()[d];
    context.Set(0, d, stays ? Link::kParallel : Link::kWindow, d);
  }
}

// x [batch, channels, dims...] at the places of grid [batch, out dims..., dims].
void GridSampleMap(MapContext& context) {
  context.Says("samples at places between both ends of");
  context.Parallel(0, 0, 2, 0);
  context.Parallel(1, 0, 1, 0);
  context.Parallel(1, 1, context.rank(1) - 1, 2);
}

// Regions of images, each of which finds its image by its place in the batch.
void RoiAlignMap(MapContext& context) {
  context.Says("takes regions by their places in");
  context.Parallel(0, 1, 1);
  for (const size_t i : {1, 2}) context.Parallel(i, 0, 0);
}

// Elements of the last dim are turned in pairs.
void RotaryMap(MapContext& context) {
  context.Says("turns pairs of");
  context.BroadcastAll();
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    context.Set(i, context.rank(i) - 1, Link::kMixed, context.out_rank() - 1);
  }
}

// Keeps each row of operand 0 by itself: its result is made of all elements of the row.
void RowsMap(MapContext& context) {
  context.Says("looks at all elements of");
  context.Parallel(0, 0, 1, 0);
}

}  // namespace reprise::ops
