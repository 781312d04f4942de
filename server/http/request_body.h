// RequestBody: the body of a request as it is read, in memory that it grows into.
//
// A client may say any length and send nothing: no more than kFirstBytes are held ready for what
// has not come.
#pragma once

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/optional.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

namespace reprise {

// A Body of Beast that is read and never written.
struct RequestBody {
  using value_type = std::string;

  static constexpr uint64_t kFirstBytes = uint64_t{64} << 10;
  static constexpr uint64_t kGrowth = 4;

  class reader {
   public:
    template <bool is_request, class Fields>
    reader(boost::beast::http::header<is_request, Fields>& /*header*/, value_type& body)
        : body_(body) {}

    void init(const boost::optional<uint64_t>& length, boost::system::error_code& error) {
      error = {};
      length_ = length.value_or(UINT64_MAX);
      if (length.has_value()) body_.reserve(std::min(*length, kFirstBytes));
    }

    template <class Buffers>
    size_t put(const Buffers& buffers, boost::system::error_code& error) {
      error = {};
      const size_t size = body_.size(), more = boost::asio::buffer_size(buffers);
      if (size + more > body_.capacity()) {
        body_.reserve(std::max<uint64_t>(size + more, std::min(length_, kGrowth * size)));
      }
      body_.resize(size + more);
      return boost::asio::buffer_copy(boost::asio::buffer(body_.data() + size, more), buffers);
    }

    void finish(boost::system::error_code& error) { error = {}; }

   private:
    value_type& body_;
    uint64_t length_ = 0;  // that the header says
  };
};

}  // namespace reprise
