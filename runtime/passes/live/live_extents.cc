#include "runtime/passes/live/live_extents.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/windows/resize_op.h"
#include "runtime/ops/windows/windows.h"
#include "runtime/shapes/periods.h"
#include "runtime/shapes/region.h"
#include "runtime/shapes/term.h"

namespace reprise {
namespace {

// Sizes of the axis that a model is read at, the first one that it takes; in steps, where it takes
// multiples of a number alone.
constexpr int64_t kSizes[] = {301, 1502, 5002, 256, 96, 22, 10};
constexpr int64_t kSteps[] = {8, 3, 22};
constexpr int64_t kOthers[] = {16, 64, 224, 5};
constexpr int64_t kRows = 3;
constexpr int64_t kManyRows = kRows << 12;

// The other axes have two steps at least: a dim of 1 looks as if it were not there.
constexpr int64_t kFewSteps = 2;

std::vector<int64_t> SizesIn(int64_t step) {
  if (step == 1) return {std::begin(kSizes), std::end(kSizes)};
  std::vector<int64_t> sizes;
  for (const int64_t count : kSteps) sizes.push_back(count * step);
  return sizes;
}

// Returns, by id, whether `axis` is somewhere in a term.
std::vector<bool> TermsThatFollow(const SizeTable& table, const Term* axis) {
  std::vector<bool> follows;
  follows.reserve(table.terms().size());
  for (const auto& term : table.terms()) {
    bool any = term.get() == axis;
    for (const TermPart& part : term->parts) {
      for (const Term* atom : part.atoms) any = any || follows[atom->id];
    }
    for (const Size operand : term->operands) {
      any = any || (!operand.is_constant() && follows[operand.term()->id]);
    }
    follows.push_back(any);
  }
  return follows;
}

std::optional<Size> SymbolNamed(const SizeTable& table, const std::string& name) {
  for (size_t i = 0; i < table.symbols().size(); ++i) {
    if (table.symbols()[i] == name) return table.symbol_sizes()[i];
  }
  return std::nullopt;
}

// Positions of `reach` more and `stride` fewer: see ops/axis/axis_layers.cc.
Extent Through(const Extent& extent, const ops::Windows& w, size_t d, bool rounds_up) {
  const int64_t reach = (w.kernel[d] - 1) * w.dilations[d], stride = w.strides[d];
  const int64_t added = w.pad_begin[d] + w.pad_end[d] - reach - 1 + stride;
  if (!rounds_up) return extent.Through(added, stride);
  return extent.Through(std::min(added + stride - 1, w.pad_begin[d] - 1 + stride), stride);
}

// Returns whether the pads equal `w`'s, and the number of windows along dim `d` is what `Through`
// says, however many positions there are: after a stride all remainders have been seen.
bool HoldsAtAnySize(const Node& node, const ops::Windows& w, size_t d, bool rounds_up) {
  const int64_t window = (w.kernel[d] - 1) * w.dilations[d] + 1;
  Shape shape = {1, 1};
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    shape.push_back(w.kernel[i] * w.dilations[i] + w.strides[i]);
  }
  for (int64_t size = window; size <= window + 2 * w.strides[d]; ++size) {
    shape[d + 2] = size;
    const bool is_pool = node.inputs.size() < 2;
    const auto at = ops::WindowsOf(node, shape, is_pool ? std::vector<int64_t>() : w.kernel);
    const bool same = at.ok() && at->pad_begin[d] == w.pad_begin[d] &&
                      at->pad_end[d] == w.pad_end[d] &&
                      at->out[d] == Through(Extent(), w, d, rounds_up).At(size);
    if (!same) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<LiveExtents> LiveExtents::Find(const Graph& graph, const LiveAxes& axes) {
  LiveExtents found;
  found.step_ = axes.StepOf(axes.axis);
  RETURN_IF_ERROR(found.Read(graph, axes));
  found.LookAlong(axes.axis);
  found.has_others_ = !axes.others.empty();
  found.Walk(graph, axes);
  return found;
}

absl::Status LiveExtents::Read(const Graph& graph, const LiveAxes& axes) {
  for (const int64_t other : kOthers) {
    Binding hint;
    for (const std::string& symbol : axes.others) {
      const int64_t step = axes.StepOf(symbol);
      hint.axes[symbol] = RoundUpTo(std::max(other, kFewSteps * step), step);
    }
    if (!axes.batch.empty()) hint.axes[axes.batch] = kRows;
    for (const int64_t size : SizesIn(step_)) {
      hint.axes[axes.axis] = size;
      absl::StatusOr<SizeReading> reading = ReadSizes(graph, hint);
      if (!reading.ok()) continue;
      reading_ = *std::move(reading);
      if (axes.batch.empty()) return absl::OkStatus();
      batch_ = axes.batch;
      hint.axes[axes.batch] = kManyRows;
      absl::StatusOr<SizeReading> many = ReadSizes(graph, hint);
      if (many.ok()) many_rows_ = *std::move(many);
      return absl::OkStatus();
    }
    if (axes.others.empty()) break;
  }
  return absl::NotFoundError("the model takes no sizes at which its windows could be read");
}

void LiveExtents::LookAlong(const std::string& axis) {
  const SizeTable& table = *reading_.table;
  const std::optional<Size> symbol = SymbolNamed(table, axis);
  if (!symbol.has_value()) return;
  std::vector<int64_t> periods = PeriodsOf(table, symbol->term());
  follows_ = TermsThatFollow(table, symbol->term());
  int64_t common = 1;
  for (int64_t& period : periods) {
    const int64_t with = CommonPeriod(common, period);
    if (with == 0) {
      period = 0;
    } else {
      common = with;
    }
  }
  const int64_t count = common / std::gcd(common, step_);
  at_sizes_.resize(periods.size());
  SizeEvaluator sizes(table, {});
  for (int64_t i = 0; i <= count; ++i) {
    sizes_.push_back(symbol->hint() + i * step_);
    sizes.Move({{axis, sizes_.back()}});
    for (size_t id = 0; id < periods.size(); ++id) {
      if (periods[id] == 0) continue;
      const Term* term = table.terms()[id].get();
      at_sizes_[id].push_back(sizes.At(Size(term->hint, term)).value_or(0));
    }
  }
}

const std::vector<int64_t>* LiveExtents::AtSizes(Size size) const {
  if (size.is_constant() || size.term()->id >= at_sizes_.size()) return nullptr;
  const std::vector<int64_t>& at = at_sizes_[size.term()->id];
  return at.empty() ? nullptr : &at;
}

bool LiveExtents::Fits(Size size, const Extent& extent, int64_t repeats) const {
  const std::vector<int64_t>* at = AtSizes(size);
  if (at == nullptr || (sizes_.back() - sizes_.front()) % extent.stride != 0) return false;
  return absl::c_equal(*at, sizes_, [&](int64_t one, int64_t of_axis) {
    return one == repeats * extent.At(of_axis);
  });
}

void LiveExtents::Walk(const Graph& graph, const LiveAxes& axes) {
  for (const ValueId input : graph.inputs()) {
    const std::vector<Dim>& dims = graph.value(input).dims;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d].symbol == axes.axis) Add(input, {.dim = static_cast<int64_t>(d)});
    }
  }
  for (const NodeId id : graph.NodeIds()) {
    if (FactsOf(graph.node(id).op).SlidesWindows()) {
      VisitWindows(graph, id);
    } else {
      Visit(graph, id);
    }
  }
}

void LiveExtents::VisitWindows(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const ValueId output = node.output(0);
  const SizeList *sizes = SizesOf(node.input(0)), *weight = SizesOf(node.input(1));
  if (sizes == nullptr || sizes->size() < 3) return;
  std::vector<int64_t> kernel;
  if (weight != nullptr) {
    if (weight->size() < 2) return;
    for (const Size size : absl::MakeSpan(*weight).subspan(2)) kernel.push_back(size.hint());
  }
  const auto read = ops::WindowsOf(node, *sizes, kernel);
  const auto at_hint = ops::WindowsOf(node, HintsOf(*sizes), std::move(kernel));
  if (!read.ok() || !at_hint.ok()) return;
  const ops::Windows& first = *at_hint;
  const auto constant = [](Size size) { return size.is_constant(); };
  const bool fixed =
      absl::c_all_of(read->pad_begin, constant) && absl::c_all_of(read->pad_end, constant);
  for (const LiveDim& in : Of(node.input(0))) {
    if (in.dim == 0) Add(output, in);
  }
  if (!fixed) return;
  // With strides the pads follow the size, though samples may agree.
  if (absl::c_all_of(first.strides, [](int64_t stride) { return stride == 1; })) {
    pads_[id] = first.pad_begin;
    pads_[id].insert(pads_[id].end(), first.pad_end.begin(), first.pad_end.end());
  }
  const bool rounds_up = node.attributes.Int("ceil_mode", 0) != 0;
  for (const LiveDim& in : Of(node.input(0))) {
    if (in.dim < 2 || in.repeats != 1) continue;
    const auto d = static_cast<size_t>(in.dim - 2);
    const Extent extent = Through(in.extent, first, d, rounds_up);
    if (!Fits(read->out[d], extent) || !HoldsAtAnySize(node, first, d, rounds_up)) continue;
    // A pool whose window lacks elements rounds in another way.
    const int64_t needed =
        (first.kernel[d] - 1) * first.dilations[d] + 1 - first.pad_begin[d] - first.pad_end[d];
    const int64_t whole = std::max<int64_t>(needed, 1) * in.extent.stride - in.extent.offset;
    smallest_ = std::max(smallest_, RoundUpTo(whole, step_));
    Add(output, {.dim = in.dim, .extent = extent});
    windows_[id].push_back(
        {.dim = in.dim,
         .extent = extent.AtMultiplesOf(step_),
         .leaves_end = first.pad_end[d] > 0 || (rounds_up && first.strides[d] > 1)});
  }
}

void LiveExtents::Visit(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  for (const ValueId output : node.outputs) {
    const SizeList* sizes = output == kNone ? nullptr : SizesOf(output);
    if (sizes == nullptr) continue;
    for (size_t d = 0; d < sizes->size(); ++d) {
      const auto found = FindDim(graph, node, output, static_cast<int64_t>(d));
      if (found.has_value()) Add(output, *found);
    }
  }
}

std::optional<LiveDim> LiveExtents::FindDim(const Graph& graph, const Node& node, ValueId output,
                                            int64_t dim) const {
  const Size size = (*SizesOf(output))[static_cast<size_t>(dim)];
  const std::vector<int64_t>* sizes = AtSizes(size);
  if (sizes == nullptr || sizes->front() == sizes->back()) return std::nullopt;
  std::set<Extent> fitting;
  for (const ValueId input : node.inputs) {
    if (input == kNone) continue;
    for (const LiveDim& in : Of(input)) {
      if (in.repeats == 1 && Fits(size, in.extent)) fitting.insert(in.extent);
    }
  }
  // Made of sizes and of values without positions alone, as the beginning of a table is.
  const bool is_new = absl::c_none_of(node.inputs, [&](ValueId input) { return Follows(input); });
  if (fitting.empty() && is_new) {
    absl::c_copy_if(all_, std::inserter(fitting, fitting.end()),
                    [&](const Extent& extent) { return Fits(size, extent); });
  }
  if (fitting.size() == 1) return LiveDim{.dim = dim, .extent = *fitting.begin()};
  // A known number of positions is cut off, or set before or after them.
  ValueId changed = kNone;
  if (node.op == SliceOp::kName || node.op == "Pad") changed = node.inputs[0];
  if (node.op == ConcatOp::kName) changed = node.inputs.back();
  if (fitting.empty() && changed != kNone) {
    if (const auto in = At(changed, dim); in.has_value() && in->repeats == 1) {
      const Extent rest = in->extent.Through(sizes->front() - in->extent.At(sizes_.front()), 1);
      if (Fits(size, rest)) return LiveDim{.dim = dim, .extent = rest};
    }
  }
  if (fitting.empty() && node.op == ResizeOp::kName) {
    const auto in = At(node.inputs[0], dim);
    const int64_t count = in.has_value() && in->repeats == 1 ? in->extent.At(sizes_.front()) : 0;
    const auto more = count > 0 ? in->extent.Times(sizes->front() / count, step_) : std::nullopt;
    if (more.has_value() && Fits(size, *more)) return LiveDim{.dim = dim, .extent = *more};
  }
  if (!fitting.empty() || node.op != ReshapeOp::kName || dim != RankOf(output) - 1)
    return std::nullopt;
  if (has_others_) return std::nullopt;  // Their sizes may be among the repeats.
  // Lines of positions, of the channels of a group for example, one after another.
  for (const LiveDim& in : Of(node.inputs[0])) {
    const int64_t count = in.extent.At(sizes_.front());
    if (in.dim != RankOf(node.inputs[0]) - 1 || in.repeats != 1 || count <= 0) continue;
    const int64_t repeats = sizes->front() / count;
    if (Fits(size, in.extent, repeats)) {
      return LiveDim{.dim = dim, .extent = in.extent, .repeats = repeats};
    }
  }
  return std::nullopt;
}

bool LiveExtents::HaveSameSizes(ValueId value, int64_t dim, ValueId other,
                                int64_t other_dim) const {
  const SizeList *sizes = SizesOf(value), *others = SizesOf(other);
  if (sizes == nullptr || others == nullptr || dim >= static_cast<int64_t>(sizes->size()) ||
      other_dim >= static_cast<int64_t>(others->size())) {
    return false;
  }
  const Size size = (*sizes)[static_cast<size_t>(dim)];
  const Size of_other = (*others)[static_cast<size_t>(other_dim)];
  const std::vector<int64_t>*at = AtSizes(size), *other_at = AtSizes(of_other);
  return size.Same(of_other) || (at != nullptr && other_at != nullptr && *at == *other_at);
}

bool LiveExtents::FollowsAt(ValueId value, int64_t dim) const {
  const SizeList* sizes = SizesOf(value);
  if (sizes == nullptr) return true;
  const Size size = (*sizes)[static_cast<size_t>(dim)];
  return !size.is_constant() && size.term()->id < follows_.size() && follows_[size.term()->id];
}

bool LiveExtents::Follows(ValueId value) const {
  const SizeList* sizes = value == kNone ? nullptr : SizesOf(value);
  if (sizes == nullptr) return false;
  for (size_t d = 0; d < sizes->size(); ++d) {
    if (FollowsAt(value, static_cast<int64_t>(d))) return true;
  }
  return false;
}

void LiveExtents::Add(ValueId value, LiveDim dim) {
  dim.extent = dim.extent.AtMultiplesOf(step_);
  all_.insert(dim.extent);
  dims_[value].push_back(dim);
}

ValueId LiveExtents::Resolved(ValueId value) const {
  const auto alias = aliases_.find(value);
  return alias == aliases_.end() ? value : alias->second;
}

const std::vector<LiveDim>& LiveExtents::Of(ValueId value) const {
  static const auto* const kNothing = new std::vector<LiveDim>();
  const auto known = dims_.find(Resolved(value));
  return known == dims_.end() ? *kNothing : known->second;
}

std::optional<LiveDim> LiveExtents::At(ValueId value, int64_t dim) const {
  for (const LiveDim& one : Of(value)) {
    if (one.dim == dim) return one;
  }
  return std::nullopt;
}

const std::vector<LiveWindows>& LiveExtents::WindowsOf(NodeId node) const {
  static const auto* const kNothing = new std::vector<LiveWindows>();
  const auto known = windows_.find(node);
  return known == windows_.end() ? *kNothing : known->second;
}

const std::vector<int64_t>* LiveExtents::PadsOf(NodeId node) const {
  const auto known = pads_.find(node);
  return known == pads_.end() ? nullptr : &known->second;
}

bool LiveExtents::HasAllRows(ValueId value) const { return RowsOf(value).has_value(); }

bool LiveExtents::HasRowsAlone(ValueId value) const {
  const std::optional<Size> by_row = RowsOf(value);
  return by_row.has_value() && by_row->Same(1);
}

std::optional<Size> LiveExtents::RowsOf(ValueId value) const {
  const SizeList* sizes = SizesOf(value);
  if (sizes == nullptr || sizes->empty()) return std::nullopt;
  if (batch_.empty()) return Size(1);
  if (many_rows_.table != nullptr) {
    // A few rows may be all of a part that is cut off the batch.
    const std::optional<SizeList>& many =
        many_rows_.values[static_cast<size_t>(Resolved(value))].shape;
    if (many.has_value() && (many->empty() || !Quotient(many_rows_, many->front()).has_value())) {
      return std::nullopt;
    }
  }
  return Quotient(reading_, sizes->front());
}

std::optional<Size> LiveExtents::Quotient(const SizeReading& reading, Size size) const {
  const std::optional<Size> rows = SymbolNamed(*reading.table, batch_);
  if (!rows.has_value()) return std::nullopt;
  const std::optional<Polynomial> rest = Polynomial::Of(size).DividedBy(Polynomial::Of(*rows));
  if (!rest.has_value()) return std::nullopt;
  const Size by_row = reading.table->Make(*rest);
  if (by_row.is_constant()) return by_row;
  // It may follow the batch as well.
  const std::vector<bool> follows = TermsThatFollow(*reading.table, rows->term());
  return follows[by_row.term()->id] ? std::nullopt : std::optional(by_row);
}

const SizeList* LiveExtents::SizesOf(ValueId value) const {
  const ValueId id = Resolved(value);
  if (id == kNone || id >= static_cast<ValueId>(reading_.values.size())) return nullptr;
  const std::optional<SizeList>& sizes = reading_.values[static_cast<size_t>(id)].shape;
  if (sizes.has_value() && many_rows_.table != nullptr) {
    // It may have another rank where a model branches by the number of rows.
    const std::optional<SizeList>& many = many_rows_.values[static_cast<size_t>(id)].shape;
    if (many.has_value() && many->size() != sizes->size()) return nullptr;
  }
  return sizes.has_value() ? &*sizes : nullptr;
}

DType LiveExtents::TypeOf(ValueId value) const {
  value = Resolved(value);
  const bool known = value != kNone && static_cast<size_t>(value) < reading_.values.size();
  return known ? reading_.values[static_cast<size_t>(value)].dtype : DType::kUndefined;
}

int64_t LiveExtents::RankOf(ValueId value) const {
  const SizeList* sizes = SizesOf(value);
  return sizes == nullptr ? 0 : static_cast<int64_t>(sizes->size());
}

}  // namespace reprise
