#include "runtime/passes/match/strided_view.h"

#include <algorithm>

#include "runtime/graph/graph.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/passes/kit/rewrite.h"

namespace reprise {
namespace {

using Atom = StridedView::Atom;

// Appends an atom, merged with the last one where they are one run.
void Append(std::vector<Atom>& atoms, Atom atom) {
  if (atom.size == 1) return;
  if (!atoms.empty() && atoms.back().stride == atom.size * atom.stride) {
    atoms.back() = {atoms.back().size * atom.size, atom.stride};
  } else {
    atoms.push_back(atom);
  }
}

// Where a Slice begins along the one dim that it cuts.
struct SliceCut {
  int64_t axis;
  int64_t start;
};

// Returns the cut; nullopt where it names several dims or takes other steps than 1.
std::optional<SliceCut> CutOf(const Graph& graph, const Node& slice, const Shape& shape) {
  const auto only = [&](size_t input, int64_t otherwise) -> std::optional<int64_t> {
    if (slice.input(input) == kNone) return otherwise;
    const Tensor* values = KnownConstant(graph, slice.input(input));
    if (values == nullptr || values->num_elements() != 1) return std::nullopt;
    const auto ints = values->ToInt64s();
    return ints.ok() ? std::optional<int64_t>(ints->front()) : std::nullopt;
  };
  const auto start = only(1, 0), axis = only(3, 0), step = only(4, 1);
  if (!start.has_value() || !axis.has_value() || step != 1) return std::nullopt;
  const auto dim = NormalizeAxis(*axis, static_cast<int64_t>(shape.size()));
  if (!dim.ok()) return std::nullopt;
  return SliceCut{*dim,
                  std::clamp<int64_t>(*start < 0 ? *start + shape[*dim] : *start, 0, shape[*dim])};
}

}  // namespace

StridedView StridedView::Dense(absl::Span<const int64_t> shape) {
  std::vector<Atom> dims;
  const Shape strides = Strides(shape);
  for (size_t i = 0; i < shape.size(); ++i) dims.push_back({shape[i], strides[i]});
  return Strided(dims);
}

StridedView StridedView::Strided(absl::Span<const Atom> dims) {
  StridedView view;
  for (const Atom& dim : dims) Append(view.dims_.emplace_back(), dim);
  return view;
}

std::vector<Atom> StridedView::Merged() const {
  std::vector<Atom> atoms;
  for (const std::vector<Atom>& dim : dims_) {
    for (const Atom& atom : dim) Append(atoms, atom);
  }
  return atoms;
}

bool StridedView::IsDense() const {
  const std::vector<Atom> atoms = Merged();
  return offset_ == 0 && (atoms.empty() || (atoms.size() == 1 && atoms[0].stride == 1));
}

std::optional<StridedView> StridedView::Reshaped(absl::Span<const int64_t> shape) const {
  std::vector<Atom> atoms = Merged();
  StridedView view;
  view.offset_ = offset_;
  size_t next = 0;
  for (int64_t size : shape) {
    std::vector<Atom>& dim = view.dims_.emplace_back();
    while (size > 1) {
      if (next == atoms.size()) return std::nullopt;
      Atom& atom = atoms[next];
      if (size % atom.size == 0) {
        size /= atom.size;
        Append(dim, atom);
        ++next;
      } else if (atom.size % size == 0) {
        atom.size /= size;
        Append(dim, {size, atom.size * atom.stride});
        size = 1;
      } else {
        return std::nullopt;
      }
    }
  }
  if (next != atoms.size()) return std::nullopt;
  return view;
}

StridedView StridedView::Transposed(absl::Span<const int64_t> perm) const {
  StridedView view;
  view.offset_ = offset_;
  for (int64_t axis : perm) view.dims_.push_back(dims_[axis]);
  return view;
}

std::optional<StridedView> StridedView::Sliced(int64_t axis, int64_t start, int64_t size) const {
  if (dims_[axis].size() > 1) return std::nullopt;
  StridedView view = *this;
  if (!dims_[axis].empty()) {
    view.offset_ += start * dims_[axis][0].stride;
    view.dims_[axis].clear();
    Append(view.dims_[axis], {size, dims_[axis][0].stride});
  }
  return view;
}

std::optional<StridedView> StridedView::Through(const Graph& graph, NodeId id,
                                                ValueId output) const {
  const Node& node = graph.node(id);
  const Shape& shape = *ShapeOf(graph, output);
  const int64_t rank = static_cast<int64_t>(dims_.size());
  if (node.op == ReshapeOp::kName) return Reshaped(shape);
  if (node.op == TransposeOp::kName) {
    std::vector<int64_t> perm;
    for (int64_t axis = rank; axis-- > 0;) perm.push_back(axis);
    return Transposed(node.attributes.Ints("perm", std::move(perm)));
  }
  if (node.op == SliceOp::kName) {
    const std::optional<SliceCut> cut = CutOf(graph, node, *ShapeOf(graph, node.inputs[0]));
    if (!cut.has_value()) return std::nullopt;
    return Sliced(cut->axis, cut->start, shape[cut->axis]);
  }
  if (node.op != GatherOp::kName && node.op != SplitOp::kName) return std::nullopt;
  const auto axis = NormalizeAxis(SplitOp::From(node.attributes).axis, rank);
  if (!axis.ok()) return std::nullopt;
  int64_t start = 0;
  if (node.op == GatherOp::kName) {
    const std::optional<double> index = KnownScalar(graph, node.inputs[1]);
    if (!index.has_value()) return std::nullopt;
    const int64_t extent = (*ShapeOf(graph, node.inputs[0]))[*axis];
    start = static_cast<int64_t>(*index) + (*index < 0 ? extent : 0);
    if (start < 0 || start >= extent) return std::nullopt;
    const std::optional<StridedView> one = Sliced(*axis, start, 1);
    return one.has_value() ? one->Reshaped(shape) : std::nullopt;
  }
  for (ValueId part : node.outputs) {
    if (part == output) return Sliced(*axis, start, shape[*axis]);
    if (part == kNone) return std::nullopt;
    start += (*ShapeOf(graph, part))[*axis];
  }
  return std::nullopt;
}

}  // namespace reprise
