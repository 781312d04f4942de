// Normalisations with statistics over the dims after batch and channel.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// InstanceNormalization(x [batch, channels, dims...], scale [channels], bias [channels]): one mean
// and variance a channel of a row. GroupNormalization {num_groups}: one a group of channels.
Rule InstanceNormalizationRule, GroupNormalizationRule;
Kernel InstanceNormalizationKernel, GroupNormalizationKernel;

}  // namespace reprise::ops
