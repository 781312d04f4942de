#include "runtime/device/cpu/movement/movement_plans.h"

namespace reprise::cpu {
namespace {

// The ops that have kernels here; the rows of one op are asked in order.
// clang-format off
constexpr OpPlan kPlans[] = {
    {"Gather", PlanGather},
    {"reprise.CheckRange", PlanCheckRange},
    {"reprise.EmbeddingSum", PlanEmbeddingSum},
    {"Transpose", PlanTranspose},
    {"Slice", PlanSlice},
    {"Expand", PlanExpand},
    {"Tile", PlanTile},
    {"Concat", PlanConcat},
    {"reprise.AppendRows", PlanAppendRows},
    {"reprise.LiveFill", PlanLiveFill},
    {"reprise.LiveExtent", PlanLiveExtent},
    {"reprise.LiveMask", PlanLiveMask},
    {"Split", PlanSplit},
    {"DepthToSpace", PlanBlocks},
    {"SpaceToDepth", PlanBlocks},
    {"Pad", PlanPad},
    {"Trilu", PlanTrilu},
    {"GatherElements", PlanGatherElements},
    {"GatherND", PlanGatherNd},
    {"ScatterElements", PlanScatterElements},
    {"ScatterND", PlanScatterNd},
};
// clang-format on

// Every op of prepare programs that is this family's own. (No constexpr: a sanitizer does not take
// the addresses of names for known.)
const OpPrepare kPrepares[] = {
    {kPackInt8RowsOp,
     [](const PrepareCall& call) {
       return RunPackInt8Rows(call.weight(), call.input(1), call.input(2), call.memory);
     }},
};

}  // namespace

KernelFamily MovementFamily() { return {kPlans, kPrepares}; }

}  // namespace reprise::cpu
