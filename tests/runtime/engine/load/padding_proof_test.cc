// A proof of padding that is finished while the model serves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "runtime/engine/load/certifier.h"
#include "tests/runtime/engine/load/proof_fixture.h"
#include "tests/testing/masked_mean.h"

namespace reprise {
namespace {

constexpr size_t kSequence = 1;  // position in Model::axes()

class PaddingProofTest : public ProofFixture {
 protected:
  std::shared_ptr<Model> Load(LateTokens late,
                              ModelOptions options = {.confirm_padding_later = true}) {
    options.id = {"mean", 1};
    options.path = folder_.Write("model.onnx", MaskedMeanModel(late));
    auto model = engine_->Load(std::move(options));
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *model : nullptr;
  }

  // Returns the answer, and the bucket of it.
  std::pair<std::string, std::string> Run(const Model& model, int64_t length) {
    const MeanRequest tokens(1, length);
    const Response response = engine_->RunOne(model, tokens.request, *stream_);
    EXPECT_TRUE(response.status.ok()) << response.status;
    if (!response.status.ok()) return {};
    return {response.outputs[0].bytes, response.info.bucket};
  }

  // Returns whether a request of `length` tokens would wait for the proof.
  bool Waits(const Model& model, int64_t length, std::function<void(absl::Status)> ready) {
    const MeanRequest tokens(1, length);
    BatchPlan plan(model);
    EXPECT_TRUE(plan.TryAdd(*model.Measure(tokens.request)));
    return engine_->Prepare(plan, std::move(ready)) != nullptr;
  }
};

TEST_F(PaddingProofTest, LongRequestsWaitForTheProofAndThenGetTheirBucket) {
  const auto model = Load(LateTokens::kTwice);
  ASSERT_NE(model, nullptr);
  ASSERT_TRUE(model->padding().pending());
  EXPECT_EQ(model->padding().proved_to(kSequence), 16);
  EXPECT_EQ(Run(*model, 10).second, "b1_s16");
  const RequestShape before = *model->Measure(MeanRequest(1, 20).request);
  EXPECT_TRUE(before.exact && before.unproved);
  int told = 0;
  ASSERT_TRUE(Waits(*model, 20, [&](absl::Status status) { told += status.ok(); }));
  EXPECT_EQ(told, 0);
  engine_->ConfirmPadding(*model);
  EXPECT_EQ(told, 1);
  const auto now = model->MeasureAgain(before);
  ASSERT_TRUE(now.has_value());
  EXPECT_FALSE(now->exact || now->unproved);
  EXPECT_FALSE(model->MeasureAgain(*now).has_value());
  EXPECT_EQ(Run(*model, 20).second, "b1_s32");
}

TEST_F(PaddingProofTest, WhatTheOpsProveIsPaddedToAnySizeAtOnce) {
  const auto model = Load(LateTokens::kLikeOthers);
  ASSERT_NE(model, nullptr);
  EXPECT_TRUE(model->axes()[kSequence].certificate.proved);
  EXPECT_EQ(model->axes()[kSequence].certificate.mixing, "");
  EXPECT_TRUE(model->padding().pending()) << "long sizes are measured all the same";
  EXPECT_EQ(model->padding().proved_to(kSequence), PaddingProgress::kAnySize);
  EXPECT_FALSE(model->Measure(MeanRequest(1, 200).request)->exact);
  EXPECT_EQ(Run(*model, 20).second, "b1_s32");
  engine_->ConfirmPadding(*model);
  EXPECT_TRUE(model->CertificateOf(kSequence).proved);
  EXPECT_EQ(Run(*model, 20).second, "b1_s32");
}

TEST_F(PaddingProofTest, WhatTheOpsProveTakesFewRunsBeforeItServesAndTheRestBehind) {
  const auto model = Load(LateTokens::kLikeOthers);
  ASSERT_NE(model, nullptr);
  EXPECT_LE(model->axes()[kSequence].certificate.runs, 8);
  EXPECT_LE(model->axes()[1 - kSequence].certificate.runs, 4);
  engine_->ConfirmPadding(*model);
  EXPECT_GT(model->CertificateOf(1 - kSequence).runs, 12);
  // Its smallest size as well.
  EXPECT_THAT(model->CertificateOf(kSequence).reason, testing::HasSubstr("the same at 16, 32"));
  const auto unproved = Load(LateTokens::kTwice);
  ASSERT_NE(unproved, nullptr);
  EXPECT_GT(unproved->axes()[kSequence].certificate.runs, 10);
}

TEST_F(PaddingProofTest, CallersThatDoNotWaitRunExact) {
  const auto model = Load(LateTokens::kTwice);
  ASSERT_NE(model, nullptr);
  const auto exact = Run(*model, 20);
  EXPECT_EQ(exact.second, "exact");
  engine_->ConfirmPadding(*model);
  EXPECT_EQ(Run(*model, 20), std::make_pair(exact.first, std::string("b1_s32")));
}

TEST_F(PaddingProofTest, LargerRecipeServesOnlyOnceItsSizeIsProved) {
  const auto model = Load(LateTokens::kTwice);
  ASSERT_NE(model, nullptr);
  absl::Status captured = absl::UnknownError("not called");
  Mutex mutex;
  CondVar changed;
  bool done = false;
  engine_->CaptureAhead(*model, {{"batch", 1}, {"sequence", 64}}, CompileReason::kWarmup,
                        CaptureUrgency::kUrgent, [&](absl::Status status) {
                          MutexLock lock(mutex);
                          captured = status;
                          done = true;
                          changed.NotifyAll();
                        });
  {
    MutexLock lock(mutex);
    while (!done) changed.Wait(mutex);
  }
  ASSERT_TRUE(captured.ok()) << captured;
  EXPECT_EQ(Run(*model, 10).second, "b1_s16");
  engine_->ConfirmPadding(*model);
  EXPECT_EQ(Run(*model, 20).second, "b1_s64");
}

TEST_F(PaddingProofTest, WhatLeaksAtLongSizesOnlyIsNeverPaddedAgain) {
  const auto model = Load(LateTokens::kUnmasked);
  ASSERT_NE(model, nullptr);
  EXPECT_TRUE(model->axes()[kSequence].certificate.certified);
  const RequestShape before = *model->Measure(MeanRequest(1, 10).request);
  EXPECT_FALSE(before.exact);
  engine_->ConfirmPadding(*model);
  EXPECT_EQ(model->padding().proved_to(kSequence), 0);
  EXPECT_FALSE(model->CertificateOf(kSequence).certified);
  EXPECT_THAT(model->CertificateOf(kSequence).reason, testing::Not(testing::IsEmpty()));
  // Requests that were measured before the proof failed run exact, too.
  const auto now = model->MeasureAgain(before);
  ASSERT_TRUE(now.has_value());
  EXPECT_TRUE(now->exact);
  EXPECT_EQ(Run(*model, 10).second, "exact");
  EXPECT_EQ(Run(*model, 50).second, "exact");
  EXPECT_FALSE(Waits(*model, 50, [](absl::Status) {}));
}

TEST_F(PaddingProofTest, ASizeBeyondTheLargestBucketIsLookedAtBeforePaddingGoesThere) {
  const Certifier certifier(
      {.device = &device_, .clock = &clock_, .cores = &cores_, .log = [](const std::string&) {}});
  for (const LateTokens late : {LateTokens::kLikeOthers, LateTokens::kTwice}) {
    const auto model = LoadBytes(*engine_, MaskedMeanModel(late, /*first_late=*/600));
    ASSERT_NE(model, nullptr);
    EXPECT_TRUE(certifier.Extend(model->view(), kSequence, 1024).ok());
  }
  const auto model = LoadBytes(*engine_, MaskedMeanModel(LateTokens::kUnmasked, 600));
  ASSERT_NE(model, nullptr);
  EXPECT_TRUE(model->CertificateOf(kSequence).certified);
  const absl::Status status = certifier.Extend(model->view(), kSequence, 1024);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
}

// Text detectors do this: made smaller by four and larger again, so that other sides do not fit.
TEST_F(PaddingProofTest, BatchesOfImagesAreTriedAtSidesThatTheModelTakes) {
  ModelBuilder b;
  b.Input("x", {"n", "1", "height", "width"}).Output("y");
  auto& pool = b.Node("MaxPool", {"x"}, {"small"});
  const auto ints = [&](const char* name, const std::vector<int64_t>& values) {
    auto* attribute = pool.add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::INTS);
    for (const int64_t value : values) attribute->add_ints(value);
  };
  ints("kernel_shape", {4, 4});
  ints("strides", {4, 4});
  b.Floats("scales", {4}, {1, 1, 4, 4});
  b.Node("Resize", {"small", "", "scales"}, {"large"});
  b.Node("Add", {"x", "large"}, {"y"});
  const auto model = LoadBytes(*engine_, b.Bytes());
  ASSERT_NE(model, nullptr);
  ASSERT_EQ(model->batch_axis(), 0);
  EXPECT_TRUE(model->CertificateOf(0).certified) << model->CertificateOf(0).reason;
}

TEST_F(PaddingProofTest, OnlyTheWholeProofIsKeptForTheNextStart) {
  for (const LateTokens late : {LateTokens::kTwice, LateTokens::kUnmasked}) {
    const auto first = Load(late);
    ASSERT_NE(first, nullptr);
    store_->WritePending();
    const auto second = Load(late);
    ASSERT_NE(second, nullptr);
    EXPECT_TRUE(second->padding().pending()) << "half a proof was taken for the whole";
    engine_->ConfirmPadding(*first);
    store_->WritePending();
    const auto third = Load(late);
    ASSERT_NE(third, nullptr);
    EXPECT_FALSE(third->padding().pending());
    EXPECT_EQ(third->axes()[kSequence].certificate.runs, 0);
    EXPECT_EQ(third->axes()[kSequence].certificate.certified, late == LateTokens::kTwice);
  }
}

}  // namespace
}  // namespace reprise
