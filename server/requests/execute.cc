#include "server/requests/execute.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/base/debug_log.h"
#include "runtime/base/format_text.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "server/requests/call.h"
#include "server/requests/plan_builder.h"

namespace reprise {
namespace {

// Writes a debug line about a batch of the queue, where such lines were asked for.
void Tell(const RequestScheduler::Batch& batch, int64_t rows, const ReplayInfo& info,
          DebugLog& debug) {
  int64_t longest_ns = 0;
  for (const auto& part : batch.items) {
    longest_ns = std::max(longest_ns, batch.taken_ns - part->place.enqueued_ns);
  }
  debug.Say(LogModule::kQueue,
            FormatText("batch %d of %s: %d requests, %d rows, %s, the longest waited %.3f ms",
                       info.batch, batch.queue->options().name, batch.items.size(), rows,
                       info.bucket, static_cast<double>(longest_ns) * 1e-6));
}

std::vector<Response> Run(RequestScheduler::Batch& batch, Engine& engine, Stream& stream,
                          absl::Span<const Request* const> requests) {
  const CarriedSteps* const carried = batch.builder->carried();
  if (carried == nullptr) {
    return engine.Run(batch.builder->plan(), requests, stream, &batch.run->stop);
  }
  CarriedCounts counts;
  std::vector<Response> responses = carried->Run(requests, stream, &batch.run->stop, counts);
  batch.items[0]->call().version().events->OnCarried(counts.tokens, counts.bytes);
  return responses;
}

// Finishes the first parts of the batch, as many as `finished` says then.
void ExecuteUntilFailure(RequestScheduler::Batch& batch, Engine& engine, const Clock& clock,
                         Stream& stream, size_t& finished) {
  std::vector<const Request*> requests;
  int64_t rows = 0;
  for (const auto& part : batch.items) {
    requests.push_back(&part->request);
    rows += part->shape.rows;
  }
  std::vector<Response> responses = Run(batch, engine, stream, requests);
  REPRISE_CHECK(responses.size() == batch.items.size());

  DebugLog* const debug = engine.options().debug;
  if (Wants(debug, LogModule::kQueue)) {
    WhereMemoryAllows([&] { Tell(batch, rows, responses[0].info, *debug); });
  }
  // The time outside gather and scatter is the capture, the wait for one, and the replay.
  const ReplayInfo& info = responses[0].info;
  const int64_t run_ns = clock.NowNs() - batch.taken_ns;
  PhaseTimes times = {.compute_input_ns = info.gather_ns,
                      .compute_infer_ns = run_ns - info.gather_ns - info.scatter_ns,
                      .compute_output_ns = info.scatter_ns};
  // A batch whose capture failed was not executed.
  if (std::any_of(responses.begin(), responses.end(),
                  [](const Response& response) { return response.info.batch > 0; })) {
    WhereMemoryAllows([&] {
      ModelVersion& version = batch.items[0]->call().version();
      version.statistics.RecordBatch(rows, times);
      version.events->OnBatch();
    });
  }
  for (size_t i = 0; i < responses.size(); ++i) {
    Part& part = *batch.items[i];
    PhaseTimes own = times;
    own.taken_ns = batch.taken_ns;
    own.queue_ns = batch.taken_ns - part.place.enqueued_ns;
    ++finished;
    part.Finish(std::move(responses[i]), own);
  }
}

}  // namespace

void ExecuteBatch(RequestScheduler::Batch& batch, Engine& engine, const Clock& clock,
                  Stream& stream) {
  size_t finished = 0;
  const absl::Status executed =
      WithinMemory([&] { return batch.queue->options().name; },
                   [&] {
                     ExecuteUntilFailure(batch, engine, clock, stream, finished);
                     return absl::OkStatus();
                   });
  while (finished < batch.items.size()) batch.items[finished++]->Drop(executed);
}

}  // namespace reprise
