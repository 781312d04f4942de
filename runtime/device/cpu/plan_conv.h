// The forms of convolutions that plan_conv.cc and plan_conv_transpose.cc choose from.
#pragma once

#include <vector>

#include "runtime/device/cpu/conv_finish.h"
#include "runtime/device/cpu/conv_windows.h"
#include "runtime/device/cpu/plan.h"

namespace reprise::cpu {

// plan_conv_winograd.cc: of 3 x 3 windows, four neighbours at a time.
std::vector<Candidate> PlanConvWinograd(const CpuTarget& target, const NodeView& node,
                                        const ops::Windows& windows,
                                        const ConvActivation& activation);

// plan_conv_weights.cc: of few windows and many maps.
std::vector<Candidate> PlanConvWeights(const CpuTarget& target, const NodeView& node,
                                       ConvWindows windows, const ConvActivation& activation);

// plan_conv_transpose_weights.cc: of small planes.
std::vector<Candidate> PlanConvTransposeWeights(const CpuTarget& target, const NodeView& node,
                                                const ops::TransposedWindows& transposed,
                                                const ConvActivation& activation);

// plan_conv_transpose_bands.cc: into few maps.
std::vector<Candidate> PlanConvTransposeBands(const CpuTarget& target, const NodeView& node,
                                              const ops::TransposedWindows& transposed,
                                              const ConvActivation& activation);

}  // namespace reprise::cpu
