#include "server/http2/http2_session.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <new>

#include "absl/strings/str_cat.h"
#include "runtime/base/memory_net.h"

namespace reprise {
namespace {

// A client whose header is larger than the limit by this factor is not answered but cut off.
constexpr size_t kHopelessHeaders = 4;
constexpr size_t kFieldOverhead = 32;  // RFC 9113, 6.5.2
constexpr size_t kMostFields = 256;
constexpr int kFirstExtension = NGHTTP2_CONTINUATION + 1;  // the types that HTTP/2 does not have
// SETTINGS_NO_RFC7540_PRIORITIES of RFC 9218: the client's priorities are ignored.
constexpr int32_t kNoOldPriorities = 0x9;
constexpr uint32_t kSmallAnswer = 1 << 10;
// The stream that GOAWAY names while the last call is not known.
constexpr int32_t kNoLastStream = std::numeric_limits<int32_t>::max();
// The ping whose answer tells that the client has read everything sent before it.
constexpr uint8_t kGoAwayPing[8] = {'g', 'o', 'i', 'n', 'g', ' ', 'a', 'w'};

absl::string_view View(const uint8_t* bytes, size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

std::vector<nghttp2_nv> ToNv(const Http2Fields& fields) {
  std::vector<nghttp2_nv> nv;
  nv.reserve(fields.size());
  const auto bytes = [](const std::string& text) {
    return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
  };
  for (const auto& [name, value] : fields) {
    nv.push_back({bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
  }
  return nv;
}

// Returns whether a stream that is reset with `code` ends by a violation of HTTP/2 by the client.
bool IsFaultOfClient(uint32_t code) {
  return code == NGHTTP2_PROTOCOL_ERROR || code == NGHTTP2_FLOW_CONTROL_ERROR ||
         code == NGHTTP2_STREAM_CLOSED || code == NGHTTP2_FRAME_SIZE_ERROR;
}

// Throws: an answer that libnghttp2 could not keep is never sent: the connection has to end.
void ThrowWithoutMemory(int result) {
  if (result == NGHTTP2_ERR_NOMEM) throw std::bad_alloc();
}

}  // namespace

// Functions that libnghttp2 calls. It is C: nothing may be thrown through it.
struct Http2Session::Callbacks {
  static Http2Session& Self(void* user) { return *static_cast<Http2Session*>(user); }
  static Entry* EntryOf(nghttp2_session* session, int32_t id) {
    return static_cast<Entry*>(nghttp2_session_get_stream_user_data(session, id));
  }
  template <typename Work>
  static int Guarded(Http2Session& self, const Work& work) {
    if (WhereMemoryAllows(work)) return 0;
    self.why_ = "the system has not the memory that the connection needs";
    return NGHTTP2_ERR_CALLBACK_FAILURE;
  }

  static int OnBeginFrame(nghttp2_session*, const nghttp2_frame_hd* frame, void* user) {
    Http2Session& self = Self(user);
    if (!self.why_.empty()) return NGHTTP2_ERR_CALLBACK_FAILURE;
    const bool is_useful =
        (frame->type == NGHTTP2_HEADERS && self.streams_.size() < self.limits_.max_streams) ||
        (frame->type == NGHTTP2_DATA &&
         (frame->length > 0 || (frame->flags & NGHTTP2_FLAG_END_STREAM) != 0));
    if (is_useful) {
      self.OnUseful();
      return 0;
    }
    if (frame->type == NGHTTP2_RST_STREAM) return 0;  // has a limit of its own
    return self.CountIdleFrame() ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
  }

  // Ignores the payload of a frame of a type that HTTP/2 does not have; OnBeginFrame counted it.
  static int OnExtension(nghttp2_session*, void**, const nghttp2_frame_hd*, void*) {
    return NGHTTP2_ERR_CANCEL;
  }

  static int OnBeginHeaders(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    Http2Session& self = Self(user);
    self.header_began_ = Clock::now();
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    return Guarded(self, [&] {
      auto entry = std::make_unique<Entry>();
      entry->stream = self.make_stream_(frame->hd.stream_id);
      Entry* const raw = entry.get();
      self.streams_[frame->hd.stream_id] = std::move(entry);
      nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, raw);
    });
  }

  static int OnHeader(nghttp2_session* session, const nghttp2_frame* frame, const uint8_t* name,
                      size_t name_size, const uint8_t* value, size_t value_size, uint8_t,
                      void* user) {
    Http2Session& self = Self(user);
    Entry* const entry = EntryOf(session, frame->hd.stream_id);
    if (entry == nullptr) return 0;
    entry->header_bytes += name_size + value_size + kFieldOverhead;
    if (entry->header_bytes > kHopelessHeaders * self.limits_.max_header_bytes) {
      self.why_ = absl::StrCat("a header of more than ", entry->header_bytes, " bytes, at most ",
                               self.limits_.max_header_bytes, " are taken");
      return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    if (entry->has_head) return 0;  // trailers say nothing to us
    entry->is_too_large |=
        entry->header_bytes > self.limits_.max_header_bytes || entry->fields.size() >= kMostFields;
    if (entry->is_too_large) return 0;
    return Guarded(self, [&] {
      entry->fields.emplace_back(std::string(View(name, name_size)),
                                 std::string(View(value, value_size)));
    });
  }

  static int OnFrame(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    Http2Session& self = Self(user);
    const bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    switch (frame->hd.type) {
      case NGHTTP2_HEADERS: {
        self.header_began_ = Clock::time_point::max();
        Entry* const entry = EntryOf(session, frame->hd.stream_id);
        if (entry == nullptr) return 0;
        return Guarded(self, [&] {
          const std::shared_ptr<Http2Stream> stream = entry->stream;
          if (!std::exchange(entry->has_head, true)) {
            stream->OnHead(std::move(entry->fields), entry->is_too_large);
            entry->fields = Http2Fields();
          }
          if (ends) stream->OnEnd();
        });
      }
      case NGHTTP2_DATA: {
        Entry* const entry = EntryOf(session, frame->hd.stream_id);
        if (!ends || entry == nullptr) return 0;
        return Guarded(self, [&] { entry->stream->OnEnd(); });
      }
      case NGHTTP2_SETTINGS:
        self.has_begun_ = true;
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0) self.has_read_settings_ = true;
        return 0;
      case NGHTTP2_PING:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) == 0) {
          self.OnPing();
        } else if (std::memcmp(frame->ping.opaque_data, kGoAwayPing, sizeof(kGoAwayPing)) == 0) {
          self.is_goaway_heard_ = self.goaway_began_ != Clock::time_point::max();
        }
        return 0;
      default:
        return 0;
    }
  }

  static int OnData(nghttp2_session* session, uint8_t, int32_t id, const uint8_t* bytes,
                    size_t size, void* user) {
    // The connection's window is for the sum of the bytes under way; a stream's own window bounds
    // the bytes that it keeps.
    nghttp2_session_consume_connection(session, size);
    Entry* const entry = EntryOf(session, id);
    if (entry == nullptr) return 0;
    return Guarded(Self(user), [&] { entry->stream->OnData(View(bytes, size)); });
  }

  static int OnClose(nghttp2_session* session, int32_t id, uint32_t, void* user) {
    Http2Session& self = Self(user);
    if (EntryOf(session, id) == nullptr) return 0;
    const auto it = self.streams_.find(id);
    if (it == self.streams_.end()) return 0;
    const std::unique_ptr<Entry> entry = std::move(it->second);
    self.streams_.erase(it);
    return Guarded(self, [&] { entry->stream->OnClose(); });
  }

  static int OnSent(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    Http2Session& self = Self(user);
    if (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) {
      // Clients measure the line with a ping when something comes.
      self.ping_strikes_ = 0;
      self.last_ping_ = Clock::time_point::min();
    }
    // Clients answer each piece of a stream with windows and pings.
    if (frame->hd.type == NGHTTP2_DATA && frame->hd.length > 0) self.OnUseful();
    // A client whose frames make us reset its streams may do so as often as it may reset them.
    if (frame->hd.type == NGHTTP2_RST_STREAM && IsFaultOfClient(frame->rst_stream.error_code)) {
      self.CountFault();
    }
    // A ping goes in front of all waiting frames: it is made once GOAWAY has been sent.
    if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.last_stream_id == kNoLastStream) {
      nghttp2_submit_ping(session, NGHTTP2_FLAG_NONE, kGoAwayPing);
    }
    // An answer that is whole while the client still sends: the rest is not read.
    const bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 &&
                      (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA);
    if (ends && self.goes_with_answer_ && self.streams_.size() <= 1) self.BeginGoAway();
    if (ends && nghttp2_session_get_stream_remote_close(session, frame->hd.stream_id) == 0) {
      nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
    }
    return 0;
  }

  static ssize_t Read(nghttp2_session* session, int32_t id, uint8_t* to, size_t size,
                      uint32_t* flags, nghttp2_data_source* source, void* user) {
    auto* const stream = static_cast<Http2Stream*>(source->ptr);
    Http2Stream::Produced produced;
    const int failed = Guarded(Self(user), [&] {
      produced = stream->Produce(reinterpret_cast<char*>(to), size);
      if (!produced.ends) return;
      *flags |= NGHTTP2_DATA_FLAG_EOF;
      const Http2Fields trailers = stream->Trailers();
      if (trailers.empty()) return;
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const std::vector<nghttp2_nv> nv = ToNv(trailers);
      ThrowWithoutMemory(nghttp2_submit_trailer(session, id, nv.data(), nv.size()));
    });
    if (failed != 0) return failed;
    if (produced.waits && produced.bytes == 0 && !produced.ends) return NGHTTP2_ERR_DEFERRED;
    return static_cast<ssize_t>(produced.bytes);
  }
};

Http2Session::Http2Session(const Http2Limits& limits, MakeStream make_stream)
    : limits_(limits),
      make_stream_(std::move(make_stream)),
      idle_frames_{.left = limits.idle_frame_burst},
      faults_{.left = limits.reset_burst} {
  nghttp2_session_callbacks* callbacks = nullptr;
  nghttp2_option* option = nullptr;
  if (nghttp2_session_callbacks_new(&callbacks) != 0 || nghttp2_option_new(&option) != 0) {
    nghttp2_session_callbacks_del(callbacks);
    throw std::bad_alloc();
  }
  nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, Callbacks::OnBeginFrame);
  nghttp2_session_callbacks_set_unpack_extension_callback(callbacks, Callbacks::OnExtension);
  for (int type = kFirstExtension; type <= std::numeric_limits<uint8_t>::max(); ++type) {
    nghttp2_option_set_user_recv_extension_type(option, static_cast<uint8_t>(type));
  }
  nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, Callbacks::OnBeginHeaders);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, Callbacks::OnHeader);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, Callbacks::OnFrame);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, Callbacks::OnData);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, Callbacks::OnClose);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, Callbacks::OnSent);
  nghttp2_option_set_no_auto_window_update(option, 1);
  nghttp2_option_set_no_closed_streams(option, 1);
  // Clients of gRPC send metadata as their users write it, " Bearer KEY" among it. gRPC lets a
  // server strip the blanks (ReadCallHead does), HTTP/2 would end the stream.
  nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(option, 1);
  nghttp2_option_set_max_continuations(option, limits.max_continuations);
  nghttp2_option_set_stream_reset_rate_limit(option, static_cast<uint64_t>(limits.reset_burst),
                                             static_cast<uint64_t>(limits.resets_per_second));
  const int made = nghttp2_session_server_new2(&session_, callbacks, this, option);
  nghttp2_option_del(option);
  nghttp2_session_callbacks_del(callbacks);
  if (made != 0) throw std::bad_alloc();
  const nghttp2_settings_entry settings[] = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, limits.max_streams},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<uint32_t>(limits.stream_window)},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, limits.max_header_bytes},
      {kNoOldPriorities, 1}};
  nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings));
  nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, limits.connection_window);
}

Http2Session::~Http2Session() { nghttp2_session_del(session_); }

absl::Status Http2Session::Receive(absl::string_view bytes) {
  const ssize_t read = nghttp2_session_mem_recv(
      session_, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  if (read >= 0) return absl::OkStatus();
  if (why_.empty() && read != NGHTTP2_ERR_FLOODED && read != NGHTTP2_ERR_TOO_MANY_CONTINUATIONS) {
    nghttp2_session_terminate_session(session_, NGHTTP2_PROTOCOL_ERROR);
    return absl::InvalidArgumentError(
        absl::StrCat("not HTTP/2: ", nghttp2_strerror(static_cast<int>(read))));
  }
  nghttp2_session_terminate_session(session_, NGHTTP2_ENHANCE_YOUR_CALM);
  return absl::ResourceExhaustedError(why_.empty() ? nghttp2_strerror(static_cast<int>(read))
                                                   : why_);
}

absl::Status Http2Session::Produce(std::string& out, size_t enough) {
  while (out.size() < enough) {
    const uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
    if (size == 0) break;
    if (size < 0) {
      return absl::InternalError(
          absl::StrCat("HTTP/2: ", nghttp2_strerror(static_cast<int>(size))));
    }
    out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
  }
  return absl::OkStatus();
}

bool Http2Session::IsOver() const {
  return nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0;
}

absl::Status Http2Session::Respond(int32_t id, const Http2Fields& fields, bool has_body) {
  const auto it = streams_.find(id);
  if (it == streams_.end()) return absl::CancelledError("the stream is closed");
  const std::vector<nghttp2_nv> nv = ToNv(fields);
  const nghttp2_data_provider body = {.source = {.ptr = it->second->stream.get()},
                                      .read_callback = &Callbacks::Read};
  const int result =
      nghttp2_submit_response(session_, id, nv.data(), nv.size(), has_body ? &body : nullptr);
  ThrowWithoutMemory(result);
  return result == 0 ? absl::OkStatus() : absl::InternalError(nghttp2_strerror(result));
}

void Http2Session::BeginGoAway() {
  goes_with_answer_ = false;
  if (goaway_began_ != Clock::time_point::max()) return;
  goaway_began_ = Clock::now();
  nghttp2_submit_shutdown_notice(session_);
}

size_t Http2Session::RoomForAnswers() const {
  const int64_t connection = nghttp2_session_get_remote_window_size(session_);
  const uint32_t stream =
      nghttp2_session_get_remote_settings(session_, NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE);
  if (stream < kSmallAnswer) return 0;
  if (has_read_settings_) return limits_.max_streams;
  return static_cast<size_t>(
      std::clamp<int64_t>(connection / kSmallAnswer, 1, int64_t{limits_.max_streams}));
}

void Http2Session::FinishGoAway(uint32_t code, absl::string_view why) {
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE,
                        nghttp2_session_get_last_proc_stream_id(session_), code,
                        reinterpret_cast<const uint8_t*>(why.data()), why.size());
}

void Http2Session::CloseAll() {
  auto streams = std::move(streams_);
  streams_.clear();
  for (const auto& [id, entry] : streams) {
    nghttp2_session_set_stream_user_data(session_, id, nullptr);
    WhereMemoryAllows([stream = entry->stream.get()] { stream->OnClose(); });
  }
}

bool Http2Session::Allowance::Take(int64_t burst, int64_t per_second) {
  if (--left > 0) return true;
  const auto now = Clock::now();
  const auto passed = std::chrono::duration_cast<std::chrono::milliseconds>(now - counted).count();
  counted = now;
  left = std::min(burst, passed * per_second / 1000);
  return left > 0;
}

bool Http2Session::CountIdleFrame() {
  if (idle_frames_.Take(limits_.idle_frame_burst, limits_.idle_frames_per_second)) return true;
  why_ = absl::StrCat("more than ", limits_.idle_frames_per_second,
                      " frames a second that carry no message");
  return false;
}

void Http2Session::CountFault() {
  if (faults_.Take(limits_.reset_burst, limits_.resets_per_second)) return;
  why_ = absl::StrCat("more than ", limits_.resets_per_second,
                      " streams a second that end by a fault of the client");
}

void Http2Session::OnUseful() {
  idle_frames_.left =
      std::min(limits_.idle_frame_burst, idle_frames_.left + limits_.idle_frames_of_useful);
}

void Http2Session::OnPing() {
  const auto now = Clock::now();
  if (streams_.empty() && last_ping_ != Clock::time_point::min() &&
      now - last_ping_ < least_ping_interval_) {
    ++ping_strikes_;
  }
  if (!streams_.empty()) ping_strikes_ = 0;
  last_ping_ = now;
}

}  // namespace reprise
