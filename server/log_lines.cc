#include "server/log_lines.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <deque>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/mutex.h"

namespace reprise {
namespace {

constexpr std::chrono::seconds kLastPatience(1);
// How often the thread checks whether to end while the lines are not read.
constexpr int kLookMs = 100;

}  // namespace

struct LogLines::State {
  // How bytes come into a descriptor.
  enum class Way {
    kFile,      // write() does not wait for a reader
    kSocket,    // send() is told not to wait
    kReopened,  // a descriptor of our own is told not to wait
    kBlocking,  // only the thread writes
  };

  State(int given, size_t most) : most_bytes(most), descriptor(given), way(WayOf(descriptor)) {}
  ~State() {
    if (way == Way::kReopened) close(descriptor);
  }

  // Finds the way of a descriptor, and replaces it by one of our own where there is one.
  static Way WayOf(int& descriptor) {
    struct stat file = {};
    if (fstat(descriptor, &file) != 0) return Way::kBlocking;
    if (S_ISREG(file.st_mode)) return Way::kFile;
    if (S_ISSOCK(file.st_mode)) return Way::kSocket;
    // The flag O_NONBLOCK belongs to all that share a descriptor: other processes, the shell.
    const std::string path = absl::StrCat("/proc/self/fd/", descriptor);
    const int own = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (own < 0) return Way::kBlocking;
    descriptor = own;
    return Way::kReopened;
  }
  bool MayBlock() const { return way == Way::kBlocking; }
  // Writes as much as possible without waiting.
  void WriteSome() REQUIRES(mutex) {
    while (!lines.empty()) {
      const absl::string_view rest = absl::string_view(lines.front()).substr(written);
      const ssize_t done = way == Way::kSocket ? send(descriptor, rest.data(), rest.size(),
                                                      MSG_DONTWAIT | MSG_NOSIGNAL)
                                               : write(descriptor, rest.data(), rest.size());
      if (done < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (done < 0 && errno == EINTR) continue;
      // It cannot be read, or a file has no room.
      if (done < 0) Drop();
      written += done < 0 ? rest.size() : static_cast<size_t>(done);
      if (written == lines.front().size()) Pop();
    }
  }
  void Pop() REQUIRES(mutex) {
    bytes -= lines.front().size();
    written = 0;
    lines.pop_front();
    if (lines.empty()) drained.NotifyAll();
  }
  void Drop() REQUIRES(mutex) {
    ++dropped;
    ++untold;
  }
  // Waits for the reader in place of the threads that add lines. The thread's work.
  void Run() EXCLUDES(mutex) {
    MutexLock lock(mutex);
    while (!ends) {
      if (lines.empty()) {
        added.Wait(mutex);
      } else if (MayBlock()) {
        std::string line;
        line.swap(lines.front());
        bytes -= line.size();
        mutex.Unlock();
        const bool done = WriteWhole(line);
        mutex.Lock();
        if (!done) Drop();
        Pop();
      } else {
        mutex.Unlock();
        WaitUntilWritable();
        mutex.Lock();
        WriteSome();
      }
    }
  }
  bool WriteWhole(absl::string_view line) const {
    while (!line.empty()) {
      const ssize_t done = write(descriptor, line.data(), line.size());
      if (done >= 0) {
        line.remove_prefix(static_cast<size_t>(done));
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        WaitUntilWritable();
      } else if (errno != EINTR) {
        return false;
      }
    }
    return true;
  }
  void WaitUntilWritable() const {
    pollfd wanted = {.fd = descriptor, .events = POLLOUT, .revents = 0};
    poll(&wanted, 1, kLookMs);
  }

  // Constant after construction.
  const size_t most_bytes;
  int descriptor;
  const Way way;
  // Guarded.
  Mutex mutex;
  std::deque<std::string> lines GUARDED_BY(mutex);
  size_t written GUARDED_BY(mutex) = 0;  // part of the first line
  size_t bytes GUARDED_BY(mutex) = 0;    // all lines together
  int64_t dropped GUARDED_BY(mutex) = 0;
  int64_t untold GUARDED_BY(mutex) = 0;
  bool ends GUARDED_BY(mutex) = false;
  // Self-synchronised.
  CondVar added;
  CondVar drained;
};

LogLines::LogLines(int descriptor, size_t most_bytes)
    : state_(std::make_shared<State>(descriptor, most_bytes)),
      thread_([state = state_] { state->Run(); }) {}

LogLines::~LogLines() {
  const bool whole = Flush(kLastPatience);
  {
    MutexLock lock(state_->mutex);
    state_->ends = true;
  }
  state_->added.NotifyAll();
  // A write that blocks may never return.
  whole || !state_->MayBlock() ? thread_.join() : thread_.detach();
}

void LogLines::Add(absl::string_view line) noexcept {
  State& state = *state_;
  MutexLock lock(state.mutex);
  const bool kept = state.bytes + line.size() <= state.most_bytes &&
                    WhereMemoryAllows([&] { state.lines.emplace_back(line); });
  if (!kept) return state.Drop();
  state.bytes += line.size();
  // After others it waits for the thread, which waits for the reader.
  if (state.lines.size() > 1) return;
  if (!state.MayBlock()) state.WriteSome();
  if (!state.lines.empty()) state.added.NotifyAll();
}

void LogLines::CountDropped() noexcept {
  MutexLock lock(state_->mutex);
  state_->Drop();
}

bool LogLines::Flush(std::chrono::nanoseconds at_most) {
  const auto end = std::chrono::steady_clock::now() + at_most;
  MutexLock lock(state_->mutex);
  while (!state_->lines.empty()) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= left.zero()) return false;
    state_->drained.WaitFor(state_->mutex, left);
  }
  return true;
}

int64_t LogLines::TakeDropped() {
  MutexLock lock(state_->mutex);
  return std::exchange(state_->dropped, 0);
}

int64_t LogLines::TakeUntold() {
  MutexLock lock(state_->mutex);
  if (state_->bytes > state_->most_bytes / 2) return 0;
  return std::exchange(state_->untold, 0);
}

}  // namespace reprise
