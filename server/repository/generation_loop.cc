#include "server/repository/generation_loop.h"

#include <utility>

#include "runtime/base/spare_heap.h"

namespace reprise {
namespace {

// Deadlines are looked at this often where nothing runs.
constexpr int64_t kIdleNs = 50'000'000;

}  // namespace

GenerationLoop::GenerationLoop(std::unique_ptr<Generator> generator, OnStats on_stats)
    : shared_(std::make_shared<Shared>()) {
  shared_->generator = std::move(generator);
  shared_->on_stats = std::move(on_stats);
  thread_ = std::thread([shared = shared_] { Run(shared); });
}

GenerationLoop::~GenerationLoop() {
  Stop();
  // The last user may be an event that the thread itself tells.
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else if (thread_.joinable()) {
    thread_.join();
  }
}

void GenerationLoop::Finish() {
  Stop();
  if (thread_.joinable() && thread_.get_id() != std::this_thread::get_id()) thread_.join();
}

absl::StatusOr<std::shared_ptr<Generation>> GenerationLoop::Submit(GenerationRequest request) {
  return shared_->generator->Submit(std::move(request));
}

bool GenerationLoop::idle() const {
  const GeneratorStats stats = shared_->generator->Stats();
  return stats.running + stats.waiting + stats.set_back + stats.stalled == 0;
}

void GenerationLoop::Stop() {
  shared_->stop = true;
  shared_->generator->Wake();
}

void GenerationLoop::Wake() { shared_->generator->Wake(); }

void GenerationLoop::Run(const std::shared_ptr<Shared>& shared) {
  // Nobody else can end the sequences where a step finds no memory.
  const SpareScope spare(kSpareHeapBytes);
  Generator& generator = *shared->generator;
  shared->on_stats(generator.Stats());
  while (!shared->stop) {
    const bool stepped = generator.Step();
    shared->on_stats(generator.Stats());
    if (!stepped) generator.Wait(kIdleNs);
  }
  generator.Close(absl::UnavailableError("the model is unloaded, or the server is stopping"));
  shared->on_stats(generator.Stats());
}

}  // namespace reprise
