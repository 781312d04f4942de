// THE table of metrics: a metric is one row here, a member that is declared with its name and its
// help text, and is counted by that member's name. Metrics of the operating system and of the
// recipe store are in tables of their own (process_metrics.cc, store_metrics.cc).
//
//   Series<Counter> tunes{scope, {"reprise_tunes_total", "Recipes replaced by ..."}};
//
//   metrics.tunes->Increment();
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/metrics/series.h"

namespace reprise {

// Closed sets of label values.
std::vector<absl::string_view> CompileReasons();
std::vector<absl::string_view> EvictionReasons();
std::vector<absl::string_view> StoreMisses();
// Returns how a request ended: the values of `code` of reprise_requests_total.
std::vector<absl::string_view> RequestCodes();
// Returns the values of `reason` of nv_inference_request_failure.
std::vector<absl::string_view> FailureReasons();

// Bounds: ten at the most, since each is a series for each model.
// Requests and queues.
inline const std::vector<double> kSeconds = {2.5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2,
                                             2.5e-2, 0.1,  0.5,    2.5,  10};
inline const std::vector<double> kReplaySeconds = {1e-4, 3e-4, 1e-3, 3e-3, 1e-2,
                                                   3e-2, 0.1,  0.3,  1,    10};
inline const std::vector<double> kCaptureSeconds = {1e-3, 1e-2, 0.1, 1, 10};
inline const std::vector<double> kTokenizerSeconds = {1e-5, 1e-4, 1e-3, 1e-2, 0.1};
inline const std::vector<double> kRows = {1, 2, 4, 8, 16, 32, 64};
inline const std::vector<double> kLengths = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 4096};

// Texts that several rows share: each row has values of its own for the other labels.
inline const MetricText kCacheRequests = {"reprise_cache_requests_total",
                                          "Lookups: recipes in memory, certificates and recipes in "
                                          "the store (tier), and the outcome (hit, miss)"};
inline const MetricText kElements = {
    "reprise_elements_total",
    "Elements computed along an axis: valid ones were sent by a client, padded ones by no one"};
inline const MetricText kBucketElements = {
    "reprise_bucket_elements_total",
    "The same by bucket: elements that its replays computed along an axis", ScrapeView::kDetail};
inline const MetricText kBucketWaste = {
    "reprise_bucket_waste_ratio",
    "Share of padding in the computed elements with the buckets in force: expected when they were "
    "chosen, and actual"};
inline const MetricText kEagerCacheRequests = {"reprise_eager_cache_requests_total",
                                               "Lookups of weights prepared by eager runs, hits "
                                               "and misses: models and sections that run without a "
                                               "recipe, nodes at cuts",
                                               ScrapeView::kCuts};
inline const MetricText kSpans = {
    "reprise_spans_total",
    "Spans of traced requests: sent (exported), without room while the collector is slow or away "
    "(dropped), or refused by it and given up (failed)"};
inline const MetricText kRefusedCalls = {
    "reprise_refused_calls_total",
    "Calls over gRPC and HTTP that the gate refused: without a key that is known, or without the "
    "right (reason)"};
inline const MetricText kMemory = {
    "reprise_memory_bytes",
    "Memory of all models together: arenas of streams, parameters as stored and as kernels want "
    "them; requests and answers in flight; memory that values of requests decide, in arenas and "
    "outside (kind)"};
inline const MetricText kConnections = {"reprise_connections",
                                        "Connections that clients hold, by face (grpc, http)"};

// The rows of one version of a model. It lives as long as its catalogue, also after its model is
// unloaded.
struct ModelMetrics {
  using Counter = prometheus::Counter;
  using Gauge = prometheus::Gauge;
  using Histogram = prometheus::Histogram;

  explicit ModelMetrics(MetricScope of);
  ~ModelMetrics();

  const MetricScope scope;  // first: the rows are made with it

  // Recipes: captured, tuned, kept.
  SeriesBy<Counter> compiles{
      scope,
      {"reprise_compiles_total",
       "Recipes captured because they were absent, one for each key, by the reason of the miss"},
      "reason",
      CompileReasons()};
  Series<Histogram> compile_duration{
      scope,
      {"reprise_compile_duration_seconds",
       "Time of a capture, from the miss to the recipe in the cache", kCaptureSeconds}};
  Series<Counter> tunes{
      scope,
      {"reprise_tunes_total", "Recipes replaced by one whose kernels were chosen by timing",
       ScrapeView::kDetail}};
  SeriesBy<Counter> replays{
      scope,
      {"reprise_replays_total", "Batches of requests executed, by bucket", ScrapeView::kFolded},
      "bucket",
      Announced::kBuckets};
  SeriesBy<Histogram> replay_duration{
      scope,
      {"reprise_replay_duration_seconds", "Time of a replay, from first to last launch",
       kReplaySeconds, ScrapeView::kFolded},
      "bucket",
      Announced::kBuckets};
  Series<Counter> memory_hits{scope.With({{"tier", "memory"}, {"outcome", "hit"}}), kCacheRequests};
  Series<Counter> memory_misses{scope.With({{"tier", "memory"}, {"outcome", "miss"}}),
                                kCacheRequests};
  Series<Counter> store_hits{scope.With({{"tier", "store"}, {"outcome", "hit"}}), kCacheRequests};
  Series<Counter> store_misses{scope.With({{"tier", "store"}, {"outcome", "miss"}}),
                               kCacheRequests};
  SeriesBy<Counter> store_misses_by{
      scope,
      {"reprise_store_misses_total",
       "Certificates and recipes that the recipe store did not give, by reason",
       ScrapeView::kFolded},
      "reason",
      StoreMisses()};
  Series<Gauge> cache_recipes{scope, {"reprise_cache_recipes", "Recipes in memory"}};
  Series<Gauge> cache_bytes{scope, {"reprise_cache_bytes", "Bytes of the recipes in memory"}};
  SeriesBy<Counter> evictions{scope,
                              {"reprise_cache_evictions_total",
                               "Recipes that left the memory, by reason", ScrapeView::kFolded},
                              "reason",
                              EvictionReasons()};
  SeriesBy<Counter> thrash{
      scope,
      {"reprise_cache_thrash_total",
       "Recipes made again within a minute of their eviction, by bucket", ScrapeView::kFolded},
      "bucket",
      Announced::kBuckets};

  // Padding, and buckets that follow the traffic.
  SeriesBy<Counter> valid_elements{scope.With({{"kind", "valid"}}), kElements, "axis",
                                   Announced::kAxes};
  SeriesBy<Counter> padded_elements{scope.With({{"kind", "padded"}}), kElements, "axis",
                                    Announced::kAxes};
  Series<Gauge> bucket_waste_expected{scope.With({{"kind", "expected"}}), kBucketWaste};
  Series<Gauge> bucket_waste_actual{scope.With({{"kind", "actual"}}), kBucketWaste};
  Series<Gauge> bucket_drift{scope,
                             {"reprise_bucket_drift",
                              "Distance (Kolmogorov-Smirnov, 0 to 1) of the last requests' sizes "
                              "to those that the buckets in force were chosen for"}};
  Series<Counter> bucket_changes{
      scope, {"reprise_bucket_changes_total", "Times that other buckets were put in force"}};
  Series<Gauge> bucket_saving{scope,
                              {"reprise_bucket_suggested_saving_ratio",
                               "Share of the computing time that other buckets would save, where a "
                               "change pays; 0: none does"}};
  Series<Counter> captures_saved{
      scope,
      {"reprise_captures_saved_total",
       "Shapes that came for the first time and were served by a recipe of other sizes"}};
  Series<Counter> withheld_answers{
      scope,
      {"reprise_withheld_answers_total",
       "Answers that failed with INTERNAL rather than being sent in another form than the "
       "request's sizes promise: a bug of the server"}};
  SeriesBy<Counter> audited_answers{
      scope,
      {"reprise_audited_answers_total",
       "Padded answers that were computed again, alone and exact, after they were sent: equal, "
       "different, or skipped for want of time (result)",
       ScrapeView::kAudits},
      "result"};
  Series<Gauge> audit_quarantined{
      scope,
      {"reprise_audit_quarantined",
       "Axes that are no longer padded, since an audited answer was different; requests run at "
       "exact sizes until the model is loaded again",
       ScrapeView::kAudits}};
  SeriesBy<Gauge> axis_certified{
      scope,
      {"reprise_axis_certified",
       "1 if padding along the axis was shown to change no answer, 0 if not: the axis then runs at "
       "exact sizes. Absent where config.pbtxt switches padding off"},
      "axis"};
  VerdictBy axis_verdict{
      scope,
      {"reprise_axis_verdict",
       "1 for the certificate of padding along the axis: proved (by the ops, for any size), "
       "refused; mixing: the first node that lets one position see another, and how"},
      "axis",
      {"verdict", "mixing"}};

  // Requests and replays.
  Series<Histogram> batch_size{scope,
                               {"reprise_batch_size", "Rows of a replay that clients sent", kRows}};
  SeriesBy<Histogram> request_length{
      scope,
      {"reprise_request_length", "Sizes of the requests along an axis", kLengths},
      "axis",
      Announced::kAxes};
  Series<Gauge> queue_depth{scope, {"reprise_queue_depth", "Requests waiting for a stream"}};
  Series<Histogram> queue_duration{
      scope, {"reprise_queue_duration_seconds", "Time of a request in the queue", kSeconds}};
  Series<Histogram> request_duration{
      scope,
      {"reprise_request_duration_seconds",
       "Time of a request, from its last byte read to its answer handed to the transport",
       kSeconds}};
  SeriesBy<Counter> requests{scope,
                             {"reprise_requests_total", "Requests answered, by status code"},
                             "code",
                             RequestCodes()};

  // Texts that the server made tokens of.
  Series<Counter> texts{
      scope, {"reprise_texts_total", "Texts that became tokens in the server", ScrapeView::kTexts}};
  Series<Counter> text_tokens{
      scope,
      {"reprise_text_tokens_total", "Tokens of them, special ones included", ScrapeView::kTexts}};
  Series<Counter> text_truncations{
      scope,
      {"reprise_text_truncations_total",
       "Texts that were cut to the model's length, because the client asked for it",
       ScrapeView::kTexts}};
  Series<Counter> audio_seconds{
      scope,
      {"reprise_audio_seconds_total", "Seconds of sound that became texts", ScrapeView::kSpeech}};
  Series<Histogram> tokenizer_duration{
      scope,
      {"reprise_tokenizer_duration_seconds", "Time of a text in the tokenizer", kTokenizerSeconds,
       ScrapeView::kTexts}};

  // Tokens that decoders make.
  SeriesBy<Gauge> sequences{
      scope,
      {"reprise_sequences",
       "Sequences of a model that makes tokens: computed (running), waiting, or preempted and "
       "waiting again (set_back), or until their clients read their events (stalled)",
       ScrapeView::kTokens},
      "state",
      {"running", "waiting", "set_back", "stalled"}};
  SeriesBy<Gauge> pages{
      scope,
      {"reprise_pages",
       "Pages of keys and values: held by sequences (used), by several of them (shared), and free, "
       "among which those are counted that a later prompt may find",
       ScrapeView::kTokens},
      "state",
      {"used", "free", "shared"}};
  SeriesBy<Counter> tokens{
      scope,
      {"reprise_tokens_total",
       "Tokens: of prompts, generated, and of prompts that were found computed (cached)",
       ScrapeView::kTokens},
      "kind",
      {"prompt", "generated", "cached"}};
  SeriesBy<Counter> draft_tokens{
      scope,
      {"reprise_draft_tokens_total",
       "Tokens that were looked up in prompt or answer and checked with the next one: drawn "
       "(right), or not (wrong)",
       ScrapeView::kTokens},
      "outcome",
      {"right", "wrong"}};
  Series<Counter> carried_tokens{
      scope,
      {"reprise_carried_tokens_total",
       "Tokens that steps of a decoder computed for requests with a client-managed KV cache",
       ScrapeView::kCarried}};
  Series<Counter> carried_bytes{
      scope,
      {"reprise_carried_bytes_total", "Keys and values that were written to the answers of these",
       ScrapeView::kCarried}};
  Series<Histogram> time_to_first_token{
      scope,
      {"reprise_time_to_first_token_seconds", "Time from a request for tokens to its first one",
       kSeconds, ScrapeView::kTokens}};
  Series<Histogram> time_per_output_token{
      scope,
      {"reprise_time_per_output_token_seconds",
       "Time from a token of a sequence to the one that follows", kSeconds, ScrapeView::kTokens}};

  // State that is kept between requests.
  Series<Gauge> live_sequences{
      scope,
      {"reprise_live_sequences", "Sequences whose state is kept between requests",
       ScrapeView::kState}};
  Series<Gauge> sequence_requests_waiting{
      scope,
      {"reprise_sequence_requests_waiting", "Requests that wait for their turn in a sequence",
       ScrapeView::kState}};
  Series<Gauge> state_bytes{scope,
                            {"reprise_state_bytes", "Memory of that state", ScrapeView::kState}};
  SeriesBy<Counter> sequence_events{
      scope,
      {"reprise_live_sequences_total",
       "Sequences that have begun, have ended, or were forgotten since they were idle for too long "
       "(idle)",
       ScrapeView::kState},
      "event",
      {"begun", "ended", "idle"}};

  // Nodes that no recipe of the device holds.
  SeriesBy<Counter> reference_kernels{
      scope,
      {"reprise_reference_kernels_total",
       "Nodes compiled to their plain reference kernel because the device has none, by operator"},
      "op",
      Announced::kOps};
  SeriesBy<Counter> eager_nodes{
      scope,
      {"reprise_eager_nodes_total",
       "Nodes that ran by themselves because data decides the shape of their result, by operator",
       ScrapeView::kCuts},
      "op",
      Announced::kEagerOps};
  SeriesBy<Counter> eager_seconds{
      scope,
      {"reprise_eager_seconds_total", "Time that they took", ScrapeView::kCuts},
      "op",
      Announced::kEagerOps};
  Series<Counter> sections{
      scope,
      {"reprise_section_runs_total",
       "Runs of the sections after such nodes, at the sizes that they found", ScrapeView::kCuts}};
  Series<Counter> section_seconds{
      scope, {"reprise_section_seconds_total", "Time that these took", ScrapeView::kCuts}};
  Series<Counter> eager_hits{scope.With({{"outcome", "hit"}}), kEagerCacheRequests};
  Series<Counter> eager_misses{scope.With({{"outcome", "miss"}}), kEagerCacheRequests};
  Series<Gauge> eager_ops{scope,
                          {"reprise_eager_cache_ops", "Entries kept in it", ScrapeView::kCuts}};
  Series<Gauge> eager_bytes{
      scope,
      {"reprise_eager_cache_bytes", "Bytes of that; the limit is --eager-cache-memory-mb",
       ScrapeView::kCuts}};
  Series<Counter> eager_evictions{
      scope,
      {"reprise_eager_cache_evictions_total", "Entries dropped from it because room was needed",
       ScrapeView::kCuts}};

  // The life of the version.
  Series<Gauge> ready{scope,
                      {"reprise_model_ready",
                       "1 if the model answers requests, 0 while it loads or when it was refused"}};
  Series<Gauge> asked_for{
      scope,
      {"reprise_model_asked_for",
       "1 while the version is to be served, 0 once it was unloaded, or replaced by another one"}};
  Series<Gauge> load_failed{scope,
                            {"reprise_model_load_failed",
                             "1 if the last load of the version failed: the former one, of this "
                             "version or of the model's others, still serves"}};
  Series<Gauge> frozen{
      scope,
      {"reprise_model_frozen", "1 while nothing may be captured for a request of the model",
       ScrapeView::kHeld}};
  Series<Gauge> asleep{scope,
                       {"reprise_model_asleep",
                        "1 while the weights of the model are not in memory", ScrapeView::kHeld}};
  Series<Gauge> warmup_wanted{
      scope, {"reprise_warmup_wanted", "Recipes that are captured before requests need them"}};
  Series<Gauge> warmup_done{scope, {"reprise_warmup_done", "Those of them that are ready"}};

  // Under the names that clients of other servers know.
  Series<Counter> nv_success{
      scope, {"nv_inference_request_success", "Requests answered without an error"}};
  SeriesBy<Counter> nv_failure{
      scope,
      {"nv_inference_request_failure",
       "Requests answered with an error (REJECTED by the queue, CANCELED, BACKEND, OTHER)"},
      "reason",
      FailureReasons()};
  Series<Counter> nv_inference_count{scope, {"nv_inference_count", "Rows answered"}};
  Series<Counter> nv_exec_count{scope, {"nv_inference_exec_count", "Batches executed"}};
  Series<Gauge> nv_load_duration{
      scope, {"nv_model_load_duration_secs", "Time of the last load of the version, in seconds"}};
  Series<Gauge> nv_pending{scope,
                           {"nv_inference_pending_request_count", "Requests waiting for a stream"}};
  Series<Counter> nv_request_us{scope,
                                {"nv_inference_request_duration_us",
                                 "Sum of the times of successful requests, in microseconds"}};
  Series<Counter> nv_queue_us{
      scope,
      {"nv_inference_queue_duration_us", "Sum of their times in the queue, in microseconds"}};
  Series<Counter> nv_compute_input_us{scope,
                                      {"nv_inference_compute_input_duration_us",
                                       "Sum of their times of gathering inputs, in microseconds"}};
  Series<Counter> nv_compute_infer_us{
      scope,
      {"nv_inference_compute_infer_duration_us",
       "Sum of their times of capture and replay, in microseconds"}};
  Series<Counter> nv_compute_output_us{
      scope,
      {"nv_inference_compute_output_duration_us",
       "Sum of their times of scattering outputs, in microseconds"}};
};

// Elements that the replays of each bucket computed along one axis of a model. A bucket appears
// with its first replay, `exact` at once.
struct AxisMetrics {
  using Counter = prometheus::Counter;

  // `scope`: the model's; `most_buckets`: that each row has a series for.
  AxisMetrics(const MetricScope& of_model, const std::string& axis, size_t most_buckets);
  ~AxisMetrics();

  const MetricScope scope;  // first: the rows are made with it
  const size_t most_buckets;

  SeriesBy<Counter> valid{
      scope.With({{"kind", "valid"}}), kBucketElements, "bucket", {"exact"}, most_buckets};
  SeriesBy<Counter> padded{
      scope.With({{"kind", "padded"}}), kBucketElements, "bucket", {"exact"}, most_buckets};
  SeriesBy<Counter> wasted_seconds{
      scope,
      {"reprise_wasted_seconds_total",
       "Time of replays spent on padding along an axis, by bucket (the padded share of the replay; "
       "rows that no request fills are skipped and cost none)",
       ScrapeView::kFolded},
      "bucket",
      {"exact"},
      most_buckets};
};

// The rows of the server.
struct ServerMetrics {
  using Counter = prometheus::Counter;
  using Gauge = prometheus::Gauge;

  // `build`: the labels of reprise_build_info.
  ServerMetrics(MetricScope of, const LabelValues& build);
  ~ServerMetrics();

  const MetricScope scope;  // first: the rows are made with it
  MetricScope scope_of_build;

  Series<Gauge> build_info{scope_of_build,
                           {"reprise_build_info", "Always 1; the labels describe the program"}};
  Series<Gauge> ready{
      scope, {"reprise_server_ready", "1 while requests may be sent here, as in /v2/health/ready"}};
  Series<Counter> unauthenticated{scope.With({{"reason", "unauthenticated"}}), kRefusedCalls};
  Series<Counter> not_permitted{scope.With({{"reason", "not_permitted"}}), kRefusedCalls};
  Series<Counter> log_lines_dropped{
      scope,
      {"reprise_log_lines_dropped_total",
       "Lines of the log that were dropped because its collector reads too slowly"}};
  Series<Counter> spans_exported{scope.With({{"outcome", "exported"}}), kSpans};
  Series<Counter> spans_dropped{scope.With({{"outcome", "dropped"}}), kSpans};
  Series<Counter> spans_failed{scope.With({{"outcome", "failed"}}), kSpans};
  Series<Gauge> requests_waiting{
      scope, {"reprise_requests_waiting", "Requests of all models that wait for a stream"}};
  Series<Gauge> requests_running{scope,
                                 {"reprise_requests_running", "Requests in the replays that run"}};
  Series<Gauge> tokens_waiting{
      scope, {"reprise_tokens_waiting", "Rows times lengths of the requests that wait"}};
  Series<Gauge> tokens_running{scope,
                               {"reprise_tokens_running", "Rows times lengths of those that run"}};
  Series<Gauge> utilization{
      scope,
      {"reprise_utilization",
       "Share of the time for which streams had a batch, from 0 to 1, over the last 10 seconds or "
       "since the last scrape before those"}};
  Series<Gauge> kv_cache_utilization{
      scope,
      {"reprise_kv_cache_utilization",
       "Share of the pages of keys and values that sequences hold, from 0 to 1"}};
  Series<Gauge> draining{
      scope,
      {"reprise_draining", "1 since the signal that ends the server: send requests elsewhere"}};
  Series<Gauge> stuck_streams{
      scope,
      {"reprise_stuck_streams", "Streams that were told to stop some time ago, and have not"}};
  Series<Gauge> arena_bytes{scope.With({{"kind", "arena"}}), kMemory};
  Series<Gauge> data_bytes{scope.With({{"kind", "data"}}), kMemory};
  Series<Gauge> parameter_bytes{scope.With({{"kind", "parameters"}}), kMemory};
  Series<Gauge> in_flight_bytes{scope.With({{"kind", "in_flight"}}), kMemory};
  Series<Gauge> grpc_connections{scope.With({{"face", "grpc"}}), kConnections};
  Series<Gauge> http_connections{scope.With({{"face", "http"}}), kConnections};
  Series<Counter> arena_releases{
      scope,
      {"reprise_arena_releases_total",
       "Arenas whose memory was given back because nothing ran on them"}};
};

}  // namespace reprise
