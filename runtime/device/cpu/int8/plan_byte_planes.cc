// reprise.IntegerAdd and reprise.ByteTable, and MaxPool of bytes in the form that planes with their
// channels last have: windows that are one element wide along the last dim, [batch, channels, rows,
// columns, inner].
#include <vector>

#include "runtime/device/cpu/gemm/conv_finish.h"
#include "runtime/device/cpu/int8/byte_planes.h"
#include "runtime/device/cpu/int8/int8_plans.h"
#include "runtime/device/cpu/plan/plan.h"
#include "runtime/ops/quantized/quantize.h"
#include "runtime/ops/windows/windows.h"

namespace reprise::cpu {
namespace {

struct AddParams {
  const BytePlaneKernels* kernels = nullptr;
  ByteSum sum;  // each launch sets its scales and zero points
  int64_t elements = 0, batch_rows = 0;
};

void RunAdd(const LaunchArgs& launch) {
  const auto& p = *static_cast<const AddParams*>(launch.params);
  constexpr int kFirstScale = 2, kFirstZero = 5, kOut = 8;
  constexpr int64_t kGrain = 64;
  ByteSum sum = p.sum;
  int i = 0;
  for (ByteSum::Side* side : {&sum.a, &sum.b, &sum.y}) {
    side->scale = *static_cast<const float*>(launch.operands[kFirstScale + i]);
    const auto zero = *static_cast<const uint8_t*>(launch.operands[kFirstZero + i]);
    side->zero = side->is_signed ? static_cast<int8_t>(zero) : zero;
    ++i;
  }
  const ItemRange range = RangeOfPart(LiveOf(p.elements, p.batch_rows, *launch.frame), kGrain,
                                      launch.part, launch.parts);
  if (range.begin == range.end) return;
  p.kernels->add(sum, static_cast<const uint8_t*>(launch.operands[0]) + range.begin,
                 static_cast<const uint8_t*>(launch.operands[1]) + range.begin,
                 static_cast<uint8_t*>(launch.operands[kOut]) + range.begin,
                 range.end - range.begin);
}

struct TableParams {
  const BytePlaneKernels* kernels = nullptr;
  int64_t elements = 0, batch_rows = 0;
};

void RunTable(const LaunchArgs& launch) {
  const auto& p = *static_cast<const TableParams*>(launch.params);
  constexpr int64_t kGrain = 128;
  const ItemRange range = RangeOfPart(LiveOf(p.elements, p.batch_rows, *launch.frame), kGrain,
                                      launch.part, launch.parts);
  if (range.begin == range.end) return;
  p.kernels->look_up(static_cast<const uint8_t*>(launch.operands[1]),
                     static_cast<const uint8_t*>(launch.operands[0]) + range.begin,
                     static_cast<uint8_t*>(launch.operands[2]) + range.begin,
                     range.end - range.begin);
}

// Dims of windows, after batch and channels; the last is `inner`.
constexpr size_t kRows = 0, kColumns = 1, kInner = 2;
constexpr int64_t kMostPlaneTaps = 256;

struct BytePoolParams {
  const BytePlaneKernels* kernels = nullptr;
  ops::Windows windows;
  int64_t rows = 0, columns = 0, inner = 0;
  int64_t batch = 0, batch_rows = 0, channels = 0;
  bool is_signed = false;
};

// Runs units: a unit is a row of windows.
void RunBytePool(const LaunchArgs& launch) {
  const auto& p = *static_cast<const BytePoolParams*>(launch.params);
  const ops::Windows& w = p.windows;
  const auto* x = static_cast<const uint8_t*>(launch.operands[0]);
  auto* y = static_cast<uint8_t*>(launch.operands[1]);
  const int64_t out_rows = w.out[kRows], out_columns = w.out[kColumns];
  const int64_t units = LiveOf(p.batch, p.batch_rows, *launch.frame) * p.channels * out_rows;
  const ItemRange range = RangeOfPart(units, 1, launch.part, launch.parts);
  const auto tap_at = [&](size_t dim, int64_t window, int64_t tap) {
    return window * w.strides[dim] - w.pad_begin[dim] + tap * w.dilations[dim];
  };
  const uint8_t* seen[kMostPlaneTaps];
  for (int64_t unit = range.begin; unit < range.end; ++unit) {
    const uint8_t* const plane = x + unit / out_rows * p.rows * p.columns * p.inner;
    for (int64_t column = 0; column < out_columns; ++column) {
      int64_t count = 0;
      for (int64_t row_tap = 0; row_tap < w.kernel[kRows]; ++row_tap) {
        const int64_t row = tap_at(kRows, unit % out_rows, row_tap);
        if (row < 0 || row >= p.rows) continue;
        for (int64_t tap = 0; tap < w.kernel[kColumns]; ++tap) {
          const int64_t at = tap_at(kColumns, column, tap);
          if (at < 0 || at >= p.columns) continue;
          seen[count++] = plane + (row * p.columns + at) * p.inner;
        }
      }
      p.kernels->largest(seen, count, p.is_signed, p.inner,
                         y + (unit * out_columns + column) * p.inner);
    }
  }
}

// Returns whether every window sees an element along `dim`.
bool SeesSomething(const ops::Windows& w, size_t dim, int64_t size) {
  for (int64_t window = 0; window < w.out[dim]; ++window) {
    bool any = false;
    for (int64_t tap = 0; tap < w.kernel[dim]; ++tap) {
      const int64_t at = window * w.strides[dim] - w.pad_begin[dim] + tap * w.dilations[dim];
      any |= at >= 0 && at < size;
    }
    if (!any) return false;
  }
  return true;
}

}  // namespace

std::vector<Candidate> PlanIntegerAdd(const CpuTarget& target, const NodeView& node) {
  const std::optional<ConvActivation> activation = ConvActivationOf(node.attributes());
  if (!activation.has_value()) return {};
  AddParams p = {.kernels = &BytePlaneKernelsFor(target.isa)};
  p.sum.a.is_signed = node.dtype(0) == DType::kInt8;
  p.sum.b.is_signed = node.dtype(1) == DType::kInt8;
  p.sum.y.is_signed = node.out_dtype() == DType::kInt8;
  p.sum.activation = *activation;
  p.elements = NumElements(node.out_shape());
  p.batch_rows = node.batch_rows();
  Candidate candidate =
      MakeCandidate(target, node, "integer_add", RunAdd, p, 8.0 * static_cast<double>(p.elements));
  candidate.option.takes_live_rows = p.batch_rows > 0;
  candidate.option.in_place = 0;
  return {std::move(candidate)};
}

std::vector<Candidate> PlanByteTable(const CpuTarget& target, const NodeView& node) {
  const TableParams p = {.kernels = &BytePlaneKernelsFor(target.isa),
                         .elements = NumElements(node.out_shape()),
                         .batch_rows = node.batch_rows()};
  Candidate candidate =
      MakeCandidate(target, node, "byte_table", RunTable, p, static_cast<double>(p.elements));
  candidate.option.takes_live_rows = p.batch_rows > 0;
  candidate.option.in_place = 0;
  return {std::move(candidate)};
}

std::vector<Candidate> PlanBytePool(const CpuTarget& target, const NodeView& node) {
  constexpr size_t kDims = 5;
  if (!ops::IsByte(node.dtype(0)) || node.shape(0).size() != kDims || node.has_output(1)) return {};
  const Shape& x = node.shape(0);
  const absl::StatusOr<ops::Windows> windows = ops::WindowsOf(node.node(), x);
  if (!windows.ok() || NumElements(node.out_shape()) == 0 || NumElements(x) == 0) return {};
  const ops::Windows& w = *windows;
  if (w.kernel[kInner] != 1 || w.strides[kInner] != 1 || w.pad_begin[kInner] != 0 ||
      w.out[kInner] != x[4] || NumElements(w.kernel) > kMostPlaneTaps ||
      !SeesSomething(w, kRows, x[2]) || !SeesSomething(w, kColumns, x[3])) {
    return {};
  }
  BytePoolParams p = {.kernels = &BytePlaneKernelsFor(target.isa),
                      .windows = w,
                      .rows = x[2],
                      .columns = x[3],
                      .inner = x[4],
                      .batch = x[0],
                      .channels = x[1],
                      .is_signed = node.dtype(0) == DType::kInt8};
  p.batch_rows = WholeBatchRows(node, p.batch);
  const double flops = static_cast<double>(NumElements(node.out_shape())) *
                       static_cast<double>(NumElements(w.kernel));
  const bool takes_live_rows = p.batch_rows > 0;
  Candidate candidate = MakeCandidate(target, node, "byte_pool", RunBytePool, std::move(p), flops);
  candidate.option.takes_live_rows = takes_live_rows;
  return {std::move(candidate)};
}

}  // namespace reprise::cpu
