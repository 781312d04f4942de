#include "runtime/ranks/rank_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <thread>

#include "runtime/ranks/hello.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using testing::HasSubstr;

constexpr char kModel[] = "'m' version 1";

// The ranks of one model, each with the objects of a process of its own.
class Ranks {
 public:
  Ranks(int ranks, bool local) : local_(local), hubs_(ranks), groups_(ranks) {
    for (int rank = 0; rank < ranks; ++rank) Start(rank);
  }

  void Start(int rank, const std::string& isa = "avx2", const std::string& plan = "p",
             Parallelism parallelism = Parallelism::kTensor) {
    RankAddress address;
    if (local_) {
      address.path = folder_.File("ranks");
    } else {
      address = *RankAddress::Parse("127.0.0.1:0");
      if (rank > 0) address = hubs_[0]->address();
    }
    auto hub = RankHub::Open({.rank = rank,
                              .ranks = static_cast<int>(hubs_.size()),
                              .address = address,
                              .binary = "b",
                              .isa = isa,
                              .parallelism = parallelism});
    ASSERT_TRUE(hub.ok()) << hub.status();
    hubs_[rank] = *std::move(hub);
    groups_[rank] = hubs_[rank]->MakeGroup(kModel, plan);
  }
  void Stop(int rank) {
    groups_[rank] = nullptr;
    hubs_[rank] = nullptr;
  }
  RankGroup& operator[](int rank) { return *groups_[rank]; }
  int size() const { return static_cast<int>(groups_.size()); }

  // Waits until the state of `rank` is there, or is not; returns it.
  absl::Status Await(int rank, bool there) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (;;) {
      const absl::Status state = groups_[rank]->state();
      if (state.ok() == there || std::chrono::steady_clock::now() > end) return state;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  // Waits until the state of rank 0 names `text`.
  std::string AwaitReason(const std::string& text) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (;;) {
      const std::string state(groups_[0]->state().message());
      if (state.find(text) != std::string::npos || std::chrono::steady_clock::now() > end) {
        return state;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  void AwaitAll() {
    for (int rank = 0; rank < size(); ++rank) ASSERT_TRUE(Await(rank, true).ok());
  }
  // Runs `work` for each rank on a thread of its own.
  template <class Work>
  void Each(const Work& work) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size(); ++rank) {
      threads.emplace_back([&, rank] { work(rank, *groups_[rank]->session()); });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  const TempFolder folder_;
  const bool local_;
  std::vector<std::unique_ptr<RankHub>> hubs_;
  std::vector<std::shared_ptr<RankGroup>> groups_;
};

class RankGroupTest : public testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  Ranks ranks_{std::get<0>(GetParam()), std::get<1>(GetParam())};
};

INSTANTIATE_TEST_SUITE_P(All, RankGroupTest,
                         testing::Combine(testing::Values(2, 3, 4), testing::Bool()),
                         [](const auto& info) {
                           return "Ranks" + std::to_string(std::get<0>(info.param)) +
                                  (std::get<1>(info.param) ? "OfOneHost" : "OfTwoHosts");
                         });

float Number(int rank, int64_t i) {
  return 1.0f / static_cast<float>(3 + rank * 7 + i % 1009) * (i % 2 == 0 ? 1 : -3);
}

TEST_P(RankGroupTest, SumsAreTakenInTheOrderOfRanksOnAllOfThem) {
  ranks_.AwaitAll();
  // The last one goes in several exchanges.
  for (const int64_t count : {1, 576, 70'000, 200'001}) {
    std::vector<std::vector<float>> sums(ranks_.size());
    ranks_.Each([&](int rank, RankSession& session) {
      std::vector<float>& sum = sums[rank];
      for (int64_t i = 0; i < count; ++i) sum.push_back(Number(rank, i));
      for (int times = 0; times < 3; ++times) {
        std::vector<float> other = sum;
        session.exchange->AllReduce(other.data(), other.data(), count);
        if (times == 2) sum = other;
      }
    });
    for (int64_t i = 0; i < count; ++i) {
      float wanted = Number(0, i);
      for (int rank = 1; rank < ranks_.size(); ++rank) wanted += Number(rank, i);
      ASSERT_EQ(sums[0][i], wanted) << i << " of " << count;
    }
    for (int rank = 1; rank < ranks_.size(); ++rank) {
      ASSERT_EQ(std::memcmp(sums[rank].data(), sums[0].data(), count * sizeof(float)), 0);
    }
  }
}

TEST_P(RankGroupTest, ColumnsOfUnequalWidthAreJoined) {
  ranks_.AwaitAll();
  std::vector<int64_t> widths;
  for (int rank = 0; rank < ranks_.size(); ++rank) widths.push_back(rank == 1 ? 20'000 : 33 + rank);
  const int64_t total = std::accumulate(widths.begin(), widths.end(), int64_t{0});
  constexpr int64_t kRows = 7;
  std::vector<std::vector<float>> joined(ranks_.size());
  ranks_.Each([&](int rank, RankSession& session) {
    std::vector<float> mine;
    for (int64_t i = 0; i < kRows * widths[rank]; ++i) mine.push_back(Number(rank, i));
    joined[rank].resize(kRows * total);
    session.exchange->GatherColumns(mine.data(), joined[rank].data(), kRows, widths);
  });
  for (int64_t row = 0; row < kRows; ++row) {
    int64_t at = row * total;
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      for (int64_t i = 0; i < widths[rank]; ++i, ++at) {
        ASSERT_EQ(joined[0][at], Number(rank, row * widths[rank] + i)) << row << ", " << at;
      }
    }
  }
  for (int rank = 1; rank < ranks_.size(); ++rank) EXPECT_EQ(joined[rank], joined[0]);
}

TEST_P(RankGroupTest, NumbersOfEachRootReachAllRanks) {
  ranks_.AwaitAll();
  // The last one goes in several exchanges.
  for (const int64_t count : {1, 576, 200'001}) {
    std::vector<std::vector<float>> got(ranks_.size());
    ranks_.Each([&](int rank, RankSession& session) {
      for (int root = 0; root < ranks_.size(); ++root) {
        std::vector<float> numbers;
        for (int64_t i = 0; i < count; ++i) {
          numbers.push_back(rank == root ? Number(rank, i) : -1.0f);
        }
        session.exchange->Broadcast(numbers.data(), count, root);
        got[rank].insert(got[rank].end(), numbers.begin(), numbers.end());
      }
    });
    for (int rank = 0; rank < ranks_.size(); ++rank) {
      for (int root = 0; root < ranks_.size(); ++root) {
        for (int64_t i = 0; i < count; ++i) {
          ASSERT_EQ(got[rank][root * count + i], Number(root, i))
              << i << " of rank " << root << " at rank " << rank;
        }
      }
    }
  }
}

TEST_P(RankGroupTest, NumbersOfARootThatEndsAreNotWaitedForAndItIsNamed) {
  ranks_.AwaitAll();
  const std::shared_ptr<RankSession> session = ranks_[0].session();
  const int last = ranks_.size() - 1;
  std::thread waits([&] {
    float number = 1;
    session->exchange->Broadcast(&number, 1, last);
  });
  ranks_.Stop(last);
  waits.join();
  EXPECT_THAT(std::string(ranks_.Await(0, false).message()),
              HasSubstr("rank " + std::to_string(last) + " of "));
}

TEST_P(RankGroupTest, MessagesReachAllOthersInOrder) {
  ranks_.AwaitAll();
  const std::string longest(200'000, 'x');
  ranks_.Each([&](int rank, RankSession& session) {
    for (const std::string& message : {std::string("first"), longest, std::string()}) {
      if (rank == 0) {
        EXPECT_TRUE(ranks_[0].Send(session, message).ok());
        continue;
      }
      absl::StatusOr<std::string> received = ranks_[rank].Receive(session);
      while (absl::IsCancelled(received.status())) received = ranks_[rank].Receive(session);
      ASSERT_TRUE(received.ok()) << received.status();
      EXPECT_EQ(*received, message);
    }
  });
}

TEST_P(RankGroupTest, ARankThatEndsIsNamedAndBackWhenItReturns) {
  ranks_.AwaitAll();
  const std::shared_ptr<RankSession> session = ranks_[0].session();
  const int last = ranks_.size() - 1;
  ranks_.Stop(last);
  const absl::Status gone = ranks_.Await(0, false);
  EXPECT_EQ(gone.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(gone.message(), HasSubstr("rank " + std::to_string(last) + " of "));
  EXPECT_TRUE(session->is_broken());
  float number = 1;
  session->exchange->AllReduce(&number, &number, 1);  // Returns.
  const int64_t before = ranks_[0].sessions();
  ranks_.Start(last);
  ranks_.AwaitAll();
  EXPECT_GT(ranks_[0].sessions(), before);
  std::vector<float> sums(ranks_.size(), 1);
  ranks_.Each(
      [&](int rank, RankSession& now) { now.exchange->AllReduce(&sums[rank], &sums[rank], 1); });
  for (const float sum : sums) EXPECT_EQ(sum, static_cast<float>(ranks_.size()));
}

TEST_P(RankGroupTest, AnExchangeEndsWhereARankIsMissing) {
  ranks_.AwaitAll();
  const std::shared_ptr<RankSession> session = ranks_[0].session();
  std::thread waits([&] {
    float number = 1;
    session->exchange->AllReduce(&number, &number, 1);
  });
  ranks_.Stop(1);
  waits.join();
  EXPECT_FALSE(ranks_.Await(0, false).ok());
}

TEST_P(RankGroupTest, ARankThatDiffersIsRefusedByName) {
  ranks_.AwaitAll();
  ranks_.Stop(1);
  ranks_.Start(1, "avx512");
  EXPECT_THAT(ranks_.AwaitReason("ISA"), HasSubstr("its ISA is avx512, and rank 0's is avx2"));
  ranks_.Stop(1);
  ranks_.Start(1, "avx2", "other");
  EXPECT_THAT(ranks_.AwaitReason("plan"),
              HasSubstr("rank 1 of " + std::to_string(ranks_.size()) +
                        ": its plan of the model is other, and rank 0's is p"));
  EXPECT_FALSE(ranks_[1].state().ok());
  ranks_.Stop(1);
  ranks_.Start(1, "avx2", "p", Parallelism::kPipeline);
  EXPECT_THAT(ranks_.AwaitReason("parallelism"),
              HasSubstr("its parallelism is pipeline, and rank 0's is tensor"));
  ranks_.Stop(1);
  ranks_.Start(1);
  ranks_.AwaitAll();
}

TEST(RankHubTest, StrangersAreLeftOut) {
  auto hub = RankHub::Open(
      {.rank = 0, .ranks = 2, .address = *RankAddress::Parse("127.0.0.1:0"), .binary = "b"});
  ASSERT_TRUE(hub.ok()) << hub.status();
  const auto group = (*hub)->MakeGroup(kModel, "p");
  const auto ends = [] { return false; };
  const std::string hello = RankHello{.is_watched = true,
                                      .token = "t",
                                      .rank = 7,
                                      .ranks = 2,
                                      .identity = {.model = kModel, .binary = "b", .plan = "p"}}
                                .Text();
  for (const std::string& text :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("\xff\xff\xff\xff"), std::string(),
        hello, std::string("reprise ranks 1\nrank x")}) {
    auto socket = Connect((*hub)->address());
    ASSERT_TRUE(socket.ok()) << socket.status();
    EXPECT_TRUE(socket->SendFrame(text, ends).ok());
    char byte = 0;
    // It is closed, whether something is answered or not.
    while (socket->Receive(&byte, 1, ends).ok()) {
    }
  }
  EXPECT_THAT(group->state().message(), HasSubstr("rank 1 of 2 has not come yet"));
}

TEST(RankAddressTest, SaysWhatIsNone) {
  EXPECT_EQ(RankAddress::Parse("unix:/tmp/a")->path, "/tmp/a");
  EXPECT_EQ(RankAddress::Parse("10.0.0.1:70")->port, "70");
  EXPECT_EQ(RankAddress::Parse("[::1]:70")->host, "::1");
  EXPECT_EQ(RankAddress::Parse("[::1]:70")->Text(), "[::1]:70");
  for (const char* text : {"", "unix:", "host", "host:", ":70", "host:70000", "host:x"}) {
    EXPECT_THAT(RankAddress::Parse(text).status().message(), HasSubstr("neither unix:PATH nor"))
        << text;
  }
  EXPECT_FALSE(RankAddress::Parse("unix:/" + std::string(200, 'x')).ok());
}

}  // namespace
}  // namespace reprise
