#include "runtime/ranks/rank_group.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ranks/hello.h"

namespace reprise {
namespace {

// The least time between signs of life, and between attempts to reach rank 0.
constexpr std::chrono::milliseconds kBeat{20};
constexpr std::chrono::milliseconds kRetry{50};
// A missing rank is seen within this many signs of life.
constexpr int kRoundsToName = 10;

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

RankGroup::RankGroup(Options options) : options_(std::move(options)) {
  state_ = absl::UnavailableError(absl::StrCat(NameOf(rank() == 0 ? 1 : 0), " has not come yet"));
  joined_.resize(static_cast<size_t>(rank() == 0 ? ranks() - 1 : 0));
  thread_ = std::thread([this] { Watch(); });
}

RankGroup::~RankGroup() {
  Stop();
  thread_.join();
}

std::string RankGroup::NameOf(int rank) const {
  return absl::StrCat("rank ", rank, " of ", ranks());
}

absl::Status RankGroup::state() const {
  MutexLock lock(mutex_);
  return state_;
}

std::shared_ptr<RankSession> RankGroup::session() const {
  MutexLock lock(mutex_);
  return session_;
}

void RankGroup::SetState(const absl::Status& state) {
  bool changed = false;
  {
    MutexLock lock(mutex_);
    changed = state_ != state;
    state_ = state;
  }
  if (!changed) return;
  options_.log(absl::StrCat("model ", identity().model, ": ",
                            state.ok() ? absl::StrCat("all ", ranks(), " ranks are there")
                                       : std::string(state.message())));
}

absl::Status RankGroup::Check(int other_rank, int other_ranks, const RankIdentity& other) const {
  const auto differs = [&](absl::string_view what, absl::string_view theirs,
                           absl::string_view ours) {
    return absl::FailedPreconditionError(absl::StrCat(NameOf(other_rank), ": its ", what, " is ",
                                                      theirs, ", and rank 0's is ", ours));
  };
  if (other_ranks != ranks()) {
    return differs("number of ranks", absl::StrCat(other_ranks), absl::StrCat(ranks()));
  }
  if (other_rank < 1 || other_rank >= ranks()) {
    return absl::FailedPreconditionError(
        absl::StrCat("rank ", other_rank, " is out of range [1, ", ranks() - 1, "]"));
  }
  const RankIdentity& own = identity();
  if (other.binary != own.binary) return differs("program", other.binary, own.binary);
  if (other.isa != own.isa) return differs("ISA", other.isa, own.isa);
  if (other.parallelism != own.parallelism) {
    return differs("parallelism", ParallelismName(other.parallelism),
                   ParallelismName(own.parallelism));
  }
  if (other.plan != own.plan) return differs("plan of the model", other.plan, own.plan);
  MutexLock lock(mutex_);
  if (session_ != nullptr && !session_->is_broken()) {
    return absl::FailedPreconditionError(absl::StrCat(NameOf(other_rank), " is there already"));
  }
  return absl::OkStatus();
}

void RankGroup::Refused(int, const absl::Status& why) {
  if (session() != nullptr) return;
  SetState(absl::UnavailableError(why.message()));
}

void RankGroup::Join(int other, RankSocket watched, RankSocket messages) {
  {
    MutexLock lock(mutex_);
    Joined& place = joined_[static_cast<size_t>(other - 1)];
    place = {.watched = std::move(watched), .messages = std::move(messages)};
  }
  TryComplete();
}

void RankGroup::TryComplete() {
  const auto ends = [this] { return stop_.load(); };
  auto session = std::make_shared<RankSession>();
  int missing = 0;
  {
    MutexLock lock(mutex_);
    if (session_ != nullptr) return;
    for (size_t i = 0; i < joined_.size() && missing == 0; ++i) {
      // One that has left meanwhile is noticed before the others are told.
      char byte = 0;
      if (joined_[i].is_here() && joined_[i].watched.TryReceive(&byte, 1) < 0) joined_[i] = {};
      if (!joined_[i].is_here()) missing = static_cast<int>(i) + 1;
    }
    for (Joined& one : joined_) {
      if (missing > 0) break;
      session->watched.push_back(std::move(one.watched));
      session->messages.push_back(std::move(one.messages));
      one = {};
    }
  }
  if (missing > 0) {
    // The reason that is known of it says more.
    if (!absl::StartsWith(state().message(), NameOf(missing))) {
      SetState(absl::UnavailableError(absl::StrCat(NameOf(missing), " is missing")));
    }
    return;
  }
  const auto complete = [&]() -> absl::Status {
    int file = -1;
    if (options_.address.is_local()) {
      ASSIGN_OR_RETURN(file, MakeSharedFile(ranks()));
    }
    absl::Status status;
    for (RankSocket& one : session->messages) {
      if (status.ok()) status = one.SendFrame(kRankComplete, ends);
      if (status.ok() && file >= 0) status = one.SendFile(file);
    }
    if (file >= 0) {
      ASSIGN_OR_RETURN(session->exchange, SharedExchange(file, 0, ranks()));
      return status;
    }
    std::vector<RankSocket*> links;
    for (RankSocket& one : session->messages) links.push_back(&one);
    session->exchange = SocketExchange(std::move(links), 0, ranks());
    return status;
  };
  if (const absl::Status status = complete(); !status.ok()) {
    SetState(absl::UnavailableError(absl::StrCat("the ranks cannot begin: ", status.message())));
    return;
  }
  Begin(std::move(session));
}

void RankGroup::Begin(std::shared_ptr<RankSession> session) {
  {
    MutexLock lock(mutex_);
    session_ = std::move(session);
  }
  ++sessions_;
  SetState(absl::OkStatus());
}

absl::StatusOr<std::shared_ptr<RankSession>> RankGroup::Dial() {
  const auto ends = [this] { return stop_.load(); };
  std::random_device random;
  RankHello hello = {.token = absl::StrCat(getpid(), "-", random()),
                     .rank = rank(),
                     .ranks = ranks(),
                     .identity = identity()};
  auto session = std::make_shared<RankSession>();
  for (const bool is_watched : {false, true}) {
    ASSIGN_OR_RETURN(RankSocket socket, Connect(options_.address));
    hello.is_watched = is_watched;
    RETURN_IF_ERROR(socket.SendFrame(hello.Text(), ends));
    (is_watched ? session->watched : session->messages).push_back(std::move(socket));
  }
  RankSocket& messages = session->messages[0];
  ASSIGN_OR_RETURN(const std::string answer, messages.ReceiveFrame(kMostHello, ends));
  if (answer != kRankComplete) return absl::FailedPreconditionError(answer);
  if (options_.address.is_local()) {
    ASSIGN_OR_RETURN(const int file, messages.ReceiveFile(ends));
    ASSIGN_OR_RETURN(session->exchange, SharedExchange(file, rank(), ranks()));
  } else {
    session->exchange = SocketExchange({&messages}, rank(), ranks());
  }
  return session;
}

void RankGroup::Watch() {
  while (!stop_) {
    std::shared_ptr<RankSession> session = this->session();
    if (session == nullptr && rank() > 0) {
      absl::StatusOr<std::shared_ptr<RankSession>> dialed = Dial();
      if (dialed.ok()) {
        Begin(*std::move(dialed));
      } else if (absl::IsFailedPrecondition(dialed.status())) {
        SetState(absl::UnavailableError(dialed.status().message()));
      } else if (!stop_) {
        SetState(absl::UnavailableError(
            absl::StrCat(NameOf(0), " cannot be reached at ", options_.address.Text())));
      }
    } else if (session != nullptr) {
      Keep(*session);
    }
    if (this->session() == nullptr && !stop_) std::this_thread::sleep_for(kRetry);
  }
}

void RankGroup::Keep(RankSession& session) {
  std::vector<int64_t> heard(session.watched.size(), NowNs());
  int rounds_broken = 0;
  while (!stop_) {
    for (size_t i = 0; i < session.watched.size(); ++i) {
      const int other = rank() > 0 ? 0 : static_cast<int>(i) + 1;
      char bytes[64];
      ssize_t received = 0;
      while ((received = session.watched[i].TryReceive(bytes, sizeof(bytes))) > 0) {
        heard[i] = NowNs();
      }
      const char beat = 0;
      if (received < 0 || session.watched[i].TrySend(&beat, 1) < 0) {
        return End(session, other, "has ended");
      }
      if (NowNs() - heard[i] > kSilentNs) {
        return End(session, other, "has stopped: it sends no sign of life");
      }
    }
    // The rank that is missing is seen here as well, in a moment.
    if (session.is_broken() && ++rounds_broken > kRoundsToName) {
      return End(session, rank() > 0 ? 0 : 1, "or a later one has left a replay");
    }
    if (session.watched.size() == 1) {
      session.watched[0].Wait(/*to_read=*/true, /*to_write=*/false);
    }
    std::this_thread::sleep_for(kBeat);
  }
  End(session, rank(), "is being stopped");
}

void RankGroup::End(RankSession& session, int other, absl::string_view why) {
  session.exchange->Break();
  for (RankSocket& one : session.watched) one.Shutdown();
  for (RankSocket& one : session.messages) one.Shutdown();
  {
    MutexLock lock(mutex_);
    session_ = nullptr;
  }
  SetState(absl::UnavailableError(absl::StrCat(NameOf(other), " ", why)));
}

absl::Status RankGroup::Send(RankSession& session, absl::string_view message) {
  for (RankSocket& one : session.messages) {
    const absl::Status sent = one.SendFrame(message, [&] { return stop_ || session.is_broken(); });
    if (sent.ok()) continue;
    session.exchange->Break();
    return WhyBroken();
  }
  return absl::OkStatus();
}

absl::Status RankGroup::WhyBroken() const {
  // Long enough for the other thread to see it.
  const int64_t begin = NowNs();
  while (NowNs() - begin < 2 * kSilentNs) {
    if (absl::Status known = state(); !known.ok()) return known;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return absl::UnavailableError("a rank has left a replay");
}

absl::StatusOr<std::string> RankGroup::Receive(RankSession& session) {
  const int64_t begin = NowNs();
  constexpr int64_t kMost = 50'000'000;
  RankSocket& link = session.messages[0];
  RETURN_IF_ERROR(
      link.Await([&] { return stop_ || session.is_broken() || NowNs() - begin > kMost; }));
  return link.ReceiveFrame(kMostMessage, [&] { return stop_ || session.is_broken(); });
}

void RankGroup::Stop() { stop_ = true; }

}  // namespace reprise
