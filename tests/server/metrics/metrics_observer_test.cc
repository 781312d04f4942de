#include "server/metrics/metrics_observer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class MetricsObserverTest : public ::testing::Test {
 protected:
  void ExpectLine(const std::string& line) {
    EXPECT_THAT(catalogue.Scrape(), HasSubstr(absl::StrCat("\n", line, "\n")));
  }
  MetricsObserverTest() { catalogue.ShowDetail(); }

  Catalogue catalogue{BuildInfo{}};
  MetricsObserver observer{catalogue};
  std::unique_ptr<ModelObserver> model =
      observer.ForModel({.id = {.name = "bert", .version = 2},
                         .axes = {"batch", "sequence"},
                         .padding = {AxisPadding::kProved, AxisPadding::kRefused},
                         .mixing = {"", "node 'mean' averages"},
                         .buckets = {"b1_s16", "b2_s32", "exact"}});
};

TEST_F(MetricsObserverTest, BucketsOfAModelAreThereBeforeItsFirstReplay) {
  ExpectLine("reprise_replays_total{bucket=\"b2_s32\",model=\"bert\",version=\"2\"} 0");
  ExpectLine("reprise_replays_total{bucket=\"exact\",model=\"bert\",version=\"2\"} 0");
}

TEST_F(MetricsObserverTest, CertificatesAreThereUnlessPaddingIsSwitchedOff) {
  ExpectLine("reprise_axis_certified{axis=\"batch\",model=\"bert\",version=\"2\"} 1");
  ExpectLine("reprise_axis_certified{axis=\"sequence\",model=\"bert\",version=\"2\"} 0");
  observer.ForModel({.id = {.name = "off"},
                     .axes = {"sequence"},
                     .padding = {AxisPadding::kOff},
                     .mixing = {""},
                     .buckets = {"exact"}});
  EXPECT_THAT(catalogue.Scrape(),
              Not(HasSubstr("reprise_axis_certified{axis=\"sequence\",model=\"off\"")));
}

TEST_F(MetricsObserverTest, ReplayCountsUnderItsBucketAndItsAxes) {
  const AxisElements axes[] = {{.valid = 2, .padded = 0}, {.valid = 40, .padded = 24}};
  model->On(ReplayRecord{
      .bucket = "b2_s32", .duration_ns = 2'000'000, .rows = 2, .requests = 2, .axes = axes});
  ExpectLine("reprise_replays_total{bucket=\"b2_s32\",model=\"bert\",version=\"2\"} 1");
  ExpectLine("reprise_replays_total{bucket=\"b1_s16\",model=\"bert\",version=\"2\"} 0");
  ExpectLine(
      "reprise_elements_total{axis=\"sequence\",kind=\"padded\",model=\"bert\",version=\"2\"} 24");
  ExpectLine(
      "reprise_elements_total{axis=\"sequence\",kind=\"valid\",model=\"bert\",version=\"2\"} 40");
  ExpectLine("reprise_batch_size_sum{model=\"bert\",version=\"2\"} 2");
  ExpectLine(
      "reprise_replay_duration_seconds_count{bucket=\"b2_s32\",model=\"bert\",version=\"2\"} 1");
}

TEST_F(MetricsObserverTest, PaddingIsCountedByAxisAndBucketWithTheTimeItTook) {
  const AxisElements axes[] = {{.valid = 2}, {.valid = 40, .padded = 24, .wasted_ns = 750'000'000}};
  model->On(ReplayRecord{.bucket = "b2_s32", .rows = 2, .saved_capture = true, .axes = axes});
  const std::string rest = "model=\"bert\",version=\"2\"}";
  ExpectLine(
      absl::StrCat("reprise_bucket_elements_total{axis=\"sequence\",bucket=\"b2_s32\",kind="
                   "\"padded\",",
                   rest, " 24"));
  ExpectLine(absl::StrCat("reprise_wasted_seconds_total{axis=\"sequence\",bucket=\"b2_s32\",", rest,
                          " 0.75"));
  ExpectLine(absl::StrCat("reprise_captures_saved_total{", rest, " 1"));
}

TEST_F(MetricsObserverTest, BucketsInForceAreAnnouncedWithWhatTheyAreWorth) {
  BucketReport report = {.actual_waste = 0.25, .suggestion = BucketAdvice{.saving = 0.5}};
  report.state.expected_waste = 0.125;
  report.state.drift = 0.75;
  report.state.changes = 2;
  model->On(BucketsInForce{report, {"b1_s24"}});
  model->On(BucketsInForce{report, {"b1_s24"}});
  const std::string rest = "model=\"bert\",version=\"2\"}";
  ExpectLine(absl::StrCat("reprise_replays_total{bucket=\"b1_s24\",", rest, " 0"));
  ExpectLine(absl::StrCat("reprise_bucket_waste_ratio{kind=\"actual\",", rest, " 0.25"));
  ExpectLine(absl::StrCat("reprise_bucket_waste_ratio{kind=\"expected\",", rest, " 0.125"));
  ExpectLine(absl::StrCat("reprise_bucket_drift{", rest, " 0.75"));
  ExpectLine(absl::StrCat("reprise_bucket_changes_total{", rest, " 2"));
  ExpectLine(absl::StrCat("reprise_bucket_suggested_saving_ratio{", rest, " 0.5"));
}

TEST_F(MetricsObserverTest, CompileCountsUnderItsReasonWithItsTime) {
  model->On(CompileRecord{.reason = CompileReason::kEvicted, .phases = {.bind_ns = 500'000'000}});
  ExpectLine("reprise_compiles_total{model=\"bert\",reason=\"evicted\",version=\"2\"} 1");
  ExpectLine("reprise_compile_duration_seconds_sum{model=\"bert\",version=\"2\"} 0.5");
}

TEST_F(MetricsObserverTest, CacheEventsReachTheirSeries) {
  model->On(CacheLookup{true});
  model->On(CacheLookup{false});
  model->On(CacheLookup{false});
  model->On(CacheSize{3, 4096});
  model->On(RecipeEviction{EvictionReason::kExactLimit});
  ExpectLine(
      "reprise_cache_requests_total{model=\"bert\",outcome=\"hit\",tier=\"memory\",version=\"2\"} "
      "1");
  ExpectLine(
      "reprise_cache_requests_total{model=\"bert\",outcome=\"miss\",tier=\"memory\",version="
      "\"2\"} 2");
  ExpectLine("reprise_cache_recipes{model=\"bert\",version=\"2\"} 3");
  ExpectLine("reprise_cache_bytes{model=\"bert\",version=\"2\"} 4096");
  ExpectLine(
      "reprise_cache_evictions_total{model=\"bert\",reason=\"exact_limit\",version=\"2\"} 1");
}

TEST_F(MetricsObserverTest, LengthsProbesAndReferenceKernelsAreCounted) {
  const int64_t sizes[] = {1, 17};
  model->On(RequestLengths{sizes});
  model->On(ReferenceLaunch{"Erf", "node_7"});
  ExpectLine(
      "reprise_request_length_bucket{axis=\"sequence\",model=\"bert\",version=\"2\",le=\"16\"} 0");
  ExpectLine(
      "reprise_request_length_bucket{axis=\"sequence\",model=\"bert\",version=\"2\",le=\"32\"} 1");
  ExpectLine("reprise_reference_kernels_total{model=\"bert\",op=\"Erf\",version=\"2\"} 1");
  ExpectLine("reprise_withheld_answers_total{model=\"bert\",version=\"2\"} 0");
  model->On(WithheldAnswer{});
  ExpectLine("reprise_withheld_answers_total{model=\"bert\",version=\"2\"} 1");
}

TEST_F(MetricsObserverTest, NodesAtCutsAndSectionsBehindThemAreCounted) {
  model->On(EagerNodeRun{"NonZero", 500'000'000});
  model->On(EagerNodeRun{"NonZero", 500'000'000});
  model->On(SectionRun{2'000'000'000});
  ExpectLine("reprise_eager_nodes_total{model=\"bert\",op=\"NonZero\",version=\"2\"} 2");
  ExpectLine("reprise_eager_seconds_total{model=\"bert\",op=\"NonZero\",version=\"2\"} 1");
  ExpectLine("reprise_section_runs_total{model=\"bert\",version=\"2\"} 1");
  ExpectLine("reprise_section_seconds_total{model=\"bert\",version=\"2\"} 2");
}

TEST_F(MetricsObserverTest, AxisThatLosesItsCertificateIsSeen) {
  const std::string series = "reprise_axis_certified{axis=\"batch\",model=\"bert\",version=\"2\"} ";
  ExpectLine(series + "1");
  const auto verdict = [](const char* name) {
    return absl::StrCat("reprise_axis_verdict{axis=\"batch\",mixing=\"\",model=\"bert\",verdict=\"",
                        name, "\",version=\"2\"} 1");
  };
  ExpectLine(verdict("proved"));
  model->On(Quarantine{0});
  ExpectLine(series + "0");
  ExpectLine(verdict("refused"));
  EXPECT_THAT(catalogue.Scrape(), Not(HasSubstr(verdict("proved"))));
  ExpectLine(
      "reprise_axis_verdict{axis=\"sequence\",mixing=\"node 'mean' averages\",model=\"bert\","
      "verdict=\"refused\",version=\"2\"} 1");
}

}  // namespace
}  // namespace reprise
