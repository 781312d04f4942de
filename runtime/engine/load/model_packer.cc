#include "runtime/engine/load/model_packer.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/attention/segment_op.h"
#include "runtime/passes/read/value_shapes.h"
#include "runtime/verify/packing_check.h"

namespace reprise {
namespace {

constexpr size_t kBatchAndSequence = 2;
constexpr int64_t kFewRows = 2;

// Returns the axis that prevents packing; empty: none.
std::string AxisInTheWay(const std::vector<ModelAxis>& axes) {
  for (const ModelAxis& axis : axes) {
    if (axis.certificate.certified) continue;
    return absl::StrCat("axis ", axis.label, " is never padded: ", axis.certificate.reason);
  }
  return "";
}

// Returns whether a mask of a request meets a table that hides keys, but none in sequences as short
// as the ones that are tried packed: then the result of a query that sees no key was not tested.
bool HidesBeyondTheCheck(const Graph& graph) {
  constexpr size_t kMask = SegmentAttentionOp::kMask, kTable = SegmentAttentionOp::kBias;
  constexpr double kHidden = -1e30;
  for (const NodeId id : graph.NodeIds()) {
    const Node& node = graph.node(id);
    if (node.op != SegmentAttentionOp::kName || node.input(kMask) == kNone) continue;
    const Tensor* table =
        node.input(kTable) == kNone ? nullptr : graph.ConstantOf(node.inputs[kTable]);
    if (table == nullptr) continue;
    const std::vector<double> values = table->ToDoubles();
    const int64_t length = table->shape().back();
    bool near = false, far = false;
    for (int64_t i = 0; i < static_cast<int64_t>(values.size()); ++i) {
      if (values[i] > kHidden) continue;
      const int64_t key = i % length, query = i / length % length;
      (std::max(key, query) < PackingCheck::kWithHoles ? near : far) = true;
    }
    if (far && !near) return true;
  }
  return false;
}

}  // namespace

void ModelPacker::Refuse(ModelDraft& model, absl::string_view reason) const {
  model.proof->packing = nullptr;
  model.proof->packing_refusal = std::string(reason);
  context_.log(absl::StrCat("model ", model.id().name,
                            ": requests are padded, not packed: ", model.proof->packing_refusal));
}

bool ModelPacker::IsRefused(ModelDraft& model) const {
  if (model.options.packing == PackingMode::kOff) return true;
  const std::string reason = AxisInTheWay(model.proof->axes);
  if (reason.empty()) return false;
  Refuse(model, reason);
  return true;
}

void ModelPacker::Pack(ModelDraft& model, const std::vector<std::vector<int64_t>>& buckets) const {
  if (!IsRefused(model)) Pack(model, Make(model.view(), buckets));
}

void ModelPacker::Pack(ModelDraft& model, absl::StatusOr<PackingPtr> packing) const {
  if (IsRefused(model)) return;
  if (!packing.ok()) return Refuse(model, packing.status().message());
  const bool proved = absl::c_all_of(model.proof->axes,
                                     [](const ModelAxis& axis) { return axis.certificate.proved; });
  if (!proved && HidesBeyondTheCheck((*packing)->graph())) {
    return Refuse(model, "its masks are joined with a window, and no operator proves that safe");
  }
  model.proof->packing = *std::move(packing);
}

void ModelPacker::PackByRequest(ModelDraft& model, absl::StatusOr<RequestProof::Found> found,
                                absl::StatusOr<PackingPtr> packing) const {
  if (!found.ok()) {
    Refuse(model, absl::StrCat(AxisInTheWay(model.proof->axes),
                               "; with ranges and ends of each request by itself: ",
                               std::string(found.status().message())));
    return;
  }
  for (size_t i = 0; i < model.proof->axes.size(); ++i) {
    model.proof->axes[i].certificate.must_count = std::move(found->must_count[i]);
    model.proof->axes[i].certificate.together = std::move(found->together[i]);
  }
  PackByRequest(model, std::move(packing), found->reason);
}

void ModelPacker::PackByRequest(ModelDraft& model, absl::StatusOr<PackingPtr> packing,
                                absl::string_view reason) const {
  if (!packing.ok()) {
    Refuse(model, packing.status().message());
    return;
  }
  model.proof->packing = *std::move(packing);
  model.proof->packing_reason = std::string(reason);
  context_.log(absl::StrCat("model ", model.id().name,
                            ": requests are packed, although none may be padded: ", reason));
}

bool ModelPacker::MayPack(const ModelView& model) {
  return model.proof.axes.size() == kBatchAndSequence && model.signature.batch_axis >= 0;
}

absl::StatusOr<ModelPacker::PackingPtr> ModelPacker::Make(
    const ModelView& model, const std::vector<std::vector<int64_t>>& buckets) {
  if (!MayPack(model)) {
    return absl::UnimplementedError("it needs a batch and one other axis");
  }
  const int sequence = model.signature.batch_axis == 0 ? 1 : 0;
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
