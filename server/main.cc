// reprised: parses the flags, starts the daemon, and waits for the signal that ends it.

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "runtime/base/address_space.h"
#include "runtime/base/file_faults.h"
#include "runtime/base/heap.h"
#include "runtime/base/memory_net.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/custom/op_library.h"
#include "server/config/flags.h"
#include "server/daemon.h"
#include "server/descriptor_limit.h"
#include "server/log.h"
#include "server/repository/flat_model.h"

namespace reprise {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitBadFlags = 2;
constexpr int kExitCompiled = 3;
// The collector of the log may take this time for the last lines.
constexpr std::chrono::milliseconds kLastLinesTime(500);

// Blocks signals on all threads, which inherit the mask: only threads that ask get them. A terminal
// that is closed ends its processes with SIGHUP, except those started with nohup.
sigset_t BlockEndingSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  struct sigaction at_hangup = {};
  if (sigaction(SIGHUP, nullptr, &at_hangup) == 0 && at_hangup.sa_handler != SIG_IGN) {
    sigaddset(&signals, SIGHUP);
  }
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit of files is an error of that write
  return signals;
}

int WaitForSignal(const sigset_t& signals) {
  int number = 0;
  while (sigwait(&signals, &number) != 0) {
  }
  return number;
}

// Returns the next of `signals`, or 0 when `end` comes first.
int WaitForSignalUntil(const sigset_t& signals, std::chrono::steady_clock::time_point end) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0) return 0;
    const timespec time = {.tv_sec = left.count() / 1'000'000'000,
                           .tv_nsec = left.count() % 1'000'000'000};
    if (const int number = sigtimedwait(&signals, nullptr, &time); number > 0) return number;
  }
}

// Ends the process at a second signal, and at the end of its time whatever hangs. A thread's work.
void EndAtOnce(const sigset_t& signals, std::chrono::steady_clock::time_point end,
               const std::atomic<const char*>& step, Log& log) {
  const int second = WaitForSignalUntil(signals, end);
  if (second > 0) {
    log.Write(LogLevel::kWarning,
              absl::StrCat("signal ", second, " while draining: ending at once"));
  } else {
    log.Write(LogLevel::kError, absl::StrCat("the time to shut down is over, still waiting for: ",
                                             step.load(), "; ending at once"));
  }
  log.Flush(kLastLinesTime);
  std::_Exit(second > 0 ? 128 + second : kExitFailed);
}

absl::Status LoadOpLibraries(const std::vector<std::string>& files, Log& log) {
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const std::vector<std::string> ops, LoadOpLibrary(file));
    log.Write(LogLevel::kInfo,
              absl::StrCat("op library ", file, " brings ", absl::StrJoin(ops, ", ")));
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  auto parsed = ParseFlags(argc, argv, REPRISE_VERSION);
  if (!parsed.ok()) {
    std::fprintf(stderr, "reprised: %s\n", std::string(parsed.status().message()).c_str());
    return kExitBadFlags;
  }
  if (!parsed->answer.empty()) {
    std::fputs(parsed->answer.c_str(), stdout);
    return EXIT_SUCCESS;
  }
  if (const absl::Status chosen =
          ChooseVariant(parsed->options.variant, parsed->options.model_repositories);
      !chosen.ok()) {
    std::fprintf(stderr, "reprised: %s\n", std::string(chosen.message()).c_str());
    return kExitBadFlags;
  }
  const sigset_t signals = BlockEndingSignals();
  CatchFileFaults();
  SpareAddresses();
  KeepFreedMemory();
  RaiseDescriptorLimit();
  // Else Debian's Abseil looks for cycles among gRPC's locks whenever one is taken.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const std::shared_ptr<Log> log =
      Log::ToStandardError(parsed->options.log_format, parsed->options.log_levels);
  for (const std::string& unknown : parsed->unknown_variables) {
    log->Write(LogLevel::kWarning, unknown);
  }
  if (const absl::Status loaded = LoadOpLibraries(parsed->options.op_libraries, *log);
      !loaded.ok()) {
    log->Write(LogLevel::kError, loaded.message());
    return kExitFailed;
  }
  std::atomic<int> code = EXIT_SUCCESS;
  auto daemon =
      Daemon::Start(parsed->options, REPRISE_VERSION, *log, [&log, &code](const absl::Status& why) {
        log->Write(LogLevel::kError, why.message());
        code = kExitFailed;
        kill(getpid(), SIGTERM);
      });
  if (!daemon.ok()) {
    log->Write(LogLevel::kError, daemon.status().message());
    return kExitFailed;
  }
  const int first = WaitForSignal(signals);
  log->Write(LogLevel::kInfo,
             absl::StrCat("signal ", first, ": draining; a second one ends at once"));
  const std::chrono::seconds time = Daemon::ExitTime(parsed->options);
  const auto end = std::chrono::steady_clock::now() + time;
  std::atomic<const char*> step{"requests"};
  const bool bounded = WhereMemoryAllows([&] {
    std::thread([&signals, &step, end, log] { EndAtOnce(signals, end, step, *log); }).detach();
  });
  // Without a thread for it the system ends the process.
  if (!bounded) alarm(static_cast<unsigned>(time.count()));
  (*daemon)->Drain([&step](const char* next) { step = next; });
  if (const int64_t late = (*daemon)->late_compiles(); late > 0) {
    log->Write(LogLevel::kError, absl::StrCat("--fail-on-compile: ", late,
                                              late == 1 ? " recipe was" : " recipes were",
                                              " compiled once the server was ready"));
    code = kExitCompiled;
  }
  daemon->reset();
  log->Write(LogLevel::kInfo, "stopped");
  return code;
}

}  // namespace
}  // namespace reprise

int main(int argc, char** argv) {
  int code = reprise::kExitFailed;
  const absl::Status ran = reprise::WithinMemory([] { return "reprised"; },
                                                 [&] {
                                                   code = reprise::Main(argc, argv);
                                                   return absl::OkStatus();
                                                 });
  if (ran.ok()) return code;
  std::fprintf(stderr, "%s\n", std::string(ran.message()).c_str());
  return reprise::kExitFailed;
}
