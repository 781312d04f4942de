#include "runtime/certify/size_facts.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "runtime/graph/graph.h"

namespace reprise {

SizeFacts::SizeFacts(const SizeQuestion& question)
    : question_(question),
      graph_(*question.graph),
      axes_(question.largest.size()),
      low_(question.samples[0].sizes),
      high_(question.samples[(size_t{1} << axes_) - 1].sizes),
      flows_(graph_.num_values()),
      alias_(graph_.num_values(), kNone) {
  for (ValueId id = 0; id < static_cast<ValueId>(graph_.num_values()); ++id) {
    const Value& value = graph_.value(id);
    if (value.kind != Value::Kind::kConstant) continue;
    flows_[id] = {.use = SizeUse::kFixed};
    if (value.constant.num_elements() > kMaxElements) continue;
    for (const double element : value.constant.ToDoubles()) {
      flows_[id].elements.push_back(SizePolynomial::Constant(axes_, element));
    }
  }
}

ValueId SizeFacts::Resolved(ValueId id) const {
  while (id != kNone && alias_[id] != kNone) id = alias_[id];
  return id;
}

const SizeFlow& SizeFacts::FlowOf(ValueId id) const {
  static const SizeFlow kNothing = {.use = SizeUse::kFixed};
  id = Resolved(id);
  return id == kNone ? kNothing : flows_[id];
}

const std::optional<Shape>& SizeFacts::ShapeIn(const SizeSample& sample, ValueId id) const {
  static const std::optional<Shape> kUnknown;
  id = Resolved(id);
  if (id == kNone) return kUnknown;
  return graph_.value(id).kind == Value::Kind::kConstant ? graph_.value(id).shape
                                                         : sample.shapes[id];
}

const std::optional<Shape>& SizeFacts::LowShape(ValueId id) const {
  return ShapeIn(question_.samples[0], id);
}

const std::optional<Shape>& SizeFacts::HighShape(ValueId id) const {
  return ShapeIn(question_.samples[size_t{1} << question_.position], id);
}

std::optional<std::vector<size_t>> SizeFacts::VaryingDims(ValueId id) const {
  const auto& low = LowShape(id);
  const auto& high = HighShape(id);
  if (!low || !high || low->size() != high->size()) return std::nullopt;
  std::vector<size_t> dims;
  for (size_t d = 0; d < low->size(); ++d) {
    if ((*low)[d] != (*high)[d]) dims.push_back(d);
  }
  return dims;
}

bool SizeFacts::Varies(ValueId id) const {
  const auto dims = VaryingDims(id);
  return !dims || !dims->empty();
}

bool SizeFacts::AnyVaries(const Node& node) const {
  return absl::c_any_of(node.inputs, [&](ValueId id) { return id != kNone && Varies(id); });
}

std::vector<std::vector<int64_t>> SizeFacts::Places(ValueId id) const {
  std::vector<std::vector<int64_t>> places;
  const Shape low = *LowShape(id), high = *HighShape(id);
  const std::vector<size_t> dims = *VaryingDims(id);
  for (const size_t d : dims) {
    places.push_back({low[d], high[d], Strides(low)[d], Strides(high)[d]});
  }
  return places;
}

SizeFacts::Elements SizeFacts::Fit(ValueId id) const {
  std::vector<std::vector<double>> values;
  for (const SizeSample& sample : question_.samples) {
    const std::optional<Tensor>& constant = sample.constants[id];
    if (!constant.has_value() || constant->num_elements() > kMaxElements) return {};
    values.push_back(constant->ToDoubles());
    if (values.back().size() != values[0].size()) return {};
  }
  return FitValues(values);
}

std::optional<SizeFacts::Elements> SizeFacts::DimsOf(ValueId id) const {
  std::vector<std::vector<double>> values;
  for (const SizeSample& sample : question_.samples) {
    const std::optional<Shape>& shape = ShapeIn(sample, id);
    if (!shape.has_value()) return std::nullopt;
    values.emplace_back(shape->begin(), shape->end());
    if (values.back().size() != values[0].size()) return std::nullopt;
  }
  Elements dims = FitValues(values);
  if (dims.size() != values[0].size()) return std::nullopt;
  return dims;
}

SizeFacts::Elements SizeFacts::FitValues(const std::vector<std::vector<double>>& values) const {
  Elements elements;
  const size_t corners = size_t{1} << axes_;
  for (size_t e = 0; e < values[0].size(); ++e) {
    std::vector<double> at;
    for (size_t i = 0; i < corners; ++i) at.push_back(values[i][e]);
    elements.push_back(SizePolynomial::Through(at, low_, high_));
    for (size_t i = corners; i < values.size(); ++i) {
      const double said = elements.back().At(question_.samples[i].sizes);
      if (std::abs(said - values[i][e]) > 1e-6 * std::max(1.0, std::abs(said))) return {};
    }
  }
  return elements;
}

SizeUse SizeFacts::UseOfShape(ValueId id) const {
  const auto unlike = [&](const SizeSample& a, const SizeSample& b) {
    for (size_t axis = 0; axis < axes_; ++axis) {
      if ((a.sizes[axis] != b.sizes[axis]) != (axis == question_.position)) return false;
    }
    return true;
  };
  SizeUse use = SizeUse::kFixed;
  for (const SizeSample& a : question_.samples) {
    for (const SizeSample& b : question_.samples) {
      if (!unlike(a, b)) continue;
      const std::optional<Tensor>&one = a.constants[id], &other = b.constants[id];
      if (!one.has_value() || !other.has_value()) return SizeUse::kSteps;
      const std::vector<double> values = one->ToDoubles(), others = other->ToDoubles();
      if (values.size() != others.size()) return SizeUse::kSteps;
      for (size_t e = 0; e < values.size(); ++e) {
        if (values[e] == others[e]) continue;
        const auto size = static_cast<double>(a.sizes[question_.position]);
        const auto other_size = static_cast<double>(b.sizes[question_.position]);
        if (values[e] != size || others[e] != other_size) return SizeUse::kSteps;
        use = SizeUse::kEven;
      }
    }
  }
  return use;
}

SizeUse SizeFacts::UseOf(const Elements& elements) const {
  const bool follows = absl::c_any_of(
      elements, [&](const SizePolynomial& one) { return one.DependsOn(question_.position); });
  return follows ? SizeUse::kEven : SizeUse::kFixed;
}

bool SizeFacts::AllKnown(const Node& node) const {
  return absl::c_all_of(node.inputs,
                        [this](ValueId id) { return id == kNone || !FlowOf(id).elements.empty(); });
}

size_t SizeFacts::AxesOf(const Elements& elements) {
  size_t axes = 0;
  for (const SizePolynomial& one : elements) axes |= one.axes();
  return axes;
}

SizeFlow SizeFacts::Fitted(ValueId output, SizeUse otherwise) const {
  Elements elements = Fit(output);
  if (elements.empty()) return {.use = otherwise};
  const SizeUse use = UseOf(elements);
  return {.use = use, .elements = std::move(elements)};
}

const Tensor* SizeFacts::AnySample(ValueId id) const {
  if (id == kNone) return nullptr;
  if (graph_.value(id).kind == Value::Kind::kConstant) return &graph_.value(id).constant;
  const std::optional<Tensor>& constant = question_.samples[0].constants[id];
  return constant.has_value() ? &*constant : nullptr;
}

}  // namespace reprise
