// Models that are stored in float16 or bfloat16, from file to answer: against the same model with
// the same weights in float32, on every tier.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "runtime/graph/parameter_expr.h"
#include "tests/runtime/device/cpu/tiers.h"
#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using onnx::TensorProto;

constexpr int64_t kHidden = 32, kHeads = 4, kInner = 72, kWords = 50, kSegments = 9;

// Builds a model whose weights are numbers of `half`, stored as such or as the floats that they
// are.
class TwinBuilder {
 public:
  TwinBuilder(DType half, bool wide) : half_(half), wide_(wide) {}
  ModelBuilder b;

  int type() const {
    return wide_                      ? TensorProto::FLOAT
           : half_ == DType::kFloat16 ? TensorProto::FLOAT16
                                      : TensorProto::BFLOAT16;
  }
  bool wide() const { return wide_; }

  void Values(const std::string& name, const std::vector<int64_t>& dims,
              const std::vector<float>& values) {
    std::vector<uint16_t> bits;
    std::vector<float> floats;
    for (const float value : values) {
      const bool f16 = half_ == DType::kFloat16;
      bits.push_back(f16 ? FloatToHalf(value) : FloatToBFloat16(value));
      floats.push_back(f16 ? HalfToFloat(bits.back()) : BFloat16ToFloat(bits.back()));
    }
    if (wide_) {
      b.Floats(name, dims, floats);
    } else {
      b.Initializer(name, type(), dims, bits);
    }
  }
  void Random(const std::string& name, const std::vector<int64_t>& dims, float scale) {
    int64_t count = 1;
    for (const int64_t dim : dims) count *= dim;
    std::normal_distribution<float> normal(0, scale);
    std::vector<float> values(count);
    for (float& value : values) value = normal(random_);
    Values(name, dims, values);
  }
  void Scalar(const std::string& name, float value) { Values(name, {}, {value}); }
  void Cast(const std::string& from, const std::string& to, int type) {
    SetAttribute(b.Node("Cast", {from}, {to}), "to", int64_t{type});
  }
  void Linear(const std::string& x, const std::string& y, int64_t in, int64_t out) {
    Random(y + ".w", {in, out}, 1 / std::sqrt(static_cast<float>(in)));
    Random(y + ".b", {out}, 0.1f);
    b.Node("MatMul", {x, y + ".w"}, {y + ".product"});
    b.Node("Add", {y + ".product", y + ".b"}, {y});
  }
  void Norm(const std::string& x, const std::string& y) {
    Random(y + ".gamma", {kHidden}, 1);
    Random(y + ".beta", {kHidden}, 0.3f);
    b.Node("LayerNormalization", {x, y + ".gamma", y + ".beta"}, {y});
  }

 private:
  const DType half_;
  const bool wide_;
  std::mt19937 random_{7};
};

// [batch, sequence, hidden] to [batch, heads, sequence, size], or its last two dims swapped.
void SplitHeads(TwinBuilder& t, const std::string& x, const std::string& y, bool swapped) {
  t.b.Node("Reshape", {x, "split"}, {y + ".split"});
  SetAttribute(t.b.Node("Transpose", {y + ".split"}, {y}), "perm",
               swapped ? std::vector<int64_t>{0, 2, 3, 1} : std::vector<int64_t>{0, 2, 1, 3});
}

// Builds one layer of an encoder, from ids and mask. `softmax`: in float32, between two Casts.
void BuildEncoder(TwinBuilder& t, bool float_softmax) {
  ModelBuilder& b = t.b;
  b.Input("ids", {"batch", "sequence"}, TensorProto::INT64);
  b.Input("mask", {"batch", "sequence"}, TensorProto::INT64);
  b.Initializer("split", TensorProto::INT64, {4},
                std::vector<int64_t>{0, 0, kHeads, kHidden / kHeads});
  b.Initializer("join", TensorProto::INT64, {3}, std::vector<int64_t>{0, 0, kHidden});
  b.Initializer("heads", TensorProto::INT64, {2}, std::vector<int64_t>{1, 2});
  t.Random("words", {kWords, kHidden}, 1);
  t.Random("segments", {kSegments, kHidden}, 1);
  b.Node("Gather", {"words", "ids"}, {"word"});
  b.Node("Gather", {"segments", "mask"}, {"segment"});
  b.Node("Add", {"word", "segment"}, {"embedded"});
  t.Norm("embedded", "x");
  for (const char* part : {"q", "k", "v"}) t.Linear("x", part, kHidden, kHidden);
  SplitHeads(t, "q", "qh", false);
  SplitHeads(t, "k", "kh", true);
  SplitHeads(t, "v", "vh", false);
  t.Scalar("scale", std::sqrt(static_cast<float>(kHidden / kHeads)));
  t.Scalar("one", 1);
  t.Scalar("lowest", -65504);
  t.Cast("mask", "kept", t.type());
  b.Node("Unsqueeze", {"kept", "heads"}, {"kept4"});
  b.Node("Sub", {"one", "kept4"}, {"left_out"});
  b.Node("Mul", {"left_out", "lowest"}, {"bias"});
  b.Node("MatMul", {"qh", "kh"}, {"products"});
  b.Node("Div", {"products", "scale"}, {"scaled"});
  b.Node("Add", {"scaled", "bias"}, {"scores"});
  if (float_softmax) t.Cast("scores", "float_scores", TensorProto::FLOAT);
  SetAttribute(b.Node("Softmax", {float_softmax ? "float_scores" : "scores"}, {"shares"}), "axis",
               int64_t{-1});
  if (float_softmax) t.Cast("shares", "half_shares", t.type());
  b.Node("MatMul", {float_softmax ? "half_shares" : "shares", "vh"}, {"heads_out"});
  SetAttribute(b.Node("Transpose", {"heads_out"}, {"turned"}), "perm",
               std::vector<int64_t>{0, 2, 1, 3});
  b.Node("Reshape", {"turned", "join"}, {"joined"});
  t.Linear("joined", "attended", kHidden, kHidden);
  b.Node("Add", {"attended", "x"}, {"sum1"});
  t.Norm("sum1", "x1");
  t.Linear("x1", "inner", kHidden, kInner);
  t.Scalar("root", std::sqrt(2.0f));
  t.Scalar("half", 0.5f);
  b.Node("Div", {"inner", "root"}, {"inner_scaled"});
  b.Node("Erf", {"inner_scaled"}, {"erf"});
  b.Node("Add", {"erf", "one"}, {"erf1"});
  b.Node("Mul", {"inner", "erf1"}, {"gelu2"});
  b.Node("Mul", {"gelu2", "half"}, {"gelu"});
  t.Linear("gelu", "outer", kInner, kHidden);
  b.Node("Add", {"outer", "x1"}, {"sum2"});
  t.Norm("sum2", "x2");
  t.Cast("x2", "y", TensorProto::FLOAT);
  b.Output("y");
}

void BuildConvolutions(TwinBuilder& t) {
  ModelBuilder& b = t.b;
  b.Input("x", {"batch", "3", "17", "19"}, t.type());
  t.Random("w1", {20, 3, 3, 3}, 0.2f);
  t.Random("b1", {20}, 0.1f);
  SetAttribute(b.Node("Conv", {"x", "w1", "b1"}, {"c1"}), "pads", std::vector<int64_t>{1, 1, 1, 1});
  t.Random("mean", {20}, 0.1f);
  t.Values("variance", {20}, std::vector<float>(20, 0.7f));
  b.Node("BatchNormalization", {"c1", "b1", "b1", "mean", "variance"}, {"n1"});
  b.Node("Relu", {"n1"}, {"r1"});
  t.Random("w2", {40, 20, 1, 1}, 0.2f);
  SetAttribute(b.Node("Conv", {"r1", "w2"}, {"c2"}), "strides", std::vector<int64_t>{2, 2});
  b.Node("GlobalAveragePool", {"c2"}, {"pooled"});
  b.Node("Flatten", {"pooled"}, {"flat"});
  t.Random("w3", {10, 40}, 0.2f);
  t.Random("b3", {10}, 1);
  SetAttribute(b.Node("Gemm", {"flat", "w3", "b3"}, {"y"}), "transB", int64_t{1});
  b.Output("y");
}

// Weights in half that are widened before they are used, as weight-only conversions write them.
void BuildWideGraphOfHalfWeights(TwinBuilder& t) {
  ModelBuilder& b = t.b;
  b.Input("x", {"batch", std::to_string(kHidden)});
  t.Random("w", {kHidden, 64}, 0.2f);
  t.Random("table", {kWords, 64}, 1);
  b.Input("ids", {"batch"}, TensorProto::INT64);
  std::string w = "w", table = "table";
  if (!t.wide()) {
    t.Cast("w", "w32", TensorProto::FLOAT);
    t.Cast("table", "table32", TensorProto::FLOAT);
    w = "w32";
    table = "table32";
  }
  b.Node("MatMul", {"x", w}, {"product"});
  b.Node("Gather", {table, "ids"}, {"rows"});
  b.Node("Mul", {"product", "rows"}, {"y"});
  b.Output("y");
}

std::vector<std::string> KernelsOf(const Recipe& recipe) {
  std::vector<std::string> kernels;
  for (const Launch& launch : recipe.launches) {
    if (launch.kernel.rfind("typed", 0) == 0) continue;
    // Products by weights in half are those by floats otherwise.
    const size_t end = launch.kernel.find("_half");
    kernels.push_back(launch.kernel.substr(0, end) +
                      (end == std::string::npos ? "" : launch.kernel.substr(end + 5)));
  }
  return kernels;
}

class HalfModelsTest : public testing::TestWithParam<std::tuple<DType, Isa>> {
 protected:
  DType half() const { return std::get<0>(GetParam()); }

  template <typename Build>
  void Load(Build build) {
    for (const bool wide : {false, true}) {
      TwinBuilder twin(half(), wide);
      build(twin);
      const std::string path = folder_.Write(wide ? "wide.onnx" : "half.onnx", twin.b.Bytes());
      auto model = fixture_.engine.Load({.id = {wide ? "wide" : "half", 1}, .path = path});
      ASSERT_TRUE(model.ok()) << model.status();
      (wide ? wide_ : half_model_) = *model;
    }
  }
  // Checks that both are compiled to the same launches, and hold the same bytes in the end.
  void ExpectSameKernels(const std::vector<int64_t>& sizes) {
    const auto narrow = fixture_.engine.CompileAt(*half_model_, sizes);
    const auto wide = fixture_.engine.CompileAt(*wide_, sizes);
    ASSERT_TRUE(narrow.ok() && wide.ok()) << narrow.status() << wide.status();
    EXPECT_EQ(KernelsOf(**narrow), KernelsOf(**wide));
    for (const Launch& launch : (*narrow)->launches) EXPECT_FALSE(launch.reference) << launch.node;
    EXPECT_EQ((*narrow)->parameters.size(), (*wide)->parameters.size());
  }
  Response Run(const std::shared_ptr<Model>& model, const Request& request) {
    Response response = fixture_.engine.RunOne(*model, request, *fixture_.stream);
    EXPECT_TRUE(response.status.ok()) << response.status;
    return response;
  }
  // Checks that the models' outputs are float32.
  void ExpectSameFloats(const Request& request) {
    const Response got = Run(half_model_, request), want = Run(wide_, request);
    ASSERT_EQ(got.outputs[0].shape, want.outputs[0].shape);
    const auto* a = reinterpret_cast<const float*>(got.outputs[0].bytes.data());
    const auto* b = reinterpret_cast<const float*>(want.outputs[0].bytes.data());
    for (int64_t i = 0; i < NumElements(want.outputs[0].shape); ++i) {
      ASSERT_NEAR(a[i], b[i], 1e-5 * std::max(1.0f, std::abs(b[i]))) << i;
    }
    EXPECT_LE(half_model_->owner()->parameters().prepared_bytes(),
              wide_->owner()->parameters().prepared_bytes());
  }

  const TempFolder folder_;
  EngineFixture fixture_{1, std::get<1>(GetParam())};
  std::shared_ptr<Model> half_model_, wide_;
};

TEST_P(HalfModelsTest, AnEncoderIsThatOfItsWeightsInFloat32) {
  for (const bool float_softmax : {false, true}) {
    Load([&](TwinBuilder& twin) { BuildEncoder(twin, float_softmax && !twin.wide()); });
    if (HasFatalFailure()) return;
    ExpectSameKernels({2, 16});
    for (const int64_t length : {1, 5, 16, 33}) {
      SCOPED_TRACE(testing::Message() << float_softmax << " at " << length);
      TokenRequest tokens(3, length, 1, 2);
      for (int64_t& id : tokens.columns[0]) id %= kWords;
      ExpectSameFloats(tokens.request);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(HalfModelsTest, TablesAreReadAsTheyAreStored) {
  Load([](TwinBuilder& twin) { BuildEncoder(twin, false); });
  const auto recipe = fixture_.engine.CompileAt(*half_model_, {1, 8});
  ASSERT_TRUE(recipe.ok()) << recipe.status();
  int tables = 0;
  for (size_t i = 0; i < (*recipe)->parameters.size(); ++i) {
    const ParameterExpr& parameter = *(*recipe)->parameters[i];
    if (!parameter.is_leaf()) continue;
    EXPECT_EQ(parameter.dtype(), half());
    EXPECT_TRUE((*recipe)->unaligned[i]) << parameter.text();
    ++tables;
  }
  EXPECT_EQ(tables, 2);
}

TEST_P(HalfModelsTest, ConvolutionsTakeAndGiveHalves) {
  Load([](TwinBuilder& twin) { BuildConvolutions(twin); });
  if (HasFatalFailure()) return;
  ExpectSameKernels({2});
  constexpr int64_t kBatch = 3, kElements = kBatch * 3 * 17 * 19;
  std::vector<uint16_t> bits(kElements);
  std::vector<float> floats(kElements);
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < kElements; ++i) {
    const bool f16 = half() == DType::kFloat16;
    bits[i] = f16 ? FloatToHalf(normal(random)) : FloatToBFloat16(normal(random));
    floats[i] = f16 ? HalfToFloat(bits[i]) : BFloat16ToFloat(bits[i]);
  }
  Request narrow, wide;
  narrow.inputs = {{{kBatch, 3, 17, 19}, bits.data()}};
  wide.inputs = {{{kBatch, 3, 17, 19}, floats.data()}};
  const Response got = Run(half_model_, narrow), want = Run(wide_, wide);
  ASSERT_EQ(half_model_->inputs()[0].dtype, half());
  ASSERT_EQ(half_model_->outputs()[0].dtype, half());
  ASSERT_EQ(got.outputs[0].bytes.size(), want.outputs[0].bytes.size() / 2);
  const auto* a = reinterpret_cast<const uint16_t*>(got.outputs[0].bytes.data());
  const auto* b = reinterpret_cast<const float*>(want.outputs[0].bytes.data());
  const double ulp = half() == DType::kFloat16 ? 1.0 / 1024 : 1.0 / 128;
  for (int64_t i = 0; i < kBatch * 10; ++i) {
    const float value = half() == DType::kFloat16 ? HalfToFloat(a[i]) : BFloat16ToFloat(a[i]);
    EXPECT_NEAR(value, b[i], 0.51 * ulp * std::abs(b[i]) + 1e-5) << i;
  }
}

TEST_P(HalfModelsTest, WeightsThatTheModelWidensItselfArePreparedOnce) {
  Load([](TwinBuilder& twin) { BuildWideGraphOfHalfWeights(twin); });
  if (HasFatalFailure()) return;
  ExpectSameKernels({4});
  for (const int64_t rows : {1, 3, 20}) {
    std::vector<float> x(rows * kHidden);
    std::vector<int64_t> ids(rows);
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
    for (int64_t i = 0; i < rows; ++i) ids[i] = i * 17 % kWords;
    Request request;
    request.inputs = {{{rows, kHidden}, x.data()}, {{rows}, ids.data()}};
    ExpectSameFloats(request);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Halves, HalfModelsTest,
                         testing::Combine(testing::Values(DType::kFloat16, DType::kBFloat16),
                                          testing::ValuesIn(cpu::TestedTiers())),
                         [](const auto& info) {
                           return std::string(DTypeName(std::get<0>(info.param))) + "_" +
                                  std::string(IsaName(std::get<1>(info.param)));
                         });

}  // namespace
}  // namespace reprise
