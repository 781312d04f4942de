// Ops as models have them: which requests may share a batch, which sizes a request decides, and
// which request gets the error of a value.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/graph.h"
#include "tests/runtime/engine/tail/tail_fixture.h"

namespace reprise {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

using Proto = onnx::TensorProto;

class ServedOpsTest : public TailTest {};

TEST_F(ServedOpsTest, MatricesOfSeveralRequestsShareABatch) {
  ModelBuilder b(22);
  b.Input("x", {"batch", "2", "2"});
  b.Node("Det", {"x"}, {"y"});
  AddOutput(b, "y", Proto::FLOAT, {"batch"});
  Load(b);
  EXPECT_TRUE(model_->batches_requests());
  const std::vector<float> x = {1, 2, 3, 4, 2, 0, 0, 2, 0, 1, 1, 0};
  EXPECT_THAT(Elements<float>(Run({{{3, 2, 2}, x.data()}})), ElementsAre(-2, 4, -1));
  EXPECT_THAT(Elements<float>(Run({{{1, 2, 2}, x.data() + 4}})), ElementsAre(4));
}

TEST_F(ServedOpsTest, DeformedWindowsOfSeveralRequestsShareABatch) {
  ModelBuilder b(19);
  b.Input("x", {"batch", "1", "3", "3"}).Input("offset", {"batch", "8", "2", "2"});
  b.Floats("w", {2, 1, 2, 2}, {1, 1, 1, 1, 2, 0, 0, 0});
  b.Floats("bias", {2}, {1, 0});
  b.Node("DeformConv", {"x", "w", "offset", "bias"}, {"y"});
  AddOutput(b, "y", Proto::FLOAT, {"batch", "2", "2", "2"});
  Load(b);
  EXPECT_TRUE(model_->batches_requests());
  const std::vector<float> x = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<float> offset(32, 0);
  offset[0] = 1;  // the first tap of the first window reads a row below
  EXPECT_THAT(Elements<float>(Run({{{1, 1, 3, 3}, x.data()}, {{1, 8, 2, 2}, offset.data()}})),
              ElementsAre(12, 13, 21, 25, 6, 2, 6, 8));
}

// A step that comes with the request is part of its shape; one that is wrong is its own error.
TEST_F(ServedOpsTest, AStepThatARequestSendsDecidesItsFrames) {
  ModelBuilder b(17);
  b.Input("x", {"batch", "8", "1"}).Input("step", {}, Proto::INT64);
  b.Initializer<int64_t>("length", Proto::INT64, {}, {4});
  b.Node("STFT", {"x", "step", "", "length"}, {"s"});
  b.Initializer<int64_t>("first", Proto::INT64, {}, {0});
  SetAttribute(b.Node("Gather", {"s", "first"}, {"y"}), "axis", int64_t{2});
  AddOutput(b, "y", Proto::FLOAT, {"batch", "frames", "2"});
  Load(b);
  EXPECT_TRUE(model_->has_shape_inputs());
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8};
  int64_t step = 2;
  EXPECT_THAT(Elements<float>(Run({{{1, 8, 1}, x.data()}, {{}, &step}})),
              ElementsAre(10, 0, 18, 0, 26, 0));
  step = 4;
  EXPECT_THAT(Elements<float>(Run({{{1, 8, 1}, x.data()}, {{}, &step}})),
              ElementsAre(10, 0, 26, 0));
  step = 0;
  const Response wrong = Run({{{1, 8, 1}, x.data()}, {{}, &step}});
  EXPECT_EQ(wrong.status.code(), absl::StatusCode::kInvalidArgument) << wrong.status;
  EXPECT_THAT(std::string(wrong.status.message()), HasSubstr("in steps of 0"));
}

TEST_F(ServedOpsTest, APositionInASequenceSelectsATensor) {
  ModelBuilder b(17);
  b.Input("x", {"2"}).Input("z", {"3"}).Input("at", {}, Proto::INT64);
  b.Node("SequenceConstruct", {"x", "z"}, {"s"});
  b.Node("SequenceAt", {"s", "at"}, {"y"});
  AddOutput(b, "y", Proto::FLOAT, {"n"});
  Load(b);
  const std::vector<float> x = {1, 2}, z = {3, 4, 5};
  int64_t at = 0;
  EXPECT_THAT(Elements<float>(Run({{{2}, x.data()}, {{3}, z.data()}, {{}, &at}})),
              ElementsAre(1, 2));
  at = -1;
  EXPECT_THAT(Elements<float>(Run({{{2}, x.data()}, {{3}, z.data()}, {{}, &at}})),
              ElementsAre(3, 4, 5));
  at = 2;
  const Response outside = Run({{{2}, x.data()}, {{3}, z.data()}, {{}, &at}});
  EXPECT_EQ(outside.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(outside.status.message()),
              HasSubstr("position 2 lies outside a sequence of 2 tensors"));
}

TEST_F(ServedOpsTest, APlaceOutsideIsAnErrorThatNamesIt) {
  ModelBuilder b(22);
  b.Input("x", {"batch", "1", "2"}).Input("places", {"batch", "1", "2"}, Proto::INT64);
  SetAttribute(b.Node("MaxUnpool", {"x", "places"}, {"y"}), "kernel_shape",
               std::vector<int64_t>{2});
  SetAttribute(*b.graph().mutable_node(0), "strides", std::vector<int64_t>{2});
  AddOutput(b, "y", Proto::FLOAT, {"batch", "1", "4"});
  Load(b);
  // Indices count over the whole batch: rows of other requests would move them.
  EXPECT_FALSE(model_->batches_requests());
  const std::vector<float> x = {5, 6};
  std::vector<int64_t> places = {1, 2};
  EXPECT_THAT(Elements<float>(Run({{{1, 1, 2}, x.data()}, {{1, 1, 2}, places.data()}})),
              ElementsAre(0, 5, 6, 0));
  places[1] = 4;
  const Response outside = Run({{{1, 1, 2}, x.data()}, {{1, 1, 2}, places.data()}});
  EXPECT_EQ(outside.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(outside.status.message()),
              AllOf(HasSubstr("input 'places'"), HasSubstr("value 4"), HasSubstr("[0, 3]")));
}

// Weights of float8, and of zeros that the file leaves out.
TEST_F(ServedOpsTest, WeightsOfEightBitsAndSparseOnes) {
  ModelBuilder b(21);
  b.Input("x", {"batch", "16"});
  std::vector<uint8_t> ones(16 * 32, 0x38);
  ones[0] = 0xc0;  // -2
  b.Initializer<uint8_t>("w", 17, {16, 32}, ones);
  b.Floats("scale", {}, {0.5f});
  b.Node("DequantizeLinear", {"w", "scale"}, {"d"});
  b.Node("MatMul", {"x", "d"}, {"p"});
  auto& sparse = *b.graph().add_sparse_initializer();
  sparse.mutable_values()->set_name("k");
  sparse.mutable_values()->set_data_type(Proto::FLOAT);
  sparse.mutable_values()->add_dims(1);
  sparse.mutable_values()->add_float_data(3);
  sparse.mutable_indices()->set_data_type(Proto::INT64);
  sparse.mutable_indices()->add_dims(2 - 1);
  sparse.mutable_indices()->add_int64_data(33);
  for (const int64_t dim : {32, 2}) sparse.add_dims(dim);
  b.Node("MatMul", {"p", "k"}, {"y"});
  AddOutput(b, "y", Proto::FLOAT, {"batch", "2"});
  Load(b);
  std::vector<float> x(16, 1);
  x[0] = 2;
  // Column 16 of the product is half of 17; the only weight after it is 3.
  EXPECT_THAT(Elements<float>(Run({{{1, 16}, x.data()}})), ElementsAre(0, 25.5));
}

}  // namespace
}  // namespace reprise
