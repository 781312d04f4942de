#include "server/requests/finish.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "server/requests/shape_columns.h"

namespace reprise {
namespace {

// Joins the parts. One that was dropped because another failed must not hide that one's error.
Response JoinResponses(const Model& model, std::vector<PartAnswer>& answers) {
  const auto worst = std::find_if(answers.begin(), answers.end(), [](const PartAnswer& answer) {
    return !answer.response.status.ok() &&
           answer.response.status.code() != absl::StatusCode::kCancelled;
  });
  if (worst != answers.end()) return {.status = worst->response.status};
  if (answers.size() == 1) return std::move(answers[0].response);
  std::vector<Response> responses;
  for (PartAnswer& answer : answers) responses.push_back(std::move(answer.response));
  return JoinRows(model, std::move(responses));
}

// Returns the ids of batches, ascending, each once.
std::vector<int64_t> BatchesOf(const std::vector<PartAnswer>& answers) {
  std::vector<int64_t> batches;
  for (const PartAnswer& answer : answers) batches.push_back(answer.response.info.batch);
  std::sort(batches.begin(), batches.end());
  batches.erase(std::unique(batches.begin(), batches.end()), batches.end());
  return batches;
}

PhaseTimes TimesOf(const std::vector<PartAnswer>& answers) {
  PhaseTimes times;
  for (const PartAnswer& answer : answers) {
    times.queue_ns = std::max(times.queue_ns, answer.times.queue_ns);
    times.compute_input_ns += answer.times.compute_input_ns;
    times.compute_infer_ns += answer.times.compute_infer_ns;
    times.compute_output_ns += answer.times.compute_output_ns;
  }
  return times;
}

absl::Status MakeAnswer(const RequestState& state, std::vector<PartAnswer>& answers,
                        InferResult& result) {
  result.model = state.model;
  result.outputs = state.outputs;
  result.batches = BatchesOf(answers);
  result.response = JoinResponses(*state.model.servable->model, answers);
  result.status = result.response.status;
  if (answers.size() > 1) result.response.info.batch = result.batches.back();
  if (!result.status.ok()) return absl::OkStatus();
  for (auto step = state.on_answer.rbegin(); step != state.on_answer.rend(); ++step) {
    RETURN_IF_ERROR((*step)(result));
  }
  return absl::OkStatus();
}

// Adds spans one after another, below one of them.
class Row {
 public:
  Row(RequestTrace& trace, uint64_t parent, int64_t start_ns)
      : trace_(trace), parent_(parent), at_ns_(start_ns) {}

  void Add(const char* name, int64_t ns, std::vector<SpanAttribute> attributes = {}) {
    if (ns <= 0) return;
    trace_.Add({.name = name,
                .parent = parent_,
                .start_ns = at_ns_,
                .end_ns = at_ns_ + ns,
                .attributes = std::move(attributes)});
    at_ns_ += ns;
  }

 private:
  RequestTrace& trace_;
  const uint64_t parent_;
  int64_t at_ns_;
};

void AddPart(RequestTrace& trace, const PartAnswer& answer) {
  const PhaseTimes& times = answer.times;
  if (times.taken_ns == 0) return;  // it was dropped before a stream took it
  const ReplayInfo& info = answer.response.info;
  const std::string capture(CaptureOutcomeName(info.capture));
  trace.Add({.name = "queue",
             .start_ns = times.taken_ns - times.queue_ns,
             .end_ns = times.taken_ns,
             .attributes = {{"reprise.capture", capture}}});
  const int64_t batch_ns =
      times.compute_input_ns + times.compute_infer_ns + times.compute_output_ns;
  const uint64_t batch = trace.Add({.name = "batch",
                                    .start_ns = times.taken_ns,
                                    .end_ns = times.taken_ns + batch_ns,
                                    .attributes = {{"reprise.batch", info.batch},
                                                   {"reprise.batch_rows", info.batch_size},
                                                   {"reprise.bucket", info.bucket},
                                                   {"reprise.recipe", info.recipe},
                                                   {"reprise.capture", capture}},
                                    .error = std::string(answer.response.status.message())});
  // The replay's own time is known; the rest between gather and scatter is the way to a recipe.
  const int64_t before_ns = std::max<int64_t>(0, times.compute_infer_ns - info.replay_ns);
  const bool replayed = info.capture == CaptureOutcome::kReplayed;
  Row row(trace, batch, times.taken_ns);
  row.Add(replayed ? "recipe" : "capture", before_ns, {{"reprise.bucket", info.bucket}});
  row.Add("gather", info.gather_ns);
  row.Add("replay", info.replay_ns, {{"reprise.bucket", info.bucket}});
  row.Add("scatter", info.scatter_ns);
}

// Adds the spans of a request that is traced: for each of its parts the time in the queue and its
// batch, with capture, gather, replay and scatter below that.
void AddSpans(const RequestState& state, const std::vector<PartAnswer>& answers) {
  RequestTrace& trace = *state.trace;
  trace.AddAttribute({"reprise.model", state.model.version->name});
  trace.AddAttribute({"reprise.version", state.model.version->version});
  trace.AddAttribute({"reprise.rows", state.rows});
  if (!state.id.empty()) trace.AddAttribute({"reprise.request_id", std::string(state.id)});
  for (const PartAnswer& answer : answers) AddPart(trace, answer);
}

void Count(const RequestState& state, const InferResult& result, const PhaseTimes& times,
           int64_t total_ns) {
  ModelVersion& version = *state.model.version;
  if (result.status.ok()) {
    version.statistics.RecordSuccess(state.rows, total_ns, times,
                                     ServiceOf(result.response) != ShapeService::kOutside);
  } else {
    version.statistics.RecordFailure(total_ns);
  }
  const ReplayInfo& info = result.response.info;
  const std::string trace_id = state.trace == nullptr ? "" : state.trace->id_text();
  int64_t bytes_out = 0;
  for (const OutputTensor& output : result.response.outputs) {
    bytes_out += static_cast<int64_t>(output.bytes.size());
  }
  const RequestRecord record = {
      .code = result.status.code(),
      .rows = state.rows,
      .total_ns = total_ns,
      .times = times,
      .id = state.id,
      .model = version.name,
      .version = version.version,
      .key = state.key == nullptr ? "" : absl::string_view(state.key->name()),
      .trace_id = trace_id,
      .bytes_in = state.bytes_in,
      .bytes_out = bytes_out,
      .bucket = info.bucket,
      .capture = CaptureOutcomeName(info.capture),
      .why = result.status.message()};
  version.events->OnRequest(record);
  if (result.status.ok()) {
    version.slow_requests.Record(record, total_ns + state.early_tokenizer_ns,
                                 std::chrono::system_clock::now());
  }
  state.model.servable->shapes->Record(state.columns, ServiceOf(result.response));
  if (result.status.ok()) {
    state.model.servable->model->owner()->new_shapes().OnRequest(state.columns, info.capture,
                                                                 info.bucket, state.id);
  }
}

}  // namespace

InferResult FinishRequest(const RequestState& state, std::vector<PartAnswer>& answers,
                          const Clock& clock) {
  PhaseTimes times = TimesOf(answers);
  times.tokenizer_ns = state.early_tokenizer_ns + state.tokenizer_ns;
  InferResult result;
  if (state.trace != nullptr) WhereMemoryAllows([&] { AddSpans(state, answers); });
  const absl::Status made =
      WithinMemory([] { return "the answer"; }, [&] { return MakeAnswer(state, answers, result); });
  if (!made.ok()) result = InferResult{.status = made};
  WhereMemoryAllows([&] { Count(state, result, times, clock.NowNs() - state.start_ns); });
  return result;
}

}  // namespace reprise
