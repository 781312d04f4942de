#include "runtime/generate/carried_steps.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>

#include "tests/runtime/generate/generator_fixture.h"

namespace reprise {
namespace {

// A client of the tiny decoder: its cache goes with every request.
class Carrier {
 public:
  explicit Carrier(const Model& model) : model_(model) { Keep({}); }

  // Asks with one row of new tokens after the past.
  const Request& Ask(const std::vector<int64_t>& ids) {
    ids_ = ids;
    request_.inputs.clear();
    for (const ModelIo& input : model_.inputs()) {
      if (input.name == "input_ids") {
        request_.inputs.push_back({{1, static_cast<int64_t>(ids.size())}, ids_.data()});
        continue;
      }
      // At an address that no float has.
      const std::string& past = input.name == "past_key" ? key_ : value_;
      request_.inputs.push_back({{1, 2, length_, 16}, past.data() + 1});
    }
    return request_;
  }
  // Takes the answer; returns the scores of each token.
  std::vector<float> Take(const Response& response) {
    EXPECT_TRUE(response.status.ok()) << response.status;
    if (!response.status.ok()) return {};
    length_ += static_cast<int64_t>(ids_.size());
    Keep(response.outputs);
    return scores_;
  }
  void Reset() {
    length_ = 0;
    Keep({});
  }
  std::string cache() const { return key_ + value_; }

 private:
  void Keep(const std::vector<OutputTensor>& outputs) {
    key_ = value_ = "x";
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string& name = model_.outputs()[i].name;
      if (name == "present_key") key_ += outputs[i].bytes;
      if (name == "present_value") value_ += outputs[i].bytes;
      if (name != "logits") continue;
      scores_.resize(outputs[i].bytes.size() / sizeof(float));
      std::memcpy(scores_.data(), outputs[i].bytes.data(), outputs[i].bytes.size());
    }
  }

  const Model& model_;
  Request request_;
  std::vector<int64_t> ids_;
  int64_t length_ = 0;
  std::string key_, value_;
  std::vector<float> scores_;
};

class CarriedStepsTest : public GeneratorTest {
 protected:
  void SetUp() override {
    Make({.speculate = false});
    ASSERT_NE(generator->carried(), nullptr) << generator->carried_refusal();
    auto made = Stream::Create({});
    ASSERT_TRUE(made.ok());
    stream_ = *std::move(made);
  }

  // Runs both clients' requests in one batch, where there are two.
  std::vector<std::vector<float>> Run(std::vector<Carrier*> clients,
                                      const std::vector<std::vector<int64_t>>& ids) {
    std::vector<const Request*> requests;
    for (size_t i = 0; i < clients.size(); ++i) requests.push_back(&clients[i]->Ask(ids[i]));
    for (const Request* request : requests) {
      const absl::Status takes = generator->carried()->Takes(*request);
      EXPECT_TRUE(takes.ok()) << takes;
    }
    StopFlag stop;
    const std::vector<Response> responses =
        generator->carried()->Run(requests, *stream_, &stop, counts_);
    std::vector<std::vector<float>> scores;
    for (size_t i = 0; i < clients.size(); ++i) scores.push_back(clients[i]->Take(responses[i]));
    return scores;
  }

  std::unique_ptr<Stream> stream_;
  CarriedCounts counts_;
};

TEST_F(CarriedStepsTest, TokensAndScoresHaveTheBitsOfASequenceOfTheServer) {
  constexpr int64_t kTokens = 60;
  const std::vector<int64_t> prompt = Prompt(21, 4);
  Told told;
  ASSERT_TRUE(Submit(Ask(prompt, kTokens), told).ok());
  RunAll();
  ASSERT_EQ(told.ids.size(), static_cast<size_t>(kTokens)) << told.status;
  Carrier client(*model_);
  std::vector<int64_t> next = prompt;
  const size_t compiled = fixture_.observer.of("tiny").compiles.size();
  for (int64_t i = 0; i < kTokens; ++i) {
    std::vector<float> scores = Run({&client}, {next})[0];
    ASSERT_EQ(scores.size(), next.size() * kTinyVocabulary);
    EXPECT_EQ(counts_.bytes, static_cast<int64_t>(client.cache().size()) - 2);
    Sampler sampler(std::make_shared<const SamplingOptions>(
                        SamplingOptions{.max_tokens = kTokens, .temperature = 0, .logprobs = 0}),
                    0);
    const auto token =
        sampler.Draw(absl::MakeSpan(scores).last(static_cast<size_t>(kTinyVocabulary)));
    ASSERT_TRUE(token.ok()) << token.status();
    EXPECT_EQ(token->id, told.ids[i]) << i;
    EXPECT_EQ(token->logprob, told.logprobs[i]) << i;
    next = {token->id};
  }
  EXPECT_EQ(fixture_.observer.of("tiny").compiles.size(), compiled);
}

TEST_F(CarriedStepsTest, AnswersAreThoseOfTheModelItself) {
  Carrier ours(*model_), theirs(*model_);
  for (const int64_t length : {5, 1, 90, 1, 3}) {
    const std::vector<int64_t> ids = Prompt(length, length);
    const std::vector<float> scores = Run({&ours}, {ids})[0];
    const std::vector<float> expected =
        theirs.Take(fixture_.engine.RunOne(*model_, theirs.Ask(ids), *stream_));
    ASSERT_EQ(scores.size(), expected.size());
    for (size_t i = 0; i < scores.size(); ++i) {
      EXPECT_NEAR(scores[i], expected[i], 1e-4 + 1e-4 * std::abs(expected[i])) << length;
    }
    EXPECT_EQ(ours.cache().size(), theirs.cache().size());
  }
}

TEST_F(CarriedStepsTest, BatchMatesAndChunksChangeNoBit) {
  Carrier alone(*model_), mate(*model_), whole(*model_);
  const std::vector<int64_t> ids = Prompt(100, 3);
  const std::vector<float> scores = Run({&whole}, {ids})[0];
  std::vector<float> pieces;
  for (const auto& [begin, end] : {std::pair{0, 1}, {1, 18}, {18, 19}, {19, 90}, {90, 100}}) {
    const std::vector<int64_t> piece(ids.begin() + begin, ids.begin() + end);
    const auto both = Run({&mate, &alone}, {Prompt(end, 7), piece});
    pieces.insert(pieces.end(), both[1].begin(), both[1].end());
    mate.Reset();
  }
  ASSERT_EQ(pieces.size(), scores.size());
  EXPECT_EQ(std::memcmp(pieces.data(), scores.data(), scores.size() * sizeof(float)), 0);
  EXPECT_EQ(alone.cache(), whole.cache());
}

TEST_F(CarriedStepsTest, RequestsThatItCannotServeAreNotTaken) {
  Carrier client(*model_);
  EXPECT_TRUE(generator->carried()->Takes(client.Ask({1, 2})).ok());
  EXPECT_FALSE(generator->carried()->Takes(client.Ask({1, kTinyVocabulary})).ok());
  EXPECT_FALSE(generator->carried()->Takes(client.Ask(Prompt(generator->context() + 1, 1))).ok());
  Request other = client.Ask({1, 2});
  for (InputTensor& input : other.inputs) {
    if (input.shape.size() == 4) input.shape[1] = 3;
  }
  EXPECT_FALSE(generator->carried()->Takes(other).ok());
}

// Such a request has the limits of any model's requests.
TEST_F(CarriedStepsTest, AnswersBeyondTheLimitAreNotMade) {
  const TempFolder folder;
  const auto model = fixture_.engine.Load({.id = {"small", 1},
                                           .path = folder.Write("model.onnx", TinyDecoderModel()),
                                           .max_arena_bytes = 1 << 20});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto made = Generator::Create(fixture_.engine, *model, {.context = 256, .step_tokens = 64});
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_NE((*made)->carried(), nullptr) << (*made)->carried_refusal();
  Carrier client(**model);
  Request request = client.Ask(Prompt(200, 1));
  EXPECT_EQ((*made)->carried()->Takes(request), absl::OkStatus());
  constexpr int64_t kRows = 20;
  const std::vector<int64_t> ids(kRows * 200, 1);
  for (InputTensor& input : request.inputs) {
    input.shape[0] = kRows;
    if (input.shape.size() == 2) input.data = ids.data();
  }
  const absl::Status refused = (*made)->carried()->Takes(request);
  EXPECT_TRUE(absl::IsUnimplemented(refused)) << refused;
  // 20 rows of 200 positions: 40 scores of 4 bytes, and 2 caches of 2 heads of 16 floats.
  EXPECT_THAT(std::string(refused.message()),
              testing::HasSubstr("its answer has 1664000 bytes, and the limit is 1048576"));
}

}  // namespace
}  // namespace reprise
