#include "server/requests/finish.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "server/requests/shape_columns.h"

namespace reprise {
namespace {

// A part that was dropped because another one failed must not hide that one's error.
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

// The ids of batches, ascending, each once.
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
}

}  // namespace

InferResult FinishRequest(const RequestState& state, std::vector<PartAnswer>& answers,
                          const Clock& clock) {
  PhaseTimes times = TimesOf(answers);
  times.tokenizer_ns = state.early_tokenizer_ns + state.tokenizer_ns;
  InferResult result;
  const absl::Status made =
      WithinMemory([] { return "the answer"; }, [&] { return MakeAnswer(state, answers, result); });
  if (!made.ok()) result = InferResult{.status = made};
  WhereMemoryAllows([&] { Count(state, result, times, clock.NowNs() - state.start_ns); });
  return result;
}

}  // namespace reprise
