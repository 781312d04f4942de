// Every way to multiply matrices against the reference, over random shapes, dtypes and forms.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/device/cpu/gemm/gemm.h"
#include "tests/runtime/device/cpu/device_harness.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class Shapes {
 public:
  explicit Shapes(uint32_t seed) : random_(seed) {}

  // 0, 1, primes, and sizes around the widths of vectors, tiles and panels.
  int64_t Size() {
    constexpr int64_t kSizes[] = {0,  1,  2,  3,  5,  7,  8,  9,  11, 15, 16,
                                  17, 23, 31, 32, 33, 47, 48, 49, 64, 97, 130};
    return kSizes[random_() % std::size(kSizes)];
  }
  bool Coin() { return random_() % 2 == 0; }
  template <typename T>
  T OneOf(std::initializer_list<T> values) {
    return values.begin()[random_() % values.size()];
  }

 private:
  std::mt19937 random_;
};

std::string Operand(absl::string_view name, absl::string_view dtype,
                    const std::vector<int64_t>& shape, bool parameter) {
  const std::string type = absl::StrCat(dtype, ShapeToString(Shape(shape.begin(), shape.end())));
  return parameter ? absl::StrCat("param %", name, ": ", type, " = p", name[0] - 'a', "\n")
                   : absl::StrCat("input %", name, ": ", type, "\n");
}

std::string RandomMatMul(Shapes& shapes, absl::string_view dtype) {
  const int64_t m = shapes.Size(), k = shapes.Size(), n = shapes.Size();
  std::vector<int64_t> a = {m, k}, b = {k, n};
  switch (shapes.OneOf({0, 1, 2, 3, 4, 5})) {
    case 0:  // Rows that lie in more than one dim.
      a.insert(a.begin(), 3);
      break;
    case 1:  // A stack.
      a.insert(a.begin(), {2, 3});
      b.insert(b.begin(), {2, 3});
      break;
    case 2:  // A stack that is broadcast on both sides.
      a.insert(a.begin(), {2, 1});
      b.insert(b.begin(), {3});
      break;
    case 3:
      a = {k};
      break;
    case 4:
      b = {k};
      break;
    default:
      break;
  }
  return absl::StrCat(Operand("a", dtype, a, false), Operand("b", dtype, b, shapes.Coin()),
                      "%y: ? = MatMul(%a, %b)\noutput %y");
}

std::string RandomGemm(Shapes& shapes, absl::string_view dtype) {
  const int64_t m = shapes.Size(), k = shapes.Size(), n = shapes.Size();
  const bool ta = shapes.Coin(), tb = shapes.Coin(), has_c = shapes.Coin();
  std::string text =
      absl::StrCat(Operand("a", dtype, ta ? std::vector{k, m} : std::vector{m, k}, false),
                   Operand("b", dtype, tb ? std::vector{n, k} : std::vector{k, n}, shapes.Coin()));
  if (has_c) {
    const std::vector<int64_t> c =
        shapes.OneOf<std::vector<int64_t>>({{}, {1}, {n}, {1, n}, {m, 1}, {m, n}});
    absl::StrAppend(&text, Operand("c", dtype, c, shapes.Coin()));
  }
  return absl::StrCat(text, "%y: ? = Gemm(%a, %b", has_c ? ", %c" : "", ") {transA = ", ta,
                      ", transB = ", tb, ", alpha = ", shapes.OneOf({"1.0", "0.5"}),
                      ", beta = ", shapes.OneOf({"1.0", "-0.25", "0.0"}), "}\noutput %y");
}

std::string RandomLinear(Shapes& shapes, absl::string_view) {
  const int64_t m = shapes.Size(), k = shapes.Size(), n = shapes.Size();
  std::string text = absl::StrCat(Operand("x", "f32", {2, m, k}, false),
                                  Operand("w", "f32", {k, n}, shapes.Coin()));
  const bool bias = shapes.Coin(), residual = shapes.Coin();
  if (bias) absl::StrAppend(&text, Operand("b", "f32", {n}, true));
  if (residual) absl::StrAppend(&text, Operand("r", "f32", {2, m, n}, false));
  const char* activation =
      shapes.OneOf({"none", "none", "relu", "gelu", "gelu_tanh", "tanh", "sigmoid", "silu",
                    "quick_gelu", "gelu_doubled", "gelu_tanh_doubled"});
  return absl::StrCat(text, "%y: ? = reprise.Linear(%x, %w",
                      bias       ? ", %b"
                      : residual ? ", _"
                                 : "",
                      residual ? ", %r" : "", ") {activation = \"", activation, "\"}\noutput %y");
}

struct Form {
  const char* name;
  std::string (*text)(Shapes& shapes, absl::string_view dtype);
  const char* dtype;
};
constexpr Form kForms[] = {
    {"MatMulF32", RandomMatMul, "f32"}, {"MatMulF64", RandomMatMul, "f64"},
    {"GemmF32", RandomGemm, "f32"},     {"GemmF64", RandomGemm, "f64"},
    {"LinearF32", RandomLinear, "f32"},
};

constexpr GemmProvider kProviders[] = {GemmProvider::kAuto, GemmProvider::kOwn,
                                       GemmProvider::kOpenBlas};
std::string ProviderName(GemmProvider provider) {
  constexpr const char* kNames[] = {"Auto", "Own", "OpenBlas"};
  return kNames[static_cast<size_t>(provider)];
}

class GemmProviderTest : public testing::TestWithParam<std::tuple<GemmProvider, Isa, Form>> {};

TEST_P(GemmProviderTest, RandomProductsAgreeWithTheReference) {
  const auto& [provider, isa, form] = GetParam();
  const CpuDevice device({.max_isa = isa, .gemm_provider = provider});
  ASSERT_TRUE(device.openblas_status().ok()) << device.openblas_status();
  const double relative = std::string(form.dtype) == "f64" ? 1e-14 : 1e-6;
  Shapes shapes(17);
  int compared = 0;
  for (int i = 0; i < 60; ++i) {
    NodeRun run(form.text(shapes, form.dtype), i);
    SCOPED_TRACE(testing::Message() << Print(run.graph));
    const std::vector<double> expected = run.Reference()[0].ToDoubles();
    // Sums of up to 130 products of numbers up to 2.
    double largest = 8;
    for (double x : expected) largest = std::max(largest, std::abs(x));
    const std::vector<KernelOption> options = device.Options(run.graph, run.id);
    if (provider != GemmProvider::kOwn) {
      ASSERT_FALSE(options.empty());
    }
    for (const KernelOption& option : options) {
      for (const int parts : {1, 3, 20}) {
        for (const bool in_place : {false, true}) {
          const Tensor result = run.RunOption(device, option, parts, in_place)[0];
          const std::vector<double> got = result.ToDoubles();
          ASSERT_EQ(got.size(), expected.size());
          for (size_t j = 0; j < got.size(); ++j) {
            ASSERT_NEAR(got[j], expected[j], relative * largest)
                << option.kernel << ", " << parts << " parts, element " << j;
          }
          compared += !got.empty();
        }
      }
    }
  }
  if (provider != GemmProvider::kOwn) {
    EXPECT_GT(compared, 100);
  }
}

INSTANTIATE_TEST_SUITE_P(Providers, GemmProviderTest,
                         testing::Combine(testing::ValuesIn(kProviders),
                                          testing::ValuesIn(cpu::ProductTiers()),
                                          testing::ValuesIn(kForms)),
                         [](const auto& info) {
                           return absl::StrCat(ProviderName(std::get<0>(info.param)), "_",
                                               IsaName(std::get<1>(info.param)), "_",
                                               std::get<2>(info.param).name);
                         });

constexpr char kLinear[] =
    "input %x: f32[9, 20]\nparam %w: f32[20, 50] = p0\n%y: ? = reprise.Linear(%x, %w)\noutput %y";
constexpr char kDoubles[] =
    "input %x: f64[9, 20]\nparam %w: f64[20, 50] = p0\n%y: ? = MatMul(%x, %w)\noutput %y";

// Returns the kernel a device takes for a node, and whether it is marked foreign.
std::pair<std::string, bool> Taken(const CpuDevice& device, const char* text) {
  const NodeRun run(text);
  const std::vector<KernelOption> options = device.Options(run.graph, run.id);
  if (options.empty()) return {"reference", false};
  const absl::StatusOr<BoundKernel> bound = device.Bind(run.graph, run.id, options[0]);
  EXPECT_TRUE(bound.ok()) << bound.status();
  return {options[0].kernel, bound->foreign};
}

TEST(GemmProviderChoiceTest, WeightsAreOursAndFloat64IsForeignByDefault) {
  for (const Isa isa : cpu::TestedTiers()) {
    const CpuDevice device(isa);
    // Our kernels without vectors are there to be right, not fast.
    const bool vectors = isa.Covers(Isa::kAvx2);
    EXPECT_EQ(Taken(device, kLinear).second, !vectors) << IsaName(isa);
    EXPECT_EQ(Taken(device, kDoubles), std::make_pair(std::string("gemm_openblas"), true));
  }
}

TEST(GemmProviderChoiceTest, TheTileUnitTakesRowsThatNearlyFillItsTilesUnlessItIsCapped) {
  const auto linear = [](int64_t rows) {
    return absl::StrCat("input %x: f32[", rows,
                        ", 40]\nparam %w: f32[40, 100] = p0\n%y: ? = reprise.Linear(%x, %w)\n"
                        "output %y");
  };
  const CpuDevice device;
  const CpuDevice capped(Isa::kAvx512Bf16);
  const bool has_tiles = DetectIsa().Covers(Isa::kAmx);
  for (const int64_t rows : {28, 32, 44, 64}) {
    EXPECT_EQ(Taken(device, linear(rows).c_str()).first == "gemm_amx", has_tiles) << rows;
  }
  for (const int64_t rows : {27, 33, 43}) {
    EXPECT_NE(Taken(device, linear(rows).c_str()).first, "gemm_amx") << rows;
  }
  EXPECT_NE(Taken(capped, linear(64).c_str()).first, "gemm_amx");
  EXPECT_EQ(device.fingerprint() == capped.fingerprint(), !has_tiles);
}

// Products that are large enough for every walk; with `param` weights.
constexpr const char* kLarge[] = {
    "input %x: f32[150, 300]\nparam %w: f32[300, 70] = p0\nparam %b: f32[70] = p1\n%y: ? = "
    "reprise.Linear(%x, %w, %b) {activation = \"gelu\"}\noutput %y",
    "input %x: f32[530, 40]\nparam %w: f32[40, 100] = p0\n%y: ? = reprise.Linear(%x, %w)\noutput "
    "%y",
    "input %x: f32[3, 2500]\nparam %w: f32[2500, 50] = p0\n%y: ? = reprise.Linear(%x, %w)\noutput "
    "%y",
    "input %x: f32[20, 40]\nparam %w: f32[40, 100] = p0\n%y: ? = reprise.Linear(%x, %w)\noutput "
    "%y",
    "input %x: f32[11, 700]\nparam %w: f32[700, 100] = p0\n%y: ? = reprise.Linear(%x, %w)\noutput "
    "%y",
    "input %x: f32[21, 1300]\nparam %w: f32[1300, 100] = p0\n%y: ? = reprise.Linear(%x, "
    "%w)\noutput %y"};

TEST(GemmProviderChoiceTest, EveryWalkOverPackedWeightsGivesTheSameBits) {
  std::set<std::string> walks;
  std::set<std::string> expected = {"", "/short", "/long", "/whole", "/near"};
  for (const Isa isa : cpu::TestedTiers()) {
    // On a machine without vectors no case is deep enough for it.
    const bool close =
        isa != Isa::kBaseline && cpu::GemmKernelsFor(isa).close_rows(/*rows=*/64) > 0;
    if (close) expected.insert("/close");
    const CpuDevice device({.max_isa = isa, .gemm_provider = GemmProvider::kOwn});
    for (const char* text : kLarge) {
      NodeRun run(text, 3);
      const std::vector<KernelOption> options = device.Options(run.graph, run.id);
      ASSERT_GT(options.size(), 1u) << text;
      const Tensor usual = run.RunOption(device, options[0], 1)[0];
      for (const KernelOption& option : options) {
        walks.insert(option.kernel.substr(std::min(option.kernel.find('/'), option.kernel.size())));
        EXPECT_EQ(option.question, options[0].question);
        EXPECT_NE(option.question, "");
        for (const int parts : {1, 3}) {
          const Tensor got = run.RunOption(device, option, parts)[0];
          EXPECT_EQ(std::memcmp(got.data(), usual.data(), usual.bytes()), 0)
              << option.kernel << ", " << parts << " parts: " << text;
        }
      }
    }
  }
  EXPECT_EQ(walks, expected);
}

TEST(GemmProviderChoiceTest, QuestionIsAskedOnlyWhereThereIsAChoice) {
  const auto questions = [](GemmProvider provider, const char* text) {
    const CpuDevice device({.gemm_provider = provider});
    const NodeRun run(text);
    std::set<std::string> asked;
    for (const KernelOption& option : device.Options(run.graph, run.id)) {
      asked.insert(option.question);
    }
    return asked;
  };
  EXPECT_THAT(questions(GemmProvider::kOpenBlas, kLinear), testing::ElementsAre(""));
  EXPECT_THAT(questions(GemmProvider::kAuto, kDoubles), testing::ElementsAre(""));
  EXPECT_THAT(questions(GemmProvider::kAuto, kLinear),
              testing::ElementsAre(testing::HasSubstr("[9, 20] x [20, 50], weights")));
}

TEST(GemmProviderChoiceTest, OwnNeverCallsTheLibrary) {
  const CpuDevice device({.gemm_provider = GemmProvider::kOwn});
  EXPECT_FALSE(Taken(device, kLinear).second);
  EXPECT_EQ(Taken(device, kDoubles).first, "reference");
}

TEST(GemmProviderChoiceTest, OpenBlasTakesWeightsAsTheyAre) {
  const CpuDevice device({.gemm_provider = GemmProvider::kOpenBlas});
  EXPECT_EQ(Taken(device, kLinear), std::make_pair(std::string("gemm_openblas"), true));
  const NodeRun run(kLinear);
  const std::vector<KernelOption> options = device.Options(run.graph, run.id);
  ASSERT_THAT(options, SizeIs(1));
  EXPECT_THAT(options[0].prepare, IsEmpty());
}

TEST(GemmProviderChoiceTest, RecipesOfProvidersDoNotCross) {
  std::set<std::string> fingerprints;
  for (const GemmProvider provider : kProviders) {
    fingerprints.insert(CpuDevice({.gemm_provider = provider}).fingerprint());
  }
  EXPECT_THAT(fingerprints, SizeIs(std::size(kProviders)));
}

}  // namespace
}  // namespace reprise
