#include "runtime/sequences/page_pool.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/status_macros.h"

namespace reprise {
namespace {

// Returns a hash of `ids` after `before`, which stands for the ids before them.
uint64_t HashOfIds(uint64_t before, const PageOwner& owner, absl::Span<const int64_t> ids) {
  constexpr uint64_t kPrime = 0x9E3779B97F4A7C15;
  uint64_t hash = before * kPrime ^ (owner.key * kPrime ^ owner.salt) * kPrime;
  for (const int64_t id : ids) {
    hash = (hash ^ static_cast<uint64_t>(id)) * kPrime;
    hash ^= hash >> 29;
  }
  return hash;
}

// Returns PageChange's hash: the same in every process.
uint64_t ContentOf(uint64_t before, const PageOwner& owner, absl::Span<const int64_t> ids) {
  return std::max<uint64_t>(1, HashOfIds(before, owner, ids));
}

}  // namespace

absl::StatusOr<std::unique_ptr<PagePool>> PagePool::Create(const Options& options) {
  ASSIGN_OR_RETURN(
      Arena arena,
      Arena::Reserve({.limit_bytes = options.page_bytes * static_cast<size_t>(options.max_pages)}));
  Options granted = options;
  granted.max_pages = std::min<int64_t>(
      options.max_pages, static_cast<int64_t>(arena.limit_bytes() / options.page_bytes));
  if (granted.max_pages < 1) {
    return absl::ResourceExhaustedError("no room for a single page of keys and values");
  }
  return std::unique_ptr<PagePool>(new PagePool(granted, std::move(arena)));
}

PagePool::~PagePool() {
  for (PageId page = 0; page < static_cast<PageId>(pages_.size()); ++page) {
    if (pages_[page].registered) Tell(page, /*stored=*/false);
  }
}

PageId PagePool::Take() {
  if (free_.empty() && static_cast<int64_t>(pages_.size()) < options_.max_pages &&
      arena_.Ensure((pages_.size() + 1) * options_.page_bytes).ok()) {
    free_.push_back(static_cast<PageId>(pages_.size()));
    pages_.emplace_back();
  }
  if (free_.empty() && !Evict()) return kNoPage;
  const PageId page = free_.back();
  free_.pop_back();
  Use(page);
  return page;
}

void PagePool::Use(PageId page) {
  Page& of = pages_[page];
  ++of.holders;
  if (of.holders == 1) {
    ++held_;
    if (of.registered) --idle_;
  }
  if (of.holders == 2) ++shared_;
}

void PagePool::Drop(PageId page) {
  Page& of = pages_[page];
  --of.holders;
  if (of.holders == 1) --shared_;
  if (of.holders > 0) return;
  --held_;
  of.used = ++clock_;
  if (of.registered) {
    ++idle_;
  } else {
    free_.push_back(page);
  }
}

uint64_t PagePool::HashOf(PageId before, const PageOwner& owner, absl::Span<const int64_t> ids) {
  return HashOfIds(static_cast<uint64_t>(before) + 1, before == kNoPage ? owner : PageOwner(), ids);
}

PageId PagePool::Find(PageId before, const PageOwner& owner, absl::Span<const int64_t> ids) {
  const auto [first, last] = index_.equal_range(HashOf(before, owner, ids));
  for (auto it = first; it != last; ++it) {
    const Page& page = pages_[it->second];
    // Equality decides; a lookup for the same page began with the same ids, and owner.
    const bool same = page.before == before && (before != kNoPage || page.owner == owner) &&
                      std::equal(ids.begin(), ids.end(), page.ids.begin(), page.ids.end());
    if (!same) continue;
    Use(it->second);
    return it->second;
  }
  return kNoPage;
}

PageId PagePool::Register(PageId page, PageId before, const PageOwner& owner,
                          absl::Span<const int64_t> ids) {
  if (pages_[page].registered) return page;
  // A page builds on a registered one, or on nothing.
  if (before != kNoPage && !pages_[before].registered) return page;
  if (const PageId known = Find(before, owner, ids); known != kNoPage) {
    Drop(page);
    return known;
  }
  Page& of = pages_[page];
  const uint64_t hash = HashOf(before, owner, ids);
  of.owner = owner;
  of.ids.assign(ids.begin(), ids.end());
  index_.emplace(hash, page);
  // Nothing fails from here on: without memory the page is not registered.
  of.registered = true;
  of.before = before;
  of.hash = hash;
  of.content = ContentOf(before == kNoPage ? 0 : pages_[before].content, owner, ids);
  if (before != kNoPage) ++pages_[before].children;
  ++changes_;
  Tell(page, /*stored=*/true);
  return page;
}

void PagePool::Tell(PageId page, bool stored) const {
  if (options_.on_change == nullptr) return;
  const Page& of = pages_[page];
  options_.on_change({.stored = stored,
                      .content = of.content,
                      .before = of.before == kNoPage ? 0 : pages_[of.before].content,
                      .ids = of.ids,
                      .owner = of.owner});
}

void PagePool::Copy(PageId from, PageId to) {
  std::memcpy(address(to), address(from), options_.page_bytes);
  if (options_.on_copy != nullptr) options_.on_copy(from, to);
}

void PagePool::ForgetIdle() {
  while (Evict()) {
  }
}

bool PagePool::Evict() {
  PageId oldest = kNoPage;
  for (PageId page = 0; page < static_cast<PageId>(pages_.size()); ++page) {
    const Page& of = pages_[page];
    if (!of.registered || of.holders > 0 || of.children > 0) continue;
    if (oldest == kNoPage || of.used < pages_[oldest].used) oldest = page;
  }
  if (oldest == kNoPage) return false;
  Forget(oldest);
  free_.push_back(oldest);
  return true;
}

void PagePool::Forget(PageId page) {
  Page& of = pages_[page];
  Tell(page, /*stored=*/false);
  const auto [first, last] = index_.equal_range(of.hash);
  for (auto it = first; it != last; ++it) {
    if (it->second != page) continue;
    index_.erase(it);
    break;
  }
  if (of.before != kNoPage) --pages_[of.before].children;
  of.registered = false;
  of.before = kNoPage;
  of.ids.clear();
  ++changes_;
  --idle_;
}

}  // namespace reprise
