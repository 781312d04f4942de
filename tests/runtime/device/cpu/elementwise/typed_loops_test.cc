#include "runtime/device/cpu/elementwise/typed_loops.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/kit/typed.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise::cpu {
namespace {

using ops::Bool;
using ops::Compute;

constexpr DType kDTypes[] = {DType::kFloat32,  DType::kFloat64, DType::kFloat16,
                             DType::kBFloat16, DType::kInt8,    DType::kUInt8,
                             DType::kInt32,    DType::kInt64,   DType::kBool};
constexpr int64_t kCounts[] = {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 67, 130};

// Returns numbers of every kind that a dtype has: small and large, its limits and beyond other
// dtypes', halves between neighbours, infinities, NaN; for bools also bytes that no bool should
// have.
Tensor Numbers(DType dtype, int64_t count, std::mt19937& random) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double special[] = {0,
                            -0.0,
                            1,
                            -1,
                            0.5,
                            -0.5,
                            2.5,
                            127,
                            128,
                            255,
                            256,
                            -128,
                            -129,
                            2147483520,
                            2147483647,
                            2147483648,
                            -2147483648.0,
                            9.3e18,
                            -9.3e18,
                            1e30,
                            -1e30,
                            kInfinity,
                            -kInfinity,
                            std::nan(""),
                            1e-45,
                            65504,
                            65520,
                            6.1e-5,
                            5.9e-8,
                            2.9e-8,
                            1.0009765625,
                            1.00048828125,
                            1.003906,
                            3.4e38};
  return Tensor::Make(dtype, {count}, [&](void* data) {
    (void)ops::Dispatch(ops::AllList{}, dtype, [&]<typename T>() {
      for (int64_t i = 0; i < count; ++i) {
        T& to = static_cast<T*>(data)[i];
        if constexpr (std::is_same_v<T, Bool>) {
          to.bits = static_cast<uint8_t>(random() % 3);
        } else if (random() % 3 == 0) {
          to = ops::ConvertTo<T>(special[random() % std::size(special)]);
        } else if constexpr (std::is_integral_v<T>) {
          to = static_cast<T>(random() % 2 == 0 ? random() % 7
                                                : (uint64_t{random()} << 32) | random());
        } else {
          to = ops::ConvertTo<T>((static_cast<double>(random()) / 2147483648.0 - 1) *
                                 (random() % 2 == 0 ? 2 : 1000));
        }
      }
    });
  });
}

Tensor Strided(const Tensor& x, int64_t stride, int64_t count) {
  const size_t size = DTypeSize(x.dtype());
  return Tensor::Make(x.dtype(), {count}, [&](void* data) {
    for (int64_t i = 0; i < count; ++i) {
      std::memcpy(static_cast<std::byte*>(data) + i * size,
                  static_cast<const std::byte*>(x.data()) + i * stride * size, size);
    }
  });
}

class TypedLoopsTest : public testing::TestWithParam<Isa> {
 protected:
  const TypedKernels& kernels() const { return TypedKernelsFor(GetParam()); }

  // Compares `function` with the reference kernel of `op` for every count, strides of 0, 1 and 3,
  // and with y in the place of each operand that allows it.
  void Check(TypedFunction function, const std::string& op, const Attributes& attributes,
             const std::vector<DType>& dtypes, DType out) {
    ASSERT_NE(function, nullptr);
    std::mt19937 random(7);
    for (const int64_t count : kCounts) {
      for (int trial = 0; trial < 12; ++trial) {
        Node node;
        node.op = op;
        node.attributes = attributes;
        std::vector<Tensor> stored;
        std::vector<std::optional<Tensor>> seen;
        std::vector<const void*> in;
        std::vector<int64_t> strides;
        for (size_t n = 0; n < dtypes.size(); ++n) {
          constexpr int64_t kStrides[] = {0, 1, 1, 3};
          strides.push_back(trial == 0 ? 1 : kStrides[random() % 4]);
          stored.push_back(Numbers(dtypes[n], 3 * count + 1, random));
          seen.push_back(Strided(stored[n], strides[n], count));
          node.inputs.push_back(static_cast<ValueId>(n));
        }
        node.outputs.push_back(static_cast<ValueId>(dtypes.size()));
        const absl::StatusOr<std::vector<Tensor>> expected = Evaluate(node, seen, 1 << 20);
        ASSERT_TRUE(expected.ok()) << expected.status().ToString();
        ASSERT_EQ(expected->at(0).dtype(), out);
        const size_t bytes = count * DTypeSize(out);
        for (int place = -1; place < static_cast<int>(dtypes.size()); ++place) {
          if (place >= 0 && (strides[place] != 1 || DTypeSize(dtypes[place]) != DTypeSize(out))) {
            continue;
          }
          std::vector<std::byte> y(bytes + 8, std::byte{0x5a});
          in.clear();
          for (const Tensor& tensor : stored) in.push_back(tensor.data());
          if (place >= 0) {
            if (bytes > 0) std::memcpy(y.data(), in[place], bytes);
            in[place] = y.data();
          }
          function(in.data(), strides.data(), y.data(), count);
          for (size_t i = bytes; i < y.size(); ++i) ASSERT_EQ(y[i], std::byte{0x5a});
          const Tensor got = Tensor::Make(out, {count}, [&](void* data) {
            if (bytes > 0) std::memcpy(data, y.data(), bytes);
          });
          ExpectSame(got, expected->at(0));
          if (HasFatalFailure()) return;
        }
      }
    }
  }

  // Bit for bit but for NaN, of which there are several, and bytes of bools.
  static void ExpectSame(const Tensor& got, const Tensor& want) {
    const std::vector<double> a = got.ToDoubles(), b = want.ToDoubles();
    const size_t size = DTypeSize(got.dtype());
    for (size_t i = 0; i < a.size(); ++i) {
      if (std::isnan(b[i]) && std::isnan(a[i])) continue;
      ASSERT_EQ(std::memcmp(static_cast<const std::byte*>(got.data()) + i * size,
                            static_cast<const std::byte*>(want.data()) + i * size, size),
                0)
          << "element " << i << " is " << a[i] << ", not " << b[i];
    }
  }
};

int64_t OnnxType(DType dtype) {
  for (int64_t type = 1; type <= 16; ++type) {
    const absl::StatusOr<DType> known = ops::DTypeFromOnnx(type);
    if (known.ok() && *known == dtype) return type;
  }
  return 0;
}

TEST_P(TypedLoopsTest, CastsAreThoseOfTheReference) {
  for (const DType from : kDTypes) {
    for (const DType to : kDTypes) {
      SCOPED_TRACE(testing::Message() << DTypeName(from) << " to " << DTypeName(to));
      if (from == to) continue;
      Attributes attributes;
      attributes.Set("to", OnnxType(to));
      Check(kernels().cast(from, to), "Cast", attributes, {from}, to);
    }
  }
  EXPECT_EQ(kernels().cast(DType::kUInt16, DType::kFloat32), nullptr);
}

TEST_P(TypedLoopsTest, EveryHalfBecomesItsFloatAndReturns) {
  std::vector<uint16_t> halves(1 << 16), back(halves.size());
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  std::vector<float> floats(halves.size());
  const void* in[] = {halves.data()};
  const int64_t stride = 1, count = static_cast<int64_t>(halves.size());
  kernels().cast(DType::kFloat16, DType::kFloat32)(in, &stride, floats.data(), count);
  in[0] = floats.data();
  kernels().cast(DType::kFloat32, DType::kFloat16)(in, &stride, back.data(), count);
  for (size_t i = 0; i < halves.size(); ++i) {
    const float exact = HalfToFloat(halves[i]);
    if (std::isnan(exact)) {
      ASSERT_TRUE(std::isnan(floats[i])) << i;
      ASSERT_TRUE(std::isnan(HalfToFloat(back[i]))) << i;
    } else {
      ASSERT_EQ(std::memcmp(&floats[i], &exact, sizeof(exact)), 0) << i;
      ASSERT_EQ(back[i], halves[i]);
    }
  }
}

TEST_P(TypedLoopsTest, FloatsBecomeTheNearestHalfWithTiesToEven) {
  struct HalfType {
    DType dtype;
    float (*widen)(uint16_t);
    uint16_t (*narrow)(float);
  };
  constexpr HalfType kHalves[] = {{DType::kFloat16, HalfToFloat, FloatToHalf},
                                  {DType::kBFloat16, BFloat16ToFloat, FloatToBFloat16}};
  std::mt19937 random(1);
  std::vector<float> x = {
      65504.0f, 65519.996f, 65520.0f, 70000.0f, -1e30f,
      0.0f,     -0.0f,      3.4e38f,  1e-45f,   std::numeric_limits<float>::infinity()};
  for (int i = 0; i < 200000; ++i) x.push_back(std::bit_cast<float>(uint32_t(random())));
  // Around the numbers that either half holds, and halfway between two of them.
  for (uint32_t bits = 0; bits < 1u << 16; ++bits) {
    for (const HalfType& half : kHalves) {
      const float value = half.widen(static_cast<uint16_t>(bits));
      const float next = half.widen(static_cast<uint16_t>(bits + 1));
      x.push_back(value);
      x.push_back((value + next) / 2);
      x.push_back(std::nextafter((value + next) / 2, next));
    }
  }
  const void* in[] = {x.data()};
  const int64_t stride = 1;
  for (const HalfType& half : kHalves) {
    std::vector<uint16_t> y(x.size());
    kernels().cast(DType::kFloat32, half.dtype)(in, &stride, y.data(),
                                                static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) {
        ASSERT_TRUE(std::isnan(half.widen(y[i]))) << x[i];
      } else {
        ASSERT_EQ(y[i], half.narrow(x[i])) << x[i];
      }
    }
  }
}

TEST_P(TypedLoopsTest, ArithmeticIsThatOfTheReference) {
  const std::pair<const char*, Arithmetic> kOps[] = {
      {"Add", Arithmetic::kAdd},         {"Sub", Arithmetic::kSub},
      {"Mul", Arithmetic::kMul},         {"Div", Arithmetic::kDiv},
      {"Mod", Arithmetic::kMod},         {"Max", Arithmetic::kMax},
      {"Min", Arithmetic::kMin},         {"BitwiseAnd", Arithmetic::kBitAnd},
      {"BitwiseOr", Arithmetic::kBitOr}, {"BitwiseXor", Arithmetic::kBitXor}};
  for (const auto& [name, op] : kOps) {
    for (const DType dtype :
         {DType::kFloat64, DType::kInt8, DType::kUInt8, DType::kInt32, DType::kInt64}) {
      SCOPED_TRACE(testing::Message() << name << " of " << DTypeName(dtype));
      const TypedFunction function = kernels().arithmetic(op, dtype);
      if (dtype == DType::kFloat64 && op >= Arithmetic::kBitAnd) continue;
      if (dtype == DType::kFloat64 && op == Arithmetic::kMod) {
        EXPECT_EQ(function, nullptr);
        continue;
      }
      Check(function, name, {}, {dtype, dtype}, dtype);
    }
  }
}

TEST_P(TypedLoopsTest, ComparisonsAreThoseOfTheReference) {
  const std::pair<const char*, Order> kOps[] = {{"Equal", Order::kEqual},
                                                {"Less", Order::kLess},
                                                {"LessOrEqual", Order::kLessOrEqual},
                                                {"Greater", Order::kGreater},
                                                {"GreaterOrEqual", Order::kGreaterOrEqual}};
  for (const auto& [name, op] : kOps) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt8, DType::kUInt8,
                              DType::kInt32, DType::kInt64, DType::kBool}) {
      if (dtype == DType::kBool && op != Order::kEqual) continue;
      SCOPED_TRACE(testing::Message() << name << " of " << DTypeName(dtype));
      Check(kernels().order(op, dtype), name, {}, {dtype, dtype}, DType::kBool);
    }
  }
}

TEST_P(TypedLoopsTest, LogicSpecialNumbersAndWhereAreThoseOfTheReference) {
  const std::pair<const char*, Logic> kOps[] = {
      {"And", Logic::kAnd}, {"Or", Logic::kOr}, {"Xor", Logic::kXor}, {"Not", Logic::kNot}};
  for (const auto& [name, op] : kOps) {
    SCOPED_TRACE(name);
    std::vector<DType> dtypes(op == Logic::kNot ? 1 : 2, DType::kBool);
    Check(kernels().logic(op), name, {}, dtypes, DType::kBool);
  }
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    Check(kernels().special(Special::kNan, dtype), "IsNaN", {}, {dtype}, DType::kBool);
    Check(kernels().special(Special::kInf, dtype), "IsInf", {}, {dtype}, DType::kBool);
  }
  for (const DType dtype : kDTypes) {
    SCOPED_TRACE(DTypeName(dtype));
    Check(kernels().where(DTypeSize(dtype)), "Where", {}, {DType::kBool, dtype, dtype}, dtype);
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, TypedLoopsTest, testing::ValuesIn(TestedTiers()), TierName);

}  // namespace
}  // namespace reprise::cpu
