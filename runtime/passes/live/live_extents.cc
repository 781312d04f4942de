#include "runtime/passes/live/live_extents.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/windows/resize_op.h"
#include "runtime/passes/read/value_shapes.h"

namespace reprise {
namespace {

// Sizes of the axis: those that the largest strides can be told by, and then what models that take
// few sizes take. Remainders by small numbers differ between the sizes of a row, where they may.
constexpr int64_t kSizes[][4] = {
    {227, 258, 301, 404}, {1031, 1502, 2005, 2504}, {4099, 5002, 8009, 9000}, {224, 256, 352, 416},
    {96, 64, 160, 128},   {19, 22, 25, 40},         {7, 10, 13, 16},
};
constexpr int64_t kOthers[] = {16, 64, 224, 5};
// The same in steps, where the model takes multiples of one alone.
constexpr int64_t kSteps[][4] = {{7, 8, 11, 13}, {3, 2, 5, 4}, {19, 22, 25, 40}};

// The other axes have two steps at least: a dim of 1 looks as if it were not there.
constexpr int64_t kFewSteps = 2;

std::vector<std::vector<int64_t>> SizesIn(int64_t step) {
  std::vector<std::vector<int64_t>> rows;
  if (step == 1) {
    for (const auto& sizes : kSizes) rows.emplace_back(std::begin(sizes), std::end(sizes));
    return rows;
  }
  for (const auto& steps : kSteps) {
    std::vector<int64_t>& sizes = rows.emplace_back();
    for (const int64_t count : steps) sizes.push_back(count * step);
  }
  return rows;
}

// Positions of `reach` more and `stride` fewer: see ops/axis/axis_layers.cc.
Extent Through(const Extent& extent, const ops::Windows& w, size_t d, bool rounds_up) {
  const int64_t reach = (w.kernel[d] - 1) * w.dilations[d], stride = w.strides[d];
  const int64_t added = w.pad_begin[d] + w.pad_end[d] - reach - 1 + stride;
  if (!rounds_up) return extent.Through(added, stride);
  return extent.Through(std::min(added + stride - 1, w.pad_begin[d] - 1 + stride), stride);
}

bool Differ(const std::vector<int64_t>& sizes) {
  return absl::c_any_of(sizes, [&](int64_t size) { return size != sizes.front(); });
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
  if (!found.Sample(graph, axes)) {
    return absl::NotFoundError("the model takes no sizes at which its windows could be read");
  }
  found.has_others_ = !axes.others.empty();
  found.Walk(graph, axes);
  return found;
}

bool LiveExtents::Sample(const Graph& graph, const LiveAxes& axes) {
  for (const int64_t other : kOthers) {
    Binding base;
    for (const std::string& symbol : axes.others) {
      const int64_t step = axes.StepOf(symbol);
      base.axes[symbol] = RoundUpTo(std::max(other, kFewSteps * step), step);
    }
    ValueShapes values(graph, std::move(base));
    const auto at = [&](int64_t size, int64_t rows) -> std::optional<Shapes> {
      std::map<std::string, int64_t> sizes = {{axes.axis, size}};
      if (!axes.batch.empty()) sizes[axes.batch] = rows;
      absl::StatusOr<Shapes> shapes = values.At(sizes);
      return shapes.ok() ? std::optional(*std::move(shapes)) : std::nullopt;
    };
    for (const std::vector<int64_t>& sizes : SizesIn(step_)) {
      shapes_.clear();
      for (const int64_t size : sizes) {
        std::optional<Shapes> shapes = at(size, kBatch);
        if (!shapes.has_value()) break;
        shapes_.push_back(*std::move(shapes));
      }
      if (shapes_.size() < sizes.size()) continue;
      sizes_ = sizes;
      if (const std::optional<Shapes> many = at(sizes.front(), kManyRows)) of_many_rows_ = *many;
      return true;
    }
    if (axes.others.empty()) break;
  }
  return false;
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
  std::vector<ops::Windows> windows;
  for (const Shapes& shapes : shapes_) {
    const auto known = [&](ValueId value) -> std::optional<Shape> {
      if (value == kNone) return std::nullopt;
      return shapes[value].has_value() ? shapes[value] : graph.value(value).shape;
    };
    const std::optional<Shape> shape = known(node.input(0)), weight = known(node.input(1));
    if (!shape.has_value() || shape->size() < 3) return;
    std::vector<int64_t> kernel;
    if (weight.has_value()) kernel.assign(weight->begin() + 2, weight->end());
    absl::StatusOr<ops::Windows> w = ops::WindowsOf(node, *shape, std::move(kernel));
    if (!w.ok()) return;
    windows.push_back(*std::move(w));
  }
  const ops::Windows& first = windows.front();
  const bool fixed = absl::c_all_of(windows, [&](const ops::Windows& w) {
    return w.pad_begin == first.pad_begin && w.pad_end == first.pad_end;
  });
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
    const bool agrees = absl::c_equal(windows, sizes_, [&](const ops::Windows& w, int64_t size) {
      return w.out[d] == extent.At(size);
    });
    if (!agrees || !HoldsAtAnySize(node, first, d, rounds_up)) continue;
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
    const Shape* shape = output == kNone ? nullptr : ShapeOf(output);
    if (shape == nullptr) continue;
    for (size_t d = 0; d < shape->size(); ++d) {
      const auto found = FindDim(graph, node, output, static_cast<int64_t>(d));
      if (found.has_value()) Add(output, *found);
    }
  }
}

std::optional<LiveDim> LiveExtents::FindDim(const Graph& graph, const Node& node, ValueId output,
                                            int64_t dim) const {
  const auto sizes = SizesOf(output, dim);
  if (!sizes.has_value() || !Differ(*sizes)) return std::nullopt;
  const auto fits = [&](const Extent& extent, int64_t repeats) {
    return absl::c_equal(*sizes, sizes_, [&](int64_t size, int64_t of_axis) {
      return size == repeats * extent.At(of_axis);
    });
  };
  std::set<Extent> fitting;
  for (const ValueId input : node.inputs) {
    if (input == kNone) continue;
    for (const LiveDim& in : Of(input)) {
      if (in.repeats == 1 && fits(in.extent, 1)) fitting.insert(in.extent);
    }
  }
  // Made of sizes and of values without positions alone, as the beginning of a table is.
  const bool is_new = absl::c_none_of(node.inputs, [&](ValueId input) { return Follows(input); });
  if (fitting.empty() && is_new) {
    absl::c_copy_if(all_, std::inserter(fitting, fitting.end()),
                    [&](const Extent& extent) { return fits(extent, 1); });
  }
  if (fitting.size() == 1) return LiveDim{.dim = dim, .extent = *fitting.begin()};
  if (fitting.empty() && node.op == SliceOp::kName) {
    // A known number of positions is cut off.
    if (const auto in = At(node.inputs[0], dim); in.has_value() && in->repeats == 1) {
      const Extent rest = in->extent.Through(sizes->front() - in->extent.At(sizes_.front()), 1);
      if (fits(rest, 1)) return LiveDim{.dim = dim, .extent = rest};
    }
  }
  if (fitting.empty() && node.op == ResizeOp::kName) {
    const auto in = At(node.inputs[0], dim);
    const int64_t count = in.has_value() && in->repeats == 1 ? in->extent.At(sizes_.front()) : 0;
    const auto more = count > 0 ? in->extent.Times(sizes->front() / count, step_) : std::nullopt;
    if (more.has_value() && fits(*more, 1)) return LiveDim{.dim = dim, .extent = *more};
  }
  if (!fitting.empty() || node.op != ReshapeOp::kName || dim != RankOf(output) - 1)
    return std::nullopt;
  if (has_others_) return std::nullopt;  // Their sizes may be among the repeats.
  // Lines of positions, of the channels of a group for example, one after another.
  for (const LiveDim& in : Of(node.inputs[0])) {
    const int64_t count = in.extent.At(sizes_.front());
    if (in.dim != RankOf(node.inputs[0]) - 1 || in.repeats != 1 || count <= 0) continue;
    const int64_t repeats = sizes->front() / count;
    if (fits(in.extent, repeats)) {
      return LiveDim{.dim = dim, .extent = in.extent, .repeats = repeats};
    }
  }
  return std::nullopt;
}

std::optional<std::vector<int64_t>> LiveExtents::SizesOf(ValueId value, int64_t dim) const {
  std::vector<int64_t> sizes;
  for (const Shapes& shapes : shapes_) {
    const std::optional<Shape>& shape = shapes[value];
    if (!shape.has_value() || dim >= static_cast<int64_t>(shape->size())) return std::nullopt;
    sizes.push_back((*shape)[dim]);
  }
  return sizes;
}

bool LiveExtents::HaveSameSizes(ValueId value, int64_t dim, ValueId other,
                                int64_t other_dim) const {
  const auto sizes = SizesOf(Resolved(value), dim), others = SizesOf(Resolved(other), other_dim);
  return sizes.has_value() && others.has_value() && *sizes == *others;
}

bool LiveExtents::Follows(ValueId value) const {
  for (int64_t d = 0; d < RankOf(value); ++d) {
    const auto sizes = SizesOf(value, d);
    if (sizes.has_value() && Differ(*sizes)) return true;
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

bool LiveExtents::HasAllRows(ValueId value) const {
  const Shape* few = ShapeOf(value);
  if (of_many_rows_.empty() || few == nullptr || few->empty()) return true;
  const std::optional<Shape>& many = of_many_rows_[Resolved(value)];
  return !many.has_value() ||
         (many->size() == few->size() && (*many)[0] * kBatch == (*few)[0] * kManyRows);
}

const Shape* LiveExtents::ShapeOf(ValueId value) const {
  const ValueId id = Resolved(value);
  if (id == kNone || id >= static_cast<ValueId>(shapes_.front().size())) return nullptr;
  const std::optional<Shape>& shape = shapes_.front()[id];
  return shape.has_value() ? &*shape : nullptr;
}

int64_t LiveExtents::RankOf(ValueId value) const {
  const Shape* shape = ShapeOf(value);
  return shape == nullptr ? 0 : static_cast<int64_t>(shape->size());
}

}  // namespace reprise
