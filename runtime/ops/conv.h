// Convolution over the dims after batch and channel.
#pragma once

#include "runtime/ops/infer.h"

namespace reprise::ops {

// Conv(x [batch, channels, dims...], weight [maps, channels / group, kernel...], bias? [maps]).
Rule ConvRule;
Kernel ConvKernel;

// reprise.Conv(x, weight, bias?, residual? [shape of the result]): activation(Conv + residual),
// float32. Attributes are those of Conv, and `activation`: one of those of reprise.Linear, or clip
// (from `low` to `high`), leaky_relu (`slope`), hard_swish.
Rule FusedConvRule;
Kernel FusedConvKernel;

// Of a convolution of x, input 0, by weight, input 1, of any dtypes: that they and the attributes
// of Conv fit, and the shape of the result.
absl::StatusOr<Shape> ConvShape(const InferContext& context);
// The same of a `node` whose operand, of the shape `x`, has its channels in dim 1.
absl::StatusOr<Shape> ConvShape(const Node& node, const Shape& x, const Shape& weight);

// That operand and weight are of one rank, with dims after the first two.
absl::Status CheckConvRanks(const InferContext& context);

// Of Conv and ConvTranspose: that operand and weight are floats of one dtype and rank, with dims
// after the first two.
absl::Status CheckConvOperands(InferContext& context);

// Of reprise.Conv and reprise.ConvTranspose: UNIMPLEMENTED or INVALID_ARGUMENT for an activation
// that is not among those; y = activation(y), by the attributes.
absl::Status CheckConvActivation(absl::string_view activation);
void ApplyConvActivation(const Attributes& attributes, float* y, int64_t count);

}  // namespace reprise::ops
