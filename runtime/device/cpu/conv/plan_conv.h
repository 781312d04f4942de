// The forms of convolutions that plan_conv.cc and plan_conv_transpose.cc choose from.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/device/cpu/conv/conv_launch.h"
#include "runtime/device/cpu/conv/im2col_windows.h"
#include "runtime/device/cpu/gemm/conv_prepare.h"

namespace reprise::cpu {

// With fewer blocks a part than this, the maps of a block are divided too. Each part that shares a
// block copies it, which many blocks do not need.
inline constexpr int64_t kFewConvBlocks = 4;

// Rows at a time where the windows or elements of planes are the rows of a product: enough to pay
// for the weights that stream by, and few enough to stay in the L2 cache.
inline constexpr int64_t kMaxConvRows = 112;
// With more than this in a plane its panels are full and pay for themselves.
inline constexpr int64_t kMostRowsOfPlane = 64;

// Returns the parts that a launch is planned for where each has `floats` of scratch that may be
// large, such as weights that a part reorders for itself: as many parts as keep the workspace
// within 256 MB, but at least one.
inline int PartsWithWeights(const CpuTarget& target, int64_t floats) {
  constexpr int64_t kMaxFloats = 64 << 20;
  return static_cast<int>(
      std::clamp<int64_t>(kMaxFloats / std::max<int64_t>(floats, 1), 1, target.scratch_parts));
}

// plan_conv_nhwc.cc: convolutions of NHWC planes.
Plan PlanConvLast;

// plan_depthwise_nhwc.cc: the same for depthwise convolutions.
std::vector<Candidate> PlanDepthwiseLast(const CpuTarget& target, const NodeView& node,
                                         const ops::Windows& windows, const Shape& spatial,
                                         const ConvActivation& activation);

// plan_conv_to_nhwc.cc: few channels, results with their maps last.
Plan PlanConvToLast;

// plan_conv_winograd.cc: of 3 x 3 windows, four neighbours at a time. `last`: channels are.
std::vector<Candidate> PlanConvWinograd(const CpuTarget& target, const NodeView& node,
                                        const ops::Windows& windows,
                                        const ConvActivation& activation, bool last = false);

// plan_im2col_lines.cc: of few maps, of groups of few, or along one dim.
std::vector<Candidate> PlanConvLines(const CpuTarget& target, const NodeView& node,
                                     const ops::Windows& windows, const Shape& spatial,
                                     const ConvActivation& activation);

// plan_conv_weights.cc: of few windows and many maps.
std::vector<Candidate> PlanConvWeights(const CpuTarget& target, const NodeView& node,
                                       ConvWindows windows, const ConvActivation& activation);

// plan_conv_transpose_weights.cc: of small planes.
std::vector<Candidate> PlanConvTransposeWeights(const CpuTarget& target, const NodeView& node,
                                                const ops::TransposedWindows& transposed,
                                                const ConvActivation& activation);

// plan_conv_transpose_nhwc.cc: planes whose channels lie last.
Plan PlanConvTransposeLast;

// plan_conv_transpose_bands.cc: into few maps.
std::vector<Candidate> PlanConvTransposeBands(const CpuTarget& target, const NodeView& node,
                                              const ops::TransposedWindows& transposed,
                                              const ConvActivation& activation);

}  // namespace reprise::cpu
