// Averages over windows, of which some elements do not count.
//
// AveragePool divides by the elements of a window: by the request's own elements, and with
// count_include_pad by the model's pads around them, but never by elements that rounding up adds
// after these, nor by padding. Its form divides by all elements of the window, which are zeros
// there, and multiplies by the share of each window (ops/windows/live.h).
#include <algorithm>
#include <vector>

#include "runtime/graph/graph.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/shape_op.h"
#include "runtime/ops/windows/live_op.h"
#include "runtime/ops/windows/windows.h"
#include "runtime/passes/live/live_rewrite.h"

namespace reprise {
namespace {

// Returns how many more pads at the end of each dim give a pool the same windows without ceil_mode.
// Windows that begin after all positions are left out: fewer pads give none of these.
std::vector<int64_t> PadsRoundedUp(const ops::Windows& w, bool rounds_up) {
  std::vector<int64_t> more(w.kernel.size(), 0);
  for (size_t d = 0; rounds_up && d < more.size(); ++d) {
    const int64_t reach = (w.kernel[d] - 1) * w.dilations[d];
    more[d] = std::min(w.strides[d] - 1, std::max<int64_t>(0, reach - w.pad_end[d]));
  }
  return more;
}

// Rounding up leaves windows out that begin in the pads after all positions. Without it they
// count.
bool LeavesWindowsOut(const ops::Windows& w, bool rounds_up) {
  for (size_t d = 0; rounds_up && d < w.kernel.size(); ++d) {
    if (w.pad_end[d] > (w.kernel[d] - 1) * w.dilations[d]) return true;
  }
  return false;
}

// Returns whether some window has elements after all positions, along this axis or another.
bool ReachesBehind(const ops::Windows& w, const std::vector<int64_t>& more) {
  for (size_t d = 0; d < more.size(); ++d) {
    if (w.pad_end[d] + more[d] > 0) return true;
  }
  return false;
}

Attributes OfSums(const Node& node, const ops::Windows& w, const std::vector<int64_t>& more) {
  std::vector<int64_t> pads = w.pad_begin;
  for (size_t d = 0; d < more.size(); ++d) pads.push_back(w.pad_end[d] + more[d]);
  Attributes attributes = node.attributes;
  attributes.Set("auto_pad", std::string("NOTSET"));
  attributes.Set("ceil_mode", int64_t{0});
  attributes.Set("count_include_pad", int64_t{1});
  attributes.Set("pads", std::move(pads));
  attributes.Set(ops::kRoundingPads, more);
  return attributes;
}

}  // namespace

void LiveRewrite::VisitAverage(NodeId id) {
  const Node node = graph_.node(id);
  // Pads that depend on a size, of another axis too, are none that the form could say.
  if (node.attributes.String("auto_pad", "NOTSET").starts_with("SAME")) return;
  const ValueId x = node.inputs[0];
  const SizeList* sizes = extents_.SizesOf(x);
  if (sizes == nullptr || !HasRowsOfBatch(x)) return;
  const absl::StatusOr<ops::Windows> w = ops::WindowsOf(node, HintsOf(*sizes));
  if (!w.ok()) return;
  const bool rounds_up = node.attributes.Int("ceil_mode", 0) != 0;
  const bool counts_pads = node.attributes.Int("count_include_pad", 0) != 0;
  const std::vector<int64_t> more = PadsRoundedUp(*w, rounds_up);
  if (!ReachesBehind(*w, more) || LeavesWindowsOut(*w, rounds_up)) return;
  std::vector<LiveDim> filled;
  bool is_live = false;
  for (const LiveWindows& windows : extents_.WindowsOf(id)) {
    const auto in = extents_.At(x, windows.dim);
    if (!in.has_value()) continue;
    if (!CanFill(x, *in)) return;
    is_live = true;
    if (windows.leaves_end) filled.push_back(*in);
  }
  if (!is_live) return;
  ValueId kept = x;
  for (const LiveDim& one : filled) kept = Filled(kept, one, 0);
  ValueId average = Add(node.op, {kept}, OfSums(node, *w, more));
  for (size_t d = 0; d < more.size(); ++d) {
    const bool has_pads = w->pad_begin[d] + w->pad_end[d] > 0;
    if (more[d] == 0 && (counts_pads || !has_pads)) continue;  // All elements count.
    const auto dim = static_cast<int64_t>(d) + 2;
    const ValueId share = Add(LiveShareOp::kName, {CountAlong(x, dim), SizeOf(x, dim)},
                              {{"rank", extents_.RankOf(x)},
                               {"axis", dim},
                               {"kernel", w->kernel[d]},
                               {"stride", w->strides[d]},
                               {"dilation", w->dilations[d]},
                               {"begin", w->pad_begin[d]},
                               {"end", w->pad_end[d]},
                               {"more", more[d]},
                               {"counts_pads", int64_t{counts_pads}}});
    average = Add(MulOp::kName, {average, share});
  }
  ReplaceOutput(id, average);
}

ValueId LiveRewrite::CountAlong(ValueId x, int64_t dim) {
  const auto in = extents_.At(x, dim);
  if (in.has_value() && CanFill(x, *in)) return ExtentOf(in->extent, x, dim);
  return Add(CastOp::kName, {SizeOf(x, dim)}, {{"to", ops::OnnxNumber(DType::kInt32)}});
}

// Visits a share: the form of another axis took all positions along this one for a request's own.
void LiveRewrite::VisitShare(NodeId id) {
  const Node node = graph_.node(id);
  const Node* gather = graph_.ProducerIf(node.inputs[LiveShareOp::kSize], GatherOp::kName);
  const Node* shape =
      gather == nullptr ? nullptr : graph_.ProducerIf(gather->inputs[0], ShapeOp::kName);
  if (shape == nullptr) return;
  const ValueId x = shape->inputs[0];
  const int64_t dim = node.attributes.Int("axis", 0);
  if (!extents_.At(x, dim).has_value() || !HasRowsOfBatch(x)) return;
  graph_.SetInput(id, LiveShareOp::kExtent, CountAlong(x, dim));
}

}  // namespace reprise
