#include "runtime/base/parallel_for.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <new>
#include <set>
#include <thread>

namespace reprise {
namespace {

TEST(ParallelForTest, EveryLaneIsCalledOnceAndTheFirstOnTheCallersThread) {
  std::array<std::thread::id, 3> threads;
  std::array<std::atomic<int>, 3> calls{};
  ParallelFor(3, [&](int lane) {
    threads[lane] = std::this_thread::get_id();
    ++calls[lane];
  });
  for (const std::atomic<int>& called : calls) EXPECT_EQ(called, 1);
  EXPECT_EQ(threads[0], std::this_thread::get_id());
  EXPECT_EQ(std::set(threads.begin(), threads.end()).size(), 3);
}

TEST(ParallelForTest, OneLaneStartsNoThread) {
  std::thread::id thread;
  ParallelFor(1, [&](int) { thread = std::this_thread::get_id(); });
  EXPECT_EQ(thread, std::this_thread::get_id());
}

TEST(ParallelForTest, WhatALaneThrowsIsThrownAtTheCallerWhenAllHaveEnded) {
  std::atomic<int> ended{0};
  const auto work = [&](int lane) {
    if (lane == 1) throw std::bad_alloc();
    ++ended;
  };
  EXPECT_THROW(ParallelFor(3, work), std::bad_alloc);
  EXPECT_EQ(ended, 2);
}

}  // namespace
}  // namespace reprise
