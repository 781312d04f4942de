// The end of the daemon: requests are finished, clients are told, and every thread stops.
#include <prometheus/gauge.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/format_text.h"
#include "server/daemon.h"

namespace reprise {
namespace {

// How long answers that are ready may take to reach their clients.
constexpr std::chrono::seconds kFlushTime(5);
// Calls are refused until none came for this time: one that meets the closing of its connection is
// cancelled, which tells its client less. A client that keeps calling does not delay the end.
constexpr std::chrono::milliseconds kQuietTime(200);
constexpr std::chrono::seconds kLongestRefusing(2);
// Clients that are sent elsewhere may take this time to go.
constexpr std::chrono::seconds kLongestLeaving(3);

// Returns how long requests may take to end: the steps after them have a moment of their own, so
// that all of it is done within the time of --exit-timeout-secs.
std::chrono::nanoseconds DrainTime(const Options& options) {
  const std::chrono::nanoseconds all = std::chrono::seconds(options.exit_timeout_secs);
  return all - std::min<std::chrono::nanoseconds>(all / 4, std::chrono::seconds(2));
}

// `most`, or less where `end` is near: the rest is for the steps after it.
std::chrono::nanoseconds UpTo(std::chrono::nanoseconds most,
                              std::chrono::steady_clock::time_point end) {
  const std::chrono::nanoseconds left = end - std::chrono::steady_clock::now();
  return std::clamp(left / 3, std::chrono::nanoseconds(0), most);
}

absl::Status Stopping() { return absl::UnavailableError("the server is stopping"); }

}  // namespace

void Daemon::Leave() {
  // Before the start is over no load balancer sends requests.
  const bool was_serving = state_.state() != ServerState::State::kStarting;
  state_.SetLeaving();
  catalogue_.server().draining->Set(1);
  readiness_.Now();
  http_->Drain();
  if (options_.drain_grace_secs == 0 || !was_serving) return;
  log_(LogLevel::kInfo, absl::StrCat("requests are served for ", options_.drain_grace_secs,
                                     " s more, so that clients see that the server leaves"));
  std::this_thread::sleep_for(std::chrono::seconds(options_.drain_grace_secs));
  // Clients that have not looked are sent elsewhere: connections end, and none can be made.
  // Requests on the remaining ones are still served.
  const auto end = std::chrono::steady_clock::now() + kLongestLeaving;
  for (HttpServer* server : {http_.get(), admin_.get()}) {
    if (server != nullptr) server->Leave();
  }
  rpc_->Leave(end);
  if (admin_rpc_ != nullptr) admin_rpc_->Leave(end);
  http_->WaitUntilSent(kQuietTime, end - std::chrono::steady_clock::now());
}

std::chrono::seconds Daemon::ExitTime(const Options& options) {
  if (options.drain_grace_secs == 0) return TimeAfterGrace(options);
  return std::chrono::seconds(options.drain_grace_secs) +
         std::chrono::ceil<std::chrono::seconds>(kLongestLeaving) + TimeAfterGrace(options);
}

void Daemon::Drain(std::function<void(const char* step)> on_step) {
  on_step_ = std::move(on_step);
  on_step_("requests");
  Leave();
  state_.SetDraining();
  scheduler_.StopAccepting(Stopping());
  const std::chrono::nanoseconds patience = DrainTime(options_);
  const auto begin = std::chrono::steady_clock::now();
  const auto end = begin + patience, all_end = begin + TimeAfterGrace(options_);
  if (!scheduler_.WaitUntilIdle(patience)) {
    log_(LogLevel::kWarning,
         FormatText("requests are left after %.1f s; those that wait are refused, and those that "
                    "run are stopped",
                    std::chrono::duration<double>(patience).count()));
    scheduler_.Shutdown(Stopping());
    scheduler_.StopRuns(Stopping());
  }
  sequences_.Close(Stopping());
  FinishGenerations(end);
  // Clients that wait for a model are told.
  on_step_("models that are loaded");
  repository_.Stop();
  on_step_("clients that read their answers");
  // The deadline of Shutdown does not do here: Shutdown waits that long for calls that never end,
  // such as a watch of the health service.
  // Clients whose answers were ended just now are told why.
  const auto told = std::max<std::chrono::steady_clock::time_point>(
      end, std::chrono::steady_clock::now() + UpTo(kLongestRefusing, all_end));
  const auto left = [told] { return told - std::chrono::steady_clock::now(); };
  if (!rpc_->WaitUntilSent(kQuietTime.zero(), left()) ||
      !http_->WaitUntilSent(kQuietTime.zero(), left())) {
    log_(LogLevel::kWarning,
         FormatText("clients have not read their answers after %.1f s; they are cut off",
                    std::chrono::duration<double>(patience).count()));
  } else {
    rpc_->WaitUntilSent(kQuietTime, UpTo(kLongestRefusing, all_end));
    http_->WaitUntilSent(kQuietTime, UpTo(kLongestRefusing, all_end));
  }
  const auto cut = std::chrono::steady_clock::now() + UpTo(kFlushTime, all_end);
  rpc_->Shutdown(cut);
  if (admin_rpc_ != nullptr) admin_rpc_->Shutdown(cut);
  if (traces_ != nullptr) traces_->Finish(UpTo(kFlushTime, all_end));
  on_step_("the recipe store");
  store_.Finish();
  engine_.SaveUsage(UsageKeeper::When::kNow);
  metrics_file_->Finish();
}

void Daemon::FinishGenerations(std::chrono::steady_clock::time_point end) {
  constexpr std::chrono::milliseconds kLook(5);
  std::vector<std::weak_ptr<GenerationLoop>> all;
  {
    MutexLock lock(generations_mutex_);
    all.swap(generations_);  // allocates nothing
  }
  for (const std::weak_ptr<GenerationLoop>& one : all) {
    const std::shared_ptr<GenerationLoop> generation = one.lock();
    if (generation == nullptr) continue;
    while (!generation->idle() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(kLook);
    }
    generation->Finish();
  }
}

Daemon::~Daemon() {
  scheduler_.Shutdown(Stopping());
  sequences_.Close(Stopping());
  sequences_.Stop();
  // They tell tokens to the ports.
  FinishGenerations(std::chrono::steady_clock::now());
  repository_.Stop();  // Its threads report changes to the ports.
  on_step_("streams that run");
  dispatcher_.reset();
  text_threads_.Stop();
  on_step_("captures");
  // The results would not be used, and the captures' callbacks end in the scheduler.
  captures_.Stop();
  metrics_file_->Finish();
  on_step_("the recipe store");
  store_.Finish();
  on_step_("connections");
  metrics_.reset();
  admin_.reset();
  http_.reset();
  admin_rpc_.reset();
  rpc_.reset();
}

}  // namespace reprise
