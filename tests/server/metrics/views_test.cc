#include "server/metrics/views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>

#include "absl/strings/str_cat.h"
#include "server/metrics/catalogue.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A catalogue with one model that has served an encoder's requests.
class ViewsTest : public ::testing::Test {
 protected:
  ViewsTest() : metrics_(catalogue_.Model("bert", "1")) {
    catalogue_.Announce(metrics_, {.buckets = {"t16", "t32", "t64"}, .axes = {"sequence"}});
  }
  // Returns how many lines of a scrape have the labels of the model.
  int Lines(const std::string& name) {
    const std::string text = catalogue_.Scrape();
    int lines = 0;
    for (size_t at = 0;
         (at = text.find(absl::StrCat("model=\"", name, "\""), at)) != std::string::npos; ++at) {
      ++lines;
    }
    return lines;
  }

  Catalogue catalogue_{BuildInfo{}};
  ModelMetrics& metrics_;
};

TEST_F(ViewsTest, BucketsAreOneSeriesWithTheirSum) {
  metrics_.replays.at("t16").Increment(2);
  metrics_.replays.at("t64").Increment(3);
  metrics_.replay_duration.at("t16").Observe(0.0002);
  metrics_.replay_duration.at("t64").Observe(0.02);
  const std::string text = catalogue_.Scrape();
  const std::string labels = "{model=\"bert\",version=\"1\"";
  EXPECT_THAT(text, HasSubstr(absl::StrCat("reprise_replays_total", labels, "} 5\n")));
  const std::string bucket = absl::StrCat("reprise_replay_duration_seconds_bucket", labels, ",le=");
  EXPECT_THAT(text, HasSubstr(bucket + "\"0.001\"} 1\n"));
  EXPECT_THAT(text, HasSubstr(bucket + "\"0.03\"} 2\n"));
  EXPECT_THAT(text, HasSubstr(bucket + "\"+Inf\"} 2\n"));
  EXPECT_THAT(text,
              HasSubstr(absl::StrCat("reprise_replay_duration_seconds_sum", labels, "} 0.0202\n")));
  EXPECT_THAT(text, Not(HasSubstr("bucket=\"t16\"")));
}

TEST_F(ViewsTest, SeriesOfAnAxisStayApart) {
  const auto batch = catalogue_.MetricsOf(metrics_, "batch", 2);
  const auto sequence = catalogue_.MetricsOf(metrics_, "sequence", 2);
  batch->wasted_seconds.at("t16").Increment(1);
  sequence->wasted_seconds.at("t16").Increment(2);
  sequence->wasted_seconds.at("t32").Increment(4);
  const std::string text = catalogue_.Scrape();
  EXPECT_THAT(
      text,
      HasSubstr("reprise_wasted_seconds_total{axis=\"batch\",model=\"bert\",version=\"1\"} 1\n"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "reprise_wasted_seconds_total{axis=\"sequence\",model=\"bert\",version=\"1\"} 6\n"));
  EXPECT_THAT(text, Not(HasSubstr("reprise_bucket_elements_total")));
}

TEST_F(ViewsTest, FamiliesOfAKindOfModelAppearWithItsFirstUse) {
  catalogue_.Model("gpt", "1").pages.at("free").Set(7);
  metrics_.texts->Increment();
  const std::string text = catalogue_.Scrape();
  // All of the kind, those that are still 0 among them, and for no other model.
  EXPECT_THAT(
      text, HasSubstr("reprise_tokens_total{kind=\"generated\",model=\"gpt\",version=\"1\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("reprise_pages{model=\"bert\"")));
  EXPECT_THAT(text, HasSubstr("reprise_text_truncations_total{model=\"bert\",version=\"1\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("reprise_texts_total{model=\"gpt\"")));
  EXPECT_THAT(text, Not(HasSubstr("reprise_live_sequences")));
}

TEST_F(ViewsTest, RequestsForNoModelHaveTheSeriesThatCountedThem) {
  EXPECT_EQ(Lines(""), 0);
  catalogue_.Unknown().requests.at("NOT_FOUND").Increment();
  EXPECT_EQ(Lines(""), 1);
}

TEST_F(ViewsTest, AModelHasFewSeriesHoweverManyBucketsThereAre) {
  metrics_.texts->Increment();
  const int few = Lines("bert");
  EXPECT_LT(few, 150);
  for (int i = 0; i < 100; ++i) metrics_.replays.at(absl::StrCat("t", i)).Increment();
  EXPECT_EQ(Lines("bert"), few);
  metrics_.pages.at("free").Set(7);
  EXPECT_LT(Lines("bert"), 220);
}

TEST_F(ViewsTest, HistogramsHaveSevenBoundsAndTenInDetail) {
  const auto most = [this] {
    size_t most = 0;
    for (const prometheus::MetricFamily& family : catalogue_.Collect()) {
      for (const prometheus::ClientMetric& metric : family.metric) {
        most = std::max(most, metric.histogram.bucket.size());
      }
    }
    return most - 1;  // one is infinity
  };
  metrics_.request_duration->Observe(0.02);
  metrics_.request_duration->Observe(11);
  EXPECT_EQ(most(), 7u);
  const std::string text = catalogue_.Scrape();
  const std::string bucket =
      "reprise_request_duration_seconds_bucket{model=\"bert\",version=\"1\",le=";
  for (const char* line :
       {"\"0.00025\"} 0\n", "\"0.005\"} 0\n", "\"0.025\"} 1\n", "\"10\"} 1\n", "\"+Inf\"} 2\n"}) {
    EXPECT_THAT(text, HasSubstr(bucket + line));
  }
  catalogue_.ShowDetail();
  EXPECT_EQ(most(), 10u);
}

}  // namespace
}  // namespace reprise
