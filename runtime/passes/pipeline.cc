// THE ordered list of passes.
#include "runtime/passes/pipeline.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/verifier.h"
#include "runtime/passes/fuse/fuse_passes.h"
#include "runtime/passes/kit/load_passes.h"
#include "runtime/passes/layout/layout_passes.h"
#include "runtime/passes/pack/pack_passes.h"
#include "runtime/passes/paged/paged_passes.h"
#include "runtime/passes/quantized/quantized_passes.h"
#include "runtime/passes/simplify/fold_constants.h"
#include "runtime/passes/simplify/simplify_passes.h"

namespace reprise {
namespace {

using Factory = std::unique_ptr<Pass> (*)();

// clang-format off
// Once a model, without shapes.
constexpr Factory kLoadPasses[] = {
    LoopInvariants,
    LoopDistances,  // Before graphs are cut at loops.
    WidenHalf,  // Before all that looks for float32.
    FoldConstants,
    PrepareParameters,
    Canonicalize,
    MergeCommon,
    EliminateDead,
};

// Once a capture, with constant shapes.
constexpr Factory kCapturePasses[] = {
    Canonicalize,
    MergeCommon,
    FuseLayerNorm,
    FuseRmsNorm,
    FuseGroupNorm,
    FuseGelu,
    FuseIntegerLinear,
    FuseIntegerConv,
    FuseFakeQuantize,  // Takes what products by integers have left.
    FuseLinear,
    CropWindows,      // While convolutions are still Conv.
    FuseConv,
    FuseRotary,       // Before attention, which finds its heads after it.
    FuseAttention,
    FuseRelativeAttention,  // Takes what attention adds to its scores.
    FuseQkv,
    SplitLinear,      // After attention took the operands that it reads as they are.
    FuseLinear,       // Activations after the pieces.
    FuseEmbedding,
    FuseAddLayerNorm,
    FuseResidual,
    FuseRequantize,   // After all else that follows a product has joined it.
    ChannelsLast,
    ChooseLayouts,    // Float planes alone.
    HoistPicks,       // After fusions took the other readers of a result.
    AttendByHead,
    PageAttention,    // Where queries share heads of keys, these are found.
    Canonicalize,     // Views that fusions put in a row, masks that became constant.
    MergeCommon,      // Masks that each attention made for itself.
    EliminateDead,
    ShardProducts,    // After all that joins products; where several ranks compute the model.
    CutStages,        // The same, where ranks have some of the layers each.
    FuseTranspose,    // After all that looks for a Transpose, or for MatMul.
    RoundProducts,    // After all that makes products or joins them; not where answers are exact.
    SplitWide,        // After all that changes the number of pieces.
    FinalizeOutputs,  // Last: it adds what Canonicalize would take away.
};
// clang-format on

// The passes that run where nodes are to be computed as the file has them: those that a graph
// cannot be compiled without, and those that leave the arithmetic of every node as it is.
constexpr Factory kWithoutFusion[] = {
    LoopInvariants, LoopDistances, WidenHalf,     FoldConstants, PrepareParameters,
    MergeCommon,    EliminateDead, RoundProducts, SplitWide,     FinalizeOutputs,
};

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

absl::Status Annotate(const absl::Status& status, absl::string_view pass) {
  return absl::Status(status.code(), absl::StrCat("pass ", pass, ": ", status.message()));
}

absl::Status CheckDisabled(const PipelineOptions& options) {
  const std::vector<std::string> known = PassNames();
  for (const std::string& name : options.disabled) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("there is no pass '", name, "', only ", absl::StrJoin(known, ", ")));
  }
  return absl::OkStatus();
}

// Returns the pass that divides a step among ranks; null where one process computes all of it.
Factory OfRanks(const Shard& shard) {
  if (shard.ranks <= 1) return nullptr;
  return shard.parallelism == Parallelism::kPipeline ? CutStages : ShardProducts;
}

// `budget`: of the load that the passes belong to; null: they may take any time.
absl::Status RunPasses(absl::Span<const Factory> passes, Graph& graph,
                       const PipelineOptions& options, bool specialized, const PassWatcher& watcher,
                       const LoadBudget* budget = nullptr) {
  RETURN_IF_ERROR(CheckDisabled(options));
  for (const Factory factory : passes) {
    const bool rounds = options.precision != Precision::kExact || options.nodes != nullptr ||
                        options.weights != WeightBits::kStored;
    if (factory == RoundProducts && !rounds) continue;
    if ((factory == ShardProducts || factory == CutStages) && factory != OfRanks(options.shard)) {
      continue;
    }
    const std::unique_ptr<Pass> pass = factory == FoldConstants   ? FoldConstantsWithin(budget)
                                       : factory == RoundProducts ? RoundProductsAs(options)
                                       : factory == ShardProducts
                                           ? ShardProductsAmong(options.shard)
                                       : factory == CutStages ? CutStagesAmong(options.shard)
                                                              : factory();
    if (std::find(options.disabled.begin(), options.disabled.end(), pass->name()) !=
        options.disabled.end()) {
      continue;
    }
    const int64_t start_ns = NowNs();
    const absl::StatusOr<bool> changed = pass->Run(graph);
    if (!changed.ok()) return Annotate(changed.status(), pass->name());
    if (budget != nullptr) {
      RETURN_IF_ERROR(budget->CheckTime(absl::StrCat("pass ", pass->name())));
    }
    if (*changed && !graph.Compact()) {
      return Annotate(absl::InternalError("it left a cycle in the graph"), pass->name());
    }
    const int64_t elapsed_ns = NowNs() - start_ns;
    if (*changed && options.verify) {
      if (absl::Status status = Verify(graph, specialized); !status.ok()) {
        return Annotate(status, pass->name());
      }
    }
    if (watcher) {
      watcher({.pass = pass->name(), .changed = *changed, .ns = elapsed_ns}, graph);
    }
  }
  return absl::OkStatus();
}

// Returns the observer of `options` as a watcher; none where there is none.
PassWatcher ObserverOf(const PipelineOptions& options) {
  if (!options.observer) return nullptr;
  return [&observer = options.observer](const PassRun& run, const Graph& graph) {
    if (run.changed) observer(run.pass, graph, run.ns);
  };
}

// Adds the names of `passes` to `names` where they are not among them.
void AddNames(absl::Span<const Factory> passes, std::vector<std::string>& names) {
  for (const Factory factory : passes) {
    std::string name(factory()->name());
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(std::move(name));
    }
  }
}

}  // namespace

std::vector<std::string> PassNames() {
  std::vector<std::string> names = LoadPassNames();
  AddNames(kCapturePasses, names);
  return names;
}

std::vector<std::string> LoadPassNames() {
  std::vector<std::string> names;
  AddNames(kLoadPasses, names);
  return names;
}

std::vector<std::string> CapturePassNames() {
  std::vector<std::string> names;
  AddNames(kCapturePasses, names);
  return names;
}

std::vector<std::string> FusionPassNames() {
  std::vector<std::string> kept;
  AddNames(kWithoutFusion, kept);
  std::vector<std::string> names = PassNames();
  std::erase_if(names, [&](const std::string& name) {
    return std::find(kept.begin(), kept.end(), name) != kept.end();
  });
  return names;
}

absl::Status WatchLoadPasses(Graph& graph, const PipelineOptions& options,
                             const PassWatcher& watcher) {
  return RunPasses(kLoadPasses, graph, options, /*specialized=*/false, watcher);
}

absl::Status WatchCapturePasses(Graph& graph, const PipelineOptions& options,
                                const PassWatcher& watcher) {
  return RunPasses(kCapturePasses, graph, options, /*specialized=*/true, watcher);
}

absl::Status RunLoadPasses(Graph& graph, const PipelineOptions& options) {
  return WatchLoadPasses(graph, options, ObserverOf(options));
}

absl::Status RunLoadPassesWithin(Graph& graph, const LoadBudget& budget,
                                 const PipelineOptions& options) {
  return RunPasses(kLoadPasses, graph, options, /*specialized=*/false, nullptr, &budget);
}

absl::Status RunCapturePasses(Graph& graph, const PipelineOptions& options) {
  return WatchCapturePasses(graph, options, ObserverOf(options));
}

}  // namespace reprise
