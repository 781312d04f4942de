// Resize with antialias = 1: its filters are wider by the ratio of operand to result.
#pragma once

#include <vector>

#include "runtime/ops/windows/resize.h"

namespace reprise::ops {

// Returns the elements around position `x` of a dim of `in` that grows by `scale`; every position
// has the same number of them. Elements beyond the ends are the outermost ones, and weigh nothing
// with `exclude`. Linear, or a cubic convolution of coefficient `a`.
std::vector<ResizeTap> WideTaps(int64_t in, float scale, float x, bool cubic, float a,
                                bool exclude);

// Returns the number that is added to the magnitude of samples between integers, besides
// kResizeSumsAreOffBy, before they are cut off: with antialias they are rounded to the nearest,
// once for all dims (onnxruntime rounds after each dim).
float RoundingOfIntegers(const Node& node);

}  // namespace reprise::ops
