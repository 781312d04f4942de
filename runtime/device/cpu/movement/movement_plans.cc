#include "runtime/device/cpu/movement/movement_plans.h"

#include "runtime/ops/movement/append_rows_op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/ranks_op.h"
#include "runtime/ops/movement/scatter_op.h"
#include "runtime/ops/movement/slice_op.h"
#include "runtime/ops/movement/transpose_op.h"
#include "runtime/ops/windows/live_op.h"

namespace reprise::cpu {
namespace {

// The ops that have kernels here; the rows of one op are asked in order.
// clang-format off
constexpr OpPlan kPlans[] = {
    {GatherOp::kName, PlanGather},
    {CheckRangeOp::kName, PlanCheckRange},
    {EmbeddingSumOp::kName, PlanEmbeddingSum},
    {TransposeOp::kName, PlanTranspose},
    {SliceOp::kName, PlanSlice},
    {ExpandOp::kName, PlanExpand},
    {TileOp::kName, PlanTile},
    {ConcatOp::kName, PlanConcat},
    {AppendRowsOp::kName, PlanAppendRows},
    {AllReduceOp::kName, PlanAllReduce},
    {AllGatherOp::kName, PlanAllGather},
    {BroadcastOp::kName, PlanBroadcast},
    {LiveFillOp::kName, PlanLiveFill},
    {LiveExtentOp::kName, PlanLiveExtent},
    {LiveMaskOp::kName, PlanLiveMask},
    {LiveShareOp::kName, PlanLiveShare},
    {LiveCompactOp::kName, PlanLiveCompact},
    {SplitOp::kName, PlanSplit},
    {"DepthToSpace", PlanBlocks},
    {"SpaceToDepth", PlanBlocks},
    {"Pad", PlanPad},
    {"Trilu", PlanTrilu},
    {GatherElementsOp::kName, PlanGatherElements},
    {GatherNdOp::kName, PlanGatherNd},
    {ScatterElementsOp::kName, PlanScatterElements},
    {ScatterNdOp::kName, PlanScatterNd},
};
// clang-format on

// Every op of prepare programs that is this family's own. (No constexpr: a sanitizer does not take
// the addresses of names for known.)
const OpPrepare kPrepares[] = {
    {kPackInt8RowsOp, RunPackInt8Rows},
};

}  // namespace

KernelFamily MovementFamily() { return {kPlans, kPrepares}; }

}  // namespace reprise::cpu
