#include "tools/precision.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/json_inputs.h"
#include "client/cli/table.h"
#include "runtime/base/format_text.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/json/json_writer.h"
#include "runtime/ops/kit/op_facts.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/kit/precision_rules.h"
#include "tools/files/file_bytes.h"
#include "tools/local_engine.h"
#include "tools/serve/made_up_request.h"

namespace reprise::cli {
namespace {

struct Choice {
  std::string name;
  Precision precision = Precision::kExact;
  PrecisionRules rules;
  std::optional<PrecisionGoal> goal;
};

// Returns the graph as its recipe has it, so that nodes are those that run.
absl::StatusOr<Graph> GraphAt(const Model& model, const AxisSizes& sizes) {
  Binding binding;
  for (const ModelAxis& axis : model.axes()) binding.axes[axis.symbol] = sizes.at(axis.label);
  ASSIGN_OR_RETURN(Graph graph, Specialize(Engine::SymbolicGraph(model, false), binding));
  RETURN_IF_ERROR(RunCapturePasses(graph, {.precision = model.options().precision,
                                           .nodes = model.program().nodes.get(),
                                           .weights = model.options().weights}));
  return graph;
}

// Returns the types of ops that may round by themselves: products by the file's names, and
// attention.
std::set<std::string> RoundingTypes(const Model& model, const Graph& compiled) {
  std::set<std::string> types;
  const Graph& symbolic = Engine::SymbolicGraph(model, false);
  for (const NodeId id : symbolic.NodeIds()) {
    const std::string& op = symbolic.node(id).op;
    if (FactsOf(op).rounding == Rounding::kProduct || op == "Gemm") types.insert(op);
  }
  for (const NodeId id : compiled.NodeIds()) {
    if (FactsOf(compiled.node(id).op).rounding == Rounding::kAttention) types.insert("Attention");
  }
  return types;
}

absl::StatusOr<std::vector<Choice>> ChoicesFor(const Model& exact, const Graph& compiled,
                                               const PrecisionRules& given,
                                               const PrecisionGoal& goal) {
  std::vector<Choice> choices;
  for (const Precision precision : {Precision::kBf16, Precision::kInt8}) {
    for (const std::string& type : RoundingTypes(exact, compiled)) {
      // Attention has one way to round.
      if (precision == Precision::kInt8 && type == "Attention") continue;
      Choice choice = {.name = absl::StrCat(PrecisionName(precision), ": ", type)};
      ASSIGN_OR_RETURN(choice.rules, PrecisionRules::Parse(choice.name));
      choices.push_back(std::move(choice));
    }
    choices.push_back(
        {.name = absl::StrCat(PrecisionName(precision), " (all)"), .precision = precision});
  }
  if (!given.empty()) choices.push_back({.name = given.ToString(), .rules = given});
  choices.push_back({.name = goal.ToString(), .rules = given, .goal = goal});
  choices.back().goal->measure_each = true;
  return choices;
}

// Returns the float elements of an answer, output after output.
std::vector<float> FloatsOf(const Model& model, const Response& response) {
  std::vector<float> all;
  for (size_t i = 0; i < response.outputs.size(); ++i) {
    if (model.outputs()[i].dtype != DType::kFloat32) continue;
    const std::string& bytes = response.outputs[i].bytes;
    const size_t begin = all.size();
    all.resize(begin + bytes.size() / sizeof(float));
    if (!bytes.empty()) std::memcpy(all.data() + begin, bytes.data(), bytes.size());
  }
  return all;
}

// A choice as it was measured.
struct Measured {
  std::string choice;
  RoundedProducts products;
  double error = 0, relative = 0, mean = 0;  // relative: of the largest element
};

// A node that could round.
struct RoundingNode {
  std::string name, op;
  Shape result;
  std::string precision;  // "exact", "bf16", "int8"
  // From the choice of the goal, where the node is among it: see PrecisionChoice::Node.
  double loss = -1;
  int64_t exact_ns = 0, chosen_ns = 0;

  bool was_timed() const { return exact_ns > 0 && chosen_ns > 0; }
};

Measured Measure(const Choice& choice, const Graph& graph, const std::vector<float>& exact,
                 const std::vector<float>& rounded) {
  Measured measured = {.choice = choice.name, .products = CountRoundedProducts(graph)};
  double largest = 0, sum = 0;
  for (size_t i = 0; i < std::min(exact.size(), rounded.size()); ++i) {
    const double difference = std::abs(static_cast<double>(exact[i]) - rounded[i]);
    largest = std::max<double>(largest, std::abs(exact[i]));
    measured.error = std::max(measured.error, difference);
    sum += difference;
  }
  if (largest > 0) measured.relative = measured.error / largest;
  if (!exact.empty()) measured.mean = sum / static_cast<double>(exact.size());
  return measured;
}

// `choice`: the nodes that it was made among have its numbers.
std::vector<RoundingNode> RoundingNodes(const Graph& graph, const PrecisionChoice& choice) {
  std::vector<RoundingNode> nodes;
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    const OpFacts& facts = FactsOf(node.op);
    if (facts.rounding == Rounding::kNone && !facts.Is(kMultipliesWeights)) continue;
    nodes.push_back({.name = node.name,
                     .op = node.op,
                     .result = *graph.value(node.outputs[0]).shape,
                     .precision = node.attributes.String(kPrecisionAttribute, "exact")});
    for (const PrecisionChoice::Node& one : choice.nodes) {
      if (one.name != node.name) continue;
      nodes.back().loss = one.loss;
      nodes.back().exact_ns = one.exact_ns;
      nodes.back().chosen_ns = one.chosen_ns;
    }
  }
  return nodes;
}

std::string ChoicesText(const std::vector<Measured>& choices) {
  Table table({{"choice"},
               {"products that round", kRight},
               {"attentions", kRight},
               {"largest error", kRight},
               {"of the largest element", kRight},
               {"mean error", kRight}});
  const auto number = [](double value) { return FormatText("%.3g", value); };
  for (const Measured& one : choices) {
    table.AddRow({one.choice, absl::StrCat(one.products.rounded, " of ", one.products.all),
                  absl::StrCat(one.products.attentions), number(one.error), number(one.relative),
                  number(one.mean)});
  }
  return table.Text();
}

std::string NodesText(const std::vector<RoundingNode>& nodes) {
  Table table({{"node"},
               {"op"},
               {"result"},
               {"rounds"},
               {"loss alone", kRight},
               {"exact us", kRight},
               {"chosen us", kRight},
               {"gain", kRight}});
  const auto us = [](int64_t ns) { return FormatText("%.1f", static_cast<double>(ns) * 1e-3); };
  for (const RoundingNode& node : nodes) {
    const bool timed = node.was_timed();
    table.AddRow({node.name, node.op, ShapeToString(node.result),
                  node.precision == "exact" ? "no" : node.precision,
                  node.loss < 0 ? "-" : FormatText("%.3g", node.loss),
                  timed ? us(node.exact_ns) : "-", timed ? us(node.chosen_ns) : "-",
                  timed ? FormatText("%.2f", static_cast<double>(node.exact_ns) /
                                                 static_cast<double>(node.chosen_ns))
                        : "-"});
  }
  return table.Text();
}

std::string ReportJson(const std::string& path, const AxisSizes& sizes, bool made_up,
                       const std::vector<Measured>& choices, const std::vector<RoundingNode>& nodes,
                       double cosine) {
  JsonWriter json(JsonForm::kIndented);
  json.Object([&] {
    json.Member("model", path);
    json.Object("sizes", [&] {
      for (const auto& [axis, size] : sizes) json.Member(axis, size);
    });
    json.Member("inputs", made_up ? "made-up" : "given");
    json.Array("choices", [&] {
      for (const Measured& one : choices) {
        json.Object([&] {
          json.Member("choice", one.choice);
          json.Member("products", one.products.all);
          json.Member("products_rounded", one.products.rounded);
          json.Member("attentions", one.products.attentions);
          json.Member("largest_error", one.error);
          json.Member("of_largest_element", one.relative);
          json.Member("mean_error", one.mean);
        });
      }
    });
    json.Member("least_cosine", cosine);
    json.Array("nodes", [&] {
      for (const RoundingNode& node : nodes) {
        json.Object([&] {
          json.Member("node", node.name);
          json.Member("op", node.op);
          json.Member("result", ShapeToString(node.result));
          json.Member("precision", node.precision);
          if (node.loss >= 0) json.Member("loss_alone", node.loss);
          if (!node.was_timed()) return;
          json.Member("exact_ns", node.exact_ns);
          json.Member("chosen_ns", node.chosen_ns);
        });
      }
    });
  });
  return json.Take();
}

struct Answered {
  std::shared_ptr<Model> model;
  std::vector<float> values;
};

class Study {
 public:
  explicit Study(const PrecisionOptions& options) : options_(options), local_(options.max_isa) {}

  absl::Status Run() {
    const std::filesystem::path folder = std::filesystem::path(options_.path).parent_path();
    ASSIGN_OR_RETURN(const PrecisionRules given,
                     PrecisionRules::Parse(options_.rules, [&](const std::string& name) {
                       return ReadText((folder / name).string());
                     }));
    ASSIGN_OR_RETURN(stream_, Stream::Create({.cores = &local_.cores}));
    ASSIGN_OR_RETURN(const Answered exact, Answer({.name = "exact"}));
    ASSIGN_OR_RETURN(const Graph compiled, GraphAt(*exact.model, sizes_));
    ASSIGN_OR_RETURN(const std::vector<Choice> choices,
                     ChoicesFor(*exact.model, compiled, given, options_.goal));
    PrecisionChoice chosen;
    std::vector<Measured> measured;
    std::vector<RoundingNode> nodes;  // nodes of the last choice
    for (const Choice& choice : choices) {
      ASSIGN_OR_RETURN(const Answered answered, Answer(choice));
      ASSIGN_OR_RETURN(const Graph graph, GraphAt(*answered.model, sizes_));
      measured.push_back(Measure(choice, graph, exact.values, answered.values));
      if (answered.model->program().choice != nullptr) chosen = *answered.model->program().choice;
      nodes = RoundingNodes(graph, chosen);
    }
    const bool made_up = options_.inputs_file.empty();
    if (options_.json) {
      std::printf(
          "%s", ReportJson(options_.path, sizes_, made_up, measured, nodes, chosen.cosine).c_str());
      return absl::OkStatus();
    }
    std::printf("%s at %s, %s inputs\n\n%s keeps a cosine of %.6f in %d %s requests:\n\n%s\n%s",
                options_.path.c_str(), SizesText().c_str(), made_up ? "made-up" : "given",
                options_.goal.ToString().c_str(), chosen.cosine, chosen.requests,
                chosen.made_up ? "made-up" : "given", NodesText(nodes).c_str(),
                ChoicesText(measured).c_str());
    return absl::OkStatus();
  }

 private:
  absl::StatusOr<Answered> Answer(const Choice& choice) {
    Answered answered;
    ModelOptions load = {.id = {.name = choice.name},
                         .path = options_.path,
                         .precision = choice.precision,
                         .precision_ops = choice.rules,
                         .precision_goal = choice.goal};
    if (choice.goal.has_value() && !options_.inputs_file.empty()) {
      load.calibration = [&](const std::vector<ModelIo>& inputs) { return GivenTensors(inputs); };
    }
    ASSIGN_OR_RETURN(answered.model, local_.engine.Load(std::move(load)));
    if (sizes_.empty()) {
      ASSIGN_OR_RETURN(const RequestSizes sizes, SizesOf(*answered.model, options_.bucket));
      sizes_ = sizes.sizes;
    }
    MadeUpRequest made;
    Request request;
    if (options_.inputs_file.empty()) {
      ASSIGN_OR_RETURN(made, MakeUpRequest(*answered.model, sizes_, options_.max_id));
      request = made.request;
    } else {
      ASSIGN_OR_RETURN(const std::string text, ReadText(options_.inputs_file));
      ASSIGN_OR_RETURN(given_, ParseJsonInputs(text, MetadataOf(*answered.model)));
      request = RequestOfTensors(*answered.model, given_);
    }
    const Response response = local_.engine.RunOne(*answered.model, request, *stream_);
    RETURN_IF_ERROR(response.status);
    answered.values = FloatsOf(*answered.model, response);
    return answered;
  }

  // Returns the given request for a choice to be measured with.
  std::vector<std::vector<Tensor>> GivenTensors(const std::vector<ModelIo>& inputs) const {
    std::vector<Tensor> request;
    for (const ModelIo& input : inputs) {
      for (const OwnedTensor& owned : given_) {
        if (owned.name != input.name) continue;
        request.push_back(
            Tensor::Make(input.dtype, {owned.shape.begin(), owned.shape.end()}, [&](void* data) {
              if (!owned.bytes.empty()) std::memcpy(data, owned.bytes.data(), owned.bytes.size());
            }));
      }
    }
    return {std::move(request)};
  }

  std::string SizesText() const {
    std::string text;
    for (const auto& [axis, size] : sizes_) {
      absl::StrAppend(&text, text.empty() ? "" : ", ", axis, " ", size);
    }
    return text.empty() ? "its only sizes" : text;
  }

  const PrecisionOptions& options_;
  LocalEngine local_;
  std::unique_ptr<Stream> stream_;
  AxisSizes sizes_;                 // found with the first model
  std::vector<OwnedTensor> given_;  // the request of the file
};

}  // namespace

absl::Status RunPrecision(const PrecisionOptions& options) { return Study(options).Run(); }

}  // namespace reprise::cli
