// PagePool: pages of keys and values, their holders, and which may be shared.
//
// A page holds a fixed number of positions of one sequence. A sequence holds its pages by
// reference; a full page may be registered under the ids that it was computed from and the page
// before it, so that another sequence that begins with the same ids finds it. A registered page
// without a holder stays until its memory is needed: the least recently used goes first, one on
// which no other registered page builds.
//
// Memory is reserved once and becomes real when a page is first handed out.
//
// Threads: one at a time, except for the counts.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "runtime/memory/arena.h"

namespace reprise {

// The owner of pages, which only sequences of the same key and salt find. The server tells keys
// apart; clients choose salts.
struct PageOwner {
  uint64_t key = 0;
  uint64_t salt = 0;

  bool operator==(const PageOwner&) const = default;
};

using PageId = int32_t;
inline constexpr PageId kNoPage = -1;

// A page that sequences may find from now on, or no longer.
struct PageChange {
  bool stored = false;
  uint64_t content = 0;           // hash of its ids, its owner and all pages before it; not 0
  uint64_t before = 0;            // the same of the page that it builds on; 0: none
  absl::Span<const int64_t> ids;  // empty where it is removed; valid during the call
  PageOwner owner;
};

class PagePool {
 public:
  struct Options {
    size_t page_bytes = 0;
    int64_t positions = 16;  // that a page has
    int64_t max_pages = 0;
    // Called by the thread that uses the pool; may be null.
    std::function<void(const PageChange&)> on_change = nullptr;
    // Called after a page was copied; may be null.
    std::function<void(PageId from, PageId to)> on_copy = nullptr;
  };
  static absl::StatusOr<std::unique_ptr<PagePool>> Create(const Options& options);
  // Tells that no page is left.
  ~PagePool();

  // Returns a page that the caller holds alone; kNoPage when all are held by sequences.
  PageId Take();
  // Adds a holder.
  void Hold(PageId page) { Use(page); }
  // Removes one holder. A page without holders that is not registered is free.
  void Drop(PageId page);
  int64_t holders(PageId page) const { return pages_[page].holders; }
  // Makes the memory of a page real that another pool with the same options has taken: the caller
  // follows its numbers, and takes none here. RESOURCE_EXHAUSTED without memory.
  absl::Status Follow(PageId page) {
    return arena_.Ensure((static_cast<size_t>(page) + 1) * options_.page_bytes);
  }
  // Copies the keys and values of a page to another.
  void Copy(PageId from, PageId to);
  // Forgets the registered pages without holders: none of them is found again.
  void ForgetIdle();

  std::byte* address(PageId page) const {
    return arena_.base() + static_cast<size_t>(page) * options_.page_bytes;
  }

  // Returns the registered page of `ids` (as many as a page has positions) after `before` (kNoPage:
  // the first), among the pages of `owner`; the caller holds it then. kNoPage where there is none.
  PageId Find(PageId before, const PageOwner& owner, absl::Span<const int64_t> ids);
  // Registers `page`, which the caller holds and which is full. Returns the page that is registered
  // under these ids: another one where that was computed meanwhile; both hold the same.
  PageId Register(PageId page, PageId before, const PageOwner& owner,
                  absl::Span<const int64_t> ids);

  const Options& options() const { return options_; }
  // Grows whenever Find may answer otherwise than before.
  int64_t changes() const { return changes_; }
  // Pages that Take can give.
  int64_t available() const { return options_.max_pages - held_; }
  // Pages that sequences hold, the ones of them with several holders, and registered ones without
  // holders.
  int64_t held() const { return held_; }
  int64_t shared() const { return shared_; }
  int64_t idle() const { return idle_; }

 private:
  struct Page {
    int32_t holders = 0;
    int32_t children = 0;  // registered pages that build on this one
    bool registered = false;
    PageId before = kNoPage;
    PageOwner owner;
    int64_t used = 0;  // when it was last let go of
    uint64_t hash = 0;
    uint64_t content = 0;  // see PageChange; 0 where nothing is told
    std::vector<int64_t> ids;
  };

  explicit PagePool(const Options& options, Arena arena)
      : options_(options), arena_(std::move(arena)) {}
  void Use(PageId page);
  // Removes a registered page without holders from the index; false: there is none.
  bool Evict();
  void Forget(PageId page);
  void Tell(PageId page, bool stored) const;
  static uint64_t HashOf(PageId before, const PageOwner& owner, absl::Span<const int64_t> ids);

  const Options options_;
  Arena arena_;
  std::vector<Page> pages_;
  std::vector<PageId> free_;
  std::unordered_multimap<uint64_t, PageId> index_;
  int64_t clock_ = 0;
  int64_t changes_ = 0;
  std::atomic<int64_t> held_{0};
  std::atomic<int64_t> shared_{0};
  std::atomic<int64_t> idle_{0};
};

}  // namespace reprise
