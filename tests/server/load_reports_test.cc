#include "server/load_reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "runtime/base/clock.h"

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// Sums the calls, and says so as the rate of requests.
struct Counted {
  FakeClock clock;
  int measured = 0;

  LoadReports Make(LoadReportMode mode) {
    return LoadReports(mode, clock, [this] {
      LoadReports::Report report;
      report.set_rps_fractional(++measured);
      report.set_application_utilization(0.5);
      (*report.mutable_named_metrics())["queue_tokens"] = 12;
      (*report.mutable_named_metrics())["misses"] = 0;
      return report;
    });
  }
};

Http2Fields Trailers(LoadReports& reports, Http2Fields metadata = {},
                     std::string path = "/inference.GRPCInferenceService/ModelInfer") {
  Http2Fields trailers;
  reports.AddTo(CallHead{.path = std::move(path), .fields = std::move(metadata)}, trailers);
  return trailers;
}

HttpFields Headers(LoadReports& reports, HttpFields asked = {}, std::string method = "POST") {
  HttpFields fields;
  HttpRequest request;
  request.method = std::move(method);
  request.fields = std::move(asked);
  reports.AddTo(request, fields);
  return fields;
}

const std::pair<std::string, std::string> kText = {"endpoint-load-metrics-format", "TEXT"};

TEST(LoadReportsTest, ModeSaysWhichAnswersHaveOne) {
  Counted counted;
  for (const LoadReportMode mode : {LoadReportMode::kOff, LoadReportMode::kOob}) {
    LoadReports reports = counted.Make(mode);
    EXPECT_THAT(Trailers(reports, {kText}), IsEmpty());
    EXPECT_THAT(Headers(reports, {kText}), IsEmpty());
    EXPECT_EQ(reports.has_stream(), mode == LoadReportMode::kOob);
  }
  LoadReports on_request = counted.Make(LoadReportMode::kRequest);
  EXPECT_THAT(Trailers(on_request), IsEmpty());
  EXPECT_THAT(Headers(on_request), IsEmpty());
  EXPECT_EQ(Trailers(on_request, {kText}).size(), 1);
  EXPECT_EQ(Headers(on_request, {kText}).size(), 1);
  LoadReports always = counted.Make(LoadReportMode::kAlways);
  EXPECT_EQ(Trailers(always).size(), 1);
  EXPECT_EQ(Headers(always).size(), 1);
}

TEST(LoadReportsTest, OtherCallsAndRequestsHaveNone) {
  Counted counted;
  LoadReports reports = counted.Make(LoadReportMode::kAlways);
  EXPECT_THAT(Trailers(reports, {}, "/grpc.health.v1.Health/Check"), IsEmpty());
  EXPECT_THAT(Headers(reports, {}, "GET"), IsEmpty());
}

TEST(LoadReportsTest, FormsSayTheSame) {
  Counted counted;
  LoadReports reports = counted.Make(LoadReportMode::kAlways);
  EXPECT_THAT(
      Headers(reports),
      ElementsAre(Pair("endpoint-load-metrics",
                       "TEXT cpu_utilization=0, mem_utilization=0, rps_fractional=1, eps=0, "
                       "application_utilization=0.5, "
                       "named_metrics.misses=0, named_metrics.queue_tokens=12")));
  EXPECT_THAT(Headers(reports, {{"endpoint-load-metrics-format", "json"}}),
              ElementsAre(Pair("endpoint-load-metrics",
                               R"(JSON {"cpu_utilization":0.0,"mem_utilization":0.0,)"
                               R"("rps_fractional":1.0,"eps":0.0,"application_utilization":0.5,)"
                               R"("named_metrics":{"misses":0.0,"queue_tokens":12.0}})")));
  const Http2Fields trailers = Trailers(reports);
  EXPECT_EQ(Headers(reports, {{"endpoint-load-metrics-format", "BIN"}}), trailers);
  ASSERT_EQ(trailers.size(), 1);
  EXPECT_EQ(trailers[0].first, "endpoint-load-metrics-bin");
  std::string bytes;
  ASSERT_TRUE(absl::Base64Unescape(trailers[0].second, &bytes));
  LoadReports::Report report;
  ASSERT_TRUE(report.ParseFromString(bytes));
  EXPECT_EQ(report.rps_fractional(), 1);
  EXPECT_EQ(report.named_metrics().at("queue_tokens"), 12);
}

TEST(LoadReportsTest, AnswersShareAMeasurementForAWhile) {
  Counted counted;
  LoadReports reports = counted.Make(LoadReportMode::kAlways);
  for (int i = 0; i < 100; ++i) Headers(reports);
  EXPECT_EQ(counted.measured, 1);
  counted.clock.AdvanceNs(std::chrono::nanoseconds(LoadReports::kFresh).count());
  EXPECT_EQ(reports.Now()->rps_fractional(), 2);
}

}  // namespace
}  // namespace reprise
