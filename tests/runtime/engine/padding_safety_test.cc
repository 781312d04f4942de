// Small models with one habit each, from ONNX bytes to answers: what the certificate says of them,
// and that requests of random lengths in random company get the answers that they get alone and
// unpadded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"

namespace reprise {
namespace {

using testing::HasSubstr;

constexpr int64_t kVocabulary = 50;
constexpr int64_t kHidden = 8;
constexpr int64_t kPositions = 40;

void AddInputs(ModelBuilder& b, const std::string& batch, const std::string& sequence) {
  b.Input("input_ids", {batch, sequence}, onnx::TensorProto::INT64);
  b.Input("attention_mask", {batch, sequence}, onnx::TensorProto::INT64);
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  const auto table = [&](const std::string& name, int64_t rows) {
    std::vector<float> values(rows * kHidden);
    for (float& value : values) value = normal(random);
    b.Floats(name, {rows, kHidden}, values);
  };
  table("table", kVocabulary);
  table("positions", kPositions);
  b.Initializer<int64_t>("one", onnx::TensorProto::INT64, {1}, {1});
  b.Initializer<int64_t>("two", onnx::TensorProto::INT64, {1}, {2});
  b.Initializer<int64_t>("zero", onnx::TensorProto::INT64, {1}, {0});
  b.Node("Gather", {"table", "input_ids"}, {"x"});
  SetAttribute(b.Node("Cast", {"attention_mask"}, {"mask"}), "to",
               int64_t{onnx::TensorProto::FLOAT});
  b.Node("Unsqueeze", {"mask", "two"}, {"mask3"});
}

void AddMaskedMean(ModelBuilder& b, const std::string& result) {
  b.Node("Mul", {"x", "mask3"}, {"masked"});
  SetAttribute(b.Node("ReduceSum", {"masked", "one"}, {"sum"}), "keepdims", int64_t{0});
  SetAttribute(b.Node("ReduceSum", {"mask3", "one"}, {"count"}), "keepdims", int64_t{0});
  b.Node("Div", {"sum", "count"}, {result});
}

void AddReduceMean(ModelBuilder& b, int64_t axis, const std::string& result, bool keep) {
  auto& node = b.Node("ReduceMean", {"x"}, {result});
  SetAttribute(node, "axes", std::vector<int64_t>{axis});
  SetAttribute(node, "keepdims", int64_t{keep});
}

void AddTurned(ModelBuilder& b, const std::string& from, const std::string& to,
               const std::vector<int64_t>& permutation) {
  SetAttribute(b.Node("Transpose", {from}, {to}), "perm", permutation);
}

void AddWeights(ModelBuilder& b, const std::string& name, const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims) count *= dim;
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>((i * 37) % 23 - 11) / 16);
  b.Floats(name, dims, values);
}

// y [batch, hidden, sequence] = a window of three tokens around each, over `from`.
void AddConv(ModelBuilder& b, const std::string& from, int64_t stride) {
  AddTurned(b, from, "turned", {0, 2, 1});
  AddWeights(b, "kernel", {kHidden, kHidden, 3});
  auto& conv = b.Node("Conv", {"turned", "kernel"}, {"y"});
  SetAttribute(conv, "pads", std::vector<int64_t>{1, 1});
  SetAttribute(conv, "strides", std::vector<int64_t>{stride});
}

// A recurrent layer over the tokens, with what comes behind its three weights. States [sequence,
// directions, batch, hidden] and the last of them.
onnx::NodeProto& AddRecurrent(ModelBuilder& b, const std::string& op, int64_t gates,
                              const std::string& direction,
                              const std::vector<std::string>& more = {}) {
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  AddTurned(b, "x", "steps", {1, 0, 2});
  AddWeights(b, "w", {directions, gates * kHidden, kHidden});
  AddWeights(b, "r", {directions, gates * kHidden, kHidden});
  std::vector<std::string> inputs = {"steps", "w", "r"};
  inputs.insert(inputs.end(), more.begin(), more.end());
  auto& node = b.Node(op, inputs, {"states", "last"});
  SetAttribute(node, "hidden_size", kHidden);
  auto* attribute = node.add_attribute();
  attribute->set_name("direction");
  attribute->set_type(onnx::AttributeProto::STRING);
  attribute->set_s(direction);
  return node;
}

// How many positions of each row count, as the client's mask says.
void AddLengths(ModelBuilder& b, int64_t type, const std::string& result) {
  SetAttribute(b.Node("ReduceSum", {"attention_mask", "one"}, {"counted"}), "keepdims", int64_t{0});
  SetAttribute(b.Node("Cast", {"counted"}, {result}), "to", type);
}

struct HabitCase {
  const char* name;
  void (*build)(ModelBuilder&);
  bool batch;
  bool sequence;
  std::vector<std::string> guards = {};
  int64_t longest = 60;  // the model takes no longer requests
  int64_t largest_bucket = 512;
  bool packs = false;
};

void PrintTo(const HabitCase& c, std::ostream* out) { *out << c.name; }

const HabitCase kCases[] = {
    {"MaskedMean",
     [](ModelBuilder& b) {
       AddInputs(b, "batch", "sequence");
       AddMaskedMean(b, "y");
     },
     true,
     true,
     {"attention_mask"},
     60,
     512,
     true},
    {"MaskedMeanOfUnnamedDims",
     [](ModelBuilder& b) {
       AddInputs(b, "", "");
       AddMaskedMean(b, "y");
     },
     true,
     true,
     {"attention_mask"},
     60,
     512,
     true},
    {"UnmaskedMean",
     [](ModelBuilder& b) {
       AddInputs(b, "batch", "sequence");
       AddReduceMean(b, 1, "y", false);
     },
     true, false},
    {"CentredOverTheBatch",
     [](ModelBuilder& b) {
       AddInputs(b, "batch", "sequence");
       AddReduceMean(b, 0, "mean", true);
       b.Node("Sub", {"x", "mean"}, {"y"});
     },
     false, true},
    {"TableOfPositions",
     [](ModelBuilder& b) {
       AddInputs(b, "batch", "sequence");
       b.Node("Shape", {"input_ids"}, {"shape"});
       b.Node("Slice", {"shape", "one", "two"}, {"length"});
       b.Node("Slice", {"positions", "zero", "length", "zero"}, {"used"});
       b.Node("Add", {"x", "used"}, {"y"});
     },
     true,
     true,
     {},
     /*longest=*/kPositions,
     /*largest_bucket=*/32},
    {"FlattenedTokens",
     [](ModelBuilder& b) {
       AddInputs(b, "batch", "sequence");
       b.Initializer<int64_t>("flat", onnx::TensorProto::INT64, {2}, {-1, kHidden});
       b.Node("Reshape", {"x", "flat"}, {"y"});
     },
     false, false},
    {"ReversedTokens",
     [](ModelBuilder& b) {
       AddInputs(b, "batch", "sequence");
       b.Initializer<int64_t>("start", onnx::TensorProto::INT64, {1}, {-1});
       b.Initializer<int64_t>("end", onnx::TensorProto::INT64, {1}, {-100000});
       b.Node("Slice", {"x", "start", "end", "one", "start"}, {"y"});
     },
     true, false},
    {"LengthCutAtThirtyTwo",
     [](ModelBuilder& b) {
       AddInputs(b, "batch", "sequence");
       b.Initializer<int64_t>("most", onnx::TensorProto::INT64, {1}, {32});
       b.Node("Slice", {"x", "zero", "most", "one"}, {"y"});
     },
     true, false},
    {"SqueezedAtOne",
     [](ModelBuilder& b) {
       AddInputs(b, "batch", "sequence");
       b.Node("Squeeze", {"x"}, {"y"});
     },
     false, false},
    {"IdsOfTransposedTokens",
     [](ModelBuilder& b) {
       AddInputs(b, "batch", "sequence");
       SetAttribute(b.Node("Transpose", {"input_ids"}, {"turned"}), "perm",
                    std::vector<int64_t>{1, 0});
       b.Node("Gather", {"table", "turned"}, {"looked_up"});
       SetAttribute(b.Node("Transpose", {"looked_up"}, {"y"}), "perm",
                    std::vector<int64_t>{1, 0, 2});
     },
     true, true},
    {"StridedConvolution",
     [](ModelBuilder& b) {
       AddInputs(b, "batch", "sequence");
       AddConv(b, "x", 2);
     },
     true, false},
    {"ConvolutionOverTheEdge",
     [](ModelBuilder& b) {
       AddInputs(b, "batch", "sequence");
       AddConv(b, "x", 1);
     },
     true, false},
    {"ConvolutionOfMaskedTokens",
     [](ModelBuilder& b) {
       AddInputs(b, "batch", "sequence");
       b.Node("Mul", {"x", "mask3"}, {"masked"});
       AddConv(b, "masked", 1);
     },
     true,
     true,
     {"attention_mask"}},
    {"PooledOverTheEdge",
     [](ModelBuilder& b) {
       AddInputs(b, "batch", "sequence");
       AddTurned(b, "x", "turned", {0, 2, 1});
       auto& pool = b.Node("AveragePool", {"turned"}, {"y"});
       SetAttribute(pool, "kernel_shape", std::vector<int64_t>{3});
       SetAttribute(pool, "strides", std::vector<int64_t>{2});
       SetAttribute(pool, "pads", std::vector<int64_t>{0, 2});
     },
     true, false},
    {"RecurrenceForward",
     [](ModelBuilder& b) {
       AddInputs(b, "batch", "sequence");
       AddRecurrent(b, "LSTM", 4, "forward");
       AddTurned(b, "states", "y", {2, 0, 1, 3});
     },
     true, true},
    {"RecurrenceReversed",
     [](ModelBuilder& b) {
       AddInputs(b, "batch", "sequence");
       AddRecurrent(b, "LSTM", 4, "reverse");
       AddTurned(b, "states", "y", {2, 0, 1, 3});
     },
     true, false},
    {"RecurrenceUpToTheMask",
     [](ModelBuilder& b) {
       AddInputs(b, "batch", "sequence");
       AddLengths(b, onnx::TensorProto::INT32, "lengths");
       AddRecurrent(b, "GRU", 3, "bidirectional", {"", "lengths"});
       AddTurned(b, "last", "y", {1, 0, 2});
     },
     true,
     true,
     {"attention_mask"}},
    {"LastState",
     [](ModelBuilder& b) {
       AddInputs(b, "batch", "sequence");
       AddRecurrent(b, "RNN", 1, "forward");
       AddTurned(b, "last", "y", {1, 0, 2});
     },
     true, false},
    {"StatisticsOfTheSequence",
     [](ModelBuilder& b) {
       AddInputs(b, "batch", "sequence");
       AddTurned(b, "x", "turned", {0, 2, 1});
       AddWeights(b, "scale", {kHidden});
       b.Node("InstanceNormalization", {"turned", "scale", "scale"}, {"y"});
     },
     true, false},
    {"ReversedUpToTheMask",
     [](ModelBuilder& b) {
       AddInputs(b, "batch", "sequence");
       AddLengths(b, onnx::TensorProto::INT64, "lengths");
       auto& node = b.Node("ReverseSequence", {"x", "lengths"}, {"y"});
       SetAttribute(node, "batch_axis", int64_t{0});
       SetAttribute(node, "time_axis", int64_t{1});
     },
     true,
     true,
     {"attention_mask"}},
    {"SampledAtTwoThirds",
     [](ModelBuilder& b) {
       AddInputs(b, "batch", "sequence");
       AddTurned(b, "x", "turned", {0, 2, 1});
       b.Floats("scales", {3}, {1, 1, 1.5f});
       b.Node("Resize", {"turned", "", "scales"}, {"y"});
     },
     true, false},
    {"SimilarityOfRows",
     [](ModelBuilder& b) {
       AddInputs(b, "batch", "sequence");
       AddMaskedMean(b, "pooled");
       SetAttribute(b.Node("Transpose", {"pooled"}, {"transposed"}), "perm",
                    std::vector<int64_t>{1, 0});
       b.Node("MatMul", {"pooled", "transposed"}, {"y"});
     },
     true,
     true,
     {"attention_mask"}},
};

// One request with its own bytes. The first position always counts.
struct Tokens {
  Tokens(int64_t rows, int64_t length, std::mt19937& random) {
    for (int64_t i = 0; i < rows * length; ++i) {
      ids.push_back(std::uniform_int_distribution<int64_t>(0, kVocabulary - 1)(random));
      mask.push_back(i % length == 0 || random() % 4 != 0);
    }
    request.inputs = {{{rows, length}, ids.data()}, {{rows, length}, mask.data()}};
  }
  std::vector<int64_t> ids, mask;
  Request request;
};

void ExpectSame(const Response& actual, const Response& expected) {
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
  for (size_t i = 0; i < count; ++i) largest = std::max<double>(largest, std::fabs(want[i]));
  for (size_t i = 0; i < count; ++i) ASSERT_NEAR(got[i], want[i], 1e-5 * largest);
}

class PaddingSafetyTest : public testing::TestWithParam<std::tuple<HabitCase, PackingMode>> {
 protected:
  const HabitCase& habit() const { return std::get<0>(GetParam()); }
  PackingMode packing() const { return std::get<1>(GetParam()); }

  std::shared_ptr<Model> Load(const std::string& name, std::set<std::string> no_padding,
                              bool later = false) {
    ModelBuilder builder;
    habit().build(builder);
    builder.Output("y");
    const std::filesystem::path path =
        std::filesystem::path(testing::TempDir()) /
        absl::StrCat(habit().name, "_", name, packing() == PackingMode::kAuto ? "_packed" : "",
                     ".onnx");
    std::ofstream(path, std::ios::binary) << builder.Bytes();
    auto model = fixture_.engine.Load({.id = {name, 1},
                                       .path = path.string(),
                                       .no_padding = std::move(no_padding),
                                       .packing = packing(),
                                       .confirm_padding_later = later});
    std::filesystem::remove(path);
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : nullptr;
  }

  EngineFixture fixture_;
};

TEST_P(PaddingSafetyTest, TheCertificateIsAsExpected) {
  const std::shared_ptr<Model> model = Load("model", {});
  ASSERT_NE(model, nullptr);
  ASSERT_EQ(model->axes().size(), 2u);
  const AxisCertificate& batch = model->axes()[0].certificate;
  const AxisCertificate& sequence = model->axes()[1].certificate;
  EXPECT_EQ(batch.certified, habit().batch) << batch.reason;
  EXPECT_EQ(sequence.certified, habit().sequence) << sequence.reason;
  EXPECT_EQ(sequence.guards, habit().guards);
  EXPECT_EQ(model->packing() != nullptr, packing() == PackingMode::kAuto && habit().packs)
      << model->packing_refusal();
  EXPECT_EQ(model->packing_refusal().empty(), packing() == PackingMode::kOff || habit().packs);
  EXPECT_EQ(model->batches_requests(), habit().batch);
  if (sequence.certified) {
    EXPECT_EQ(model->buckets()->Largest("sequence"), habit().largest_bucket);
  } else {
    EXPECT_NE(sequence.reason, "");
  }
}

TEST_P(PaddingSafetyTest, ConfirmingLaterCertifiesAsLoadingDoes) {
  const std::shared_ptr<Model> at_once = Load("at_once", {});
  const std::shared_ptr<Model> later = Load("later", {}, /*later=*/true);
  ASSERT_TRUE(at_once != nullptr && later != nullptr);
  EXPECT_EQ(later->axes()[1].certificate.certified, at_once->axes()[1].certificate.certified);
  EXPECT_EQ(later->axes()[1].certificate.guards, at_once->axes()[1].certificate.guards);
  fixture_.engine.ConfirmPadding(*later);
  EXPECT_FALSE(later->padding().pending());
  EXPECT_EQ(later->padding().proved_to(1), PaddingProgress::kAnySize);
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
    for (int64_t i = 0; i < 1 + below(5); ++i) {
      waiting.push_back(std::make_unique<Tokens>(1 + below(3), 1 + below(habit().longest), random));
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
        ExpectSame(responses[i], alone);
        if (HasFatalFailure()) {
          FAIL() << "request " << ShapeToString(requests[i]->inputs[0].shape) << " of "
                 << requests.size() << " in " << responses[i].info.bucket;
        }
      }
      waiting = std::move(rest);
    }
  }
  EXPECT_EQ(shared > 0, habit().batch);
}

TEST_P(PaddingSafetyTest, BadIdFailsItsRequestAlone) {
  if (!habit().batch) return;  // Nobody shares a replay.
  const std::shared_ptr<Model> model = Load("model", {});
  ASSERT_NE(model, nullptr);
  std::mt19937 random(3);
  // As many rows as positions, so that neither can be told from the other by its size.
  Tokens good(2, 4, random), bad(1, 4, random), other(1, 4, random);
  bad.ids[2] = 1000;
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
              testing::AllOf(HasSubstr("input_ids"), HasSubstr("1000")));
  EXPECT_EQ(responses[0].info.capture, CaptureOutcome::kCaptured);
}

INSTANTIATE_TEST_SUITE_P(Habits, PaddingSafetyTest,
                         testing::Combine(testing::ValuesIn(kCases),
                                          testing::Values(PackingMode::kOff, PackingMode::kAuto)),
                         [](const auto& info) {
                           const bool packed = std::get<1>(info.param) == PackingMode::kAuto;
                           return std::string(std::get<0>(info.param).name) +
                                  (packed ? "PackedWherePossible" : "");
                         });

}  // namespace
}  // namespace reprise
