#include "runtime/ops/weights/sliced_weights.h"

#include <gtest/gtest.h>

#include "runtime/graph/tensor.h"

namespace reprise::ops {
namespace {

// [64, 96] floats as a file stores them: blocks of 32 numbers in 20 bytes.
ParameterExprPtr Stored() {
  return ParameterExpr::Apply("reprise.StoredFloats", {{"format", std::string("Q4_1")}},
                              {ParameterExpr::Leaf(0, DType::kUInt8, {64, 60})}, DType::kFloat32,
                              {64, 96});
}
ParameterExprPtr Turned(const ParameterExprPtr& of) {
  return ParameterExpr::Apply("Transpose", {{"perm", std::vector<int64_t>{1, 0}}}, {of},
                              of->dtype(), {of->shape()[1], of->shape()[0]});
}

TEST(SlicedWeightsTest, BlocksAreCutWhereTheyAreStored) {
  const ParameterExprPtr rows = SlicedWeights(Turned(Stored()), 0, 32, 64);
  EXPECT_EQ(rows->shape(), (Shape{64, 64}));
  EXPECT_EQ(rows->text(),
            "Transpose{perm = [1, 0]}(reprise.StoredFloats{format = \"Q4_1\"}(Slice(p0, "
            "i64[1]{20}, i64[1]{60}, i64[1]{1})))");
  const ParameterExprPtr columns = SlicedWeights(Turned(Stored()), 1, 7, 3);
  EXPECT_EQ(columns->shape(), (Shape{96, 3}));
  EXPECT_EQ(columns->text(),
            "Transpose{perm = [1, 0]}(reprise.StoredFloats{format = \"Q4_1\"}(Slice(p0, "
            "i64[1]{7}, i64[1]{10}, i64[1]{0})))");
}

TEST(SlicedWeightsTest, APartOfABlockIsCutAsFloats) {
  const ParameterExprPtr part = SlicedWeights(Stored(), 1, 16, 32);
  EXPECT_EQ(part->op(), "Slice");
  EXPECT_EQ(part->shape(), (Shape{64, 32}));
  EXPECT_EQ(part->inputs()[0]->text(), Stored()->text());
}

TEST(SlicedWeightsTest, NumbersOfABlockStayTogether) {
  EXPECT_EQ(StoredTogether(Stored(), 1), 32);
  EXPECT_EQ(StoredTogether(Turned(Stored()), 0), 32);
  EXPECT_EQ(StoredTogether(Turned(Stored()), 1), 1);
  EXPECT_EQ(StoredTogether(ParameterExpr::Leaf(0, DType::kFloat32, {8, 8}), 0), 1);
}

}  // namespace
}  // namespace reprise::ops
