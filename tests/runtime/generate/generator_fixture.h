// A generator over the tiny decoder, and the events of its requests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "runtime/generate/generator.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"
#include "tests/testing/tiny_decoder.h"

namespace reprise {

// All events of one request.
struct Told {
  std::vector<int64_t> ids;
  std::vector<float> logprobs;
  absl::Status status;
  Ending ending = Ending::kGoesOn;
  bool last = false;
  int64_t cached = 0;
  GenerationWait wait;
  std::shared_ptr<Generation> handle;
};

class GeneratorTest : public ::testing::Test {
 protected:
  static std::shared_ptr<Model> LoadTiny(Engine& engine, bool causal = true) {
    const TempFolder folder;
    auto model = engine.Load({.id = {"tiny", 1},
                              .path = folder.Write("model.onnx", TinyDecoderModel(causal)),
                              .one_order = true});
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : nullptr;
  }

  void Make(GeneratorOptions options) {
    if (model_ == nullptr) model_ = LoadTiny(fixture_.engine);
    ASSERT_NE(model_, nullptr);
    if (options.context == 0) options.context = 256;
    options.step_tokens = 64;
    auto made = Generator::Create(fixture_.engine, model_, std::move(options));
    ASSERT_TRUE(made.ok()) << made.status();
    generator = *std::move(made);
  }
  // Pages as many as that, of 16 positions.
  static int64_t Pages(int64_t count) { return count * 16 * 2 * kTinyHidden * 4; }

  // `told` must outlive the request.
  absl::Status Submit(GenerationRequest request, Told& told) {
    request.sampling.logprobs = 0;
    request.on_event = [&told](const GenerationEvent& event) {
      for (const SampledToken& token : event.tokens) {
        told.ids.push_back(token.id);
        told.logprobs.push_back(token.logprob);
      }
      if (told.status.ok()) told.status = event.status;
      told.ending = event.finish;
      told.last = event.last;
      told.cached = event.cached_tokens;
      told.wait = event.wait;
    };
    auto handle = generator->Submit(std::move(request));
    if (handle.ok()) told.handle = *handle;
    return handle.status();
  }
  static GenerationRequest Ask(std::vector<int64_t> ids, int64_t max_tokens) {
    return {.ids = std::move(ids), .sampling = {.max_tokens = max_tokens, .temperature = 0}};
  }
  static std::vector<int64_t> Prompt(int64_t length, int64_t seed) {
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < length; ++i) ids.push_back((seed * 31 + i * i * 7 + i) % 37);
    return ids;
  }
  void RunAll() {
    while (generator->Step()) {
    }
  }

  EngineFixture fixture_;
  std::shared_ptr<Model> model_;
  std::unique_ptr<Generator> generator;
};

}  // namespace reprise
