// Eager runs: their prepared sections are kept by shape, within a limit of its own.
#include "runtime/engine/model/eager_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "runtime/graph/graph.h"
#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using testing::SizeIs;
using Proto = onnx::TensorProto;

constexpr int64_t kEnough = 64 << 20;

class EagerCacheTest : public testing::Test {
 protected:
  void Load(const ModelBuilder& builder, int64_t eager_cache_bytes = kEnough) {
    model_.reset();  // no model outlives its engine
    fixture_ = std::make_unique<EngineFixture>(1, DetectIsa(), int64_t{1} << 30, eager_cache_bytes);
    const std::string path = folder_.Write("model.onnx", builder.Bytes());
    auto loaded = fixture_->engine.Load({.id = {"m", 1}, .path = path});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    model_ = *std::move(loaded);
  }

  Response Run(std::vector<InputTensor> inputs, OnMiss on_miss = OnMiss::kDefault) {
    const Request request = {.inputs = std::move(inputs)};
    RequestShape shape = *model_->Measure(request);
    shape.on_miss = on_miss;
    BatchPlan plan(*model_);
    EXPECT_TRUE(plan.TryAdd(shape));
    const Request* pointer = &request;
    return std::move(fixture_->engine.Run(plan, {&pointer, 1}, *fixture_->stream)[0]);
  }

  // Returns the mean of 1, 2, ... length, run eagerly.
  float MeanOf(int64_t length) {
    std::vector<float> x(length);
    std::iota(x.begin(), x.end(), 1.0f);
    const Response response = Run({{{1, length}, x.data()}}, OnMiss::kEager);
    EXPECT_TRUE(response.status.ok()) << response.status;
    EXPECT_EQ(response.info.capture, CaptureOutcome::kEager);
    float mean = 0;
    if (response.status.ok()) std::memcpy(&mean, response.outputs[0].bytes.data(), sizeof(mean));
    return mean;
  }

  Observed& told() { return fixture_->observer.of("m"); }

  const TempFolder folder_;
  std::unique_ptr<EngineFixture> fixture_;
  std::shared_ptr<Model> model_;
};

std::vector<float> Floats(const Response& response) {
  EXPECT_TRUE(response.status.ok()) << response.status;
  if (!response.status.ok()) return {};
  std::vector<float> values(response.outputs[0].bytes.size() / sizeof(float));
  std::memcpy(values.data(), response.outputs[0].bytes.data(), response.outputs[0].bytes.size());
  return values;
}

ModelBuilder Mean() {
  ModelBuilder b;
  b.Input("x", {"batch", "length"});
  SetAttribute(b.Node("ReduceMean", {"x"}, {"y"}), "axes", std::vector<int64_t>{1});
  b.Output("y");
  return b;
}

TEST_F(EagerCacheTest, AShapeThatComesAgainIsPreparedOnce) {
  Load(Mean());
  EXPECT_FLOAT_EQ(MeanOf(3), 2);
  EXPECT_EQ(told().eager_misses, 1);
  EXPECT_FLOAT_EQ(MeanOf(3), 2);
  EXPECT_FLOAT_EQ(MeanOf(5), 3);
  EXPECT_FLOAT_EQ(MeanOf(3), 2);
  EXPECT_EQ(told().eager_misses, 2);
  EXPECT_EQ(told().eager_hits, 2);
  const EagerUse use = model_->eager_share()->use();
  EXPECT_EQ(use.ops, 2);
  EXPECT_EQ(use.bytes, told().eager_bytes);
  EXPECT_GT(use.bytes, 0);
  EXPECT_THAT(told().compiles, SizeIs(0)) << "nothing of it is a recipe";
  EXPECT_THAT(fixture_->engine.ListRecipes(), SizeIs(0));
}

TEST_F(EagerCacheTest, TheLeastRecentlyUsedGoesWhereRoomIsNeeded) {
  Load(Mean());
  MeanOf(3);
  const int64_t one = told().eager_bytes;
  Load(Mean(), 2 * one + one / 2);
  for (const int64_t length : {3, 4, 3, 5}) MeanOf(length);
  EXPECT_EQ(told().eager_evictions, 1);
  EXPECT_LE(told().eager_bytes, 2 * one + one / 2);
  MeanOf(3);
  EXPECT_EQ(told().eager_hits, 2) << "4 has gone, not 3";
  MeanOf(4);
  EXPECT_EQ(told().eager_hits, 2);
}

TEST_F(EagerCacheTest, WhatIsLargerThanTheCacheRunsAndIsNotKept) {
  Load(Mean(), /*eager_cache_bytes=*/0);
  EXPECT_FLOAT_EQ(MeanOf(3), 2);
  EXPECT_FLOAT_EQ(MeanOf(3), 2);
  EXPECT_EQ(told().eager_misses, 2);
  EXPECT_EQ(model_->eager_share()->use().ops, 0);
}

// Doubles the kept rows of x and clips negatives: over much data, so that it is prepared.
TEST_F(EagerCacheTest, ALightSectionOverMuchDataIsPreparedAndMakesNoRecipe) {
  ModelBuilder b;
  b.Input("x", {"n", "m"}).Input("keep", {"n"}, Proto::BOOL);
  SetAttribute(b.Node("Compress", {"x", "keep"}, {"kept"}), "axis", int64_t{0});
  b.Floats("two", {}, {2});
  b.Node("Mul", {"kept", "two"}, {"twice"});
  b.Node("Relu", {"twice"}, {"y"});
  ModelBuilder::SetType(b.graph().add_output(), "y", Proto::FLOAT, {"kept", "m"});
  Load(b);
  const int64_t width = 20'000;
  std::vector<float> x(3 * width);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3;
  const std::vector<uint8_t> keep = {1, 0, 1};
  const auto run = [&] { return Floats(Run({{{3, width}, x.data()}, {{3}, keep.data()}})); };
  const std::vector<float> first = run();
  ASSERT_THAT(first, SizeIs(2 * width));
  for (int64_t i = 0; i < 2 * width; ++i) {
    ASSERT_EQ(first[i], std::max(0.0f, 2 * x[i < width ? i : i + width])) << i;
  }
  const size_t compiles = told().compiles.size();
  // The front, which has no nodes, is prepared as well.
  EXPECT_EQ(told().eager_misses, 2);
  EXPECT_EQ(run(), first);
  EXPECT_EQ(told().eager_hits, 2);
  EXPECT_EQ(told().compiles.size(), compiles);
}

TEST_F(EagerCacheTest, ANodeAtACutRunsOnAFastKernelWhereThereIsOne) {
  ModelBuilder b;
  b.Input("x", {"n", "m"}).Input("lengths", {"n"}, Proto::INT64);
  b.Initializer<int64_t>("zero", Proto::INT64, {1}, {0});
  b.Initializer<int64_t>("one", Proto::INT64, {1}, {1});
  SetAttribute(b.Node("ReduceMax", {"lengths"}, {"longest"}), "keepdims", int64_t{1});
  b.Node("Slice", {"x", "zero", "longest", "one"}, {"y"}, "cut");
  ModelBuilder::SetType(b.graph().add_output(), "y", Proto::FLOAT, {"n", "longest"});
  Load(b);
  const int64_t width = 20'000;
  std::vector<float> x(2 * width);
  std::iota(x.begin(), x.end(), 0.0f);
  const auto run = [&](std::vector<int64_t> lengths) {
    return Floats(Run({{{2, width}, x.data()}, {{2}, lengths.data()}}));
  };
  const std::vector<float> first = run({3, 2});
  EXPECT_THAT(first, testing::ElementsAre(0, 1, 2, width, width + 1, width + 2));
  EXPECT_EQ(told().eager_misses, 1);
  EXPECT_EQ(run({1, 3}), first);
  EXPECT_EQ(told().eager_hits, 1);
  // Another end is another kernel.
  EXPECT_THAT(run({1, 1}), testing::ElementsAre(0, width));
  EXPECT_EQ(told().eager_misses, 2);
}

TEST_F(EagerCacheTest, AnUnloadedModelLeavesNothing) {
  Load(Mean());
  MeanOf(3);
  const std::weak_ptr<const EagerCache::Share> share = model_->eager_share();
  model_.reset();
  EXPECT_TRUE(share.expired());
}

}  // namespace
}  // namespace reprise
