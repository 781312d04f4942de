#include "runtime/sequences/page_pool.h"

#include <gtest/gtest.h>

#include <vector>

namespace reprise {
namespace {

std::unique_ptr<PagePool> Pool(int64_t pages) {
  auto pool = PagePool::Create({.page_bytes = 256, .positions = 2, .max_pages = pages});
  EXPECT_TRUE(pool.ok());
  return *std::move(pool);
}

using Ids = std::vector<int64_t>;

TEST(PagePoolTest, PagesThatAreLetGoOfAreHandedOutAgain) {
  const auto pool = Pool(2);
  const PageId a = pool->Take(), b = pool->Take();
  EXPECT_NE(pool->address(a), pool->address(b));
  EXPECT_EQ(pool->Take(), kNoPage);
  pool->Drop(a);
  EXPECT_EQ(pool->available(), 1);
  EXPECT_EQ(pool->Take(), a);
}

TEST(PagePoolTest, ARegisteredPageIsFoundByItsIdsAndWhatIsBeforeIt) {
  const auto pool = Pool(4);
  PageId first = pool->Take(), second = pool->Take();
  first = pool->Register(first, kNoPage, {}, Ids{1, 2});
  second = pool->Register(second, first, {}, Ids{3, 4});
  pool->Drop(second);
  pool->Drop(first);
  EXPECT_EQ(pool->held(), 0);
  EXPECT_EQ(pool->Find(kNoPage, {}, Ids{3, 4}), kNoPage);
  // Another owner's: salts tell the requests of one key apart, and keys all requests.
  EXPECT_EQ(pool->Find(kNoPage, {.salt = 7}, Ids{1, 2}), kNoPage);
  EXPECT_EQ(pool->Find(kNoPage, {.key = 7}, Ids{1, 2}), kNoPage);
  ASSERT_EQ(pool->Find(kNoPage, {}, Ids{1, 2}), first);
  ASSERT_EQ(pool->Find(first, {}, Ids{3, 4}), second);
  EXPECT_EQ(pool->held(), 2);
  ASSERT_EQ(pool->Find(kNoPage, {}, Ids{1, 2}), first);
  EXPECT_EQ(pool->shared(), 1);
}

TEST(PagePoolTest, TwoThatComputedTheSameShareOnePageAfterwards) {
  const auto pool = Pool(4);
  const PageId a = pool->Register(pool->Take(), kNoPage, {}, Ids{1, 2});
  const PageId b = pool->Take();
  EXPECT_EQ(pool->Register(b, kNoPage, {}, Ids{1, 2}), a);
  EXPECT_EQ(pool->holders(a), 2);
  EXPECT_EQ(pool->held(), 1);
}

TEST(PagePoolTest, TheLeastRecentlyUsedPageOnWhichNoneBuildsIsEvictedFirst) {
  const auto pool = Pool(3);
  PageId root = pool->Register(pool->Take(), kNoPage, {}, Ids{1, 2});
  PageId leaf = pool->Register(pool->Take(), root, {}, Ids{3, 4});
  PageId other = pool->Register(pool->Take(), kNoPage, {}, Ids{5, 6});
  pool->Drop(root);
  pool->Drop(leaf);
  pool->Drop(other);
  EXPECT_EQ(pool->Take(), leaf);  // the root is older, and carries it
  EXPECT_EQ(pool->Find(root, {}, Ids{3, 4}), kNoPage);
  EXPECT_EQ(pool->Take(), root);
  EXPECT_EQ(pool->Take(), other);
  EXPECT_EQ(pool->Take(), kNoPage);
}

struct Told {
  bool stored;
  uint64_t content, before;
  Ids ids;
};

std::unique_ptr<PagePool> TellingPool(int64_t pages, std::vector<Told>& told) {
  auto pool = PagePool::Create({.page_bytes = 256,
                                .positions = 2,
                                .max_pages = pages,
                                .on_change = [&told](const PageChange& change) {
                                  told.push_back({change.stored, change.content, change.before,
                                                  Ids(change.ids.begin(), change.ids.end())});
                                }});
  EXPECT_TRUE(pool.ok());
  return *std::move(pool);
}

TEST(PagePoolTest, ChangesAreToldByContentWhicheverPagesHaveIt) {
  std::vector<Told> first, second;
  {
    const auto pool = TellingPool(3, first);
    const PageId root = pool->Register(pool->Take(), kNoPage, {}, Ids{1, 2});
    const PageId leaf = pool->Register(pool->Take(), root, {}, Ids{3, 4});
    pool->Register(pool->Take(), root, {}, Ids{3, 4});  // the same: nothing is new
    ASSERT_EQ(first.size(), 2);
    EXPECT_EQ(first[0].ids, Ids({1, 2}));
    EXPECT_EQ(first[0].before, 0);
    EXPECT_EQ(first[1].before, first[0].content);
    EXPECT_NE(first[1].content, first[0].content);
    EXPECT_NE(first[0].content, 0);
    while (pool->holders(leaf) > 0) pool->Drop(leaf);
    pool->Drop(root);
    // Others take the memory of both: the one that builds on the other goes first.
    for (int i = 0; i < 3; ++i) ASSERT_NE(pool->Take(), kNoPage);
    ASSERT_EQ(first.size(), 4);
    EXPECT_FALSE(first[2].stored || first[3].stored);
    EXPECT_EQ(first[2].content, first[1].content);
    EXPECT_EQ(first[3].content, first[0].content);
  }
  EXPECT_EQ(first.size(), 4);
  {
    const auto pool = TellingPool(8, second);
    pool->Register(pool->Take(), kNoPage, {.key = 1}, Ids{1, 2});
    pool->Take();
    const PageId root = pool->Register(pool->Take(), kNoPage, {}, Ids{1, 2});
    pool->Register(pool->Take(), root, {}, Ids{3, 4});
    ASSERT_EQ(second.size(), 3);
    EXPECT_NE(second[0].content, first[0].content) << "of another key";
    EXPECT_EQ(second[1].content, first[0].content);
    EXPECT_EQ(second[2].content, first[1].content);
  }
  EXPECT_EQ(second.size(), 6) << "a pool that ends has no pages";
}

}  // namespace
}  // namespace reprise
