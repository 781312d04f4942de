#include "tests/testing/shadow/shadow.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "runtime/passes/read/read_sizes.h"

namespace reprise {
namespace {

constexpr int64_t kMostCompared = 1 << 14;

bool IsLimit(const absl::Status& status) {
  return status.code() == absl::StatusCode::kResourceExhausted;
}

// Compares value `id` of `reading` at the evaluator's sizes with the trace of specialising.
std::string ValueDifference(const SizeReading& reading, SizeEvaluator& sizes,
                            const SpecializeTrace& trace, size_t id, bool is_given,
                            ShadowCounts& counts) {
  const SizeReading::Value& value = reading.values[id];
  const std::optional<Tensor>& constant = trace.constants[id];
  const std::optional<Shape> shape = constant.has_value() ? constant->shape() : trace.shapes[id];
  if (!shape.has_value()) return "";
  if (!value.shape.has_value()) return "its shape is not read";
  Shape read;
  for (const Size size : *value.shape) read.push_back(sizes.At(size).value_or(-1));
  if (read != *shape) {
    return absl::StrCat("shape ", SizesText(*value.shape), " is ", ShapeToString(read), ", not ",
                        ShapeToString(*shape));
  }
  ++counts.shapes;
  if (!constant.has_value() || is_given) return "";
  std::optional<Tensor> known = value.constant;
  if (value.known.has_value()) known = TensorAt(*value.known, sizes, kMostCompared);
  if (!known.has_value()) {
    if (constant->num_elements() <= kMostCompared) ++counts.unknown;
    return "";
  }
  if (!(*known == *constant)) {
    std::string text;
    if (value.known.has_value() && value.known->is_table()) text = SizeText(*value.known->element);
    if (value.known.has_value() && !value.known->is_table())
      text = SizesText(value.known->elements);
    return absl::StrCat("elements ", text, " are ", ElementsText(*known), ", not ",
                        ElementsText(*constant));
  }
  counts.numbers += constant->num_elements();
  return "";
}

std::string Differs(const Graph& graph, const SizeReading& reading, const Binding& binding,
                    ShadowCounts& counts) {
  SizeEvaluator sizes(*reading.table, binding.axes);
  SpecializeTrace trace;
  const auto specialized = Specialize(graph, binding, {.trace = &trace});
  if (IsLimit(specialized.status())) return "";
  if (!specialized.ok()) {
    return absl::StrCat("at ", binding.ToString(),
                        ": read, and refused: ", specialized.status().ToString());
  }
  for (size_t id = 0; id < graph.num_values(); ++id) {
    const bool is_given = graph.value(static_cast<ValueId>(id)).kind == Value::Kind::kConstant;
    const std::string difference = ValueDifference(reading, sizes, trace, id, is_given, counts);
    if (difference.empty()) continue;
    return absl::StrCat("at ", binding.ToString(), ", value %",
                        graph.value(static_cast<ValueId>(id)).name, ": ", difference);
  }
  return "";
}

// Returns a reading at `binding`, compared there; nullopt where the sizes are refused.
std::optional<SizeReading> ReadAt(const Graph& graph, const Binding& binding, std::string& differs,
                                  ShadowCounts& counts) {
  ++counts.readings;
  auto reading = ReadSizes(graph, binding);
  if (reading.ok()) {
    if (!SizeEvaluator(*reading->table, binding.axes).InRegion()) {
      differs = absl::StrCat("at ", binding.ToString(), ": outside of its own region");
      return std::nullopt;
    }
    differs = Differs(graph, *reading, binding, counts);
    if (!differs.empty()) return std::nullopt;
    return *std::move(reading);
  }
  ++counts.refused;
  const auto specialized = Specialize(graph, binding);
  if (specialized.ok() ||
      (!IsLimit(specialized.status()) && specialized.status().code() != reading.status().code())) {
    differs =
        absl::StrCat("at ", binding.ToString(), ": reading says ", reading.status().ToString(),
                     ", specialising ", specialized.status().ToString());
  }
  return std::nullopt;
}

}  // namespace

std::string ShadowCounts::ToString() const {
  return absl::StrCat(readings, " readings, ", refused, " refused, ", within,
                      " other sizes within a region, ", outside, " outside, ", shapes, " shapes, ",
                      numbers, " numbers, ", unknown, " constants not known");
}

std::string ShadowDifference(const Graph& graph, const std::vector<Binding>& bindings,
                             ShadowCounts& counts) {
  std::string differs;
  std::vector<SizeReading> regions;
  for (const Binding& binding : bindings) {
    bool found = false;
    for (const SizeReading& region : regions) {
      if (!SizeEvaluator(*region.table, binding.axes).InRegion()) continue;
      found = true;
      ++counts.within;
      differs = Differs(graph, region, binding, counts);
      if (!differs.empty()) return differs;
    }
    if (found) continue;
    if (!regions.empty()) ++counts.outside;
    std::optional<SizeReading> reading = ReadAt(graph, binding, differs, counts);
    if (!differs.empty()) return differs;
    if (reading.has_value()) regions.push_back(*std::move(reading));
  }
  return "";
}

Graph WithAxesFor(const Graph& graph, std::map<std::string, int64_t>& sizes) {
  Graph wider = graph;
  for (const ValueId id : wider.inputs()) {
    Value& value = wider.value(id);
    for (size_t d = 0; d < value.dims.size(); ++d) {
      if (!value.dims[d].is_constant() || value.dims[d].size < 2) continue;
      const std::string name = absl::StrCat("dim_of_", value.dims[d].size);
      sizes[name] = value.dims[d].size;
      value.dims[d] = {.symbol = name};
    }
    if (!value.dims.empty()) value.shape.reset();
  }
  return wider;
}

}  // namespace reprise
