#include "runtime/engine/capture/captures.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/engine/model/model.h"

namespace reprise {

std::shared_ptr<CaptureTicket> Captures::Begin(std::shared_ptr<const Model> model,
                                               CaptureTarget target, CaptureUrgency urgency,
                                               Waiter waiter) {
  if (pool_ == nullptr) return nullptr;
  MutexLock lock(mutex_);
  for (const FlightPtr& flight : flights_) {
    if (flight->target.key == target.key) return JoinLocked(flight, urgency, std::move(waiter));
  }
  auto flight = std::make_shared<Flight>();
  flight->model = std::move(model);
  flight->target = std::move(target);
  flight->behind = urgency == CaptureUrgency::kBehind;
  flight->urgent = urgency == CaptureUrgency::kUrgent;
  flight->waiting.push_back({std::move(waiter), options_.clock->NowNs()});
  // In this order: a flight whose job runs is one that others can join, and one that was not begun
  // leaves nothing behind.
  flights_.push_back(flight);
  absl::Cleanup forget = [&] { flights_.pop_back(); };
  if (!AddJob(flight, urgency)) return nullptr;
  std::move(forget).Cancel();
  return flight->ticket;
}

std::shared_ptr<CaptureTicket> Captures::Join(const RecipeKey& want,
                                              const std::set<std::string>& paddable,
                                              Waiter waiter) {
  MutexLock lock(mutex_);
  for (const FlightPtr& flight : flights_) {
    const CaptureTarget& target = flight->target;
    if (target.key == want || (target.bucketed && CanServe(target.key, want, paddable))) {
      return JoinLocked(flight, CaptureUrgency::kUrgent, std::move(waiter));
    }
  }
  return nullptr;
}

std::shared_ptr<CaptureTicket> Captures::JoinLocked(const FlightPtr& flight, CaptureUrgency urgency,
                                                    Waiter waiter) {
  if (urgency == CaptureUrgency::kUrgent && !flight->urgent && !flight->started) {
    WhereMemoryAllows([&] { flight->urgent = AddJob(flight, CaptureUrgency::kUrgent); });
  }
  flight->waiting.push_back({std::move(waiter), options_.clock->NowNs()});
  return flight->ticket;
}

bool Captures::AddJob(const FlightPtr& flight, CaptureUrgency urgency) {
  return pool_->Add(urgency, [this, flight](Stream* stream) { Run(flight, stream); });
}

void Captures::Run(const FlightPtr& flight, Stream* stream) {
  {
    MutexLock lock(mutex_);
    if (flight->started) return;
    flight->started = true;
  }
  const absl::StatusOr<CaptureResult> result = WithinMemory(
      [&] { return absl::StrCat("capturing ", flight->target.bucket); },
      [&]() -> absl::StatusOr<CaptureResult> {
        if (stream == nullptr) return absl::UnavailableError("the server is stopping");
        return CaptureRecipe(options_, cache_, *flight->model, flight->target, *stream);
      });
  if (result.ok()) {
    // From the store it was captured by nobody: all waited for it.
    flight->ticket->captured = result->record.has_value();
    if (!flight->target.exact) {
      WhereMemoryAllows([&] { on_recipe_(*flight->model, *result->recipe); });
    }
  }
  std::vector<Flight::Waiting> waiting;
  {
    MutexLock lock(mutex_);
    flights_.remove(flight);
    waiting = std::move(flight->waiting);
  }
  if (result.ok() && result->record.has_value()) {
    WhereMemoryAllows([&] { Tell(*flight, *result->record, waiting); });
  }
  // Nobody waits for ever because of what another one throws.
  for (Flight::Waiting& one : waiting) {
    if (one.waiter.done) WhereMemoryAllows([&] { one.waiter.done(result.status()); });
  }
}

void Captures::Tell(const Flight& flight, MissRecord record,
                    const std::vector<Flight::Waiting>& waiting) {
  const int64_t now_ns = options_.clock->NowNs();
  record.behind = flight.behind;
  for (const Flight::Waiting& one : waiting) {
    for (const std::string& id : one.waiter.request_ids) {
      record.AddWaiter(id, now_ns - one.since_ns);
    }
  }
  options_.on_capture(record);
  report_.Add(std::move(record));
}

}  // namespace reprise
