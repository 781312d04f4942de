#include "runtime/passes/pack/pack_tokens.h"

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/kit/pass.h"
#include "runtime/passes/pack/packer.h"
#include "runtime/passes/specialize/specialize.h"

namespace reprise {
namespace {

// Sizes of the batch that are no size of a dim twice in a row by chance.
constexpr int64_t kRows[] = {3, 7};

absl::StatusOr<Graph> FusedAt(const Graph& symbolic, const PackOptions& options,
                              const pack::Sizes& sizes) {
  ASSIGN_OR_RETURN(Graph graph, Specialize(symbolic, {.axes = {{options.batch, sizes.rows},
                                                               {options.sequence, sizes.length}}}));
  // Recipes are made of the packed graph later: passes that they alone need run there.
  RETURN_IF_ERROR(RunCapturePasses(
      graph, {.disabled = {"hoist_picks", "attend_by_head", "fuse_transpose", "finalize_outputs"},
              .verify = false}));
  return graph;
}

}  // namespace

absl::StatusOr<Graph> PackTokens(const Graph& symbolic, const PackOptions& options) {
  constexpr int64_t kShortest = 3;
  if (options.longest < kShortest) {
    return absl::UnimplementedError(
        absl::StrCat("no segment is longer than ", options.longest, " tokens"));
  }
  pack::Twins twins;
  twins.at_a = {kRows[0], options.longest};
  twins.at_b = {kRows[1], options.longest - 1};
  ASSIGN_OR_RETURN(twins.a, FusedAt(symbolic, options, twins.at_a));
  ASSIGN_OR_RETURN(twins.b, FusedAt(symbolic, options, twins.at_b));
  ASSIGN_OR_RETURN(Graph packed, pack::Packer(twins, symbolic, options).Run());
  // Tables by position that are made from parameters become part of the prepare program.
  RETURN_IF_ERROR(RunLoadPasses(packed));
  return packed;
}

}  // namespace reprise
