// RoiAlign: regions of images, each as a plane of one size.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// RoiAlign(x [batch, channels, height, width], rois [regions, 4] (left, top, right, bottom),
// element of the batch of each [regions]) is [regions, channels, output_height, output_width].
// A place is sampled at most 1024 times along a dim: a larger one has another mean than with
// onnxruntime, which samples every element.
Rule RoiAlignRule;
Kernel RoiAlignKernel;

}  // namespace reprise::ops
