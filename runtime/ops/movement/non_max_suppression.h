// NonMaxSuppression keeps, among boxes that overlap, the one with the highest score.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// (boxes [batch, boxes, 4], scores [batch, classes, boxes], boxes a class at most, largest overlap,
// lowest score) -> [selected, 3] of (batch, class, box): by batch and class, best score first, of
// equal scores the first box.
Rule NonMaxSuppressionRule;
Kernel NonMaxSuppressionKernel;

}  // namespace reprise::ops
