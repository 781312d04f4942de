// Plans of ops that only move, choose or replace elements.
#pragma once

#include <vector>

#include "runtime/device/cpu/plan/kernel_family.h"
#include "runtime/device/cpu/plan/plan.h"

namespace reprise::cpu {

// Returns the kernel family that this folder offers a device.
KernelFamily MovementFamily();

// plan_movement.cc
std::vector<Candidate> PlanTranspose(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanSlice(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanExpand(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanTile(const CpuTarget& target, const NodeView& node);
// DepthToSpace and SpaceToDepth.
std::vector<Candidate> PlanBlocks(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanConcat(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanSplit(const CpuTarget& target, const NodeView& node);

// plan_gather.cc
std::vector<Candidate> PlanGather(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanEmbeddingSum(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanCheckRange(const CpuTarget& target, const NodeView& node);

// The prepare op of s8 or u8 rows, each after its factor and zero point; see plan_gather.cc.
inline constexpr char kPackInt8RowsOp[] = "cpu.PackInt8Rows";
absl::StatusOr<Tensor> RunPackInt8Rows(const Tensor& values, const Tensor* scales,
                                       const Tensor* points, WeightMemory& memory);

// plan_scatter.cc
std::vector<Candidate> PlanGatherElements(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanGatherNd(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanScatterElements(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanScatterNd(const CpuTarget& target, const NodeView& node);

// plan_pad.cc
std::vector<Candidate> PlanPad(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanTrilu(const CpuTarget& target, const NodeView& node);

// plan_append.cc
std::vector<Candidate> PlanAppendRows(const CpuTarget& target, const NodeView& node);

// plan_live.cc
std::vector<Candidate> PlanLiveFill(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanLiveExtent(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanLiveMask(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanLiveShare(const CpuTarget& target, const NodeView& node);
std::vector<Candidate> PlanLiveCompact(const CpuTarget& target, const NodeView& node);

}  // namespace reprise::cpu
