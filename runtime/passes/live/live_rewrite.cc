#include "runtime/passes/live/live_rewrite.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/graph/elements.h"
#include "runtime/ops/elementwise/arithmetic_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/shape_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/reduce/arg_op.h"
#include "runtime/ops/reduce/reduce_op.h"
#include "runtime/ops/reduce/softmax_op.h"
#include "runtime/ops/windows/live_op.h"
#include "runtime/ops/windows/pool_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/live/live_form.h"
#include "runtime/shapes/dim_expression.h"

namespace reprise {
namespace {

// A value is followed back through this many nodes that only move elements.
constexpr int kMostMoves = 16;

// Returns whether the padding holds zeros, as for floats of the model's own inputs.
bool IsZeroBehind(const Graph& graph, ValueId value) {
  for (int moves = 0; value != kNone && moves < kMostMoves; ++moves) {
    if (graph.value(value).kind == Value::Kind::kInput) return IsFloating(graph.value(value).dtype);
    const NodeId producer = graph.value(value).producer;
    if (producer == kNone) return false;
    const std::string& op = graph.node(producer).op;
    const bool keeps = op == UnsqueezeOp::kName || op == SqueezeOp::kName ||
                       op == ReshapeOp::kName || op == TransposeOp::kName ||
                       op == IdentityOp::kName;
    if (!keeps) return false;
    value = graph.node(producer).input(0);
  }
  return false;
}

// Returns whether a value is the result of a softmax along its last dim, of which some elements may
// be zeros instead.
bool IsSoftmax(const Graph& graph, const LiveExtents& extents, ValueId value) {
  const auto is_zero = [&](ValueId instead) {
    const Tensor* constant = graph.ConstantOf(instead);
    return constant != nullptr && AllElements(*constant, [](double one) { return one == 0; });
  };
  const auto last = [&](ValueId of) { return extents.RankOf(of) - 1; };
  while (graph.ProducerIf(value, SoftmaxOp::kName) == nullptr) {
    ValueId source = kNone;
    if (const Node* reshape = graph.ProducerIf(value, ReshapeOp::kName)) {
      source = reshape->input(0);
    } else if (const Node* choice = graph.ProducerIf(value, WhereOp::kName)) {
      const ValueId chosen = choice->input(WhereOp::kThen), other = choice->input(WhereOp::kElse);
      if (is_zero(chosen) || is_zero(other)) source = is_zero(chosen) ? other : chosen;
    }
    // Equal last dims: a reshape keeps rows.
    if (source == kNone || !extents.HaveSameSizes(value, last(value), source, last(source))) {
      return false;
    }
    value = source;
  }
  const int64_t axis = graph.ProducerIf(value, SoftmaxOp::kName)->attributes.Int("axis", -1);
  return axis == -1 || axis == last(value);
}

}  // namespace

LiveRewrite::Handler LiveRewrite::HandlerOf(const Node& node) {
  if (node.op == LiveShareOp::kName) return &LiveRewrite::VisitShare;
  if (node.op == SliceOp::kName) return &LiveRewrite::VisitSlice;
  if (node.op == GatherOp::kName) return &LiveRewrite::VisitLast;
  if (node.op == "Pad") return &LiveRewrite::VisitPad;
  switch (FactsOf(node.op).border) {
    case Border::kNone:
      return &LiveRewrite::VisitNumbers;
    case Border::kWindow:
    case Border::kCountedWindow:
    case Border::kLargestWindow:
      return &LiveRewrite::VisitWindows;
    case Border::kSum:
      return &LiveRewrite::VisitSum;
    case Border::kMean:
      return &LiveRewrite::VisitMean;
    case Border::kLargest:
    case Border::kSmallest:
      return &LiveRewrite::VisitExtreme;
    case Border::kPick:
      return &LiveRewrite::VisitPick;
    case Border::kNorm:
      return &LiveRewrite::VisitNorm;
    case Border::kSoftmax:
      return &LiveRewrite::VisitSoftmax;
    case Border::kProduct:
      return &LiveRewrite::VisitProduct;
    case Border::kAttention:
      return &LiveRewrite::VisitAttention;
    case Border::kLengths:
      return &LiveRewrite::VisitRecurrent;
  }
  return nullptr;
}

void LiveRewrite::Run() {
  for (const NodeId id : graph_.NodeIds()) {
    if (graph_.node(id).removed) continue;
    const Handler handler = HandlerOf(graph_.node(id));
    if (handler == nullptr) continue;
    source_op_ = SourceOp(graph_.node(id));
    source_name_ = graph_.node(id).name;
    (this->*handler)(id);
  }
}

ValueId LiveRewrite::Add(absl::string_view op, std::vector<ValueId> inputs, Attributes attributes) {
  const NodeId id = graph_.AddNode(op, std::move(inputs), std::move(attributes));
  graph_.SetSource(id, source_op_, source_name_);
  return graph_.node(id).outputs[0];
}

ValueId LiveRewrite::Ints(const std::vector<int64_t>& values) {
  return graph_.AddConstant("", Tensor::Int64s(values));
}

ValueId LiveRewrite::Live() {
  if (live_ != kNone) return live_;
  const Dim rows = axes_.batch.empty() ? Dim{.size = 1} : Dim{.symbol = axes_.batch};
  live_ = graph_.AddInput(absl::StrCat(kLiveInput, axes_.axis), DType::kBool,
                          {rows, Dim{.symbol = axes_.axis}});
  return live_;
}

ValueId LiveRewrite::SizeOf(ValueId value, int64_t dim) {
  NodeId& shape = shapes_.emplace(value, kNone).first->second;
  if (shape == kNone) shape = graph_.value(Add(ShapeOp::kName, {value})).producer;
  return Add(GatherOp::kName, {graph_.node(shape).outputs[0], Ints({dim})});
}

ValueId LiveRewrite::ExtentOf(const Extent& extent, ValueId value, int64_t dim) {
  return Add(LiveExtentOp::kName, {Live(), SizeOf(value, dim)},
             {{"offset", extent.offset}, {"stride", extent.stride}});
}

ValueId LiveRewrite::FillNode(ValueId value, int64_t axis, const Extent& extent, float fill) {
  return Add(LiveFillOp::kName, {value, ExtentOf(extent, value, axis)},
             {{"axis", axis}, {"value", fill}});
}

ValueId LiveRewrite::Filled(ValueId value, const LiveDim& dim, float fill) {
  ValueId& known = filled_.emplace(std::tuple(value, dim.dim, fill), kNone).first->second;
  if (known != kNone) return known;
  const ValueId filled = FillNode(value, dim.dim, dim.extent, fill);
  extents_.Alias(filled, value);
  known = filled;
  if (fill == 0 && graph_.value(value).kind == Value::Kind::kResult) {
    graph_.ReplaceAllUses(value, filled);
    graph_.SetInput(graph_.value(filled).producer, 0, value);
    graph_.SetInput(shapes_.at(value), 0, value);  // The fill itself hangs on it.
    filled_[std::tuple(filled, dim.dim, fill)] = filled;
  }
  return filled;
}

ValueId LiveRewrite::FilledLines(ValueId value, ValueId source, const Extent& extent) {
  const ValueId apart = Add(ReshapeOp::kName, {value, Add(ShapeOp::kName, {source})});
  const ValueId filled = FillNode(apart, extents_.RankOf(source) - 1, extent, 0);
  return Add(ReshapeOp::kName, {filled, Add(ShapeOp::kName, {value})});
}

void LiveRewrite::ReplaceOutput(NodeId id, ValueId by) {
  const ValueId output = graph_.node(id).outputs[0];
  extents_.Alias(by, output);
  Replace(graph_, output, by);
}

std::vector<LiveDim> LiveRewrite::LiveAmong(ValueId value, const std::vector<int64_t>& dims) const {
  std::vector<LiveDim> live;
  for (const LiveDim& one : extents_.Of(value)) {
    if (absl::c_linear_search(dims, one.dim)) live.push_back(one);
  }
  return live;
}

bool LiveRewrite::HasRowsOfBatch(ValueId value) const { return extents_.HasRowsAlone(value); }

bool LiveRewrite::CanFill(ValueId value, const LiveDim& dim) const {
  return dim.dim != 0 && dim.repeats == 1 && extents_.HasAllRows(value);
}

void LiveRewrite::VisitWindows(NodeId id) {
  const ValueId x = graph_.node(id).input(0);
  const Border border = FactsOf(graph_.node(id).op).border;
  // Pads that do not depend on the size can be said.
  const std::string auto_pad = graph_.node(id).attributes.String("auto_pad", "NOTSET");
  if (const auto* pads = extents_.PadsOf(id); pads != nullptr && auto_pad.starts_with("SAME")) {
    graph_.node(id).attributes.Set("auto_pad", std::string("NOTSET"));
    graph_.node(id).attributes.Set("pads", *pads);
  }
  const Attributes& attributes = graph_.node(id).attributes;
  const bool divides_by_all =
      attributes.Int("count_include_pad", 0) != 0 && attributes.Int("ceil_mode", 0) == 0;
  if (border == Border::kCountedWindow && !divides_by_all) return VisitAverage(id);
  for (const LiveWindows& windows : extents_.WindowsOf(id)) {
    const auto in = extents_.At(x, windows.dim);
    if (!windows.leaves_end || !in.has_value() || !CanFill(x, *in)) continue;
    const ValueId now = graph_.node(id).inputs[0];
    if (border != Border::kLargestWindow) {
      if (!IsZeroBehind(graph_, now)) graph_.SetInput(id, 0, Filled(now, *in, 0));
      continue;
    }
    graph_.SetInput(id, 0, Filled(now, *in, -kInfinity));
    // Windows that lie past the end hold nothing to compute with.
    const ValueId pooled = graph_.node(id).outputs[0];
    Filled(pooled, {.dim = windows.dim, .extent = windows.extent}, 0);
  }
}

std::optional<std::vector<int64_t>> LiveRewrite::ReducedDims(const Node& node) const {
  const int64_t rank = extents_.RankOf(node.input(0));
  std::vector<int64_t> dims;
  if (node.op.starts_with("Global")) {
    for (int64_t d = 2; d < rank; ++d) dims.push_back(d);
    return dims;
  }
  if (node.input(1) == kNone) {
    if (node.attributes.Int("noop_with_empty_axes", 0) != 0) return std::nullopt;
    for (int64_t d = 0; d < rank; ++d) dims.push_back(d);
    return dims;
  }
  const Tensor* axes = KnownConstant(graph_, node.input(1));
  const auto known = axes == nullptr ? absl::UnknownError("") : axes->ToInt64s();
  if (!known.ok() || known->empty()) return std::nullopt;
  for (const int64_t dim : *known) dims.push_back(dim < 0 ? dim + rank : dim);
  absl::c_sort(dims);
  return dims;
}

ValueId LiveRewrite::CountOf(ValueId value, const std::vector<LiveDim>& live) {
  std::vector<int64_t> shape(static_cast<size_t>(extents_.RankOf(value)), 1);
  shape[0] = -1;
  ValueId count = kNone;
  for (const LiveDim& one : live) {
    const bool in_lines = one.repeats != 1;
    const ValueId extent = in_lines ? ExtentOf(one.extent, lines_, extents_.RankOf(lines_) - 1)
                                    : ExtentOf(one.extent, value, one.dim);
    const ValueId own = Add(CastOp::kName, {extent}, {{"to", ops::OnnxNumber(DType::kFloat32)}});
    count = count == kNone ? own : Add(MulOp::kName, {count, own});
    if (!in_lines) continue;
    const ValueId repeats =
        graph_.AddConstant("", Tensor::FloatScalar(static_cast<float>(one.repeats)));
    count = Add(MulOp::kName, {count, repeats});
  }
  return Add(ReshapeOp::kName, {count, Ints(shape)});
}

ValueId LiveRewrite::MeanOver(ValueId value, const std::vector<int64_t>& dims,
                              const std::vector<LiveDim>& live) {
  std::vector<int64_t> others, ours;
  for (const int64_t dim : dims) {
    const bool is_live = absl::c_any_of(live, [&](const LiveDim& one) { return one.dim == dim; });
    (is_live ? ours : others).push_back(dim);
  }
  // The dims that no row ends along first: the filled value is small then.
  ValueId mean = value;
  if (!others.empty())
    mean = Add(ReduceMeanOp::kName, {mean, Ints(others)}, {{"keepdims", int64_t{1}}});
  for (const LiveDim& one : live) {
    if (one.repeats != 1) continue;
    mean = others.empty() ? Filled(mean, one, 0) : FillNode(mean, one.dim, one.extent, 0);
  }
  const ValueId sum = Add(ReduceSumOp::kName, {mean, Ints(ours)}, {{"keepdims", int64_t{1}}});
  return Add(DivOp::kName, {sum, CountOf(value, live)});
}

void LiveRewrite::VisitMean(NodeId id) {
  const Node node = graph_.node(id);
  const auto dims = ReducedDims(node);
  if (!dims.has_value() || !HasRowsOfBatch(node.inputs[0])) return;
  const std::vector<LiveDim> live = LiveAmong(node.inputs[0], *dims);
  const bool plain =
      absl::c_all_of(live, [&](const LiveDim& one) { return CanFill(node.inputs[0], one); });
  if (live.empty() || !plain || absl::c_linear_search(*dims, 0)) return;
  ValueId mean = MeanOver(node.inputs[0], *dims, live);
  if (node.attributes.Int("keepdims", 1) == 0) mean = Add(SqueezeOp::kName, {mean, Ints(*dims)});
  ReplaceOutput(id, mean);
}

void LiveRewrite::VisitSum(NodeId id) {
  const auto dims = ReducedDims(graph_.node(id));
  const bool looks_back =
      graph_.node(id).op == CumSumOp::kName && !CumSumOp::From(graph_.node(id)).reverse;
  if (!dims.has_value() || looks_back) return;
  for (const LiveDim& one : LiveAmong(graph_.node(id).inputs[0], *dims)) {
    const ValueId x = graph_.node(id).inputs[0];
    if (CanFill(x, one) && !IsZeroBehind(graph_, x)) graph_.SetInput(id, 0, Filled(x, one, 0));
  }
}

void LiveRewrite::VisitExtreme(NodeId id) {
  const Node node = graph_.node(id);
  const auto dims = ReducedDims(node);
  if (!dims.has_value()) return;
  const bool smallest = FactsOf(node.op).border == Border::kSmallest;
  const float fill = smallest ? kInfinity : -kInfinity;
  const std::vector<LiveDim> live = LiveAmong(node.inputs[0], *dims);
  for (const LiveDim& one : live) {
    const ValueId x = graph_.node(id).inputs[0];
    if (CanFill(x, one)) graph_.SetInput(id, 0, Filled(x, one, fill));
  }
  if (node.op != GlobalMaxPoolOp::kName || live.empty()) return;
  ReplaceOutput(id, Add(ReduceMaxOp::kName, {graph_.node(id).inputs[0], Ints(*dims)},
                        {{"keepdims", int64_t{1}}}));
}

void LiveRewrite::VisitPick(NodeId id) {
  const Node& node = graph_.node(id);
  const ValueId x = node.inputs[0];
  const int64_t axis = node.attributes.Int("axis", FactsOf(node.op).axis);
  const auto live = extents_.At(x, axis < 0 ? axis + extents_.RankOf(x) : axis);
  // NaN counts as larger than all that is past the end.
  const bool smallest_of_all = node.op == TopKOp::kName && !TopKOp::From(node).largest;
  if (!live.has_value() || !CanFill(x, *live) || smallest_of_all) return;
  graph_.SetInput(id, 0, Filled(x, *live, node.op == ArgMinOp::kName ? kInfinity : -kInfinity));
}

// Statistics of each sample's channel, over its live elements.
void LiveRewrite::VisitNorm(NodeId id) {
  const Node node = graph_.node(id);
  const int64_t rank = extents_.RankOf(node.inputs[0]);
  std::vector<int64_t> dims;
  for (int64_t d = 2; d < rank; ++d) dims.push_back(d);
  const std::vector<LiveDim> live = LiveAmong(node.inputs[0], dims);
  if (live.size() != 1 || !HasRowsOfBatch(node.inputs[0])) return;
  ValueId source = kNone;  // whose lines lie one after another
  if (live[0].repeats != 1) {
    const Node* reshape = graph_.ProducerIf(node.inputs[0], ReshapeOp::kName);
    if (reshape == nullptr) return;
    source = reshape->inputs[0];
    const LiveDim line = {.dim = extents_.RankOf(source) - 1, .extent = live[0].extent};
    if (!HasRowsOfBatch(source) || !CanFill(source, line)) return;
    lines_ = Filled(source, line, 0);
  }
  const ValueId mean = MeanOver(node.inputs[0], dims, live);
  const ValueId x = graph_.node(id).inputs[0];
  const ValueId away = Add(SubOp::kName, {x, mean});
  ValueId squares = Add(MulOp::kName, {away, away});
  extents_.Alias(squares, node.inputs[0]);
  if (source != kNone) {
    squares = FilledLines(squares, source, live[0].extent);
    extents_.Alias(squares, node.inputs[0]);
  }
  const ValueId variance = MeanOver(squares, dims, live);
  const ValueId epsilon =
      graph_.AddConstant("", Tensor::FloatScalar(node.attributes.Float("epsilon", 1e-5F)));
  const ValueId deviation = Add(SqrtOp::kName, {Add(AddOp::kName, {variance, epsilon})});
  std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
  shape[1] = -1;
  const ValueId scale = Add(ReshapeOp::kName, {node.inputs[1], Ints(shape)});
  const ValueId bias = Add(ReshapeOp::kName, {node.inputs[2], Ints(shape)});
  const ValueId normal = Add(DivOp::kName, {away, deviation});
  ReplaceOutput(id, Add(AddOp::kName, {Add(MulOp::kName, {normal, scale}), bias}));
}

void LiveRewrite::VisitSoftmax(NodeId id) {
  const ValueId x = graph_.node(id).inputs[0];
  const int64_t rank = extents_.RankOf(x);
  const int64_t axis = graph_.node(id).attributes.Int("axis", -1);
  const int64_t dim = axis < 0 ? axis + rank : axis;
  const auto live = extents_.At(x, dim);
  if (!live.has_value()) return HideBesideMask(id, dim);
  if (!CanFill(x, *live)) return;
  const bool last = live->dim == rank - 1;
  if (!last || rank != 4 || !HasRowsOfBatch(x)) {
    graph_.SetInput(id, 0, Filled(x, *live, -kInfinity));
    return;
  }
  // Attention is recognised by an added mask.
  const ValueId masked = Add(AddOp::kName, {x, MaskAfter(x, *live, rank)});
  extents_.Alias(masked, x);
  graph_.SetInput(id, 0, masked);
}

ValueId LiveRewrite::MaskAlong(ValueId value, int64_t dim) const {
  if (extents_.SizesOf(value) == nullptr || axes_.batch.empty()) return kNone;
  for (const ValueId input : graph_.inputs()) {
    const Value& mask = graph_.value(input);
    const bool lies_so = mask.dims.size() == 2 && !mask.name.starts_with(kLiveInput) &&
                         mask.dims[0].symbol == axes_.batch &&
                         extents_.HaveSameSizes(value, dim, input, 1) &&
                         absl::c_linear_search(ExpressionSymbols(mask.dims[1].symbol), axes_.axis);
    if (lies_so) return input;
  }
  return kNone;
}

void LiveRewrite::HideBesideMask(NodeId id, int64_t dim) {
  const ValueId x = graph_.node(id).inputs[0];
  const int64_t rank = extents_.RankOf(x);
  if (dim == 0 || dim != rank - 1 || !HasRowsOfBatch(x)) return;
  const ValueId mask = MaskAlong(x, dim);
  if (mask == kNone) return;
  ValueId& hidden = beside_[mask];
  if (hidden == kNone) {
    const std::vector<Dim> dims = graph_.value(mask).dims;
    const ValueId live =
        graph_.AddInput(absl::StrCat(kLiveLikeInput, graph_.value(mask).name), DType::kBool, dims);
    hidden = Add(WhereOp::kName, {live, graph_.AddConstant("", Tensor::FloatScalar(0)),
                                  graph_.AddConstant("", Tensor::FloatScalar(-kInfinity))});
  }
  std::vector<int64_t> between;
  for (int64_t d = 1; d < dim; ++d) between.push_back(d);
  const ValueId spread =
      between.empty() ? hidden : Add(UnsqueezeOp::kName, {hidden, Ints(between)});
  const ValueId masked = Add(AddOp::kName, {x, spread});
  extents_.Alias(masked, x);
  graph_.SetInput(id, 0, masked);
}

void LiveRewrite::VisitProduct(NodeId id) {
  const Node node = graph_.node(id);
  const int64_t rank_a = extents_.RankOf(node.inputs[0]), rank_b = extents_.RankOf(node.inputs[1]);
  if (rank_a < 2 || rank_b < 2) return;
  const auto a = extents_.At(node.inputs[0], rank_a - 1);
  const auto b = extents_.At(node.inputs[1], rank_b - 2);
  // A softmax has made zeros of hidden elements already.
  if (IsSoftmax(graph_, extents_, node.inputs[0])) return;
  if (a.has_value() && CanFill(node.inputs[0], *a)) {
    graph_.SetInput(id, 0, Filled(node.inputs[0], *a, 0));
  } else if (b.has_value() && CanFill(node.inputs[1], *b)) {
    graph_.SetInput(id, 1, Filled(node.inputs[1], *b, 0));
  }
}

void LiveRewrite::VisitRecurrent(NodeId id) {
  constexpr size_t kLengths = 4;
  const Node node = graph_.node(id);
  const auto time = extents_.At(node.inputs[0], node.attributes.Int("layout", 0) != 0 ? 1 : 0);
  if (!time.has_value() || time->repeats != 1 || node.input(kLengths) != kNone) return;
  std::vector<ValueId> inputs = node.inputs;
  inputs.resize(std::max(inputs.size(), kLengths + 1), kNone);
  inputs[kLengths] = ExtentOf(time->extent, node.inputs[0], time->dim);
  // One row tells all lengths where no dim is the batch.
  if (axes_.batch.empty()) {
    const ValueId rows = SizeOf(node.inputs[0], time->dim == 0 ? 1 : 0);
    inputs[kLengths] = Add(ExpandOp::kName, {inputs[kLengths], rows});
  }
  SetInputs(id, std::move(inputs));
}

void LiveRewrite::SetInputs(NodeId id, std::vector<ValueId> inputs) {
  const Node node = graph_.node(id);
  std::vector<std::string> names;
  for (const ValueId output : node.outputs) {
    names.push_back(output == kNone ? "" : absl::StrCat(graph_.value(output).name, "/live"));
  }
  const NodeId live =
      graph_.AddNodeWithOutputs(node.op, std::move(inputs), node.attributes, names, node.name);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNone) continue;
    extents_.Alias(graph_.node(live).outputs[i], node.outputs[i]);
    graph_.ReplaceAllUses(node.outputs[i], graph_.node(live).outputs[i]);
  }
  graph_.RemoveNode(id);
}

}  // namespace reprise
