// A decoder whose padding is measured when a request asks for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <future>
#include <optional>
#include <set>

#include "tests/runtime/engine/load/proof_fixture.h"
#include "tests/testing/masked_mean.h"
#include "tests/testing/tiny_decoder.h"

namespace reprise {
namespace {

class DeferredProofTest : public ProofFixture {
 protected:
  // Nothing is padded along axes besides the batch, except `other_axes`.
  std::shared_ptr<Model> Load(bool defer, const std::string& bytes = TinyDecoderModel(),
                              bool other_axes = false) {
    std::set<std::string> off;
    if (!other_axes) off = {"sequence", "past"};
    auto model = engine_->Load({.id = {"tiny", 1},
                                .path = folder_.Write("model.onnx", bytes),
                                .no_padding = std::move(off),
                                .confirm_padding_later = defer,
                                .defer_padding = defer});
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *model : nullptr;
  }

  // Returns a request of `rows` rows of three tokens after a past of `past`.
  const Request& Ask(const Model& model, int64_t rows, int64_t past) {
    request_.inputs.clear();
    for (const ModelIo& input : model.inputs()) {
      if (input.name == "input_ids") {
        request_.inputs.push_back({{rows, 3}, ids_.data()});
      } else {
        request_.inputs.push_back({{rows, 2, past, 16}, numbers_.data()});
      }
    }
    return request_;
  }

  // Returns the first output for it.
  std::vector<float> Run(const Model& model, int64_t rows, int64_t past) {
    const Response response = engine_->RunOne(model, Ask(model, rows, past), *stream_);
    EXPECT_TRUE(response.status.ok()) << response.status;
    if (!response.status.ok()) return {};
    const auto& bytes = response.outputs[0].bytes;
    std::vector<float> numbers(bytes.size() / sizeof(float));
    std::memcpy(numbers.data(), bytes.data(), bytes.size());
    return numbers;
  }

  // Has a request wait for the proof; false where none is to be waited for.
  bool WaitsToTheEnd(const Model& model) {
    std::promise<absl::Status> told;
    BatchPlan plan(model);
    EXPECT_TRUE(plan.TryAdd(*model.Measure(Ask(model, 3, 5))));
    const auto ticket =
        engine_->Prepare(plan, [&](const absl::Status& status) { told.set_value(status); });
    if (ticket == nullptr) return false;
    EXPECT_TRUE(told.get_future().get().ok());
    return true;
  }

  const std::vector<int64_t> ids_ = {1, 5, 2, 7, 3, 9, 4, 4, 8};
  const std::vector<float> numbers_ = TinyNumbers(3 * 2 * 16 * 16, 9, 1);
  Request request_;
};

TEST_F(DeferredProofTest, ADecoderIsLoadedWithoutARun) {
  const auto model = Load(/*defer=*/true);
  ASSERT_NE(model, nullptr);
  ASSERT_TRUE(model->padding().awaits_request());
  for (size_t i = 0; i < model->axes().size(); ++i) {
    const AxisCertificate& certificate = model->axes()[i].certificate;
    EXPECT_EQ(certificate.runs, 0) << certificate.axis;
    if (certificate.certified) {
      EXPECT_EQ(model->padding().proved_to(i), 0) << certificate.axis;
    }
  }
}

TEST_F(DeferredProofTest, TheFirstRequestWaitsAndFindsWhatALoadWouldHaveMeasured) {
  const auto measured = Load(/*defer=*/false);
  const auto model = Load(/*defer=*/true);
  ASSERT_NE(measured, nullptr);
  ASSERT_NE(model, nullptr);
  EXPECT_TRUE(model->Measure(Ask(*model, 3, 5))->unproved);
  ASSERT_TRUE(WaitsToTheEnd(*model));
  EXPECT_FALSE(model->padding().pending());
  EXPECT_FALSE(model->Measure(Ask(*model, 3, 5))->unproved);
  ASSERT_EQ(model->axes().size(), measured->axes().size());
  for (size_t i = 0; i < model->axes().size(); ++i) {
    const AxisCertificate late = model->CertificateOf(i), early = measured->CertificateOf(i);
    EXPECT_EQ(late.certified, early.certified) << early.axis;
    EXPECT_EQ(late.proved, early.proved) << early.axis;
    EXPECT_EQ(late.guards, early.guards) << early.axis;
    EXPECT_EQ(late.reason, early.reason) << early.axis;
    EXPECT_EQ(model->padding().proved_to(i), PaddingProgress::kAnySize) << early.axis;
  }
  EXPECT_EQ(model->packing_refusal(), measured->packing_refusal());
  for (const auto& [rows, past] : {std::pair{3, 5}, std::pair{1, 0}}) {
    const std::vector<float> late = Run(*model, rows, past), early = Run(*measured, rows, past);
    EXPECT_THAT(late, testing::Pointwise(testing::FloatNear(1e-4f), early)) << rows;
    EXPECT_FALSE(early.empty());
  }
}

TEST_F(DeferredProofTest, OnlyTheFirstOfManyBeginsTheProof) {
  const auto model = Load(/*defer=*/true);
  ASSERT_NE(model, nullptr);
  EXPECT_TRUE(model->padding().TakeUp());
  EXPECT_FALSE(model->padding().TakeUp());
  engine_->ConfirmPadding(*model);
  EXPECT_FALSE(model->padding().pending());
}

TEST_F(DeferredProofTest, WhatWasMeasuredOnceIsNotMeasuredAgain) {
  const auto first = Load(/*defer=*/true);
  ASSERT_NE(first, nullptr);
  engine_->ConfirmPadding(*first);
  store_->WritePending();
  const auto second = Load(/*defer=*/true);
  ASSERT_NE(second, nullptr);
  engine_->ConfirmPadding(*second);
  int runs = 0;
  for (size_t i = 0; i < second->axes().size(); ++i) {
    runs += first->CertificateOf(i).runs;
    EXPECT_EQ(second->CertificateOf(i).reason, first->CertificateOf(i).reason);
    EXPECT_EQ(second->CertificateOf(i).runs, 0);
  }
  EXPECT_GT(runs, 0);
}

TEST_F(DeferredProofTest, WhichOfSeveralAxesArePaddedIsMeasuredWhileAModelIsLoaded) {
  const auto model = Load(/*defer=*/true, TinyDecoderModel(), /*other_axes=*/true);
  ASSERT_NE(model, nullptr);
  EXPECT_FALSE(model->padding().awaits_request());
}

TEST_F(DeferredProofTest, ModelsWithoutACacheAreMeasuredWhileTheyAreLoaded) {
  const auto model = Load(/*defer=*/true, MaskedMeanModel(LateTokens::kLikeOthers));
  ASSERT_NE(model, nullptr);
  EXPECT_FALSE(model->padding().awaits_request());
}

}  // namespace
}  // namespace reprise
