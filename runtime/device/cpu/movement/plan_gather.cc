// Rows chosen by indices. See indices.h.
#include <algorithm>
#include <cstring>
#include <optional>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/device/cpu/elementwise/rows.h"
#include "runtime/device/cpu/gemm/gemm_plans.h"
#include "runtime/device/cpu/movement/indices.h"
#include "runtime/device/cpu/movement/movement_plans.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/device/cpu/simd/copy_bytes.h"
#include "runtime/device/cpu/simd/half.h"
#include "runtime/device/cpu/simd/weight_memory.h"
#include "runtime/graph/parameter_expr.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/weights/quantized_weights.h"

namespace reprise::cpu {
namespace {

struct GatherParams {
  int64_t outer = 1, size = 1, count = 1;
  int64_t block = 0;        // elements of the table that an index stands for
  int64_t block_bytes = 0;  // bytes of a block as the table stores it
  bool wide = false;
  int64_t batch_rows = 0;
  const HalfKernels* half = nullptr;  // the table is of half, the result of floats
};

// Copies blocks to `to`, one after the other: copy(block, its number in the result).
template <class CopyBlock>
void GatherBlocks(const LaunchArgs& launch, const CopyBlock& copy) {
  const auto& p = *static_cast<const GatherParams*>(launch.params);
  const auto* table = static_cast<const std::byte*>(launch.operands[0]);
  const Indices indices = {launch.operands[1], p.wide};
  const int64_t live = LiveOf(p.outer * p.count, p.batch_rows, *launch.frame);
  const ItemRange range = RangeOfPart(live, 1, launch.part, launch.parts);
  if (range.begin >= range.end) return;
  const int64_t table_bytes = p.size * p.block_bytes;
  table += range.begin / p.count * table_bytes;
  for (int64_t i = range.begin, at = range.begin % p.count; i < range.end; ++i) {
    copy(table + CheckedIndex(launch, 1, indices, at, p.size) * p.block_bytes, i);
    if (++at < p.count) continue;
    at = 0;
    table += table_bytes;
  }
}

void RunGather(const LaunchArgs& launch) {
  const auto& p = *static_cast<const GatherParams*>(launch.params);
  auto* to = static_cast<std::byte*>(launch.operands[2]);
  const auto copy = [to](auto bytes) {
    return [to, bytes](const std::byte* block, int64_t i) {
      std::memcpy(to + i * bytes, block, static_cast<size_t>(bytes));
    };
  };
  if (p.half != nullptr) {
    GatherBlocks(launch, [&p, to](const std::byte* block, int64_t i) {
      p.half->widen(block, reinterpret_cast<float*>(to) + i * p.block, p.block);
    });
  } else if (p.block_bytes == 4) {
    GatherBlocks(launch, copy(std::integral_constant<int64_t, 4>()));
  } else if (p.block_bytes == 8) {
    GatherBlocks(launch, copy(std::integral_constant<int64_t, 8>()));
  } else {
    GatherBlocks(launch, copy(p.block_bytes));
  }
}

// Neighbours of a table's row that lie side by side in the result, too.
struct Run {
  int64_t from = 0, to = 0, bytes = 0;
};

struct GatherRunsParams {
  std::vector<Run> runs;
  int64_t rows = 0, row_bytes = 0, out_bytes = 0;
  int64_t batch_rows = 0;
};

void RunGatherRuns(const LaunchArgs& launch) {
  const auto& p = *static_cast<const GatherRunsParams*>(launch.params);
  const ItemRange range =
      RangeOfPart(LiveOf(p.rows, p.batch_rows, *launch.frame), 1, launch.part, launch.parts);
  const auto* from = static_cast<const uint8_t*>(launch.operands[0]) + range.begin * p.row_bytes;
  auto* to = static_cast<uint8_t*>(launch.operands[2]) + range.begin * p.out_bytes;
  for (int64_t row = range.begin; row < range.end; ++row, from += p.row_bytes, to += p.out_bytes) {
    for (const Run& run : p.runs) CopyBytes(from + run.from, run.bytes, to + run.to);
  }
}

// Returns the runs that constant indices of blocks consist of; none where one is out of range.
std::vector<Run> RunsOf(const Tensor& indices, int64_t size, int64_t block_bytes) {
  std::vector<Run> runs;
  const absl::StatusOr<std::vector<int64_t>> numbers = indices.ToInt64s();
  if (!numbers.ok()) return {};
  int64_t to = 0;
  for (int64_t index : *numbers) {
    if (index < 0) index += size;
    if (index < 0 || index >= size) return {};
    const int64_t from = index * block_bytes;
    if (runs.empty() || runs.back().from + runs.back().bytes != from) runs.push_back({from, to, 0});
    runs.back().bytes += block_bytes;
    to += block_bytes;
  }
  return runs;
}

// Indices that are known and mostly neighbours, such as the indices of a triangle, in each of
// several rows.
std::optional<Candidate> GatherOfRuns(const CpuTarget& target, const NodeView& node,
                                      const GatherParams& gather) {
  constexpr int64_t kFewestBlocks = 3;  // blocks of a run, on average
  const Tensor* const indices = node.constant(1);
  if (indices == nullptr || gather.half != nullptr || gather.outer < 2 || gather.count < 1) {
    return std::nullopt;
  }
  if (gather.outer % std::max<int64_t>(gather.batch_rows, 1) != 0) return std::nullopt;
  GatherRunsParams params;
  params.runs = RunsOf(*indices, gather.size, gather.block_bytes);
  const auto runs = static_cast<int64_t>(params.runs.size());
  if (runs == 0 || gather.count < kFewestBlocks * runs) return std::nullopt;
  params.rows = gather.outer;
  params.row_bytes = gather.size * gather.block_bytes;
  params.out_bytes = gather.count * gather.block_bytes;
  params.batch_rows = gather.batch_rows;
  return MakeCandidate(target, node, "gather_runs", RunGatherRuns, std::move(params), 0);
}

constexpr int kMaxTables = 8;
constexpr size_t kMaxDims = 6;

// Returns the bytes of a row of a table that the model stores as bytes: its factor and its zero
// point, then its values as int8.
constexpr int64_t Int8RowBytes(int64_t width) { return width + 2 * int64_t{sizeof(float)}; }

// The bytes of a row that are prefetched: from there on the hardware prefetcher follows.
constexpr int64_t kMostFetched = 512;

struct EmbeddingParams {
  const RowKernels* kernels = nullptr;
  int tables = 0;
  int64_t rows = 0, width = 0;
  int64_t batch_rows = 0;
  size_t dims = 0;
  int64_t sizes[kMaxDims] = {};
  struct Table {
    int64_t size = 0;
    bool wide = false;
    bool int8 = false;                  // rows of Int8RowBytes(width)
    const HalfKernels* half = nullptr;  // rows of width halves; neither: of width floats
    int64_t steps[kMaxDims] = {};  // elements of the ids from one row to the next along each dim
  } table[kMaxTables];
};

// The rows of the tables that one row of the result is the sum of.
struct Summands {
  const std::byte* rows[kMaxTables];
  const std::byte* int8_rows[kMaxTables];
  const std::byte* half_rows[kMaxTables];
  const HalfKernels* half_kernels[kMaxTables];
  int floats = 0, int8s = 0, halves = 0;
};

void Fetch(const std::byte* row, int64_t bytes) {
  constexpr int64_t kLine = 64;
  for (int64_t i = 0; i < bytes; i += kLine) {
    __builtin_prefetch(row + i, /*rw=*/0, /*locality=*/3);
  }
}

// Finds the summands, and prefetches those that lie anywhere in a table.
Summands SummandsOf(const EmbeddingParams& p, const LaunchArgs& launch, int64_t row) {
  int64_t position[kMaxDims];
  for (size_t d = p.dims; d-- > 0;) {
    position[d] = row % p.sizes[d];
    row /= p.sizes[d];
  }
  Summands found;
  for (int t = 0; t < p.tables; ++t) {
    const EmbeddingParams::Table& table = p.table[t];
    int64_t element = 0;
    for (size_t d = 0; d < p.dims; ++d) element += position[d] * table.steps[d];
    const Indices ids = {launch.operands[2 * t + 1], table.wide};
    const int64_t index = CheckedIndex(launch, 2 * t + 1, ids, element, table.size);
    const int64_t bytes = table.int8              ? Int8RowBytes(p.width)
                          : table.half != nullptr ? p.width * int64_t{sizeof(uint16_t)}
                                                  : p.width * int64_t{sizeof(float)};
    const std::byte* from = static_cast<const std::byte*>(launch.operands[2 * t]) + index * bytes;
    if (table.half != nullptr) {
      found.half_kernels[found.halves] = table.half;
      found.half_rows[found.halves++] = from;
    } else {
      (table.int8 ? found.int8_rows[found.int8s++] : found.rows[found.floats++]) = from;
    }
    Fetch(from, std::min(bytes, kMostFetched));
  }
  return found;
}

void RunEmbedding(const LaunchArgs& launch) {
  const auto& p = *static_cast<const EmbeddingParams*>(launch.params);
  auto* out = static_cast<float*>(launch.operands[2 * p.tables]);
  const int64_t live = LiveOf(p.rows, p.batch_rows, *launch.frame);
  const ItemRange range = RangeOfPart(live, 1, launch.part, launch.parts);
  // The hardware cannot guess which rows are next: they are prefetched while others are summed.
  constexpr int64_t kAhead = 6;
  Summands found[kAhead + 1];
  for (int64_t row = range.begin; row < std::min(range.begin + kAhead, range.end); ++row) {
    found[row % (kAhead + 1)] = SummandsOf(p, launch, row);
  }
  for (int64_t row = range.begin; row < range.end; ++row) {
    const int64_t next = row + kAhead;
    if (next < range.end) found[next % (kAhead + 1)] = SummandsOf(p, launch, next);
    const Summands& of = found[row % (kAhead + 1)];
    float* sum = out + row * p.width;
    int halves = 0;  // halves that were added so far
    if (of.floats > 0) {
      p.kernels->sum_rows(of.rows, of.floats, p.width, sum);
    } else if (of.halves > 0) {
      of.half_kernels[0]->widen(of.half_rows[halves++], sum, p.width);
    } else {
      std::fill_n(sum, p.width, 0.0f);
    }
    for (; halves < of.halves; ++halves) {
      of.half_kernels[halves]->add(of.half_rows[halves], sum, p.width);
    }
    p.kernels->add_int8_rows(of.int8_rows, of.int8s, p.width, sum);
  }
}

struct CheckRangeParams {
  int64_t elements = 0, low = 0, high = 0, batch_rows = 0;
};

template <class T>
void RunCheckRange(const LaunchArgs& launch) {
  const auto& p = *static_cast<const CheckRangeParams*>(launch.params);
  const auto* x = static_cast<const T*>(launch.operands[0]);
  auto* y = static_cast<T*>(launch.operands[1]);
  constexpr int64_t kGrain = 64;
  const ItemRange range = RangeOfPart(LiveOf(p.elements, p.batch_rows, *launch.frame), kGrain,
                                      launch.part, launch.parts);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const T value = x[i];
    const bool inside = value >= p.low && value <= p.high;
    if (!inside) launch.frame->errors->Report(launch.launch, 0, i, value, p.low, p.high);
    y[i] = inside ? value : static_cast<T>(p.low);
  }
}

// Returns the step where the table `input` is a Cast of halves: they are read as they are stored.
PrepareStep ReadHalves(size_t input, const ParameterExprPtr& halves) {
  return {.input = input, .parts = {halves}, .dtype = halves->dtype(), .shape = halves->shape()};
}

}  // namespace

std::vector<Candidate> PlanGather(const CpuTarget& target, const NodeView& node) {
  const absl::StatusOr<int64_t> axis =
      NormalizeAxis(GatherOp::From(node.attributes()).axis, node.rank(0));
  if (!axis.ok() || !IsIndex(node.dtype(1))) return {};
  const absl::Span<const int64_t> shape = node.shape(0);
  GatherParams params;
  params.outer = NumElements(shape.first(*axis));
  params.size = shape[*axis];
  if (params.size == 0) return {};
  params.count = NumElements(node.shape(1));
  const ParameterExprPtr halves = HalfOf(node.parameter(0));
  const DType stored = halves == nullptr ? node.dtype(0) : halves->dtype();
  params.block = NumElements(shape.subspan(*axis + 1));
  params.block_bytes = params.block * static_cast<int64_t>(DTypeSize(stored));
  if (halves != nullptr) params.half = &HalfKernelsFor(target.isa, stored);
  params.wide = node.dtype(1) == DType::kInt64;
  params.batch_rows = node.batch_rows();
  std::optional<Candidate> runs = GatherOfRuns(target, node, params);
  Candidate candidate = runs.has_value()
                            ? *std::move(runs)
                            : MakeCandidate(target, node, "gather", RunGather, params, 0);
  // The table is not read as a whole.
  LaunchWork& work = candidate.bound.work;
  work.bytes = 2.0 * static_cast<double>(params.outer * params.count) *
               static_cast<double>(params.block_bytes);
  work.weight_bytes = node.is_parameter(0) ? work.bytes / 2 : 0;
  candidate.option.estimate_ns = work.bytes / 10;
  candidate.option.takes_live_rows = params.batch_rows > 0;
  candidate.option.unaligned_inputs = {0};
  if (halves != nullptr) candidate.option.prepare.push_back(ReadHalves(0, halves));
  return {std::move(candidate)};
}

std::vector<Candidate> PlanCheckRange(const CpuTarget& target, const NodeView& node) {
  const Attributes& attributes = node.attributes();
  const CheckRangeParams params = {.elements = NumElements(node.shape(0)),
                                   .low = CheckRangeOp::From(attributes).low,
                                   .high = CheckRangeOp::From(attributes).high,
                                   .batch_rows = node.batch_rows()};
  const bool wide = node.dtype(0) == DType::kInt64;
  Candidate candidate = MakeCandidate(target, node, "check_range",
                                      wide ? RunCheckRange<int64_t> : RunCheckRange<int32_t>,
                                      params, static_cast<double>(params.elements));
  candidate.option.takes_live_rows = params.batch_rows > 0;
  candidate.option.in_place = 0;
  return {std::move(candidate)};
}

std::vector<Candidate> PlanEmbeddingSum(const CpuTarget& target, const NodeView& node) {
  EmbeddingParams params;
  const Shape& out = node.out_shape();
  params.kernels = &RowKernelsFor(target.isa);
  params.tables = static_cast<int>(node.num_inputs() / 2);
  if (params.tables > kMaxTables || out.size() - 1 > kMaxDims) return {};
  params.dims = out.size() - 1;
  params.batch_rows = node.batch_rows();
  params.width = out.back();
  params.rows = 1;
  for (size_t d = 0; d < params.dims; ++d) params.rows *= params.sizes[d] = out[d];
  for (int t = 0; t < params.tables; ++t) {
    EmbeddingParams::Table& table = params.table[t];
    const Shape& ids = node.shape(2 * t + 1);
    table.size = node.shape(2 * t)[0];
    if (table.size == 0 || !IsIndex(node.dtype(2 * t + 1))) return {};
    table.wide = node.dtype(2 * t + 1) == DType::kInt64;
    int64_t step = 1;
    for (size_t i = 1; i <= ids.size(); ++i) {
      const int64_t size = ids[ids.size() - i];
      table.steps[params.dims - i] = size == 1 ? 0 : step;
      step *= size;
    }
  }
  std::vector<PrepareStep> prepare;
  for (int t = 0; t < params.tables; ++t) {
    const size_t input = 2 * static_cast<size_t>(t);
    if (const ParameterExprPtr halves = HalfOf(node.parameter(input)); halves != nullptr) {
      params.table[t].half = &HalfKernelsFor(target.isa, halves->dtype());
      prepare.push_back(ReadHalves(input, halves));
      continue;
    }
    const auto weights = ops::SplitQuantized(node.parameter(input), /*axis=*/0);
    if (!weights.has_value()) continue;
    params.table[t].int8 = true;
    PrepareStep& step = prepare.emplace_back();
    step.input = input;
    step.op = kPackInt8RowsOp;
    step.parts.push_back(weights->values);
    // There are zero points only where there are scales.
    if (weights->scales != nullptr) step.parts.push_back(weights->scales);
    if (weights->points != nullptr) step.parts.push_back(weights->points);
    step.shape = {node.shape(input)[0] * Int8RowBytes(params.width)};
  }
  const double elements = static_cast<double>(NumElements(out));
  Candidate candidate = MakeCandidate(target, node, "embedding", RunEmbedding, params,
                                      elements * (params.tables - 1));
  candidate.option.prepare = std::move(prepare);
  for (size_t t = 0; t < node.num_inputs() / 2; ++t) {
    candidate.option.unaligned_inputs.push_back(2 * t);
  }
  candidate.option.takes_live_rows = params.batch_rows > 0;
  LaunchWork& work = candidate.bound.work;
  work.bytes = 4 * elements * (params.tables + 1);
  // One row of each table for a row of the result; repeated rows do not count.
  work.weight_bytes = 4 * elements;
  candidate.option.estimate_ns = work.bytes / 10;
  return {std::move(candidate)};
}

absl::StatusOr<Tensor> RunPackInt8Rows(const PrepareCall& call) {
  const Tensor& values = call.weight();
  const Tensor* scales = call.input(1);
  const Tensor* points = call.input(2);
  const Shape& shape = values.shape();
  const bool is_unsigned = values.dtype() == DType::kUInt8;
  const int64_t given = scales == nullptr ? 1 : scales->num_elements();
  const int64_t shifts = points == nullptr ? 1 : points->num_elements();
  if ((values.dtype() != DType::kInt8 && !is_unsigned) || shape.size() != 2 ||
      (given != 1 && given != shape[0]) || (shifts != 1 && shifts != shape[0])) {
    return absl::InternalError(absl::StrCat(kPackInt8RowsOp, " of ", DTypeName(values.dtype()), " ",
                                            ShapeToString(shape), " with ", given, " scales and ",
                                            points == nullptr ? 0 : shifts, " zero points"));
  }
  std::vector<int64_t> zeros = {0};
  if (points != nullptr) {
    ASSIGN_OR_RETURN(zeros, points->ToInt64s());
  }
  const auto width = static_cast<size_t>(shape[1]);
  const int64_t bytes = shape[0] * Int8RowBytes(shape[1]);
  std::shared_ptr<std::byte> packed = call.memory.Allocate(static_cast<size_t>(bytes));
  std::byte* to = packed.get();
  const auto* from = static_cast<const uint8_t*>(values.data());
  // Subtracting 128 flips the top bit.
  const uint8_t flip = is_unsigned ? 0x80 : 0;
  for (int64_t row = 0; row < shape[0]; ++row, from += width) {
    const float factor = scales == nullptr ? 1 : scales->span<float>()[given == 1 ? 0 : row];
    const auto zero = static_cast<float>(zeros[shifts == 1 ? 0 : row] - flip);
    std::memcpy(to, &factor, sizeof(factor));
    to += sizeof(factor);
    std::memcpy(to, &zero, sizeof(zero));
    to += sizeof(zero);
    for (size_t i = 0; i < width; ++i) to[i] = static_cast<std::byte>(from[i] ^ flip);
    to += width;
  }
  return Tensor(DType::kUInt8, {bytes}, std::move(packed));
}

}  // namespace reprise::cpu
