#include "runtime/engine/output_shapes.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

using Shapes = std::vector<Shape>;

absl::StatusOr<Shapes> ShapesAt(const Graph& graph, const std::vector<std::string>& symbols,
                                Binding binding, const std::vector<int64_t>& sizes) {
  for (size_t i = 0; i < symbols.size(); ++i) binding.axes[symbols[i]] = sizes[i];
  ASSIGN_OR_RETURN(const Graph specialized, Specialize(graph, binding));
  Shapes shapes;
  for (ValueId output : specialized.outputs()) shapes.push_back(*specialized.value(output).shape);
  return shapes;
}

}  // namespace

int64_t AffineDim::At(absl::Span<const int64_t> sizes) const {
  int64_t size = constant;
  for (size_t i = 0; i < factors.size(); ++i) size += factors[i] * sizes[i];
  return size;
}

bool AffineDim::IsAxis(size_t axis) const {
  if (constant != 0) return false;
  for (size_t i = 0; i < factors.size(); ++i) {
    if (factors[i] != (i == axis ? 1 : 0)) return false;
  }
  return true;
}

Shape OutputShape::At(absl::Span<const int64_t> sizes) const {
  Shape shape;
  for (const AffineDim& dim : dims) shape.push_back(dim.At(sizes));
  return shape;
}

absl::StatusOr<std::vector<OutputShape>> FitOutputShapes(const Graph& graph,
                                                         const std::vector<std::string>& symbols,
                                                         const Binding& base) {
  std::vector<int64_t> origin;
  for (const std::string& symbol : symbols) origin.push_back(base.axes.at(symbol));
  Binding binding = base;
  for (const std::string& symbol : symbols) binding.axes[symbol] = base.axes.at(symbol);
  ASSIGN_OR_RETURN(const Graph at_base, Specialize(graph, binding));

  std::vector<OutputShape> fitted;
  for (ValueId output : at_base.outputs()) {
    OutputShape shape;
    shape.dtype = at_base.value(output).dtype;
    for (int64_t size : *at_base.value(output).shape) {
      shape.dims.push_back({size, std::vector<int64_t>(symbols.size(), 0)});
    }
    fitted.push_back(std::move(shape));
  }
  auto reject_all = [&] {
    for (OutputShape& shape : fitted) shape.affine = false;
  };

  // One step along each axis gives the factors; the constant follows from the base.
  for (size_t axis = 0; axis < symbols.size(); ++axis) {
    std::vector<int64_t> sizes = origin;
    ++sizes[axis];
    const absl::StatusOr<Shapes> shapes = ShapesAt(graph, symbols, base, sizes);
    if (!shapes.ok()) {
      reject_all();
      return fitted;
    }
    for (size_t output = 0; output < fitted.size(); ++output) {
      const Shape& moved = (*shapes)[output];
      std::vector<AffineDim>& dims = fitted[output].dims;
      if (moved.size() != dims.size()) {
        fitted[output].affine = false;
        continue;
      }
      for (size_t d = 0; d < dims.size(); ++d) {
        const int64_t at_origin = (*at_base.value(at_base.outputs()[output]).shape)[d];
        dims[d].factors[axis] = moved[d] - at_origin;
        dims[d].constant -= dims[d].factors[axis] * origin[axis];
      }
    }
  }
  // A point away from all of them must agree, or the dims are no affine functions.
  std::vector<int64_t> far;
  for (size_t i = 0; i < origin.size(); ++i) far.push_back(origin[i] * 2 + 3 + i);
  const absl::StatusOr<Shapes> shapes = ShapesAt(graph, symbols, base, far);
  for (size_t output = 0; output < fitted.size(); ++output) {
    if (!shapes.ok() || fitted[output].At(far) != (*shapes)[output]) fitted[output].affine = false;
  }
  return fitted;
}

}  // namespace reprise
