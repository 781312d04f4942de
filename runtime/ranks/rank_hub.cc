#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ranks/hello.h"
#include "runtime/ranks/rank_group.h"

namespace reprise {
namespace {

// A connection says what it is for within this time.
constexpr std::chrono::seconds kHelloTime{1};
// Connections for messages whose other one does not come: the oldest are dropped.
constexpr size_t kMostHalves = size_t{2} * Collective::kMostRanks;

}  // namespace

struct RankHub::Half {
  std::string token;
  RankSocket messages;
};

absl::StatusOr<std::unique_ptr<RankHub>> RankHub::Open(Options options) {
  RankSocket listener;
  if (options.rank == 0) {
    ASSIGN_OR_RETURN(listener, Listen(options.address));
    if (options.address.port == "0") options.address.port = absl::StrCat(PortOf(listener));
  }
  return std::unique_ptr<RankHub>(new RankHub(std::move(options), std::move(listener)));
}

RankHub::RankHub(Options options, RankSocket listener)
    : options_(std::move(options)), listener_(std::move(listener)) {
  if (listener_.is_open()) thread_ = std::thread([this] { Serve(); });
}

RankHub::~RankHub() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<RankGroup> RankHub::MakeGroup(const std::string& model, const std::string& plan) {
  auto group = std::make_shared<RankGroup>(
      RankGroup::Options{.rank = rank(),
                         .ranks = ranks(),
                         .address = options_.address,
                         .identity = {.model = model,
                                      .binary = options_.binary,
                                      .isa = options_.isa,
                                      .plan = plan,
                                      .parallelism = options_.parallelism},
                         .log = options_.log});
  MutexLock lock(mutex_);
  std::erase_if(groups_, [](const auto& one) { return one.expired(); });
  groups_.push_back(group);
  return group;
}

void RankHub::Serve() {
  while (!stop_) {
    RankSocket socket = Accept(listener_);
    if (socket.is_open()) Greet(std::move(socket));
  }
}

void RankHub::Greet(RankSocket socket) {
  const auto begin = std::chrono::steady_clock::now();
  const auto ends = [&] { return stop_ || std::chrono::steady_clock::now() - begin > kHelloTime; };
  const absl::StatusOr<std::string> text = socket.ReceiveFrame(kMostHello, ends);
  if (!text.ok()) return;
  const absl::StatusOr<RankHello> hello = RankHello::Parse(*text);
  if (!hello.ok()) {
    options_.log(std::string(hello.status().message()));
    return;
  }
  RankSocket messages;
  std::shared_ptr<RankGroup> group;
  {
    MutexLock lock(mutex_);
    if (!hello->is_watched) {
      if (halves_.size() >= kMostHalves) halves_.erase(halves_.begin());
      halves_.push_back({.token = hello->token, .messages = std::move(socket)});
      return;
    }
    const auto half = std::find_if(halves_.begin(), halves_.end(),
                                   [&](const Half& one) { return one.token == hello->token; });
    if (half == halves_.end()) return;
    messages = std::move(half->messages);
    halves_.erase(half);
    for (const std::weak_ptr<RankGroup>& one : groups_) {
      std::shared_ptr<RankGroup> known = one.lock();
      if (known != nullptr && known->identity().model == hello->identity.model) group = known;
    }
  }
  absl::Status status = group == nullptr
                            ? absl::NotFoundError(absl::StrCat("rank 0 has not loaded model ",
                                                               hello->identity.model, " yet"))
                            : group->Check(hello->rank, hello->ranks, hello->identity);
  if (status.ok()) return group->Join(hello->rank, std::move(socket), std::move(messages));
  if (group != nullptr) group->Refused(hello->rank, status);
  (void)messages.SendFrame(status.message(), ends);
}

}  // namespace reprise
