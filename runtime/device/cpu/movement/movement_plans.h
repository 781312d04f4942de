// Plans of ops that only move, choose or replace elements.
#pragma once

#include "runtime/device/cpu/plan/kernel_family.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

// Returns the kernel family that this folder offers a device.
KernelFamily MovementFamily();

// plan_movement.cc
Plan PlanTranspose, PlanSlice, PlanExpand, PlanTile;
// DepthToSpace and SpaceToDepth.
Plan PlanBlocks, PlanConcat, PlanSplit;

// plan_gather.cc
Plan PlanGather, PlanEmbeddingSum, PlanCheckRange;

// The prepare op of s8 or u8 rows, each after its factor and zero point; see plan_gather.cc.
inline constexpr char kPackInt8RowsOp[] = "cpu.PackInt8Rows";
Prepare RunPackInt8Rows;

// plan_scatter.cc
Plan PlanGatherElements, PlanGatherNd, PlanScatterElements, PlanScatterNd;

// plan_pad.cc
Plan PlanPad, PlanTrilu;

// plan_append.cc
Plan PlanAppendRows;

// plan_ranks.cc
Plan PlanAllReduce, PlanAllGather, PlanBroadcast;

// plan_live.cc
Plan PlanLiveFill, PlanLiveExtent, PlanLiveMask, PlanLiveShare, PlanLiveCompact;

}  // namespace reprise::cpu
