#include "tests/fuzz/random_models/trial.h"

#include <malloc.h>
#include <stdlib.h>

#include <ctime>
#include <filesystem>
#include <fstream>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "tests/fuzz/random_models/answers.h"
#include "tests/fuzz/random_models/evaluation.h"
#include "tests/fuzz/random_models/onnx_writer.h"
#include "tests/fuzz/random_models/signature.h"

namespace reprise::fuzz {
namespace {

// Runs with disturbed rounding: few, many, and those in which operands of ops that jump are off by
// the bound on the difference itself, which of two equally large elements is taken among them.
constexpr int kFewRuns = 4, kManyRuns = 24, kRunsAtSteps = 200;
constexpr double kBound = 1e-5;
constexpr int kRechecks = 3;       // draws of other contents
constexpr int kMustComeAgain = 2;  // out of these

std::string MakeFolder() {
  std::string made = (std::filesystem::temp_directory_path() / "reprise_fuzz_XXXXXX").string();
  REPRISE_CHECK(mkdtemp(made.data()) != nullptr);
  return made;
}

std::string SizesText(const Sizes& sizes) {
  std::string text = "{";
  for (const auto& [symbol, size] : sizes) {
    absl::StrAppend(&text, text.size() > 1 ? ", " : "", symbol, ": ", size);
  }
  return text + "}";
}

// Engines may keep more digits between two ops of 16-bit floats.
bool HoldsHalves(const Graph& graph) {
  for (ValueId id = 0; id < static_cast<ValueId>(graph.num_values()); ++id) {
    const DType dtype = graph.value(id).dtype;
    if (dtype == DType::kFloat16 || dtype == DType::kBFloat16) return true;
  }
  return false;
}

// Adds the time of the processor that `work` takes.
void AddTime(double& seconds, absl::FunctionRef<void()> work) {
  const std::clock_t began = std::clock();
  work();
  seconds += static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
}

// A request holds an index that does not fit its own sizes.
bool IsRangeError(const absl::Status& status) {
  return absl::IsInvalidArgument(status) &&
         (absl::StrContains(status.message(), "out of range [") ||
          absl::StrContains(status.message(), ", outside ["));
}

}  // namespace

const char* FaultName(Fault fault) {
  switch (fault) {
    case Fault::kNone:
      return "none";
    case Fault::kElement:
      return "element";
    case Fault::kShape:
      return "shape";
    case Fault::kStatus:
      return "status";
    case Fault::kCompiled:
      return "compiled";
    case Fault::kInternal:
      return "internal";
  }
  return "unknown";
}

struct Trials::Asked {
  Sizes sizes;
  std::vector<Tensor> contents;  // indexed as graph.inputs()
  Request request;               // indexed as Model::inputs()
  absl::StatusOr<std::vector<Tensor>> reference = absl::UnknownError("not computed");
  bool wild = false;               // a neighbour to the others: its own answer is hardly a number
  bool looked_up_nothing = false;  // an index of it chooses among nothing
};

class Trials::Round {
 public:
  Round(const TestCase& test, const Model& model, uint64_t seed) {
    Chance chance(seed);
    for (const Sizes& sizes : test.requests) {
      auto asked = std::make_unique<Asked>();
      asked->sizes = sizes;
      asked->contents = DrawContents(test.graph, sizes, chance);
      asked->wild = test.wild && chance.OneIn(2);
      for (Tensor& tensor : asked->contents) {
        if (asked->wild) tensor = MadeWild(tensor, chance);
      }
      for (const ModelIo& input : model.inputs()) {
        InputTensor& tensor = asked->request.inputs.emplace_back();
        for (size_t i = 0; i < asked->contents.size(); ++i) {
          if (test.graph.value(test.graph.inputs()[i]).name != input.name) continue;
          tensor = {asked->contents[i].shape(), asked->contents[i].data()};
        }
      }
      Evaluation evaluation(test.graph, asked->contents);
      asked->reference = evaluation.Outputs();
      asked->looked_up_nothing = evaluation.LookedUpNothing();
      asked_.push_back(std::move(asked));
    }
  }
  size_t size() const { return asked_.size(); }
  const Asked& operator[](size_t i) const { return *asked_[i]; }

 private:
  std::vector<std::unique_ptr<Asked>> asked_;
};

Trials::Trials()
    : folder_(MakeFolder()),
      cores_(1),
      engine_({.device = &device_, .clock = &clock_, .cores = &cores_}, observer_) {
  // A byte of an answer that no kernel has written is no number that it could be.
  mallopt(M_PERTURB, 0x01);
  stream_ = *Stream::Create({.cores = &cores_, .max_threads = 1});
}

Trials::~Trials() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

absl::StatusOr<std::shared_ptr<Model>> Trials::Load(const TestCase& test, const std::string& bytes,
                                                    const std::set<std::string>& no_padding,
                                                    Verdict& verdict) {
  const std::string path = absl::StrCat(folder_, "/", ++files_, ".onnx");
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  file.close();
  REPRISE_CHECK(file.good());  // A model that cannot be read would count as one without faults.
  const bool exact = !no_padding.empty();
  absl::StatusOr<std::shared_ptr<Model>> model = absl::UnknownError("not loaded");
  AddTime(verdict.loading, [&] {
    model = engine_.Load({.id = {exact ? "exact" : "model", files_},
                          .path = path,
                          .no_padding = no_padding,
                          .packing = test.packed && !exact ? PackingMode::kAuto : PackingMode::kOff,
                          .capture = CapturePolicy::kInline,
                          .tune = TuneMode::kOff});
  });
  std::filesystem::remove(path);
  return model;
}

std::vector<Response> Trials::Ask(const Model& model, const Round& round, bool together,
                                  Verdict& verdict) {
  std::vector<Response> responses(round.size());
  std::vector<size_t> waiting;
  for (size_t i = 0; i < round.size(); ++i) {
    if (together) {
      waiting.push_back(i);
    } else {
      responses[i] = engine_.RunOne(model, round[i].request, *stream_);
    }
  }
  while (!waiting.empty()) {
    BatchPlan plan(model);
    std::vector<size_t> company, rest;
    std::vector<Request> requests;
    requests.reserve(waiting.size());
    for (const size_t i : waiting) {
      Request request = round[i].request;
      model.SpreadRows(request);
      const auto shape = model.Measure(request);
      if (!shape.ok() || shape->rows > model.MaxRows(*shape)) {  // An error, or split by rows.
        responses[i] = engine_.RunOne(model, round[i].request, *stream_);
      } else if (plan.TryAdd(*shape)) {
        company.push_back(i);
        requests.push_back(std::move(request));
      } else {
        rest.push_back(i);
      }
    }
    if (!company.empty()) {
      std::vector<const Request*> pointers;
      for (const Request& request : requests) pointers.push_back(&request);
      std::vector<Response> answers = engine_.Run(plan, pointers, *stream_);
      for (size_t k = 0; k < company.size(); ++k) responses[company[k]] = std::move(answers[k]);
      if (company.size() > 1) verdict.shared += static_cast<int64_t>(company.size());
    }
    waiting = std::move(rest);
  }
  return responses;
}

Fault Trials::Judge(const TestCase& test, const Model& exact, const Asked& asked,
                    const Response& response, Verdict& verdict, std::string& words) {
  if (absl::IsInternal(response.status)) {
    words = std::string(response.status.message());
    return Fault::kInternal;
  }
  const Response alone = engine_.RunOne(exact, asked.request, *stream_);
  if (response.status.ok() && IsRangeError(alone.status)) {
    ++verdict.beyond_end;
    return Fault::kNone;
  }
  if (alone.status.ok() && IsRangeError(response.status) && asked.looked_up_nothing) {
    ++verdict.beyond_end;
    return Fault::kNone;
  }
  if (alone.status.ok() != response.status.ok()) {
    words = absl::StrCat(response.status.ToString(), ", expected ", alone.status.ToString());
    return Fault::kStatus;
  }
  if (!alone.status.ok()) {
    if (asked.reference.ok()) verdict.refusals.insert(std::string(alone.status.message()));
    return Fault::kNone;
  }
  if (asked.wild) return Fault::kNone;
  const std::vector<Tensor> expected = TensorsOf(test.graph, alone);
  const std::vector<Tensor> actual = TensorsOf(test.graph, response);
  // Whether `tolerance` holds once disturbed roundings are allowed.
  const auto differ = [&](const std::vector<Tensor>& wanted, const std::vector<Tensor>& got,
                          Tolerance tolerance) -> std::optional<Difference> {
    auto difference = FindDifference(wanted, got, tolerance);
    for (const Disturbance& disturbance :
         {Disturbance{kFewRuns}, Disturbance{kManyRuns}, Disturbance{kRunsAtSteps, kBound}}) {
      if (!difference.has_value() || !asked.reference.ok()) break;
      const Spread spread = SpreadOf(test.graph, asked.contents, *asked.reference, disturbance);
      tolerance.spread = &spread;
      difference = FindDifference(wanted, got, tolerance);
      if (!difference.has_value()) ++verdict.doubtful;
    }
    return difference;
  };
  if (const auto difference = differ(expected, actual, {}); difference.has_value()) {
    words = difference->words;
    return difference->shape ? Fault::kShape : Fault::kElement;
  }
  if (!asked.reference.ok()) return Fault::kNone;
  const double bound = HoldsHalves(test.graph) ? 2e-2 : 1e-4;
  const auto difference = differ(*asked.reference, expected,
                                 {.of_largest = bound, .of_each = bound, .absolute = bound});
  if (!difference.has_value()) return Fault::kNone;
  words = difference->words;
  return Fault::kCompiled;
}

Verdict Trials::Run(const TestCase& test) {
  Verdict verdict;
  const std::string bytes = OnnxBytes(test.graph, test.declared);
  const auto model = Load(test, bytes, {}, verdict);
  if (!model.ok()) {
    verdict.refused = model.status();
    if (absl::IsInternal(model.status())) verdict.fault = Fault::kInternal;
    verdict.words = std::string(model.status().message());
    return verdict;
  }
  std::set<std::string> labels = {"none of the axes"};
  for (size_t i = 0; i < (*model)->axes().size(); ++i) {
    const AxisCertificate certificate = (*model)->CertificateOf(i);
    ++verdict.certificates[certificate.only_packed() ? "packed"
                           : certificate.certified   ? "proved"
                                                     : "refused"];
    labels.insert((*model)->axes()[i].label);
  }
  if ((*model)->axes().size() > 0) labels.erase("none of the axes");
  verdict.packed = (*model)->packing() != nullptr;
  verdict.cut = (*model)->tail() != nullptr;
  std::shared_ptr<Model> exact;  // loaded when it is first asked
  const Round round(test, **model, test.contents);
  for (const bool together : {false, true}) {
    std::vector<Response> responses;
    AddTime(verdict.asking, [&] { responses = Ask(**model, round, together, verdict); });
    for (size_t i = 0; i < round.size(); ++i) {
      const Response& response = responses[i];
      if (response.status.ok() && round[i].reference.ok()) {
        ++verdict.answers;
        if (response.info.bucket != "exact") ++verdict.padded;
        if (!FindDifference(*round[i].reference, TensorsOf(test.graph, response), {})) continue;
      }
      if (exact == nullptr) {
        auto loaded = Load(test, bytes, labels, verdict);
        if (!loaded.ok()) return verdict;
        exact = *std::move(loaded);
      }
      std::string words;
      const Fault fault = Judge(test, *exact, round[i], response, verdict, words);
      if (fault == Fault::kNone) continue;
      int again = 0;
      for (int k = 0; k < kRechecks; ++k) {
        const Round other(test, **model, test.contents + 1 + k);
        const std::vector<Response> others = Ask(**model, other, together, verdict);
        std::string ignored;
        again += Judge(test, *exact, other[i], others[i], verdict, ignored) == fault;
      }
      if (again < kMustComeAgain) {
        ++verdict.doubtful;
        continue;
      }
      verdict.fault = fault;
      verdict.words =
          absl::StrCat(together ? "together" : "alone", ", request ", i, " ",
                       SizesText(round[i].sizes), " in ", response.info.bucket, ": ", words);
      return verdict;
    }
  }
  return verdict;
}

}  // namespace reprise::fuzz
