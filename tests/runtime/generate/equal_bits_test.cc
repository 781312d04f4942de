// Equal requests get equal bits on each tier of the CPU: whatever runs next to them, whichever
// request has computed their prefix, and however steps cut their prompts; rounded too.
#include <gtest/gtest.h>

#include "tests/runtime/device/cpu/tiers.h"
#include "tests/runtime/generate/generator_fixture.h"

namespace reprise {
namespace {

// How a model is loaded.
struct Rounding {
  const char* name;
  Precision precision = Precision::kExact;
  WeightBits weights = WeightBits::kStored;
};
constexpr Rounding kRoundings[] = {{"Exact"},
                                   {"Bf16", Precision::kBf16},
                                   {"Bf16OfFourBits", Precision::kBf16, WeightBits::kInt4},
                                   {"Bf16OfBytes", Precision::kBf16, WeightBits::kInt8},
                                   {"Int8", Precision::kInt8},
                                   {"Int8OfFourBits", Precision::kInt8, WeightBits::kInt4}};
void PrintTo(const Rounding& rounding, std::ostream* out) { *out << rounding.name; }

class EqualBitsTest : public testing::TestWithParam<std::tuple<Isa, Rounding>> {
 protected:
  struct Way {
    int64_t step_tokens = 512;
    int64_t max_running = 32;
    int64_t max_stall_ns = 20'000'000;
    int64_t prefix = 0;     // tokens of each prompt that another request has computed before
    int64_t copies = 1;     // how often each request is made
    int64_t others = 0;     // requests next to them
    bool together = false;  // submitted before the first step
  };

  static std::vector<int64_t> Prompt(int64_t i) {
    constexpr int64_t kLengths[] = {1, 2, 7, 8, 9, 16, 17, 33, 44, 63, 64, 65, 100, 150};
    std::vector<int64_t> ids;
    for (int64_t at = 0; at < kLengths[i]; ++at) ids.push_back((i * 31 + at * at * 7 + at) % 37);
    return ids;
  }
  static constexpr int64_t kPrompts = 14;

  static GenerationRequest Ask(std::vector<int64_t> ids, int64_t i) {
    return {.ids = std::move(ids),
            .sampling = {.max_tokens = 12,
                         .temperature = i % 2 == 0 ? 0.0f : 1.2f,
                         .seed = static_cast<uint64_t>(i),
                         .logit_bias = {{kTinyPoison, -100.0f}}}};
  }

  void Submit(Generator& generator, GenerationRequest request, Told& told) {
    request.sampling.logprobs = 0;
    request.on_event = [&told](const GenerationEvent& event) {
      for (const SampledToken& token : event.tokens) {
        told.ids.push_back(token.id);
        told.logprobs.push_back(token.logprob);
      }
      if (told.status.ok()) told.status = event.status;
    };
    ASSERT_TRUE(generator.Submit(std::move(request)).ok());
  }

  // Returns the answers to all prompts, copy by copy.
  std::vector<Told> Answers(const Way& way) {
    auto made = Generator::Create(fixture_.engine, model_,
                                  {.context = 256,
                                   .step_tokens = way.step_tokens,
                                   .max_running = way.max_running,
                                   .max_stall_ns = way.max_stall_ns});
    EXPECT_TRUE(made.ok()) << made.status();
    Generator& generator = **made;
    const auto run = [&] {
      while (generator.Step()) {
      }
    };
    std::vector<Told> told(static_cast<size_t>(kPrompts * way.copies)), others(200);
    for (int64_t i = 0; i < kPrompts && way.prefix > 0; ++i) {
      std::vector<int64_t> ids = Prompt(i);
      ids.resize(std::min<size_t>(ids.size(), static_cast<size_t>(way.prefix)));
      Submit(generator, Ask(ids, 0), others[static_cast<size_t>(100 + i)]);
      run();
    }
    for (int64_t i = 0; i < way.others; ++i) {
      std::vector<int64_t> ids = Prompt(i % kPrompts);
      ids[0] = (ids[0] + 1 + i) % 37;
      Submit(generator, Ask(ids, 0), others[static_cast<size_t>(i)]);
      if (i % 3 == 0) generator.Step();
    }
    for (size_t i = 0; i < told.size(); ++i) {
      const int64_t prompt = static_cast<int64_t>(i) % kPrompts;
      Submit(generator, Ask(Prompt(prompt), prompt), told[i]);
      if (!way.together) run();
    }
    run();
    return told;
  }

  void SetUp() override {
    const TempFolder folder;
    auto model = fixture_.engine.Load({.id = {"tiny", 1},
                                       .path = folder.Write("model.onnx", TinyDecoderModel()),
                                       .precision = std::get<Rounding>(GetParam()).precision,
                                       .weights = std::get<Rounding>(GetParam()).weights});
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
  }

  EngineFixture fixture_{/*threads=*/2, std::get<Isa>(GetParam())};
  std::shared_ptr<Model> model_;
};

TEST_P(EqualBitsTest, InAnyCompanyBehindAnyPrefixAndInAnyChunks) {
  const std::vector<Told> alone = Answers({});
  const std::pair<const char*, Way> ways[] = {
      {"asked again", {.copies = 2}},
      {"behind the first page", {.prefix = 17}},
      {"behind pages of all lengths", {.prefix = 65}},
      {"in one step", {.together = true}},
      {"in a crowd", {.others = 30, .together = true}},
      {"in a crowd that shares pages", {.prefix = 33, .copies = 3, .others = 40, .together = true}},
      {"in chunks of 16", {.step_tokens = 16, .together = true}},
      {"in chunks of 1", {.step_tokens = 1}},
      {"in chunks of 64 beside others", {.step_tokens = 64, .others = 20, .together = true}},
      {"in short stalls", {.max_stall_ns = 1, .others = 30, .together = true}},
      {"two at a time", {.max_running = 2, .others = 5, .together = true}}};
  for (const auto& [name, way] : ways) {
    const std::vector<Told> told = Answers(way);
    for (size_t i = 0; i < told.size(); ++i) {
      const Told& expected = alone[i % kPrompts];
      EXPECT_TRUE(told[i].status.ok()) << told[i].status;
      EXPECT_EQ(told[i].ids, expected.ids) << name << ", request " << i;
      EXPECT_EQ(told[i].logprobs, expected.logprobs) << name << ", request " << i;
    }
  }
}

TEST_P(EqualBitsTest, PagesOfModelsThatRoundAreOfBf16) {
  const auto describe = [&](ops::CacheDType dtype) {
    auto made = Generator::Create(fixture_.engine, model_, {.cache_dtype = dtype, .context = 64});
    EXPECT_TRUE(made.ok()) << made.status();
    return (*made)->Describe();
  };
  const bool rounds = std::get<Rounding>(GetParam()).precision != Precision::kExact;
  EXPECT_EQ(describe(ops::CacheDType::kFloat32) == describe(ops::CacheDType::kBFloat16), rounds);
}

INSTANTIATE_TEST_SUITE_P(Tiers, EqualBitsTest,
                         testing::Combine(testing::ValuesIn(cpu::EveryTier()),
                                          testing::ValuesIn(kRoundings)),
                         [](const auto& info) {
                           return std::string(IsaName(std::get<Isa>(info.param))) +
                                  std::get<Rounding>(info.param).name;
                         });

}  // namespace
}  // namespace reprise
