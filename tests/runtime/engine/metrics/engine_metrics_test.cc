// Counts, their JSON, and the file that they are written to.
#include "runtime/engine/metrics/engine_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/engine/metrics/compilations.h"
#include "runtime/engine/metrics/metrics_file.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

// Counts the events that it receives, to see that all arrive.
class Listener final : public Observer {
 public:
  class Model final : public ModelObserver {
   public:
    explicit Model(int& told) : told_(told) {}
    void On(const ModelEvent&) override { ++told_; }

   private:
    int& told_;
  };
  std::unique_ptr<ModelObserver> ForModel(const ModelObserverSpec&) override {
    return std::make_unique<Model>(told);
  }
  int told = 0;
};

void ReplayOnce(ModelObserver& model) {
  const AxisElements axes[] = {{.valid = 2, .padded = 0}, {.valid = 20, .padded = 12}};
  model.On(ReplayRecord{
      .bucket = "b2_s16", .duration_ns = 1000, .rows = 2, .requests = 1, .axes = axes});
}

TEST(EngineMetricsTest, CountsStayWhenAModelGoesAndAnotherObserverIsTold) {
  Listener listener;
  EngineMetrics metrics(listener);
  const ModelObserverSpec spec = {.id = {"minilm", 3}, .axes = {"batch", "sequence"}};
  for (int i = 0; i < 2; ++i) {
    const std::unique_ptr<ModelObserver> model = metrics.ForModel(spec);
    model->On(
        CompileRecord{.reason = CompileReason::kNewShape, .phases = {.passes_ns = 500'000'000}});
    model->On(CacheLookup{false});
    model->On(CacheSize{1, 100});
    ReplayOnce(*model);
    model->On(TunedRecipe{"b2_s16"});
    model->On(CacheSize{0, 0});
  }
  EXPECT_EQ(listener.told, 12);
  const std::vector<ModelCounts> all = metrics.Counts();
  ASSERT_EQ(all.size(), 1);
  const ModelCounts& counts = all[0];
  EXPECT_EQ(counts.model, "minilm");
  EXPECT_EQ(counts.version, "3");
  EXPECT_EQ(counts.compiles_by_reason.at("new_shape"), 2);
  EXPECT_EQ(counts.compiles_by_reason.at("evicted"), 0);
  EXPECT_DOUBLE_EQ(counts.compile_seconds, 1.0);
  EXPECT_THAT(counts.replays_by_bucket, ElementsAre(Pair("b2_s16", 2)));
  EXPECT_EQ(counts.misses, 2);
  EXPECT_EQ(counts.padding.at("sequence").valid, 40);
  EXPECT_EQ(counts.padding.at("sequence").padded, 24);
  EXPECT_EQ(counts.recipes, 0);
}

TEST(EngineMetricsTest, CapturesStandBelowTheirVersion) {
  const ModelCounts counts = {.model = "minilm", .version = "1"};
  MissRecord record = {.model = {"minilm", 1}, .recipe = "00ff", .phases = {.bind_ns = 1'500'000}};
  MissRecord other = {.model = {"minilm", 2}, .recipe = "abcd"};
  const std::string text = CompilationsText(counts, {record, other});
  EXPECT_THAT(text, HasSubstr("\"recipe\": \"00ff\""));
  EXPECT_THAT(text, HasSubstr("\"name\": \"bind\",\n          \"ms\": 1.5"));
  EXPECT_THAT(text, testing::Not(HasSubstr("abcd")));
}

class MetricsFileTest : public testing::Test {
 protected:
  ~MetricsFileTest() override { std::filesystem::remove_all(folder_); }
  std::string Content() const {
    std::ifstream file(folder_ / "metrics.json");
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  const std::filesystem::path folder_ = [] {
    std::string name = testing::TempDir() + "metricsXXXXXX";
    return std::filesystem::path(mkdtemp(name.data()));
  }();
  std::vector<std::string> warnings_;
};

TEST_F(MetricsFileTest, TheEndWritesWhereItIsATrigger) {
  for (const bool at_exit : {false, true}) {
    MetricsFile file(
        folder_ / "metrics.json", {.at_exit = at_exit}, [] { return std::string("{}\n"); },
        [](const std::string&) {});
    file.Start();
    file.OnCapture();
    file.Finish();
    EXPECT_EQ(Content(), at_exit ? "{}\n" : "");
  }
}

TEST_F(MetricsFileTest, CapturesWriteWhereTheyAreATrigger) {
  MetricsFile file(
      folder_ / "metrics.json", {.at_capture = true}, [] { return std::string("{}\n"); },
      [](const std::string&) {});
  file.Start();
  file.OnCapture();
  file.Finish();
  EXPECT_EQ(Content(), "{}\n");
}

TEST_F(MetricsFileTest, FolderThatIsNotThereIsToldAtTheStartAndTheFailureOnce) {
  MetricsFile file(
      folder_ / "absent" / "metrics.json", {.at_exit = true}, [] { return std::string("{}\n"); },
      [&](const std::string& text) { warnings_.push_back(text); });
  EXPECT_FALSE(file.WriteNow().ok());
  file.Start();
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("metrics.json cannot be written: ")));
  file.Finish();
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("absent': No such file or directory"),
                                     HasSubstr("metrics.json was not written: ")));
}

}  // namespace
}  // namespace reprise
