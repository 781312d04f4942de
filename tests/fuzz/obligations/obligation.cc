#include "tests/fuzz/obligations/obligation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/engine/graph_model.h"
#include "runtime/engine/load/exact_runner.h"
#include "runtime/engine/replay/gather.h"
#include "runtime/graph/elements.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/live/live_form.h"
#include "tests/fuzz/random_models/answers.h"
#include "tests/fuzz/random_models/evaluation.h"

namespace reprise::obligations {
namespace {

// Share of the largest element of an answer: between forms that sum up in another order, and for
// fast kernels, which are held to their own exact answer where that is not near enough.
constexpr double kBound = 1e-5, kHalfBound = 2e-2;
constexpr int kDisturbedRuns = 24;

double BoundOf(const Graph& graph) {
  for (ValueId id = 0; id < static_cast<ValueId>(graph.num_values()); ++id) {
    const DType dtype = graph.value(id).dtype;
    if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) return kHalfBound;
  }
  return kBound;
}

// Copies `part` to `offset` of `whole`, which has its dtype.
void PutAt(const Tensor& part, const Shape& offset, Tensor& whole) {
  const Shape zeros(offset.size(), 0);
  whole = Tensor::Make(whole.dtype(), whole.shape(), [&](void* data) {
    if (whole.bytes() > 0) std::memcpy(data, whole.data(), whole.bytes());
    CopyBlock({.shape = part.shape(),
               .from_shape = part.shape(),
               .from_offset = zeros,
               .to_shape = whole.shape(),
               .to_offset = offset,
               .element_bytes = DTypeSize(part.dtype())},
              part.data(), data);
  });
}

// Returns the part of `whole` at `offset`, as large as `shape`; all of it where that is no part.
Tensor PartAt(const Tensor& whole, const Shape& offset, const Shape& shape) {
  if (whole.shape().size() != shape.size()) return whole;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (offset[d] + shape[d] > whole.shape()[d]) return whole;
  }
  const size_t element = DTypeSize(whole.dtype());
  return Tensor::Make(whole.dtype(), shape, [&](void* data) {
    const Shape zeros(shape.size(), 0);
    CopyBlock({.shape = shape,
               .from_shape = whole.shape(),
               .from_offset = offset,
               .to_shape = shape,
               .to_offset = zeros,
               .element_bytes = element},
              whole.data(), data);
  });
}

std::set<std::string> SymbolsOf(const Graph& graph) {
  std::set<std::string> symbols;
  for (const ValueId id : graph.inputs()) {
    for (const Dim& dim : graph.value(id).dims) {
      if (!dim.is_constant()) symbols.insert(dim.symbol);
    }
  }
  return symbols;
}

bool AllFinite(const std::vector<Tensor>& tensors) {
  return absl::c_all_of(tensors, [](const Tensor& tensor) {
    return AllElements(tensor, [](double value) { return std::isfinite(value); });
  });
}

bool Holds(const Graph& graph, absl::string_view op) {
  return absl::c_any_of(graph.NodeIds(), [&](NodeId id) { return graph.node(id).op == op; });
}

// One bucket an axis: what the requests need together, and a few more.
std::map<std::string, std::vector<int64_t>> BucketsOf(const fuzz::TestCase& test) {
  std::map<std::string, std::vector<int64_t>> buckets;
  for (const std::string& symbol : SymbolsOf(test.graph)) {
    int64_t size = 0;
    for (const Sizes& sizes : test.requests) {
      size = symbol == kBatch ? size + sizes.at(symbol) : std::max(size, sizes.at(symbol));
    }
    buckets[symbol] = {std::max<int64_t>(size + static_cast<int64_t>(test.contents % 4), 1)};
  }
  return buckets;
}

}  // namespace

struct Obligations::Asked {
  Sizes sizes;
  std::vector<Tensor> contents;  // as graph.inputs()
  absl::StatusOr<std::vector<Tensor>> answer = absl::UnknownError("not computed");
  bool wild = false;
  Request request;
};

class Obligations::Trial {
 public:
  Trial(Obligations& all, const fuzz::TestCase& test, const Model& model, Padding padding,
        Findings& findings)
      : all_(all),
        test_(test),
        model_(model),
        padding_(padding),
        findings_(findings),
        graph_(*model.program().graph),
        chance_(test.contents),
        bound_(BoundOf(test.graph)),
        runner_(graph_, model.fingerprint(), Inputs(), model.owner()->parameters(), all.device_,
                all.clock_, *all.stream_, recipes_) {
    for (const Sizes& sizes : test.requests) Ask(sizes);
  }

  void Run() {
    if (asked_.empty()) {
      findings_.refused = true;
      return;
    }
    std::vector<size_t> waiting(asked_.size());
    for (size_t i = 0; i < waiting.size(); ++i) waiting[i] = i;
    while (!waiting.empty() && findings_.wrong.empty()) {
      BatchPlan plan(model_);
      std::vector<size_t> company, rest;
      for (const size_t i : waiting) {
        const auto shape = MeasureOf(i);
        if (!shape.has_value()) continue;
        (plan.TryAdd(*shape) ? company : rest).push_back(i);
      }
      if (!company.empty()) Run(plan, company);
      waiting = std::move(rest);
    }
  }

 private:
  // The recipe's inputs, in the graph's order.
  const std::vector<ModelIo>& Inputs() {
    for (const ValueId id : graph_.inputs()) {
      const Value& value = graph_.value(id);
      inputs_.push_back({.name = value.name, .dtype = value.dtype, .dims = value.dims});
    }
    return inputs_;
  }

  void Ask(const Sizes& sizes) {
    auto asked = std::make_unique<Asked>();
    asked->sizes = sizes;
    for (const ValueId id : test_.graph.inputs()) {
      const Value& value = test_.graph.value(id);
      asked->contents.push_back(
          OrdinaryContents(value.name, value.dtype, value.dims, sizes, chance_));
    }
    asked->wild = test_.wild && test_.requests.size() > 1 && chance_.OneIn(3);
    if (asked->wild) {
      for (Tensor& tensor : asked->contents) MakeWild(tensor, chance_);
    }
    asked->answer = fuzz::Evaluation(test_.graph, asked->contents).Outputs();
    if (!asked->answer.ok()) return;  // Refused alone.
    for (const ModelIo& input : model_.inputs()) {
      const Tensor& tensor = ContentsNamed(*asked, input.name);
      asked->request.inputs.push_back({tensor.shape(), tensor.data()});
    }
    asked_.push_back(std::move(asked));
  }

  const Tensor& ContentsNamed(const Asked& asked, const std::string& name) const {
    const std::vector<ValueId>& inputs = test_.graph.inputs();
    const auto at =
        absl::c_find_if(inputs, [&](ValueId id) { return test_.graph.value(id).name == name; });
    return asked.contents[at - inputs.begin()];
  }

  // Returns nothing for a request that the engine runs exact.
  std::optional<RequestShape> MeasureOf(size_t i) {
    const Request& request = asked_[i]->request;
    auto shape = model_.Measure(request);
    if (shape.ok() && shape->in_new_slice) {  // It is looked at while one runs exact.
      shape->on_miss = OnMiss::kEager;
      BatchPlan plan(model_);
      if (plan.TryAdd(*shape)) all_.engine_.Run(plan, {&request}, *all_.stream_);
      shape = model_.Measure(request);
    }
    if (!shape.ok() || shape->exact || shape->splits_axes()) return std::nullopt;
    if (shape->rows > model_.MaxRows(*shape)) return std::nullopt;
    return *std::move(shape);
  }

  void Run(const BatchPlan& plan, const std::vector<size_t>& company) {
    if (plan.packed()) {
      findings_.packed = true;
      return AskEngine(plan, company);
    }
    const std::vector<int64_t>& sizes = plan.target().sizes;
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      const int64_t own = model_.axes()[axis].is_batch ? plan.rows() : plan.sizes()[axis];
      findings_.padded = findings_.padded || sizes[axis] > own || company.size() > 1;
      for (const size_t i : company) {
        const std::string& symbol = model_.axes()[axis].symbol;
        findings_.padded = findings_.padded || sizes[axis] > asked_[i]->sizes.at(symbol);
      }
    }
    if (!findings_.padded) return;
    Sizes recipe;
    for (size_t axis = 0; axis < sizes.size(); ++axis)
      recipe[model_.axes()[axis].symbol] = sizes[axis];
    const std::vector<Tensor> inputs = PaddedInputs(company, recipe);
    Compare("reference", company, fuzz::Evaluation(graph_, inputs).Outputs());
    if (!findings_.wrong.empty()) return;
    Compare("fast", company, runner_.Run(inputs));
    if (findings_.wrong.empty() && chance_.OneIn(4)) AskEngine(plan, company);
  }

  // Requests lie one after another along the batch, which a square input has in two dims.
  bool IsBatch(const Dim& dim) const {
    return model_.batch_axis() >= 0 && dim.symbol == model_.batch_symbol();
  }

  // The requests of `company` in the inputs of a recipe of these sizes, padded as badly as may be.
  std::vector<Tensor> PaddedInputs(const std::vector<size_t>& company, const Sizes& recipe) {
    std::vector<Tensor> padded;
    for (const ModelIo& input : inputs_) {
      if (absl::StartsWith(input.name, kLiveInput)) {
        padded.push_back(LiveInput(input, company, recipe));
        continue;
      }
      Tensor whole =
          HostileContents(input.name, input.dtype, input.dims, recipe, padding_, chance_);
      int64_t row = 0;
      for (const size_t i : company) {
        const Tensor& own = ContentsNamed(*asked_[i], input.name);
        Shape offset(own.shape().size(), 0);
        for (size_t d = 0; d < offset.size(); ++d) {
          if (IsBatch(input.dims[d])) offset[d] = row;
        }
        if (IsGuard(input)) PutZeros(input, offset, own.shape(), whole);
        PutAt(own, offset, whole);
        row += RowsOf(i);
      }
      padded.push_back(std::move(whole));
    }
    return padded;
  }

  // The padding of an input along an axis that fills it holds zeros; rows of no request hold
  // anything.
  bool IsGuard(const ModelIo& input) const {
    return absl::c_any_of(model_.axes(), [&](const ModelAxis& axis) {
      return absl::c_linear_search(axis.certificate.guards, input.name);
    });
  }

  void PutZeros(const ModelIo& input, const Shape& offset, const Shape& own, Tensor& whole) const {
    Shape box = whole.shape();
    for (size_t d = 0; d < box.size(); ++d) {
      if (IsBatch(input.dims[d])) box[d] = own[d];
    }
    const Tensor zeros = Tensor::Make(input.dtype, box, [&](void* data) {
      std::memset(data, 0, NumElements(box) * DTypeSize(input.dtype));
    });
    PutAt(zeros, offset, whole);
  }

  int64_t RowsOf(size_t i) const {
    return model_.batch_axis() < 0 ? 1 : asked_[i]->sizes.at(model_.batch_symbol());
  }

  // Ones for the places of each row; none for rows of no request.
  Tensor LiveInput(const ModelIo& input, const std::vector<size_t>& company,
                   const Sizes& recipe) const {
    const std::string symbol = input.name.substr(std::string(kLiveInput).size());
    const Shape shape = ShapeAt(input.dims, recipe);
    std::vector<uint8_t> ones(NumElements(shape), 0);
    int64_t row = 0;
    for (const size_t i : company) {
      for (int64_t r = RowsOf(i); r > 0 && row < shape[0]; --r, ++row) {
        std::fill_n(ones.begin() + row * shape[1], asked_[i]->sizes.at(symbol), 1);
      }
    }
    return Tensor::FromVector(DType::kBool, shape, ones);
  }

  // `form`: the kernels that made it.
  void Compare(absl::string_view form, const std::vector<size_t>& company,
               const absl::StatusOr<std::vector<Tensor>>& outputs) {
    if (!outputs.ok()) return;  // An answer that is computed exact then.
    int64_t row = 0;
    for (const size_t i : company) {
      std::vector<Tensor> parts;
      for (size_t k = 0; k < outputs->size(); ++k) {
        const Shape& shape = (*asked_[i]->answer)[k].shape();
        Shape offset(shape.size(), 0);
        for (size_t d = 0; d < shape.size(); ++d) {
          if (model_.MovesWithBatch(k, d)) offset[d] = row;
        }
        parts.push_back(PartAt((*outputs)[k], offset, shape));
      }
      Judge(form, i, parts);
      if (!findings_.wrong.empty()) return;
      row += RowsOf(i);
    }
  }

  void AskEngine(const BatchPlan& plan, const std::vector<size_t>& company) {
    std::vector<const Request*> requests;
    for (const size_t i : company) requests.push_back(&asked_[i]->request);
    const std::vector<Response> responses = all_.engine_.Run(plan, requests, *all_.stream_);
    const absl::string_view form = plan.packed() ? "packed" : "engine";
    for (size_t k = 0; k < company.size() && findings_.wrong.empty(); ++k) {
      if (responses[k].status.ok()) {
        Judge(form, company[k], fuzz::TensorsOf(test_.graph, responses[k]));
      } else {
        findings_.wrong =
            absl::StrCat(form, ", request ", company[k], ": ", responses[k].status.ToString());
      }
    }
  }

  // Compares the answer to request `i` by the kernels of `form` with the answer to it alone.
  // Roundings are no difference.
  void Judge(absl::string_view form, size_t i, const std::vector<Tensor>& outputs) {
    const Asked& asked = *asked_[i];
    const bool fast = form != "reference";
    if (asked.wild) return;  // There for the others.
    findings_.answers += static_cast<int64_t>(outputs.size());
    fuzz::Tolerance tolerance = {.of_largest = bound_};
    auto difference = fuzz::FindDifference(*asked.answer, outputs, tolerance);
    // Halves are computed in float32, which overflows later (docs/models.md).
    const bool overflows = bound_ == kHalfBound && !AllFinite(*asked.answer);
    if (difference.has_value() && (fast || overflows)) {
      const std::vector<Tensor> inputs = InputsAlone(i);
      const auto exact = fast ? runner_.Run(inputs) : fuzz::Evaluation(graph_, inputs).Outputs();
      if (exact.ok()) difference = fuzz::FindDifference(*exact, outputs, tolerance);
    }
    if (!difference.has_value()) return;
    const fuzz::Spread spread =
        fuzz::SpreadOf(test_.graph, asked.contents, *asked.answer, {.runs = kDisturbedRuns});
    tolerance.spread = &spread;
    difference = fuzz::FindDifference(*asked.answer, outputs, tolerance);
    if (!difference.has_value()) return;
    findings_.wrong = absl::StrCat(form, ", request ", i, ", ", difference->words);
  }

  // Returns the inputs of the form that is padded, with a request alone.
  std::vector<Tensor> InputsAlone(size_t i) {
    std::vector<Tensor> inputs;
    for (const ModelIo& input : inputs_) {
      inputs.push_back(absl::StartsWith(input.name, kLiveInput)
                           ? LiveInput(input, {i}, asked_[i]->sizes)
                           : ContentsNamed(*asked_[i], input.name));
    }
    return inputs;
  }

  Obligations& all_;
  const fuzz::TestCase& test_;
  const Model& model_;
  const Padding padding_;
  Findings& findings_;
  const Graph& graph_;
  Chance chance_;
  const double bound_;
  std::vector<ModelIo> inputs_;
  ExactRecipes recipes_;
  ExactRunner runner_;
  std::vector<std::unique_ptr<Asked>> asked_;
};

Obligations::Obligations(Isa isa)
    : cores_(1),
      device_(isa),
      engine_({.device = &device_,
               .clock = &clock_,
               .cores = &cores_,
               .cache_bytes = 16 << 20,
               .eager_cache_bytes = 1 << 20},
              observer_) {
  stream_ = *Stream::Create({.cores = &cores_, .max_threads = 1});
}

Obligations::~Obligations() = default;

Findings Obligations::Check(const fuzz::TestCase& test, absl::string_view op) {
  Findings findings;
  auto imported = ModelOfGraph(test.graph);
  REPRISE_CHECK(imported.ok());
  const auto model = engine_.Load({.id = {"row", 1},
                                   .buckets = BucketsOf(test),
                                   .packing = test.packed ? PackingMode::kAuto : PackingMode::kOff,
                                   .capture = CapturePolicy::kInline,
                                   .tune = TuneMode::kOff},
                                  *std::move(imported));
  if (!model.ok()) {
    findings.refused = true;
    findings.verdicts = std::string(model.status().message());
    if (absl::IsInternal(model.status())) findings.wrong = findings.verdicts;
    return findings;
  }
  for (size_t i = 0; i < (*model)->axes().size(); ++i) {
    const AxisCertificate certificate = (*model)->CertificateOf(i);
    absl::StrAppend(&findings.verdicts, i == 0 ? "" : "\n", (*model)->axes()[i].label,
                    certificate.certified ? ": padded, " : ": exact, ", certificate.reason);
  }
  if (!(*model)->packing_refusal().empty()) {
    absl::StrAppend(&findings.verdicts, "\nnot packed: ", (*model)->packing_refusal());
  }
  findings.has_op = Holds(test.graph, op) || Holds(*(*model)->program().graph, op) ||
                    ((*model)->packing() != nullptr && Holds((*model)->packing()->graph(), op));
  if ((*model)->tail() != nullptr || (*model)->has_shape_inputs()) return findings;
  Trial(*this, test, **model, Padding::kLoud, findings).Run();
  if (findings.wrong.empty()) return findings;
  findings.loud = std::exchange(findings.wrong, "");
  Trial(*this, test, **model, Padding::kOrdinary, findings).Run();
  if (!findings.wrong.empty()) findings.loud.clear();
  return findings;
}

bool Obligations::SeesBlindPadding(const fuzz::TestCase& test) {
  Chance chance(test.contents);
  const Sizes& own = test.requests[0];
  Sizes padded = own;
  for (auto& [symbol, size] : padded) size += chance.Between(0, 3);
  std::vector<Tensor> alone, whole;
  for (const ValueId id : test.graph.inputs()) {
    const Value& value = test.graph.value(id);
    alone.push_back(OrdinaryContents(value.name, value.dtype, value.dims, own, chance));
    whole.push_back(
        HostileContents(value.name, value.dtype, value.dims, padded, Padding::kLoud, chance));
    PutAt(alone.back(), Shape(value.dims.size(), 0), whole.back());
  }
  const auto expected = fuzz::Evaluation(test.graph, alone).Outputs();
  const auto actual = fuzz::Evaluation(test.graph, whole).Outputs();
  if (!expected.ok() || !actual.ok()) return false;
  std::vector<Tensor> parts;
  for (size_t i = 0; i < expected->size(); ++i) {
    const Shape& shape = (*expected)[i].shape();
    parts.push_back(PartAt((*actual)[i], Shape(shape.size(), 0), shape));
  }
  return fuzz::FindDifference(*expected, parts, {.of_largest = BoundOf(test.graph)}).has_value();
}

}  // namespace reprise::obligations
