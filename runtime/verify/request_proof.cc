#include "runtime/verify/request_proof.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/shape_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/quantized/quantize_op.h"
#include "runtime/passes/pack/request_scales.h"
#include "runtime/verify/packing_check.h"

namespace reprise {
namespace {

using Verdict = AxisFinding::Verdict;

// Rounds of mixes, and where the ops leave something open.
constexpr int kMixSweeps = 1, kMoreMixSweeps = 4;

// It takes some of what it has by numbers that count from the end.
bool MayTakeEnd(const Graph& graph, const Node& node) {
  if (node.op != GatherOp::kName && node.op != SliceOp::kName) return false;
  if (graph.ProducerIf(node.inputs[0], ShapeOp::kName) != nullptr) return false;
  const Tensor* places = graph.ConstantOf(node.inputs[1]);
  if (places == nullptr) return false;
  const std::vector<double> values = places->ToDoubles();
  return absl::c_any_of(values, [](double place) { return place == -1; });
}

}  // namespace

bool RequestProof::applies() const {
  const Graph& graph = subject_.graph;
  return absl::c_any_of(graph.NodeIds(), [&](NodeId id) {
    return graph.node(id).op == DynamicQuantizeLinearOp::kName || MayTakeEnd(graph, graph.node(id));
  });
}

absl::StatusOr<RequestProof::Found> RequestProof::Run(ProberLanes& lanes,
                                                      absl::Span<const InputRange> ranges,
                                                      absl::Span<const int64_t> largest) const {
  Graph by_request = subject_.graph;
  const std::vector<std::string> replaced = ScaleByRequest(by_request);
  const size_t axes = subject_.axes.size();
  std::vector<AxisFinding> findings(axes);
  Found found;
  found.must_count.resize(axes);
  found.together.resize(axes);
  // Nothing is run of this graph: its ranges would be those of whatever lies in a tensor.
  ProberLanes read(subject_, by_request, runners_, ProberLanes::Use::kRead);
  RETURN_IF_ERROR(read.ForEach(axes, [&](size_t i, const PaddingProber& prober) {
    const ModelAxis& axis = subject_.axes[i];
    AxisCertificate guess = {.axis = axis.label, .certified = true};
    if (!axis.is_batch) guess.guards = prober.WithMasks(axis.symbol, ranges, {});
    findings[i] = prober.FindLeakUnpadded(i, ranges, largest[i], guess);
    found.together[i] = findings[i].needs.together;
    if (findings[i].needs.places != CountingPlaces::kNone) {
      for (const std::string& guard : prober.MaskGuards(ranges, guess)) {
        found.must_count[i][guard] = findings[i].needs.places;
      }
    }
    return absl::OkStatus();
  }));
  std::string open;
  for (const AxisFinding& finding : findings) {
    if (finding.verdict == Verdict::kMixes) {
      return absl::FailedPreconditionError(MixingWords(finding));
    }
    if (finding.verdict == Verdict::kUndecided) {
      absl::StrAppend(&open, "; measured, not proved: ", MixingWords(finding));
    }
  }
  ASSIGN_OR_RETURN(const PackedForm form, runners_.Pack());
  int answers = 0;
  RETURN_IF_ERROR(lanes.ForEach(1, [&](size_t, const PaddingProber& prober) {
    PackingCheck check(form);
    const absl::Status status = prober.Check(
        check, ranges, PaddingProber::OptionsFor(subject_, prober.graph(), form.sequence_axis),
        {.sweeps = open.empty() ? kMixSweeps : kMoreMixSweeps, .any_mask = form.takes_any_mask});
    answers = check.answers();
    return status;
  }));
  const std::string why =
      replaced.empty()
          ? "it takes what lies at the end of a request; packed, each has its own end, and no node "
          : absl::StrCat(replaced.size(),
                         replaced.size() == 1 ? " node quantises" : " nodes quantise",
                         " by the range of a whole request, ", replaced[0],
                         replaced.size() == 1 ? "" : " the first",
                         "; packed, each request has a range of its own, and no other node ");
  found.reason =
      absl::StrCat(why, "lets requests meet", open, "; the same as alone in ", answers, " answers");
  return found;
}

}  // namespace reprise
