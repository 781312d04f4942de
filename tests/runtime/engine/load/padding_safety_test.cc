// Small models of one kind each, from ONNX bytes to answers: the certificate's findings about
// them, and that requests of random lengths in random company get the answers that they get alone
// and unpadded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/runtime/engine/load/padding_cases/attention.h"
#include "tests/runtime/engine/load/padding_cases/batch.h"
#include "tests/runtime/engine/load/padding_cases/coarse.h"
#include "tests/runtime/engine/load/padding_cases/joined_masks.h"
#include "tests/runtime/engine/load/padding_cases/named_attention.h"
#include "tests/runtime/engine/load/padding_cases/numbers.h"
#include "tests/runtime/engine/load/padding_cases/padding_case.h"
#include "tests/runtime/engine/load/padding_cases/places.h"
#include "tests/runtime/engine/load/padding_cases/plain.h"
#include "tests/runtime/engine/load/padding_cases/rare.h"
#include "tests/runtime/engine/load/padding_cases/sizes.h"
#include "tests/runtime/engine/load/padding_cases/sums.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using testing::HasSubstr;

// One request with its own bytes. Rows may be filled up at either end, in the middle, and all
// through.
struct Tokens {
  Tokens(int64_t rows, int64_t length, std::mt19937& random) {
    for (int64_t i = 0; i < rows * length; ++i) {
      ids.push_back(std::uniform_int_distribution<int64_t>(0, kVocabulary - 1)(random));
      mask.push_back(i % length == 0 || random() % 4 != 0);
    }
    const bool whole = random() % 3 == 0;
    if (whole) mask.assign(mask.size(), 1);
    for (int64_t row = 0; !whole && row < rows; ++row) {
      const auto begin = static_cast<int64_t>(random() % 3 == 0 ? 0 : random() % length);
      const auto end = static_cast<int64_t>(random() % 3 == 0 ? length : random() % (length + 1));
      for (int64_t i = 0; i < length; ++i) {
        int64_t& one = mask[row * length + i];
        one = random() % 8 == 0 ? one : (begin <= i && i < end) || end < begin;
      }
    }
    request.inputs = {{{rows, length}, ids.data()}, {{rows, length}, mask.data()}};
  }
  std::vector<int64_t> ids, mask;
  Request request;
};

void ExpectRelativelyNear(const Response& actual, const Response& expected) {
  ASSERT_TRUE(actual.status.ok()) << actual.status;
  ASSERT_TRUE(expected.status.ok()) << expected.status;
  const OutputTensor& a = actual.outputs[0];
  const OutputTensor& e = expected.outputs[0];
  ASSERT_EQ(a.shape, e.shape);
  ASSERT_EQ(a.bytes.size(), e.bytes.size());
  const auto* got = reinterpret_cast<const float*>(a.bytes.data());
  const auto* want = reinterpret_cast<const float*>(e.bytes.data());
  const size_t count = e.bytes.size() / sizeof(float);
  double largest = 0;
  for (size_t i = 0; i < count; ++i) {
    if (std::isfinite(want[i])) largest = std::max<double>(largest, std::fabs(want[i]));
  }
  for (size_t i = 0; i < count; ++i) {
    // A mean of nothing is no number.
    if (got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]))) continue;
    ASSERT_NEAR(got[i], want[i], 1e-5 * largest);
  }
}

class PaddingSafetyTest : public testing::TestWithParam<std::tuple<PaddingCase, PackingMode>> {
 protected:
  const PaddingCase& padding_case() const { return std::get<0>(GetParam()); }
  PackingMode packing() const { return std::get<1>(GetParam()); }

  std::shared_ptr<Model> Load(const std::string& name, std::set<std::string> no_padding) {
    ModelBuilder builder;
    AddInputs(builder, padding_case().named_axes ? "batch" : "",
              padding_case().named_axes ? "sequence" : "", padding_case().vocabulary);
    padding_case().build(builder);
    builder.Output("y");
    const TempFolder folder;
    const std::string path = folder.Write("model.onnx", builder.Bytes());
    auto model = fixture_.engine.Load(
        {.id = {name, 1}, .path = path, .no_padding = std::move(no_padding), .packing = packing()});
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : nullptr;
  }

  // Looks at sizes: where sizes decide something the first request of its sizes runs exact. Nothing
  // is captured.
  void LookAtSizesOf(const Model& model, const Request& request) {
    RequestShape shape = *model.Measure(request);
    if (!shape.in_new_slice) return;
    shape.on_miss = OnMiss::kEager;
    BatchPlan plan(model);
    ASSERT_TRUE(plan.TryAdd(shape));
    EXPECT_TRUE(fixture_.engine.Run(plan, {&request}, *fixture_.stream)[0].status.ok());
  }

  EngineFixture fixture_;
};

TEST_P(PaddingSafetyTest, TheCertificateIsAsExpected) {
  const std::shared_ptr<Model> model = Load("model", {});
  ASSERT_NE(model, nullptr);
  ASSERT_EQ(model->axes().size(), 2u);
  const AxisCertificate& batch = model->axes()[0].certificate;
  const AxisCertificate& sequence = model->axes()[1].certificate;
  EXPECT_EQ(batch.certified, padding_case().batch) << batch.reason;
  EXPECT_EQ(sequence.certified && !sequence.only_packed(), padding_case().sequence)
      << sequence.reason;
  EXPECT_THAT(sequence.reason, HasSubstr(padding_case().words));
  EXPECT_EQ(model->packing() != nullptr, packing() == PackingMode::kAuto && padding_case().packs)
      << model->packing_refusal();
  EXPECT_EQ(model->packing_refusal().empty(),
            packing() == PackingMode::kOff || padding_case().packs);
  EXPECT_EQ(model->batches_requests(), padding_case().batch);
  if (sequence.certified) {
    // Larger ones may open by themselves.
    for (const AxisBuckets& buckets : model->buckets()->axes) {
      if (buckets.axis != "sequence") continue;
      EXPECT_EQ(buckets.sizes.back(), padding_case().largest_bucket);
    }
  } else {
    EXPECT_NE(sequence.reason, "");
  }
}

TEST_P(PaddingSafetyTest, AnswersInCompanyAreThoseAloneAndUnpadded) {
  const std::shared_ptr<Model> model = Load("model", {});
  const std::shared_ptr<Model> exact = Load("exact", {"batch", "sequence"});
  ASSERT_TRUE(model != nullptr && exact != nullptr);
  std::mt19937 random(17);
  const auto below = [&](int64_t n) {
    return std::uniform_int_distribution<int64_t>(0, n - 1)(random);
  };
  int64_t shared = 0;
  for (int round = 0; round < 25; ++round) {
    std::vector<std::unique_ptr<Tokens>> waiting;
    int64_t length = 0;
    for (int64_t i = 0; i < 1 + below(5); ++i) {
      // Some are as long as the one before.
      if (length == 0 || below(3) != 0) length = 1 + below(padding_case().longest);
      waiting.push_back(std::make_unique<Tokens>(1 + below(3), length, random));
    }
    while (!waiting.empty()) {
      BatchPlan plan(*model);
      std::vector<std::unique_ptr<Tokens>> together, rest;
      for (std::unique_ptr<Tokens>& tokens : waiting) {
        const auto shape = model->Measure(tokens->request);
        ASSERT_TRUE(shape.ok()) << shape.status();
        (plan.TryAdd(*shape) ? together : rest).push_back(std::move(tokens));
      }
      ASSERT_FALSE(together.empty());
      std::vector<const Request*> requests;
      for (const auto& tokens : together) requests.push_back(&tokens->request);
      const std::vector<Response> responses = fixture_.engine.Run(plan, requests, *fixture_.stream);
      ASSERT_EQ(responses.size(), requests.size());
      if (requests.size() > 1) shared += requests.size();
      for (size_t i = 0; i < requests.size(); ++i) {
        const Response alone = fixture_.engine.RunOne(*exact, *requests[i], *fixture_.stream);
        EXPECT_EQ(alone.info.bucket, "exact");
        ExpectRelativelyNear(responses[i], alone);
        if (HasFatalFailure()) {
          FAIL() << "request " << ShapeToString(requests[i]->inputs[0].shape) << " of "
                 << requests.size() << " in " << responses[i].info.bucket;
        }
      }
      waiting = std::move(rest);
    }
  }
  EXPECT_EQ(shared > 0, padding_case().batch);
}

TEST_P(PaddingSafetyTest, BadIdFailsItsRequestAlone) {
  if (!padding_case().batch) return;  // No requests share a replay.
  const std::shared_ptr<Model> model = Load("model", {});
  ASSERT_NE(model, nullptr);
  std::mt19937 random(3);
  // There are as many rows as positions, so that their sizes do not tell the two apart.
  Tokens good(2, 4, random), bad(1, 4, random), other(1, 4, random);
  bad.ids[2] = 1000000;
  for (Tokens* tokens : {&good, &bad, &other}) tokens->mask.assign(tokens->mask.size(), 1);
  LookAtSizesOf(*model, good.request);
  BatchPlan plan(*model);
  std::vector<const Request*> requests;
  for (const Tokens* tokens : {&good, &bad, &other}) {
    const auto shape = model->Measure(tokens->request);
    ASSERT_TRUE(shape.ok()) << shape.status();
    ASSERT_TRUE(plan.TryAdd(*shape));
    requests.push_back(&tokens->request);
  }
  const std::vector<Response> responses = fixture_.engine.Run(plan, requests, *fixture_.stream);
  EXPECT_TRUE(responses[0].status.ok()) << responses[0].status;
  EXPECT_TRUE(responses[2].status.ok()) << responses[2].status;
  EXPECT_TRUE(absl::IsInvalidArgument(responses[1].status)) << responses[1].status;
  EXPECT_THAT(std::string(responses[1].status.message()),
              testing::AllOf(HasSubstr("input_ids"), HasSubstr("1000000")));
  EXPECT_EQ(responses[0].info.capture, CaptureOutcome::kCaptured);
}

std::string NameOfCase(const testing::TestParamInfo<std::tuple<PaddingCase, PackingMode>>& info) {
  const bool packed = std::get<1>(info.param) == PackingMode::kAuto;
  return std::string(std::get<0>(info.param).name) + (packed ? "PackedWherePossible" : "");
}

#define REPRISE_PADDING_CASES(name, cases, ...) \
  INSTANTIATE_TEST_SUITE_P(                     \
      name, PaddingSafetyTest,                  \
      testing::Combine(testing::ValuesIn(cases), testing::Values(__VA_ARGS__)), NameOfCase)

REPRISE_PADDING_CASES(Plain, kPlainCases, PackingMode::kOff, PackingMode::kAuto);
REPRISE_PADDING_CASES(Attention, kAttentionTraps, PackingMode::kOff);
REPRISE_PADDING_CASES(JoinedMasks, kJoinedTraps, PackingMode::kOff, PackingMode::kAuto);
REPRISE_PADDING_CASES(Places, kPlaceTraps, PackingMode::kOff);
REPRISE_PADDING_CASES(Sums, kSumTraps, PackingMode::kOff);
REPRISE_PADDING_CASES(Sizes, kSizeTraps, PackingMode::kOff);
REPRISE_PADDING_CASES(Batch, kBatchTraps, PackingMode::kOff);
REPRISE_PADDING_CASES(Named, kNamedCases, PackingMode::kOff, PackingMode::kAuto);
REPRISE_PADDING_CASES(Numbers, kNumberTraps, PackingMode::kOff);
REPRISE_PADDING_CASES(Coarse, kCoarseTraps, PackingMode::kOff);
REPRISE_PADDING_CASES(Rare, kRareTraps, PackingMode::kOff);

}  // namespace
}  // namespace reprise
