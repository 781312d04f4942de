#include "runtime/recipe/node_kernels.h"

#include <functional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/go_on.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/weights/narrowed_weights.h"

namespace reprise {
namespace {

bool MayBeTimed(const std::vector<KernelOption>& options) {
  return !options.empty() && !options[0].question.empty();
}

CompiledPlan::Question QuestionOf(const std::vector<KernelOption>& options) {
  if (!MayBeTimed(options)) return {};
  CompiledPlan::Question question = {.text = options[0].question};
  for (const KernelOption& option : options) question.kernels.push_back(option.kernel);
  return question;
}

// Returns whether `option` wants parameters in the same forms as `first`, or other forms have room
// as well.
bool HasRoom(const Graph& graph, const Node& node, const KernelOption& first,
             const KernelOption& option,
             const std::function<bool(const ParameterExpr&)>& has_room) {
  if (has_room == nullptr) return true;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const ParameterExprPtr wanted = ParameterFor(graph, node, i, &option);
    if (wanted == nullptr) continue;
    if (wanted->text() != ParameterFor(graph, node, i, &first)->text() && !has_room(*wanted)) {
      return false;
    }
  }
  return true;
}

// Returns the one of `offers` that timing has shown to be the fastest, if it has and it may be
// used.
// `chosen_before`: the plan is bound again.
const std::string* AnswerFor(const Graph& graph, const Node& node,
                             const std::vector<KernelOption>& offers, const CompileOptions& options,
                             bool chosen_before) {
  if (options.choices == nullptr || !MayBeTimed(offers)) return nullptr;
  const std::optional<std::string> known = options.choices->Find(offers[0].question);
  if (!known.has_value()) return nullptr;
  for (const KernelOption& offer : offers) {
    if (offer.kernel != *known) continue;
    // A plan that is bound again takes no new room: its kernels are fixed.
    const auto& has_room = chosen_before ? options.holds : options.hold_second;
    return HasRoom(graph, node, offers[0], offer, has_room) ? &offer.kernel : &offers[0].kernel;
  }
  return nullptr;
}

// Logs which kernel `node` got, and which others there were.
void LogChoice(const Node& node, const std::string& kernel, const std::vector<KernelOption>& offers,
               bool timed, DebugLog& debug) {
  std::string text = absl::StrCat("kernel of ", NodeLabel(node), ": ", kernel);
  if (offers.empty()) {
    absl::StrAppend(&text, ", since the device has none for it");
  } else if (offers.size() == 1) {
    absl::StrAppend(&text, ", the only one");
  } else {
    absl::StrAppend(
        &text, timed ? ", the fastest when they were timed, not " : ", the first that fits, not ");
    bool first = true;
    for (const KernelOption& offer : offers) {
      if (offer.kernel == kernel) continue;
      absl::StrAppend(&text, first ? "" : ", ", offer.kernel);
      first = false;
    }
  }
  debug.Say(LogModule::kKernel, text);
}

// Returns whether no result of `node` has an element.
bool MakesNothing(const Graph& graph, const Node& node) {
  return absl::c_all_of(node.outputs, [&](ValueId output) {
    return output == kNone || NumElements(*graph.value(output).shape) == 0;
  });
}

// Takes the one of `offers` that is called `kernel`; none without a launch, and for a reference
// kernel.
absl::Status Take(const Node& node, const std::string& kernel, std::vector<KernelOption>& offers,
                  NodeKernel& chosen) {
  if (kernel.empty() || kernel == KernelOf(node, chosen)) return absl::OkStatus();
  for (KernelOption& offer : offers) {
    if (offer.kernel != kernel) continue;
    chosen.option = std::move(offer);
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat("it names a kernel '", kernel, "' for ", NodeLabel(node),
                                          ", which does not exist"));
}

}  // namespace

absl::StatusOr<NodeKernels> ChooseKernels(const Graph& graph, const RowWalks& walks,
                                          const CompileOptions& options,
                                          const std::vector<std::string>* kernels) {
  NodeKernels chosen;
  chosen.nodes.resize(graph.num_nodes());
  size_t position = 0;
  for (NodeId id : graph.NodeIds()) {
    RETURN_IF_ERROR(GoesOn(options.go_on));
    const Node& node = graph.node(id);
    const OpRow* row = FindOp(node.op);
    REPRISE_CHECK(row != nullptr);
    chosen.nodes[id].view = row->Has(kView);
    chosen.nodes[id].nothing = MakesNothing(graph, node);
    std::vector<KernelOption> offers;
    if (chosen.nodes[id].has_launch()) {
      // The options that the device makes hold tables whose length grows with the shapes.
      ASSIGN_OR_RETURN(offers, WithinMemory([&] { return NodeLabel(node); },
                                            [&]() -> absl::StatusOr<std::vector<KernelOption>> {
                                              return options.device->Options(walks.GraphOf(id), id);
                                            }));
    }
    if (options.plan != nullptr) chosen.questions.push_back(QuestionOf(offers));
    const std::string* answer = AnswerFor(graph, node, offers, options, kernels != nullptr);
    std::string kernel = kernels == nullptr ? "" : (*kernels)[position++];
    if (kernels == nullptr && !offers.empty()) {
      kernel = answer != nullptr ? *answer : offers.front().kernel;
    }
    if (MayBeTimed(offers)) {
      ++chosen.timeable;
      chosen.untimed += answer == nullptr || *answer != kernel;
    }
    if (chosen.nodes[id].has_launch() && Wants(options.debug, LogModule::kKernel)) {
      LogChoice(node, kernel.empty() ? absl::StrCat("reference/", node.op) : kernel, offers,
                answer != nullptr, *options.debug);
    }
    RETURN_IF_ERROR(Take(node, kernel, offers, chosen.nodes[id]));
  }
  return chosen;
}

std::string KernelOf(const Node& node, const NodeKernel& chosen) {
  if (!chosen.has_launch()) return "";
  return chosen.option.has_value() ? chosen.option->kernel : absl::StrCat("reference/", node.op);
}

ParameterExprPtr ParameterFor(const Graph& graph, const Node& node, size_t i,
                              const KernelOption* option) {
  const ValueId input = node.inputs[i];
  if (input == kNone) return nullptr;
  ParameterExprPtr expression = graph.value(input).parameter;
  for (size_t at = 0; option != nullptr && at < option->prepare.size(); ++at) {
    const PrepareStep& step = option->prepare[at];
    if (step.input != i) continue;
    REPRISE_CHECK(expression != nullptr);
    if (step.op.empty()) {
      expression = step.parts.at(0);
      break;
    }
    expression = ParameterExpr::Apply(
        step.op, step.attributes,
        step.parts.empty() ? std::vector<ParameterExprPtr>{expression} : step.parts, step.dtype,
        step.shape);
  }
  return ops::WithoutNarrowing(expression);
}

}  // namespace reprise
