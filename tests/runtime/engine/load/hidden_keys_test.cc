// Queries from which every key is hidden, by several inputs together or by a table of the model:
// their attention would go to padding as well. Such requests run exact, or their axis is not
// padded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/runtime/engine/load/padding_cases/parts.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Key;
using testing::SizeIs;

constexpr int64_t kWidth = 4;

// `y`: attention of `q` over `k`, its scores under `masked` as the model makes it of `scores`.
void AddAttentionOf(ModelBuilder& b, const std::string& q, const std::string& k) {
  b.Node("Softmax", {"masked"}, {"weights"}, "/Softmax");
  b.Node("MatMul", {"weights", k}, {"y"});
  b.Output("y");
}

void AddScores(ModelBuilder& b, const std::string& q, const std::string& k) {
  AddTurned(b, k, "turned", {0, 2, 1});
  b.Node("MatMul", {q, "turned"}, {"scores"});
  AddNumber(b, "lowest", kLowestFloat);
}

class HiddenKeysTest : public testing::Test {
 protected:
  void Load(const ModelBuilder& b) {
    const std::string path = folder_.Write("m.onnx", b.Bytes());
    const auto load = [&](const std::string& name, std::set<std::string> no_padding) {
      auto model = fixture_.engine.Load({.id = {name, 1},
                                         .path = path,
                                         .no_padding = std::move(no_padding),
                                         .packing = PackingMode::kOff});
      EXPECT_TRUE(model.ok()) << model.status();
      return model.ok() ? *model : nullptr;
    };
    padded_ = load("padded", {});
    exact_ = load("exact", {"batch", "s", "q", "k"});
    ASSERT_TRUE(padded_ != nullptr && exact_ != nullptr);
  }
  const AxisCertificate& CertificateOf(const std::string& axis) const {
    const auto found = std::find_if(padded_->axes().begin(), padded_->axes().end(),
                                    [&](const ModelAxis& one) { return one.symbol == axis; });
    return found->certificate;
  }
  // Returns the bucket that answered, whose answer equals the exact shape's.
  std::string Run(const Request& request) {
    const Response got = fixture_.engine.RunOne(*padded_, request, *fixture_.stream);
    const Response want = fixture_.engine.RunOne(*exact_, request, *fixture_.stream);
    EXPECT_TRUE(got.status.ok()) << got.status;
    EXPECT_TRUE(want.status.ok()) << want.status;
    if (!got.status.ok() || !want.status.ok()) return "";
    const OutputTensor &a = got.outputs[0], &e = want.outputs[0];
    EXPECT_EQ(a.shape, e.shape);
    const auto* values = reinterpret_cast<const float*>(a.bytes.data());
    const auto* wanted = reinterpret_cast<const float*>(e.bytes.data());
    for (size_t i = 0; i < e.bytes.size() / sizeof(float); ++i) {
      if (std::isnan(wanted[i]) && std::isnan(values[i])) continue;
      EXPECT_NEAR(values[i], wanted[i], 1e-5) << i;
    }
    return got.info.bucket;
  }

  static std::vector<float> Random(int64_t count) {
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(random);
    return values;
  }

  const TempFolder folder_;
  EngineFixture fixture_;
  std::shared_ptr<Model> padded_, exact_;
};

// A float bias that a client draws, and a mask of keys.
class BiasAndMaskTest : public HiddenKeysTest {
 protected:
  static constexpr int64_t kTokens = 5;

  void SetUp() override {
    ModelBuilder b;
    b.Input("x", {"batch", "s", "4"}).Input("bias", {"batch", "s", "s"});
    b.Input("keep", {"batch", "1", "s"}, onnx::TensorProto::BOOL);
    AddScores(b, "x", "x");
    b.Node("Add", {"scores", "bias"}, {"biased"});
    b.Node("Where", {"keep", "biased", "lowest"}, {"masked"});
    AddAttentionOf(b, "x", "x");
    ASSERT_NO_FATAL_FAILURE(Load(b));
  }
  std::string RunWith(const std::vector<float>& bias, const std::vector<uint8_t>& keep) {
    const std::vector<float> x = Random(kTokens * kWidth);
    return Run({.inputs = {{{1, kTokens, kWidth}, x.data()},
                           {{1, kTokens, kTokens}, bias.data()},
                           {{1, 1, kTokens}, keep.data()}}});
  }

  std::vector<float> bias_ = std::vector<float>(kTokens * kTokens, -2);
  std::vector<uint8_t> keep_ = std::vector<uint8_t>(kTokens, 1);
};

TEST_F(BiasAndMaskTest, OneOfThemMayHide) {
  EXPECT_TRUE(CertificateOf("s").certified) << CertificateOf("s").reason;
  EXPECT_NE(RunWith(bias_, keep_), "exact");
  keep_[4] = keep_[0] = 0;
  EXPECT_NE(RunWith(bias_, keep_), "exact");
  keep_.assign(kTokens, 1);
  bias_[1] = bias_[7] = -std::numeric_limits<float>::infinity();
  EXPECT_NE(RunWith(bias_, keep_), "exact");
}

TEST_F(BiasAndMaskTest, BothMayLeaveNothing) {
  keep_ = {1, 1, 0, 0, 0};
  bias_[0] = bias_[1] = kLowestFloat;
  EXPECT_NE(RunWith(bias_, keep_), "exact");
}

TEST_F(BiasAndMaskTest, OneMayHideEveryKeyOfAQuery) {
  for (int64_t key = 0; key < kTokens; ++key) bias_[2 * kTokens + key] = kLowestFloat;
  EXPECT_NE(RunWith(bias_, keep_), "exact");
  bias_.assign(bias_.size(), 0);
  keep_.assign(kTokens, 0);
  EXPECT_NE(RunWith(bias_, keep_), "exact");
}

TEST_F(BiasAndMaskTest, NoNumberHides) {
  bias_[3] = std::numeric_limits<float>::quiet_NaN();
  keep_[0] = 0;
  EXPECT_NE(RunWith(bias_, keep_), "exact");
}

// A client's bias with a causal table has to leave the first key to every query.
TEST_F(HiddenKeysTest, ABiasBesideACausalTable) {
  ModelBuilder b;
  b.Input("x", {"batch", "s", "4"}).Input("bias", {"batch", "1", "s"});
  AddScores(b, "x", "x");
  b.Node("Shape", {"scores"}, {"shape"});
  b.Node("ConstantOfShape", {"shape"}, {"nothing"});
  b.Node("Add", {"nothing", "lowest"}, {"low"});
  AddInteger(b, "next", 1);
  SetAttribute(b.Node("Trilu", {"low", "next"}, {"behind"}), "upper", int64_t{1});
  b.Node("Add", {"scores", "bias"}, {"biased"});
  b.Node("Add", {"biased", "behind"}, {"masked"});
  AddAttentionOf(b, "x", "x");
  ASSERT_NO_FATAL_FAILURE(Load(b));
  ASSERT_TRUE(CertificateOf("s").certified) << CertificateOf("s").reason;
  const std::vector<float> x = Random(5 * kWidth);
  std::vector<float> bias = {1, 2, 3, 4, -5};
  const Request request = {.inputs = {{{1, 5, kWidth}, x.data()}, {{1, 1, 5}, bias.data()}}};
  EXPECT_NE(Run(request), "exact");
  bias[3] = kLowestFloat;
  EXPECT_NE(Run(request), "exact");
  bias[0] = kLowestFloat;
  EXPECT_NE(Run(request), "exact");
}

// Queries of one length, keys of another, and a window that says which of these a query sees.
class WindowOverKeysTest : public HiddenKeysTest {
 protected:
  void LoadWindow(const std::string& hides, bool table_hides_what_is_true) {
    ModelBuilder b;
    b.Input("x", {"batch", "q", "4"}).Input("z", {"batch", "k", "4"});
    b.Input("mask", {"batch", "k"}, onnx::TensorProto::INT64);
    AddScores(b, "x", "z");
    AddInteger(b, "none", 0);
    AddInteger(b, "next", 1);
    AddIntegers(b, "one", {1});
    AddIntegers(b, "zero", {0});
    for (const std::string of : {"x", "z"}) {
      b.Node("Shape", {of}, {of + ".shape"});
      b.Node("Gather", {of + ".shape", "next"}, {of + ".length"});
      b.Node("Range", {"none", of + ".length", "next"}, {of + ".places"});
    }
    b.Node("Unsqueeze", {"z.places", "zero"}, {"of_key"});
    b.Node("Unsqueeze", {"x.places", "one"}, {"of_query"});
    b.Node("Sub", {"of_key", "of_query"}, {"ahead"});
    b.Node("Abs", {"ahead"}, {"apart"});
    AddInteger(b, "reach", 20);
    if (hides == "far") b.Node("Greater", {"apart", "reach"}, {"table"});
    if (hides == "ahead") b.Node("Greater", {"ahead", "none"}, {"table"});
    if (!table_hides_what_is_true) b.Node("Not", {"table"}, {"seen"});
    b.Node("Where",
           table_hides_what_is_true ? std::vector<std::string>{"table", "lowest", "scores"}
                                    : std::vector<std::string>{"seen", "scores", "lowest"},
           {"windowed"});
    AddCast(b, "mask", "counts", onnx::TensorProto::BOOL);
    b.Node("Unsqueeze", {"counts", "one"}, {"keys"});
    b.Node("Where", {"keys", "windowed", "lowest"}, {"masked"});
    AddAttentionOf(b, "x", "z");
    ASSERT_NO_FATAL_FAILURE(Load(b));
  }
  std::string RunLengths(int64_t queries, int64_t keys, std::vector<int64_t> mask = {}) {
    const std::vector<float> x = Random(queries * kWidth), z = Random(keys * kWidth);
    mask.resize(keys, 1);
    return Run({.inputs = {{{1, queries, kWidth}, x.data()},
                           {{1, keys, kWidth}, z.data()},
                           {{1, keys}, mask.data()}}});
  }
};

TEST_F(WindowOverKeysTest, OneThatHidesEveryKeyFromSomeQueriesIsPadded) {
  for (const bool hides_true : {true, false}) {
    ASSERT_NO_FATAL_FAILURE(LoadWindow("far", hides_true));
    EXPECT_TRUE(CertificateOf("k").certified) << CertificateOf("k").reason;
    EXPECT_NE(RunLengths(66, 17), "exact");
    EXPECT_NE(RunLengths(3, 17), "exact");
  }
}

TEST_F(WindowOverKeysTest, OneThatKeepsTheFirstKeyIsPaddedWhateverMasksHide) {
  for (const bool hides_true : {true, false}) {
    ASSERT_NO_FATAL_FAILURE(LoadWindow("ahead", hides_true));
    EXPECT_TRUE(CertificateOf("k").certified) << CertificateOf("k").reason;
    EXPECT_NE(RunLengths(66, 17), "exact");
    EXPECT_NE(RunLengths(3, 17, {1, 0, 0, 1}), "exact");
    EXPECT_NE(RunLengths(3, 17, {0, 1}), "exact");
  }
}

}  // namespace
}  // namespace reprise
