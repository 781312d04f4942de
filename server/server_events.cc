#include "server/server_events.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include <atomic>
#include <chrono>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/shown_text.h"
#include "server/wire/error_table.h"

namespace reprise {
namespace {

constexpr double kSecondsPerNs = 1e-9;
constexpr double kMicrosecondsPerNs = 1e-3;

// Returns whether balancers count the end of a request as an error of this server.
bool IsErrorOfServer(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss:
      return true;
    default:
      return false;
  }
}

class CountingModelEvents final : public ModelEvents {
 public:
  CountingModelEvents(std::shared_ptr<EventCounts> counts, Catalogue& catalogue,
                      ModelMetrics& metrics, std::string name, std::string version, Log& log,
                      const RequestLog& requests, PrefixPublisher* prefixes)
      : counts_(std::move(counts)),
        catalogue_(catalogue),
        metrics_(metrics),
        name_(std::move(name)),
        version_(std::move(version)),
        log_(log),
        requests_(requests) {
    if (prefixes != nullptr) {
      prefixes_ = std::make_unique<PrefixPublisher::Pages>(*prefixes, name_, version_);
    }
  }

  ~CountingModelEvents() override { CountPages(GenerationRecord()); }

  void OnQueueDepth(int64_t depth) override {
    metrics_.queue_depth->Set(static_cast<double>(depth));
    metrics_.nv_pending->Set(static_cast<double>(depth));
  }

  void OnBatch() override { metrics_.nv_exec_count->Increment(); }

  void OnRequest(const RequestRecord& record) override {
    Count(record);
    requests_.OnRequest(record);
  }

  void OnWarmup(int64_t wanted, int64_t done) override {
    metrics_.warmup_wanted->Set(static_cast<double>(wanted));
    metrics_.warmup_done->Set(static_cast<double>(done));
  }

  void OnGeneration(const GenerationRecord& record) override {
    const auto set = [](auto& series, absl::string_view state, int64_t value) {
      series.at(state).Set(static_cast<double>(value));
    };
    set(metrics_.sequences, "running", record.running);
    set(metrics_.sequences, "waiting", record.waiting);
    set(metrics_.sequences, "set_back", record.set_back);
    set(metrics_.sequences, "stalled", record.stalled);
    CountPages(record);
    set(metrics_.pages, "used", record.pages_used);
    set(metrics_.pages, "free", record.pages_free);
    set(metrics_.pages, "shared", record.pages_shared);
    const auto add = [](auto& series, absl::string_view kind, int64_t now, int64_t before) {
      if (now > before) series.at(kind).Increment(static_cast<double>(now - before));
    };
    add(metrics_.tokens, "prompt", record.prompt_tokens, generated_.prompt_tokens);
    add(metrics_.tokens, "generated", record.generated_tokens, generated_.generated_tokens);
    add(metrics_.tokens, "cached", record.cached_tokens, generated_.cached_tokens);
    add(metrics_.draft_tokens, "right", record.drafts_right, generated_.drafts_right);
    add(metrics_.draft_tokens, "wrong", record.drafts_wrong, generated_.drafts_wrong);
    generated_ = record;
  }

  void OnPage(const PageChange& change) override {
    if (prefixes_ != nullptr) prefixes_->OnPage(change);
  }

  void OnCarried(int64_t tokens, int64_t bytes) override {
    metrics_.carried_tokens->Increment(static_cast<double>(tokens));
    metrics_.carried_bytes->Increment(static_cast<double>(bytes));
  }

  void OnAudio(double seconds) override { metrics_.audio_seconds->Increment(seconds); }

  void OnText(const TextRecord& record) override {
    metrics_.texts->Increment();
    metrics_.text_tokens->Increment(static_cast<double>(record.tokens));
    if (record.truncated) metrics_.text_truncations->Increment();
    metrics_.tokenizer_duration->Observe(static_cast<double>(record.tokenizer_ns) * kSecondsPerNs);
  }

  void OnFirstToken(int64_t ns) override {
    metrics_.time_to_first_token->Observe(static_cast<double>(ns) * kSecondsPerNs);
  }

  void OnNextToken(int64_t ns) override {
    metrics_.time_per_output_token->Observe(static_cast<double>(ns) * kSecondsPerNs);
  }

  void OnSequences(const SequenceRecord& record) override {
    metrics_.live_sequences->Set(static_cast<double>(record.live));
    metrics_.sequence_requests_waiting->Set(static_cast<double>(record.waiting));
    metrics_.state_bytes->Set(static_cast<double>(record.bytes));
    const auto add = [&](absl::string_view event, int64_t now, int64_t& before) {
      if (now > before) {
        metrics_.sequence_events.at(event).Increment(static_cast<double>(now - before));
      }
      before = now;
    };
    add("begun", record.begun, sequences_.begun);
    add("ended", record.ended, sequences_.ended);
    add("idle", record.idle, sequences_.idle);
  }

  void OnLoading() override { load_began_.store(NowNs(), std::memory_order_relaxed); }

  void OnState(ModelState state, const absl::Status& why) override {
    const int64_t load_ns = NowNs() - load_began_.load(std::memory_order_relaxed);
    if (state == ModelState::kReady) {
      metrics_.nv_load_duration->Set(static_cast<double>(load_ns) * kSecondsPerNs);
    }
    metrics_.ready->Set(state == ModelState::kReady ? 1 : 0);
    metrics_.asked_for->Set(state == ModelState::kUnloaded ? 0 : 1);
    metrics_.load_failed->Set(state == ModelState::kUnavailable ? 1 : 0);
    if (state == ModelState::kReady) {
      Tell(LogLevel::kInfo, "is ready", "model ready", absl::OkStatus(), load_ns);
    } else if (state == ModelState::kUnavailable) {
      Tell(LogLevel::kError, "was not loaded", "model not loaded", why);
    } else if (state == ModelState::kUnloaded) {
      Tell(LogLevel::kInfo, "is unloaded", "model unloaded");
    }
  }

  void OnChange(const char* how) override { Tell(LogLevel::kInfo, how, "model changed"); }

  void OnDamaged(const absl::Status& why) override {
    metrics_.ready->Set(0);
    Tell(LogLevel::kError, "answers no more requests", "model damaged", why);
  }

  void OnDropped() override {
    metrics_.asked_for->Set(0);
    metrics_.load_failed->Set(0);
  }

  void OnKept(const absl::Status& why) override {
    metrics_.load_failed->Set(1);
    Tell(LogLevel::kError, "was not reloaded, the former version still serves", "model not loaded",
         why);
  }

 private:
  // "model 'minilm' version 1 is ready". `load_ns`, unless 0, is a field of its own.
  void Tell(LogLevel level, const char* what, const char* event,
            const absl::Status& why = absl::OkStatus(), int64_t load_ns = 0) const {
    std::string sentence = absl::StrCat("model ", QuotedText(name_));
    if (!version_.empty()) absl::StrAppend(&sentence, " version ", version_);
    absl::StrAppend(&sentence, " ", what, why.ok() ? "" : ": ", why.message());
    const std::string name = ShownText(name_), version = ShownText(version_);
    std::vector<LogField> fields = {{"model", name}, {"version", version}};
    if (load_ns > 0) fields.push_back({"load_us", load_ns / 1000});
    if (!why.ok()) {
      fields.push_back({"code", ErrorRowOf(why.code()).name});
      fields.push_back({"error", why.message()});
    }
    log_.WriteEvent(level, sentence, event, fields);
  }

  // Counts the pages of a model that had `generated_` until now.
  void CountPages(const GenerationRecord& now) {
    counts_->pages_used += now.pages_used - generated_.pages_used;
    counts_->pages +=
        now.pages_used + now.pages_free - generated_.pages_used - generated_.pages_free;
  }

  void Count(const RequestRecord& record) {
    ++counts_->requests;
    if (IsErrorOfServer(record.code)) ++counts_->errors;
    metrics_.requests.at(ErrorRowOf(record.code).name).Increment();
    metrics_.request_duration->Observe(static_cast<double>(record.total_ns) * kSecondsPerNs);
    NoteTrace("reprise_request_duration_seconds", record, record.total_ns);
    if (record.code != absl::StatusCode::kOk) {
      metrics_.nv_failure.at(FailureReason(record)).Increment();
      return;
    }
    const PhaseTimes& times = record.times;
    auto add_us = [](const Series<prometheus::Counter>& counter, int64_t ns) {
      if (ns > 0) counter->Increment(static_cast<double>(ns) * kMicrosecondsPerNs);
    };
    metrics_.queue_duration->Observe(static_cast<double>(times.queue_ns) * kSecondsPerNs);
    NoteTrace("reprise_queue_duration_seconds", record, times.queue_ns);
    metrics_.nv_success->Increment();
    metrics_.nv_inference_count->Increment(static_cast<double>(record.rows));
    add_us(metrics_.nv_request_us, record.total_ns);
    add_us(metrics_.nv_queue_us, times.queue_ns);
    add_us(metrics_.nv_compute_input_us, times.compute_input_ns);
    add_us(metrics_.nv_compute_infer_us, times.compute_infer_ns);
    add_us(metrics_.nv_compute_output_us, times.compute_output_ns);
  }

  void NoteTrace(const char* metric, const RequestRecord& record, int64_t ns) {
    if (record.trace_id.empty()) return;
    catalogue_.NoteExemplar(metric, name_, version_, record.trace_id,
                            static_cast<double>(ns) * kSecondsPerNs);
  }

  static int64_t NowNs() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  }

  static absl::string_view FailureReason(const RequestRecord& record) {
    if (record.queue_full) return "REJECTED";
    if (record.code == absl::StatusCode::kCancelled) return "CANCELED";
    if (record.code == absl::StatusCode::kInternal) return "BACKEND";
    return "OTHER";
  }

  const std::shared_ptr<EventCounts> counts_;
  Catalogue& catalogue_;
  ModelMetrics& metrics_;
  std::atomic<int64_t> load_began_{NowNs()};
  const std::string name_, version_;
  Log& log_;
  GenerationRecord generated_;  // as it was last told
  SequenceRecord sequences_;    // the same
  const RequestLog& requests_;
  std::unique_ptr<PrefixPublisher::Pages> prefixes_;  // null: no router is told
};

}  // namespace

CountingEvents::CountingEvents(Catalogue& catalogue, Log& log, const RequestLog& requests,
                               PrefixPublisher* prefixes)
    : catalogue_(catalogue),
      log_(log),
      requests_(requests),
      prefixes_(prefixes),
      unknown_(std::make_unique<CountingModelEvents>(counts_, catalogue, catalogue.Unknown(), "",
                                                     "", log_, requests_, nullptr)) {}

CountingEvents::~CountingEvents() = default;

std::unique_ptr<ModelEvents> CountingEvents::ForModel(const std::string& name,
                                                      const std::string& version) {
  ModelMetrics& metrics = catalogue_.Model(name, version);
  metrics.asked_for->Set(1);
  return std::make_unique<CountingModelEvents>(counts_, catalogue_, metrics, name, version, log_,
                                               requests_, prefixes_);
}

void CountingEvents::OnUnknownModel(const RequestRecord& record) { unknown_->OnRequest(record); }

}  // namespace reprise
