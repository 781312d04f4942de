// AffineGrid: the places that GridSample samples an image at, for an affine map of it.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// AffineGrid(theta [batch, dims, dims + 1], size [batch, channels, dims...]) is
// [batch, dims..., dims]: for each element theta times its place, which goes from -1 to 1 along
// each dim (between the centres of the first and the last element with align_corners = 1, else
// between their outer sides), last dim first, and 1. There are 2 or 3 dims.
Rule AffineGridRule;
Kernel AffineGridKernel;

}  // namespace reprise::ops
