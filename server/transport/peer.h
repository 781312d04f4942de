// Peer: the other end of a connection, as the transport knows it. Credentials that a protocol
// carries (headers, metadata) come on top of it.
#pragma once

#include <string>

namespace reprise {

struct Peer {
  std::string address;  // "192.0.2.7", "::1"
  int port = 0;
  bool is_local = false;   // the client runs on this machine: a loopback address
  bool encrypted = false;  // TLS carries the bytes
  // The subject of the certificate that the client has proved to hold, as RFC 2253 writes it
  // ("CN=gateway,O=Example"); empty where none was asked for.
  std::string subject;
};

}  // namespace reprise
