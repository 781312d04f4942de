#include "tests/fuzz/obligations/row_draft.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"

namespace reprise::obligations {
namespace {

// Sizes of the axes at which a draft knows its values.
std::vector<Sizes> Trials() {
  return {{{kBatch, 2}, {kAxis, 5}, {kOther, 3}}, {{kBatch, 3}, {kAxis, 7}, {kOther, 4}}};
}

constexpr absl::Span<const RowCase> (*kTables[])() = {ElementwiseCases, ReduceCases, MovementCases,
                                                      ProductCases,     LayerCases,  ModelCases};

constexpr int kTries = 40;  // drafts until one takes all its nodes

Sizes DrawSizes(Chance& chance) {
  const auto length = [&] {
    if (chance.OneIn(24)) return int64_t{0};
    return chance.OneIn(3) ? chance.Between(1, 2) : chance.Between(1, 11);
  };
  return {
      {kBatch, chance.OneIn(3) ? chance.Between(2, 3) : 1}, {kAxis, length()}, {kOther, length()}};
}

fuzz::TestCase DrawBy(const std::vector<RowCase>& cases, absl::string_view op, uint64_t seed,
                      bool bare) {
  Chance chance(seed);
  fuzz::TestCase test;
  for (int attempt = 0; attempt < kTries && !cases.empty(); ++attempt) {
    RowDraft draft(chance);
    const ValueId result = chance.Of(cases).draw(draft, op);
    if (result == kNone) continue;
    draft.Finish(result, bare);
    Graph graph = draft.graph();
    if (!graph.Compact()) continue;
    test.graph = std::move(graph);
    break;
  }
  for (int64_t i = chance.Between(1, 4); i > 0; --i) test.requests.push_back(DrawSizes(chance));
  test.contents = chance.Seed();
  test.packed = chance.OneIn(3);
  test.wild = chance.OneIn(3);
  return test;
}

}  // namespace

RowDraft::RowDraft(Chance& chance) : ModelDraft(chance, Trials(), {}) {}

Dims RowDraft::DrawDims(std::vector<int64_t> wanted) {
  Dims dims;
  std::vector<size_t> free;
  for (const int64_t size : wanted) {
    if (size == kAny) free.push_back(dims.size());
    dims.push_back({.size = size == kAny ? chance().Between(1, 4) : size});
  }
  const auto put = [&](const char* symbol, size_t at) {
    dims[free[at]] = {.symbol = symbol};
    free.erase(free.begin() + static_cast<int64_t>(at));
  };
  const auto any = [&] {
    return static_cast<size_t>(chance().Below(static_cast<int64_t>(free.size())));
  };
  const bool first = !free.empty() && free[0] == 0;
  if (!free.empty() && (first ? !chance().OneIn(4) : chance().OneIn(12))) {
    put(kBatch, first && !chance().OneIn(10) ? 0 : any());
  }
  if (!free.empty() && !chance().OneIn(12)) put(kAxis, any());
  if (!free.empty() && chance().OneIn(4)) put(kOther, any());
  if (!free.empty() && chance().OneIn(24)) put(kAxis, any());
  return dims;
}

Dims RowDraft::AnyDims(int64_t low, int64_t high) {
  return DrawDims(std::vector<int64_t>(chance().Between(low, high), kAny));
}

Dims RowDraft::Beside(const Dims& dims) {
  Dims beside;
  const int64_t rank = chance().OneIn(2) ? static_cast<int64_t>(dims.size())
                                         : chance().Between(0, static_cast<int64_t>(dims.size()));
  for (size_t i = dims.size() - rank; i < dims.size(); ++i) {
    beside.push_back(chance().OneIn(3) ? SizeDim(1) : dims[i]);
  }
  return beside;
}

DType RowDraft::FloatType() {
  return chance().Of({DType::kFloat32, DType::kFloat32, DType::kFloat32, DType::kFloat64,
                      DType::kFloat16, DType::kBFloat16});
}

DType RowDraft::IntegerType() {
  return chance().Of({DType::kInt64, DType::kInt64, DType::kInt32, DType::kInt32, DType::kInt8,
                      DType::kUInt8, DType::kInt16, DType::kUInt16, DType::kUInt32,
                      DType::kUInt64});
}

DType RowDraft::NumberType() { return chance().OneIn(3) ? IntegerType() : FloatType(); }

DType RowDraft::AnyType() { return chance().OneIn(6) ? DType::kBool : NumberType(); }

ValueId RowDraft::Input(absl::string_view kind, DType dtype, Dims dims) {
  const std::string name = absl::StrCat(kind, ".", inputs_++);
  std::vector<Tensor> contents;
  for (const Sizes& sizes : trials()) {
    contents.push_back(OrdinaryContents(name, dtype, dims, sizes, chance()));
  }
  return ModelDraft::Input(name, dtype, std::move(dims), std::move(contents));
}

ValueId RowDraft::Bounded(absl::string_view kind, const Dim& bound, DType dtype, Dims dims) {
  return Input(
      absl::StrCat(kind, ".", bound.is_constant() ? absl::StrCat(bound.size) : bound.symbol), dtype,
      std::move(dims));
}

ValueId RowDraft::Step(ValueId x) {
  const DType dtype = TypeOf(x);
  const auto number = [&](double value) { return Numbers(dtype, {}, value, value); };
  switch (chance().Below(9)) {
    case 0:
      return Add("Neg", {x});
    case 1:
      return Add("Add", {x, number(chance().Of({1.0, -0.5, 0.25}))});
    case 2:
      return Add("Mul", {x, number(chance().Of({2.0, -1.0, 0.5}))});
    case 3:
      return Add("Exp", {x});
    case 4:
      return Add("Sigmoid", {x});
    case 5:  // of nothing these are infinite
      return Add("Reciprocal", {x});
    case 6:
      return Add("Log", {Add("Abs", {x})});
    case 7:
      return Add("Cos", {x});
    default:
      return Add("Relu", {x});
  }
}

ValueId RowDraft::Data(DType dtype, Dims dims, absl::string_view kind) {
  const ValueId x = Input(kind, dtype, std::move(dims));
  if (!IsFloating(dtype) || kind != "x" || chance().OneIn(2)) return x;
  const ValueId step = Step(x);
  return step == kNone ? x : step;
}

ValueId RowDraft::Fixed(DType dtype, Shape shape, double low, double high) {
  std::vector<double> values(NumElements(shape));
  if (!IsFloating(dtype)) return Numbers(dtype, std::move(shape), low, high);
  // Multiples of 1/4: sums and products of them are exact.
  reprise::Numbers numbers = {.dtype = dtype, .shape = std::move(shape)};
  numbers.values.resize(values.size());
  for (double& value : numbers.values) {
    value =
        low + static_cast<double>(chance().Below(static_cast<int64_t>((high - low) * 4) + 1)) / 4;
  }
  return Constant(ToTensor(numbers));
}

ValueId RowDraft::DataOrFixed(DType dtype, Dims dims, absl::string_view kind) {
  const bool fixed =
      std::all_of(dims.begin(), dims.end(), [](const Dim& dim) { return dim.is_constant(); });
  if (!fixed || chance().OneIn(4)) return Data(dtype, std::move(dims), kind);
  return Constant(OrdinaryContents(absl::StrCat(kind, ".", 0), dtype, dims, {}, chance()));
}

ValueId RowDraft::After(ValueId x) {
  const int64_t rank = RankOf(x);
  if (rank < 1) return kNone;
  const int64_t dim = chance().Below(rank);
  switch (chance().Below(4)) {
    case 0:
    case 1:
      return ReducedAfter(x, dim);
    case 2:
      return MovedAfter(x, dim);
    default:
      return MixedAfter(x, dim);
  }
}

ValueId RowDraft::ReducedAfter(ValueId x, int64_t dim) {
  const std::string op =
      chance().Of({"ReduceSum", "ReduceSum", "ReduceMean", "ReduceMean", "ReduceMax", "ReduceMin",
                   "ReduceL2", "ReduceLogSumExp", "ReduceProd"});
  std::vector<int64_t> axes = {dim};
  if (chance().OneIn(4)) axes = {0, RankOf(x) - 1};
  return Add(op, {x, Ints(axes)}, {{"keepdims", chance().Below(2)}});
}

ValueId RowDraft::MovedAfter(ValueId x, int64_t dim) {
  const int64_t rank = RankOf(x);
  switch (chance().Below(9)) {
    case 0: {
      std::vector<int64_t> order(rank);
      std::iota(order.begin(), order.end(), 0);
      std::swap(order[dim], order[chance().Below(rank)]);
      return Add("Transpose", {x}, {{"perm", order}});
    }
    case 1:
      return Add("Slice", {x, Ints({chance().Below(2)}),
                           Ints({chance().Of({int64_t{2}, INT64_MAX})}), Ints({dim})});
    case 2:
      return Add("Slice", {x, Ints({-1}), Ints({INT64_MIN}), Ints({dim}), Ints({-1})});
    case 3:
      return Add("Gather", {x, Int(chance().Of({0, -1}))}, {{"axis", dim}});
    case 4:
      return Add("Concat", {x, chance().OneIn(2) ? Add("Neg", {x}) : x}, {{"axis", dim}});
    case 5:
      return Add("Reshape", {x, Ints({-1})});
    case 6:
      return Add("Flatten", {x}, {{"axis", chance().Between(0, rank)}});
    case 7:
      return Add("Unsqueeze", {x, Ints({dim})});
    default:
      return Add("Pad", {x, Ints({chance().Below(2), chance().Below(2)}), kNone, Ints({dim})});
  }
}

ValueId RowDraft::MixedAfter(ValueId x, int64_t dim) {
  const int64_t rank = RankOf(x), last = FixedSize(x, rank - 1);
  const int64_t channels = rank == 3 ? FixedSize(x, 1) : 0;
  const DType dtype = TypeOf(x);
  const Attributes window = {{"pads", std::vector<int64_t>{1, 1}},
                             {"kernel_shape", std::vector<int64_t>{3}},
                             {"strides", std::vector<int64_t>{chance().Between(1, 2)}}};
  switch (chance().Below(7)) {
    case 0:
      return Add("Softmax", {x}, {{"axis", dim}});
    case 1:
      return Add("CumSum", {x, Int(dim)}, {{"reverse", chance().Below(2)}});
    case 2:
      return last > 0 ? Add("MatMul", {x, Fixed(dtype, {last, 2})}) : kNone;
    case 3: {
      if (rank < 2) return kNone;
      std::vector<int64_t> order(rank);
      std::iota(order.begin(), order.end(), 0);
      std::swap(order[rank - 1], order[rank - 2]);
      const ValueId turned = Add("Transpose", {x}, {{"perm", order}});
      if (turned == kNone) return kNone;
      return chance().OneIn(2) ? Add("MatMul", {x, turned}) : Add("MatMul", {turned, x});
    }
    case 4:
      return channels > 0 ? Add("Conv", {x, Fixed(dtype, {2, channels, 3})}, window) : kNone;
    case 5:
      return rank == 3 ? Add(std::string(chance().Of({"MaxPool", "AveragePool"})), {x}, window)
                       : kNone;
    default:
      return Add("LayerNormalization", {x, Numbers(dtype, {}, 1, 1)}, {{"axis", dim}});
  }
}

void RowDraft::Finish(ValueId result, bool bare) {
  ValueId last = kNone;
  if (!bare && IsFloating(TypeOf(result)) && !chance().OneIn(3)) last = After(result);
  if (last != kNone && chance().OneIn(3)) {
    const ValueId more = After(last);
    if (more != kNone) last = more;
  }
  graph().AddOutput(last == kNone ? result : last);
  const std::vector<ValueId> others = graph().node(graph().value(result).producer).outputs;
  for (const ValueId other : others) {
    if (other != kNone && other != result) graph().AddOutput(other);
  }
  if (last != kNone && chance().OneIn(3)) graph().AddOutput(result);
}

std::vector<RowCase> CasesOf(absl::string_view op) {
  std::vector<RowCase> cases;
  for (const auto table : kTables) {
    for (const RowCase& one : table()) {
      if (one.op == op) cases.push_back(one);
    }
  }
  return cases;
}

std::set<std::string> OpsOfCases() {
  std::set<std::string> ops;
  for (const auto table : kTables) {
    for (const RowCase& one : table()) ops.emplace(one.op);
  }
  return ops;
}

fuzz::TestCase DrawRow(absl::string_view op, uint64_t seed) {
  return DrawBy(CasesOf(op), op, seed, /*bare=*/false);
}

fuzz::TestCase DrawBareRow(const std::vector<RowCase>& cases, absl::string_view op, uint64_t seed) {
  return DrawBy(cases, op, seed, /*bare=*/true);
}

}  // namespace reprise::obligations
