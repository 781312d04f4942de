#include "server/prefixes/prefix_publisher.h"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <deque>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"
#include "server/prefixes/zmtp.h"

namespace reprise {
namespace {

// A subscriber that has more than this to read is disconnected; all pages come on top.
constexpr size_t kMostUnreadBytes = size_t{16} << 20;
// How long a connection may take until it subscribes to something.
constexpr std::chrono::seconds kGreetingTime(10);
constexpr size_t kMostTopics = 64;
// Events of one message, where all pages are told.
constexpr size_t kMostEvents = 512;

double NowSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// FNV-1a: equal on all servers.
uint64_t HashOfText(absl::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

uint64_t MixedWith(uint64_t seed, uint64_t content) {
  if (content == 0) return 0;
  uint64_t hash = (content ^ seed) * 0x9E3779B97F4A7C15;
  hash ^= hash >> 32;
  return hash == 0 ? 1 : hash;
}

}  // namespace

// One connection. All steps run on the thread of the port.
class PrefixPublisher::Subscriber : public std::enable_shared_from_this<Subscriber> {
 public:
  Subscriber(ClientStream stream, PrefixPublisher& publisher)
      : stream_(std::move(stream)), publisher_(publisher) {}

  void Start() {
    stream_.ExpireAfter(kGreetingTime);
    Write(std::make_shared<const std::string>(ZmtpGreeting()));
    auto greeting = std::make_shared<std::array<char, kZmtpGreetingBytes>>();
    boost::asio::async_read(
        stream_, boost::asio::buffer(*greeting),
        [self = shared_from_this(), greeting](ClientStream::Error error, size_t) {
          if (error) return self->End();
          if (!CheckZmtpGreeting({greeting->data(), greeting->size()}).ok()) return self->End();
          std::string ready;
          AppendZmtpReady(ready);
          self->Write(std::make_shared<const std::string>(std::move(ready)));
          self->Read();
        });
  }

  bool Wants(absl::string_view topic) const {
    return std::any_of(topics_.begin(), topics_.end(),
                       [&](const std::string& prefix) { return absl::StartsWith(topic, prefix); });
  }
  void AddTopic(const std::string& prefix) { topics_.insert(prefix); }

  // Sends a batch of events. `counts`: where too much is unread then, the connection ends.
  void SendBatch(absl::string_view topic, absl::string_view batch, bool counts) {
    std::string number(8, '\0');
    for (int i = 0; i < 8; ++i) number[i] = static_cast<char>(sent_ >> (56 - 8 * i));
    ++sent_;
    auto message = std::make_shared<std::string>();
    AppendZmtpFrame(ZmtpFrame::kMore, topic, *message);
    AppendZmtpFrame(ZmtpFrame::kMore, number, *message);
    AppendZmtpFrame(0, batch, *message);
    if (counts && unread_bytes_ + message->size() > kMostUnreadBytes) return End();
    if (counts) unread_bytes_ += message->size();
    Write(std::move(message), counts);
  }

 private:
  struct Outgoing {
    std::shared_ptr<const std::string> bytes;
    bool counts;
  };

  void Read() {
    stream_.async_read_some(boost::asio::buffer(buffer_),
                            [self = shared_from_this()](ClientStream::Error error, size_t bytes) {
                              if (error || !WhereMemoryAllows([&] { self->Take(bytes); }))
                                return self->End();
                              if (!self->ended_) self->Read();
                            });
  }

  void Take(size_t bytes) {
    reader_.Append({buffer_.data(), bytes});
    while (!ended_) {
      const auto frame = reader_.Next();
      if (!frame.ok()) return End();
      if (!frame->has_value()) return;
      TakeFrame(**frame);
    }
  }

  void TakeFrame(const ZmtpFrame& frame) {
    if (!is_ready_) {
      const std::string type = frame.is_command() ? ZmtpSocketType(frame.body) : "";
      is_ready_ = type == "SUB" || type == "XSUB";
      return is_ready_ ? void() : End();
    }
    const ZmtpAsk ask = ReadZmtpAsk(frame);
    switch (ask.kind) {
      case ZmtpAsk::Kind::kNothing:
        return;
      case ZmtpAsk::Kind::kCancel:
        topics_.erase(ask.text);
        return;
      case ZmtpAsk::Kind::kPing: {
        std::string pong;
        AppendZmtpPong(ask.text, pong);
        return Write(std::make_shared<const std::string>(std::move(pong)));
      }
      case ZmtpAsk::Kind::kSubscribe:
        if (topics_.size() >= kMostTopics) return End();
        stream_.ExpireNever();
        return publisher_.Subscribe(shared_from_this(), ask.text);
    }
  }

  void Write(std::shared_ptr<const std::string> bytes, bool counts = false) {
    if (ended_) return;
    outgoing_.push_back({std::move(bytes), counts});
    if (outgoing_.size() == 1) WriteNext();
  }

  void WriteNext() {
    boost::asio::async_write(stream_, boost::asio::buffer(*outgoing_.front().bytes),
                             [self = shared_from_this()](ClientStream::Error error, size_t) {
                               if (error) return self->End();
                               if (self->outgoing_.front().counts) {
                                 self->unread_bytes_ -= self->outgoing_.front().bytes->size();
                               }
                               self->outgoing_.pop_front();
                               if (!self->outgoing_.empty() && !self->ended_) self->WriteNext();
                             });
  }

  void End() {
    if (std::exchange(ended_, true)) return;
    stream_.Abort();
    publisher_.Leave(shared_from_this());
  }

  ClientStream stream_;
  PrefixPublisher& publisher_;
  std::array<char, 1024> buffer_;
  ZmtpReader reader_;
  std::set<std::string> topics_;  // beginnings of them
  std::deque<Outgoing> outgoing_;
  size_t unread_bytes_ = 0;
  uint64_t sent_ = 0;
  bool is_ready_ = false;
  bool ended_ = false;
};

PrefixPublisher::Pages::Pages(PrefixPublisher& publisher, const std::string& model,
                              const std::string& version)
    : publisher_(publisher), seed_(HashOfText(absl::StrCat(model, "/", version))), number_([&] {
        MutexLock lock(publisher.mutex_);
        publisher.held_[publisher.opened_].model = model;
        return publisher.opened_++;
      }()) {}

void PrefixPublisher::Pages::OnPage(const PageChange& change) {
  if (change.owner.salt != 0) return;
  WhereMemoryAllows([&] {
    publisher_.Change(
        number_, {.kind = change.stored ? PrefixEvent::Kind::kStored : PrefixEvent::Kind::kRemoved,
                  .page = MixedWith(seed_, change.content),
                  .before = MixedWith(seed_, change.before),
                  .ids = {change.ids.begin(), change.ids.end()}});
  });
}

PrefixPublisher::Pages::~Pages() {
  WhereMemoryAllows([this] { publisher_.ForgetPages(number_); });
}

PrefixPublisher::PrefixPublisher(std::string instance)
    : instance_(std::move(instance)),
      listener_(io_, {.max_connections = kMostSubscribers}, nullptr,
                [this](ClientStream stream) {
                  // All connections are on one thread, whatever their strands.
                  const auto subscriber = std::make_shared<Subscriber>(std::move(stream), *this);
                  subscribers_.insert(subscriber);
                  subscriber->Start();
                }),
      threads_(io_, nullptr) {}

PrefixPublisher::~PrefixPublisher() {
  threads_.Join();
  subscribers_.clear();
}

absl::Status PrefixPublisher::Start(const std::string& address, int port) {
  absl::Status status = listener_.Listen(address, port, "events of prefixes");
  if (status.ok()) threads_.Start(1);
  return status;
}

std::string PrefixPublisher::TopicOf(const std::string& model) const {
  return absl::StrCat("kv@", instance_, "@", model);
}

void PrefixPublisher::Change(int64_t number, PrefixEvent event) {
  MutexLock lock(mutex_);
  Held& held = held_.at(number);
  if (event.kind == PrefixEvent::Kind::kStored) {
    const auto [known, is_new] = held.places.emplace(event.page, Place{.order = held.next});
    if (!is_new) {
      ++known->second.pools;
      return;
    }
    held.in_order.emplace(held.next++, event);
  } else {
    const auto known = held.places.find(event.page);
    if (known == held.places.end() || --known->second.pools > 0) return;
    held.in_order.erase(known->second.order);
    held.places.erase(known);
    event.ids.clear();
  }
  Add(held.model, std::move(event));
}

void PrefixPublisher::ForgetPages(int64_t number) {
  MutexLock lock(mutex_);
  const Held held = std::move(held_.at(number));
  held_.erase(number);
  // Later pages of a prefix come first.
  for (auto it = held.in_order.rbegin(); it != held.in_order.rend(); ++it) {
    Add(held.model, {.kind = PrefixEvent::Kind::kRemoved, .page = it->second.page});
  }
}

void PrefixPublisher::Add(const std::string& model, PrefixEvent event) {
  queued_[model].push_back(std::move(event));
  if (flushes_) return;
  flushes_ = true;
  boost::asio::post(io_, [this] { WhereMemoryAllows([this] { Flush(); }); });
}

void PrefixPublisher::Flush() {
  std::map<std::string, std::vector<PrefixEvent>> changes;
  {
    MutexLock lock(mutex_);
    flushes_ = false;
    changes.swap(queued_);
  }
  Deliver(changes);
}

void PrefixPublisher::Deliver(const std::map<std::string, std::vector<PrefixEvent>>& changes) {
  for (const auto& [model, events] : changes) {
    const std::string topic = TopicOf(model);
    std::string batch;
    // A subscriber may leave meanwhile.
    const std::set<std::shared_ptr<Subscriber>> all = subscribers_;
    for (const auto& subscriber : all) {
      if (!subscriber->Wants(topic)) continue;
      if (batch.empty()) batch = EncodeBatch(NowSeconds(), events);
      subscriber->SendBatch(topic, batch, /*counts=*/true);
    }
  }
}

void PrefixPublisher::Subscribe(const std::shared_ptr<Subscriber>& subscriber,
                                const std::string& prefix) {
  std::map<std::string, std::vector<PrefixEvent>> changes, all;
  {
    MutexLock lock(mutex_);
    changes.swap(queued_);
    for (const auto& [number, held] : held_) {
      const std::string topic = TopicOf(held.model);
      if (!absl::StartsWith(topic, prefix) || subscriber->Wants(topic)) continue;
      std::vector<PrefixEvent>& events = all[topic];
      for (const auto& [order, event] : held.in_order) events.push_back(event);
    }
  }
  Deliver(changes);
  subscriber->AddTopic(prefix);
  // Before any page: this is of all pages of the server, whatever the topic.
  const std::string none_left = EncodeBatch(NowSeconds(), {PrefixEvent()});
  for (const auto& [topic, events] : all) subscriber->SendBatch(topic, none_left, false);
  for (const auto& [topic, events] : all) {
    for (size_t i = 0; i < events.size(); i += kMostEvents) {
      const size_t count = std::min(kMostEvents, events.size() - i);
      subscriber->SendBatch(
          topic, EncodeBatch(NowSeconds(), absl::MakeConstSpan(events).subspan(i, count)),
          /*counts=*/false);
    }
  }
}

}  // namespace reprise
