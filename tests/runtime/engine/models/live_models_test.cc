// Models with convolutions and pools in front are padded: every answer equals the model's at the
// request's own sizes, alone and next to requests of other sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "tests/runtime/engine/models/live_builders.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using ::testing::IsEmpty;

struct LiveCase {
  const char* name;
  std::string (*bytes)();
  std::vector<std::string> axes;             // padded ones
  std::vector<std::vector<int64_t>> shapes;  // each the one input of a request
  std::map<std::string, std::vector<int64_t>> buckets = {};
};

void PrintTo(const LiveCase& c, std::ostream* out) { *out << c.name; }

const LiveCase kCases[] = {
    {"ResNetLike",
     ResNetLike,
     {"height", "width"},
     {{1, 3, 33, 70}, {1, 3, 64, 64}, {2, 3, 40, 61}, {1, 3, 57, 39}, {1, 3, 34, 128}}},
    {"InceptionLike",
     InceptionLike,
     {"height", "width"},
     {{1, 3, 33, 70}, {1, 3, 64, 64}, {2, 3, 40, 61}, {1, 3, 57, 39}, {1, 3, 34, 128}}},
    {"AveragedLineLike",
     AveragedLineLike,
     {"sequence"},
     {{1, 4, 50}, {1, 4, 33}, {3, 4, 64}, {1, 4, 19}, {1, 4, 128}}},
    {"SpeechLike", SpeechLike, {"sequence"}, {{1, 400}, {1, 251}, {2, 333}, {1, 512}, {1, 97}}},
    {"LongStridesLike",
     LongStridesLike,
     {"sequence"},
     {{1, 2000}, {1, 1251}, {2, 1333}, {1, 400}, {1, 719}, {1, 1999}},
     {{"sequence", {1000, 2000}}}},
    {"ListenerLike",
     ListenerLike,
     {"sequence"},
     {{1, 12, 50}, {1, 12, 33}, {3, 12, 64}, {1, 12, 7}}},
    {"TextLineLike", TextLineLike, {"sequence"}, {{1, 1, 16, 40}, {1, 1, 16, 23}, {2, 1, 16, 64}}},
    {"TextWindowsLike", TextWindowsLike, {"sequence"}, {{1, 9}, {1, 30}, {3, 17}, {1, 5}}},
};

// A request of the one input of a model.
struct OneInput {
  OneInput(const Shape& shape, DType dtype, uint64_t seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    std::normal_distribution<float> normal;
    const auto count = static_cast<size_t>(NumElements(shape));
    bytes.resize(count * DTypeSize(dtype));
    for (size_t i = 0; i < count; ++i) {
      const float value = normal(random);
      const int64_t id = random() % 50;
      const void* const from = dtype == DType::kInt64 ? static_cast<const void*>(&id) : &value;
      std::memcpy(bytes.data() + i * DTypeSize(dtype), from, DTypeSize(dtype));
    }
    request.inputs.push_back({shape, bytes.data()});
  }
  OneInput(const OneInput&) = delete;

  std::string bytes;
  Request request;
};

double RelativeDifference(const OutputTensor& a, const OutputTensor& b) {
  EXPECT_EQ(a.shape, b.shape);
  if (a.shape != b.shape) return 1e9;
  std::vector<float> x(a.bytes.size() / sizeof(float)), y(x.size());
  std::memcpy(x.data(), a.bytes.data(), a.bytes.size());
  std::memcpy(y.data(), b.bytes.data(), b.bytes.size());
  double largest = 0, difference = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(x[i])));
    const double apart = std::abs(static_cast<double>(x[i]) - y[i]);
    difference = std::isfinite(apart) ? std::max(difference, apart) : 1e9;
  }
  return difference / std::max(largest, 1e-3);
}

class LiveModelsTest : public testing::TestWithParam<LiveCase> {
 protected:
  std::shared_ptr<Model> Load(const char* id, std::set<std::string> no_padding = {}) {
    auto model = fixture_.engine.Load({.id = {id, 1},
                                       .path = folder_.Write("m.onnx", GetParam().bytes()),
                                       .buckets = GetParam().buckets,
                                       .max_batch_tokens = int64_t{1} << 17,
                                       .no_padding = std::move(no_padding),
                                       .capture = CapturePolicy::kInline});
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : nullptr;
  }

  const TempFolder folder_;
  EngineFixture fixture_;
};

TEST_P(LiveModelsTest, AnswersAreThoseAtTheirOwnSizes) {
  const LiveCase& c = GetParam();
  const auto padded = Load("padded");
  ASSERT_NE(padded, nullptr);
  std::vector<std::string> labels;
  for (const ModelAxis& axis : padded->axes()) {
    labels.push_back(axis.label);
    EXPECT_TRUE(axis.certificate.certified) << axis.label << ": " << axis.certificate.reason;
  }
  const auto exact = Load("exact", {labels.begin(), labels.end()});
  ASSERT_NE(exact, nullptr);
  const DType dtype = padded->inputs()[0].dtype;
  std::vector<std::unique_ptr<OneInput>> inputs;
  std::vector<Response> alone;
  for (const auto& shape : c.shapes) {
    inputs.push_back(
        std::make_unique<OneInput>(Shape(shape.begin(), shape.end()), dtype, inputs.size() + 1));
    Request& request = inputs.back()->request;
    alone.push_back(fixture_.engine.RunOne(*exact, request, *fixture_.stream));
    ASSERT_TRUE(alone.back().status.ok()) << alone.back().status;
    const Response response = fixture_.engine.RunOne(*padded, request, *fixture_.stream);
    ASSERT_TRUE(response.status.ok()) << response.status;
    EXPECT_NE(response.info.bucket, "exact") << ShapeToString(request.inputs[0].shape);
    EXPECT_LT(RelativeDifference(alone.back().outputs[0], response.outputs[0]), 2e-5)
        << response.info.bucket << " for " << ShapeToString(request.inputs[0].shape);
  }
  // All of them in one replay.
  BatchPlan plan(*padded);
  std::vector<const Request*> requests;
  for (const auto& input : inputs) {
    const auto shape = padded->Measure(input->request);
    ASSERT_TRUE(shape.ok()) << shape.status();
    ASSERT_TRUE(plan.TryAdd(*shape, nullptr, /*chosen=*/true));
    requests.push_back(&input->request);
  }
  const std::vector<Response> together = fixture_.engine.Run(plan, requests, *fixture_.stream);
  for (size_t i = 0; i < together.size(); ++i) {
    ASSERT_TRUE(together[i].status.ok()) << together[i].status;
    EXPECT_LT(RelativeDifference(alone[i].outputs[0], together[i].outputs[0]), 2e-5)
        << together[i].info.bucket << " for request " << i;
  }
  EXPECT_THAT(fixture_.observer.of("padded").reference_kernels, IsEmpty());
}

TEST_P(LiveModelsTest, TheOpsProveThePadding) {
  const auto model = Load("proved");
  ASSERT_NE(model, nullptr);
  for (const ModelAxis& axis : model->axes()) {
    EXPECT_TRUE(axis.certificate.certified) << axis.label << ": " << axis.certificate.reason;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, LiveModelsTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace reprise
