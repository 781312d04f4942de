// Exchanges between the ranks of a model: processes that each compute a share of every step.
//
// A replay finds the other ranks in its frame (device/launch.h). The reference kernels, and replays
// without others, know of one rank alone: its share is all that there is.
#pragma once

#include "runtime/ops/kit/infer.h"

namespace reprise::ops {

// reprise.AllReduce(x) -> the sum of x over all ranks, in the order of ranks.
Rule AllReduceRule;
Kernel AllReduceKernel;

// reprise.AllGather(x [..., widths[rank]]) {rank, widths} -> [..., sum of widths]: the columns of
// rank 0, then of rank 1, and so on. Those of ranks that are not there are zeros.
Rule AllGatherRule;
Kernel AllGatherKernel;

// reprise.Broadcast(x [rows, ...]) {rank, root, sizes} -> f32 [rows, sizes...]: x of rank `root`,
// on all ranks. On the others x, of any type, tells the rows alone. Without `root` these are zeros.
Rule BroadcastRule;
Kernel BroadcastKernel;

}  // namespace reprise::ops
