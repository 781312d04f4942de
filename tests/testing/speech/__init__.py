"""Sound for tests: files, and a tiny Whisper with its transcripts of them."""
