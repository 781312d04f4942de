// RankGroup: the processes that compute one model together, as one of them sees it.
//
// Rank 0 has the requests: before each replay it sends the others a message that says which recipe
// they run and over what. The ranks of a group are complete or there is none: when one is missing
// all links are given up, the state names it, and the group is made again as soon as all are back.
//
// Each link has two sockets. Messages and, between hosts, shares of values go through one; through
// the other both sides send a byte many times a second, so that a process that was stopped is told
// from one that computes for long. A process that ends closes both.
//
// A rank joins where it agrees with rank 0: the number of ranks, the program, the vector
// instructions, how they divide the model, and its plan (weights and graph, pages).
//
// Threads: state, Send, Receive and Stop from any; one replay at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "runtime/base/mutex.h"
#include "runtime/ops/kit/parallelism.h"
#include "runtime/ranks/exchanges.h"
#include "runtime/ranks/rank_socket.h"

namespace reprise {

// All that must be equal on all ranks of a model.
struct RankIdentity {
  std::string model;   // name and version
  std::string binary;  // digest of the program
  std::string isa;     // "avx512_vnni"
  std::string plan;    // digest of weights and graph, and the pages
  Parallelism parallelism = Parallelism::kTensor;
};

// The links of a complete group. One that is broken stays so.
struct RankSession {
  std::vector<RankSocket> watched;   // rank 0: one a rank, from rank 1 on; others: to rank 0
  std::vector<RankSocket> messages;  // the same order
  std::unique_ptr<RankExchange> exchange;

  bool is_broken() const { return exchange->is_broken(); }
};

class RankGroup {
 public:
  struct Options {
    int rank = 0, ranks = 1;
    RankAddress address;
    RankIdentity identity;
    std::function<void(const std::string& line)> log = [](const std::string&) {};
  };
  explicit RankGroup(Options options);
  ~RankGroup();

  int rank() const { return options_.rank; }
  int ranks() const { return options_.ranks; }
  const RankIdentity& identity() const { return options_.identity; }

  // OK while the group is complete; else UNAVAILABLE that names the rank that is missing, and why.
  absl::Status state() const EXCLUDES(mutex_);
  // Grows with each group that was complete: what was computed before is lost on the other ranks.
  int64_t sessions() const { return sessions_; }
  // Returns the links of now; null while the group is not complete.
  std::shared_ptr<RankSession> session() const EXCLUDES(mutex_);

  // Rank 0: sends `message` to all others. Errors: as state().
  absl::Status Send(RankSession& session, absl::string_view message);
  // Returns the state once a session has broken, which names the rank.
  absl::Status WhyBroken() const EXCLUDES(mutex_);
  // Others: returns the next message; CANCELLED after some milliseconds without one.
  absl::StatusOr<std::string> Receive(RankSession& session);

  // Rank 0: takes a connection whose hello named this model (see RankHub).
  void Join(int rank, RankSocket watched, RankSocket messages) EXCLUDES(mutex_);
  // Rank 0: returns why a process with this hello may not join; OK: it may.
  absl::Status Check(int rank, int ranks, const RankIdentity& other) const EXCLUDES(mutex_);
  // Rank 0: a process was refused; the state says so until one joins.
  void Refused(int rank, const absl::Status& why) EXCLUDES(mutex_);

  // Links are given up, and no new ones made.
  void Stop() EXCLUDES(mutex_);

  // A rank that sends nothing for this long has been stopped.
  static constexpr int64_t kSilentNs = 1'000'000'000;
  static constexpr size_t kMostMessage = size_t{64} << 20;

 private:
  void Watch();
  // Rank 0: makes the session once all ranks have joined.
  void TryComplete() EXCLUDES(mutex_);
  // Others: connects to rank 0, and returns when the group is complete or refused.
  absl::StatusOr<std::shared_ptr<RankSession>> Dial();
  void Begin(std::shared_ptr<RankSession> session) EXCLUDES(mutex_);
  // Sends and receives signs of life until the session ends.
  void Keep(RankSession& session) EXCLUDES(mutex_);
  void End(RankSession& session, int rank, absl::string_view why) EXCLUDES(mutex_);
  void SetState(const absl::Status& state) EXCLUDES(mutex_);
  // "rank 1 of 2"
  std::string NameOf(int rank) const;

  struct Joined {
    RankSocket watched, messages;
    bool is_here() const { return watched.is_open(); }
  };

  const Options options_;
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> sessions_{0};
  mutable Mutex mutex_;
  absl::Status state_ GUARDED_BY(mutex_);
  std::shared_ptr<RankSession> session_ GUARDED_BY(mutex_);
  std::vector<Joined> joined_ GUARDED_BY(mutex_);  // rank 0: those that wait for the others
  std::thread thread_;
};

// RankHub: the place where the ranks of all models of a process meet.
//
// Rank 0 listens and hands connections to the group of their model; other ranks connect.
//
// Ownership: borrows nothing. Threads: all methods from any.
class RankHub {
 public:
  struct Options {
    int rank = 0, ranks = 1;
    RankAddress address;
    std::string binary, isa;  // see RankIdentity
    Parallelism parallelism = Parallelism::kTensor;
    std::function<void(const std::string& line)> log = [](const std::string&) {};
  };
  // UNAVAILABLE where rank 0 cannot listen.
  static absl::StatusOr<std::unique_ptr<RankHub>> Open(Options options);
  ~RankHub();

  int rank() const { return options_.rank; }
  int ranks() const { return options_.ranks; }
  Parallelism parallelism() const { return options_.parallelism; }
  // Returns where rank 0 listens: with the port that it was given.
  const RankAddress& address() const { return options_.address; }

  // Returns the group of a model, which forms by itself. One a model and version at a time.
  std::shared_ptr<RankGroup> MakeGroup(const std::string& model, const std::string& plan);

 private:
  RankHub(Options options, RankSocket listener);
  void Serve();
  // Reads the hello of a connection, and hands it on.
  void Greet(RankSocket socket) EXCLUDES(mutex_);

  struct Half;  // a connection for messages, whose other one has not come yet

  Options options_;
  const RankSocket listener_;
  std::atomic<bool> stop_{false};
  Mutex mutex_;
  std::vector<std::weak_ptr<RankGroup>> groups_ GUARDED_BY(mutex_);
  std::vector<Half> halves_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace reprise
