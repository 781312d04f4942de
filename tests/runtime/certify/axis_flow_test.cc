// The static part of the certificate: its findings about small graphs, read at two sizes.
#include "runtime/certify/axis_flow.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/runtime/certify/flow_graphs.h"

namespace reprise {
namespace {

constexpr int64_t kSmall = 19, kLarge = 23;

struct FlowCase {
  const char* name;
  const char* body;
  AxisFinding::Verdict verdict;
  const char* words = "";  // the finding, as a whole sentence
  bool is_batch = false;
};

void PrintTo(const FlowCase& c, std::ostream* out) { *out << c.name; }

const FlowCase kFlowCases[] = {
    {"TokenByToken", R"(
  input %x: f32[2, $S, 8]
  const %w: f32[2] = {1.0, 2.0}
  const %s: f32[] = {3.0}
  %a: ? = Mul(%x, %s)
  %y: ? = Softmax(%a) {axis = -1})",
     kProved},
    {"IdsAsOnesAmongZeros", R"(
  input %ids: i64[2, $S]
  const %depth: i64[] = {6}
  const %values: f32[2] = {0, 1}
  const %w: f32[6, 3] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9}
  %hot: ? = OneHot(%ids, %depth, %values) {axis = -1}
  %y: ? = MatMul(%hot, %w))",
     kProved},
    {"OnesAmongZerosInFrontOfPositions", R"(
  input %ids: i64[2, $S]
  const %depth: i64[] = {6}
  const %values: f32[2] = {0, 1}
  const %all: i64[1] = {2}
  %hot: ? = OneHot(%ids, %depth, %values) {axis = 0}
  %y: ? = ReduceMax(%hot, %all) {keepdims = 0} @pool)",
     kMixes, "node 'pool' (ReduceMax) takes the largest over tokens"},
    {"AsManyZerosAsPositions", R"(
  input %ids: i64[2, $S]
  const %depth: i64[] = {$S}
  const %values: f32[2] = {0, 1}
  %y: ? = OneHot(%ids, %depth, %values) {axis = -1} @hot)",
     kMixes,
     "node 'hot' (OneHot) picks by data, which may count from the end, among the positions of "
     "tokens"},
    {"CopiesOfPositionsBehindEachOther", R"(
  input %x: f32[2, $S, 8]
  const %times: i64[3] = {1, 2, 1}
  const %low: f32[] = {-0.5}
  const %high: f32[] = {0.5}
  %twice: ? = Tile(%x, %times)
  %y: ? = Clip(%twice, %low, %high))",
     kMixes, "output 'y' holds several lines, one behind the other, of tokens"},
    {"PositionsBehindThemselves", R"(
  input %x: f32[2, $S, 8]
  %twice: ? = Concat(%x, %x) {axis = 1}
  %y: ? = Tanh(%twice))",
     kMixes, "output 'y' holds several lines, one behind the other, of tokens"},
    {"CopiesOfPositionsTakenApart", R"(
  input %x: f32[2, $S, 8]
  const %times: i64[3] = {1, 2, 1}
  const %form: i64[4] = {2, 2, $S, 8}
  %twice: ? = Tile(%x, %times)
  %y: ? = Reshape(%twice, %form))",
     kProved},
    {"CopiesOfAWeightForEachRow", R"(
  input %x: f32[$S, 5, 4]
  const %w: f32[1, 4, 2] = {1, 2, 3, 4, 5, 6, 7, 8}
  const %times: i64[3] = {$S, 1, 1}
  %copies: ? = Tile(%w, %times)
  %y: ? = MatMul(%x, %copies))",
     kProved, "", /*is_batch=*/true},
    {"CopiesOfTheRowsThemselves", R"(
  input %x: f32[$S, 4]
  const %times: i64[2] = {$S, 1}
  %y: ? = Tile(%x, %times) @"/Tile")",
     kUndecided, "node '/Tile' (Tile) relates positions in a way that is not known, of tokens",
     /*is_batch=*/true},
    {"MeanOfAll", R"(
  input %x: f32[2, $S, 8]
  const %axes: i64[1] = {1}
  %y: ? = ReduceMean(%x, %axes) @"/pool/ReduceMean")",
     kMixes, "node '/pool/ReduceMean' (ReduceMean) averages over tokens"},
    {"NodesWithoutANameAreCalledByTheirResult", R"(
  input %x: f32[2, $S, 8]
  const %axes: i64[1] = {1}
  %y: ? = ReduceMax(%x, %axes))",
     kMixes, "node 'y' (ReduceMax) takes the largest over tokens"},
    {"SumOfWhatTheMaskLeaves", R"(
  input %x: f32[2, $S, 8]
  input %mask: f32[2, $S, 1]
  const %axes: i64[1] = {1}
  %masked: ? = Mul(%x, %mask)
  %y: ? = ReduceSum(%masked, %axes))",
     kProved},
    {"MeanOfWhatTheMaskLeavesCountsThePadding", R"(
  input %x: f32[2, $S, 8]
  input %mask: f32[2, $S, 1]
  const %axes: i64[1] = {1}
  %masked: ? = Mul(%x, %mask)
  %y: ? = ReduceMean(%masked, %axes) @mean)",
     kMixes, "node 'mean' (ReduceMean) averages over tokens"},
    {"PlacesBelowALengthAreAMask", R"(
  input %x: f32[2, $S, 8]
  input %lengths: i64[2, 1]
  const %axes: i64[1] = {1}
  const %last: i64[1] = {2}
  const %zero: f32[] = {0.0}
  const %none: i64[] = {0}
  const %step: i64[] = {1}
  const %size: i64[] = {$S}
  %places: ? = Range(%none, %size, %step)
  %inside: ? = Less(%places, %lengths)
  %wide: ? = Unsqueeze(%inside, %last)
  %left: ? = Where(%wide, %x, %zero)
  %y: ? = ReduceSum(%left, %axes) @sum)",
     kMixes},
    {"HalvesOfADimBelongToOnePosition", R"(
  input %x: f32[2, $S, 8]
  const %flat: i64[2] = {2, -1}
  const %axes: i64[1] = {1}
  %wide: ? = Reshape(%x, %flat)
  %y: ? = ReduceSum(%wide, %axes) @sum)",
     kMixes, "node 'sum' (ReduceSum) adds up over tokens"},
    {"RowsAndTokensInOneDimAndBack", R"(
  input %x: f32[2, $S, 8]
  const %flat: i64[2] = {-1, 8}
  const %back: i64[3] = {2, -1, 8}
  %all: ? = Reshape(%x, %flat)
  %more: ? = Relu(%all)
  %y: ? = Reshape(%more, %back))",
     kProved},
    {"RowsAndTokensInOneDimAsAnAnswer", R"(
  input %x: f32[2, $S, 8]
  const %flat: i64[2] = {-1, 8}
  %y: ? = Reshape(%x, %flat))",
     kMixes, "output 'y' holds several lines, one behind the other, of tokens"},
    {"SumsSoFarOverRowsAndTokens", R"(
  input %x: f32[2, $S, 8]
  const %flat: i64[2] = {-1, 8}
  const %back: i64[3] = {2, -1, 8}
  const %axis: i64[] = {0}
  %all: ? = Reshape(%x, %flat)
  %sums: ? = CumSum(%all, %axis) @sums
  %y: ? = Reshape(%sums, %back))",
     kMixes, "node 'sums' (CumSum) adds up, line after line, over tokens"},
    {"SumsSoFarOverRowsAndMaskedTokens", R"(
  input %x: f32[2, $S]
  input %mask: f32[2, $S]
  const %flat: i64[1] = {-1}
  const %back: i64[2] = {2, -1}
  const %axis: i64[] = {0}
  %left: ? = Mul(%x, %mask)
  %all: ? = Reshape(%left, %flat)
  %sums: ? = CumSum(%all, %axis)
  %y: ? = Reshape(%sums, %back))",
     kProved},
    {"EarliestOfTimesThatAClientSends", R"(
  input %times: f32[2, $S]
  input %mask: f32[2, $S]
  const %axes: i64[1] = {1}
  const %none: f32[] = {0.0}
  const %late: f32[] = {1e9}
  %counts: ? = Greater(%mask, %none)
  %left: ? = Where(%counts, %times, %late)
  %y: ? = ReduceMin(%left, %axes) @first)",
     kMixes, "node 'first' (ReduceMin) takes the smallest over tokens"},
    {"LargestSquare", R"(
  input %x: f32[2, $S]
  input %mask: f32[2, $S]
  const %axes: i64[1] = {1}
  %squares: ? = Mul(%x, %x)
  %left: ? = Mul(%squares, %mask)
  %y: ? = ReduceMax(%left, %axes))",
     kProved},
    {"LargestSquareOfIntegersWhichMayWrap", R"(
  input %x: i32[2, $S]
  input %mask: f32[2, $S]
  const %axes: i64[1] = {1}
  %squares: ? = Mul(%x, %x)
  %counts: ? = Cast(%mask) {to = 6}
  %left: ? = Mul(%squares, %counts)
  %y: ? = ReduceMax(%left, %axes) @largest)",
     kMixes, "node 'largest' (ReduceMax) takes the largest over tokens"},
    {"ProductOverTokens", R"(
  input %x: f32[2, $S, 8]
  %turned: ? = Transpose(%x) {perm = [0, 2, 1]}
  %y: ? = MatMul(%turned, %x) @product)",
     kMixes, "node 'product' (MatMul) adds up products over tokens"},
    {"MaximumThatASoftmaxSubtracts", R"(
  input %scores: f32[2, $S]
  input %mask: f32[2, $S]
  const %axes: i64[1] = {1}
  const %one: f32[] = {1.0}
  const %low: f32[] = {-inf}
  %left_out: ? = Sub(%one, %mask)
  %lows: ? = Mul(%left_out, %low)
  %masked: ? = Add(%scores, %lows)
  %largest: ? = ReduceMax(%masked, %axes)
  %moved: ? = Sub(%masked, %largest)
  %powers: ? = Exp(%moved)
  %sum: ? = ReduceSum(%powers, %axes)
  %y: ? = Div(%powers, %sum))",
     kProved},
    {"StateAfterAll", R"(
  input %x: f32[$S, 2, 3]
  input %w: f32[1, 4, 3]
  input %r: f32[1, 4, 4]
  %states: ?, %y: ? = RNN(%x, %w, %r) {hidden_size = 4} @rnn)",
     kMixes, "node 'rnn' (RNN) ends in a state that has seen all of tokens"},
    {"EveryThirdToken", R"(
  input %x: f32[2, 8, $S]
  const %w: f32[1, 8, 1] = {1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0}
  %y: ? = Conv(%x, %w) {strides = [3]} @conv)",
     kProved},
    {"WindowsInStridesThatReachBehindTheEnd", R"(
  input %x: f32[2, 1, $S]
  const %w: f32[1, 1, 3] = {1.0, 2.0, 3.0}
  %y: ? = Conv(%x, %w) {pads = [1, 1], strides = [2]} @conv)",
     kMixes,
     "node 'conv' (Conv) reads windows in strides of 2, the last of which reaches past the end "
     "of "
     "tokens"},
    {"PadsThatFollowTheSize", R"(
  input %x: f32[2, 1, $S]
  const %w: f32[1, 1, 3] = {1.0, 2.0, 3.0}
  %y: ? = Conv(%x, %w) {auto_pad = "SAME_UPPER", strides = [2]} @conv)",
     kMixes,
     "node 'conv' (Conv) reads windows in strides of 2, the last of which reaches past the end "
     "of "
     "tokens"},
    {"AveragesThatRoundUpWhereNothingIsLeft", R"(
  input %x: f32[2, 1, $S, 4]
  %y: ? = AveragePool(%x) {ceil_mode = 1, kernel_shape = [1, 3]})",
     kProved},
    {"WindowsThatRoundUpAndNeverBeginBehindTheEnd", R"(
  input %x: f32[2, 1, $S]
  input %mask: bool[2, $S]
  const %axes: i64[1] = {2}
  const %size: i64[1] = {$S}
  const %rest: i64[1] = {10}
  %all: ? = reprise.LiveExtent(%mask, %size)
  %low: ? = reprise.LiveFill(%x, %all) {axis = 2, value = -inf}
  %largest: ? = MaxPool(%low) {ceil_mode = 1, kernel_shape = [2], pads = [1, 1], strides = [2]}
  %halves: ? = reprise.LiveExtent(%mask, %rest) {offset = 2, stride = 2}
  %zeros: ? = reprise.LiveFill(%largest, %halves) {axis = 2}
  %y: ? = ReduceSum(%zeros, %axes))",
     kProved},
    {"WindowsInStridesOverWhatIsFilledBehindTheEnd", R"(
  input %x: f32[2, 1, $S]
  input %mask: bool[2, $S]
  const %w: f32[1, 1, 3] = {1.0, 2.0, 3.0}
  const %axes: i64[1] = {2}
  const %size: i64[1] = {$S}
  const %rest: i64[1] = {9}
  %all: ? = reprise.LiveExtent(%mask, %size)
  %filled: ? = reprise.LiveFill(%x, %all) {axis = 2}
  %half: ? = Conv(%filled, %w) {pads = [1, 1], strides = [2]}
  %halves: ? = reprise.LiveExtent(%mask, %rest) {offset = 1, stride = 2}
  %low: ? = reprise.LiveFill(%half, %halves) {axis = 2, value = -inf}
  %largest: ? = MaxPool(%low) {kernel_shape = [3], pads = [1, 1]}
  %zeros: ? = reprise.LiveFill(%largest, %halves) {axis = 2}
  %y: ? = ReduceSum(%zeros, %axes))",
     kProved},
    {"AveragesByTheShareThatCounts", R"(
  input %x: f32[2, 1, $S]
  input %mask: bool[2, $S]
  const %size: i64[1] = {$S}
  %all: ? = reprise.LiveExtent(%mask, %size)
  %filled: ? = reprise.LiveFill(%x, %all) {axis = 2}
  %sums: ? = AveragePool(%filled) {count_include_pad = 1, kernel_shape = [3], pads = [1, 1]}
  %share: ? = reprise.LiveShare(%all, %size) {axis = 2, begin = 1, end = 1, kernel = 3, rank = 3}
  %y: ? = Mul(%sums, %share))",
     kProved},
    {"AveragesByTheShareOfAllPositions", R"(
  input %x: f32[2, 1, $S]
  const %size: i64[1] = {$S}
  const %all: i32[1] = {$S}
  %each: ? = AveragePool(%x) {kernel_shape = [1]}
  %share: ? = reprise.LiveShare(%all, %size) {axis = 2, begin = 1, end = 1, kernel = 3, rank = 3} @share
  %y: ? = Mul(%each, %share))",
     kMixes, "node 'share' (reprise.LiveShare) takes numbers that follow the size of tokens"},
    {"FilledBehindTheEndOfSomethingElse", R"(
  input %x: f32[2, 1, $S]
  input %mask: bool[2, $S]
  const %w: f32[1, 1, 3] = {1.0, 2.0, 3.0}
  const %axes: i64[1] = {2}
  const %size: i64[1] = {$S}
  const %rest: i64[1] = {9}
  %all: ? = reprise.LiveExtent(%mask, %size)
  %fewer: ? = Conv(%x, %w)
  %filled: ? = reprise.LiveFill(%fewer, %all) {axis = 2} @fill
  %y: ? = ReduceSum(%filled, %axes))",
     kMixes, "node 'y' (ReduceSum) adds up over tokens"},
    {"SpreadOverWindows", R"(
  input %x: f32[2, 8, $S]
  const %w: f32[8, 1, 1] = {1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0}
  %y: ? = ConvTranspose(%x, %w) {strides = [2]} @up)",
     kUndecided, "node 'up' (ConvTranspose) spreads over windows the elements of tokens"},
    {"EachOfABatchIsSpreadByItself", R"(
  input %x: f32[$S, 8, 3]
  const %w: f32[8, 1, 1] = {1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0}
  %y: ? = ConvTranspose(%x, %w) {strides = [2]} @up)",
     kProved, "", true},
    {"PlacesOfAGrid", R"(
  input %x: f32[2, 3, 4, 5]
  input %grid: f32[2, $S, 3, 2]
  %y: ? = GridSample(%x, %grid))",
     kProved},
    {"SamplesOfAPlane", R"(
  input %x: f32[2, 3, 4, $S]
  input %grid: f32[2, 6, 3, 2]
  %y: ? = GridSample(%x, %grid) @warp)",
     kMixes, "node 'warp' (GridSample) samples at places between both ends of tokens"},
    {"EachOfABatchHasAGrid", R"(
  input %x: f32[$S, 3, 4, 5]
  input %grid: f32[$S, 6, 3, 2]
  %y: ? = GridSample(%x, %grid))",
     kProved, "", true},
    {"RegionsOfAnImage", R"(
  input %x: f32[1, 3, 4, 5]
  input %rois: f32[$S, 4]
  input %at: i64[$S]
  %y: ? = RoiAlign(%x, %rois, %at))",
     kProved},
    {"RegionsThatMayReachBehindTheEnd", R"(
  input %x: f32[1, 3, 4, $S]
  input %rois: f32[2, 4]
  input %at: i64[2]
  %y: ? = RoiAlign(%x, %rois, %at) @align)",
     kMixes, "node 'align' (RoiAlign) takes regions by their places in tokens"},
    {"ImagesThatRegionsFindInTheBatch", R"(
  input %x: f32[$S, 3, 4, 5]
  input %rois: f32[$S, 4]
  input %at: i64[$S]
  %y: ? = RoiAlign(%x, %rois, %at) @align)",
     kMixes, "node 'align' (RoiAlign) takes regions by their places in tokens", true},
    {"LookingBackIsNoHelpInABatch", R"(
  input %x: f32[$S, 8]
  const %axis: i64[] = {0}
  %y: ? = CumSum(%x, %axis) @sums)",
     kMixes, "node 'sums' (CumSum) adds up over tokens", true},
    {"FirstOfABatch", R"(
  input %x: f32[$S, 8]
  const %none: i64[1] = {0}
  %first: ? = Gather(%x, %none) {axis = 0} @first
  %y: ? = Sub(%x, %first))",
     kUndecided, "node 'first' (Gather) takes some of the positions of tokens", true},
    {"RowsLookedUpEachInItself", R"(
  input %x: f32[$S, 5, 4]
  input %ids: i64[$S, 5]
  %best: ? = ArgMax(%ids) {axis = 1}
  %y: ? = GatherND(%x, %best) {batch_dims = 1})",
     kProved, "", true},
    {"RowsLookedUpAnywhere", R"(
  input %x: f32[$S, 4]
  input %at: i64[$S, 1]
  %y: ? = GatherND(%x, %at) @rows)",
     kMixes,
     "node 'rows' (GatherND) picks by data, which may count from the end, among the positions of "
     "tokens",
     true},
    {"ElementsFoundAlongAnotherDim", R"(
  input %x: f32[2, $S, 8]
  input %at: i64[2, $S, 4]
  %y: ? = GatherElements(%x, %at) {axis = 2})",
     kProved},
    {"EachOfABatchFindsItsOwn", R"(
  input %x: f32[$S, 3, 8]
  input %at: i64[$S, 3, 4]
  %y: ? = GatherElements(%x, %at) {axis = -1})",
     kProved, "", true},
    {"ElementsOfATableByTheirPlaceInABatch", R"(
  input %x: f32[30, 8]
  input %at: i64[$S, 4]
  %y: ? = GatherElements(%x, %at) {axis = 1} @find)",
     kUndecided, "node 'find' (GatherElements) picks by data among the positions of tokens", true},
    {"ElementsFoundAmongThePositions", R"(
  input %x: f32[2, $S, 8]
  input %at: i64[2, 4, 8]
  %y: ? = GatherElements(%x, %at) {axis = 1} @find)",
     kMixes,
     "node 'find' (GatherElements) picks by data, which may count from the end, among the "
     "positions of tokens"},
    {"UnknownOps", R"(
  input %x: f32[2, 2, $S, 8]
  %y: ? = DepthToSpace(%x) {blocksize = 1} @odd)",
     kUndecided, "node 'odd' (DepthToSpace) moves elements across the positions of tokens"},
    {"PadsOfOtherDims", R"(
  input %x: f32[2, $S, 8]
  const %pads: i64[6] = {0, 0, 1, 0, 0, 2}
  %y: ? = Pad(%x, %pads))",
     kProved, ""},
    {"PadsInFront", R"(
  input %x: f32[2, $S, 8]
  const %pads: i64[6] = {0, 3, 0, 0, 0, 0}
  %y: ? = Pad(%x, %pads) @wide)",
     kProved, ""},
    {"PadsAfterAll", R"(
  input %x: f32[2, $S, 8]
  const %pads: i64[6] = {0, 0, 0, 0, 3, 0}
  %y: ? = Pad(%x, %pads) @wide)",
     kUndecided, "node 'wide' (Pad) moves elements across the positions of tokens"},
    {"ReflectsInFront", R"(
  input %x: f32[2, $S, 8]
  const %pads: i64[6] = {0, 3, 0, 0, 0, 0}
  %y: ? = Pad(%x, %pads) {mode = "reflect"} @wide)",
     kUndecided, "node 'wide' (Pad) moves elements across the positions of tokens"},
    {"IndicesOfPools", R"(
  input %x: f32[$S, 2, 8]
  %largest: ?, %y: ? = MaxPool(%x) {kernel_shape = [2]} @pool)",
     kUndecided, "node 'pool' (MaxPool) counts where the largest lie over all positions of tokens"},
};

class AxisFlowTest : public testing::TestWithParam<FlowCase> {};

TEST_P(AxisFlowTest, FindsTheFirstNodeThatMixes) {
  const FlowCase& c = GetParam();
  const AxisFinding finding = FindMixing(GraphAt(c.body, kSmall), GraphAt(c.body, kLarge),
                                         {.axis = "tokens",
                                          .is_batch = c.is_batch,
                                          .small_size = kSmall,
                                          .large_size = kLarge,
                                          .fills = {{"mask", 0}},
                                          .live = {"mask"}});
  EXPECT_EQ(finding.verdict, c.verdict) << MixingWords(finding);
  if (*c.words != '\0') {
    EXPECT_EQ(MixingWords(finding), c.words);
  }
}

INSTANTIATE_TEST_SUITE_P(Graphs, AxisFlowTest, testing::ValuesIn(kFlowCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(AxisFlowTest, ConstantsThatFollowTheSizeAreNoted) {
  const std::string body = R"(
  input %x: f32[2, $S]
  const %place: i64[] = {$L}
  %y: ? = Gather(%x, %place) {axis = 1} @last)";
  const auto at = [&](int64_t size) {
    return GraphAt(absl::StrReplaceAll(body, {{"$L", absl::StrCat(size - 1)}}), size);
  };
  const AxisFinding finding = FindMixing(
      at(kSmall), at(kLarge), {.axis = "tokens", .small_size = kSmall, .large_size = kLarge});
  EXPECT_EQ(finding.verdict, kMixes);
  EXPECT_EQ(MixingWords(finding),
            "node 'last' (Gather) takes elements counted from the end of tokens");
}

TEST(AxisFlowTest, AnotherGraphAtAnotherSizeIsUndecided) {
  const Graph small = GraphAt("  input %x: f32[2, $S]\n  %y: ? = Relu(%x)", kSmall);
  const Graph large = GraphAt("  input %x: f32[2, $S]\n  %y: ? = Neg(%x)", kLarge);
  const AxisFinding finding =
      FindMixing(small, large, {.axis = "tokens", .small_size = kSmall, .large_size = kLarge});
  EXPECT_EQ(finding.verdict, kUndecided);
  EXPECT_EQ(MixingWords(finding), "node 'y' (Relu) is another one at another size");
}

TEST(AxisFlowTest, EveryRowOfTheOpTableHasARule) {
  for (const OpRow& row : AllOps()) EXPECT_NE(row.axis, nullptr) << row.name;
}

}  // namespace
}  // namespace reprise
