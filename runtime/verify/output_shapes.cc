#include "runtime/verify/output_shapes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/read/size_regions.h"

namespace reprise {
namespace {

using Shapes = std::vector<Shape>;
using AxisSizes = std::vector<int64_t>;

// Sizes in a row that the model does not take, after which fewer are tried, and how many in all.
constexpr int kRefusedInARow = 4, kMostRefused = 24;

// The shapes of outputs along one axis while the others stay.
struct Line {
  std::vector<std::pair<int64_t, Shapes>> taken;  // Keyed by size.
  absl::Status next;                              // the size after the base
};

class Fitter {
 public:
  Fitter(const Graph& graph, const std::vector<std::string>& symbols, const Binding& base,
         std::vector<FitRange> ranges, bool multiplies)
      : symbols_(symbols),
        regions_(graph, base),
        ranges_(std::move(ranges)),
        multiplies_(multiplies) {
    for (const std::string& symbol : symbols) origin_.push_back(base.axes.at(symbol));
    fit_.refusals.resize(symbols.size());
    fit_.smallest.resize(symbols.size(), 1);
  }

  absl::StatusOr<OutputFit> Run() {
    RETURN_IF_ERROR(StartAtBase());
    std::vector<Line> lines;
    for (size_t axis = 0; axis < symbols_.size(); ++axis) {
      regions_.AllowMore();  // An axis of too many regions refuses itself alone.
      lines.push_back(Walk(axis));
      FitAxis(axis, lines.back());
    }
    regions_.AllowMore();
    for (size_t i = 0; multiplies_ && i < symbols_.size(); ++i) {
      for (size_t j = i + 1; j < symbols_.size(); ++j) FitProducts(i, j);
    }
    for (size_t axis = 0; axis < symbols_.size(); ++axis) CheckAxis(axis, lines[axis]);
    CheckAllAxesTogether(lines);
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
  absl::StatusOr<Shapes> ShapesAt(const AxisSizes& sizes) {
    std::map<std::string, int64_t> axes;
    for (size_t i = 0; i < symbols_.size(); ++i) axes[symbols_[i]] = sizes[i];
    return regions_.ShapesAt(axes);
  }

  absl::StatusOr<Shapes> ShapesAt(size_t axis, int64_t size) {
    AxisSizes sizes = origin_;
    sizes[axis] = size;
    return ShapesAt(sizes);
  }

  absl::Status StartAtBase() {
    ASSIGN_OR_RETURN(base_shapes_, ShapesAt(origin_));
    const std::vector<SizeRegions::Output>& outputs = regions_.regions().front()->outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      OutputShape shape;
      shape.dtype = outputs[i].dtype;
      for (const int64_t size : base_shapes_[i]) {
        shape.dims.push_back({.constant = size,
                              .factors = AxisSizes(symbols_.size(), 0),
                              .extents = std::vector<Extent>(symbols_.size())});
      }
      fit_.outputs.push_back(std::move(shape));
    }
    return absl::OkStatus();
  }

  // Down to the smallest size that the model takes, then up to the largest that is asked for.
  Line Walk(size_t axis) {
    const int64_t step = ranges_[axis].step, origin = origin_[axis];
    const int64_t least = RoundUpTo(std::max<int64_t>(1, ranges_[axis].from), step);
    Line line = {.taken = {{origin, base_shapes_}}};
    fit_.smallest[axis] = origin;
    for (int64_t size = origin - step; size >= least; size -= step) {
      absl::StatusOr<Shapes> shapes = ShapesAt(axis, size);
      if (!shapes.ok()) break;
      fit_.smallest[axis] = size;
      line.taken.emplace_back(size, *std::move(shapes));
    }
    std::reverse(line.taken.begin(), line.taken.end());
    const int64_t next = origin + step;
    int refused = 0, in_a_row = 0;
    for (int64_t size = next; size <= std::max(next, ranges_[axis].largest);) {
      absl::StatusOr<Shapes> shapes = ShapesAt(axis, size);
      if (size == next) line.next = shapes.status();
      if (regions_.has_too_many()) return line;
      if (shapes.ok()) {
        line.taken.emplace_back(size, *std::move(shapes));
        in_a_row = 0;
      } else if (++in_a_row; ++refused == kMostRefused) {
        break;
      }
      if (in_a_row > kRefusedInARow) size = RoundUpTo(size + size / 8, step) - step;
      size = regions_.After(symbols_[axis], size, ranges_[axis].largest, step);
    }
    return line;
  }

  void FitAxis(size_t axis, const Line& line) {
    const int64_t next = origin_[axis] + ranges_[axis].step;
    if (regions_.has_too_many()) return Refuse(axis, regions_.too_many());
    if (!line.next.ok()) {
      return Refuse(axis, absl::StrCat("the model does not take size ", next, ": ",
                                       std::string(line.next.message())));
    }
    for (const auto& [size, shapes] : line.taken) {
      for (size_t output = 0; output < shapes.size(); ++output) {
        if (shapes[output].size() == base_shapes_[output].size()) continue;
        return Refuse(axis,
                      absl::StrCat("the rank of output '", NameOf(output), "' depends on it"));
      }
    }
    for (size_t output = 0; output < base_shapes_.size(); ++output) {
      for (size_t d = 0; d < base_shapes_[output].size(); ++d) FitDim(axis, output, d, line);
    }
  }

  // Returns the extent that the dim moves with, and how often it counts.
  void FitDim(size_t axis, size_t output, size_t d, const Line& line) {
    AffineDim& dim = fit_.outputs[output].dims[d];
    const int64_t at_origin = base_shapes_[output][d];
    std::vector<Extent> candidates = ranges_[axis].extents;
    candidates.insert(candidates.begin(), Extent());
    for (const Extent& extent : candidates) {
      const int64_t from = extent.At(origin_[axis]);
      std::optional<int64_t> factor;
      const bool fits = absl::c_all_of(line.taken, [&](const auto& one) {
        const int64_t moved = extent.At(one.first) - from;
        const int64_t grown = one.second[output][d] - at_origin;
        if (moved == 0) return grown == 0;
        if (!factor.has_value()) factor = grown / moved;
        return *factor * moved == grown;
      });
      if (!fits) continue;
      dim.factors[axis] = factor.value_or(0);
      if (dim.factors[axis] != 0) dim.extents[axis] = extent;
      dim.constant -= dim.PartOf(axis, origin_[axis]);
      return;
    }
    // One step along the axis, for the words that say what it is not.
    const auto next = absl::c_find_if(line.taken, [&](const auto& one) {
      return one.first == origin_[axis] + ranges_[axis].step;
    });
    dim.factors[axis] = (next->second[output][d] - at_origin) / ranges_[axis].step;
    dim.constant -= dim.PartOf(axis, origin_[axis]);
  }

  // Returns the shapes where axes `i` and `j` are `steps_i` and `steps_j` steps beyond the base.
  absl::StatusOr<Shapes> ShapesBeyond(size_t i, int64_t steps_i, size_t j, int64_t steps_j) {
    AxisSizes sizes = origin_;
    sizes[i] += steps_i * ranges_[i].step;
    sizes[j] += steps_j * ranges_[j].step;
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
    std::vector<Extent> extents = ranges_[axis].extents;
    extents.push_back(Extent());
    absl::c_sort(extents, [](const Extent& a, const Extent& b) { return a.stride > b.stride; });
    std::vector<std::pair<Extent, int64_t>> found;
    found.reserve(extents.size());
    const int64_t step = ranges_[axis].step;
    for (const Extent& extent : extents) {
      found.emplace_back(extent, RoundUpTo(extent.stride, step) / step);
    }
    return found;
  }

  std::optional<AffineDim> ProductOf(size_t i, size_t j, size_t output, size_t d) {
    for (const auto& [a, steps_a] : CoarseFirst(i)) {
      for (const auto& [b, steps_b] : CoarseFirst(j)) {
        const auto at_a = ShapesBeyond(i, steps_a, j, 0), at_b = ShapesBeyond(i, 0, j, steps_b);
        const auto at_both = ShapesBeyond(i, steps_a, j, steps_b);
        if (!at_a.ok() || !at_b.ok() || !at_both.ok()) continue;
        const int64_t from_a = a.At(origin_[i]), from_b = b.At(origin_[j]);
        const int64_t moved_a = a.At(origin_[i] + steps_a * ranges_[i].step) - from_a;
        const int64_t moved_b = b.At(origin_[j] + steps_b * ranges_[j].step) - from_b;
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

  // Returns whether the dim is as large as `dim` says at other sizes of both axes.
  bool HoldsBeyond(const AffineDim& dim, size_t i, size_t j, size_t output, size_t d) {
    constexpr std::pair<int64_t, int64_t> kSteps[] = {{1, 1}, {2, 3}, {5, 2}, {3, 7}};
    return absl::c_all_of(kSteps, [&](const auto& steps) {
      const auto shapes = ShapesBeyond(i, steps.first, j, steps.second);
      AxisSizes sizes = origin_;
      sizes[i] += steps.first * ranges_[i].step;
      sizes[j] += steps.second * ranges_[j].step;
      return shapes.ok() && (*shapes)[output][d] == dim.At(sizes);
    });
  }

  // Refuses an axis whose parts are multiplied with parts of a refused one.
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

  void CheckAxis(size_t axis, const Line& line) {
    for (const auto& [size, shapes] : line.taken) {
      if (!fit_.refusals[axis].empty()) return;
      AxisSizes sizes = origin_;
      sizes[axis] = size;
      for (size_t output = 0; output < shapes.size(); ++output) {
        const Shape expected = fit_.outputs[output].At(sizes);
        if (expected == shapes[output]) continue;
        Refuse(axis, UnevenWords(axis, output, size, expected, shapes[output]));
        break;
      }
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
    const int64_t base = base_shapes_[output][d], next = origin_[axis] + ranges_[axis].step;
    const AffineDim& dim = fit_.outputs[output].dims[d];
    return absl::StrCat("output '", name, "' does not grow evenly: its dim ", d, " is ", base,
                        " at size ", origin_[axis], ", ",
                        base + dim.PartOf(axis, next) - dim.PartOf(axis, origin_[axis]), " at ",
                        next, " and ", found[d], " at ", size,
                        ", as strides and pooling make it, so that of a padded answer it is not "
                        "known which part is the request's");
  }

  std::string NameOf(size_t output) const {
    const Graph& graph = regions_.graph();
    return graph.value(graph.outputs()[output]).name;
  }

  // Finds products of axes: one of two axes looks affine along each of them alone, also where one
  // of them is refused: wherever that lies, steps along the others have to make the same
  // difference. Looked at are one step, the ends of all axes, and where one region ends while
  // others are at either end.
  void CheckAllAxesTogether(const std::vector<Line>& lines) {
    std::vector<AxisSizes> places(symbols_.size());  // Indexed by axis.
    std::vector<AxisSizes> ends = {origin_, origin_, origin_};
    for (size_t axis = 0; axis < symbols_.size(); ++axis) {
      if (!fit_.refusals[axis].empty()) continue;
      const int64_t low = fit_.smallest[axis], high = lines[axis].taken.back().first;
      places[axis] = {low, high};
      ends[0][axis] += (2 + static_cast<int64_t>(axis)) * ranges_[axis].step;
      ends[1][axis] = low;
      ends[2][axis] = high;
    }
    std::set<AxisSizes> moves(ends.begin(), ends.end());
    for (size_t i = 0; i < symbols_.size(); ++i) {
      for (size_t j = 0; j < symbols_.size(); ++j) {
        for (size_t one = 0; i != j && one < places[i].size(); ++one) {
          for (const int64_t other : places[j]) {
            AxisSizes move = origin_;
            move[i] = places[i][one];
            move[j] = other;
            moves.insert(std::move(move));
          }
        }
      }
    }
    CheckMoves(origin_, moves);
    for (size_t axis = 0; axis < symbols_.size(); ++axis) {
      if (fit_.refusals[axis].empty()) continue;
      for (const int64_t size : {origin_[axis] + 1, 2 * origin_[axis] + 3, 8 * origin_[axis]}) {
        AxisSizes from = origin_;
        from[axis] = RoundUpTo(size, ranges_[axis].step);
        CheckMoves(from, moves);
      }
    }
  }

  // Moves along all axes that are not refused.
  void CheckMoves(const AxisSizes& from, const std::set<AxisSizes>& moves) {
    const absl::StatusOr<Shapes> before = ShapesAt(from);
    if (!before.ok()) return;
    for (AxisSizes to : moves) {
      for (size_t i = 0; i < to.size(); ++i) {
        if (!fit_.refusals[i].empty()) to[i] = from[i];
      }
      const absl::StatusOr<Shapes> after = ShapesAt(to);
      if (regions_.has_too_many()) {
        for (size_t i = 0; i < to.size(); ++i) Refuse(i, regions_.too_many());
        return;
      }
      if (after.ok()) CheckMove(from, *before, to, *after);
    }
  }

  void CheckMove(const AxisSizes& from, const Shapes& before, const AxisSizes& to,
                 const Shapes& after) {
    for (size_t output = 0; output < after.size(); ++output) {
      const OutputShape& fitted = fit_.outputs[output];
      const Shape at_from = fitted.At(from), at_to = fitted.At(to);
      const bool same_rank =
          before[output].size() == fitted.dims.size() && after[output].size() == fitted.dims.size();
      for (size_t d = 0; d < fitted.dims.size(); ++d) {
        const bool as_fitted =
            same_rank && after[output][d] - before[output][d] == at_to[d] - at_from[d];
        if (!as_fitted) RefuseTogether(output, same_rank ? &fitted.dims[d] : nullptr);
      }
    }
  }

  // Returns the axes that `dim` grows with, or all; null: all.
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

  // Tells of a dim that moves with no fitted axis: it was seen at few sizes of the axes that were
  // refused.
  void OpenOthers() {
    for (OutputShape& output : fit_.outputs) {
      for (AffineDim& dim : output.dims) {
        dim.open = dim.open || !dim.Moves();
      }
    }
  }

  const std::vector<std::string>& symbols_;
  SizeRegions regions_;
  const std::vector<FitRange> ranges_;  // indexed by axis
  const bool multiplies_;
  AxisSizes origin_;
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
                                          const Binding& base, std::vector<FitRange> ranges,
                                          bool multiplies) {
  return Fitter(graph, symbols, base, std::move(ranges), multiplies).Run();
}

}  // namespace reprise
