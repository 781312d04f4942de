#include <algorithm>
#include <chrono>
#include <cstring>

#include "runtime/ranks/exchanges.h"

namespace reprise {
namespace {

// Looks at sockets without sleeping for this long, about as long as a message takes to another host
// and back.
constexpr std::chrono::microseconds kSocketAwake{200};

// Bytes that are still to go through one socket, in both directions.
struct Transfer {
  RankSocket* link = nullptr;
  const std::byte* out = nullptr;
  size_t out_bytes = 0;
  std::byte* in = nullptr;
  size_t in_bytes = 0;

  bool done() const { return out_bytes == 0 && in_bytes == 0; }
  // Returns the bytes that went; -1: the other side is gone.
  ssize_t Go() {
    ssize_t sent = 0, received = 0;
    if (out_bytes > 0) sent = link->TrySend(out, out_bytes);
    if (in_bytes > 0) received = link->TryReceive(in, in_bytes);
    if (sent < 0 || received < 0) return -1;
    out += sent;
    out_bytes -= static_cast<size_t>(sent);
    in += received;
    in_bytes -= static_cast<size_t>(received);
    return sent + received;
  }
};

class SocketRankExchange final : public RankExchange {
 public:
  SocketRankExchange(std::vector<RankSocket*> links, int rank, int ranks)
      : RankExchange(rank, ranks),
        links_(std::move(links)),
        received_(static_cast<size_t>(ranks) * kSlotBytes) {}

 protected:
  bool Exchange(const std::byte* mine, const size_t* bytes, const std::byte** theirs) override {
    if (is_broken()) return false;
    // Shares lie one after another, as they travel.
    size_t at[kMostRanks + 1] = {0};
    for (int r = 0; r < ranks(); ++r) {
      at[r + 1] = at[r] + bytes[r];
      theirs[r] = received_.data() + at[r];
    }
    std::byte* const all = received_.data();
    std::memcpy(all + at[rank()], mine, bytes[rank()]);
    Transfer transfers[2 * kMostRanks];
    if (rank() > 0) {
      // Shares of lower ranks, then of higher ones.
      transfers[0] = {links_[0], all + at[rank()], bytes[rank()], all, at[rank()]};
      if (!Finish(transfers, 1)) return false;
      const size_t rest = at[ranks()] - at[rank() + 1];
      transfers[0] = {links_[0], nullptr, 0, all + at[rank() + 1], rest};
      return Finish(transfers, 1);
    }
    for (int r = 1; r < ranks(); ++r) {
      transfers[r - 1] = {links_[r - 1], all, bytes[0], all + at[r], bytes[r]};
    }
    if (!Finish(transfers, ranks() - 1)) return false;
    if (ranks() == 2) return true;
    for (int r = 1; r < ranks(); ++r) {
      transfers[2 * r - 2] = {links_[r - 1], all + at[1], at[r] - at[1], nullptr, 0};
      transfers[2 * r - 1] = {links_[r - 1], all + at[r + 1], at[ranks()] - at[r + 1], nullptr, 0};
    }
    // The two of one link in order.
    for (int r = 1; r < ranks(); ++r) {
      if (!Finish(&transfers[2 * r - 2], 1) || !Finish(&transfers[2 * r - 1], 1)) return false;
    }
    return true;
  }

 private:
  // Returns false where a rank is missing.
  bool Finish(Transfer* transfers, int count) {
    auto begin = std::chrono::steady_clock::now();
    for (;;) {
      bool done = true, moved = false;
      for (int i = 0; i < count; ++i) {
        if (transfers[i].done()) continue;
        const ssize_t bytes = transfers[i].Go();
        if (bytes < 0) {
          Break();
          return false;
        }
        moved |= bytes > 0;
        done &= transfers[i].done();
      }
      if (done) return true;
      if (is_broken()) return false;
      const auto now = std::chrono::steady_clock::now();
      if (moved) {
        begin = now;
      } else if (now - begin > kSocketAwake) {
        Transfer* const first =
            std::find_if(transfers, transfers + count, [](const Transfer& t) { return !t.done(); });
        first->link->Wait(first->in_bytes > 0, first->out_bytes > 0);
      }
    }
  }

  const std::vector<RankSocket*> links_;
  std::vector<std::byte> received_;
};

}  // namespace

std::unique_ptr<RankExchange> SocketExchange(std::vector<RankSocket*> links, int rank, int ranks) {
  return std::make_unique<SocketRankExchange>(std::move(links), rank, ranks);
}

}  // namespace reprise
