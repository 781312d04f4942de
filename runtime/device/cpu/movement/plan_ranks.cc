// Values that the ranks of a model exchange (runtime/ops/movement/ranks.h): one part of the launch
// does it, on all ranks in the same order.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "runtime/device/collective.h"
#include "runtime/device/cpu/movement/movement_plans.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/ops/movement/ranks_op.h"

namespace reprise::cpu {
namespace {

struct RankParams {
  int64_t elements = 0;  // those that the operand has
  int64_t batch_rows = 0;
  int64_t rank = 0;
  std::vector<int64_t> widths;  // number of columns of each rank
};

void RunAllReduce(const LaunchArgs& launch) {
  if (launch.part != 0) return;
  const auto& p = *static_cast<const RankParams*>(launch.params);
  const auto* const mine = static_cast<const float*>(launch.operands[0]);
  auto* const sum = static_cast<float*>(launch.operands[1]);
  const int64_t count = LiveOf(p.elements, p.batch_rows, *launch.frame);
  if (launch.frame->collective != nullptr) {
    launch.frame->collective->AllReduce(mine, sum, count);
  } else if (sum != mine && count > 0) {
    std::memcpy(sum, mine, static_cast<size_t>(count) * sizeof(float));
  }
}

void RunAllGather(const LaunchArgs& launch) {
  if (launch.part != 0) return;
  const auto& p = *static_cast<const RankParams*>(launch.params);
  const auto* const mine = static_cast<const float*>(launch.operands[0]);
  auto* const all = static_cast<float*>(launch.operands[1]);
  const int64_t width = p.widths[static_cast<size_t>(p.rank)];
  const int64_t rows =
      LiveOf(p.elements, p.batch_rows, *launch.frame) / std::max<int64_t>(width, 1);
  if (launch.frame->collective != nullptr) {
    return launch.frame->collective->GatherColumns(mine, all, rows, p.widths);
  }
  const auto sum = [&](int64_t end) {
    return std::accumulate(p.widths.begin(), p.widths.begin() + end, int64_t{0});
  };
  const int64_t before = sum(p.rank), total = sum(static_cast<int64_t>(p.widths.size()));
  std::fill_n(all, rows * total, 0.0f);
  for (int64_t row = 0; row < rows; ++row) {
    std::copy_n(mine + row * width, width, all + row * total + before);
  }
}

struct BroadcastParams {
  int64_t rows = 0, elements = 0;  // those that the result has
  int root = 0;
  bool is_root = false;
  bool skips_rows = false;  // rows that no request has are not read
};

// All ranks count the rows to send alike, whichever of their nodes read them.
void RunBroadcast(const LaunchArgs& launch) {
  if (launch.part != 0) return;
  const auto& p = *static_cast<const BroadcastParams*>(launch.params);
  const auto* const mine = static_cast<const float*>(launch.operands[0]);
  auto* const all = static_cast<float*>(launch.operands[1]);
  const int64_t live = LiveOf(p.elements, p.rows, *launch.frame);
  const int64_t read = p.skips_rows ? live : p.elements;
  Collective* const collective = launch.frame->collective;
  if (p.is_root) {
    if (all != mine && read > 0) {
      std::memcpy(all, mine, static_cast<size_t>(read) * sizeof(float));
    }
  } else {
    const int64_t sent = collective == nullptr ? 0 : live;
    if (read > sent) std::fill(all + sent, all + read, 0.0f);
  }
  if (collective != nullptr) collective->Broadcast(all, live, p.root);
}

std::vector<Candidate> Exchange(const CpuTarget& target, const NodeView& node, const char* name,
                                KernelFn run) {
  const AllGatherOp op = AllGatherOp::From(node.attributes());
  const int64_t batch_rows = node.batch_rows();
  const RankParams params = {.elements = NumElements(node.shape(0)),
                             .batch_rows = batch_rows,
                             .rank = op.rank,
                             .widths = op.widths};
  Candidate candidate = MakeCandidate(target, node, name, run, params, 0);
  candidate.option.takes_live_rows = batch_rows > 0 && params.elements % batch_rows == 0;
  return {std::move(candidate)};
}

}  // namespace

std::vector<Candidate> PlanAllReduce(const CpuTarget& target, const NodeView& node) {
  std::vector<Candidate> candidates = Exchange(target, node, "all_reduce", RunAllReduce);
  candidates[0].option.in_place = 0;
  return candidates;
}

std::vector<Candidate> PlanAllGather(const CpuTarget& target, const NodeView& node) {
  return Exchange(target, node, "all_gather", RunAllGather);
}

std::vector<Candidate> PlanBroadcast(const CpuTarget& target, const NodeView& node) {
  const BroadcastOp op = BroadcastOp::From(node.attributes());
  const Shape& shape = node.out_shape();
  const int64_t batch_rows = node.batch_rows();
  const BroadcastParams params = {.rows = shape[0],
                                  .elements = NumElements(shape),
                                  .root = static_cast<int>(op.root),
                                  .is_root = op.rank == op.root,
                                  .skips_rows = batch_rows > 0 && batch_rows == shape[0]};
  Candidate candidate = MakeCandidate(target, node, "broadcast", RunBroadcast, params, 0);
  candidate.option.takes_live_rows = params.skips_rows;
  if (params.is_root) candidate.option.in_place = 0;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
