#include "tests/fuzz/random_models/model_draft.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/certify/numbers.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/kit/op.h"

namespace reprise::fuzz {
namespace {

constexpr int64_t kMostBytes = 1 << 22;  // limit for one result
constexpr int64_t kMostElementsOfValue = 20000;
constexpr double kLargest = 1e5;

}  // namespace

ModelDraft::ModelDraft(Chance& chance, std::vector<Sizes> trials, const ModelStyle& style)
    : chance_(chance),
      trials_(std::move(trials)),
      style_(style),
      counts_(trials_.size(), true),
      round_(chance_.OneIn(2)),
      wild_(chance_.OneIn(20)) {}

ValueId ModelDraft::Keep(ValueId id, std::vector<std::optional<Tensor>> at, bool data,
                         bool pickable) {
  if (known_.size() <= static_cast<size_t>(id)) known_.resize(id + 1);
  DType dtype = DType::kUndefined;
  for (const auto& tensor : at) {
    if (tensor.has_value()) dtype = tensor->dtype();
  }
  graph_.value(id).dtype = dtype;
  known_[id] = {.dtype = dtype, .at = std::move(at), .data = data, .pickable = pickable};
  if (pickable) pool_.push_back(id);
  return id;
}

ValueId ModelDraft::Input(const std::string& name, DType dtype, std::vector<Dim> dims,
                          std::vector<Tensor> contents) {
  const ValueId id = graph_.AddInput(name, dtype, std::move(dims));
  return Keep(id, {contents.begin(), contents.end()}, /*data=*/true, /*pickable=*/true);
}

ValueId ModelDraft::Constant(Tensor tensor) {
  const std::vector<std::optional<Tensor>> at(trials_.size(), tensor);
  return Keep(graph_.AddConstant("", std::move(tensor)), at, /*data=*/false, /*pickable=*/false);
}

ValueId ModelDraft::Weight(Shape shape, int64_t inner) {
  std::vector<float> values(NumElements(shape));
  const double size = round_ ? 1 : 1 / std::sqrt(static_cast<double>(std::max<int64_t>(inner, 1)));
  for (float& value : values) value = static_cast<float>(chance_.Number(size, round_));
  return Constant(Tensor::FromVector(DType::kFloat32, std::move(shape), values));
}

ValueId ModelDraft::Numbers(DType dtype, Shape shape, double low, double high) {
  reprise::Numbers numbers = {.dtype = dtype, .shape = std::move(shape)};
  numbers.values.resize(NumElements(numbers.shape));
  for (double& value : numbers.values) {
    value = low + (high - low) * static_cast<double>(chance_.Below(1001)) / 1000;
    if (!IsFloating(dtype)) value = std::rint(value);
  }
  return Constant(ToTensor(numbers));
}

bool ModelDraft::Leads(const Tensor& tensor) const {
  if (tensor.num_elements() > kMostElementsOfValue) return false;
  if (!IsFloating(tensor.dtype()) || wild_) return true;
  return absl::c_all_of(tensor.ToDoubles(), [](double x) { return std::fabs(x) < kLargest; });
}

std::vector<ValueId> ModelDraft::AddNode(absl::string_view op, std::vector<ValueId> inputs,
                                         Attributes attributes, size_t outputs) {
  while (!inputs.empty() && inputs.back() == kNone) inputs.pop_back();
  Node node;
  node.op = std::string(op);
  node.attributes = attributes;
  node.inputs = inputs;
  node.outputs.assign(outputs, 0);
  std::vector<std::vector<std::optional<Tensor>>> at(
      outputs, std::vector<std::optional<Tensor>>(trials_.size()));
  const OpRow* row = FindOp(op);
  REPRISE_CHECK(row != nullptr);
  bool data = row->Has(kNoFold);
  for (const ValueId id : inputs) {
    data = data || (id != kNone && known_[id].data && !row->Has(kShapeOnly));
  }
  for (size_t t = 0; t < trials_.size(); ++t) {
    if (!counts_[t]) continue;
    std::vector<std::optional<Tensor>> operands;
    for (const ValueId id : inputs) {
      if (id != kNone && !known_[id].at[t].has_value()) return {};
      operands.push_back(id == kNone ? std::nullopt : known_[id].at[t]);
    }
    auto results = Evaluate(node, operands, kMostBytes);
    if (!results.ok()) return {};
    for (size_t i = 0; i < outputs; ++i) {
      if (!Leads((*results)[i])) return {};
      at[i][t] = std::move((*results)[i]);
    }
  }
  const NodeId id = graph_.AddNode(op, std::move(inputs), std::move(attributes), outputs);
  std::vector<ValueId> results = graph_.node(id).outputs;
  for (size_t i = 0; i < outputs; ++i) Keep(results[i], std::move(at[i]), data, true);
  return results;
}

ValueId ModelDraft::Add(absl::string_view op, std::vector<ValueId> inputs, Attributes attributes,
                        size_t outputs) {
  const auto results = AddNode(op, std::move(inputs), std::move(attributes), outputs);
  return results.empty() ? kNone : results[0];
}

ValueId ModelDraft::AddIf(ValueId condition, ValueId first, ValueId second) {
  if (first == kNone || second == kNone) return kNone;
  if (TypeOf(first) != TypeOf(second)) return kNone;
  std::vector<std::optional<Tensor>> at(trials_.size());
  for (size_t t = 0; t < trials_.size(); ++t) {
    if (!counts_[t]) continue;
    if (!known_[condition].at[t].has_value()) return kNone;
    const bool taken = known_[condition].at[t]->ToDoubles()[0] != 0;
    at[t] = known_[taken ? first : second].at[t];
    if (!at[t].has_value()) return kNone;
  }
  const bool data = known_[condition].data || known_[first].data || known_[second].data;
  const NodeId id = graph_.AddNode("If", {condition, first, second});
  return Keep(graph_.node(id).outputs[0], std::move(at), data, true);
}

ValueId ModelDraft::AddLoop(ValueId trips, ValueId start,
                            const std::function<ValueId(ValueId, ValueId)>& body) {
  const std::vector<int64_t> number = {loops_++};
  const NodeId step = graph_.AddNode("reprise.LoopStep", {}, {{"loop", number}}, 3);
  const std::vector<ValueId> given = graph_.node(step).outputs;
  const size_t visible = pool_.size();
  const std::vector<std::optional<Tensor>> numbers(trials_.size(), Tensor::Int64Scalar(0));
  Keep(given[0], numbers, /*data=*/false, false);
  const Tensor yes = Tensor::FromVector<uint8_t>(DType::kBool, {}, {1});
  Keep(given[1], std::vector<std::optional<Tensor>>(trials_.size(), yes), false, false);
  const bool data = known_[start].data;
  const std::vector<std::optional<Tensor>> begin = known_[start].at;
  Keep(given[2], begin, data, false);
  const ValueId next = body(given[2], given[0]);
  pool_.resize(visible);
  if (next == kNone || TypeOf(next) != TypeOf(start)) return kNone;
  std::vector<std::optional<Tensor>> at = known_[next].at;
  for (size_t t = 0; t < trials_.size(); ++t) {
    if (!counts_[t] || !known_[trips].at[t].has_value()) continue;
    if (!at[t].has_value() || at[t]->shape() != known_[start].at[t]->shape()) return kNone;
    // Further turns keep its shape; later nodes are drawn on the result of the first turn.
    if (known_[trips].at[t]->ToDoubles()[0] < 1) at[t] = known_[start].at[t];
  }
  // The condition that a turn ends with: it goes on.
  const ValueId on = Constant(yes);
  const NodeId loop = graph_.AddNode("Loop", {trips, kNone, start, on, next},
                                     {{"loop", number}, {"carried", std::vector<int64_t>{1}}});
  return Keep(graph_.node(loop).outputs[0], std::move(at), data || known_[next].data, true);
}

ValueId ModelDraft::Within(ValueId condition, bool taken, const std::function<ValueId()>& draw) {
  const std::vector<bool> before = counts_;
  const size_t visible = pool_.size();
  for (size_t t = 0; t < trials_.size(); ++t) {
    const auto& tensor = known_[condition].at[t];
    if (!tensor.has_value() || (tensor->ToDoubles()[0] != 0) != taken) counts_[t] = false;
  }
  if (absl::c_none_of(counts_, [](bool counts) { return counts; })) counts_ = before;
  const ValueId result = draw();
  counts_ = before;
  pool_.resize(visible);
  return result;
}

ValueId ModelDraft::WithLowNumbers(const std::function<ValueId()>& draw) {
  const bool before = wild_;
  const size_t visible = pool_.size();
  wild_ = true;
  const ValueId result = draw();
  wild_ = before;
  pool_.resize(visible);
  if (result != kNone) pool_.push_back(result);
  return result;
}

ValueId ModelDraft::Pick(const Filter& filter) {
  // A tour back from the newest, which is left at each that passes with some likelihood.
  ValueId last = kNone;
  for (auto it = pool_.rbegin(); it != pool_.rend(); ++it) {
    bool known = true;
    for (size_t t = 0; t < trials_.size(); ++t) {
      known = known && (!counts_[t] || known_[*it].at[t].has_value());
    }
    if (!known || !filter(*it)) continue;
    last = *it;
    if (!chance_.OneIn(3)) return last;
  }
  return last;
}

ValueId ModelDraft::PickFloat(int64_t low, int64_t high) {
  return Pick([&](ValueId id) {
    const int64_t rank = RankOf(id);
    return TypeOf(id) == DType::kFloat32 && rank >= low && rank <= high;
  });
}

ValueId ModelDraft::PickInteger() {
  return Pick([&](ValueId id) { return TypeOf(id) == DType::kInt64; });
}

ValueId ModelDraft::PickBool() {
  const ValueId id = Pick([&](ValueId v) { return TypeOf(v) == DType::kBool; });
  if (id != kNone && !chance_.OneIn(3)) return id;
  const ValueId x = PickFloat();
  return x == kNone ? id : Add("Greater", {x, Float(chance_.Number(0.5, true))});
}

std::vector<ValueId> ModelDraft::Loose() const {
  std::vector<ValueId> loose;
  for (const ValueId id : pool_) {
    const Value& value = graph_.value(id);
    if (value.kind == Value::Kind::kResult && value.users.empty()) loose.push_back(id);
  }
  return loose;
}

std::vector<const Tensor*> ModelDraft::TensorsOf(ValueId id) const {
  std::vector<const Tensor*> tensors;
  if (id == kNone) return tensors;
  for (size_t t = 0; t < trials_.size(); ++t) {
    if (counts_[t] && known_[id].at[t].has_value()) tensors.push_back(&*known_[id].at[t]);
  }
  return tensors;
}

int64_t ModelDraft::RankOf(ValueId id) const {
  int64_t rank = -1;
  for (const Tensor* tensor : TensorsOf(id)) {
    const auto here = static_cast<int64_t>(tensor->shape().size());
    if (rank >= 0 && rank != here) return -1;
    rank = here;
  }
  return rank;
}

std::vector<int64_t> ModelDraft::SizesOf(ValueId id, int64_t dim) const {
  std::vector<int64_t> sizes;
  for (const Tensor* tensor : TensorsOf(id)) sizes.push_back(tensor->shape()[dim]);
  return sizes;
}

int64_t ModelDraft::FixedSize(ValueId id, int64_t dim) const {
  const std::vector<int64_t> sizes = SizesOf(id, dim);
  if (sizes.empty()) return -1;
  return absl::c_all_of(sizes, [&](int64_t size) { return size == sizes[0]; }) ? sizes[0] : -1;
}

int64_t ModelDraft::SmallestSize(ValueId id, int64_t dim) const {
  return absl::c_accumulate(SizesOf(id, dim), std::numeric_limits<int64_t>::max(),
                            [](int64_t a, int64_t b) { return std::min(a, b); });
}

std::vector<int64_t> ModelDraft::DimsWhere(ValueId id, bool fixed) const {
  std::vector<int64_t> dims;
  for (int64_t dim = 0; dim < RankOf(id); ++dim) {
    if ((FixedSize(id, dim) >= 0) == fixed) dims.push_back(dim);
  }
  return dims;
}

std::pair<double, double> ModelDraft::RangeOf(ValueId id) const {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const Tensor* tensor : TensorsOf(id)) {
    for (const double x : tensor->ToDoubles()) {
      low = std::min(low, x);
      high = std::max(high, x);
    }
  }
  return {low, high};
}

}  // namespace reprise::fuzz
