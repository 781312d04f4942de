#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/ops/op_testing.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Attributes kAxis1 = {{"axis", int64_t{1}}};

TEST(GatherTest, NegativeIndicesCountFromTheEnd) {
  const auto result = RunOp("Gather", {F32({3, 2}, {0, 1, 2, 3, 4, 5}), I64({2}, {-1, 0})});
  EXPECT_EQ(ShapeOf(result), (Shape{2, 2}));
  EXPECT_THAT(Numbers(result), ElementsAre(4, 5, 0, 1));
}

TEST(GatherTest, ScalarIndexRemovesTheDim) {
  const auto result = RunOp("Gather", {F32({2, 2}, {0, 1, 2, 3}), I32({}, {1})}, kAxis1);
  EXPECT_EQ(ShapeOf(result), (Shape{2}));
  EXPECT_THAT(Numbers(result), ElementsAre(1, 3));
}

TEST(GatherTest, IndexOutOfRangeIsNamedWithItsRange) {
  for (int64_t index : {3, -4}) {
    const auto result = RunOp("Gather", {F32({3}, {0, 1, 2}), I64({2}, {0, index})});
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(result.status().message(),
                HasSubstr(absl::StrCat("element 1 of input 1 is ", index, ", outside [-3, 2]")));
  }
}

TEST(GatherTest, EveryIndexIntoAnEmptyDimIsAnError) {
  EXPECT_EQ(RunOp("Gather", {F32({0, 2}, {}), I64({1}, {0})}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ShapeOf(RunOp("Gather", {F32({0, 2}, {}), I64({0}, {})})), (Shape{0, 2}));
}

// Counts reports and lets the kernel go on after each.
class CountErrors : public DataErrors {
 public:
  void Report(int, int64_t, int64_t, int64_t, int64_t) override { ++count; }
  int count = 0;
};

TEST(GatherTest, AfterAReportIndexZeroIsUsed) {
  Node node;
  node.op = "Gather";
  const Tensor data = F32({3}, {7, 8, 9}), indices = I64({3}, {99, 1, -99});
  const TensorView inputs[] = {data.view(), indices.view()};
  float out[3];
  const MutableTensorView outputs[] = {{DType::kFloat32, {3}, out}};
  CountErrors errors;
  ASSERT_TRUE(FindOp("Gather")->reference({node, inputs, outputs, errors}).ok());
  EXPECT_THAT(out, ElementsAre(7, 8, 7));
  EXPECT_EQ(errors.count, 2);
}

TEST(GatherTest, GatherElementsTakesOneElementEach) {
  const auto result =
      RunOp("GatherElements", {F32({2, 2}, {1, 2, 3, 4}), I64({2, 2}, {0, 0, -1, 0})}, kAxis1);
  EXPECT_THAT(Numbers(result), ElementsAre(1, 1, 4, 3));
  EXPECT_FALSE(RunOp("GatherElements", {F32({2, 2}, {1, 2, 3, 4}), I64({1, 1}, {2})}, kAxis1).ok());
}

TEST(GatherTest, GatherNDTakesSlicesAndBatchDims) {
  const Tensor x = F32({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_THAT(Numbers(RunOp("GatherND", {x, I64({2, 2}, {0, 1, -1, 0})})), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(Numbers(RunOp("GatherND", {x, I64({2, 1}, {1, 0})}, {{"batch_dims", int64_t{1}}})),
              ElementsAre(2, 3, 4, 5));
  EXPECT_FALSE(RunOp("GatherND", {x, I64({1, 1}, {2})}).ok());
}

TEST(ScatterTest, ScatterElementsReduces) {
  const Tensor x = F32({3}, {1, 2, 3});
  const Tensor at = I64({2}, {0, 0}), updates = F32({2}, {10, 20});
  EXPECT_THAT(Numbers(RunOp("ScatterElements", {x, at, updates})), ElementsAre(20, 2, 3));
  EXPECT_THAT(
      Numbers(RunOp("ScatterElements", {x, at, updates}, {{"reduction", std::string("add")}})),
      ElementsAre(31, 2, 3));
  EXPECT_THAT(
      Numbers(RunOp("ScatterElements", {x, at, updates}, {{"reduction", std::string("min")}})),
      ElementsAre(1, 2, 3));
}

TEST(ScatterTest, ScatterNDWritesSlices) {
  const auto result =
      RunOp("ScatterND", {F32({2, 2}, {1, 2, 3, 4}), I64({1, 1}, {-1}), F32({1, 2}, {8, 9})});
  EXPECT_THAT(Numbers(result), ElementsAre(1, 2, 8, 9));
}

TEST(OneHotTest, IndexOutOfRangeIsAllOff) {
  const auto result = RunOp("OneHot", {I64({3}, {1, -1, 5}), I64({}, {3}), F32({2}, {0, 1})});
  EXPECT_EQ(ShapeOf(result), (Shape{3, 3}));
  EXPECT_THAT(Numbers(result), ElementsAre(0, 1, 0, 0, 0, 1, 0, 0, 0));
}

TEST(OneHotTest, AxisPlacesTheNewDim) {
  const auto result =
      RunOp("OneHot", {I64({2}, {0, 1}), I64({}, {3}), F32({2}, {0, 1})}, {{"axis", int64_t{0}}});
  EXPECT_EQ(ShapeOf(result), (Shape{3, 2}));
  EXPECT_THAT(Numbers(result), ElementsAre(1, 0, 0, 1, 0, 0));
}

TEST(EmbeddingSumTest, IdsBroadcastAndTablesAdd) {
  const Tensor words = F32({3, 2}, {0, 0, 1, 10, 2, 20});
  const Tensor positions = F32({2, 2}, {100, 1000, 200, 2000});
  const auto result = RunOp("reprise.EmbeddingSum",
                            {words, I64({2, 2}, {0, 1, 2, -1}), positions, I32({1, 2}, {0, 1})});
  EXPECT_EQ(ShapeOf(result), (Shape{2, 2, 2}));
  EXPECT_THAT(Numbers(result), ElementsAre(100, 1000, 201, 2010, 102, 1020, 202, 2020));
}

TEST(EmbeddingSumTest, IdOutOfRangeNamesItsInput) {
  const Tensor table = F32({2, 1}, {1, 2});
  const auto result = RunOp("reprise.EmbeddingSum", {table, I64({1}, {0}), table, I64({1}, {2})});
  EXPECT_THAT(result.status().message(), HasSubstr("element 0 of input 3 is 2, outside [-2, 1]"));
}

}  // namespace
}  // namespace reprise
