#include "server/rpc/recompiles_codec.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/engine/engine.h"
#include "runtime/engine/model/tail.h"
#include "runtime/onnx/module_shapes.h"
#include "runtime/passes/specialize/specialize.h"
#include "server/requests/shape_columns.h"
#include "server/rpc/codec.h"
#include "server/rpc/recipe_codec.h"

namespace reprise {
namespace {

// Returns the cause of a capture that no new shape explains, in the words of the table.
std::string CauseOf(const MissRecord& miss) {
  if (!miss.section.empty()) return kCauseChild;
  if (miss.reason == CompileReason::kEvicted) return kCauseEviction;
  if (miss.reason == CompileReason::kGraphChanged) return kCauseConstants;
  return std::string(CompileReasonName(miss.reason));
}

// Shapes whose modules are looked for: each costs a walk of the graph.
constexpr int kMostSpecialized = 64;

class RecompilationsEncoder {
 public:
  RecompilationsEncoder(const Model& model, const std::vector<MissRecord>& misses,
                        v1::ModelRecompilations& message)
      : model_(model),
        message_(message),
        symbolic_(Engine::SymbolicGraph(model, /*packed=*/false)),
        history_(NodePlaces::Read(model.options().path).value_or(NodePlaces())) {
    for (const MissRecord& miss : misses) {
      const bool is_its =
          miss.model.name == model.id().name && miss.model.version == model.id().version;
      if (is_its) misses_.push_back(&miss);
    }
  }

  void Run() {
    const NewShapes::Report seen = model_.owner()->new_shapes().Snapshot();
    message_.set_model(model_.id().name);
    message_.set_version(absl::StrCat(model_.id().version));
    message_.set_steps(static_cast<uint64_t>(seen.steps));
    message_.set_recompiled(static_cast<uint64_t>(seen.recompiled));
    message_.set_captured(misses_.size());
    for (const NewShape& shape : seen.shapes) {
      if (shape.node.empty()) {
        Input(shape);
      } else {
        Inside(shape);
      }
    }
    for (const MissRecord* miss : misses_) Again(*miss);
    Modules();
  }

 private:
  v1::RecompileRow& Row(const NewShape& shape, const NodePlace& place, const char* cause) {
    v1::RecompileRow& row = *message_.add_rows();
    row.set_step(static_cast<uint64_t>(shape.step));
    row.set_module(place.module);
    row.set_type(place.type);
    row.set_location(place.location);
    row.set_cause(cause);
    row.set_request_id(shape.request_id);
    *row.mutable_time() = EncodeTime(shape.time);
    return row;
  }

  // Returns the inputs in the shapes that a request brought.
  std::string InputsText(const NewShape& shape) const {
    return absl::StrJoin(model_.inputs(), ", ", [&](std::string* out, const ModelIo& input) {
      absl::StrAppend(out, input.name, ": ", InputShapeText(model_, input, shape.sizes));
    });
  }

  // Describes how the request was served: the recipe that was captured for it, and how to avoid
  // that.
  std::string Served(const NewShape& shape) {
    std::string text = absl::StrCat("here: ", CaptureOutcomeName(shape.outcome), " ", shape.bucket);
    if (shape.outcome != CaptureOutcome::kCaptured && shape.outcome != CaptureOutcome::kWaited) {
      return text;
    }
    const auto miss = std::find_if(misses_.begin(), misses_.end(), [&](const MissRecord* record) {
      return record->section.empty() && record->bucket == shape.bucket &&
             std::none_of(told_.begin(), told_.end(),
                          [&](const MissRecord* told) { return told == record; });
    });
    if (miss == misses_.end()) return text;
    told_.push_back(*miss);
    absl::StrAppend(&text, ", recipe ", (*miss)->recipe);
    if (!(*miss)->suggestion.empty()) {
      absl::StrAppend(&text, "; to avoid it: ", (*miss)->suggestion);
    }
    return text;
  }

  void Input(const NewShape& shape) {
    const std::string served = Served(shape);
    std::map<std::string, int64_t> sizes;
    for (size_t i = 0; i < model_.axes().size() && i < shape.sizes.size(); ++i) {
      sizes[model_.axes()[i].symbol] = shape.sizes[i];
    }
    absl::StatusOr<Graph> graph = absl::UnavailableError("");
    if (specialized_++ < kMostSpecialized) graph = Specialize(symbolic_, {.axes = sizes});
    // A shape that its axes do not tell has a row of the whole model.
    const ModuleHistory::Step step = graph.ok() ? history_.Next(*graph) : ModuleHistory::Step();
    for (const ModuleAtFault& module : step.at_fault) {
      v1::RecompileRow& row = Row(shape, module.place, kCauseNewInput);
      row.set_op(module.op);
      row.set_new_in(module.new_in);
      row.set_new_out(module.new_out);
      row.set_comment(served);
      if (step.followers > 0) {
        row.set_comment(absl::StrCat(
            served, "; ", step.followers,
            step.followers == 1 ? " module after it follows" : " modules after it follow"));
      }
    }
    if (!step.at_fault.empty()) return;
    v1::RecompileRow& row =
        Row(shape, {.module = "(model)"}, shape.step == 1 ? kCauseFirst : kCauseNewInput);
    row.set_new_in(InputsText(shape));
    row.set_comment(served);
  }

  void Inside(const NewShape& shape) {
    history_.CountInside(shape.node, shape.step == 1);
    v1::RecompileRow& row = Row(shape, history_.places().Of(shape.node), kCauseData);
    row.set_op(absl::StrCat(shape.op, " '", shape.node, "'"));
    row.set_new_out(shape.made);
    row.set_comment("would recompile in a static graph; here: cut, run op by op");
  }

  // Counts a capture for another reason than a new shape.
  void Again(const MissRecord& miss) {
    const bool section = !miss.section.empty();
    if (!section &&
        (miss.reason == CompileReason::kFirstRequest || miss.reason == CompileReason::kNewShape ||
         miss.reason == CompileReason::kWarmup)) {
      return;
    }
    v1::RecompileRow& row = *message_.add_rows();
    row.set_step(static_cast<uint64_t>(model_.owner()->new_shapes().Snapshot().steps));
    row.set_module(section ? absl::StrCat("(model) ", miss.section) : "(model)");
    row.set_new_in(absl::StrJoin(miss.inputs, ", "));
    row.set_new_out(absl::StrJoin(miss.outputs, ", "));
    row.set_cause(CauseOf(miss));
    row.set_comment(absl::StrCat("recipe ", miss.recipe, ", ", miss.bucket,
                                 miss.cause.empty() ? "" : "; ", miss.cause));
    if (!miss.waiters.empty()) row.set_request_id(miss.waiters[0].request_id);
    *row.mutable_time() = EncodeTime(miss.time);
  }

  void Modules() {
    for (const auto& [name, counts] : history_.counts()) {
      v1::RecompiledModule& module = *message_.add_modules();
      module.set_module(name);
      module.set_type(counts.type);
      module.set_recompilations(static_cast<uint64_t>(counts.recompilations));
      module.set_at_fault(static_cast<uint64_t>(counts.at_fault));
    }
    std::stable_sort(message_.mutable_modules()->begin(), message_.mutable_modules()->end(),
                     [](const v1::RecompiledModule& a, const v1::RecompiledModule& b) {
                       return a.recompilations() > b.recompilations();
                     });
  }

  const Model& model_;
  v1::ModelRecompilations& message_;
  const Graph symbolic_;
  ModuleHistory history_;
  std::vector<const MissRecord*> misses_;  // the model's
  std::vector<const MissRecord*> told_;
  int specialized_ = 0;
};

}  // namespace

void EncodeRecompilations(const Model& model, const std::vector<MissRecord>& misses,
                          v1::ModelRecompilations& message) {
  RecompilationsEncoder(model, misses, message).Run();
}

}  // namespace reprise
