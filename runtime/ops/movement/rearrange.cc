#include "runtime/ops/movement/rearrange.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/typed.h"

namespace reprise::ops {
namespace {

absl::StatusOr<int64_t> BlockSize(const InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kAnyType));
  RETURN_IF_ERROR(CheckRank(context, 0, 4));
  const int64_t block = context.attributes().Int("blocksize", 0);
  if (block < 1 || block > (1 << 20)) {
    return absl::InvalidArgumentError(absl::StrCat("blocksize is ", block));
  }
  return block;
}

// Returns whether the blocks of one depth lie `depth` apart (DCR) or next to each other (CRD).
absl::StatusOr<bool> DepthFirst(const Attributes& attributes) {
  const std::string mode = attributes.String("mode", "DCR");
  if (mode == "DCR" || mode == "CRD") return mode == "DCR";
  return absl::InvalidArgumentError(absl::StrCat("there is no mode '", mode, "'"));
}

// Calls `move(deep, wide)` with the element numbers that belong together in `deep`
// [batch, depth * block^2, height, width] and [batch, depth, height * block, width * block].
template <typename Move>
void ForEachPair(const Shape& deep, int64_t block, bool depth_first, Move move) {
  const int64_t height = deep[2], width = deep[3];
  const int64_t depth = deep[1] / (block * block);
  int64_t wide = 0;
  for (int64_t n = 0; n < deep[0]; ++n) {
    for (int64_t d = 0; d < depth; ++d) {
      for (int64_t y = 0; y < height * block; ++y) {
        for (int64_t x = 0; x < width * block; ++x) {
          const int64_t inner = y % block * block + x % block;
          const int64_t channel = depth_first ? inner * depth + d : d * block * block + inner;
          move(((n * deep[1] + channel) * height + y / block) * width + x / block, wide++);
        }
      }
    }
  }
}

}  // namespace

absl::Status DepthToSpaceRule(InferContext& context) {
  ASSIGN_OR_RETURN(const int64_t block, BlockSize(context));
  RETURN_IF_ERROR(DepthFirst(context.attributes()).status());
  const SizeList& in = context.shape(0);
  if (in[1] % (block * block) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a depth of ", in[1], " does not hold blocks of ", block * block));
  }
  context.SetOutput(0, context.dtype(0),
                    {in[0], in[1] / (block * block), in[2] * block, in[3] * block});
  return absl::OkStatus();
}

absl::Status DepthToSpaceKernel(const KernelContext& context) {
  const int64_t block = context.node.attributes.Int("blocksize", 1);
  ASSIGN_OR_RETURN(const bool depth_first, DepthFirst(context.node.attributes));
  DispatchSize(context.inputs[0].dtype, [&]<typename T>() {
    const T* in = context.inputs[0].as<T>();
    T* out = context.outputs[0].as<T>();
    ForEachPair(context.inputs[0].shape, block, depth_first,
                [&](int64_t deep, int64_t wide) { out[wide] = in[deep]; });
  });
  return absl::OkStatus();
}

absl::Status SpaceToDepthRule(InferContext& context) {
  ASSIGN_OR_RETURN(const int64_t block, BlockSize(context));
  RETURN_IF_ERROR(DepthFirst(context.attributes()).status());
  const SizeList& in = context.shape(0);
  if (in[2] % block != 0 || in[3] % block != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the last dims ", in[2], " and ", in[3],
                                                   " are not multiples of blocksize ", block));
  }
  context.SetOutput(0, context.dtype(0),
                    {in[0], in[1] * block * block, in[2] / block, in[3] / block});
  return absl::OkStatus();
}

absl::Status SpaceToDepthKernel(const KernelContext& context) {
  const int64_t block = context.node.attributes.Int("blocksize", 1);
  ASSIGN_OR_RETURN(const bool depth_first, DepthFirst(context.node.attributes));
  DispatchSize(context.inputs[0].dtype, [&]<typename T>() {
    const T* in = context.inputs[0].as<T>();
    T* out = context.outputs[0].as<T>();
    ForEachPair(context.outputs[0].shape, block, depth_first,
                [&](int64_t deep, int64_t wide) { out[deep] = in[wide]; });
  });
  return absl::OkStatus();
}

absl::Status ReverseSequenceRule(InferContext& context) {
  RETURN_IF_ERROR(CheckType(context, 0, kAnyType));
  RETURN_IF_ERROR(CheckType(context, 1, kIndices));
  const int64_t batch_axis = context.attributes().Int("batch_axis", 1);
  const int64_t time_axis = context.attributes().Int("time_axis", 0);
  if (context.rank(0) < 2 || std::min(batch_axis, time_axis) != 0 ||
      std::max(batch_axis, time_axis) != 1) {
    return absl::InvalidArgumentError(absl::StrCat("batch_axis ", batch_axis, " and time_axis ",
                                                   time_axis, " are not the first two dims"));
  }
  if (context.shape(1) != SizeList{context.shape(0)[batch_axis]}) {
    return absl::InvalidArgumentError(
        absl::StrCat("sequence_lens ", ShapeToString(context.shape(1)), " does not fit a batch of ",
                     context.shape(0)[batch_axis]));
  }
  context.SetOutput(0, context.dtype(0), context.shape(0));
  return absl::OkStatus();
}

absl::Status ReverseSequenceKernel(const KernelContext& context) {
  const TensorView& in = context.inputs[0];
  const bool batch_first = context.node.attributes.Int("batch_axis", 1) == 0;
  const int64_t batch = in.shape[batch_first ? 0 : 1], steps = in.shape[batch_first ? 1 : 0];
  const int64_t inner = NumElements(absl::Span<const int64_t>(in.shape).subspan(2));
  std::vector<int64_t> lengths = Int64sOf(context, 1);
  for (int64_t row = 0; row < batch; ++row) {
    if (lengths[row] >= 0 && lengths[row] <= steps) continue;
    context.errors.Report(1, row, lengths[row], 0, steps);
    lengths[row] = 0;
  }
  DispatchSize(in.dtype, [&]<typename T>() {
    for (int64_t row = 0; row < batch; ++row) {
      for (int64_t t = 0; t < steps; ++t) {
        const int64_t from = t < lengths[row] ? lengths[row] - 1 - t : t;
        const auto block = [&](int64_t at) {
          return (batch_first ? row * steps + at : at * batch + row) * inner;
        };
        std::copy_n(in.as<T>() + block(from), inner, context.outputs[0].as<T>() + block(t));
      }
    }
  });
  return absl::OkStatus();
}

}  // namespace reprise::ops
