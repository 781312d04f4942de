// Convolution over the dims after batch and channel.
#pragma once

#include <algorithm>
#include <vector>

#include "runtime/graph/shape.h"
#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// Conv(x [batch, channels, dims...], weight [maps, channels / group, kernel...], bias? [maps]).
Rule ConvRule;
Kernel ConvKernel;

// reprise.Conv(x, weight, bias?, residual? [shape of the result]): activation(Conv + residual),
// float32. Attributes are Conv's, and
//   activation  one of reprise.Linear's, or clip (from `low` to `high`), leaky_relu and elu
//               (`slope`), hard_swish, mish
//   layout      where channels and maps are: "first", after the batch, unless it is said; "last",
//               after the dims of x and of the result; "to_last": so of the result alone
Rule FusedConvRule;
Kernel FusedConvKernel;

// Whether channels come after the other dims, in x and in the result.
struct ConvLayout {
  bool x_last = false, y_last = false;
};
// Returns INVALID_ARGUMENT for an unknown layout.
absl::StatusOr<ConvLayout> ConvLayoutOf(const Attributes& attributes);
// Return [batch, dims..., channels] as [batch, channels, dims...], and back.
template <typename List>
List ChannelsFirst(List last) {
  std::rotate(last.begin() + 1, last.end() - 1, last.end());
  return last;
}
template <typename List>
List ChannelsLast(List first) {
  std::rotate(first.begin() + 1, first.begin() + 2, first.end());
  return first;
}

// Returns the elements of [batch, rows, columns] as [batch, columns, rows].
template <typename T>
std::vector<T> TurnedPlanes(const T* from, int64_t batch, int64_t rows, int64_t columns) {
  std::vector<T> to(static_cast<size_t>(batch * rows * columns));
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        to[(b * columns + column) * rows + row] = from[(b * rows + row) * columns + column];
      }
    }
  }
  return to;
}

// Checks that x, input 0, weight, input 1, of any dtypes, and the attributes of a Conv fit, and
// returns the shape of the result.
absl::StatusOr<SizeList> ConvShape(const InferContext& context);
// Does the same for a `node` whose operand, of the shape `x`, has its channels in dim 1.
absl::StatusOr<SizeList> ConvShape(const Node& node, const SizeList& x, const SizeList& weight);

// Checks that there is no bias, input 2, or one for each of `maps` maps.
absl::Status CheckConvBias(InferContext& context, Size maps);

// Runs `kernel`, for channels after the batch, of float32 operands in `layout`.
absl::Status RunInLayout(const KernelContext& context, const ConvLayout& layout, Kernel& kernel);

// Checks that operand and weight are of one rank, with dims after the first two.
absl::Status CheckConvRanks(const InferContext& context);

// Checks that operand and weight of a Conv or ConvTranspose are floats of one dtype and rank, with
// dims after the first two.
absl::Status CheckConvOperands(InferContext& context);

// Return UNIMPLEMENTED or INVALID_ARGUMENT for an activation that reprise.Conv and
// reprise.ConvTranspose do not know; y = activation(y), by the attributes.
absl::Status CheckConvActivation(absl::string_view activation);
void ApplyConvActivation(const Attributes& attributes, float* y, int64_t count);

}  // namespace reprise::ops
