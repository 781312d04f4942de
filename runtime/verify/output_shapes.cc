#include "runtime/verify/output_shapes.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/parallel_for.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/movement/gather_op.h"

namespace reprise {
namespace {

using Shapes = std::vector<Shape>;

// Whether a Gather of `graph`, which is specialised, reads at a known place that its data does not
// have: x[:, 1] of one token. No shape tells.
bool ReadsBeyondItsData(const Graph& graph) {
  return absl::c_any_of(graph.NodeIds(), [&](NodeId id) {
    const Node& node = graph.node(id);
    const Tensor* places = node.op == GatherOp::kName ? graph.ConstantOf(node.inputs[1]) : nullptr;
    if (places == nullptr) return false;
    const Shape& data = *graph.value(node.inputs[0]).shape;
    const auto axis =
        NormalizeAxis(GatherOp::From(node.attributes).axis, static_cast<int64_t>(data.size()));
    const auto ints = places->ToInt64s();
    return axis.ok() && ints.ok() && absl::c_any_of(*ints, [&](int64_t place) {
             return place < -data[*axis] || place >= data[*axis];
           });
  });
}

class Fitter {
 public:
  Fitter(const Graph& graph, const std::vector<std::string>& symbols, const Binding& base,
         const std::vector<std::vector<Extent>>& extents, const std::vector<int64_t>& steps,
         int threads)
      : graph_(graph),
        symbols_(symbols),
        base_(base),
        extents_(extents),
        steps_(steps),
        threads_(threads) {
    for (const std::string& symbol : symbols) origin_.push_back(base.axes.at(symbol));
    extents_.resize(symbols.size());
    steps_.resize(symbols.size(), 1);
    fit_.refusals.resize(symbols.size());
  }

  absl::StatusOr<OutputFit> Run(const std::vector<std::vector<int64_t>>& samples, bool multiplies) {
    RETURN_IF_ERROR(StartAtBase());
    for (size_t axis = 0; axis < symbols_.size(); ++axis) FitAxis(axis);
    for (size_t i = 0; multiplies && i < symbols_.size(); ++i) {
      for (size_t j = i + 1; j < symbols_.size(); ++j) FitProducts(i, j);
    }
    fit_.smallest = steps_;
    SideBySide(symbols_.size(), [&](size_t axis) { FindSmallest(axis); });
    for (size_t axis = 0; axis < symbols_.size(); ++axis) CheckAxis(axis, samples[axis]);
    CheckAllAxesTogether();
    RefuseFactorsTogether();
    for (size_t axis = 0; axis < symbols_.size(); ++axis) {
      if (!fit_.refusals[axis].empty()) Forget(axis);
    }
    if (absl::c_any_of(fit_.refusals, [](const std::string& one) { return !one.empty(); })) {
      OpenOthers();
    }
    return std::move(fit_);
  }

 private:
  absl::StatusOr<Graph> SpecializedAt(const std::vector<int64_t>& sizes) const {
    Binding binding = base_;
    for (size_t i = 0; i < symbols_.size(); ++i) binding.axes[symbols_[i]] = sizes[i];
    return Specialize(graph_, binding);
  }

  absl::StatusOr<Shapes> ShapesAt(const std::vector<int64_t>& sizes) const {
    ASSIGN_OR_RETURN(const Graph specialized, SpecializedAt(sizes));
    Shapes shapes;
    for (ValueId output : specialized.outputs()) shapes.push_back(*specialized.value(output).shape);
    return shapes;
  }

  // Calls `work` for each of [0, count).
  void SideBySide(size_t count, const std::function<void(size_t)>& work) const {
    std::atomic<size_t> next{0};
    ParallelFor(std::min<int>(threads_, static_cast<int>(count)), [&](int) {
      for (size_t i; (i = next++) < count;) work(i);
    });
  }

  std::vector<absl::StatusOr<Shapes>> AllShapesAt(
      const std::vector<std::vector<int64_t>>& sizes) const {
    std::vector<absl::StatusOr<Shapes>> shapes(sizes.size(), Shapes());
    SideBySide(sizes.size(), [&](size_t i) { shapes[i] = ShapesAt(sizes[i]); });
    return shapes;
  }

  absl::Status StartAtBase() {
    ASSIGN_OR_RETURN(const Graph at_base, SpecializedAt(origin_));
    if (ReadsBeyondItsData(at_base)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the model reads at a known place that is not ", "there at ", base_.ToString()));
    }
    for (ValueId output : at_base.outputs()) {
      OutputShape shape;
      shape.dtype = at_base.value(output).dtype;
      for (int64_t size : *at_base.value(output).shape) {
        shape.dims.push_back({.constant = size,
                              .factors = std::vector<int64_t>(symbols_.size(), 0),
                              .extents = std::vector<Extent>(symbols_.size())});
      }
      base_shapes_.push_back(*at_base.value(output).shape);
      fit_.outputs.push_back(std::move(shape));
    }
    return absl::OkStatus();
  }

  // One step along the axis gives the factors; the constant follows from the base. What strides
  // leave of the axis moves at some steps alone, so that more of them are looked at.
  void FitAxis(size_t axis) {
    std::vector<std::pair<int64_t, Shapes>> steps;  // shapes at each size
    for (const int64_t size : StepsOf(axis)) {
      std::vector<int64_t> sizes = origin_;
      sizes[axis] = size;
      absl::StatusOr<Shapes> shapes = ShapesAt(sizes);
      if (!shapes.ok()) {
        return Refuse(axis, absl::StrCat("the model does not take size ", size, ": ",
                                         std::string(shapes.status().message())));
      }
      steps.emplace_back(size, *std::move(shapes));
    }
    for (size_t output = 0; output < base_shapes_.size(); ++output) {
      for (const auto& [size, shapes] : steps) {
        if (shapes[output].size() == base_shapes_[output].size()) continue;
        return Refuse(axis,
                      absl::StrCat("the rank of output '", NameOf(output), "' depends on it"));
      }
    }
    for (size_t output = 0; output < base_shapes_.size(); ++output) {
      for (size_t d = 0; d < base_shapes_[output].size(); ++d) FitDim(axis, output, d, steps);
    }
  }

  std::vector<int64_t> StepsOf(size_t axis) const {
    const int64_t step = steps_[axis];
    std::vector<int64_t> sizes = {origin_[axis] + step};
    for (const Extent& extent : extents_[axis]) {
      sizes.push_back(origin_[axis] + RoundUpTo(extent.stride, step));
      sizes.push_back(origin_[axis] + RoundUpTo(2 * extent.stride + 1, step));
    }
    return sizes;
  }

  void FitDim(size_t axis, size_t output, size_t d,
              const std::vector<std::pair<int64_t, Shapes>>& steps) {
    AffineDim& dim = fit_.outputs[output].dims[d];
    const int64_t at_origin = base_shapes_[output][d];
    std::vector<Extent> candidates = extents_[axis];
    candidates.insert(candidates.begin(), Extent());
    for (const Extent& extent : candidates) {
      const int64_t from = extent.At(origin_[axis]);
      std::optional<int64_t> factor;
      const bool fits = absl::c_all_of(steps, [&](const auto& step) {
        const int64_t moved = extent.At(step.first) - from;
        const int64_t grown = step.second[output][d] - at_origin;
        if (moved == 0) return grown == 0;
        if (!factor.has_value()) factor = grown / moved;
        return *factor * moved == grown;
      });
      // Where there is none but the size itself, samples will tell what it is not.
      if (!fits && candidates.size() > 1) continue;
      dim.factors[axis] = factor.value_or(0);
      if (dim.factors[axis] != 0) dim.extents[axis] = extent;
      dim.constant -= dim.PartOf(axis, origin_[axis]);
      return;
    }
    std::vector<int64_t> sizes = origin_;
    sizes[axis] = steps.back().first;
    Refuse(axis, UnevenWords(axis, output, sizes[axis], fit_.outputs[output].At(sizes),
                             steps.back().second[output]));
  }

  // The shapes where axes `i` and `j` are `steps_i` and `steps_j` steps beyond the base.
  absl::StatusOr<Shapes> ShapesBeyond(size_t i, int64_t steps_i, size_t j, int64_t steps_j) const {
    std::vector<int64_t> sizes = origin_;
    sizes[i] += steps_i * steps_[i];
    sizes[j] += steps_j * steps_[j];
    return ShapesAt(sizes);
  }

  // Dims that both axes move: whether their parts are multiplied.
  void FitProducts(size_t i, size_t j) {
    if (!fit_.refusals[i].empty() || !fit_.refusals[j].empty()) return;
    for (size_t output = 0; output < base_shapes_.size(); ++output) {
      for (size_t d = 0; d < base_shapes_[output].size(); ++d) {
        AffineDim& dim = fit_.outputs[output].dims[d];
        if (dim.factors[i] == 0 || dim.factors[j] == 0 || !dim.products.empty()) continue;
        const std::optional<AffineDim> product = ProductOf(i, j, output, d);
        if (product.has_value()) dim = *product;
      }
    }
  }

  // Extents of the axis, those of the largest strides first, and the number of steps that moves
  // each of them.
  std::vector<std::pair<Extent, int64_t>> CoarseFirst(size_t axis) const {
    std::vector<Extent> extents = extents_[axis];
    extents.push_back(Extent());
    absl::c_sort(extents, [](const Extent& a, const Extent& b) { return a.stride > b.stride; });
    std::vector<std::pair<Extent, int64_t>> found;
    found.reserve(extents.size());
    for (const Extent& extent : extents) {
      found.emplace_back(extent, RoundUpTo(extent.stride, steps_[axis]) / steps_[axis]);
    }
    return found;
  }

  std::optional<AffineDim> ProductOf(size_t i, size_t j, size_t output, size_t d) const {
    for (const auto& [a, steps_a] : CoarseFirst(i)) {
      for (const auto& [b, steps_b] : CoarseFirst(j)) {
        const auto at_a = ShapesBeyond(i, steps_a, j, 0), at_b = ShapesBeyond(i, 0, j, steps_b);
        const auto at_both = ShapesBeyond(i, steps_a, j, steps_b);
        if (!at_a.ok() || !at_b.ok() || !at_both.ok()) continue;
        const int64_t from_a = a.At(origin_[i]), from_b = b.At(origin_[j]);
        const int64_t moved_a = a.At(origin_[i] + steps_a * steps_[i]) - from_a;
        const int64_t moved_b = b.At(origin_[j] + steps_b * steps_[j]) - from_b;
        if (moved_a <= 0 || moved_b <= 0) continue;
        const int64_t at_origin = base_shapes_[output][d];
        const int64_t grown_a = (*at_a)[output][d] - at_origin;
        const int64_t grown_b = (*at_b)[output][d] - at_origin;
        const int64_t rest = (*at_both)[output][d] - at_origin - grown_a - grown_b;
        const bool whole = grown_a % moved_a == 0 && grown_b % moved_b == 0 &&
                           rest % (moved_a * moved_b) == 0 && rest != 0;
        if (!whole) continue;
        AffineDim dim = fit_.outputs[output].dims[d];
        const int64_t factor = rest / (moved_a * moved_b);
        dim.products = {{.first = i, .second = j, .factor = factor}};
        dim.factors[i] = grown_a / moved_a - factor * from_b;
        dim.factors[j] = grown_b / moved_b - factor * from_a;
        dim.extents[i] = a;
        dim.extents[j] = b;
        dim.constant += at_origin - dim.At(origin_);
        if (HoldsBeyond(dim, i, j, output, d)) return dim;
      }
    }
    return std::nullopt;
  }

  // The dim is as large as `dim` says at other sizes of both axes.
  bool HoldsBeyond(const AffineDim& dim, size_t i, size_t j, size_t output, size_t d) const {
    constexpr std::pair<int64_t, int64_t> kSteps[] = {{1, 1}, {2, 3}, {5, 2}, {3, 7}};
    return absl::c_all_of(kSteps, [&](const auto& steps) {
      const auto shapes = ShapesBeyond(i, steps.first, j, steps.second);
      std::vector<int64_t> sizes = origin_;
      sizes[i] += steps.first * steps_[i];
      sizes[j] += steps.second * steps_[j];
      return shapes.ok() && (*shapes)[output][d] == dim.At(sizes);
    });
  }

  // An axis whose parts are multiplied with those of a refused one is refused too.
  void RefuseFactorsTogether() {
    for (size_t output = 0; output < fit_.outputs.size(); ++output) {
      for (const AffineDim& dim : fit_.outputs[output].dims) {
        for (const AffineDim::Product& product : dim.products) {
          const bool any =
              !fit_.refusals[product.first].empty() || !fit_.refusals[product.second].empty();
          if (any) RefuseTogether(output, &dim);
        }
      }
    }
  }

  // Between one step and the base, which the model takes.
  void FindSmallest(size_t axis) {
    const int64_t step = steps_[axis];
    int64_t& smallest = fit_.smallest[axis];
    std::vector<int64_t> sizes = origin_;
    sizes[axis] = step;
    if (Takes(sizes)) return;
    int64_t refused = step;
    smallest = origin_[axis];
    while (smallest - refused > step) {
      sizes[axis] = RoundUpTo(refused + (smallest - refused) / 2, step);
      if (sizes[axis] == smallest) sizes[axis] -= step;
      (Takes(sizes) ? smallest : refused) = sizes[axis];
    }
  }

  bool Takes(const std::vector<int64_t>& sizes) const {
    const absl::StatusOr<Graph> specialized = SpecializedAt(sizes);
    return specialized.ok() && !ReadsBeyondItsData(*specialized);
  }

  // Looks at as many samples at once as there are threads, and ends where one refuses the axis.
  void CheckAxis(size_t axis, const std::vector<int64_t>& samples) {
    const auto at_once = static_cast<size_t>(std::max(threads_, 1));
    for (size_t begin = 0; begin < samples.size(); begin += at_once) {
      if (!fit_.refusals[axis].empty()) return;
      std::vector<std::vector<int64_t>> sizes;
      for (size_t i = begin; i < std::min(samples.size(), begin + at_once); ++i) {
        if (samples[i] < 1 || samples[i] % steps_[axis] != 0) continue;
        sizes.push_back(origin_);
        sizes.back()[axis] = samples[i];
      }
      const std::vector<absl::StatusOr<Shapes>> shapes = AllShapesAt(sizes);
      for (size_t i = 0; i < sizes.size(); ++i) {
        if (shapes[i].ok()) CheckSample(axis, sizes[i], *shapes[i]);
      }
    }
  }

  void CheckSample(size_t axis, const std::vector<int64_t>& sizes, const Shapes& shapes) {
    for (size_t output = 0; output < shapes.size(); ++output) {
      const Shape expected = fit_.outputs[output].At(sizes);
      if (expected == shapes[output]) continue;
      Refuse(axis, UnevenWords(axis, output, sizes[axis], expected, shapes[output]));
      return;
    }
  }

  // "output 'y' does not grow evenly: dim 2 is 10 at size 19, 10 at 20 and 50 at 100, ...".
  std::string UnevenWords(size_t axis, size_t output, int64_t size, const Shape& expected,
                          const Shape& found) const {
    const std::string name = NameOf(output);
    if (expected.size() != found.size()) {
      return absl::StrCat("the rank of output '", name, "' depends on it");
    }
    size_t d = 0;
    while (d + 1 < expected.size() && expected[d] == found[d]) ++d;
    const int64_t base = base_shapes_[output][d], next = origin_[axis] + steps_[axis];
    const AffineDim& dim = fit_.outputs[output].dims[d];
    return absl::StrCat("output '", name, "' does not grow evenly: its dim ", d, " is ", base,
                        " at size ", origin_[axis], ", ",
                        base + dim.PartOf(axis, next) - dim.PartOf(axis, origin_[axis]), " at ",
                        next, " and ", found[d], " at ", size,
                        ", as strides and pooling make it, so that of a padded answer it is not "
                        "known which part is the request's");
  }

  std::string NameOf(size_t output) const { return graph_.value(graph_.outputs()[output]).name; }

  // A product of two axes looks affine along each of them alone, also where one of them is refused:
  // wherever that lies, a step along the others has to make the same difference.
  void CheckAllAxesTogether() {
    CheckStepFrom(origin_);
    for (size_t axis = 0; axis < symbols_.size(); ++axis) {
      if (fit_.refusals[axis].empty()) continue;
      for (const int64_t size : {origin_[axis] + 1, 2 * origin_[axis] + 3, 8 * origin_[axis]}) {
        std::vector<int64_t> sizes = origin_;
        sizes[axis] = RoundUpTo(size, steps_[axis]);
        CheckStepFrom(sizes);
      }
    }
  }

  // One step along all axes that are not refused.
  void CheckStepFrom(const std::vector<int64_t>& from) {
    std::vector<int64_t> to = from;
    for (size_t i = 0; i < to.size(); ++i) {
      if (fit_.refusals[i].empty()) to[i] += (2 + static_cast<int64_t>(i)) * steps_[i];
    }
    const std::vector<absl::StatusOr<Shapes>> shapes = AllShapesAt({from, to});
    const absl::StatusOr<Shapes>&before = shapes[0], &after = shapes[1];
    if (!before.ok() || !after.ok()) return;
    for (size_t output = 0; output < after->size(); ++output) {
      const OutputShape& fitted = fit_.outputs[output];
      const Shape at_from = fitted.At(from), at_to = fitted.At(to);
      const bool same_rank = (*before)[output].size() == fitted.dims.size() &&
                             (*after)[output].size() == fitted.dims.size();
      for (size_t d = 0; d < fitted.dims.size(); ++d) {
        const bool as_fitted =
            same_rank && (*after)[output][d] - (*before)[output][d] == at_to[d] - at_from[d];
        if (!as_fitted) RefuseTogether(output, same_rank ? &fitted.dims[d] : nullptr);
      }
    }
  }

  // The axes that `dim` grows with, or all; null: all.
  void RefuseTogether(size_t output, const AffineDim* dim) {
    const bool any = dim != nullptr && dim->Moves();
    for (size_t axis = 0; axis < symbols_.size(); ++axis) {
      if (any && !dim->MovesWith(axis)) continue;
      Refuse(axis, absl::StrCat("a dim of output '", NameOf(output),
                                "' grows with several axes at once"));
    }
  }

  void Refuse(size_t axis, std::string reason) {
    if (fit_.refusals[axis].empty()) fit_.refusals[axis] = std::move(reason);
  }

  // Takes the factors of a refused axis out, so that nobody computes with them.
  void Forget(size_t axis) {
    for (OutputShape& output : fit_.outputs) {
      for (AffineDim& dim : output.dims) {
        dim.open = dim.open || dim.MovesWith(axis);
        for (const AffineDim::Product& product : dim.products) {
          if (product.first != axis && product.second != axis) continue;
          const size_t other = product.first == axis ? product.second : product.first;
          dim.factors[other] += product.factor * dim.ExtentOf(axis).At(origin_[axis]);
        }
        std::erase_if(dim.products, [&](const AffineDim::Product& product) {
          return product.first == axis || product.second == axis;
        });
        dim.constant += dim.PartOf(axis, origin_[axis]);
        dim.factors[axis] = 0;
      }
    }
  }

  // A dim that moves with no fitted axis was seen at few sizes of the axes that were refused.
  void OpenOthers() {
    for (OutputShape& output : fit_.outputs) {
      for (AffineDim& dim : output.dims) {
        dim.open = dim.open || !dim.Moves();
      }
    }
  }

  const Graph& graph_;
  const std::vector<std::string>& symbols_;
  const Binding& base_;
  std::vector<std::vector<Extent>> extents_;  // indexed by axis
  std::vector<int64_t> steps_;                // indexed by axis
  const int threads_;
  std::vector<int64_t> origin_;
  Shapes base_shapes_;
  OutputFit fit_;
};

// Products and sums that stay at the last integer where they would pass it: no output has such a
// size, whatever a record of the store says.
int64_t Times(int64_t a, int64_t b) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  return (a < 0) == (b < 0) ? std::numeric_limits<int64_t>::max()
                            : std::numeric_limits<int64_t>::min();
}
int64_t Plus(int64_t a, int64_t b) {
  int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
}

}  // namespace

int64_t AffineDim::At(absl::Span<const int64_t> sizes) const {
  const auto extent_at = [&](size_t axis) { return ExtentOf(axis).At(sizes[axis]); };
  int64_t size = constant;
  for (size_t i = 0; i < factors.size(); ++i) size = Plus(size, Times(factors[i], extent_at(i)));
  for (const auto& [first, second, factor] : products) {
    size = Plus(size, Times(Times(factor, extent_at(first)), extent_at(second)));
  }
  return size;
}

bool AffineDim::MovesWith(size_t axis) const {
  return factors[axis] != 0 || absl::c_any_of(products, [&](const Product& product) {
           return product.first == axis || product.second == axis;
         });
}

bool AffineDim::Moves() const {
  return !products.empty() || absl::c_any_of(factors, [](int64_t factor) { return factor != 0; });
}

bool AffineDim::IsAxis(size_t axis) const {
  if (constant != 0 || !products.empty()) return false;
  for (size_t i = 0; i < factors.size(); ++i) {
    if (factors[i] != (i == axis ? 1 : 0)) return false;
  }
  return ExtentOf(axis).is_whole();
}

Shape OutputShape::At(absl::Span<const int64_t> sizes) const {
  Shape shape;
  for (const AffineDim& dim : dims) shape.push_back(dim.At(sizes));
  return shape;
}

absl::StatusOr<OutputFit> FitOutputShapes(const Graph& graph,
                                          const std::vector<std::string>& symbols,
                                          const Binding& base,
                                          const std::vector<std::vector<int64_t>>& samples,
                                          const std::vector<std::vector<Extent>>& extents,
                                          const std::vector<int64_t>& steps, bool multiplies,
                                          int threads) {
  return Fitter(graph, symbols, base, extents, steps, threads).Run(samples, multiplies);
}

}  // namespace reprise
