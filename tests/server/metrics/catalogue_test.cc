#include "server/metrics/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <prometheus/histogram.h>

#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Catalogue> MakeCatalogue() {
  auto catalogue = std::make_unique<Catalogue>(BuildInfo{"1.2", "gcc", "avx2", "some cpu"});
  catalogue->ShowDetail();
  return catalogue;
}

// The content of a scrape: the names and labels of each metric.
struct ScrapedFamily {
  std::string help;
  std::string type;
  std::set<std::set<std::string>> labels;  // each kind of its series once
};

std::map<std::string, ScrapedFamily> Families(const std::string& text) {
  std::map<std::string, ScrapedFamily> families;
  std::string name;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(text, '\n', absl::SkipEmpty()))) {
    if (line[0] == '#') {
      const std::vector<std::string> words =
          absl::StrSplit(line, absl::MaxSplits(' ', 3), absl::SkipEmpty());
      name = words[2];
      if (words[1] == "HELP") {
        EXPECT_FALSE(families.contains(name)) << name << " is there twice";
        families[name].help = words.size() > 3 ? words[3] : "";
      } else {
        families[name].type = words[3];
      }
      continue;
    }
    EXPECT_TRUE(absl::StartsWith(line, name)) << line;
    std::set<std::string> labels;
    const size_t open = line.find('{');
    if (open != std::string::npos) {
      const std::string inside = line.substr(open + 1, line.rfind('}') - open - 1);
      for (absl::string_view pair : absl::StrSplit(inside, "\",")) {
        labels.insert(std::string(pair.substr(0, pair.find('='))));
      }
    }
    labels.erase("le");
    families[name].labels.insert(labels);
  }
  return families;
}

TEST(CatalogueTest, SeriesOfAMetricHaveTheSameLabelsAndAHelpText) {
  auto catalogue = MakeCatalogue();
  ModelMetrics& metrics = catalogue->Model("bert", "1");
  catalogue->Announce(metrics, {.buckets = {"b1_s16"},
                                .axes = {"batch", "sequence"},
                                .ops = {"Gelu"},
                                .eager_ops = {"NonZero"}});
  metrics.axis_certified.at("sequence");
  metrics.axis_verdict.Set("sequence", "proved", "");
  const auto families = Families(catalogue->Scrape());
  EXPECT_GT(families.size(), 50u);
  for (const auto& [name, family] : families) {
    EXPECT_NE(family.help, "") << name;
    EXPECT_NE(family.type, "") << name;
    // Without a recipe store there is nothing to say of one.
    const bool of_store =
        name.starts_with("reprise_store_") && name != "reprise_store_misses_total";
    EXPECT_EQ(family.labels.size(), of_store ? 0u : 1u) << name;
  }
  EXPECT_EQ(families.at("reprise_bucket_elements_total").labels,
            (std::set<std::set<std::string>>{{"model", "version", "axis", "kind", "bucket"}}));
  EXPECT_EQ(families.at("reprise_build_info").labels,
            (std::set<std::set<std::string>>{{"version", "compiler", "isa", "cpu"}}));
}

TEST(CatalogueTest, WhatIsAnnouncedIsThereFromTheFirstScrape) {
  auto catalogue = MakeCatalogue();
  catalogue->Announce(catalogue->Model("bert", "1"), {.buckets = {"b1_s16", "b8_s128"},
                                                      .axes = {"batch", "sequence"},
                                                      .ops = {"Gelu"},
                                                      .eager_ops = {"NonZero"}});
  const std::string text = catalogue->Scrape();
  for (const char* op : {"reprise_reference_kernels_total{model=\"bert\",op=\"Gelu\"",
                         "reprise_eager_nodes_total{model=\"bert\",op=\"NonZero\""}) {
    EXPECT_THAT(text, HasSubstr(op));
  }
  for (const char* reason : {"warmup", "first_request", "evicted", "new_shape"}) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("reprise_compiles_total{model=\"bert\",reason=\"",
                                             reason, "\",version=\"1\"} 0")));
  }
  for (const char* bucket : {"b1_s16", "b8_s128", "exact"}) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("reprise_replays_total{bucket=\"", bucket,
                                             "\",model=\"bert\",version=\"1\"} 0")));
  }
  EXPECT_THAT(text, HasSubstr("reprise_elements_total{axis=\"sequence\",kind=\"padded\","));
  EXPECT_THAT(text, HasSubstr("version=\"1.2\""));
}

TEST(CatalogueTest, BucketsWithoutEndShareASeries) {
  auto catalogue = MakeCatalogue();
  ModelMetrics& metrics = catalogue->Model("many", "1");
  catalogue->Announce(metrics, {});
  for (int i = 0; i < 5000; ++i) metrics.replays.at(absl::StrCat("a_", i)).Increment();
  metrics.replays.at("a_4").Increment();
  metrics.replays.at("exact").Increment();
  EXPECT_EQ(metrics.replays.at("a_4").Value(), 2);
  EXPECT_EQ(metrics.replays.at("exact").Value(), 1);
  EXPECT_EQ(metrics.replays.at("other").Value(), 5000 - 511);  // `exact` is one of the 512.
  int series = 0;
  metrics.replays.ForEach([&](const std::string&, const auto&) { ++series; });
  EXPECT_EQ(series, 513);
}

TEST(CatalogueTest, StoreThatCouldNotBeOpenedIsNotUsable) {
  auto catalogue = MakeCatalogue();
  EXPECT_THAT(catalogue->Scrape(), ::testing::Not(HasSubstr("\nreprise_store_usable ")));
  catalogue->SetStore(nullptr);
  EXPECT_THAT(catalogue->Scrape(), HasSubstr("\nreprise_store_usable 0\n"));
}

TEST(CatalogueTest, StoreTellsWhatItHolds) {
  const TempFolder folder;
  auto store = RecipeStore::Open({.folder = folder.File("store"), .max_bytes = 5000});
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE((*store)->Write(RecordName{}, 1, "payload").ok());
  auto catalogue = MakeCatalogue();
  catalogue->SetStore(store->get());
  const std::string text = catalogue->Scrape();
  EXPECT_THAT(text, HasSubstr("\nreprise_store_usable 1\n"));
  EXPECT_THAT(text, HasSubstr("\nreprise_store_entries 1\n"));
  EXPECT_THAT(text, HasSubstr("\nreprise_store_max_bytes 5000\n"));
  EXPECT_THAT(text, HasSubstr("\nreprise_store_writes_total 1\n"));
}

TEST(CatalogueTest, AModelAddedTwiceKeepsItsCounters) {
  auto catalogue = MakeCatalogue();
  catalogue->Model("bert", "1").requests.at("OK").Increment();
  catalogue->Model("bert", "1").requests.at("OK").Increment();
  EXPECT_THAT(catalogue->Scrape(),
              HasSubstr("reprise_requests_total{code=\"OK\",model=\"bert\",version=\"1\"} 2"));
}

TEST(CatalogueTest, HistogramCountsWhatItObserved) {
  auto catalogue = MakeCatalogue();
  catalogue->Model("bert", "1").request_duration->Observe(0.003);
  const std::string text = catalogue->Scrape();
  const std::string labels = "{model=\"bert\",version=\"1\"";
  EXPECT_THAT(text, HasSubstr("reprise_request_duration_seconds_count" + labels + "} 1"));
  EXPECT_THAT(text,
              HasSubstr("reprise_request_duration_seconds_bucket" + labels + ",le=\"0.0025\"} 0"));
  EXPECT_THAT(text,
              HasSubstr("reprise_request_duration_seconds_bucket" + labels + ",le=\"0.005\"} 1"));
}

TEST(CatalogueTest, ProcessMetricsAreThoseOfThisProcess) {
  auto catalogue = MakeCatalogue();
  const std::string text = catalogue->Scrape();
  auto value = [&text](const std::string& name) {
    const size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1.0 : std::strtod(&text[at + name.size() + 2], nullptr);
  };
  EXPECT_GT(value("process_resident_memory_bytes"), 1 << 20);
  EXPECT_GE(value("process_threads"), 1);
  EXPECT_GE(value("process_open_fds"), 3);
  EXPECT_GT(value("process_start_time_seconds"), 1.5e9);
}

}  // namespace
}  // namespace reprise
