#include "server/repository/generation_loop.h"

#include <algorithm>
#include <utility>

#include "runtime/base/spare_heap.h"

namespace reprise {
namespace {

// Deadlines are looked at this often where nothing runs.
constexpr int64_t kIdleNs = 50'000'000;

int64_t SequencesOf(const GeneratorStats& stats) {
  return stats.running + stats.waiting + stats.set_back + stats.stalled;
}

void Add(const GeneratorStats& one, GeneratorStats& sum) {
  constexpr int64_t GeneratorStats::*kMembers[] = {&GeneratorStats::running,
                                                   &GeneratorStats::waiting,
                                                   &GeneratorStats::set_back,
                                                   &GeneratorStats::stalled,
                                                   &GeneratorStats::pages_used,
                                                   &GeneratorStats::pages_free,
                                                   &GeneratorStats::pages_shared,
                                                   &GeneratorStats::prompt_tokens,
                                                   &GeneratorStats::generated_tokens,
                                                   &GeneratorStats::cached_tokens,
                                                   &GeneratorStats::steps,
                                                   &GeneratorStats::set_backs,
                                                   &GeneratorStats::drafts_right,
                                                   &GeneratorStats::drafts_wrong};
  static_assert(sizeof(kMembers) / sizeof(kMembers[0]) * sizeof(int64_t) == sizeof(GeneratorStats));
  for (const auto member : kMembers) sum.*member += one.*member;
}

}  // namespace

GenerationLoop::GenerationLoop(std::vector<std::unique_ptr<Generator>> lanes, OnStats on_stats)
    : shared_(std::make_shared<Shared>()) {
  shared_->lanes = std::move(lanes);
  shared_->on_stats = std::move(on_stats);
  for (const std::unique_ptr<Generator>& lane : shared_->lanes) {
    threads_.emplace_back([shared = shared_, &lane = *lane] { Run(shared, lane); });
  }
}

GenerationLoop::~GenerationLoop() {
  Stop();
  for (std::thread& thread : threads_) {
    // The last user may be an event that the thread itself tells.
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();
    } else if (thread.joinable()) {
      thread.join();
    }
  }
}

void GenerationLoop::Finish() {
  Stop();
  for (std::thread& thread : threads_) {
    if (thread.joinable() && thread.get_id() != std::this_thread::get_id()) thread.join();
  }
}

absl::StatusOr<std::shared_ptr<Generation>> GenerationLoop::Submit(GenerationRequest request) {
  const auto& lanes = shared_->lanes;
  if (lanes.size() == 1) return lanes[0]->Submit(std::move(request));
  MutexLock lock(submit_mutex_);
  const auto sequences = [](const std::unique_ptr<Generator>& lane) {
    return SequencesOf(lane->Stats());
  };
  const auto lane = std::min_element(lanes.begin(), lanes.end(), [&](const auto& a, const auto& b) {
    return sequences(a) < sequences(b);
  });
  return (*lane)->Submit(std::move(request));
}

absl::Status GenerationLoop::state() const {
  for (const std::unique_ptr<Generator>& lane : shared_->lanes) {
    absl::Status state = lane->state();
    if (!state.ok()) return state;
  }
  return absl::OkStatus();
}

GeneratorStats GenerationLoop::Stats() const { return shared_->Stats(); }

GeneratorStats GenerationLoop::Shared::Stats() const {
  GeneratorStats sum;
  for (const std::unique_ptr<Generator>& lane : lanes) Add(lane->Stats(), sum);
  return sum;
}

void GenerationLoop::Shared::Tell() {
  MutexLock lock(stats_mutex);
  on_stats(Stats());
}

bool GenerationLoop::idle() const { return SequencesOf(Stats()) == 0; }

void GenerationLoop::Stop() {
  shared_->stop = true;
  Wake();
}

void GenerationLoop::Wake() {
  for (const std::unique_ptr<Generator>& lane : shared_->lanes) lane->Wake();
}

void GenerationLoop::Run(const std::shared_ptr<Shared>& shared, Generator& generator) {
  // Nobody else can end the sequences where a step finds no memory.
  const SpareScope spare(kSpareHeapBytes);
  shared->Tell();
  while (!shared->stop) {
    const bool stepped = generator.Step();
    shared->Tell();
    if (!stepped) generator.Wait(kIdleNs);
  }
  generator.Close(absl::UnavailableError("the model is unloaded, or the server is stopping"));
  shared->Tell();
}

}  // namespace reprise
