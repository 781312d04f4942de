// Odd signatures: initialisers that a request may override, dims that are sums.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class SignatureTest : public testing::Test {
 protected:
  void Load(const ModelBuilder& builder) {
    const TempFolder folder;
    const std::string path = folder.Write("model.onnx", builder.Bytes());
    auto loaded = fixture_.engine.Load({.id = {"m", 1}, .path = path});
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    model_ = *std::move(loaded);
  }
  Response Run(std::vector<InputTensor> inputs) {
    return fixture_.engine.RunOne(*model_, {.inputs = std::move(inputs)}, *fixture_.stream);
  }
  static std::vector<float> Floats(const Response& response) {
    if (!response.status.ok()) {
      ADD_FAILURE() << response.status;
      return {};
    }
    const std::string& bytes = response.outputs[0].bytes;
    const auto* data = reinterpret_cast<const float*>(bytes.data());
    return {data, data + bytes.size() / sizeof(float)};
  }

  EngineFixture fixture_;
  std::shared_ptr<Model> model_;
};

// y = Reshape(x * (scale + shift), to): three initialisers, all of them listed as inputs.
class OverrideTest : public SignatureTest {
 protected:
  void SetUp() override {
    ModelBuilder b;
    b.Input("x", {"n", "2"}).Input("scale", {"2"}).Input("shift", {"k"});
    b.Input("to", {"2"}, onnx::TensorProto::INT64).Output("y");
    b.Floats("scale", {2}, {10, 100});
    b.Floats("shift", {1}, {0});
    b.Initializer<int64_t>("to", onnx::TensorProto::INT64, {2}, {-1, 2});
    b.Node("Add", {"scale", "shift"}, {"factor"});
    b.Node("Mul", {"x", "factor"}, {"product"});
    b.Node("Reshape", {"product", "to"}, {"y"});
    Load(b);
  }
  const std::vector<float> x_ = {1, 2, 3, 4};
};

TEST_F(OverrideTest, WithoutThemAModelIsBatchedAsAnyOther) {
  EXPECT_TRUE(model_->batches_requests());
  const Response response = Run({{{2, 2}, x_.data()}, {}, {}, {}});
  EXPECT_THAT(Floats(response), ElementsAre(10, 200, 30, 400));
  EXPECT_EQ(response.info.bucket, "b2");
}

TEST_F(OverrideTest, EachSetOfValuesIsUsedByItsRequestAlone) {
  const std::vector<float> scale = {1, 2}, shift = {5, 7};
  EXPECT_THAT(Floats(Run({{{2, 2}, x_.data()}, {{2}, scale.data()}, {}, {}})),
              ElementsAre(1, 4, 3, 8));
  EXPECT_THAT(Floats(Run({{{2, 2}, x_.data()}, {}, {{2}, shift.data()}, {}})),
              ElementsAre(15, 214, 45, 428));
  EXPECT_THAT(Floats(Run({{{2, 2}, x_.data()}, {{2}, scale.data()}, {{1}, shift.data()}, {}})),
              ElementsAre(6, 14, 18, 28));
  const Response plain = Run({{{2, 2}, x_.data()}, {}, {}, {}});
  EXPECT_THAT(Floats(plain), ElementsAre(10, 200, 30, 400));
  EXPECT_EQ(plain.info.bucket, "b2");
}

TEST_F(OverrideTest, OtherValuesOfTheSameInputsAreReplayed) {
  const std::vector<float> one = {1, 1}, two = {2, 2};
  EXPECT_EQ(Run({{{2, 2}, x_.data()}, {{2}, one.data()}, {}, {}}).info.capture,
            CaptureOutcome::kCaptured);
  const Response again = Run({{{2, 2}, x_.data()}, {{2}, two.data()}, {}, {}});
  EXPECT_EQ(again.info.capture, CaptureOutcome::kReplayed);
  EXPECT_EQ(again.info.bucket, "exact");
  EXPECT_THAT(Floats(again), ElementsAre(2, 4, 6, 8));
}

TEST_F(OverrideTest, AShapeCanBeOverridden) {
  const std::vector<int64_t> to = {4, 1};
  const Response response = Run({{{2, 2}, x_.data()}, {}, {}, {{2}, to.data()}});
  EXPECT_THAT(Floats(response), ElementsAre(10, 200, 30, 400));
  EXPECT_EQ(response.outputs[0].shape, Shape({4, 1}));
  const std::vector<int64_t> wrong = {3, 3};
  const Response refused = Run({{{2, 2}, x_.data()}, {}, {}, {{2}, wrong.data()}});
  EXPECT_EQ(refused.status.code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(OverrideTest, AnOverrideOfAnotherShapeIsRefusedByName) {
  const std::vector<float> scale = {1, 2, 3};
  const Response response = Run({{{2, 2}, x_.data()}, {{3}, scale.data()}, {}, {}});
  EXPECT_EQ(response.status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(response.status.message()), HasSubstr("'scale' has shape [3]"));
}

TEST_F(SignatureTest, ADimThatIsASumWithASymbolOfItsOwnTakesAnySize) {
  ModelBuilder b;
  b.Input("x", {"batch", "past + sequence"}).Input("y", {"batch", "sequence"}).Output("z");
  SetAttribute(b.Node("Concat", {"x", "y"}, {"z"}), "axis", int64_t{1});
  Load(b);
  const std::vector<float> x = {1, 2, 3}, y = {4, 5};
  EXPECT_THAT(Floats(Run({{{1, 3}, x.data()}, {{1, 2}, y.data()}})), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(Floats(Run({{{1, 1}, x.data()}, {{1, 2}, y.data()}})), ElementsAre(1, 4, 5));
}

TEST_F(SignatureTest, ASumThatMustEqualAnAxisIsThatAxis) {
  ModelBuilder b;
  b.Input("x", {"batch", "past + sequence"}).Input("y", {"batch", "sequence"}).Output("z");
  b.Node("Add", {"x", "y"}, {"z"});
  Load(b);
  EXPECT_EQ(model_->axes().size(), 2);
  const std::vector<float> x = {1, 2}, y = {4, 5};
  const Response response = Run({{{1, 2}, x.data()}, {{1, 2}, y.data()}});
  EXPECT_THAT(Floats(response), ElementsAre(5, 7));
  EXPECT_EQ(response.info.bucket, "b1_s16");
}

TEST_F(SignatureTest, ASumOfKnownSymbolsIsChecked) {
  ModelBuilder b;
  b.Input("x", {"batch", "n"}).Input("y", {"batch", "n + 1"}).Output("z");
  SetAttribute(b.Node("Concat", {"x", "y"}, {"z"}), "axis", int64_t{1});
  Load(b);
  const std::vector<float> x = {1, 2, 3}, y = {4, 5};
  EXPECT_THAT(Floats(Run({{{1, 1}, x.data()}, {{1, 2}, y.data()}})), ElementsAre(1, 4, 5));
  const Response refused = Run({{{1, 2}, x.data()}, {{1, 2}, y.data()}});
  EXPECT_THAT(std::string(refused.status.message()), HasSubstr("'n + 1' is 2 instead of 3"));
}

TEST_F(SignatureTest, AnOptionThatIsAnInputChoosesTheBranch) {
  ModelBuilder b;
  b.Input("x", {"batch"}).Input("option", {"1"}, onnx::TensorProto::BOOL).Output("y");
  AddChoice(b, "option");
  Load(b);
  const std::vector<float> x = {-1, 2};
  const uint8_t yes = 1, no = 0;
  EXPECT_THAT(Floats(Run({{{2}, x.data()}, {{1}, &yes}})), ElementsAre(0, 2));
  EXPECT_THAT(Floats(Run({{{2}, x.data()}, {{1}, &no}})), ElementsAre(1, -2));
}

TEST_F(SignatureTest, ALengthChoosesTheBranch) {
  ModelBuilder b;
  b.Input("x", {"batch", "n"}).Output("y");
  b.Initializer<int64_t>("four", onnx::TensorProto::INT64, {1}, {4});
  SetAttribute(b.Node("Shape", {"x"}, {"length"}), "start", int64_t{1});
  b.Node("Less", {"length", "four"}, {"is_short"});
  AddChoice(b, "is_short");
  Load(b);
  const std::vector<float> x = {-1, 2, 3, -4, 5};
  EXPECT_THAT(Floats(Run({{{1, 3}, x.data()}})), ElementsAre(0, 2, 3));
  EXPECT_THAT(Floats(Run({{{1, 5}, x.data()}})), ElementsAre(1, -2, -3, 4, -5));
}

}  // namespace
}  // namespace reprise
