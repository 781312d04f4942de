#include "server/transport/network_threads.h"

#include <boost/asio/post.hpp>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "runtime/base/heap.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/spare_heap.h"

namespace reprise {
namespace {

constexpr std::chrono::seconds kLookTime(1);

// Gives the thread its part of the C library's heap. One that first asks for memory when there is
// none gets none for good, and the library ends the process where it needs some for the thread.
void BeginHeapOfThread() {
  void* block = std::malloc(1);
  asm volatile("" : "+r"(block) : : "memory");  // else the compiler leaves both calls out
  std::free(block);
}

}  // namespace

void NetworkThreads::Start(int threads) {
  if (account_ != nullptr) LookLater();
  MutexLock lock(mutex_);
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

void NetworkThreads::Join() {
  io_.stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void NetworkThreads::Run() {
  BeginHeapOfThread();
  // Half is left to threads whose steps may not fail at all.
  const SpareScope spare(kSpareHeapBytes / 2);
  // A step that throws for want of memory ends its connection alone.
  while (!WhereMemoryAllows([this] { io_.run(); })) {
  }
}

void NetworkThreads::LookLater() {
  pause_.expires_after(kLookTime);
  pause_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    WhereMemoryAllows([this] { Look(); });
    LookLater();
  });
}

void NetworkThreads::Look() {
  const int64_t falls = account_->CountFalls();
  const bool is_new = std::exchange(falls_, falls) != falls;
  if (is_new) ReturnFreedMemory();
  size_t asked = 0;
  {
    MutexLock lock(mutex_);
    if (is_new) {
      asked_.clear();
      for (const std::thread& thread : threads_) asked_.push_back(thread.get_id());
    }
    asked = asked_.size();
  }
  // Which thread takes a step is not known: a missed one has another chance at the next look.
  for (size_t i = 0; i < asked; ++i) boost::asio::post(io_, [this] { GiveBackEnd(); });
}

void NetworkThreads::GiveBackEnd() {
  {
    MutexLock lock(mutex_);
    if (std::erase(asked_, std::this_thread::get_id()) == 0) return;
  }
  ReturnFreedEndOfThread();
}

}  // namespace reprise
