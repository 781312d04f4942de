#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "proto/otlp.pb.h"
#include "server/tracing/span_exporter.h"
#include "server/tracing/trace_context.h"
#include "server/tracing/tracer.h"

namespace reprise {
namespace {

using ::testing::SizeIs;

constexpr char kParent[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

struct Kept final : TraceSink {
  void Take(EndedTrace trace) noexcept override { traces.push_back(std::move(trace)); }
  std::vector<EndedTrace> traces;
};

// Collects bodies, and fails as it is told to.
struct Collector {
  SpanExporterOptions Options() {
    return {.send =
                [this](const std::string& body, const std::function<bool()>&) {
                  ++calls;
                  absl::Status status;
                  {
                    std::unique_lock lock(mutex);
                    opened.wait(lock, [&] { return open; });
                    status = answer;
                    if (status.ok()) bodies.push_back(body);
                  }
                  return status;
                },
            .resource = {{"service.name", std::string("reprise")}},
            .version = "1",
            .on_spans =
                [this](int64_t more, int64_t less, int64_t lost) {
                  exported += more;
                  dropped += less;
                  failed += lost;
                },
            .delay = std::chrono::milliseconds(1)};
  }
  void Open(const absl::Status& with) {
    std::lock_guard lock(mutex);
    open = true;
    answer = with;
    opened.notify_all();
  }

  std::atomic<int64_t> calls{0}, exported{0}, dropped{0}, failed{0};
  std::mutex mutex;
  std::condition_variable opened;
  bool open = false;
  absl::Status answer;
  std::vector<std::string> bodies;
};

EndedTrace TraceOf(size_t spans) {
  EndedTrace trace = {.context = *ReadTraceContext(kParent, "")};
  for (size_t i = 0; i < spans; ++i) trace.spans.push_back({.name = "queue", .id = i + 1});
  return trace;
}

TEST(TraceContextTest, AHeaderIsReadAndWritten) {
  const auto context = ReadTraceContext(kParent, "vendor=1");
  ASSERT_TRUE(context.has_value());
  EXPECT_EQ(TraceIdText(context->trace), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(context->span, 0xb7ad6b7169203331u);
  EXPECT_TRUE(context->sampled);
  EXPECT_EQ(context->state, "vendor=1");
  EXPECT_EQ(TraceParentText(*context, context->span), kParent);
  EXPECT_FALSE(
      ReadTraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", "")->sampled);
  // A version of the future, with more fields at the end.
  EXPECT_TRUE(ReadTraceContext("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", "")
                  .has_value());
}

TEST(TraceContextTest, WhatIsNoHeaderBeginsAnotherTrace) {
  for (const char* text : {"", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
                           "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                           "00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                           "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                           "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                           "00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01",
                           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
                           "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01more"}) {
    EXPECT_FALSE(ReadTraceContext(text, "").has_value()) << text;
  }
  EXPECT_EQ(ReadTraceContext(kParent, std::string(600, 'a'))->state, "");
  EXPECT_EQ(ReadTraceContext(kParent, "a\nb")->state, "");
}

TEST(TracerTest, TheCallerDecidesAndElseTheShare) {
  const auto sink = std::make_shared<Kept>();
  Tracer tracer(sink, {.share = 0});
  const auto begin = [&](const char* parent) {
    return tracer.Begin(parent, "", [] { return std::string("POST /"); });
  };
  EXPECT_EQ(begin(""), nullptr);
  EXPECT_NE(begin(kParent), nullptr);
  tracer.Set({.share = 1});
  EXPECT_NE(begin(""), nullptr);
  EXPECT_EQ(begin("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"), nullptr);
  tracer.Set({.share = 0.5});
  int traced = 0;
  for (int i = 0; i < 1000; ++i) traced += begin("") != nullptr ? 1 : 0;
  EXPECT_GT(traced, 400);
  EXPECT_LT(traced, 600);
  tracer.Set({.share = 1, .count = 2});
  EXPECT_NE(begin(""), nullptr);
  EXPECT_NE(begin(kParent), nullptr);
  EXPECT_EQ(begin(kParent), nullptr);
  tracer.Set({.on = false});
  EXPECT_EQ(begin(kParent), nullptr);
}

TEST(RequestTraceTest, SpansEndWithTheRequestAndLateOnesGoAlone) {
  const auto sink = std::make_shared<Kept>();
  const auto trace =
      std::make_shared<RequestTrace>(sink, *ReadTraceContext(kParent, ""), "POST /", 5);
  const uint64_t batch = trace->Add({.name = "batch", .start_ns = 6, .end_ns = 9});
  trace->Add({.name = "replay", .parent = batch, .start_ns = 7, .end_ns = 8});
  trace->AddAttribute({"reprise.rows", int64_t{3}});
  trace->End("");
  trace->End("twice");
  ASSERT_THAT(sink->traces, SizeIs(1));
  const std::vector<TraceSpan>& spans = sink->traces[0].spans;
  ASSERT_THAT(spans, SizeIs(3));
  EXPECT_TRUE(spans[0].is_request);
  EXPECT_EQ(spans[0].parent, 0xb7ad6b7169203331u);
  EXPECT_EQ(spans[0].error, "");
  EXPECT_EQ(spans[1].parent, spans[0].id);
  EXPECT_EQ(spans[2].parent, spans[1].id);
  trace->Add({.name = "late"});
  ASSERT_THAT(sink->traces, SizeIs(2));
  EXPECT_EQ(sink->traces[1].spans[0].parent, spans[0].id);
}

TEST(RequestTraceTest, ARequestOfManyTextsHasABoundedNumberOfSpans) {
  const auto sink = std::make_shared<Kept>();
  {
    RequestTrace trace(sink, *ReadTraceContext(kParent, ""), "POST /", 5);
    for (int i = 0; i < 10'000; ++i) trace.Add({.name = "tokenizer"});
  }
  ASSERT_THAT(sink->traces[0].spans, SizeIs(RequestTrace::kMostSpans));
  EXPECT_EQ(sink->traces[0].spans[0].error, "the client has left");
  EXPECT_EQ(std::get<int64_t>(sink->traces[0].spans[0].attributes.back().value), 10'000 - 127);
}

TEST(SpanExporterTest, SpansArriveAsOtlp) {
  Collector collector;
  collector.Open(absl::OkStatus());
  SpanExporter exporter(collector.Options());
  EndedTrace trace = {.context = *ReadTraceContext(kParent, "a=b"), .unix_offset_ns = 1000};
  trace.spans.push_back({.name = "POST /",
                         .id = 0x0102030405060708,
                         .parent = trace.context.span,
                         .start_ns = 5,
                         .end_ns = 7,
                         .attributes = {{"reprise.rows", int64_t{3}}},
                         .error = "no model",
                         .is_request = true});
  exporter.Take(std::move(trace));
  exporter.Finish(std::chrono::seconds(10));
  ASSERT_THAT(collector.bodies, SizeIs(1));
  otlp::ExportTraceServiceRequest request;
  ASSERT_TRUE(request.ParseFromString(collector.bodies[0]));
  const otlp::Span& span = request.resource_spans(0).scope_spans(0).spans(0);
  EXPECT_EQ(span.span_id(), "\1\2\3\4\5\6\7\10");
  EXPECT_EQ(span.trace_id().substr(0, 2), "\x0a\xf7");
  EXPECT_EQ(span.parent_span_id().substr(0, 2), "\xb7\xad");
  EXPECT_EQ(span.start_time_unix_nano(), 1005u);
  EXPECT_EQ(span.end_time_unix_nano(), 1007u);
  EXPECT_EQ(span.trace_state(), "a=b");
  EXPECT_EQ(span.kind(), otlp::Span::SPAN_KIND_SERVER);
  EXPECT_EQ(span.status().code(), otlp::Status::STATUS_CODE_ERROR);
  EXPECT_EQ(span.attributes(0).value().int_value(), 3);
  EXPECT_EQ(collector.exported, 1);
}

TEST(SpanExporterTest, ASlowCollectorCostsSpansAndNoMemory) {
  Collector collector;
  SpanExporter exporter(collector.Options());
  constexpr int64_t kTraces = 400;
  for (int64_t i = 0; i < kTraces; ++i) exporter.Take(TraceOf(100));
  EXPECT_GE(collector.dropped, kTraces * 100 - static_cast<int64_t>(SpanExporter::kMostWaiting) -
                                   2 * static_cast<int64_t>(SpanExporter::kBatch));
  EXPECT_GT(collector.dropped, 0);
  collector.Open(absl::OkStatus());
  exporter.Finish(std::chrono::seconds(10));
  EXPECT_EQ(collector.exported + collector.dropped, kTraces * 100);
}

TEST(SpanExporterTest, RefusedSpansAreCountedAndNotSentAgain) {
  Collector collector;
  collector.Open(absl::InvalidArgumentError("no"));
  SpanExporter exporter(collector.Options());
  exporter.Take(TraceOf(3));
  exporter.Finish(std::chrono::seconds(10));
  EXPECT_EQ(collector.calls, 1);
  EXPECT_EQ(collector.failed, 3);
  EXPECT_EQ(collector.exported, 0);
}

}  // namespace
}  // namespace reprise
