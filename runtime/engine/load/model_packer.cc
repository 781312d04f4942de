#include "runtime/engine/load/model_packer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/pack/request_scales.h"
#include "runtime/passes/read/read_sizes.h"
#include "runtime/passes/read/value_shapes.h"
#include "runtime/verify/proof_sizes.h"

namespace reprise {
namespace {

constexpr size_t kBatchAndSequence = 2;

// Returns the position of the axis that is not the batch.
size_t SequenceOf(const ModelView& model) { return model.signature.batch_axis == 0 ? 1 : 0; }

constexpr int64_t kFewRows = 2;
constexpr int64_t kFewPositions = 5;

// Returns FAILED_PRECONDITION where an answer has another shape once ranges are taken by request:
// it is a scale, or made of one.
absl::Status CheckOutputs(const ModelView& model, const Graph& by_request) {
  Binding binding;
  for (const ModelAxis& axis : model.proof.axes) {
    binding.axes[axis.symbol] = axis.is_batch ? kFitBatch : axis.Fitting(kFewPositions);
  }
  ASSIGN_OR_RETURN(const SizeReading whole, ReadSizes(*model.program.graph, binding));
  ASSIGN_OR_RETURN(const SizeReading own, ReadSizes(by_request, binding));
  for (size_t i = 0; i < whole.outputs.size(); ++i) {
    const auto& shape = whole.values[static_cast<size_t>(whole.outputs[i])].shape;
    const auto& other = own.values[static_cast<size_t>(own.outputs[i])].shape;
    if (shape.has_value() && other.has_value() && HintsOf(*shape) == HintsOf(*other)) continue;
    return absl::FailedPreconditionError(absl::StrCat("output '",
                                                      model.signature.recipe_outputs[i].name,
                                                      "' is made of the range of all requests"));
  }
  return absl::OkStatus();
}

// Returns in words that nodes quantise by the range of a request: "2 nodes quantise ...".
std::string RangesText(const std::vector<std::string>& nodes) {
  if (nodes.empty()) return "";
  const bool one = nodes.size() == 1;
  return absl::StrCat(nodes.size(), one ? " node quantises" : " nodes quantise",
                      " by the range of a whole request, ", nodes[0], one ? "" : " the first",
                      "; packed, each request has a range of its own");
}

}  // namespace

void ModelPacker::Refuse(ModelDraft& model, absl::string_view reason) const {
  model.proof->packing = nullptr;
  model.proof->packing_refusal = std::string(reason);
  context_.log(absl::StrCat("model ", model.id().name,
                            ": requests are padded, not packed: ", model.proof->packing_refusal));
}

void ModelPacker::Pack(ModelDraft& model, const std::vector<std::vector<int64_t>>& buckets,
                       const PaddingProof* proof) const {
  if (model.options.packing == PackingMode::kOff) return;
  absl::StatusOr<PackingPtr> packing = MakeProved(model.view(), buckets, proof);
  if (!packing.ok()) return Refuse(model, packing.status().message());
  model.proof->packing = *std::move(packing);
  if (!model.proof->packing->has_request_scales()) return;
  Graph by_request = *model.program->graph;
  model.proof->packing_reason = RangesText(ScaleByRequest(by_request));
  context_.log(absl::StrCat("model ", model.id().name,
                            ": requests are packed: ", model.proof->packing_reason));
}

absl::StatusOr<ModelPacker::PackingPtr> ModelPacker::MakeProved(
    const ModelView& model, const std::vector<std::vector<int64_t>>& buckets,
    const PaddingProof* proof) {
  if (!MayPack(model)) return absl::UnimplementedError("it needs a batch and one other axis");
  for (const ModelAxis& axis : model.proof.axes) {
    if (!model.options.no_padding.contains(axis.label)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("axis ", axis.label, " is never padded: ", axis.certificate.reason));
  }
  if (proof != nullptr) {
    Graph by_request = *model.program.graph;
    const bool by_range = !ScaleByRequest(by_request).empty();
    const size_t sequence = SequenceOf(model);
    const int64_t largest =
        LargestTaken(model.proof.axes, *model.program.graph, sequence, buckets[sequence]);
    RETURN_IF_ERROR(proof->ProvePacking(by_range ? &by_request : nullptr, sequence, largest));
    if (by_range) RETURN_IF_ERROR(CheckOutputs(model, by_request));
  }
  return Make(model, buckets);
}

bool ModelPacker::MayPack(const ModelView& model) {
  return model.proof.axes.size() == kBatchAndSequence && model.signature.batch_axis >= 0;
}

absl::StatusOr<ModelPacker::PackingPtr> ModelPacker::Make(
    const ModelView& model, const std::vector<std::vector<int64_t>>& buckets) {
  if (!MayPack(model)) {
    return absl::UnimplementedError("it needs a batch and one other axis");
  }
  const auto sequence = static_cast<int>(SequenceOf(model));
  int64_t max_segments = buckets[model.signature.batch_axis].back();
  if (model.options.max_batch_size > 0) {
    max_segments = std::min(max_segments, model.options.max_batch_size);
  }
  PackOptions options = {.batch = model.proof.axes[model.signature.batch_axis].symbol,
                         .sequence = model.proof.axes[sequence].symbol};
  // Buckets beyond the sizes that the model takes are dropped later; so here.
  ValueShapes shapes(*model.program.graph, {.axes = {{options.batch, kFewRows}}});
  for (const int64_t length : buckets[sequence]) {
    if (options.longest > 0 && !shapes.Takes({{options.sequence, length}}).ok()) break;
    options.longest = length;
  }
  ASSIGN_OR_RETURN(Packing packing, Packing::Make(*model.program.graph, options, sequence,
                                                  {.max_tokens = model.options.max_batch_tokens,
                                                   .max_segments = max_segments}));
  return std::make_shared<const Packing>(std::move(packing));
}

}  // namespace reprise
