// Proofs of padding by the ops alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/engine/load/certifier.h"
#include "tests/runtime/engine/load/proof_fixture.h"
#include "tests/testing/masked_mean.h"

namespace reprise {
namespace {

constexpr size_t kSequence = 1;  // position in Model::axes()

class PaddingProofTest : public ProofFixture {
 protected:
  std::shared_ptr<Model> Load(LateTokens late, ModelOptions options = {}) {
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
};

TEST_F(PaddingProofTest, WhatTheOpsProveIsPaddedToAnySizeAtOnce) {
  const auto model = Load(LateTokens::kLikeOthers);
  ASSERT_NE(model, nullptr);
  EXPECT_TRUE(model->axes()[kSequence].certificate.certified);
  EXPECT_EQ(model->axes()[kSequence].certificate.mixing, "");
  EXPECT_FALSE(model->Measure(MeanRequest(1, 200).request)->exact);
  EXPECT_EQ(Run(*model, 20).second, "b1_s32");
}

TEST_F(PaddingProofTest, WhatLeaksAtLongSizesOnlyIsNeverPadded) {
  const auto model = Load(LateTokens::kUnmasked);
  ASSERT_NE(model, nullptr);
  EXPECT_FALSE(model->axes()[kSequence].certificate.certified);
  EXPECT_NE(model->axes()[kSequence].certificate.mixing, "");
  EXPECT_EQ(Run(*model, 10).second, "exact");
  EXPECT_EQ(Run(*model, 50).second, "exact");
}

TEST_F(PaddingProofTest, AQuarantinedAxisRunsExactFromThenOn) {
  const auto model = Load(LateTokens::kLikeOthers);
  ASSERT_NE(model, nullptr);
  const RequestShape before = *model->Measure(MeanRequest(1, 10).request);
  EXPECT_FALSE(before.exact);
  const auto padded = Run(*model, 10);
  model->quarantine().Add(kSequence, model->axes()[kSequence].certificate, "an answer differs");
  EXPECT_FALSE(model->CertificateOf(kSequence).certified);
  EXPECT_EQ(model->CertificateOf(kSequence).reason, "an answer differs");
  // Requests that were measured before run exact, too.
  const auto now = model->MeasureAgain(before);
  ASSERT_TRUE(now.has_value());
  EXPECT_TRUE(now->exact && now->quarantined);
  EXPECT_FALSE(model->MeasureAgain(*now).has_value());
  EXPECT_EQ(Run(*model, 10), std::make_pair(padded.first, std::string("exact")));
}

TEST_F(PaddingProofTest, ASizeBeyondTheLargestBucketIsLookedAtBeforePaddingGoesThere) {
  const auto model = LoadBytes(*engine_, MaskedMeanModel(LateTokens::kLikeOthers));
  ASSERT_NE(model, nullptr);
  EXPECT_TRUE(Certifier::Extend(model->view(), kSequence, 1024).ok());
  const auto refused = LoadBytes(*engine_, MaskedMeanModel(LateTokens::kUnmasked, 600));
  ASSERT_NE(refused, nullptr);
  const absl::Status status = Certifier::Extend(refused->view(), kSequence, 1024);
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

TEST_F(PaddingProofTest, WhatIsProvedIsKeptForTheNextStart) {
  for (const LateTokens late : {LateTokens::kLikeOthers, LateTokens::kUnmasked}) {
    const auto first = Load(late);
    ASSERT_NE(first, nullptr);
    store_->WritePending();
    const auto second = Load(late);
    ASSERT_NE(second, nullptr);
    for (const size_t axis : {size_t{0}, kSequence}) {
      EXPECT_EQ(second->CertificateOf(axis), first->CertificateOf(axis));
    }
    EXPECT_EQ(second->CertificateOf(kSequence).certified, late == LateTokens::kLikeOthers);
  }
}

}  // namespace
}  // namespace reprise
