// Rows after the rows of a cache, each sequence at its own position
// (runtime/ops/movement/append_rows.h).
#include <algorithm>
#include <cstring>

#include "runtime/device/cpu/movement/movement_plans.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/device/cpu/simd/parts.h"
#include "runtime/ops/movement/append_rows.h"

namespace reprise::cpu {
namespace {

struct AppendParams {
  int64_t batch = 0, heads = 0;
  int64_t past = 0, added = 0, length = 0;  // rows of a head
  int64_t row_bytes = 0;
  int64_t batch_rows = 0;
  int out = 0;
};

void RunAppend(const LaunchArgs& launch) {
  const auto& p = *static_cast<const AppendParams*>(launch.params);
  const auto* const past = static_cast<const char*>(launch.operands[0]);
  const auto* const added = static_cast<const char*>(launch.operands[1]);
  const auto* const at = static_cast<const int64_t*>(launch.operands[2]);
  auto* const out = static_cast<char*>(launch.operands[p.out]);
  const auto copy = [&](char* to, const char* from, int64_t rows) {
    // Empty rows may have no address.
    if (rows > 0) std::memcpy(to, from, static_cast<size_t>(rows * p.row_bytes));
  };
  const int64_t live = LiveOf(p.batch * p.heads, p.batch_rows, *launch.frame);
  const ItemRange range = RangeOfPart(live, 1, launch.part, launch.parts);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const int64_t b = i / p.heads;
    const ops::AppendedRows copied = ops::AppendedRows::Of(at[b], p.past, p.added, p.length);
    if (!copied.fits && i % p.heads == 0) {
      launch.frame->errors->Report(launch.launch, 2, b, at[b], 0,
                                   std::min(p.past, p.length - p.added));
    }
    char* const to = out + i * p.length * p.row_bytes;
    copy(to, past + i * p.past * p.row_bytes, copied.past);
    copy(to + copied.past * p.row_bytes, added + i * p.added * p.row_bytes, p.added);
    const int64_t filled = copied.past + p.added;
    std::memset(to + filled * p.row_bytes, 0,
                static_cast<size_t>((p.length - filled) * p.row_bytes));
  }
}

}  // namespace

std::vector<Candidate> PlanAppendRows(const CpuTarget& target, const NodeView& node) {
  const Shape& past = node.shape(0);
  const int64_t batch_rows = node.batch_rows();
  const AppendParams params = {
      .batch = past[0],
      .heads = past[1],
      .past = past[2],
      .added = node.shape(1)[2],
      .length = node.out_shape()[2],
      .row_bytes = past[3] * static_cast<int64_t>(DTypeSize(node.dtype(0))),
      .batch_rows = batch_rows,
      .out = static_cast<int>(node.num_inputs())};
  Candidate candidate = MakeCandidate(target, node, "append", RunAppend, params, 0);
  candidate.option.takes_live_rows = batch_rows > 0 && past[0] % batch_rows == 0;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
