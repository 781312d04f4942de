#include "runtime/engine/load/precision_chooser.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/digest128.h"
#include "runtime/base/format_text.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/load/stored_choice.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/kit/precision_rules.h"

namespace reprise {
namespace {

// Raised when the same requests would lead to another choice.
constexpr int kChoiceVersion = 2;
// The part of the loss that a bound allows which the tried requests may have.
constexpr double kShareOfLoss = 0.5;
// The same of requests that were made up: random numbers lose less than the ones of a real text,
// among which a few are far larger than the others.
constexpr double kShareOfMadeUpLoss = 0.1;
// A node must save this part of its time to round with `fast`.
constexpr double kLeastGain = 0.03;
// The time for trying nodes alone: nodes are tried in groups where one by one would take longer.
constexpr double kMostTryingNs = 20e9;
// Requests that a node alone is tried with.
constexpr size_t kRequestsAlone = 8;

using Candidate = PrecisionTrial::Candidate;

// Nodes that round, or do not, together. `levels`: the precisions of each node, the one that loses
// most first, kExact last.
struct Unit {
  std::vector<size_t> nodes;
  std::vector<std::vector<Precision>> levels;
  std::vector<double> losses;  // indexed by level; 0 for the last

  size_t last() const {
    size_t most = 1;
    for (const auto& one : levels) most = std::max(most, one.size());
    return most - 1;
  }
  Precision At(size_t node, size_t level) const {
    return levels[node][std::min(level, levels[node].size() - 1)];
  }
};

// A unit becomes more exact by one level.
struct Step {
  size_t unit = 0;
  double gain = 0;  // the accuracy; with `fast`, divided by the nanoseconds that it costs
};

std::vector<Precision> LevelsOf(const Candidate& node, const PrecisionGoal& goal) {
  if (!goal.fast) return {node.to_int8 ? Precision::kInt8 : Precision::kBf16, Precision::kExact};
  const auto time = [&](Precision precision) {
    const auto known = node.ns.find(precision);
    return known == node.ns.end() ? std::numeric_limits<double>::infinity()
                                  : static_cast<double>(known->second);
  };
  const double int8 = time(Precision::kInt8), bf16 = time(Precision::kBf16);
  const double worth = (1 - kLeastGain) * time(Precision::kExact);
  std::vector<Precision> levels;
  if (int8 < worth && int8 < bf16) levels.push_back(Precision::kInt8);
  if (bf16 < worth) levels.push_back(Precision::kBf16);
  levels.push_back(Precision::kExact);
  return levels;
}

// Returns the units, of `size` nodes each.
std::vector<Unit> UnitsOf(const std::vector<Candidate>& nodes, const PrecisionGoal& goal,
                          size_t size) {
  std::vector<Unit> units;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (i % size == 0) units.emplace_back();
    units.back().nodes.push_back(i);
    units.back().levels.push_back(LevelsOf(nodes[i], goal));
  }
  return units;
}

void Put(const std::vector<Candidate>& nodes, const Unit& unit, size_t level,
         PrecisionTrial::Chosen& chosen) {
  for (size_t i = 0; i < unit.nodes.size(); ++i) {
    chosen[nodes[unit.nodes[i]].node.name] = unit.At(i, level);
  }
}

PrecisionTrial::Chosen ChosenAt(const std::vector<Candidate>& nodes, const std::vector<Unit>& units,
                                const std::vector<Step>& steps, size_t count) {
  std::vector<size_t> levels(units.size(), 0);
  for (size_t i = 0; i < count; ++i) ++levels[steps[i].unit];
  PrecisionTrial::Chosen chosen;
  for (size_t u = 0; u < units.size(); ++u) Put(nodes, units[u], levels[u], chosen);
  return chosen;
}

// Returns the time of a unit's nodes at a level.
double TimeAt(const std::vector<Candidate>& nodes, const Unit& unit, size_t level) {
  double ns = 0;
  for (size_t i = 0; i < unit.nodes.size(); ++i) {
    const auto known = nodes[unit.nodes[i]].ns.find(unit.At(i, level));
    if (known != nodes[unit.nodes[i]].ns.end()) ns += static_cast<double>(known->second);
  }
  return ns;
}

// Returns the steps to an exact model, the ones that gain most first.
std::vector<Step> StepsOf(const std::vector<Candidate>& nodes, const std::vector<Unit>& units,
                          bool fast) {
  std::vector<Step> steps;
  for (size_t u = 0; u < units.size(); ++u) {
    double before = std::numeric_limits<double>::infinity();
    for (size_t level = 0; level < units[u].last(); ++level) {
      double gain = std::max(0.0, units[u].losses[level] - units[u].losses[level + 1]);
      if (fast) {
        const double cost = TimeAt(nodes, units[u], level + 1) - TimeAt(nodes, units[u], level);
        gain /= std::max(1.0, cost);
      }
      // Steps of a unit stay in their order.
      before = std::min(before, gain);
      steps.push_back({.unit = u, .gain = before});
    }
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return a.gain > b.gain; });
  return steps;
}

std::string CountsText(const PrecisionChoice& choice) {
  int counts[std::size(kPrecisions)] = {};
  for (const PrecisionChoice::Node& node : choice.nodes) {
    ++counts[static_cast<size_t>(node.precision)];
  }
  std::string text;
  for (const Precision precision : {Precision::kInt8, Precision::kBf16, Precision::kExact}) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", counts[static_cast<size_t>(precision)], " ",
                    PrecisionName(precision));
  }
  return text;
}

std::string DigestOf(const PrecisionTrial::Requests& requests) {
  Digest128 digest;
  for (const std::vector<Tensor>& request : requests) {
    for (const Tensor& tensor : request) {
      digest.Add(absl::StrCat(DTypeName(tensor.dtype()), ShapeToString(tensor.shape()), "\n"));
      digest.Add({static_cast<const char*>(tensor.data()), tensor.bytes()});
    }
  }
  return digest.Hex();
}

// The choice while it is made.
class Choosing {
 public:
  // `share`: the part of the loss that the bound allows which the requests may have.
  Choosing(const ModelView& model, const Clock& clock, PrecisionTrial& trial, double share)
      : goal_(*model.options.precision_goal), clock_(clock), trial_(trial), share_(share) {}

  absl::Status Run() {
    ASSIGN_OR_RETURN(nodes_, trial_.Candidates());
    RETURN_IF_ERROR(trial_.TimeAll(nodes_));
    const double most = share_ * (1 - goal_.cosine);
    units_ = UnitsOf(nodes_, goal_, 1);
    const int64_t start = clock_.NowNs();
    ASSIGN_OR_RETURN(loss_, trial_.Loss(ChosenAt(nodes_, units_, {}, 0), kRequestsAlone));
    const auto run_ns = static_cast<double>(clock_.NowNs() - start);
    if (trial_.requests() > kRequestsAlone && loss_ <= most) {
      ASSIGN_OR_RETURN(loss_, trial_.Loss(ChosenAt(nodes_, units_, {}, 0), trial_.requests()));
    }
    chosen_ = ChosenAt(nodes_, units_, {}, 0);
    if (loss_ <= most && !goal_.measure_each) return absl::OkStatus();
    const double all_ns = run_ns * static_cast<double>(nodes_.size());
    if (all_ns > kMostTryingNs) {
      units_ = UnitsOf(nodes_, goal_, 1 + static_cast<size_t>(all_ns / kMostTryingNs));
    }
    RETURN_IF_ERROR(TryEach());
    return loss_ <= most ? absl::OkStatus() : Search(most);
  }

  PrecisionChoice Result() const {
    PrecisionChoice choice = {.cosine = 1 - loss_, .requests = static_cast<int>(trial_.requests())};
    for (const Candidate& one : nodes_) {
      PrecisionChoice::Node& node = choice.nodes.emplace_back(one.node);
      node.precision = chosen_.at(node.name);
      const auto exact = one.ns.find(Precision::kExact), own = one.ns.find(node.precision);
      if (exact == one.ns.end() || own == one.ns.end()) continue;
      node.exact_ns = exact->second;
      node.chosen_ns = own->second;
    }
    return choice;
  }

 private:
  // Finds the loss of each unit alone, at each of its levels.
  absl::Status TryEach() {
    for (Unit& unit : units_) {
      unit.losses.assign(unit.last() + 1, 0);
      for (size_t level = 0; level < unit.last(); ++level) {
        PrecisionTrial::Chosen alone;
        Put(nodes_, unit, level, alone);
        ASSIGN_OR_RETURN(unit.losses[level], trial_.Loss(alone, kRequestsAlone));
      }
      for (const size_t node : unit.nodes) nodes_[node].node.loss = unit.losses[0];
    }
    return absl::OkStatus();
  }

  // Finds the least number of steps after which the bound holds.
  absl::Status Search(double most) {
    const std::vector<Step> steps = StepsOf(nodes_, units_, goal_.fast);
    const auto loss_at = [&](size_t count) {
      return trial_.Loss(ChosenAt(nodes_, units_, steps, count), trial_.requests());
    };
    size_t low = 0, high = steps.size();
    ASSIGN_OR_RETURN(loss_, loss_at(high));
    if (loss_ > most) {
      return absl::InvalidArgumentError(absl::StrCat(
          "reprise.precision \"", goal_.ToString(),
          "\" cannot be kept: with reprise.weights and reprise.precision_ops alone "
          "the least cosine is ",
          1 - loss_, ", and ", share_, " of what the bound lets answers lose is needed"));
    }
    while (high - low > 1) {
      const size_t middle = low + (high - low) / 2;
      ASSIGN_OR_RETURN(const double loss, loss_at(middle));
      if (loss <= most) {
        high = middle;
        loss_ = loss;
      } else {
        low = middle;
      }
    }
    chosen_ = ChosenAt(nodes_, units_, steps, high);
    return absl::OkStatus();
  }

  const PrecisionGoal& goal_;
  const Clock& clock_;
  PrecisionTrial& trial_;
  const double share_;
  std::vector<Candidate> nodes_;
  std::vector<Unit> units_;
  PrecisionTrial::Chosen chosen_;
  double loss_ = 0;
};

}  // namespace

StoredModelKey PrecisionChooser::KeyOf(const ModelView& model,
                                       const PrecisionTrial::Requests& requests) const {
  // Names of nodes are in the choice, and not in the text of the graph.
  Digest128 names;
  for (const NodeId id : model.program.graph->NodeIds()) {
    names.Add(absl::StrCat(model.program.graph->node(id).name, "\n"));
  }
  return {.graph = model.program.fingerprint.digest,
          .parameters = model.program.owner->parameters().Digest(),
          .settings = absl::StrCat("precision ", kChoiceVersion, "\n",
                                   model.options.precision_goal->ToString(), "\nweights ",
                                   WeightBitsName(model.options.weights), "\nrules ",
                                   model.program.nodes->digest(), "\nnames ", names.Hex(),
                                   "\nrequests ", DigestOf(requests), "\n"),
          .device = context_.device->fingerprint(),
          .compiler = CompilerId()};
}

std::shared_ptr<const PrecisionChoice> PrecisionChooser::Restore(const ModelId& id,
                                                                 const StoredModelKey& key) const {
  const RecordName name = key.NameOf(id);
  const RecipeStore::Found found = context_.store->Read(name);
  if (!found.payload.has_value()) return nullptr;
  absl::StatusOr<PrecisionChoice> choice = DecodeChoice(*found.payload, key);
  if (choice.ok()) return std::make_shared<const PrecisionChoice>(*std::move(choice));
  if (absl::IsDataLoss(choice.status())) {
    context_.store->NoteCorrupt(name, choice.status().message());
  }
  return nullptr;
}

absl::StatusOr<PrecisionChoice> PrecisionChooser::Measure(const ModelView& model,
                                                          PrecisionTrial::Requests requests) const {
  ASSIGN_OR_RETURN(const std::unique_ptr<PrecisionTrial> trial,
                   PrecisionTrial::Make(model, context_));
  const bool made_up = requests.empty();
  if (made_up) {
    absl::StatusOr<PrecisionTrial::Requests> made = trial->MakeUp();
    if (!made.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("reprise.precision \"", model.options.precision_goal->ToString(),
                       "\" needs requests in reprise.calibration: none that was made up is taken: ",
                       made.status().message()));
    }
    requests = *std::move(made);
  }
  if (const absl::Status answered = trial->Answer(std::move(requests)); !answered.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        made_up ? "reprise.precision: " : "reprise.calibration: ", answered.message()));
  }
  Choosing choosing(model, *context_.clock, *trial, made_up ? kShareOfMadeUpLoss : kShareOfLoss);
  RETURN_IF_ERROR(choosing.Run());
  PrecisionChoice choice = choosing.Result();
  choice.made_up = made_up;
  return choice;
}

absl::Status PrecisionChooser::Choose(ModelDraft& model) const {
  const ModelOptions& options = model.options;
  // The model keeps its options, and the objects that this points into go when the load is over.
  const auto calibration = std::exchange(model.options.calibration, nullptr);
  if (!options.precision_goal.has_value()) return absl::OkStatus();
  const std::string words = options.precision_goal->ToString();
  if (!model.signature->shape_inputs.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("reprise.precision \"", words, "\": input '",
                     model.signature->inputs[model.signature->shape_inputs[0]].name,
                     "' decides a shape, so that nodes cannot be chosen; name them in "
                     "reprise.precision_ops"));
  }
  PrecisionTrial::Requests requests;
  if (calibration) {
    ASSIGN_OR_RETURN(requests, calibration(PrecisionTrial::InputsOf(model.view())));
  }
  const int64_t start = context_.clock->NowNs();
  StoredModelKey key;
  std::shared_ptr<const PrecisionChoice> choice;
  if (context_.store != nullptr) {
    key = KeyOf(model.view(), requests);
    choice = Restore(model.id(), key);
  }
  const bool known = choice != nullptr;
  if (!known) {
    ASSIGN_OR_RETURN(PrecisionChoice measured, Measure(model.view(), std::move(requests)));
    choice = std::make_shared<const PrecisionChoice>(std::move(measured));
    if (context_.store != nullptr) {
      const int64_t took_ns = context_.clock->NowNs() - start;
      context_.store->WriteLater(key.NameOf(model.id()), took_ns,
                                 EncodeChoice(key, model.id(), *choice, took_ns));
    }
  }
  PrecisionTrial::Chosen chosen;
  for (const PrecisionChoice::Node& node : choice->nodes) chosen[node.name] = node.precision;
  model.program->nodes = std::make_shared<const NodePrecisions>(model.program->nodes->With(chosen));
  model.program->choice = choice;
  context_.log(
      FormatText("model %s: precision %s: %s nodes, least cosine %.6f of %d %s requests, "
                 "%s in %.1f ms",
                 model.id().name, words, CountsText(*choice), choice->cosine, choice->requests,
                 choice->made_up ? "made-up" : "given", known ? "loaded" : "chosen",
                 (context_.clock->NowNs() - start) / 1e6));
  return absl::OkStatus();
}

}  // namespace reprise
