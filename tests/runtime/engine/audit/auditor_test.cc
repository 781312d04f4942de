// Computing answers again: equal ones, and different ones of a kernel with a fault.
#include "runtime/engine/audit/auditor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <limits>

#include "runtime/device/cpu/cpu_device.h"
#include "runtime/engine/capture/capture_pool.h"
#include "tests/testing/masked_mean.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Rows of a padded replay of one request of 9 tokens: what the fault shows at.
constexpr int64_t kPaddedTo = 16;

// Kernels of the CPU; but y = Neg(x) of padded sizes adds `fault` to its first element.
class FaultyDevice final : public Device {
 public:
  absl::string_view name() const override { return "faulty"; }
  std::string fingerprint() const override { return "faulty"; }
  std::vector<KernelOption> Options(const Graph& graph, NodeId node) const override {
    if (graph.node(node).op == "Neg") return {{.kernel = "neg"}};
    return cpu_.Options(graph, node);
  }
  absl::StatusOr<BoundKernel> Bind(const Graph& graph, NodeId node,
                                   const KernelOption& option) const override {
    if (graph.node(node).op != "Neg") return cpu_.Bind(graph, node, option);
    struct Params {
      int64_t count;
      const std::atomic<float>* fault;
    };
    const Shape& shape = *graph.value(graph.node(node).inputs[0]).shape;
    const bool is_padded = shape.size() == 3 && shape[1] == kPaddedTo;
    BoundKernel bound;
    bound.params =
        std::make_shared<Params>(Params{NumElements(shape), is_padded ? &fault : nullptr});
    bound.run = [](const LaunchArgs& launch) {
      const auto& params = *static_cast<const Params*>(launch.params);
      const auto* x = static_cast<const float*>(launch.operands[0]);
      auto* y = static_cast<float*>(launch.operands[1]);
      for (int64_t i = 0; i < params.count; ++i) y[i] = -x[i];
      if (params.fault != nullptr) y[0] += *params.fault;
    };
    return bound;
  }
  absl::StatusOr<Tensor> Prepare(const std::string& op, const Attributes& attributes,
                                 absl::Span<const std::optional<Tensor>> inputs) const override {
    return cpu_.Prepare(op, attributes, inputs);
  }

  std::atomic<float> fault{0};

 private:
  const CpuDevice cpu_{DetectIsa()};
};

// Remembers what audits found.
class AuditObserver final : public Observer {
 public:
  class ForOne final : public ModelObserver {
   public:
    explicit ForOne(AuditObserver& all) : all_(all) {}
    void On(const ModelEvent& event) override {
      MutexLock lock(all_.mutex_);
      std::visit(
          OfEvent{
              [&](const AuditOutcome& audit) {
                ++all_.results_[static_cast<size_t>(audit.result)];
                all_.changed_.NotifyAll();
              },
              [&](const Quarantine& quarantine) { all_.quarantined_.push_back(quarantine.axis); },
              [&](const ReplayRecord&) { ++all_.replays; },
              [&](const EagerCacheLookup&) { ++all_.eager_requests; }, [](const auto&) {}},
          event);
    }

   private:
    AuditObserver& all_;
  };
  std::unique_ptr<ModelObserver> ForModel(const ModelObserverSpec&) override {
    return std::make_unique<ForOne>(*this);
  }
  // Waits for `count` audits in all; returns how many there were of each result.
  std::vector<int> Await(int count) {
    MutexLock lock(mutex_);
    while (results_[0] + results_[1] + results_[2] < count) changed_.Wait(mutex_);
    return {results_, results_ + kNumAuditResults};
  }
  // Waits for one that differs.
  std::vector<int> AwaitDifferent() {
    MutexLock lock(mutex_);
    while (results_[static_cast<size_t>(AuditResult::kDifferent)] == 0) changed_.Wait(mutex_);
    return {results_, results_ + kNumAuditResults};
  }
  std::vector<size_t> quarantined() {
    MutexLock lock(mutex_);
    return quarantined_;
  }

  std::atomic<int> replays{0}, eager_requests{0};

 private:
  Mutex mutex_;
  CondVar changed_;
  int results_[kNumAuditResults] GUARDED_BY(mutex_) = {};
  std::vector<size_t> quarantined_ GUARDED_BY(mutex_);
};

class AuditorTest : public testing::Test {
 protected:
  void Start(double share, const std::string& folder = "") {
    engine_ = std::make_unique<Engine>(EngineOptions{.device = &device_,
                                                     .clock = &clock_,
                                                     .cores = &cores_,
                                                     .captures = &captures_,
                                                     .audit_share = share,
                                                     .audit_dir = folder,
                                                     .log =
                                                         [this](const std::string& text) {
                                                           MutexLock lock(mutex_);
                                                           log_ += text + "\n";
                                                         }},
                                       observer_);
    stream_ = *Stream::Create({.cores = &cores_});
    ModelBuilder b;
    b.Input("x", {"batch", "sequence", "4"}).Output("y");
    b.Node("Neg", {"x"}, {"y"});
    ModelOptions options;
    options.bucket_mode = BucketMode::kOff;
    model_ = LoadBytes(*engine_, b.Bytes(), std::move(options));
  }
  ~AuditorTest() override { captures_.Stop(); }

  Response Run(int64_t length, float first = 1) {
    std::vector<float> x(static_cast<size_t>(length * 4), 2);
    x[0] = first;
    Request request;
    request.inputs = {{{1, length, 4}, x.data()}};
    return engine_->RunOne(*model_, request, *stream_);
  }
  std::string log() {
    MutexLock lock(mutex_);
    return log_;
  }

  SteadyClock clock_;
  HelperPool cores_{1};
  FaultyDevice device_;
  AuditObserver observer_;
  CapturePool captures_{{.urgent_threads = 1, .behind_threads = 1}};
  Mutex mutex_;
  std::string log_ GUARDED_BY(mutex_);
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Stream> stream_;
  std::shared_ptr<Model> model_;
};

TEST_F(AuditorTest, RightAnswersAreEqualAndCountNothingElse) {
  Start(1);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(Run(9 + i).status.ok());
  EXPECT_THAT(observer_.Await(4), ElementsAre(4, 0, 0));
  EXPECT_THAT(observer_.quarantined(), testing::IsEmpty());
  EXPECT_EQ(observer_.replays, 4);
  EXPECT_EQ(observer_.eager_requests, 0);
}

TEST_F(AuditorTest, NoNumberInBothIsNoDifference) {
  Start(1);
  ASSERT_TRUE(Run(9, std::numeric_limits<float>::quiet_NaN()).status.ok());
  ASSERT_TRUE(Run(9, std::numeric_limits<float>::infinity()).status.ok());
  EXPECT_THAT(observer_.Await(2), ElementsAre(2, 0, 0));
}

TEST_F(AuditorTest, OneInSoManyPaddedAnswersIsLookedAt) {
  Start(0.25);
  for (int i = 0; i < 11; ++i) ASSERT_TRUE(Run(9).status.ok());
  ASSERT_TRUE(Run(kPaddedTo).status.ok());  // Nothing is padded.
  // One at a time is looked at, so that this one is the last.
  device_.fault = 5;
  ASSERT_TRUE(Run(9).status.ok());
  EXPECT_EQ(observer_.AwaitDifferent(), (std::vector<int>{2, 1, 0}));
}

TEST_F(AuditorTest, AFaultEndsPaddingUntilTheModelIsLoadedAgain) {
  const TempFolder folder;
  Start(0.5, folder.path());
  device_.fault = 5;
  EXPECT_EQ(Run(9).info.bucket, "b1_s16");
  EXPECT_EQ(Run(9, 3).info.bucket, "b1_s16");
  EXPECT_THAT(observer_.Await(1), ElementsAre(0, 1, 0));
  captures_.Stop();  // Its report is written by then.
  EXPECT_THAT(observer_.quarantined(), ElementsAre(0, 1));
  EXPECT_THAT(log(), HasSubstr("an audited answer differs: output 'y' is off by 1.7 of its largest "
                               "number (bucket b1_s16; batch=1,sequence=9)"));
  const Response after = Run(9);
  ASSERT_TRUE(after.status.ok()) << after.status;
  EXPECT_EQ(after.info.bucket, "exact");
  float first = 0;
  std::memcpy(&first, after.outputs[0].bytes.data(), sizeof(first));
  EXPECT_EQ(first, -1);
  EXPECT_FALSE(model_->CertificateOf(1).certified);
  // The request is kept, so that it can be sent again.
  const std::filesystem::directory_iterator files(folder.path());
  std::ifstream file(files->path());
  const std::string json{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(json, testing::StartsWith("{\"x\":[[[3,2,2,2],[2,2,2,2],"));
}

TEST_F(AuditorTest, WithoutAFolderNothingIsWritten) {
  Start(1);
  device_.fault = 5;
  Run(9);
  observer_.Await(1);
  captures_.Stop();
  EXPECT_THAT(log(), testing::Not(HasSubstr("the request is in")));
}

TEST(AuditBudgetTest, IsAShareOfAllCoresThatIsSavedUp) {
  AuditBudget budget(/*cores=*/2, /*now_ns=*/0);
  EXPECT_TRUE(budget.Allows(0));
  budget.Spend(AuditBudget::kMostSavedNs + 1'000'000);
  EXPECT_FALSE(budget.Allows(49'000'000));
  EXPECT_TRUE(budget.Allows(51'000'000));
  EXPECT_TRUE(budget.Allows(int64_t{1} << 50));
  budget.Spend(AuditBudget::kMostSavedNs);
  EXPECT_FALSE(budget.Allows(int64_t{1} << 50));
}

}  // namespace
}  // namespace reprise
