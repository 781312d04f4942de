// Models whose weights are of a few bits with a factor for each block, from file to answer: against
// the same model with the floats that they stand for, on every tier.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/runtime/device/cpu/tiers.h"
#include "tests/runtime/onnx/model_builder.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using onnx::TensorProto;

constexpr int kUInt4 = 21, kInt4 = 22;  // younger than the packaged proto

struct Form {
  const char* name;
  int64_t k, n, block;
  int bits = 4;
  enum { kNoZeros, kPackedZeros, kFloatZeros } zeros = kNoZeros;
  bool bias = false;
  bool half = false;  // scales, and floats around them
};

void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

// A matrix of rows of `k` numbers in blocks, packed and as floats.
class Blocks {
 public:
  explicit Blocks(const Form& form) : form_(form), blocks_((form.k + form.block - 1) / form.block) {
    std::mt19937 random(11);
    const int most = 1 << form.bits;
    for (int64_t row = 0; row < form.n; ++row) {
      std::vector<int> row_values, row_zeros;
      for (int64_t i = 0; i < blocks_ * form.block; ++i) {
        row_values.push_back(static_cast<int>(random() % most));
      }
      for (int64_t i = 0; i < blocks_; ++i) {
        scales.push_back(
            HalfToFloat(FloatToHalf(0.01f + 0.001f * static_cast<float>(random() % 90))));
        row_zeros.push_back(form.zeros == Form::kNoZeros ? most / 2
                                                         : static_cast<int>(random() % most));
        zeros.push_back(static_cast<float>(row_zeros.back()));
      }
      for (int64_t i = 0; i < form.k; ++i) {
        const int64_t block = i / form.block;
        dense.push_back(static_cast<float>(row_values[i] - row_zeros[block]) *
                        scales[row * blocks_ + block]);
      }
      Pack(row_values, values);
      Pack(row_zeros, packed_zeros);
    }
  }

  int64_t blocks() const { return blocks_; }

  std::vector<uint8_t> values, packed_zeros;
  std::vector<float> scales, zeros;  // [n, blocks]
  std::vector<float> dense;          // [n, k]

 private:
  void Pack(const std::vector<int>& from, std::vector<uint8_t>& to) const {
    for (size_t i = 0; i < from.size(); ++i) {
      const size_t bit = i * form_.bits;
      if (bit % 8 == 0) to.push_back(0);
      to.back() = static_cast<uint8_t>(to.back() | from[i] << bit % 8);
    }
  }
  const Form form_;
  const int64_t blocks_;
};

void AddFloats(ModelBuilder& b, const std::string& name, const std::vector<int64_t>& dims,
               const std::vector<float>& values, bool half) {
  if (!half) {
    b.Floats(name, dims, values);
    return;
  }
  std::vector<uint16_t> bits;
  for (const float value : values) bits.push_back(FloatToHalf(value));
  b.Initializer(name, TensorProto::FLOAT16, dims, bits);
}

std::vector<float> BiasOf(const Form& form) {
  std::vector<float> bias(form.n);
  for (size_t i = 0; i < bias.size(); ++i) bias[i] = 0.25f * static_cast<float>(i % 7) - 0.5f;
  return bias;
}

std::string PackedModel(const Form& form, const Blocks& blocks) {
  ModelBuilder b;
  auto* domain = b.model().add_opset_import();
  domain->set_domain("com.microsoft");
  domain->set_version(1);
  b.Input("x", {"batch", std::to_string(form.k)},
          form.half ? TensorProto::FLOAT16 : TensorProto::FLOAT);
  const int64_t bytes = form.block * form.bits / 8;
  b.Initializer("values", TensorProto::UINT8, {form.n, blocks.blocks(), bytes}, blocks.values);
  AddFloats(b, "scales", {form.n * blocks.blocks()}, blocks.scales, form.half);
  std::vector<std::string> inputs = {"x", "values", "scales"};
  if (form.zeros == Form::kPackedZeros) {
    b.Initializer("zeros", TensorProto::UINT8, {static_cast<int64_t>(blocks.packed_zeros.size())},
                  blocks.packed_zeros);
    inputs.push_back("zeros");
  } else if (form.zeros == Form::kFloatZeros) {
    AddFloats(b, "zeros", {form.n * blocks.blocks()}, blocks.zeros, form.half);
    inputs.push_back("zeros");
  }
  if (form.bias) {
    inputs.resize(5);
    inputs.push_back("bias");
    AddFloats(b, "bias", {form.n}, BiasOf(form), form.half);
  }
  auto& node = b.Node("MatMulNBits", inputs, {"product"}, "n", "com.microsoft");
  SetAttribute(node, "K", form.k);
  SetAttribute(node, "N", form.n);
  SetAttribute(node, "bits", int64_t{form.bits});
  SetAttribute(node, "block_size", form.block);
  SetAttribute(node, "accuracy_level", int64_t{4});
  b.Node("Relu", {"product"}, {"y"});
  b.Output("y");
  return b.Bytes();
}

std::string DenseModel(const Form& form, const Blocks& blocks) {
  ModelBuilder b;
  b.Input("x", {"batch", std::to_string(form.k)});
  b.Floats("w", {form.n, form.k}, blocks.dense);
  std::vector<std::string> inputs = {"x", "w"};
  if (form.bias) {
    b.Floats("bias", {form.n}, BiasOf(form));
    inputs.push_back("bias");
  }
  SetAttribute(b.Node("Gemm", inputs, {"product"}), "transB", int64_t{1});
  b.Node("Relu", {"product"}, {"y"});
  b.Output("y");
  return b.Bytes();
}

std::vector<float> FloatsOf(const Response& response, bool half) {
  const auto& bytes = response.outputs[0].bytes;
  std::vector<float> values(bytes.size() / (half ? 2 : 4));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = half ? HalfToFloat(reinterpret_cast<const uint16_t*>(bytes.data())[i])
                     : reinterpret_cast<const float*>(bytes.data())[i];
  }
  return values;
}

class BlockWeightsTest : public testing::TestWithParam<std::tuple<Form, Isa>> {
 protected:
  std::shared_ptr<Model> Load(const std::string& name, const std::string& bytes) {
    auto model =
        fixture_.engine.Load({.id = {name, 1}, .path = folder_.Write(name + ".onnx", bytes)});
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *model : nullptr;
  }
  // Returns the kernels of products and of all else, without conversions.
  std::vector<std::string> KernelsOf(Model& model) {
    const auto recipe = fixture_.engine.CompileAt(model, {4});
    EXPECT_TRUE(recipe.ok()) << recipe.status();
    std::vector<std::string> kernels;
    for (const Launch& launch : (*recipe)->launches) {
      if (launch.kernel.rfind("typed", 0) != 0) kernels.push_back(launch.kernel);
    }
    return kernels;
  }

  const TempFolder folder_;
  EngineFixture fixture_{1, std::get<1>(GetParam())};
};

TEST_P(BlockWeightsTest, TheProductIsThatOfTheFloatsThatTheyStandFor) {
  const Form& form = std::get<0>(GetParam());
  const Blocks blocks(form);
  const auto packed = Load("packed", PackedModel(form, blocks));
  const auto dense = Load("dense", DenseModel(form, blocks));
  ASSERT_TRUE(packed != nullptr && dense != nullptr);
  if (std::get<1>(GetParam()).Covers(Isa::kAvx2)) {
    EXPECT_THAT(KernelsOf(*packed), testing::ElementsAre(testing::StartsWith("gemm_blocks")));
  } else {
    EXPECT_EQ(KernelsOf(*packed), KernelsOf(*dense));
  }
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (const int64_t rows : {1, 3, 8, 17}) {
    std::vector<uint16_t> halves;
    std::vector<float> floats;
    for (int64_t i = 0; i < rows * form.k; ++i) {
      halves.push_back(FloatToHalf(normal(random)));
      floats.push_back(HalfToFloat(halves.back()));
    }
    Request given, wide;
    wide.inputs = {{{rows, form.k}, floats.data()}};
    given.inputs = {{{rows, form.k},
                     form.half ? static_cast<const void*>(halves.data())
                               : static_cast<const void*>(floats.data())}};
    const Response got = fixture_.engine.RunOne(*packed, given, *fixture_.stream);
    const Response want = fixture_.engine.RunOne(*dense, wide, *fixture_.stream);
    ASSERT_TRUE(got.status.ok() && want.status.ok()) << got.status << want.status;
    ASSERT_EQ(got.outputs[0].shape, want.outputs[0].shape);
    const std::vector<float> a = FloatsOf(got, form.half), b = FloatsOf(want, false);
    for (size_t i = 0; i < b.size(); ++i) {
      ASSERT_NEAR(a[i], b[i], 2e-5 + (form.half ? 1.0 / 2000 : 1e-5) * std::abs(b[i])) << i;
    }
  }
}

constexpr Form kBlockForms[] = {
    {.name = "FourBits", .k = 64, .n = 40, .block = 32},
    {.name = "FourBitsPackedZeros", .k = 96, .n = 37, .block = 32, .zeros = Form::kPackedZeros},
    {.name = "FourBitsOddBlocks", .k = 40, .n = 33, .block = 16, .zeros = Form::kPackedZeros},
    {.name = "FourBitsFloatZeros", .k = 128, .n = 16, .block = 16, .zeros = Form::kFloatZeros},
    {.name = "FourBitsBias", .k = 256, .n = 24, .block = 256, .bias = true},
    {.name = "EightBits", .k = 64, .n = 40, .block = 16, .bits = 8},
    {.name = "EightBitsZerosBias",
     .k = 70,
     .n = 31,
     .block = 32,
     .bits = 8,
     .zeros = Form::kPackedZeros,
     .bias = true},
    {.name = "TwoBits", .k = 64, .n = 20, .block = 16, .bits = 2, .zeros = Form::kPackedZeros},
    {.name = "Half",
     .k = 64,
     .n = 20,
     .block = 32,
     .zeros = Form::kFloatZeros,
     .bias = true,
     .half = true},
};

INSTANTIATE_TEST_SUITE_P(Forms, BlockWeightsTest,
                         testing::Combine(testing::ValuesIn(kBlockForms),
                                          testing::ValuesIn(cpu::ProductTiers())),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "_" +
                                  std::string(IsaName(std::get<1>(info.param)));
                         });

// Adds y = x times the weights of `blocks`, as they are stored or as the floats that they stand
// for.
void AddProduct(ModelBuilder& b, const Form& form, const Blocks& blocks, const std::string& x,
                const std::string& y, bool packed) {
  if (!packed) {
    b.Floats(y + ".w", {form.n, form.k}, blocks.dense);
    SetAttribute(b.Node("Transpose", {y + ".w"}, {y + ".t"}), "perm", std::vector<int64_t>{1, 0});
    b.Node("MatMul", {x, y + ".t"}, {y});
    return;
  }
  std::vector<std::string> inputs = {x, y + ".values", y + ".scales"};
  b.Initializer(inputs[1], TensorProto::UINT8,
                {form.n, blocks.blocks(), form.block * form.bits / 8}, blocks.values);
  b.Floats(inputs[2], {form.n * blocks.blocks()}, blocks.scales);
  if (form.zeros == Form::kPackedZeros) {
    inputs.push_back(y + ".zeros");
    b.Initializer(inputs[3], TensorProto::UINT8, {static_cast<int64_t>(blocks.packed_zeros.size())},
                  blocks.packed_zeros);
  }
  auto& node = b.Node("MatMulNBits", inputs, {y}, y, "com.microsoft");
  SetAttribute(node, "K", form.k);
  SetAttribute(node, "N", form.n);
  SetAttribute(node, "bits", int64_t{form.bits});
  SetAttribute(node, "block_size", form.block);
}

// Products that passes join or split: one for queries, keys and values, and two made of one whose
// halves are read apart. All read the weights as they are stored.
class JoinedBlockWeightsTest : public testing::Test {
 protected:
  static std::string ModelOf(const std::vector<Form>& forms, bool packed) {
    ModelBuilder b(23);
    auto* domain = b.model().add_opset_import();
    domain->set_domain("com.microsoft");
    domain->set_version(1);
    b.Input("x", {"batch", "rows", std::to_string(forms[0].k)});
    const char* const names[] = {"q", "k", "v", "both"};
    for (size_t i = 0; i < forms.size(); ++i) {
      AddProduct(b, forms[i], Blocks(forms[i]), "x", names[i], packed);
    }
    auto& attention = b.Node("Attention", {"q", "k", "v"}, {"attended"});
    SetAttribute(attention, "q_num_heads", int64_t{4});
    SetAttribute(attention, "kv_num_heads", int64_t{4});
    b.Output("attended");
    SetAttribute(b.Node("Split", {"both"}, {"gate", "up"}), "axis", int64_t{-1});
    b.Node("Sigmoid", {"gate"}, {"opened"});
    b.Node("Mul", {"opened", "up"}, {"gated"});
    b.Output("gated");
    return b.Bytes();
  }

  // Products by kernel, in a recipe of the stored weights; checks answers against the floats'.
  std::vector<std::string> ProductsOf(const std::vector<Form>& forms) {
    const TempFolder folder;
    EngineFixture fixture;
    Response answers[2];
    std::vector<std::string> kernels;
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    std::vector<float> x(2 * 3 * forms[0].k);
    for (float& value : x) value = normal(random);
    for (const bool packed : {true, false}) {
      const std::string name = packed ? "packed" : "dense";
      const auto model = fixture.engine.Load(
          {.id = {name, 1}, .path = folder.Write(name + ".onnx", ModelOf(forms, packed))});
      EXPECT_TRUE(model.ok()) << model.status();
      if (!model.ok()) return {};
      Request request;
      request.inputs = {{{2, 3, forms[0].k}, x.data()}};
      answers[packed] = fixture.engine.RunOne(**model, request, *fixture.stream);
      EXPECT_TRUE(answers[packed].status.ok()) << answers[packed].status;
      if (!packed) continue;
      const auto recipe = fixture.engine.CompileAt(**model, {2, 3});
      EXPECT_TRUE(recipe.ok()) << recipe.status();
      for (const Launch& launch : (*recipe)->launches) {
        if (launch.kernel.rfind("gemm", 0) == 0) kernels.push_back(launch.kernel);
      }
    }
    for (size_t i = 0; i < 2; ++i) {
      const std::vector<float> got = FloatsOf({.outputs = {answers[1].outputs[i]}}, false);
      const std::vector<float> want = FloatsOf({.outputs = {answers[0].outputs[i]}}, false);
      EXPECT_THAT(got, testing::Pointwise(testing::FloatNear(1e-4f), want)) << i;
    }
    return kernels;
  }
};

constexpr Form kSquare = {.name = "", .k = 64, .n = 64, .block = 32};
constexpr Form kDouble = {.name = "", .k = 64, .n = 96, .block = 16, .zeros = Form::kPackedZeros};

TEST_F(JoinedBlockWeightsTest, QueriesKeysAndValuesAreOneProduct) {
  if (!DetectIsa().Covers(Isa::kAvx2)) GTEST_SKIP() << "the baseline reads floats";
  EXPECT_THAT(ProductsOf({kSquare, kSquare, kSquare, kDouble}),
              testing::AllOf(testing::SizeIs(testing::Le(3)),
                             testing::Each(testing::StartsWith("gemm_blocks"))));
}

TEST_F(JoinedBlockWeightsTest, ThoseOfOtherFormsStayApart) {
  if (!DetectIsa().Covers(Isa::kAvx2)) GTEST_SKIP() << "the baseline reads floats";
  Form bytes = kSquare, blocks = kSquare;
  bytes.bits = 8;
  blocks.block = 64;
  EXPECT_THAT(ProductsOf({kSquare, blocks, bytes, kDouble}),
              testing::AllOf(testing::SizeIs(testing::Ge(4)),
                             testing::Each(testing::StartsWith("gemm_blocks"))));
}

// DequantizeLinear of a [k, n] matrix of int4 in blocks along k, and a product with it.
std::string FourBitModel(int type, int64_t k, int64_t n, int64_t block,
                         const std::vector<uint8_t>& values, const std::vector<float>& scales,
                         const std::vector<uint8_t>& zeros) {
  ModelBuilder b(21);
  b.Input("x", {"batch", std::to_string(k)});
  b.Initializer("q", type, {k, n}, values);
  b.Floats("s", {k / block, n}, scales);
  b.Initializer("z", type, {k / block, n}, zeros);
  auto& node = b.Node("DequantizeLinear", {"q", "s", "z"}, {"w"});
  SetAttribute(node, "axis", int64_t{0});
  SetAttribute(node, "block_size", block);
  b.Node("MatMul", {"x", "w"}, {"y"});
  b.Output("y");
  return b.Bytes();
}

TEST(FourBitWeightsTest, InitializersOfFourBitsAreDequantisedInBlocks) {
  // Few, which are read at import, and many, which the prepare program unpacks.
  for (const int64_t n : {3, 50}) {
    for (const int type : {kUInt4, kInt4}) {
      constexpr int64_t kK = 24, kBlock = 8;
      std::mt19937 random(3);
      const auto nibble = [&](int bits) {
        return static_cast<float>(type == kInt4 && bits > 7 ? bits - 16 : bits);
      };
      const auto pack = [](const std::vector<int>& from) {
        std::vector<uint8_t> bytes((from.size() + 1) / 2);
        for (size_t i = 0; i < from.size(); ++i) {
          bytes[i / 2] = static_cast<uint8_t>(bytes[i / 2] | from[i] << i % 2 * 4);
        }
        return bytes;
      };
      std::vector<int> q(kK * n), z(kK / kBlock * n);
      std::vector<float> s(z.size()), x(2 * kK);
      for (int& value : q) value = static_cast<int>(random() % 16);
      for (int& value : z) value = static_cast<int>(random() % 16);
      for (float& value : s) value = 0.1f + 0.01f * static_cast<float>(random() % 9);
      for (float& value : x) value = static_cast<float>(random() % 9) - 4;
      const TempFolder folder;
      EngineFixture fixture;
      const auto model = fixture.engine.Load(
          {.id = {"m", 1},
           .path = folder.Write("m.onnx", FourBitModel(type, kK, n, kBlock, pack(q), s, pack(z)))});
      ASSERT_TRUE(model.ok()) << model.status();
      Request request;
      request.inputs = {{{2, kK}, x.data()}};
      const Response response = fixture.engine.RunOne(**model, request, *fixture.stream);
      ASSERT_TRUE(response.status.ok()) << response.status;
      const auto recipe = fixture.engine.CompileAt(**model, {2});
      ASSERT_TRUE(recipe.ok()) << recipe.status();
      EXPECT_EQ((*recipe)->launches[0].kernel.rfind("gemm_blocks", 0) == 0,
                DetectIsa().Covers(Isa::kAvx2));
      const std::vector<float> y = FloatsOf(response, false);
      for (int64_t row = 0; row < 2; ++row) {
        for (int64_t column = 0; column < n; ++column) {
          double sum = 0;
          for (int64_t i = 0; i < kK; ++i) {
            const int64_t block = i / kBlock * n + column;
            sum += x[row * kK + i] * (nibble(q[i * n + column]) - nibble(z[block])) * s[block];
          }
          ASSERT_NEAR(y[row * n + column], sum, 1e-4) << n << " " << type;
        }
      }
    }
  }
}

TEST(FourBitWeightsTest, NumbersAreRoundedToFourBits) {
  ModelBuilder b(21);
  b.Input("x", {"8"});
  b.Floats("s", {}, {1});
  b.Initializer("z", kInt4, {}, std::vector<uint8_t>{3});
  b.Node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  b.Node("DequantizeLinear", {"q", "s", "z"}, {"y"});
  SetAttribute(b.Node("Cast", {"x"}, {"c"}), "to", int64_t{kInt4});
  SetAttribute(b.Node("Cast", {"c"}, {"w"}), "to", int64_t{TensorProto::FLOAT});
  b.Output("y").Output("w");
  const TempFolder folder;
  EngineFixture fixture;
  const auto model =
      fixture.engine.Load({.id = {"m", 1}, .path = folder.Write("m.onnx", b.Bytes())});
  ASSERT_TRUE(model.ok()) << model.status();
  const std::vector<float> x = {0, 1.5f, 2.5f, 9, -3, -40, 8, -8.5f};
  Request request;
  request.inputs = {{{8}, x.data()}};
  const Response response = fixture.engine.RunOne(**model, request, *fixture.stream);
  ASSERT_TRUE(response.status.ok()) << response.status;
  // To the even, saturating; a Cast rounds away from 0, and its low bits stay.
  EXPECT_EQ(FloatsOf(response, false), (std::vector<float>{0, 2, 2, 4, -3, -11, 4, -8}));
  EXPECT_EQ(FloatsOf({.outputs = {response.outputs[1]}}, false),
            (std::vector<float>{0, 2, 3, -7, -3, -8, -8, 7}));
}

// Bytes of two numbers, and tables of four bits by their dtype.
class GatherBlockQuantizedTest : public testing::TestWithParam<int> {};

TEST_P(GatherBlockQuantizedTest, RowsAreThoseOfTheDequantisedTable) {
  const bool bytes = GetParam() == TensorProto::UINT8;
  const Form form = {.name = "Table", .k = 64, .n = 30, .block = 16, .zeros = Form::kPackedZeros};
  const Blocks blocks(form);
  ModelBuilder b(21);
  auto* domain = b.model().add_opset_import();
  domain->set_domain("com.microsoft");
  domain->set_version(1);
  b.Input("ids", {"batch", "sequence"}, TensorProto::INT64);
  b.Initializer("values", GetParam(), {form.n, bytes ? form.k / 2 : form.k}, blocks.values);
  b.Floats("scales", {form.n, blocks.blocks()}, blocks.scales);
  b.Initializer("zeros", GetParam(), {form.n, bytes ? blocks.blocks() / 2 : blocks.blocks()},
                blocks.packed_zeros);
  auto& node = b.Node("GatherBlockQuantized", {"values", "ids", "scales", "zeros"}, {"y"}, "n",
                      "com.microsoft");
  SetAttribute(node, "block_size", form.block);
  SetAttribute(node, "quantize_axis", int64_t{1});
  b.Output("y");
  const TempFolder folder;
  EngineFixture fixture;
  const auto model =
      fixture.engine.Load({.id = {"m", 1}, .path = folder.Write("m.onnx", b.Bytes())});
  ASSERT_TRUE(model.ok()) << model.status();
  const std::vector<int64_t> ids = {3, 29, 0, 3, 17, -1};
  Request request;
  request.inputs = {{{2, 3}, ids.data()}};
  const Response response = fixture.engine.RunOne(**model, request, *fixture.stream);
  ASSERT_TRUE(response.status.ok()) << response.status;
  ASSERT_EQ(response.outputs[0].shape, (Shape{2, 3, form.k}));
  const std::vector<float> y = FloatsOf(response, false);
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t row = (ids[i] + form.n) % form.n;
    for (int64_t j = 0; j < form.k; ++j) {
      ASSERT_EQ(y[i * form.k + j], blocks.dense[row * form.k + j]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, GatherBlockQuantizedTest,
                         testing::Values(int{TensorProto::UINT8}, kUInt4), [](const auto& info) {
                           return std::string(info.param == kUInt4 ? "FourBits" : "Bytes");
                         });

}  // namespace
}  // namespace reprise
