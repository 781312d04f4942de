// Models that are cut where data decides shapes: the runs before, at and after the cuts.
#include "runtime/engine/model/tail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/graph/graph.h"
#include "tests/runtime/engine/tail/tail_fixture.h"

namespace reprise {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using Proto = onnx::TensorProto;

// y: the elements of 2 x at which mask is not 0; with `product`, as a column times 1; with `sums`,
// divided by their sum, so that they are not padded.
ModelBuilder Masked(bool product = false, bool sums = false) {
  ModelBuilder b;
  b.Input("x", {"batch", "sequence"}).Input("mask", {"batch", "sequence"}, Proto::INT64);
  b.Floats("two", {}, {2});
  b.Node("Mul", {"x", "two"}, {"hidden"});
  b.Node("NonZero", {"mask"}, {"where"}, "find");
  SetAttribute(b.Node("Transpose", {"where"}, {"indices"}), "perm", std::vector<int64_t>{1, 0});
  b.Node("GatherND", {"hidden", "indices"}, {product ? "found" : "y"});
  if (product) {
    b.Floats("one", {1, 1}, {1});
    b.Initializer<int64_t>("last", Proto::INT64, {1}, {-1});
    b.Node("Unsqueeze", {"found", "last"}, {"column"});
    b.Node("MatMul", {"column", "one"}, {sums ? "products" : "y"});
  }
  if (sums) {
    b.Node("ReduceSum", {"products"}, {"sum"});
    b.Node("Div", {"products", "sum"}, {"y"});
  }
  AddOutput(b, "y", Proto::FLOAT, {"found"});
  return b;
}

TEST_F(TailTest, TheFrontIsPaddedAndBatchedAndTheRestSeesTheRequestAlone) {
  Load(Masked());
  EXPECT_TRUE(model_->batches_requests());
  EXPECT_FALSE(model_->has_shape_inputs());
  ASSERT_THAT(model_->tail()->cuts(), SizeIs(1));
  EXPECT_EQ(model_->tail()->cuts()[0].node, "find");
  ASSERT_THAT(model_->outputs(), SizeIs(1));
  EXPECT_EQ(model_->outputs()[0].name, "y");
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const std::vector<int64_t> mask = {0, 1, 0, 1, 1, 0};
  const Response first = Run({{{2, 3}, x.data()}, {{2, 3}, mask.data()}});
  EXPECT_THAT(Elements<float>(first), ElementsAre(4, 8, 10));
  EXPECT_EQ(first.info.bucket, "b2_s16");
  EXPECT_EQ(first.info.capture, CaptureOutcome::kCaptured);
  // However many are found, nodes that only move elements need no recipe.
  const std::vector<int64_t> other = {1, 0, 0, 0, 1, 0};
  const Response again = Run({{{2, 3}, x.data()}, {{2, 3}, other.data()}});
  EXPECT_THAT(Elements<float>(again), ElementsAre(2, 10));
  EXPECT_EQ(again.info.capture, CaptureOutcome::kReplayed);
  EXPECT_EQ(compiles(), 1);
  EXPECT_EQ(fixture_.observer.of("m").eager, (std::vector<std::string>{"NonZero", "NonZero"}));
}

TEST_F(TailTest, ASectionWithAProductIsARecipeOfTheSizesThatArrive) {
  Load(Masked(/*product=*/true));
  const std::vector<float> x = {1, 2, 3, 4};
  const std::vector<int64_t> first = {0, 1, 0, 1}, second = {1, 0, 0, 1}, third = {1, 1, 1, 0};
  const auto run = [&](const std::vector<int64_t>& mask) {
    return Run({{{1, 4}, x.data()}, {{1, 4}, mask.data()}});
  };
  EXPECT_THAT(Elements<float>(run(first)), ElementsAre(4, 8));
  EXPECT_EQ(compiles(), 2);  // the front's, and the section's
  const Response other_places = run(second);
  EXPECT_THAT(Elements<float>(other_places), ElementsAre(2, 8));
  EXPECT_EQ(other_places.info.capture, CaptureOutcome::kReplayed);
  EXPECT_EQ(compiles(), 2);
  const Response more = run(third);
  EXPECT_THAT(Elements<float>(more), ElementsAre(2, 4, 6));
  EXPECT_EQ(more.info.capture, CaptureOutcome::kCaptured);
  EXPECT_EQ(compiles(), 3);
  const std::vector<MissRecord> records = fixture_.engine.misses().Since(0);
  ASSERT_THAT(records, SizeIs(3));
  EXPECT_EQ(records[0].section, "");
  EXPECT_EQ(records[2].section, "after NonZero 'find', layers");
  ASSERT_FALSE(records[2].differences.empty());
  EXPECT_EQ(records[2].differences[0].had, "2");
  EXPECT_EQ(records[2].differences[0].wanted, "16") << "from the second size on it is padded";
}

TEST_F(TailTest, SizesOfASectionThatAreOneTooManyRunEagerlyUntilTheyComeAgain) {
  Load(Masked(/*product=*/true, /*sums=*/true), {.max_exact = 1});
  const std::vector<float> x = {1, 2, 3, 4};
  const std::vector<int64_t> one = {0, 1, 0, 0}, two = {1, 0, 0, 1};
  const auto capture_of = [&](const std::vector<int64_t>& mask) {
    return Run({{{1, 4}, x.data()}, {{1, 4}, mask.data()}}).info.capture;
  };
  EXPECT_EQ(capture_of(one), CaptureOutcome::kCaptured);
  EXPECT_EQ(capture_of(two), CaptureOutcome::kEager);
  EXPECT_EQ(capture_of(one), CaptureOutcome::kReplayed);
  EXPECT_EQ(capture_of(two), CaptureOutcome::kCaptured);
  EXPECT_EQ(capture_of(two), CaptureOutcome::kReplayed);
}

TEST_F(TailTest, NothingFoundIsAnEmptyAnswer) {
  for (const bool product : {false, true}) {
    Load(Masked(product));
    const std::vector<float> x = {1, 2, 3};
    const std::vector<int64_t> mask = {0, 0, 0};
    const Response response = Run({{{1, 3}, x.data()}, {{1, 3}, mask.data()}});
    EXPECT_THAT(Elements<float>(response), IsEmpty());
    EXPECT_EQ(response.outputs[0].shape, product ? Shape({0, 1}) : Shape({0}));
  }
}

TEST_F(TailTest, BatchMatesDoNotChangeAnAnswer) {
  Load(Masked());
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7};
  const std::vector<int64_t> mask = {0, 1, 1, 0, 1, 0, 1};
  const Request a = {.inputs = {{{1, 3}, x.data()}, {{1, 3}, mask.data()}}};
  const Request b = {.inputs = {{{1, 4}, x.data() + 3}, {{1, 4}, mask.data() + 3}}};
  BatchPlan plan(*model_);
  for (const Request* one : {&a, &b}) ASSERT_TRUE(plan.TryAdd(*model_->Measure(*one)));
  const std::vector<Response> responses = fixture_.engine.Run(plan, {{&a, &b}}, *fixture_.stream);
  EXPECT_THAT(Elements<float>(responses[0]), ElementsAre(4, 6));
  EXPECT_THAT(Elements<float>(responses[1]), ElementsAre(10, 14));
  EXPECT_EQ(responses[0].info.batch, responses[1].info.batch);
}

TEST_F(TailTest, MoreRowsThanTheLargestBucketAreOneRequestStill) {
  Load(Masked(), {.buckets = {{"batch", {1, 2}}}});
  const std::vector<float> x = {1, 2, 3, 4, 5};
  const std::vector<int64_t> mask = {0, 1, 1, 0, 1};
  const Response response = Run({{{5, 1}, x.data()}, {{5, 1}, mask.data()}});
  EXPECT_THAT(Elements<float>(response), ElementsAre(4, 6, 10));
}

TEST_F(TailTest, ACutOnAnInputNeedsNoFront) {
  ModelBuilder b;
  b.Input("x", {"n", "m"});
  b.Node("NonZero", {"x"}, {"y"});
  AddOutput(b, "y", Proto::INT64, {"2", "found"});
  AddOutput(b, "x", Proto::FLOAT, {"n", "m"});
  Load(b);
  // Nothing of it is padded, so that nothing speaks against buckets either.
  for (const ModelAxis& axis : model_->axes()) {
    EXPECT_TRUE(axis.certificate.certified) << axis.certificate.reason;
    EXPECT_EQ(axis.certificate.reason, "nothing runs in front of the first cut");
  }
  const std::vector<float> x = {0, 1, 2, 0, 0, 3};
  const Response response = Run({{{2, 3}, x.data()}});
  EXPECT_THAT(Elements<int64_t>(response), ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_EQ(response.outputs[0].shape, Shape({2, 3}));
  EXPECT_EQ(Elements<float>(response, 1), x);
  EXPECT_EQ(Run({{{2, 2}, x.data()}}).outputs[1].shape, Shape({2, 2}));
  EXPECT_EQ(compiles(), 0) << "it has no nodes that a recipe could hold";
  const Response part = Run({{{3, 2}, x.data()}}, {false, true});
  EXPECT_THAT(part.outputs[0].bytes, IsEmpty());
  EXPECT_EQ(Elements<float>(part, 1), x);
}

TEST_F(TailTest, TheLargestOfAListOfLengthsIsDataAndCutsASlice) {
  ModelBuilder b;
  b.Input("x", {"batch", "sequence"}).Input("lengths", {"batch"}, Proto::INT64);
  b.Initializer<int64_t>("zero", Proto::INT64, {1}, {0});
  b.Initializer<int64_t>("one", Proto::INT64, {1}, {1});
  SetAttribute(b.Node("ReduceMax", {"lengths"}, {"longest"}), "keepdims", int64_t{1});
  b.Node("Slice", {"x", "zero", "longest", "one"}, {"cut"}, "cut");
  b.Node("Relu", {"cut"}, {"y"});
  AddOutput(b, "y", Proto::FLOAT, {"batch", "longest"});
  Load(b);
  EXPECT_FALSE(model_->has_shape_inputs());
  const std::vector<float> x = {1, -2, 3, 4, 5, 6};
  const std::vector<int64_t> lengths = {1, 2};
  const Response response = Run({{{2, 3}, x.data()}, {{2}, lengths.data()}});
  EXPECT_THAT(Elements<float>(response), ElementsAre(1, 0, 4, 5));
  EXPECT_EQ(response.outputs[0].shape, Shape({2, 2}));
}

TEST_F(TailTest, KOfTopKAndBoundsOfRangeMayBeComputed) {
  ModelBuilder b;
  b.Input("x", {"n"}).Input("mask", {"n"}, Proto::INT64);
  b.Initializer<int64_t>("zero", Proto::INT64, {}, {0});
  b.Initializer<int64_t>("one", Proto::INT64, {}, {1});
  SetAttribute(b.Node("ReduceSum", {"mask"}, {"k"}), "keepdims", int64_t{1});
  SetAttribute(b.Node("ReduceSum", {"mask"}, {"count"}), "keepdims", int64_t{0});
  b.Node("TopK", {"x", "k"}, {"best", "where"});
  b.Node("Range", {"zero", "count", "one"}, {"numbers"});
  b.Node("Add", {"numbers", "where"}, {"sum"});
  AddOutput(b, "best", Proto::FLOAT, {"k"});
  AddOutput(b, "sum", Proto::INT64, {"k"});
  Load(b);
  const std::vector<float> x = {5, 7, 6, 1};
  const std::vector<int64_t> mask = {1, 0, 1, 1};
  const Response response = Run({{{4}, x.data()}, {{4}, mask.data()}});
  EXPECT_THAT(Elements<float>(response), ElementsAre(7, 6, 5));
  EXPECT_THAT(Elements<int64_t>(response, 1), ElementsAre(1, 3, 2));
}

TEST_F(TailTest, CutsBehindCutsRunInTurn) {
  ModelBuilder b;
  b.Input("ids", {"n"}, Proto::INT64).Input("keep", {"n"}, Proto::BOOL);
  b.Floats("table", {5}, {0, 10, -20, 30, -40});
  b.Floats("zero", {}, {0});
  SetAttribute(b.Node("Compress", {"ids", "keep"}, {"kept"}), "axis", int64_t{0});
  b.Node("Unique", {"kept"}, {"distinct", "", "inverse"}, "distinct");
  b.Node("Gather", {"table", "distinct"}, {"rows"});
  b.Node("Greater", {"rows", "zero"}, {"positive"});
  b.Node("Compress", {"rows", "positive"}, {"y"}, "second");
  AddOutput(b, "y", Proto::FLOAT, {"found"});
  AddOutput(b, "inverse", Proto::INT64, {"kept"});
  Load(b);
  ASSERT_THAT(model_->tail()->cuts(), SizeIs(3));
  EXPECT_EQ(model_->tail()->cuts()[2].level, 2);
  const std::vector<int64_t> ids = {4, 3, 1, 3, 2};
  const std::vector<uint8_t> keep = {1, 1, 0, 1, 1};
  const Response response = Run({{{5}, ids.data()}, {{5}, keep.data()}});
  EXPECT_THAT(Elements<float>(response), ElementsAre(30));
  EXPECT_THAT(Elements<int64_t>(response, 1), ElementsAre(2, 1, 1, 0));
}

TEST_F(TailTest, ShapesBehindACutAreThoseOfTheRequest) {
  ModelBuilder b;
  b.Input("x", {"batch", "sequence"});
  b.Node("Relu", {"x"}, {"positive"});
  b.Node("NonZero", {"positive"}, {"where"});
  b.Node("Size", {"positive"}, {"all"});
  b.Node("Shape", {"where"}, {"found"});
  b.Node("Div", {"found", "all"}, {"share"});
  b.Node("Mul", {"where", "all"}, {"scaled"});
  AddOutput(b, "scaled", Proto::INT64, {"2", "found"});
  AddOutput(b, "all", Proto::INT64, {});
  AddOutput(b, "share", Proto::INT64, {"2"});
  Load(b);
  EXPECT_TRUE(model_->batches_requests());
  const std::vector<float> x = {1, -1, 2};
  const Response response = Run({{{1, 3}, x.data()}});
  EXPECT_THAT(Elements<int64_t>(response), ElementsAre(0, 0, 0, 6));
  EXPECT_THAT(Elements<int64_t>(response, 1), ElementsAre(3));
  EXPECT_THAT(Elements<int64_t>(response, 2), ElementsAre(0, 0));
}

TEST_F(TailTest, BoxesThatOverlapAreSuppressed) {
  ModelBuilder b;
  b.Input("boxes", {"1", "n", "4"}).Input("scores", {"1", "1", "n"});
  b.Initializer<int64_t>("most", Proto::INT64, {1}, {3});
  b.Initializer<int64_t>("last", Proto::INT64, {1}, {2});
  b.Floats("overlap", {1}, {0.5f});
  b.Node("NonMaxSuppression", {"boxes", "scores", "most", "overlap"}, {"selected"});
  SetAttribute(b.Node("Gather", {"selected", "last"}, {"column"}), "axis", int64_t{1});
  SetAttribute(b.Node("Flatten", {"column"}, {"y"}), "axis", int64_t{0});
  AddOutput(b, "y", Proto::INT64, {"1", "found"});
  Load(b);
  const std::vector<float> boxes = {0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 5, 5, 6, 6};
  const std::vector<float> scores = {0.6f, 0.9f, 0.3f};
  const Response response = Run({{{1, 3, 4}, boxes.data()}, {{1, 1, 3}, scores.data()}});
  EXPECT_THAT(Elements<int64_t>(response), ElementsAre(1, 2));
}

TEST_F(TailTest, AShapeInputBesideACutIsPartOfTheBinding) {
  ModelBuilder b;
  b.Input("x", {"n", "4"}).Input("to", {"2"}, Proto::INT64);
  b.Node("Reshape", {"x", "to"}, {"view"});
  b.Node("NonZero", {"view"}, {"where"});
  b.Node("Shape", {"view"}, {"shape"});
  b.Node("ConstantOfShape", {"to"}, {"zeros"});
  b.Node("ReduceSum", {"zeros"}, {"zero"});
  b.Node("Cast", {"where"}, {"floats"}).add_attribute();
  auto* cast = b.graph().mutable_node(5)->mutable_attribute(0);
  cast->set_name("to");
  cast->set_type(onnx::AttributeProto::INT);
  cast->set_i(Proto::FLOAT);
  b.Node("Add", {"floats", "zero"}, {"y"});
  AddOutput(b, "y", Proto::FLOAT, {"2", "found"});
  AddOutput(b, "shape", Proto::INT64, {"2"});
  Load(b);
  EXPECT_TRUE(model_->has_shape_inputs());
  const std::vector<float> x = {0, 1, 0, 0, 0, 0, 2, 0};
  const std::vector<int64_t> to = {4, 2};
  const Response response = Run({{{2, 4}, x.data()}, {{2}, to.data()}});
  EXPECT_THAT(Elements<float>(response), ElementsAre(0, 3, 1, 0));
  EXPECT_THAT(Elements<int64_t>(response, 1), ElementsAre(4, 2));
}

TEST_F(TailTest, DataThatANodeBehindACutCannotUseIsAnErrorThatNamesIt) {
  ModelBuilder b;
  b.Input("ids", {"n"}, Proto::INT64).Input("keep", {"n"}, Proto::BOOL);
  b.Floats("table", {3}, {1, 2, 3});
  SetAttribute(b.Node("Compress", {"ids", "keep"}, {"kept"}, "filter"), "axis", int64_t{0});
  b.Node("Gather", {"table", "kept"}, {"y"});
  AddOutput(b, "y", Proto::FLOAT, {"found"});
  Load(b);
  const std::vector<int64_t> ids = {0, 7, 2};
  const std::vector<uint8_t> all = {1, 1, 1}, some = {1, 0, 1};
  const Response refused = Run({{{3}, ids.data()}, {{3}, all.data()}});
  EXPECT_EQ(refused.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(refused.status.message()),
      AllOf(HasSubstr("Compress 'filter'"), HasSubstr("Gather"), HasSubstr("is 7, outside")));
  EXPECT_THAT(refused.outputs, IsEmpty());
  EXPECT_THAT(Elements<float>(Run({{{3}, ids.data()}, {{3}, some.data()}})), ElementsAre(1, 3));
}

TEST_F(TailTest, WhoMayNotCaptureRunsASectionEagerlyOrIsTold) {
  Load(Masked(/*product=*/true));
  const std::vector<float> x = {1, 2, 3};
  const std::vector<int64_t> two = {1, 0, 1}, one = {0, 0, 1};
  ASSERT_TRUE(Run({{{1, 3}, x.data()}, {{1, 3}, two.data()}}).status.ok());
  const size_t before = compiles();
  const Request request = {.inputs = {{{1, 3}, x.data()}, {{1, 3}, one.data()}}};
  const auto run = [&](OnMiss on_miss) {
    RequestShape shape = *model_->Measure(request);
    shape.on_miss = on_miss;
    BatchPlan plan(*model_);
    EXPECT_TRUE(plan.TryAdd(shape));
    const Request* pointer = &request;
    return std::move(fixture_.engine.Run(plan, {&pointer, 1}, *fixture_.stream)[0]);
  };
  const Response eager = run(OnMiss::kEager);
  EXPECT_THAT(Elements<float>(eager), ElementsAre(6));
  EXPECT_EQ(eager.info.capture, CaptureOutcome::kEager);
  const Response refused = run(OnMiss::kReject);
  EXPECT_EQ(refused.status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.status.message()), HasSubstr("after NonZero 'find'"));
  EXPECT_EQ(compiles(), before);
}

TEST_F(TailTest, AnOverriddenInitialiserMayBeData) {
  ModelBuilder b;
  b.Input("x", {"n"}).Input("mask", {"3"});
  b.Floats("mask", {3}, {1, 0, 1});
  b.Node("NonZero", {"mask"}, {"where"});
  b.Node("Gather", {"x", "where"}, {"y"});
  AddOutput(b, "y", Proto::FLOAT, {"1", "found"});
  Load(b);
  EXPECT_EQ(model_->tail(), nullptr);
  const std::vector<float> x = {5, 6, 7}, mask = {0, 2, 0};
  EXPECT_THAT(Elements<float>(Run({{{3}, x.data()}, {}})), ElementsAre(5, 7));
  EXPECT_THAT(Elements<float>(Run({{{3}, x.data()}, {{3}, mask.data()}})), ElementsAre(6));
}

}  // namespace
}  // namespace reprise
