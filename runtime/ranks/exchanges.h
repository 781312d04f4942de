// Exchanges: how the ranks of one model give each other shares, by shared memory or by sockets.
//
// Between processes of one host a share is written to memory that all map, and read where it lies.
// Between hosts rank 0 is in the middle: it sends its own share at once, and the others' as soon as
// it has them; two ranks exchange in one step.
//
// Threads: one replay at a time; Break from any. Errors: see device/collective.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/device/collective.h"
#include "runtime/ranks/rank_socket.h"

namespace reprise {

class RankExchange : public Collective {
 public:
  RankExchange(int rank, int ranks) : rank_(rank), ranks_(ranks) {}
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  // Tells that a rank is missing: exchanges that wait end, and all later ones.
  void Break() { broken_.store(true, std::memory_order_release); }
  bool is_broken() const { return broken_.load(std::memory_order_acquire); }

  // Bytes of one rank in one exchange; larger values go in several.
  static constexpr size_t kSlotBytes = size_t{256} << 10;

 protected:
  size_t most_bytes() const override { return kSlotBytes; }

 private:
  const int rank_, ranks_;
  std::atomic<bool> broken_{false};
};

// Returns a file of memory for SharedExchange of `ranks` ranks.
absl::StatusOr<int> MakeSharedFile(int ranks);
// Maps such a file, which it closes.
absl::StatusOr<std::unique_ptr<RankExchange>> SharedExchange(int file, int rank, int ranks);

// `links`: rank 0 has one to each other rank, by its number less 1; others have one, to rank 0.
// They outlive the exchange.
std::unique_ptr<RankExchange> SocketExchange(std::vector<RankSocket*> links, int rank, int ranks);

}  // namespace reprise
