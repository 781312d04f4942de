// How large a request is, and into which parts it is cut.
#include "server/requests/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/runtime/onnx/model_builder.h"
#include "tests/server/requests/inference_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

class ShapeTest : public InferenceTest {
 protected:
  // Takes a request with these rows and tokens through all stages up to `shape`.
  RequestState Measure(int64_t rows, int64_t length) {
    asked_ = Make(rows, length);
    asked_->view.id = "abc";
    RequestState state;
    for (const Stage& stage : RequestStages(server_->repository)) {
      const absl::Status status = stage(asked_->view, state);
      EXPECT_TRUE(status.ok()) << status;
    }
    return state;
  }
  std::unique_ptr<Asked> asked_;
};

TEST_F(ShapeTest, RequestThatOneReplayTakesIsOnePart) {
  const RequestState state = Measure(3, 20);
  ASSERT_EQ(state.parts.size(), 1u);
  EXPECT_EQ(state.parts[0].shape.rows, 3);
  EXPECT_EQ(state.parts[0].shape.tokens, 60);
  EXPECT_EQ(state.parts[0].shape.id, "abc");
  EXPECT_EQ(state.columns, (std::vector<int64_t>{3, 20}));
}

TEST_F(ShapeTest, ShapesOfPartsAreThoseThatMeasuringEachWouldGive) {
  const RequestState state = Measure(40, 16);
  const Model& model = *state.model.servable->model;
  ASSERT_GT(state.parts.size(), 1u);
  EXPECT_EQ(state.rows, 40);
  int64_t rows = 0;
  for (const RequestPart& part : state.parts) {
    const auto measured = model.Measure(part.request);
    ASSERT_TRUE(measured.ok()) << measured.status();
    EXPECT_EQ(part.shape.sizes, measured->sizes);
    EXPECT_EQ(part.shape.rows, measured->rows);
    EXPECT_EQ(part.shape.tokens, measured->tokens);
    EXPECT_EQ(part.shape.bytes, measured->bytes);
    EXPECT_EQ(part.shape.exact, measured->exact);
    EXPECT_EQ(part.shape.quarantined, measured->quarantined);
    EXPECT_EQ(part.shape.id, "abc");
    EXPECT_TRUE(model.Admits(part.shape).ok());
    rows += part.shape.rows;
  }
  EXPECT_EQ(rows, 40);
}

// Makes a model: every row of the answer speaks of every other row, so that no request is split.
ModelBuilder Similarities() {
  ModelBuilder b;
  b.Input("x", {"batch", "4"}).Output("y");
  b.Node("Transpose", {"x"}, {"t"}, "turn");
  b.Node("MatMul", {"x", "t"}, {"y"}, "compare");
  return b;
}

TEST(AdmitsTest, ModelAdmitsWhatABatchPlanBeginsWith) {
  const TempFolder folder;
  EngineFixture fixture;
  const auto model = fixture.engine.Load({.id = {"alike", 1},
                                          .path = folder.Write("m.onnx", Similarities().Bytes()),
                                          .buckets = {{"batch", {1, 2, 4}}},
                                          .overflow = BucketPolicy::Overflow::kReject});
  ASSERT_TRUE(model.ok()) << model.status();
  const std::vector<float> values(9 * 4);
  for (int64_t rows = 1; rows <= 9; ++rows) {
    const auto shape = (*model)->Measure({.inputs = {{Shape{rows, 4}, values.data()}}});
    ASSERT_TRUE(shape.ok()) << shape.status();
    const absl::Status admitted = (*model)->Admits(*shape);
    EXPECT_EQ(admitted.ok(), rows <= 4) << admitted;
    EXPECT_EQ(admitted.ok(), BatchPlan(**model).TryAdd(*shape)) << rows;
    if (!admitted.ok()) {
      EXPECT_THAT(std::string(admitted.message()),
                  ::testing::HasSubstr(absl::StrCat("no bucket holds the request, and "
                                                    "reprise.overflow is reject: axis 'batch' has "
                                                    "size ",
                                                    rows, ", the largest bucket is 4")));
    }
  }
}

}  // namespace
}  // namespace reprise
