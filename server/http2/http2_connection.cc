#include "server/http2/http2_connection.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <random>
#include <utility>

#include "runtime/base/memory_net.h"
#include "server/http2/grpc_stream.h"

namespace reprise {
namespace {

constexpr size_t kReadBytes = 64 << 10;
// Reads of one turn: others have the thread then.
constexpr int kReadsOfTurn = 16;
constexpr size_t kWriteBytes = 64 << 10;
constexpr size_t kKeptBytes = 4 << 10;  // the buffer keeps them while nothing is written
// Frames that wait for a client which sends and does not read.
constexpr size_t kMostWaitingFrames = 256;
// A client that has sent something within this time may have a call on its way.
constexpr std::chrono::seconds kCallingTime(1);
// The time in which the news that a connection will end can go with an answer, and the time from
// then to the news which calls are the last.
constexpr std::chrono::milliseconds kAnswerTime(500);
constexpr std::chrono::milliseconds kLastStreamTime(500);
// Spare connections are for one question.
constexpr std::chrono::seconds kSpareTime(1);

// Reads of a thread, one at a time.
char* ReadBuffer() {
  thread_local const std::unique_ptr<char[]> buffer(new char[kReadBytes]);
  return buffer.get();
}

// `time`, a tenth more or less: connections that came together do not go together.
std::chrono::nanoseconds Jittered(std::chrono::nanoseconds time) {
  thread_local std::minstd_rand random{std::random_device{}()};
  const int64_t tenth = time.count() / 10;
  if (tenth == 0) return time;
  return time +
         std::chrono::nanoseconds(std::uniform_int_distribution<int64_t>(-tenth, tenth)(random));
}

}  // namespace

Http2Connection::Http2Connection(ClientStream stream, const Http2Context& context)
    : context_(context),
      stream_(std::move(stream)),
      account_(context.account->Open()),
      age_(Jittered(context.times.max_age)) {}

void Http2Connection::Start(std::function<void()> ended) {
  ended_ = std::move(ended);
  session_ = std::make_unique<Http2Session>(context_.http2, [this](int32_t id) {
    return std::make_shared<GrpcStream>(shared_from_this(), id);
  });
  session_->SetPingInterval(context_.times.least_ping_interval);
  Flush();
  ReadSome();
}

void Http2Connection::WaitToRead(ClientStream::State state) {
  stream_.AsyncWait(state, [self = shared_from_this()](boost::system::error_code error) {
    if (error || !WhereMemoryAllows([&] { self->ReadSome(); })) self->End();
  });
}

void Http2Connection::ReadSome() {
  for (int i = 0; i < kReadsOfTurn; ++i) {
    if (session_ == nullptr || failed_ || HoldReads()) return;
    const ClientStream::Moved moved = stream_.ReadNow(ReadBuffer(), kReadBytes);
    if (moved.state == ClientStream::State::kEnded) return End();
    if (moved.state != ClientStream::State::kMoved) return WaitToRead(moved.state);
    received_ = Clock::now();
    pinged_.reset();
    failed_ = !session_->Receive({ReadBuffer(), moved.bytes}).ok();
    if (session_->ping_strikes() > context_.times.max_ping_strikes) {
      session_->FinishGoAway(NGHTTP2_ENHANCE_YOUR_CALM, "too_many_pings");
      failed_ = true;
    }
    Flush();
  }
  boost::asio::post(stream_.get_executor(), [self = shared_from_this()] {
    if (!WhereMemoryAllows([&] { self->ReadSome(); })) self->End();
  });
}

bool Http2Connection::HoldReads() {
  reads_held_ = writing_ && (session_->waiting_frames() > kMostWaitingFrames ||
                             session_->streams() >= context_.http2.first_streams);
  return reads_held_;
}

void Http2Connection::Flush() {
  if (session_ == nullptr || writing_) return;
  while (true) {
    if (out_sent_ == out_.size()) {
      out_.clear();
      out_sent_ = 0;
      if (!session_->Produce(out_, kWriteBytes).ok()) return End();
      if (out_.empty()) break;
      write_began_ = Clock::now();
    }
    const ClientStream::Moved moved =
        stream_.WriteNow(out_.data() + out_sent_, out_.size() - out_sent_);
    if (moved.state == ClientStream::State::kEnded) return End();
    if (moved.state != ClientStream::State::kMoved) return WaitToWrite(moved.state);
    out_sent_ += moved.bytes;
  }
  if (out_.capacity() > kKeptBytes) std::string().swap(out_);
  TellClosed();
  if (session_->IsOver() || failed_) End();
}

void Http2Connection::WaitToWrite(ClientStream::State state) {
  writing_ = true;
  stream_.AsyncWait(state, [self = shared_from_this()](boost::system::error_code error) {
    self->writing_ = false;
    if (error || !WhereMemoryAllows([&] { self->Flush(); })) return self->End();
    if (self->reads_held_ && !WhereMemoryAllows([&] { self->ReadSome(); })) self->End();
  });
}

void Http2Connection::TellClosed() {
  const auto closed = std::move(closed_);
  closed_.clear();
  for (const std::function<void()>& done : closed) done();
}

void Http2Connection::End() {
  if (session_ == nullptr) return;
  const std::unique_ptr<Http2Session> session = std::move(session_);
  session->CloseAll();
  TellClosed();
  std::string().swap(out_);
  stream_.CloseSending();
  stream_.Abort();
  if (ended_ != nullptr) std::exchange(ended_, nullptr)();
}

void Http2Connection::Drain(bool at_once) {
  if (session_ == nullptr) return;
  const auto now = Clock::now();
  if (!drained_.has_value()) drained_ = now;
  const bool is_calling = session_->streams() > 0 || now - received_ < kCallingTime;
  if (is_calling && !at_once) return session_->BeginGoAwayWithAnswer();
  session_->BeginGoAway();
  Flush();
}

void Http2Connection::Check(Clock::time_point now) {
  if (session_ == nullptr) return;
  const Http2Times& times = context_.times;
  const auto passed = [now](Clock::time_point since, std::chrono::nanoseconds time) {
    return time.count() > 0 && since != Clock::time_point::max() && now - since > time;
  };
  if (writing_ && passed(write_began_, context_.rpc.write_timeout)) return End();
  if (!session_->has_begun() && passed(opened_, times.begin)) return End();
  if (passed(session_->header_began(), times.begin)) return End();
  if (stream_.is_spare() && passed(opened_, kSpareTime)) return End();
  if (session_->streams() > 0) {
    idle_since_ = now;
    bool waits_for_client = writing_;
    session_->ForEach([&](Http2Stream& stream) {
      auto& call = static_cast<GrpcStream&>(stream);
      call.CheckTime(now);
      waits_for_client |= call.has_unsent_answer();
    });
    // Calls that are long, or wait for messages, hold up those behind them no longer.
    if (!waits_for_client && session_->streams() >= session_->allowed_streams()) {
      session_->AllowMoreStreams();
    }
  }
  CheckKeepalive(now);
  if (session_ == nullptr) return;
  if (!drained_.has_value() && (passed(idle_since_, times.max_idle) || passed(opened_, age_))) {
    Drain(false);
  }
  if (session_ != nullptr && drained_.has_value()) {
    if (passed(*drained_, kAnswerTime)) session_->BeginGoAway();
    if (!last_stream_told_ && passed(session_->goaway_began(), kLastStreamTime)) {
      last_stream_told_ = true;
      session_->FinishGoAway(NGHTTP2_NO_ERROR, "");
    }
    if (passed(*drained_, times.max_age_grace)) return End();
  }
  Flush();
}

void Http2Connection::CheckKeepalive(Clock::time_point now) {
  const Http2Times& times = context_.times;
  if (times.keepalive.count() == 0) return;
  if (pinged_.has_value()) {
    if (now - *pinged_ > times.keepalive_timeout) End();
  } else if (now - received_ > times.keepalive &&
             (times.keepalive_without_calls || session_->streams() > 0)) {
    pinged_ = now;
    session_->Ping();
  }
}

}  // namespace reprise
